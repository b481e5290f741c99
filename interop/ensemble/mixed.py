"""Ensembles of Ostler and Java servers under load while leaders are killed: all trees must be the same at all times.

Three servers run in all eight combinations of the server under test and Java 3.9, and some with Java 3.8. The load is
that of load.py, whose acknowledged writes must all be there, and clients with requests of every kind
(mixed_requests.py).

A server compares the digest that comes with each transaction with that of its own tree. None may differ, except three
kinds of Java's own, which are printed:

- a server took a snapshot from a Java leader, which changes while it sends it: the difference is counted until the
  follower has caught up;
- a Java server loses its leader, and replays its log into the tree while it still applies the last commits;
- a Java server reads a snapshot that it wrote while it applied a transaction.
"""

import glob
import os
import random
import re
import time
from collections import Counter
from contextlib import contextmanager

from ensemble import mixed_requests
from ensemble.cluster import Cluster
from ensemble.load import SETTINGS, Load
from harness.outcome import Mismatch, Skip, conclude, expect_equal
from harness.server import NotServing, arguments, available, work_folder

TICK_MS = 300
KEYS = {
    **SETTINGS,
    "tickTime": TICK_MS,
    "snapCount": 3000,
    "preAllocSize": 1024,
    "znode.container.checkIntervalMs": 500,
}
HARMS = ["leader", "leader after a follower", "follower", "leader after a follower", "all", "leader"]
MIXED_REQUESTS_CLIENTS = 2
# In the log of a Java leader: what it sends to which learner.
LEARNER = re.compile(
    r"Synchronizing with Learner sid: (\d+) .*peerLastZxid=(0x[0-9a-f]+)"
    r"|Sending snapshot last zxid of peer is (0x[0-9a-f]+), zxid of leader is (0x[0-9a-f]+)"
)
FIRST_MISMATCH = re.compile(r"First digest mismatch on txn: .{0,200}", re.S)


def is_java(cmd):
    return cmd.startswith("java")


def given_snapshots(cluster):
    """Servers that a Java server ever sent a snapshot: what it lacked then stays with their data. Needs LEVEL=INFO."""
    return {number for number, _ in given_snapshots_in(cluster)}


def given_snapshots_in(cluster):
    """Servers that a Java server sent a snapshot, each with the epoch in which it did. Needs LEVEL=INFO."""
    given = set()
    for member in cluster.members.values():
        learners = {}  # its last zxid -> number
        for number, has, sent, leads in LEARNER.findall(member.log_text()):
            if number:
                learners[has] = int(number)
            else:
                given.add((learners.get(sent), int(leads, 16) >> 32))
    return given


