"""An epoch without a write: an observer with a tree from its begin must be served by a follower without that tree.

Leader 2 begins an epoch, and nothing is written in it. Follower 1 starts without data and gets a whole tree with the
first zxid of the epoch. Observer 4 gets that tree from 1. Then 1 dies. Follower 3 has the same tree, with the zxid of
the last write of the epoch before. Observer 4 must serve through 3 within seconds, without a write."""

import os
import shutil
import time

from ensemble.cluster import PORTS_PER_SERVER, Cluster
from harness.outcome import Mismatch, Skip, conclude, expect, expect_equal
from harness.server import NotServing, arguments, available, work_folder
from harness.session import Session

OBSERVER, BROUGHT, LEADER, BEHIND = 4, 1, 2, 3
WITHIN_S = 30
SETTINGS = {"tickTime": 200, "initLimit": 20, "syncLimit": 20}


def wait_for(what, is_so, seconds):
    began = time.monotonic()
    while not is_so():
        expect(time.monotonic() - began < seconds, "%s: not within %d s" % (what, seconds))
        time.sleep(0.05)
    return time.monotonic() - began


def without_data(member):
    shutil.rmtree(os.path.join(member.data, "version-2"), ignore_errors=True)


def run(voters, observer, port):
    masters = port + PORTS_PER_SERVER * 6
    makes = [voters] * 3 + [observer]
    with Cluster(
        makes,
        work_folder("idle-epoch"),
        port,
        {**SETTINGS, "observerMasterPort": masters},
        (OBSERVER,),
        host=lambda n: "127.0.0.%d" % (50 + n),
    ) as cluster:
        voting = [cluster[n] for n in (1, 2, 3)]
        for member in voting:
            member.start()
        session = Session(cluster.wait_quorum(among=voting).port)
        session.create("/a")
        session.close()
        # Server 2 leads: no server with the same data has a larger number.
        for member in voting:
            member.stop()
        two = [cluster[BROUGHT], cluster[LEADER]]
        for member in two:
            member.start()
        expect_equal(cluster.wait_quorum(among=two).number, LEADER, "who leads")
        cluster[BEHIND].start()
        cluster.wait_quorum(among=voting)
        cluster[BROUGHT].stop()
        without_data(cluster[BROUGHT])
        cluster[BROUGHT].start()
        cluster.wait_quorum(among=voting)
        # The observer has no other to follow.
        cluster[BEHIND].stop()
        cluster[OBSERVER].start()
        wait_for(
            "observer %d serves at follower %d" % (OBSERVER, BROUGHT),
            lambda: cluster[OBSERVER].mode() == "observer",
            30,
        )
        cluster[BEHIND].start()
        wait_for("follower %d serves" % BEHIND, lambda: cluster[BEHIND].mode() == "follower", 30)
        zxids = {n: cluster[n].srvr().get("Zxid") for n in (BROUGHT, LEADER, BEHIND, OBSERVER)}
        cluster[BROUGHT].kill()
        # It first has to notice that its follower is gone.
        time.sleep(0.5)
        try:
            took = wait_for(
                "observer %d serves at follower %d" % (OBSERVER, BEHIND),
                lambda: cluster[OBSERVER].mode() == "observer" and master(cluster) == BEHIND,
                WITHIN_S,
            )
        except Mismatch as what:
            session = Session(cluster[LEADER].port)
            session.create("/b")
            session.close()
            began = time.monotonic()
            while cluster[OBSERVER].mode() != "observer" and time.monotonic() - began < 5:
                time.sleep(0.05)
            helped = "one write helped" if cluster[OBSERVER].mode() == "observer" else "a write did not help"
            raise Mismatch("%s; zxids before: %s; %s" % (what, zxids, helped)) from None
        nodes = cluster.look_same()
        return "the observer serves again after %.1f s, %d nodes everywhere" % (0.5 + took, nodes)


def master(cluster):
    return int(cluster[OBSERVER].mntr().get("zk_observer_master_id", -1))


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9", help="the servers to mix with (default: %(default)s)")
    args = parser.parse_args()
    peers, missing = available(args.peers)
    ours = args.server
    failed, choices = [], [(ours, ours)] + [pair for peer in peers for pair in ((ours, peer), (peer, ours))]
    for voters, observer in choices:
        name = "%s votes, %s observes" % tuple("Ostler" if make == ours else make for make in (voters, observer))
        try:
            print("%s: %s" % (name, run(voters, observer, args.port)), flush=True)
        except (Mismatch, NotServing, AssertionError) as what:
            print("FAILED %s: %s" % (name, what), flush=True)
            failed.append("%s: %s" % (name, str(what).split("\n")[0]))
    if failed:
        raise Mismatch("; ".join(failed))
    if missing:
        raise Skip("%d ensembles; not tried with %s" % (len(choices), "; ".join(missing)))
    return "%d ensembles: an observer finds another follower in an idle epoch" % len(choices)


if __name__ == "__main__":
    conclude(check)
