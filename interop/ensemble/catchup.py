"""A follower misses many writes and comes back under load: measures how it catches up, how long that takes, and the
effect on the leader's clients."""

import re
import threading
import time
from typing import Any

from ensemble.cluster import Cluster
from ensemble.load import LOST, SETTINGS, Link
from harness.outcome import conclude, expect
from harness.protocol import CREATE, SET_DATA, create_body, set_body
from harness.server import arguments, work_folder

WRITERS, WINDOW = 3, 200
PACE = 1000  # writes per second of each writer while latencies are taken
CALM_S = 5
SYNC_LINE = re.compile(r"synchronising a learner.*?plan=(\w+.*)")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Writer(threading.Thread):
    """Sets nodes of its own at the leader, at full speed or at a pace."""

    def __init__(self, port, number, nodes):
        super().__init__(daemon=True)
        self.nodes = nodes
        self.session = Link(port)
        self.session.socket.settimeout(60)
        self.root = "/many/%d" % number
        self.pace: int | None = PACE
        self.total, self.stopping, self.problem = 0, False, None
        self.session.create(self.root)
        self._send([(CREATE, create_body("%s/%d" % (self.root, n), b"0" * 100)) for n in range(nodes)])

    def _send(self, requests):
        for at in range(0, len(requests), WINDOW):
            part = requests[at : at + WINDOW]
            self.session.send_all(part)
            for _ in part:
                error = self.session.receive().error
                expect(error == 0, "a write was answered with %d" % error)
            self.total += len(part)

    def run(self):
        try:
            while not self.stopping:
                size = WINDOW if self.pace is None else max(1, self.pace // 50)
                began = time.monotonic()
                paths = ["%s/%d" % (self.root, (self.total + n) % self.nodes) for n in range(size)]
                self._send([(SET_DATA, set_body(path, b"%0100d" % self.total)) for path in paths])
                if self.pace is not None:
                    time.sleep(max(0, size / self.pace - (time.monotonic() - began)))  # the pace is the load
        except (*LOST, AssertionError) as e:
            self.problem = e


class Probe(threading.Thread):
    """One write after the other at the leader, each timed."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.session = Link(port)
        self.session.socket.settimeout(60)
        self.session.create("/probe")
        self.times, self.stopping, self.problem = [], False, None

    def run(self):
        try:
            while not self.stopping:
                began = time.monotonic()
                self.session.set("/probe", b"x" * 100)
                self.times.append(time.monotonic() - began)
                time.sleep(0.001)  # a client that writes now and then
        except LOST as e:
            self.problem = e

    def take(self):
        times, self.times = sorted(self.times), []
        expect(times, "no write was timed")
        at = lambda part: times[min(len(times) - 1, int(len(times) * part))] * 1000  # noqa: E731
        return "p50 %.1f ms, p99 %.1f ms, longest %.0f ms of %d" % (at(0.5), at(0.99), times[-1] * 1000, len(times))


def how(leader, offset):
    """How the leader synchronized the last learner, from its log since `offset`."""
    found = SYNC_LINE.findall(COLOURS.sub("", leader.log_text()[offset:]))
    return found[-1].strip() if found else "not found in its log"


def look(threads):
    for thread in threads:
        if thread.problem:
            raise thread.problem


def zxid(member):
    return int(member.srvr().get("Zxid", "0x0"), 16)


def check():
    parser = arguments(__doc__)
    parser.add_argument(
        "--writes", type=int, default=1_000_000, help="while the follower is away (default: %(default)s)"
    )
    parser.add_argument("--nodes", type=int, default=100_000, help="of 100 bytes, in the tree (default: %(default)s)")
    args = parser.parse_args()
    settings = {**SETTINGS, "tickTime": 500, "initLimit": 60}
    with Cluster([args.server] * 3, work_folder("catchup"), args.port, settings) as cluster:
        cluster.start()
        leader = cluster.wait_quorum()
        follower = next(m for m in cluster.members.values() if m is not leader)
        session = Link(leader.port)
        session.create("/many")
        session.close()
        writers, probe = [Writer(leader.port, n, args.nodes // WRITERS) for n in range(WRITERS)], Probe(leader.port)
        threads: list[Any] = [*writers, probe]
        for thread in threads:
            thread.start()
        time.sleep(CALM_S)
        calm = probe.take()
        print("three servers, %d writes per second: %s" % (PACE * WRITERS, calm), flush=True)

        follower.kill()
        goal = sum(w.total for w in writers) + args.writes
        for writer in writers:
            writer.pace = None
        began = time.monotonic()
        while sum(w.total for w in writers) < goal:
            look(threads)
            time.sleep(0.05)
        seconds = time.monotonic() - began
        print(
            "%d writes without the follower in %.1f s (%.0f per second)"
            % (args.writes, seconds, args.writes / seconds),
            flush=True,
        )
        for writer in writers:
            writer.pace = PACE
        probe.take()
        time.sleep(CALM_S)
        without = probe.take()
        print("two servers, %d writes per second: %s" % (PACE * WRITERS, without), flush=True)

        offset, began = len(leader.log_text()), time.monotonic()
        follower.start()
        cluster.wait_quorum(120)
        serves, there = time.monotonic() - began, zxid(leader)
        while zxid(follower) < there:
            follower.look_alive()
            expect(
                time.monotonic() - began < 180, "the follower does not catch up: 0x%x of 0x%x" % (zxid(follower), there)
            )
            time.sleep(0.01)
        seconds = time.monotonic() - began
        meanwhile = probe.take()
        by = how(leader, offset)
        print(
            "the follower serves after %.1f s and is level after %.1f s, by %s; meanwhile: %s"
            % (serves, seconds, by, meanwhile),
            flush=True,
        )
        for thread in threads:
            thread.stopping = True
        for thread in threads:
            thread.join(60)
        look(threads)
        expect(cluster.wait_leader() is leader, "the leader changed while the follower came back")
        nodes = cluster.look_same()
        for member in cluster.running():
            expect(not member.digest_mismatches(), "digest mismatches of server %d" % member.number)
        return (
            "%d writes missed, level after %.1f s by %s; the leader's writes: %s meanwhile, %s before; %d nodes equal"
            % (args.writes, seconds, by, meanwhile, without, nodes)
        )


if __name__ == "__main__":
    conclude(check)