class Trial:
    def __init__(self, makes, port, seed):
        self.makes, self.chance, self.seed = makes, random.Random(seed), seed
        self.cluster = Cluster(makes, work_folder("mixed"), port, KEYS)
        self.led = Counter()
        self.forgiven = Counter()  # digest mismatches that are Java's own, by server and reason
        self.forgiven_alive = Counter()  # those that a server that still runs has counted

    def run(self, harms):
        with self.cluster:
            self._start(self.cluster.members.values())
            self._note_leader()
            self.load = load = Load(self.cluster.ports(), 3, self.seed)
            mixed_requests.prepare(self.cluster.ports()[0])
            load.all += [
                mixed_requests.MixedRequestsClient(self.cluster.ports(), n, self.seed, "java3.8" in self.makes)
                for n in range(MIXED_REQUESTS_CLIENTS)
            ]
            load.start()
            for harm in harms:
                load.wait_progress()
                time.sleep(self.chance.uniform(0, 0.5))  # a random moment of the load
                began = time.monotonic()
                self._harm(harm)
                self.cluster.wait_quorum()
                print("  %s killed and back (%.1f s)" % (harm, time.monotonic() - began), flush=True)
            load.wait_progress()
            load.stop()
            for member in self.cluster.running():
                load.check(member.port)
            nodes = self.cluster.look_same(without_digests=given_snapshots(self.cluster))
            for member in self.cluster.running():
                self._count_mismatches(member)
        mixed_clients = [one for one in load.all if isinstance(one, mixed_requests.MixedRequestsClient)]
        expect_equal(load.expired, 0, "sessions that ended although their clients came back in time")
        return "%d writes acknowledged, %d of all kinds (%d refused), %d nodes; led by %s%s" % (
            load.acknowledged,
            sum(w.total for w in mixed_clients),
            sum(w.refused for w in mixed_clients),
            nodes,
            ", ".join("%s %dx" % item for item in sorted(self.led.items())),
            "".join("; %d digest mismatches of %s, %s" % (n, *whose) for whose, n in self.forgiven.items()),
        )

    def make_of(self, member):
        return "Java" if is_java(self.makes[member.number - 1]) else "Ostler"

    def _harm(self, harm):
        members = list(self.cluster.members.values())
        leader = self.cluster.wait_leader()
        followers = [m for m in members if m is not leader]
        if harm == "leader after a follower":
            # The server that stayed has more data than the one that comes back: it must lead.
            stays = min(followers, key=lambda m: self.led[self.make_of(m)])
            late = [m for m in followers if m is not stays]
            self._kill(late)
            self.load.wait_progress()
            with self._losing_their_leader([stays]):
                self._kill([leader])
                self._start(late)
                self._note_leader([stays, *late])
            self._start([leader])
            return
        victims = {"leader": [leader], "follower": [self.chance.choice(followers)], "all": members}[harm]
        if harm == "leader":
            with self._losing_their_leader(followers):
                self._kill(victims)
                self._note_leader(followers)
        else:
            self._kill(victims)
        self._start(victims)
        if harm == "all":
            self._note_leader(members)

    def _kill(self, members):
        for member in members:
            self._count_mismatches(member)
        for member in members:
            member.kill()
            self.forgiven_alive[member.number] = 0

    def _start(self, members):
        for member in members:
            if is_java(self.makes[member.number - 1]):
                self._remove_empty_logs(member)
            member.start()

    def _remove_empty_logs(self, member):
        """A Java server that is killed as it begins a log file refuses to start over the empty file
        (ZOOKEEPER-1621)."""
        for path in glob.glob(os.path.join(member.data, "version-2", "log.*")):
            with open(path, "rb") as f:
                if not f.read(16).strip(b"\0"):
                    os.remove(path)

    def _note_leader(self, among=None):
        self.led[self.make_of(self.cluster.wait_quorum(among=among))] += 1

    # ---- digests ----
    @contextmanager
    def _losing_their_leader(self, members):
        """What Java 3.8 counts meanwhile is its own: it says in its log neither when nor that digests differ. A tree
        that is another than the leader's differs afterwards, too."""
        silent = [m for m in members if self.makes[m.number - 1] == "java3.8"]
        for member in silent:
            self._count_mismatches(member)
        yield
        for member in silent:
            self._forgive(member, self._mismatches(member), "which was losing its leader")

    def _mismatches(self, member):
        """In this life of a server, but for those that are forgiven: a kill forgets the count."""
        return max(0, (member.digest_mismatches() or 0) - self.forgiven_alive[member.number])

    def _forgive(self, member, count, reason):
        self.forgiven_alive[member.number] += count
        if count:
            self.forgiven[self._name(member), reason] += count

    def _name(self, member):
        return "server %d (%s)" % (member.number, self.makes[member.number - 1])

    def _count_mismatches(self, member):
        count = self._mismatches(member)
        if not count:
            return
        log = member.log_text()
        if member.number in given_snapshots(self.cluster):
            reason = "which a Java leader sent a snapshot"
        elif all_by_itself(log):
            reason = "which was losing its leader, or read a snapshot of its own"
        else:
            raise Mismatch(
                "%s counted %d digest mismatches%s"
                % (self._name(member), count, "".join("\n  " + line for line in FIRST_MISMATCH.findall(log)[-1:]))
            )
        self._forgive(member, count, reason)


SHUTTING_DOWN = re.compile(r"ZooKeeperServer (- )?[Ss]hutting down")


def all_by_itself(log):
    """Whether a Java server's digests differed only between the loss of its leader and its next election, or in a
    snapshot of its own.

    In that time it replays its log into the tree while its CommitProcessor still applies commits to it, so the digest
    that belongs to a record can be compared with that of a tree that is further on already. A snapshot it writes while
    a transaction is applied, which can be in the tree and not yet in the digest that is written behind it: then they
    differ as soon as the snapshot is read, before any record."""
    losing, found, before = False, False, ""
    for line in log.splitlines():
        if SHUTTING_DOWN.search(line):
            losing = True
        elif "PeerState set to LOOKING" in line:
            losing = False
        elif "Digests are not matching" in line:
            found = True
            if not losing and "The digest in the snapshot has" not in before:
                return False
        before = line
    return found


def choices(server, peers, quick):
    """Lists of three commands."""
    for peer in peers:
        if peer == "java3.9" and not quick:
            for n in range(8):
                yield [peer if n >> bit & 1 else server for bit in range(3)]
        else:
            yield [server, peer, peer]
            yield [peer, server, server]


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9,java3.8", help="the servers to mix with (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer choices")
    parser.add_argument("--makes", default="", help="this choice alone: three commands, comma-separated")
    parser.add_argument("--kills", type=int, default=len(HARMS), help="for each choice (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    peers, missing = available(args.peers)
    os.environ.setdefault("LEVEL", "INFO")  # Java's log then says how learners are synchronized
    wanted = [args.makes.split(",")] if args.makes else list(choices(args.server, peers, args.quick))
    harms = [HARMS[n % len(HARMS)] for n in range(args.kills)]
    for makes in wanted:
        name = " ".join("Ostler" if make == args.server else make for make in makes)
        began = time.monotonic()
        try:
            summary = Trial(makes, args.port, args.seed).run(harms)
        except (Mismatch, AssertionError, NotServing) as what:
            raise Mismatch("seed %d, %s: %s" % (args.seed, name, what)) from what
        print("%s: %s (%.1f s)" % (name, summary, time.monotonic() - began), flush=True)
    summary = "%d mixed ensembles, %d kills each: nothing acknowledged lost, trees equal, no digest mismatch" % (
        len(wanted),
        len(harms),
    )
    if missing:
        raise Skip("%s; not tried with %s" % (summary, "; ".join(missing)))
    return summary


if __name__ == "__main__":
    conclude(check)
