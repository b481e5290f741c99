"""A server that lost its disk must not vote before it has the tree again, whatever state a crash has left on its disk.

Server 1 is down while 2 and 3 acknowledge a write. Both are killed, and 2 loses its disk. Its disk then has what a
crash during synchronization may leave: an accepted epoch and no tree. 1 and 2 must not serve without 3, and with 3 all
servers have the write. Java servers have no such guard, so they are not compared."""

import os
import shutil
import time

from ensemble.cluster import Cluster
from harness.outcome import Mismatch, conclude, expect
from harness.server import NotServing, arguments, work_folder
from harness.session import Session

WITHOUT_S = 8  # how long 1 and 2 must not serve
# The files that are left in each folder `version-2`.
LEFT = {"nothing": (), "an accepted epoch": ("acceptedEpoch",)}


def lose_disk(member, left):
    folder = os.path.join(member.data, "version-2")
    kept = {}
    for name in left:
        with open(os.path.join(folder, name), "rb") as f:
            kept[name] = f.read()
    shutil.rmtree(folder)
    os.makedirs(folder)
    for name, data in kept.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


def served_by(members, seconds):
    """The servers that serve within this many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for member in members:
            mode = member.mode()
            if mode is not None:
                return "server %d serves as %s" % (member.number, mode)
        time.sleep(0.05)
    return None


def run(make, left, port):
    with Cluster([make] * 3, work_folder("lost-disk"), port) as cluster:
        cluster.start().wait_quorum()
        cluster[1].kill()
        session = Session(cluster.wait_quorum().port)
        session.create("/x", b"acknowledged")
        session.close()
        for number in (2, 3):
            cluster[number].kill()
        lose_disk(cluster[2], left)
        for number in (1, 2):
            cluster[number].start()
        serves = served_by([cluster[1], cluster[2]], WITHOUT_S)
        if serves:
            session = Session(cluster.wait_quorum().port)
            there = session.exists("/x")
            session.drop()
            raise Mismatch(
                "%s although 2 lost its disk and 3 is down; the acknowledged write %s"
                % (serves, "is there" if there else "is gone")
            )
        cluster[3].start()
        cluster.wait_quorum()
        for member in cluster.running():
            expect("/x" in member.tree(), "server %d has not what was acknowledged" % member.number)
        return cluster.look_same()


def check():
    args = arguments(__doc__).parse_args()
    failed = []
    for what, left in LEFT.items():
        try:
            print(
                "left is %s: no server serves without server 3, %d nodes everywhere with it"
                % (what, run(args.server, left, args.port)),
                flush=True,
            )
        except (Mismatch, NotServing, AssertionError) as why:
            print("FAILED, left is %s: %s" % (what, why), flush=True)
            failed.append("left is %s: %s" % (what, str(why).split("\n")[0]))
    if failed:
        raise Mismatch("; ".join(failed))
    return "%d states of a lost disk: no voice, nothing lost" % len(LEFT)


if __name__ == "__main__":
    conclude(check)
