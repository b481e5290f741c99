"""All sessions of an ensemble come back at once after the leader's death, and none of them is lost.

`ostler bench storm` opens the sessions on all servers and lets them come back by the rules of ZooKeeper's clients. This
script kills the leader once they are open. The result has the time until the last session was attached again, the
pings' times while that went on, and the memory and the processor time of each server.

A process may open only a limited number of files. With more sessions than the servers that stay can hold, give the
ensemble observers, and divide the sessions among several programs:

    python3 interop/run.py ensemble.session_storm --sessions 100000 --observers 5 --programs 6
"""

import json
import os
import resource
import subprocess
import threading
import time

from ensemble.cluster import Cluster
from harness.outcome import conclude, expect, expect_equal
from harness.server import OSTLER, arguments, available, command, work_folder

VOTERS = 3
TICK_MS = 1000
LONGEST_S = 120
LOOK_S = 0.2
HERTZ, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


class Usage:
    """What one server's process uses, looked at again and again."""

    def __init__(self, member):
        self.number, self.pid = member.number, member.process.pid
        self.cpu_s, self.rss = self._now()
        self.cpu_before, self.rss_before = self.cpu_s, self.rss

    def _now(self):
        with open("/proc/%d/stat" % self.pid) as f:
            words = f.read().rsplit(")", 1)[1].split()
        with open("/proc/%d/statm" % self.pid) as f:
            pages = int(f.read().split()[1])
        return (int(words[11]) + int(words[12])) / HERTZ, pages * PAGE

    def look(self):
        try:
            self.cpu_s, rss = self._now()
            self.rss = max(self.rss, rss)
        except (OSError, IndexError):
            pass  # it was killed

    def shown(self):
        return "server %d: %.1f s of processor time, %.0f MiB, at most %.0f MiB" % (
            self.number,
            self.cpu_s - self.cpu_before,
            self.rss_before / 2**20,
            self.rss / 2**20,
        )


class Program:
    """One `ostler bench storm`."""

    def __init__(self, first, sessions, ports, args):
        words = [args.bench, "bench", "storm", "--json", "--sessions", str(sessions), "--first", str(first)]
        words += ["--server", ",".join("127.0.0.1:%d" % port for port in ports)]
        words += ["--session-timeout", str(args.timeout), "--longest", str(LONGEST_S), "--at-once", str(args.at_once)]
        words += ["--settle", str(args.timeout / 1000 * 1.5)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.is_open = threading.Event()
        self.said = ""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stderr:
            self.said += line
            if "are open" in line:
                self.is_open.set()

    def wait_open(self, until):
        while not self.is_open.wait(0.1):
            expect(self.process.poll() is None, "the load program ended: %s" % self.said)
            expect(time.monotonic() < until, "the sessions were not open in time: %s" % self.said)

    def report(self):
        out = self.process.stdout.read()
        expect_equal(self.process.wait(), 0, "exit code of the load program (%s)" % self.said.strip())
        return json.loads(out)


def raise_limit():
    """As many open files as the system allows; the servers and programs inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def storm(make, args):
    """The reports of the load programs, the usage of the servers that stayed, and the time of the election."""
    size = VOTERS + args.observers
    settings = {"tickTime": TICK_MS, "maxClientCnxns": 0, "initLimit": 30, "syncLimit": 10}
    settings.update(pair.split("=", 1) for pair in args.set)
    observers = range(VOTERS + 1, size + 1)
    with Cluster([make] * size, work_folder("session-storm"), args.port, settings, observers=observers) as cluster:
        cluster.start().wait_quorum(120)
        each = args.sessions // args.programs
        programs = [Program(n * each, each, cluster.ports(), args) for n in range(args.programs)]
        try:
            began = time.monotonic()
            for program in programs:
                program.wait_open(began + 600)
            opened_s = time.monotonic() - began
            time.sleep(6)  # the load programs hold the sessions for a while
            leader = cluster.wait_leader()
            usage = [Usage(member) for member in cluster.members.values() if member is not leader]
            leader.kill()
            killed = time.monotonic()
            over = threading.Event()
            looks = threading.Thread(target=look_until, args=(usage, over))
            looks.start()
            cluster.wait_quorum(60, all_serve=False)
            elected_s = time.monotonic() - killed
            reports = [program.report() for program in programs]
            over.set()
            looks.join()
            for member in cluster.running():
                member.look_alive()
            return reports, usage, elected_s, opened_s
        finally:
            for program in programs:
                program.process.kill()


def look_until(usage, over):
    while not over.wait(LOOK_S):
        for one in usage:
            one.look()


def figures(make, args):
    """Prints what came out of one storm. Returns the lost sessions and a summary."""
    reports, usage, elected_s, opened_s = storm(make, args)
    total = {name: sum(r["figures"][name] for r in reports) for name in COUNTS}
    last_s = max(r["figures"]["last_attached_after_ms"] for r in reports) / 1000
    ping_ms = {
        row: max((r["rows"][row]["latency_us"] or {"p99": 0})["p99"] for r in reports) / 1000
        for row in ("calm", "storm", "after")
    }
    attached_ms = max((r["rows"]["re-attached"]["latency_us"] or {"p50": 0})["p50"] for r in reports) / 1000
    print("%s: %d sessions opened in %.1f s; a leader after %.2f s" % (make, args.sessions, opened_s, elected_s))
    print("  attached again: half within %.1f s, the last after %.1f s" % (attached_ms / 1000, last_s))
    print("  ping p99: before %(calm).0f ms, during the storm %(storm).0f ms, after it %(after).0f ms" % ping_ms)
    print("  connections tried %(connections_tried)d, given up %(connections_given_up)d" % total)
    for one in usage:
        print("  " + one.shown())
    print("  lost %(sessions_lost)d, away %(sessions_away)d" % total, flush=True)
    summary = "%s: %d sessions, the last attached after %.1f s, %d lost, ping p99 %.0f ms" % (
        make,
        args.sessions,
        last_s,
        total["sessions_lost"] + total["sessions_away"],
        ping_ms["storm"],
    )
    return total["sessions_lost"] + total["sessions_away"], summary


COUNTS = ("connections_tried", "connections_given_up", "sessions_lost", "sessions_away")


def check():
    parser = arguments(__doc__)
    parser.add_argument("--sessions", type=int, default=3000)
    parser.add_argument("--programs", type=int, default=1, help="load programs that share the sessions")
    parser.add_argument("--observers", type=int, default=0, help="servers beside the three voters")
    parser.add_argument("--timeout", type=int, default=10_000, help="session timeout in ms (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=256, help="handshakes at a time while sessions are opened")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a line for zoo.cfg")
    parser.add_argument("--peers", default="", help="servers to measure beside, for example java3.9")
    parser.add_argument("--bench", default=None, help="the program whose `bench storm` is the load")
    args = parser.parse_args()
    args.bench = args.bench or command(OSTLER)[0]
    limit = raise_limit()
    stay = VOTERS - 1 + args.observers
    expect(args.sessions / stay < limit * 0.98, "a server may have %d open files: add --observers" % limit)
    expect(args.sessions / args.programs < limit - 100, "a program may have %d open files: add --programs" % limit)
    lost, summary = figures(args.server, args)
    for peer in available(args.peers)[0]:
        summary += "; " + figures(peer, args)[1]
    expect_equal(lost, 0, "sessions lost")
    return summary


if __name__ == "__main__":
    conclude(check)
