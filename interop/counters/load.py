"""One load that moves every counter which a Java server can move without TLS and SASL, the same for every make.

Three servers vote, and an observer follows a follower. A process loses its counters when it ends, so each server's
figures are read before it is killed and at the end. The figures of an ensemble are the sum over all processes.
"""

import os
import shutil
import struct
import time

from ensemble.cluster import PORTS_PER_SERVER, Cluster
from harness.address import connect
from harness.jute import ustring
from harness.outcome import expect
from harness.protocol import (
    CHECK,
    CREATE,
    DELETE,
    EPHEMERAL,
    EXISTS,
    GET_CHILDREN2,
    GET_DATA,
    SET_DATA,
    create_body,
    multi_body,
    path_version,
    set_body,
)
from harness.server import four_letter_word, work_folder
from harness.session import ConnectionLost, Refused, Session, SessionExpired

GET_CHILDREN_ALONE, SYNC, MULTI_READ, ADD_WATCH, WHO_AM_I = 8, 9, 22, 106, 107
VOTERS, OBSERVER = (1, 2, 3), 4
MAX_CONNECTIONS = 60  # of one address
SESSIONLESS_MS = 2000
SHORT_MS = 1000  # timeout of a session that shall expire
SNAP_COUNT = 150
LARGE = 200_000
WATCHERS = 3
NAMESPACE = "counted"
ROOT = "/" + NAMESPACE

SETTINGS = {
    "maxClientCnxns": MAX_CONNECTIONS,
    "enforceQuota": "true",
    "snapCount": SNAP_COUNT,
    "maxSessionTimeout": 60000,
    "nio.sessionlessCnxnTimeout": SESSIONLESS_MS,
    "largeRequestThreshold": LARGE // 2,
    "largeRequestMaxBytes": LARGE * 3 // 4,
    "syncLimit": 5,
}
LOST = (ConnectionLost, OSError)


def refused(act, *arguments):
    """Makes a call that the server must refuse."""
    try:
        act(*arguments)
    except Refused:
        return
    raise AssertionError("%s%r was not refused" % (act.__name__, arguments))


