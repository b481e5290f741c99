"""A Java server that lost its data restarts with db.autocreate=false, so it reports that its data are missing.

    python3 interop/ensemble/emptied.py [--server CMD] [--port N] [--peers java3.9,java3.8]

Its vote does not count, and its epochs and its last zxid are -1. An Ostler leader must send it the tree. An Ostler
server does not start in this case."""

import os
import shutil
import time

from ensemble.cluster import Cluster
from harness.outcome import Mismatch, Skip, conclude, expect_equal
from harness.server import NotServing, arguments, available, work_folder
from harness.session import Session

EMPTIED = 3
KEYS = {"tickTime": 500, "initLimit": 20, "syncLimit": 10, "db.autocreate": "false"}


def write(member, path, count):
    session = Session(member.port, 30000)
    try:
        session.create(path)
        for number in range(count):
            session.create("%s/%d" % (path, number))
        session.close()
    finally:
        session.drop()


def may_begin(member):
    """Writes the file by which an operator allows a start with an empty folder."""
    with open(os.path.join(member.data, "initialize"), "w"):
        pass


def run(others, emptied, port):
    cluster = Cluster([others, others, emptied], work_folder("emptied"), port, KEYS)
    with cluster:
        for member in cluster.members.values():
            may_begin(member)
        write(cluster.start().wait_quorum(), "/before", 100)
        lost = cluster[EMPTIED]
        lost.stop()
        leader = cluster.wait_quorum()
        write(leader, "/meanwhile", 100)
        shutil.rmtree(os.path.join(lost.data, "version-2"))
        lost.start()
        cluster.wait_quorum()
        expect_equal(lost.mode(), "follower", "what the server without data has become")
        write(lost, "/after", 100)
        return cluster.look_same()


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9,java3.8", help="the servers to mix with (default: %(default)s)")
    args = parser.parse_args()
    peers, missing = available(args.peers)
    for peer in peers:
        began = time.monotonic()
        try:
            nodes = run(args.server, peer, args.port)
        except (Mismatch, AssertionError, NotServing) as what:
            raise Mismatch("%s: %s" % (peer, what)) from what
        print("%s: %d nodes everywhere (%.1f s)" % (peer, nodes, time.monotonic() - began), flush=True)
    summary = "%d ensembles: the server that lost its data has all of it again, trees equal" % len(peers)
    if missing:
        raise Skip("%s; not tried with %s" % (summary, "; ".join(missing)))
    return summary


if __name__ == "__main__":
    conclude(check)
