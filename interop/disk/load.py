"""Clients that keep many writes in flight, and know after a crash which trees are allowed.

A client's writes are applied in the order sent, so after a crash its part of the tree is what some prefix of its
writes makes: at least all that were acknowledged, at most all that were sent. That covers every promise at once:
nothing acknowledged is lost, nothing refused is kept, a multi is there as a whole or not at all.
"""

import random
import threading
from collections import deque, namedtuple

from harness.jute import Reader
from harness.outcome import expect, expect_equal
from harness.protocol import (
    BAD_VERSION,
    CHECK,
    CREATE,
    CREATE2,
    DELETE,
    EPHEMERAL,
    MULTI,
    NODE_EXISTS,
    SEQUENTIAL,
    SET_DATA,
    create_body,
    multi_body,
    path_version,
    set_body,
)
from harness.session import ConnectionLost, Session, SessionExpired

WINDOW = 64
SESSION_MS = 100_000
CELLS, KEPT = 8, 40

# effects: (path, data) puts a node there, (path, None) removes it; error: the refusal that is due; name: of a create
Write = namedtuple("Write", "op body effects error name")
Node = namedtuple("Node", "data version owner")


class Client:
    """A client with one session and its own part of the tree, which moves from server to server."""

    def __init__(self, port, number):
        self.root = "/load/%d" % number
        self.random = random.Random(number)
        self.count = 0
        self.created = deque()
        self.acknowledged = {}  # path -> Node, as of the last acknowledged write
        self.stats = {}  # path -> Stat that the server gave with that write
        self.pending = deque()  # sent, not answered
        self.total = 0
        self.problem = None
        self.session = Session(port, SESSION_MS)
        for path in [self.root] + [self.root + "/" + name for name in ("cell", "queue", "seq", "eph")]:
            self.session.create(path)
        self.sequence = 0
        for n in range(CELLS):
            self.session.create(self._cell(n), b"0")
            self.acknowledged[self._cell(n)] = Node(b"0", 0, 0)

    def _cell(self, n):
        return "%s/cell/%d" % (self.root, n)

    # ---- the writes ----
    def next_write(self):
        self.count += 1
        value = b"%d" % self.count
        kind = self.random.random()
        a, b = (self._cell(n) for n in self.random.sample(range(CELLS), 2))
        if kind < 0.5:
            return Write(SET_DATA, set_body(a, value), [(a, value)], 0, None)
        if kind < 0.6:
            both = [(SET_DATA, set_body(a, value)), (SET_DATA, set_body(b, value))]
            return Write(MULTI, multi_body(both), [(a, value), (b, value)], 0, None)
        if kind < 0.65:
            half = [(SET_DATA, set_body(a, b"refused")), (CHECK, path_version(b, 1 << 30))]
            return Write(MULTI, multi_body(half), [], 0, None)
        if kind < 0.7:
            return Write(SET_DATA, set_body(a, b"refused", 1 << 30), [], BAD_VERSION, None)
        if kind < 0.75:
            return Write(CREATE, create_body(a, b"refused"), [], NODE_EXISTS, None)
        if len(self.created) >= KEPT:
            path = self.created.popleft()
            return Write(DELETE, path_version(path), [(path, None)], 0, None)
        return self._create(kind, value)

    def _create(self, kind, value):
        if kind < 0.85:
            asked = path = "%s/queue/%d" % (self.root, self.count)
            flags = 0
        elif kind < 0.93:
            asked = self.root + "/seq/n"
            path, flags = "%s%010d" % (asked, self.sequence), SEQUENTIAL
            self.sequence += 1
        else:
            asked = path = "%s/eph/%d" % (self.root, self.count)
            flags = EPHEMERAL
        self.created.append(path)
        return Write(CREATE2, create_body(asked, value, flags), [(path, value)], 0, path)

    # ---- running ----
    def run(self):
        """Write until the connection breaks."""
        try:
            while True:
                while len(self.pending) < WINDOW:
                    batch = [self.next_write() for _ in range(WINDOW // 4)]
                    self.pending.extend(batch)
                    self.session.send_all((w.op, w.body) for w in batch)
                for reply in self.session.receive_waiting():
                    self._answered(reply)
        except ConnectionLost:
            pass
        except Exception as e:  # handed to the main thread
            self.problem = e
        finally:
            self.session.drop()

    def _answered(self, reply):
        write = self.pending.popleft()
        expect_equal(reply.error, write.error, "answer to write %d of %s" % (reply.xid, self.root))
        self._apply(self.acknowledged, write)
        self.total += 1
        if write.op == SET_DATA and not write.error:
            path = write.effects[0][0]
            self.stats[path] = stat = Reader(reply.body).stat()
            expect_equal(stat.version, self.acknowledged[path].version, "version of " + path)
        elif write.name:
            reader = Reader(reply.body)
            expect_equal(reader.ustring(), write.name, "name of a created node")
            self.stats[write.name] = reader.stat()
        else:
            for path, _ in write.effects:
                self.stats.pop(path, None)

    def _apply(self, tree, write):
        for path, data in write.effects:
            if data is None:
                del tree[path]
            elif path in tree:
                tree[path] = Node(data, tree[path].version + 1, tree[path].owner)
            else:
                tree[path] = Node(data, 0, self.session.id if "/eph/" in path else 0)

    # ---- after the crash ----
    def come_back(self, port):
        """Resumes the session on the new server, and finds the prefix of the writes that the server has."""
        old = self.session
        self.session = Session(port, SESSION_MS, old.id, old.password, old.seen_zxid)
        expect_equal(self.session.id, old.id, "session taken up")
        found, stats = {}, {}
        for name in ("cell", "queue", "seq", "eph"):
            folder = self.root + "/" + name
            for child in self.session.children(folder):
                path = folder + "/" + child
                data, stat = self.session.get(path)
                found[path], stats[path] = Node(data, stat.version, stat.ephemeralOwner), stat
        for path, stat in self.stats.items():
            now = stats.get(path)
            if now and now.version == stat.version and now.czxid == stat.czxid:
                expect_equal(now._replace(pzxid=0), stat._replace(pzxid=0), "Stat of " + path)
        tree, unanswered = dict(self.acknowledged), len(self.pending)
        while tree != found and self.pending:
            self._apply(tree, self.pending.popleft())
        if tree != found:
            raise AssertionError(self._lost(found, unanswered))
        kept = unanswered - len(self.pending)
        self.acknowledged, self.stats = tree, {}
        self._forget_unsent()
        return kept

    def _forget_unsent(self):
        """Forgets the writes that the server does not have, and plans on from the server's state."""
        self.pending.clear()
        self.created = deque(
            sorted((p for p in self.acknowledged if "/cell/" not in p), key=lambda p: p.rpartition("/")[2])
        )
        made = self.session.exists(self.root + "/seq")
        # cversion counts creates and deletes; each sequence number is one create
        self.sequence = (made.cversion + made.numChildren) // 2

    def _lost(self, found, unanswered):
        lines = ["%s is no prefix of its writes (%d answered, %d under way):" % (self.root, self.total, unanswered)]
        for path in sorted(self.acknowledged.keys() | found.keys()):
            if self.acknowledged.get(path) != found.get(path):
                lines.append("  %s: answered %s, found %s" % (path, self.acknowledged.get(path), found.get(path)))
        return "\n".join(lines[:12])


class Visitors:
    """Sessions that come and go: an acknowledged open one must be known later, an acknowledged closed one must not."""

    def __init__(self):
        self.open, self.closed = [], []
        self.problem = None

    def run(self, port):
        try:
            while True:
                s = Session(port, SESSION_MS)
                path = "/load/visitor-%x" % s.id
                s.create(path, b"", EPHEMERAL)
                if len(self.open) < 5:
                    self.open.append((s.id, s.password, path))
                    s.drop()
                    continue
                entry = (s.id, s.password, path)
                s.close()
                self.closed.append(entry)
        except (ConnectionLost, ConnectionError):
            pass
        except Exception as e:
            self.problem = e

    def look(self, port):
        admin = Session(port, SESSION_MS)
        for id, password, path in self.open:
            s = Session(port, SESSION_MS, id, password)
            expect_equal(s.ephemerals(), [path], "ephemerals of session 0x%x" % id)
            s.close()
        for id, password, path in self.closed[-5:]:
            expect(not admin.exists(path), "%s outlived its closed session" % path)
            try:
                Session(port, SESSION_MS, id, password)
            except SessionExpired:
                continue
            expect(False, "session 0x%x was closed and could be taken up" % id)
        admin.close()
        self.open, self.closed = [], []


def start(clients, visitors, port):
    threads = [threading.Thread(target=c.run, daemon=True) for c in clients]
    threads.append(threading.Thread(target=visitors.run, args=(port,), daemon=True))
    for t in threads:
        t.start()
    return threads


def join(threads, clients, visitors):
    for t in threads:
        t.join(15)
        expect(not t.is_alive(), "a client still waits although its server was killed")
    for one in [*clients, visitors]:
        if one.problem:
            raise one.problem
