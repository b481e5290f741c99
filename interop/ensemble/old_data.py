"""An ensemble with data of ZooKeeper 3.4, which have no /zookeeper/config: each server makes that znode, as Java does,
and a reconfiguration works.

    python3 interop/run.py ensemble.old_data [--server CMD] [--port N] [--makes CMD,CMD,CMD]

Each of the three servers may be a Java server (java3.9)."""

import os
import struct
import zlib

from ensemble.reconfig import Changes
from harness.jute import buffer, int32, int64, ustring
from harness.outcome import Skip, conclude, expect_equal
from harness.server import arguments, available, work_folder
from harness.session import Session

ZXID = 0x100000005
ZNODES = ("", "/zookeeper", "/zookeeper/quota", "/app")
# The servers of each ensemble. {0} is the server under test.
MAKES = ("{0},{0},{0}", "java3.9,{0},{0}", "{0},java3.9,java3.9")


def znode(path):
    stat = struct.pack(">qqqqiiiqq", *[0] * 9)
    return ustring(path) + buffer(b"old") + int64(-1) + stat


def write_data(folder):
    """A snapshot of a tree as 3.4 has it, and the epochs of its last leader."""
    inner = os.path.join(folder, "data", "version-2")
    os.makedirs(inner)
    header = b"ZKSN" + int32(2) + int64(-1)
    body = header + int32(0) + int32(0) + b"".join(map(znode, ZNODES)) + ustring("/")
    with open(os.path.join(inner, "snapshot.%x" % ZXID), "wb") as f:
        f.write(body + int64(zlib.adler32(body)) + ustring("/"))
    for name in ("acceptedEpoch", "currentEpoch"):
        with open(os.path.join(inner, name), "w") as f:
            f.write("%d" % (ZXID >> 32))


def run(makes, port):
    changes = Changes(makes, work_folder("old-data"), port)
    numbers = range(1, len(makes) + 1)
    try:
        for number in numbers:
            write_data(os.path.join(changes.folder, "server-%d" % number))
            changes.add(number, numbers)
        changes.cluster.wait_quorum()
        changes.wait_shown(numbers)
        changes.change(leaving="3")
        changes.wait_shown((1, 2))
        for number in (1, 2):
            session = Session(changes.cluster[number].port)
            expect_equal(session.get("/app")[0], b"old", "an old znode of server %d" % number)
            stat = session.get("/zookeeper/config")[1]
            expect_equal((stat.version, stat.aversion), (-1, -1), "the versions at server %d" % number)
            expect_equal(session.children("/zookeeper"), ["config", "quota"], "the system znodes")
            session.close()
    finally:
        changes.cluster.stop()


def check():
    parser = arguments(__doc__)
    parser.add_argument("--makes", help="the commands of servers 1 to 3, comma-separated")
    args = parser.parse_args()
    all_makes = [args.makes] if args.makes else [makes.format(args.server) for makes in MAKES]
    _, missing = available(",".join(all_makes))
    for makes in all_makes:
        if not available(makes)[1]:
            run(makes.split(","), args.port)
            print("%s: /zookeeper/config is there, and changes" % makes, flush=True)
    if missing:
        raise Skip("; ".join(sorted(set(missing))))
    return "%d ensembles" % len(all_makes)


if __name__ == "__main__":
    conclude(check)
