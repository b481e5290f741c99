"""The end of the counter in the zxids: the epoch moves on in place where all servers are Ostler, and by an election
where one is Java.

    python3 interop/ensemble/counter_end.py [--server CMD] [--port N] [--peers java3.9,...]

The counter's end cannot be reached by writing, so two things bring it near. Data folders are made here with a snapshot
at zxid 0x...fff00000. And `epochLength` lets epochs end after a few thousand transactions: a new ensemble counts from 0
in each epoch, whatever its folders have.

- A standalone server starts at 0xfff00000 and is written to: its zxids go on in epoch 1, and both Ostler and a Java
  server start on the folder that it leaves.
- Three servers start at epoch 5, and clients write over several borders of epochs. No session moves, no write fails, no
  server looks for a leader, and writes near a border take no longer than others. A follower is killed meanwhile, and
  comes back.
- A Java observer joins that ensemble: it must have the same tree. The next epochs end by an election, as with Java
  servers alone.
- Two Ostler servers and a Java voter: epochs end by an election, and every acknowledged write is there.
"""

import os
import struct
import threading
import time
import zlib

from ensemble.cluster import Cluster
from ensemble.load import SETTINGS, Load
from harness.jute import buffer, int32, int64, ustring
from harness.outcome import Mismatch, Skip, conclude, expect, expect_equal
from harness.protocol import SET_DATA, set_body
from harness.server import NotServing, Server, arguments, available, four_letter_word, work_folder
from harness.session import Session

LENGTH = 3000  # transactions of an epoch
NEAR_S = 0.05  # a write is near a border if it was under way this long before or after it
SECONDS = 60  # the longest time for a phase
OBSERVER = 4


def snapshot(folder, zxid):
    """Writes a snapshot of an ensemble in which nothing was written yet, and gives its folder."""
    version2 = os.path.join(folder, "version-2")
    os.makedirs(version2, exist_ok=True)
    opened, nodes = 1, (("", b""), ("/zookeeper", b""), ("/zookeeper/config", b""), ("/zookeeper/quota", b""))
    body = b"ZKSN" + int32(2) + int64(-1)
    body += int32(0)  # sessions
    body += int32(1) + int64(opened) + int32(1) + int32(31) + ustring("world") + ustring("anyone")
    for path, data in nodes:
        body += ustring(path) + buffer(data) + int64(opened)
        body += struct.pack(">qqqqiiiqq", 0, 0, 0, 0, 0, -1, 0, 0, 0)
    body += ustring("/")
    body += int64(zlib.adler32(body)) + ustring("/")
    with open(os.path.join(version2, "snapshot.%x" % zxid), "wb") as f:
        f.write(body)
    return version2


def epochs(version2, epoch):
    for name in ("acceptedEpoch", "currentEpoch"):
        with open(os.path.join(version2, name), "w") as f:
            f.write(str(epoch))


def epoch_of(zxid):
    return zxid >> 32


class Writer:
    """A client that writes, one request at a time, and never expects anything but success."""

    def __init__(self, port, number):
        self.session, self.path = Session(port), "/writer-%d" % number
        self.session.create(self.path)
        self.writes = []  # began, ended, zxid
        self.stopping, self.problem = False, None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            while not self.stopping:
                began, number = time.monotonic(), len(self.writes)
                reply = self.session.call(SET_DATA, set_body(self.path, b"%d" % number, number), "set " + self.path)
                self.writes.append((began, time.monotonic(), reply.zxid))
        except Exception as e:  # handed to the main thread
            self.problem = e

    def look(self):
        if self.problem:
            raise Mismatch("%s after %d writes: %r" % (self.path, len(self.writes), self.problem))

    def epoch(self):
        return epoch_of(self.writes[-1][2]) if self.writes else 0

    def stop(self):
        self.stopping = True
        self.thread.join(30)
        self.look()


def wait_for(what, is_so, writers=(), seconds=SECONDS):
    until = time.monotonic() + seconds
    while not is_so():
        for writer in writers:
            writer.look()
        expect(time.monotonic() < until, "%s: not within %d s" % (what, seconds))
        time.sleep(0.02)


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else 0.0


def latencies(writers):
    """99th percentiles and maxima in ms of the writes near a border, and of all others."""
    borders, near, far = {}, [], []
    for writer in writers:
        for _began, ended, zxid in writer.writes:
            epoch = epoch_of(zxid)
            borders[epoch] = min(borders.get(epoch, ended), ended)
    begins = sorted(borders.values())[1:]
    for writer in writers:
        for began, ended, _zxid in writer.writes:
            is_near = any(began - NEAR_S < at < ended + NEAR_S for at in begins)
            (near if is_near else far).append((ended - began) * 1000)
    return len(begins), [(percentile(of, 0.99), max(of, default=0.0), len(of)) for of in (near, far)]


