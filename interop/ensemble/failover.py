#!/usr/bin/env python3
"""Measures the time without an acknowledged write after kill -9 of the leader, and compares it with Java at the same
tickTime.

Sessions are open at both other servers. From the kill on each session sends a write. If it loses its connection, it
tries every millisecond to reconnect to one of the two servers and to write there. The result is the time of the first
acknowledged write. The second figure is for a leader that is stopped (SIGSTOP): the others notice after syncLimit
ticks."""

import os
import statistics
import sys
import threading
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ensemble.cluster import Cluster, patiently
from ensemble.load import LOST, SETTINGS, Link
from harness.outcome import Skip, conclude, expect
from harness.server import arguments, available, work_folder

SYNC_LIMIT = 10
SILENT_ROUNDS = 3
LONGEST_S = 60
PATH = "/failover"


class Survivor:
    """A session at a server that stays."""

    def __init__(self, port, ports, first):
        self.link = Link(port)
        self.ports, self.first = ports, first
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        self.link.socket.settimeout(LONGEST_S)  # a server that waits for the leader may answer late
        n, until = 0, time.monotonic() + LONGEST_S
        while not self.first.is_set() and time.monotonic() < until:
            try:
                self.link.set(PATH, b"%d" % n)
                self.first.at = min(self.first.at, time.monotonic())
                self.first.set()
                break
            except LOST:
                self.link.drop()
            while not self.first.is_set() and time.monotonic() < until:
                n += 1
                try:
                    old = self.link
                    self.link = Link(
                        self.ports[n % len(self.ports)], old.timeout_ms, old.id, old.password, old.seen_zxid
                    )
                    break
                except LOST:
                    time.sleep(0.001)
        self.link.drop()


class First(threading.Event):
    """The first acknowledged write, and its time."""

    def __init__(self):
        super().__init__()
        self.at = float("inf")


def one_round(cluster, harm):
    """Seconds from `harm` of the leader to the first write."""
    leader = cluster.wait_quorum()
    ports = [m.port for m in cluster.members.values() if m is not leader]
    first = First()
    survivors = [Survivor(port, ports, first) for port in ports]
    began = time.monotonic()
    harm(leader)
    for one in survivors:
        one.thread.start()
    expect(first.wait(LONGEST_S), "no write was acknowledged within %d s" % LONGEST_S)
    for one in survivors:
        one.link.socket.close()
        one.thread.join(LONGEST_S)
    return first.at - began, leader


def measure(make, port, tick_ms, rounds):
    """(seconds after a kill, seconds after a silent stop), of each round."""
    settings = {**SETTINGS, "tickTime": tick_ms, "syncLimit": SYNC_LIMIT}
    killed, silent = [], []
    with Cluster([make] * 3, work_folder("failover"), port, settings) as cluster:
        cluster.start().wait_quorum()
        session = patiently(lambda: Link(cluster.ports()[0]))
        session.socket.settimeout(30)  # a Java server that has just started may answer late
        session.create(PATH)
        session.close()
        for _ in range(rounds):
            seconds, leader = one_round(cluster, lambda leader: leader.kill())
            killed.append(seconds)
            leader.start()
        for _ in range(SILENT_ROUNDS):
            seconds, leader = one_round(cluster, lambda leader: leader.pause())
            silent.append(seconds)
            leader.resume()
            cluster.wait_quorum()
    return killed, silent


def shown(seconds):
    return "median %.0f ms, worst %.0f ms" % (statistics.median(seconds) * 1000, max(seconds) * 1000)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9", help="servers to measure beside (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--tick", type=int, default=500, help="tickTime of all in ms (default: %(default)s)")
    args = parser.parse_args()
    peers, missing = available(args.peers)
    lines = []
    for n, make in enumerate([args.server] + peers):
        killed, silent = measure(make, args.port, args.tick, args.rounds)
        lines.append("%s: %s" % (make if n else "Ostler", shown(killed)))
        print(
            "%s; %d kills of the leader; leader stopped silently: %s (syncLimit * tickTime is %d ms)"
            % (lines[-1], len(killed), shown(silent), SYNC_LIMIT * args.tick),
            flush=True,
        )
    summary = "first write after a kill of the leader: %s" % "; ".join(lines)
    if missing:
        raise Skip("%s; not measured: %s" % (summary, "; ".join(missing)))
    return summary


if __name__ == "__main__":
    conclude(check)
