"""Local sessions in ensembles of Ostler and Java servers, under a leader of either make.

    python3 interop/ensemble/local_sessions.py [--server CMD] [--port N] [--quick]

Local sessions cost no transaction, cannot move to another server, and write like others. If a local session creates an
ephemeral, it is upgraded to a global one or refused (`localSessionsUpgradingEnabled`). An ensemble of Java 3.9 servers
must do the same.
"""

import re
import struct
import time

from ensemble.cluster import Cluster, patiently
from harness.jute import Reader
from harness.outcome import Skip, conclude, expect, expect_equal
from harness.protocol import CREATE, EPHEMERAL, create_body
from harness.server import arguments, available, four_letter_word, work_folder
from harness.session import ConnectionLost, Refused, Session, SessionExpired

SYNC = 9
EXPIRED, INCONSISTENT, EPHEMERAL_ON_LOCAL = -112, -2, -120
KEYS = {"localSessionsEnabled": "true", "initLimit": 10, "syncLimit": 6}


def wait(what, is_so, timeout=20):
    until = time.monotonic() + timeout
    while not is_so():
        expect(time.monotonic() < until, "not within %d s: %s" % (timeout, what))
        time.sleep(0.05)


class Trial:
    """`makes`: the last server leads. `observer`: whether the first server is an observer."""

    def __init__(self, makes, port, upgrades, observer=False):
        keys = {**KEYS, "localSessionsUpgradingEnabled": str(upgrades).lower()}
        self.makes, self.upgrades, self.observer = makes, upgrades, observer
        self.cluster = Cluster(makes, work_folder("local-sessions"), port, keys, observers=(1,) if observer else ())
        self.count = 0

    def run(self):
        with self.cluster:
            self._start()
            for member in self.cluster.members.values():
                self._local(member)
                if self.upgrades:
                    self._upgraded(member)
                else:
                    self._refused(member)
                self._expires(member)
            if self.upgrades:
                self._outlives_its_server()
            nodes = self.cluster.look_same()
            for member in self.cluster.running():
                expect_equal(member.digest_mismatches(), 0, "digest mismatches of server %d" % member.number)
        return nodes

    def _start(self):
        """Starts the servers. Two servers that are a quorum only together elect the one with the higher number."""
        *others, low, high = self.cluster.members.values()
        for member in (low, high):
            member.start()
        leader = self.cluster.wait_quorum(among=[low, high])
        expect_equal(leader.number, high.number, "the leader")
        for member in others:
            member.start()
        self.cluster.wait_quorum()
        self._first_write(high)

    def _first_write(self, leader):
        """Writes once: before that a Java follower refuses clients that have seen the first zxid of the epoch."""
        session = Session(leader.port)
        session.create("/begun", b"")
        session.close()
        for member in self.cluster.running():
            wait("server %d has the first write" % member.number, lambda: self._has(member, "/begun"))

    def _has(self, member, path):
        session = patiently(lambda: Session(member.port))
        found = session.exists(path) is not None
        session.close()
        return found

    def _name(self, what):
        self.count += 1
        return "/%s-%d" % (what, self.count)

    def zxid(self):
        """The last transaction of the ensemble."""
        session = Session(self.cluster[1].port)
        zxid = session.call(SYNC, struct.pack(">i", 1) + b"/").zxid
        zxid = max(zxid, session.call(3, struct.pack(">i", 1) + b"/\0").zxid)
        session.close()
        return zxid

    def sessions(self, member):
        """(sessions of all servers, sessions of this one) as the server counts them."""
        mntr = member.mntr()
        return int(mntr["zk_global_sessions"]), int(mntr["zk_local_sessions"])

    def other(self, member):
        return self.cluster[member.number % len(self.makes) + 1]

    def come_back(self, member, session):
        return patiently(
            lambda: Session(member.port, session.timeout_ms, session.id, session.password, seen_zxid=session.seen_zxid)
        )

    def is_over(self, member, session):
        try:
            self.come_back(member, session)
        except SessionExpired:
            return True
        return False

    def _local(self, member):
        before = self.zxid()
        session = Session(member.port, 30_000)
        expect_equal(self.sessions(member), (0, 1), "sessions of server %d" % member.number)
        expect_equal(self.sessions(self.other(member)), (0, 0), "sessions of another")
        dump = four_letter_word(member.port, "dump")
        expect(
            re.search(
                r"Local Session Sets \(\d+\)/\(1\):\n(0 expire at .*\n)*1 expire at .*:\n\t0x%x\n" % session.id, dump
            ),
            dump,
        )
        role = r"Global Session Sets \(\d+\)/\(0\)" if member.mode() == "leader" else r"Global Sessions\(0\):"
        expect(re.search(role, dump), dump)
        session.get("/")
        session.drop()
        session = self.come_back(member, session)
        expect(self.is_over(self.other(member), session), "a local session of server %d has moved" % member.number)
        session.close()
        expect_equal(self.zxid(), before, "zxid after a local session at server %d" % member.number)
        session = Session(member.port, 30_000)
        path = self._name("plain")
        session.create(path, b"x")
        session.set(path, b"y")
        session.multi([(CREATE, create_body(path + "/in-a-multi"))])
        expect_equal(session.get(path)[0], b"y", "what a local session wrote at server %d" % member.number)
        session.close()
        expect(self.is_over(member, session), "a local session that was closed came back")

    def _upgraded(self, member):
        session = Session(member.port, 30_000)
        path = self._name("ephemeral")
        session.create(path, b"", EPHEMERAL)
        expect_equal(session.exists(path).ephemeralOwner, session.id, "owner of %s" % path)
        for one in self.cluster.running():
            wait("server %d knows the session" % one.number, lambda: self.sessions(one) == (1, 0))
            expect("0x%x" % session.id in four_letter_word(one.port, "dump"), "dump of server %d" % one.number)
        session.drop()
        session = self.come_back(self.other(member), session)
        expect_equal(session.ephemerals(), [path], "what a session owns that has moved")
        session.create(path + "-more", b"", EPHEMERAL)
        session.close()
        # In a multi, and where the multi fails.
        for extra, codes in (([], [0]), ([(CREATE, create_body("/no/parent"))], [0, -101])):
            session = Session(member.port, 30_000)
            reply = session.multi([(CREATE, create_body(self._name("in-a-multi"), flags=EPHEMERAL)), *extra])
            expect_equal(codes_of(reply)[: len(codes)], codes, "codes of a multi at server %d" % member.number)
            for one in self.cluster.running():
                wait("server %d knows the session" % one.number, lambda: self.sessions(one) == (1, 0))
            session.close()
        wait("all are closed", lambda: self.sessions(self.other(member)) == (0, 0))

    def _refused(self, member):
        session = Session(member.port, 30_000)
        try:
            session.create(self._name("refused"), b"", EPHEMERAL)
            expect(False, "an ephemeral of a local session at server %d" % member.number)
        except Refused as refusal:
            expect_equal(refusal.code, EPHEMERAL_ON_LOCAL, "error at server %d" % member.number)
        reply = session.multi([(CREATE, create_body("/refused", flags=EPHEMERAL)), (CREATE, create_body("/too"))])
        code = EPHEMERAL_ON_LOCAL if member.mode() == "leader" else EXPIRED
        expect_equal(codes_of(reply), [code, INCONSISTENT], "codes of a multi at server %d" % member.number)
        session.create(self._name("plain"), b"")
        expect_equal(self.sessions(member), (0, 1), "sessions of server %d" % member.number)
        session.close()

    def _expires(self, member):
        opened = time.monotonic()
        session = Session(member.port, 1000)
        before = self.zxid()
        began = time.monotonic()
        session.socket.settimeout(20)
        try:
            session._frame()
            expect(False, "an expired session got an answer")
        except ConnectionLost:
            pass
        ended = time.monotonic()
        expect(session.timeout_ms / 2000 < ended - opened, "it expired after %.1f s" % (ended - opened))
        expect(ended - began < session.timeout_ms / 1000 + 15, "it expired after %.1f s" % (ended - began))
        expect(self.is_over(member, session), "a local session that expired came back")
        expect_equal(self.zxid(), before, "zxid after a local session that expired")

    def _outlives_its_server(self):
        """In every role: the session and its ephemeral survive when its server is killed right after the answer."""
        for number in (1,) if self.observer else (1, len(self.makes)):
            member = self.cluster[number]
            session = patiently(lambda: Session(member.port, 20_000))
            path = self._name("outlives")
            session.create(path, b"", EPHEMERAL)
            member.kill()
            rest = self.cluster.running()
            self.cluster.wait_quorum(among=rest)
            session = self.come_back(rest[-1], session)
            expect_equal(session.ephemerals(), [path], "what is left after the kill of server %d" % number)
            session.close()
            member.start()
            self.cluster.wait_quorum()


