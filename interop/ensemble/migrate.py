#!/usr/bin/env python3
"""Migrates three Java servers to Ostler, one by one on the same data folders, while clients write; and back again.

For each server it does what a user has to do: stop it, start the other program with the same zoo.cfg and data folder,
and wait until it follows. The leader comes last. No acknowledged write may be lost, no session may end whose client
comes back, and the trees are compared after each step."""

import os
import sys
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ensemble.cluster import Cluster
from ensemble.load import SETTINGS, Load
from ensemble.mixed import given_snapshots_in
from harness.outcome import Mismatch, conclude, expect_equal
from harness.server import NotServing, arguments, command, work_folder


class Migration:
    def __init__(self, old, new, port, settings, clients):
        self.programs = {old: "Java", new: "Ostler"}
        self.old, self.new = old, new
        self.cluster = Cluster([old] * 3, work_folder("migrate"), port, settings)
        self.clients = clients
        self.running = dict.fromkeys(self.cluster.members, old)
        self.gaps = []

    def run(self):
        with self.cluster:
            self.cluster.start()
            leader = self.cluster.wait_quorum()
            print("three servers of %s serve, server %d leads" % (self.old, leader.number), flush=True)
            self.load = Load(self.cluster.ports(), self.clients).start()
            for program, name in ((self.new, "there"), (self.old, "back")):
                for _step in range(len(self.cluster.members)):
                    self._replace(self._next(program), program)
                self._compare(name)
                if program == self.new:
                    self.load.start()
        return "%d writes acknowledged, none lost, no session lost; longest wait for a write %.2f s" % (
            self.load.acknowledged,
            max(self.gaps),
        )

    def _next(self, program):
        """The next server to migrate: a follower if there is one, so that there are few elections."""
        waiting = [m for n, m in self.cluster.members.items() if self.running[n] != program]
        leader = self.cluster.wait_quorum()
        return next((m for m in waiting if m is not leader), leader)

    def _replace(self, member, program):
        self.load.wait_progress()
        self.load.longest_gap()
        role = member.mode()
        began = time.monotonic()
        member.stop()
        member.become(program)
        stopped = time.monotonic()
        member.start()
        self.running[member.number] = program
        leader = self.cluster.wait_quorum()
        served = time.monotonic()
        self.load.wait_progress()
        gap = self.load.longest_gap()
        self.gaps.append(gap)
        print(
            "server %d (%s): stopped in %.1f s, %s on the same folder serves as %s after %.1f s; "
            "now %s; server %d leads; "
            "longest wait for a write %.2f s"
            % (
                member.number,
                role,
                stopped - began,
                self.programs[program],
                member.mode(),
                served - stopped,
                ", ".join("%d %s" % (n, self.programs[p]) for n, p in sorted(self.running.items())),
                leader.number,
                gap,
            ),
            flush=True,
        )

    def _compare(self, name):
        self.load.stop()
        for member in self.cluster.running():
            self.load.check(member.port)
        # A Java leader sends its tree while it changes, and does not say up to which zxid it is a mixture (ZooKeeper
        # 3.9's ZKDatabase.serializeSnapshot writes no digest): meanwhile the digests of a learner are others.
        mixtures = given_snapshots_in(self.cluster)
        nodes = self.cluster.look_same(mixtures=mixtures)
        expect_equal(self.load.expired, 0, "sessions that ended although their clients came back")
        print(
            "%s: %d writes acknowledged so far, all are there; %d nodes, the same at all servers%s; no session ended"
            % (
                name,
                self.load.acknowledged,
                nodes,
                "".join(", but for digests of server %d in epoch %d" % pair for pair in sorted(mixtures)),
            ),
            flush=True,
        )


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peer", default="java3.9", help="the servers to begin with (default: %(default)s)")
    parser.add_argument("--tick", type=int, default=500, help="tickTime of all in ms (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=4)
    args = parser.parse_args()
    os.environ.setdefault("LEVEL", "INFO")  # Java's log then says how learners are synchronized
    command(args.peer), command(args.server)  # skips what this machine has not
    settings = {**SETTINGS, "tickTime": args.tick, "snapCount": 10000, "preAllocSize": 4096}
    try:
        return Migration(args.peer, args.server, args.port, settings, args.clients).run()
    except (Mismatch, AssertionError, NotServing) as what:
        raise Mismatch("migration from %s: %s" % (args.peer, what)) from what


if __name__ == "__main__":
    conclude(check)