class Ensemble:
    def __init__(self, make, port):
        masters = port + PORTS_PER_SERVER * 6
        self.cluster = Cluster(
            [make] * 4,
            work_folder("counters"),
            port,
            {**SETTINGS, "observerMasterPort": masters},
            (OBSERVER,),
            host=lambda n: "127.0.0.%d" % (20 + n),
        )
        self.lives = []  # figures of each life of a process, as it ended

    def run(self):
        """The figures {name: text} of each life of a process, and those of all servers after `srst`."""
        with self.cluster:
            self.cluster.start().wait_quorum()
            for step in (
                self._requests,
                self._watches,
                self._refusals,
                self._sessions,
                self._quotas,
                self._bad_callers,
                self._snapshots,
                self._syncs,
                self._leader_away,
                self._truncated,
                self._snapshots,
            ):
                began = time.monotonic()
                step()
                print("  %s (%.1f s)" % (step.__name__.strip("_"), time.monotonic() - began), flush=True)
            members = self.cluster.running()
            for member in members:
                self._note(member)
                expect("reset" in four_letter_word(member.port, "srst"), "srst of server %d" % member.number)
            return self.lives, [member.mntr() for member in members]

    # ---- servers ----
    def _leader(self):
        return self.cluster.wait_quorum()

    def _follower(self):
        leader = self._leader()
        return next(m for m in self.cluster.running() if m.number in VOTERS and m is not leader)

    def _note(self, member):
        figures = member.mntr()
        expect("zk_server_state" in figures, "server %d shows no figures" % member.number)
        self.lives.append(figures)

    def _end(self, member):
        self._note(member)
        member.kill()

    def _each(self, act):
        for member in self.cluster.running():
            session = Session(member.port, 20000)
            act(session, "%s/%d" % (ROOT, member.number))
            session.close()

    # ---- steps ----
    def _requests(self):
        first = Session(self._leader().port)
        first.create(ROOT)
        first.close()
        self._each(self._requests_of)

    def _requests_of(self, session, root):
        session.create(root, b"root")
        for i in range(20):
            session.create("%s/n%d" % (root, i), b"x" * (i * 500))
        for i in range(20):
            session.get("%s/n%d" % (root, i % 5))
            session.call(GET_CHILDREN2, ustring(root) + b"\0")
            session.call(GET_CHILDREN_ALONE, ustring(root) + b"\0")
            session.exists(root)
            session.get_acl(root)
        for i in range(10):
            session.set("%s/n%d" % (root, i), b"y" * 700)
        session.call(SYNC, ustring(root))
        session.call(WHO_AM_I)
        session.multi(
            [(CHECK, path_version(root)), (CREATE, create_body(root + "/m", b"m")), (SET_DATA, set_body(root, b"n"))]
        )
        reads = [(op, ustring(root) + b"\0") for op in (GET_DATA, GET_CHILDREN_ALONE)]
        session.call(MULTI_READ, multi_body(reads))
        session.set_acl(root + "/m", [(31, "world", "anyone")])
        session.delete(root + "/m")
        # Reads behind a write that is not decided yet wait in their session's queue.
        for _ in range(20):
            session.send_all([(SET_DATA, set_body(root, b"z"))] + [(EXISTS, ustring(root) + b"\0")] * 5)
            for _ in range(6):
                session.receive()
        session.send_all([(SET_DATA, set_body(root, b"p" * 300)) for _ in range(30)])
        for _ in range(30):
            session.receive()

    def _watches(self):
        self._each(self._watches_of)

    def _watches_of(self, session, root):
        member = next(m for m in self.cluster.running() if root.endswith("/%d" % m.number))
        watchers = [Session(member.port) for _ in range(WATCHERS)]
        session.create(root + "/w", b"1")
        for watcher in watchers:
            watcher.call(GET_DATA, ustring(root + "/w") + b"\1")
            watcher.call(GET_CHILDREN2, ustring(root) + b"\1")
            watcher.send_all([(EXISTS, ustring(root + "/later") + b"\1")])
            watcher.receive()
            watcher.call(ADD_WATCH, ustring(root + "/deep") + struct.pack(">i", 1))
        session.set(root + "/w", b"2")
        session.create(root + "/later")
        session.create(root + "/deep")
        for watcher in watchers:
            watcher.call(GET_DATA, ustring(root + "/w") + b"\1")
        session.delete(root + "/w")
        for watcher in watchers:
            watcher.exists(root)
            expect(len(watcher.events) >= 4, "a watcher heard only %s" % watcher.events)
            watcher.close()

    def _refusals(self):
        self._each(self._refusals_of)

    def _refusals_of(self, session, root):
        for _ in range(5):
            refused(session.get, root + "/none")
            refused(session.create, root)
            refused(session.delete, root)
            refused(session.set, root, b"", 99999)
        session.create(root + "/shut", b"", 0, [(31, "digest", "a:b")])
        refused(session.get, root + "/shut")
        refused(session.set, root + "/shut", b"")
        refused(session.create, root + "/bad", b"", 0, [(31, "nothing", "a")])
        session.multi([(CHECK, path_version(root, 99999)), (DELETE, path_version(root))])

    def _sessions(self):
        members = self.cluster.running()
        for member, other in zip(members, members[1:] + members[:1]):
            root = "%s/%d" % (ROOT, member.number)
            short, kept = Session(member.port, SHORT_MS), Session(member.port, 20000)
            short.create(root + "/short", b"", EPHEMERAL)
            for i in range(3):
                kept.create("%s/e%d" % (root, i), b"", EPHEMERAL)
            short.drop()
            kept.drop()
            moved = Session(other.port, 20000, kept.id, kept.password)
            moved.get(root)
            try:
                moved.close()
            except ConnectionLost:
                pass  # Java can end the connection of a session that moved before it answers
            try:
                Session(member.port, 20000, 0x7777, b"\7" * 16)
            except SessionExpired:
                pass
        session = Session(self._leader().port)
        until = time.monotonic() + 20
        while any(session.exists("%s/%d/short" % (ROOT, m.number)) for m in members):
            expect(time.monotonic() < until, "a session did not expire")
            time.sleep(0.1)
        session.close()

    def _quotas(self):
        session = Session(self._leader().port)
        for path in ("/zookeeper/quota" + ROOT, "/limited", "/zookeeper/quota/limited"):
            session.create(path)
        session.create("/limited/a", b"12")
        session.create("/zookeeper/quota/limited/zookeeper_stats", b"count=2,bytes=2")
        session.create(
            "/zookeeper/quota/limited/zookeeper_limits", b"count=-1,bytes=-1=;byteHardLimit=20;countHardLimit=2"
        )
        session.close()

        def exceed(of, root):
            for _ in range(3):
                refused(of.create, "/limited/" + root.replace("/", "-"))
                refused(of.set, "/limited/a", b"x" * 100)

        self._each(exceed)

    def _bad_callers(self):
        members = self.cluster.running()
        silent = [connect(member.port, 2) for member in members]
        for member in members:
            for scheme in ("nothing", "nothing", "digest"):
                session = Session(member.port, SHORT_MS)
                try:
                    session.add_auth(scheme, b"ann:word")
                except (Refused, *LOST):
                    pass
                session.drop()
            large = Session(member.port, SHORT_MS)
            try:
                large.set("%s/%d" % (ROOT, member.number), b"x" * LARGE)
                large.set("%s/%d" % (ROOT, member.number), b"")
            except LOST:
                pass
            large.drop()
            crowd = []
            for at in range(MAX_CONNECTIONS + 10):
                if at == MAX_CONNECTIONS:
                    time.sleep(0.3)  # Java counts a connection some time after it has taken it
                try:
                    crowd.append(connect(member.port, 2))
                except OSError:
                    pass  # closed at once
            time.sleep(0.3)
            for one in crowd:
                one.close()
        time.sleep(SESSIONLESS_MS / 1000 * 2)  # a silent connection is looked at every so often
        for one in silent:
            one.close()

    def _snapshots(self):
        """Each server writes some."""
        session = Session(self._leader().port, 30000)
        for _ in range(8):
            session.send_all([(SET_DATA, set_body(ROOT, b"%d" % i)) for i in range(SNAP_COUNT)])
            for _ in range(SNAP_COUNT):
                session.receive()
            time.sleep(0.2)
        session.close()

    def _syncs(self):
        """A follower comes back after a short time, and one without its data; the observer too."""
        for wiped in (False, True):
            for member in (self._follower(), self.cluster[OBSERVER]):
                self._end(member)
                session = Session(self._leader().port)
                for i in range(20):
                    session.set(ROOT, b"away %d" % i)
                session.close()
                if wiped:
                    shutil.rmtree(os.path.join(member.data, "version-2"))
                member.start()
                self.cluster.wait_quorum()

    def _leader_away(self):
        leader = self._leader()
        kept = Session(self._follower().port, 30000)
        self._end(leader)
        rest = self.cluster.running()
        self.cluster.wait_quorum(among=rest)
        kept.drop()
        again = Session(self._leader().port, 30000, kept.id, kept.password)
        again.set(ROOT, b"after the leader")
        again.close()
        leader.start()
        self.cluster.wait_quorum()

    def _truncated(self):
        """Only the leader has logged a proposal. The others elect a new leader; the old one comes back and must cut its
        log."""
        leader = self._leader()
        session = Session(leader.port, 30000)
        others = [member for member in self.cluster.running() if member is not leader]
        # A stopped process would find the proposals in its sockets' buffers.
        for member in self.cluster.running():
            self._note(member)
        for member in others:
            member.kill()
        session.send_all([(SET_DATA, set_body(ROOT, b"never")) for _ in range(10)])
        time.sleep(0.2)  # less than the leader needs to see that it is alone
        leader.kill()
        session.drop()
        for member in others:
            member.start()
        self.cluster.wait_quorum(among=others)
        # Back before the first write of the new epoch: Java cuts a log within one epoch only, else it sends the tree.
        leader.start()
        self.cluster.wait_quorum()
        session = Session(self._leader().port)
        session.set(ROOT, b"instead")
        session.close()