def codes_of(reply):
    """The result code of each operation of a multi."""
    codes, reader = [], Reader(reply.body)
    while True:
        op, done, error = reader.int32(), reader.boolean(), reader.int32()
        if done:
            return codes
        codes.append(reader.int32() if op == -1 else error)
        if op == CREATE:
            reader.ustring()


def check():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="only with upgrades, under a leader of each make")
    args = parser.parse_args()
    peers, missing = available("java3.9")
    own = args.server
    choices = [[own] * 3] if not peers else [["java3.9", own, own], [own, own, "java3.9"], ["java3.9", "java3.9", own]]
    if peers and not args.quick:
        choices += [[own] * 3, ["java3.9"] * 3]
    observers = [] if args.quick or not peers else [["java3.9", own, own], [own, "java3.9", "java3.9"]]
    for makes, observer in [(makes, False) for makes in choices] + [(makes, True) for makes in observers]:
        for upgrades in [True] if args.quick else [True, False]:
            began = time.monotonic()
            nodes = Trial(makes, args.port, upgrades, observer).run()
            names = " ".join("Ostler" if make == own else make for make in makes)
            print(
                "%s%s, upgrades %s: %d nodes (%.1f s)"
                % (names, " (the first observes)" * observer, upgrades, nodes, time.monotonic() - began),
                flush=True,
            )
    count = len(choices) + len(observers)
    summary = "local sessions in %d ensembles: no transaction, no move, ephemerals by upgrade" % count
    if missing:
        raise Skip("%s; not tried with %s" % (summary, "; ".join(missing)))
    return summary


if __name__ == "__main__":
    conclude(check)
