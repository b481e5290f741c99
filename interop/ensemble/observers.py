"""Observers that follow followers (observerMasterPort), Ostler and Java on either side, under load through the
observers.

There are three participants and two observers, and all clients use the observers. An observer's follower is killed,
then the leader, then both followers are stopped for longer than syncLimit. Each time the observers must find another
follower, no acknowledged write is lost, and no session ends whose client comes back in time. At the end all trees are
the same, and all digests, except at servers that took a snapshot from a Java server (see mixed.py). An observer never
follows the leader."""

import os
import time

from ensemble.cluster import PORTS_PER_SERVER, Cluster
from ensemble.load import SETTINGS, Load
from ensemble.mixed import given_snapshots
from harness.outcome import Mismatch, Skip, conclude, expect, expect_equal
from harness.server import NotServing, arguments, available, work_folder

VOTERS, OBSERVERS = (1, 2, 3), (4, 5)
TICK_MS, SYNC_LIMIT = 200, 5


class Trial:
    def __init__(self, voters, observers, port):
        # The port is one number for all followers, so each has an address of its own.
        masters = port + PORTS_PER_SERVER * (len(VOTERS) + len(OBSERVERS) + 1)
        settings = {**SETTINGS, "tickTime": TICK_MS, "syncLimit": SYNC_LIMIT, "observerMasterPort": masters}
        makes = [voters] * len(VOTERS) + [observers] * len(OBSERVERS)
        self.cluster = Cluster(
            makes, work_folder("observers"), port, settings, OBSERVERS, host=lambda n: "127.0.0.%d" % (10 + n)
        )

    def run(self):
        with self.cluster:
            self.cluster.start().wait_quorum()
            self._masters()
            load = Load([self.cluster[n].port for n in OBSERVERS], 3).start()
            for harm in (self._kill_master, self._kill_leader, self._stop_masters):
                load.wait_progress()
                began = time.monotonic()
                what = harm(load)
                self.cluster.wait_quorum()
                print("  %s (%.1f s); %s" % (what, time.monotonic() - began, self._masters()), flush=True)
            load.wait_progress()
            load.stop()
            for member in self.cluster.running():
                load.check(member.port)
            forgiven = given_snapshots(self.cluster)
            nodes = self.cluster.look_same(without_digests=forgiven)
            for member in self.cluster.running():
                if member.number not in forgiven:
                    expect_equal(member.digest_mismatches(), 0, "digest mismatches of server %d" % member.number)
        expect_equal(load.expired, 0, "sessions that ended although their clients came back in time")
        return "%d writes acknowledged through observers, %d nodes everywhere, longest wait %.2f s" % (
            load.acknowledged,
            nodes,
            load.longest_gap(),
        )

    def _master(self, observer):
        return int(self.cluster[observer].mntr().get("zk_observer_master_id", -1))

    def _wait_master(self, observer):
        until = time.monotonic() + 20
        while (master := self._master(observer)) not in VOTERS:
            expect(time.monotonic() < until, "observer %d follows nobody" % observer)
            time.sleep(0.05)
        return master

    def _masters(self, timeout=20):
        """The followers that the observers follow, as the followers report it."""
        until = time.monotonic() + timeout
        while True:
            leader = self.cluster.wait_quorum()
            masters = [self._master(n) for n in OBSERVERS]
            voters = [member for member in self.cluster.running() if member.number in VOTERS]
            known = {m.number: int(m.mntr().get("zk_synced_observers", -1)) for m in voters}
            due = {m.number: masters.count(m.number) for m in voters}
            if known == due and leader.number not in masters and sum(due.values()) == len(OBSERVERS):
                return "server %d leads, %s" % (
                    leader.number,
                    ", ".join("%d follows %d" % pair for pair in zip(OBSERVERS, masters)),
                )
            expect(
                time.monotonic() < until,
                "server %d leads, observers follow %s, followers know of %s" % (leader.number, masters, known),
            )
            time.sleep(0.05)

    def _again(self, load, members):
        load.wait_progress()
        for member in members:
            member.start()

    def _kill_master(self, load):
        master = self.cluster[self._wait_master(OBSERVERS[0])]
        master.kill()
        self._again(load, [master])
        return "follower %d killed and back" % master.number

    def _kill_leader(self, load):
        leader = self.cluster.wait_leader()
        leader.kill()
        self._again(load, [leader])
        return "leader %d killed and back" % leader.number

    def _stop_masters(self, load):
        masters = {self._wait_master(n) for n in OBSERVERS}
        for number in masters:
            self.cluster[number].pause()
        time.sleep(TICK_MS * SYNC_LIMIT * 2 / 1000)  # they are given up meanwhile
        for number in masters:
            self.cluster[number].resume()
        load.wait_progress()
        return "followers %s stopped and resumed" % sorted(masters)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9,java3.8", help="the servers to mix with (default: %(default)s)")
    args = parser.parse_args()
    peers, missing = available(args.peers)
    os.environ.setdefault("LEVEL", "INFO")  # Java's log then says how learners are synchronized
    choices = [(args.server, args.server)]
    for peer in peers:
        choices += [(args.server, peer), (peer, args.server)]
    for voters, observers in choices:
        name = "%s votes, %s observes" % tuple(
            "Ostler" if make == args.server else make for make in (voters, observers)
        )
        began = time.monotonic()
        try:
            summary = Trial(voters, observers, args.port).run()
        except (Mismatch, AssertionError, NotServing) as what:
            raise Mismatch("%s: %s" % (name, what)) from what
        print("%s: %s (%.1f s)" % (name, summary, time.monotonic() - began), flush=True)
    summary = "%d ensembles: observers follow followers, nothing acknowledged lost, trees equal" % len(choices)
    if missing:
        raise Skip("%s; not tried with %s" % (summary, "; ".join(missing)))
    return summary


if __name__ == "__main__":
    conclude(check)