def standalone(make, peers, port):
    folder = work_folder("counter-end")
    server = Server(make, os.path.join(folder, "one"), port)
    snapshot(server.data, 0xFFF00000)
    with server:
        writer = Writer(port, 0)
        zxids = [writer.session.call(SET_DATA, set_body(writer.path, b"", -1)).zxid for _ in range(50)]
        writer.session.close()
        expect_equal({epoch_of(zxid) for zxid in zxids}, {1}, "the epoch after the counter's end")
        expect_equal(zxids, list(range(zxids[0], zxids[0] + 50)), "zxids")
        last = int(server_zxid(port), 16)
        expect_equal(server.stop(), 0, "exit code")
    for again in [make, *peers]:
        other = Server(again, os.path.join(folder, "one"), port)
        with other:
            session = Session(port)
            expect_equal(session.get("/writer-0")[1].version, 50, "version at %s" % again)
            expect(int(server_zxid(port), 16) >= last, "the zxid went back at %s" % again)
            session.close()
            other.stop()
    return "a standalone server goes from 0xfff00000 to 0x100000001, read by %s" % ", ".join([make, *peers])


def server_zxid(port):
    lines = four_letter_word(port, "srvr").splitlines()
    return next(line.split(": ")[1] for line in lines if line.startswith("Zxid"))


def modes(cluster):
    return {member.number: member.mode() for member in cluster.running()}


def in_place(make, peers, port):
    makes = [make] * 3 + peers[:1]
    observers = (OBSERVER,) if peers else ()
    keys = {**SETTINGS, "tickTime": 500, "epochLength": LENGTH, "snapCount": 2500}
    with Cluster(makes, work_folder("counter-end"), port, keys, observers) as cluster:
        for member in cluster.members.values():
            if member.number not in observers:
                epochs(snapshot(member.data, 0x5FFF00000), 5)
        voters = [cluster[n] for n in (1, 2, 3)]
        for member in voters:
            member.start()
        leader = cluster.wait_quorum(among=voters)
        writers = [Writer(member.port, n) for n, member in enumerate(voters * 2)]
        before, roles = elections(cluster), modes(cluster)
        for writer in writers:
            writer.thread.start()
        wait_for("four borders", lambda: all(writer.epoch() >= 10 for writer in writers), writers)
        for writer in writers:
            writer.stop()
        expect_equal(modes(cluster), roles, "roles after the borders")
        expect_equal(elections(cluster), before, "elections")
        begins, [near, far] = latencies(writers)
        cluster.look_same()

        # A follower is killed, and comes back to a history with borders in it.
        load = Load([member.port for member in voters]).start()
        follower = next(member for member in voters if member is not leader)
        follower.kill()
        epoch = current(leader)
        wait_for("a border without a follower", lambda: current(leader) > epoch)
        follower.start()
        cluster.wait_quorum(among=voters)
        load.wait_progress()
        load.stop()
        expect_equal(leader.mode(), "leader", "the role of the first leader")
        for member in voters:
            load.check(member.port)
        nodes = cluster.look_same()
        text = (
            "%d borders in place at epoch %d, no election; p99 %.1f ms and at most %.0f ms near borders (%d writes), "
            "%.1f and %.0f ms else; %d nodes"
            % (begins, current(leader), near[0], near[1], near[2], far[0], far[1], nodes)
        )
        if not peers:
            return text
        cluster[OBSERVER].start()
        wait_for("the Java observer serves", lambda: cluster[OBSERVER].mode() == "observer")
        cluster.look_same()
        return text + "; " + by_election(cluster, "with a Java observer", load)


def current(member):
    """The epoch of the member's last zxid."""
    zxid = member.srvr().get("Zxid", "0x0")
    return epoch_of(int(zxid, 16))


def elections(cluster):
    """How often each server has looked for a leader."""
    return {member.number: member.elections().count("began") for member in cluster.running()}


def by_election(cluster, name, load=None):
    """Epochs end by an election, and nothing is lost."""
    leader = cluster.wait_quorum()
    epoch, searched = current(leader), leader.elections()
    load = (load or Load(cluster.ports())).start()
    wait_for("the next epoch " + name, lambda: any(current(member) > epoch for member in cluster.running()))
    cluster.wait_quorum()
    load.wait_progress()
    load.stop()
    for member in cluster.running():
        load.check(member.port)
    expect(leader.elections() != searched, "%s the epoch ended without an election" % name)
    nodes = cluster.look_same()
    return "%s by an election: %d writes, %d connections, %d nodes" % (name, load.acknowledged, load.reconnected, nodes)


def with_java_voter(make, java, port):
    # Long enough for the Java server to come back before the next end.
    keys = {**SETTINGS, "tickTime": 500, "epochLength": 20000}
    with Cluster([java, make, make], work_folder("counter-end"), port, keys) as cluster:
        for member in cluster.members.values():
            epochs(snapshot(member.data, 0x5FFF00000), 5)
        cluster[2].start()
        cluster[3].start()
        cluster.wait_quorum(among=[cluster[2], cluster[3]])
        cluster[1].start()
        cluster.wait_quorum()
        return by_election(cluster, "with a Java voter")


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9", help="the servers to mix with (default: %(default)s)")
    args = parser.parse_args()
    peers, missing = available(args.peers)
    lines = []
    try:
        lines.append(standalone(args.server, peers, args.port))
        print(lines[-1], flush=True)
        lines.append(in_place(args.server, peers, args.port))
        print(lines[-1], flush=True)
        for java in peers:
            lines.append(with_java_voter(args.server, java, args.port))
            print(lines[-1], flush=True)
    except (NotServing, AssertionError) as what:
        raise Mismatch(str(what)) from what
    if missing:
        raise Skip("%s; not tried with %s" % ("; ".join(lines), "; ".join(missing)))
    return "; ".join(lines)


if __name__ == "__main__":
    conclude(check)
