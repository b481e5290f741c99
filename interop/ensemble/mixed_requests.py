"""A client with requests of every kind. Its results are not checked by themselves, only compared between servers."""

import random
import struct
import time

from ensemble.cluster import USER, patiently
from ensemble.load import LOST, Link
from harness.jute import ustring
from harness.outcome import Mismatch, expect
from harness.protocol import (
    CHECK,
    CONTAINER,
    CREATE,
    CREATE2,
    CREATE_CONTAINER,
    CREATE_TTL,
    DELETE,
    EPHEMERAL,
    EPHEMERAL_SEQUENTIAL,
    MULTI,
    OPEN,
    PERSISTENT,
    SEQUENTIAL,
    SEQUENTIAL_TTL,
    SET_ACL,
    SET_DATA,
    TTL,
    acl_list,
    create_body,
    digest_id,
    multi_body,
    path_version,
    set_body,
)
from harness.session import SessionExpired

ROOT = "/mixed-requests"
NAMES = ["a", "b", "c", "d", "\u00e4", "long-" * 10]
SESSION_MS = 6000
WINDOW = 8
ACLS = [
    OPEN,
    OPEN,
    OPEN,
    OPEN,
    [(31, "ip", "127.0.0.1")],
    [(1, "world", "anyone"), (31, "ip", "127.0.0.0/8")],
    [(31, "digest", digest_id(USER))],
    [(31, "auth", "")],
]
TTLS_MS = (600, 3600_000)
NEVER = (-1, -2, -3, -5, -6)  # errors of a server that does not understand


def prepare(port):
    """A quota, so that its statistics move with the load."""
    session = patiently(lambda: Link(port))
    session.socket.settimeout(30)  # a Java server that has just started may answer late
    for path, data in (
        (ROOT, b""),
        (ROOT + "/a", b""),
        ("/zookeeper/quota" + ROOT, b""),
        ("/zookeeper/quota" + ROOT + "/a", b""),
        ("/zookeeper/quota" + ROOT + "/a/zookeeper_limits", b"count=100000,bytes=-1"),
        ("/zookeeper/quota" + ROOT + "/a/zookeeper_stats", b"count=0,bytes=0"),
    ):
        session.create(path, data)
    session.close()


class MixedRequestsClient:
    """`beside_38`: Java 3.8 cannot apply a create2 within a multi that a leader of another version proposes."""

    def __init__(self, ports, number, seed=0, beside_38=False):
        self.beside_38 = beside_38
        self.ports, self.random = list(ports), random.Random("wander %d %d" % (seed, number))
        self.stopping, self.problem = False, None
        self.total = self.refused = 0
        self.old = None

    def run(self):
        self.stopping = False
        try:
            while not self.stopping:
                try:
                    self._live()
                except LOST:
                    time.sleep(0.01)
        except Exception as e:
            self.problem = e

    def _live(self):
        session = self._connect()
        try:
            session.add_auth("digest", USER)
            for _ in range(self.random.randrange(50, 400)):
                if self.stopping:
                    break
                batch = [self._write() for _ in range(WINDOW)]
                session.send_all(batch)
                for op, body in batch:
                    try:
                        error = session.receive().error
                    except Mismatch as what:
                        raise Mismatch("%s, opcodes %s, body %r" % (what, [op for op, _ in batch], body)) from what
                    expect(-130 < error <= 0 and error not in NEVER, "opcode %d was answered with %d" % (op, error))
                    self.total += 1
                    self.refused += error != 0
            if self.random.random() < 0.7 or self.stopping:
                session.close()
            else:
                self.old = session
        finally:
            session.drop()

    def _connect(self):
        old, self.old = self.old, None
        port = self.random.choice(self.ports)
        if old and self.random.random() < 0.7:
            try:
                return Link(port, SESSION_MS, old.id, old.password, old.seen_zxid)
            except SessionExpired:
                pass
        return Link(port, SESSION_MS)

    # ---- writes ----
    def _path(self):
        return "/".join([ROOT] + [self.random.choice(NAMES) for _ in range(self.random.randint(1, 4))])

    def _data(self):
        return self.random.choice([None, b"", b"x" * self.random.randrange(300), b"%d" % self.random.randrange(1000)])

    def _version(self):
        return self.random.choice([-1, -1, -1, 0, 1, 5])

    def _create(self):
        path, data, acl = self._path(), self._data(), self.random.choice(ACLS)
        kind = self.random.random()
        if kind < 0.45:
            return self.random.choice([CREATE, CREATE2]), create_body(path, data, PERSISTENT, acl)
        if kind < 0.60:
            return CREATE2, create_body(path, data, self.random.choice([EPHEMERAL, EPHEMERAL_SEQUENTIAL]), acl)
        if kind < 0.70:
            return CREATE, create_body(path + "-", data, SEQUENTIAL, acl)
        if kind < 0.80:
            return CREATE_CONTAINER, create_body(path, data, CONTAINER, acl)
        flags, ttl = self.random.choice([TTL, TTL, SEQUENTIAL_TTL]), self.random.choice(TTLS_MS)
        return CREATE_TTL, create_body(path, data, flags, acl, ttl)

    def _simple(self):
        kind = self.random.random()
        if kind < 0.45:
            return SET_DATA, set_body(self._path(), self._data(), self._version())
        return DELETE, path_version(self._path(), self._version())

    def _write(self):
        kind = self.random.random()
        if kind < 0.4:
            return self._create()
        if kind < 0.8:
            return self._simple()
        if kind < 0.88:
            return SET_ACL, ustring(self._path()) + acl_list(self.random.choice(ACLS)) + struct.pack(
                ">i", self._version()
            )
        ops = [self._part_of_multi() for _ in range(self.random.randrange(5))]
        return MULTI, multi_body(ops)

    def _part_of_multi(self):
        kind = self.random.random()
        if kind < 0.5:
            op, body = self._create()
            return (CREATE if op == CREATE2 and self.beside_38 else op), body
        if kind < 0.9:
            return self._simple()
        return CHECK, path_version(self._path(), self._version())
