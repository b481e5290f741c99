"""Clients of an ensemble that write without pause, lose connections, reconnect to any server, and know what must be
there.

It is the load of disk/load.py: a client's writes are applied in the order sent, so its part of the tree is what some
prefix of its writes makes, which holds at least all that were acknowledged. In addition a client goes on by itself
here. When its connection is lost, it resumes its session at any server of the list, or opens a new one if the session
has ended. Then it finds the prefix, and plans on from there. Before that it writes once on the new connection: when
that write is acknowledged, each write of the old connection has been applied or never will be. It also checks that no
answer's zxid is below one seen before, on any connection."""

import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from disk import load as disk_load
from disk.load import SESSION_MS, Node
from harness import protocol
from harness.address import connect
from harness.outcome import Mismatch, conclude, expect, expect_equal
from harness.protocol import AUTH_XID, EPHEMERAL, NODE_EXISTS
from harness.session import ConnectionLost, Refused, Session, SessionExpired

WINDOW = 32
BATCH = 8
ANSWER_S = 1.0  # a server that is silent for longer is left
RETRY_S = 0.005
VISIT_MS, VISIT_EVERY_S = 4000, 0.05
SETTINGS = {"maxSessionTimeout": 120_000}
ENDED = (-112, -118)  # session expired, session moved: this connection is over
LOST = (ConnectionLost, OSError)
LOSSES_KEPT = 1000  # of each client, the last ones


class Loss(NamedTuple):
    """A connection with a session that ended, although its client went on."""

    at: float  # time.monotonic()
    port: int
    reason: str

    @property
    def by_client(self):
        """It was the client that did not wait longer."""
        return self.reason.startswith("no answer within")


class Link(Session):
    """A Session with a shorter timeout that checks that the zxids of answers never go back."""

    def __init__(self, port, timeout_ms=SESSION_MS, session_id=0, password=b"\0" * 16, seen_zxid=0):
        self.socket = connect(port, timeout=ANSWER_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.xid, self.waiting, self.events = b"", 0, deque(), []
        self.port, self.seen_zxid = port, seen_zxid
        try:
            self._open(protocol.connect(timeout_ms, session_id, password, seen_zxid), session_id)
        except BaseException:
            self.socket.close()
            raise

    def receive(self):
        before = self.seen_zxid
        try:
            reply = super().receive()
        except AssertionError as what:
            raise Mismatch("session 0x%x at port %d: %s" % (self.id, self.port, what)) from what
        if reply.error in ENDED:
            raise ConnectionLost("error %d" % reply.error)
        # The answer to auth has no zxid.
        expect(
            reply.zxid >= before or reply.xid == AUTH_XID,
            "an answer of zxid 0x%x after one of 0x%x, session 0x%x at port %d"
            % (reply.zxid, before, self.id, self.port),
        )
        return reply


class Client(disk_load.Client):
    session: Link

    def __init__(self, ports, number, seed=0):
        super().__init__(ports[number % len(ports)], number)
        self.session.create(self.root + "/here")
        self.session.drop()
        self.ports = list(ports)
        self.choice = random.Random("%d %d" % (seed, number))
        self.old_ended = False  # the session before this one ended, and the tree was not looked at since
        self.stopping = False
        self.expired = self.reconnected = self.kept = 0
        self.last_answer, self.longest_gap = None, 0.0
        self.losses: deque[Loss] = deque(maxlen=LOSSES_KEPT)

    # ---- running ----
    def run(self):
        """Writes until `stopping` is set, then waits for the answers."""
        self.stopping = False
        try:
            while not self.stopping:
                before = self.session
                try:
                    self.come_back(self.choice.choice(self.ports))
                    self._write()
                except LOST as error:
                    # A server may refuse a client that has seen more than itself: that is no loss.
                    if self.session is not before:
                        self.losses.append(Loss(time.monotonic(), self.session.port, str(error)))
                    self._gap(time.monotonic())
                    time.sleep(RETRY_S)
                finally:
                    self.session.drop()
        except Exception as e:  # handed to the main thread
            self.problem = e

    def _write(self):
        while self.pending or not self.stopping:
            while len(self.pending) <= WINDOW - BATCH and not self.stopping:
                batch = [self.next_write() for _ in range(BATCH)]
                self.pending.extend(batch)
                self.session.send_all((w.op, w.body) for w in batch)
            if self.pending:
                for reply in self.session.receive_waiting():
                    self._answered(reply)
                self._gap(time.monotonic(), answered=True)

    def _gap(self, now, answered=False):
        if self.last_answer is not None:
            self.longest_gap = max(self.longest_gap, now - self.last_answer)
        if answered:
            self.last_answer = now

    # ---- after a lost connection ----
    def come_back(self, port):
        """Finds the prefix of the writes that the ensemble has. Goes on after a connection that is lost meanwhile."""
        self._connect(port)
        self.session.set(self.root + "/here", b"%d" % self.reconnected)
        found, stats = self._read()
        self._compare_stats(stats)
        tree, unanswered, waiting = dict(self.acknowledged), len(self.pending), deque(self.pending)
        while self._seen(tree) != found and waiting:
            self._apply(tree, waiting.popleft())
        if self._seen(tree) != found:
            raise Mismatch(self._no_prefix(found))
        self.kept += unanswered - len(waiting)
        self.acknowledged, self.stats, self.old_ended = self._seen(tree), {}, False
        self.reconnected += 1
        self._forget_unsent()

    def _connect(self, port):
        old = self.session
        try:
            self.session = Link(port, SESSION_MS, old.id, old.password, old.seen_zxid)
            expect_equal(self.session.id, old.id, "session taken up")
        except SessionExpired:
            if not self.old_ended:
                self.expired += 1
            self.old_ended = True
            self.session = Link(port, SESSION_MS, seen_zxid=old.seen_zxid)

    def _read(self):
        found, stats = {}, {}
        for name in ("cell", "queue", "seq", "eph"):
            folder = self.root + "/" + name
            for child in self.session.children(folder):
                path = folder + "/" + child
                data, stat = self.session.get(path)
                found[path], stats[path] = Node(data, stat.version, stat.ephemeralOwner), stat
        return found, stats

    def _compare_stats(self, stats):
        for path, stat in self.stats.items():
            now = stats.get(path)
            if now and now.version == stat.version and now.czxid == stat.czxid:
                expect_equal(now._replace(pzxid=0), stat._replace(pzxid=0), "Stat of " + path)

    def _no_prefix(self, found):
        """Describes the differences from the nearest prefix."""
        tree: dict[str, Any] = dict(self.acknowledged)
        nearest: Any = None
        for n in range(len(self.pending) + 1):
            if n:
                self._apply(tree, self.pending[n - 1])
            seen = self._seen(tree)
            wrong = [path for path in sorted(seen.keys() | found.keys()) if seen.get(path) != found.get(path)]
            if nearest is None or len(wrong) < len(nearest[1]):
                nearest = n, ["  %s: due %s, found %s" % (path, seen.get(path), found.get(path)) for path in wrong]
        return (
            "%s through port %d is no prefix of its writes (%d answered, %d under way), nearest with %d of those:\n%s"
            % (self.root, self.session.port, self.total, len(self.pending), nearest[0], "\n".join(nearest[1][:12]))
        )

    def _seen(self, tree):
        """What a client sees of this tree: the ephemerals of an ended session are gone."""
        return {path: node for path, node in tree.items() if not self.old_ended or "/eph/" not in path}


class Visitor:
    """Sessions that come and go. The ephemeral of a closed session must be gone at once, that of an abandoned one after
    its timeout."""

    def __init__(self, ports, seed=0):
        self.ports, self.choice = list(ports), random.Random("visitor %d" % seed)
        self.closed, self.left = [], []
        self.stopping, self.problem, self.total = False, None, 0

    def run(self):
        self.stopping = False
        try:
            while not self.stopping:
                try:
                    self._visit(Link(self.choice.choice(self.ports), VISIT_MS))
                except LOST:
                    pass
                time.sleep(VISIT_EVERY_S)  # how often is part of the load
        except Exception as e:
            self.problem = e

    def _visit(self, session):
        path = "/load/visitor/%x" % session.id
        self.left.append(path)
        try:
            session.create(path, b"", EPHEMERAL)
            if self.choice.random() < 0.8:
                session.close()
                self.closed.append(self.left.pop())
        finally:
            session.drop()
        self.total += 1

    def look(self, session):
        """`session` has written after the visitor's end."""
        present = {"/load/visitor/" + name for name in session.children("/load/visitor")}
        expect(not present & set(self.closed), "nodes of closed sessions: %s" % sorted(present & set(self.closed))[:5])
        expect(present <= set(self.left), "nodes that no client created: %s" % sorted(present - set(self.left))[:5])
        return present


class Load:
    """Clients and a visitor, each in a thread, between `start` and `stop`; any number of times."""

    CLIENT: Callable[..., Client] = Client

    def __init__(self, ports, clients=4, seed=0):
        self.ports, self.threads = list(ports), []
        session = Session(self.ports[0])
        for path in ("/load", "/load/visitor"):
            try:
                session.create(path)
            except Refused as e:
                if e.code != NODE_EXISTS:
                    raise
        session.close()
        self.clients = [self.CLIENT(self.ports, n, seed) for n in range(clients)]
        self.visitor = Visitor(self.ports, seed)
        self.all: list[Any] = [*self.clients, self.visitor]

    def start(self):
        self.threads = [threading.Thread(target=one.run, daemon=True) for one in self.all]
        for thread in self.threads:
            thread.start()
        return self

    def stop(self):
        for one in self.all:
            one.stopping = True
        for thread in self.threads:
            thread.join(30)
            expect(not thread.is_alive(), "a client is stuck")
        self.threads = []
        self.look()

    def look(self):
        """Raises the first error that a client has found so far."""
        for one in self.all:
            if one.problem:
                raise one.problem

    def wait_progress(self, timeout=60):
        """Every client had a write acknowledged that it sent after this call."""
        before = [c.total + WINDOW for c in self.clients]
        until = time.monotonic() + timeout
        while any(c.total <= b for c, b in zip(self.clients, before)):
            self.look()
            stuck = [c.root for c, b in zip(self.clients, before) if c.total <= b]
            expect(time.monotonic() < until, "no write of %s was acknowledged within %d s" % (stuck, timeout))
            time.sleep(0.01)

    def check(self, port, timeout=30):
        """Stopped, and with a quorum: what is there through this server is what each client knows."""
        until = time.monotonic() + timeout
        for client in self.clients:
            while True:
                try:
                    client.come_back(port)
                    client.session.drop()
                    break
                except LOST:
                    expect(time.monotonic() < until, "%s cannot be looked at through port %d" % (client.root, port))
                    time.sleep(0.02)
        self._check_visits(port)

    def _check_visits(self, port):
        until = time.monotonic() + 3 * VISIT_MS / 1000 + 30
        while left := self._visits_left(port, until):
            expect(time.monotonic() < until, "ephemerals outlive their session: %s" % sorted(left)[:5])
            time.sleep(0.05)

    def _visits_left(self, port, until):
        while True:
            try:
                session = Link(port)
                session.set("/load/visitor", b"looked")
                left = self.visitor.look(session)
                session.close()
                return left
            except LOST:
                expect(time.monotonic() < until, "port %d does not answer" % port)
                time.sleep(0.02)

    @property
    def acknowledged(self):
        return sum(c.total for c in self.clients)

    @property
    def expired(self):
        return sum(c.expired for c in self.clients)

    @property
    def reconnected(self):
        return sum(c.reconnected for c in self.clients)

    def losses(self, since, but_of=None):
        """The connections that servers ended since this time, but not those of one port."""
        found = [loss for client in self.clients for loss in list(client.losses)]
        return [loss for loss in found if loss.at >= since and loss.port != but_of and not loss.by_client]

    def longest_gap(self):
        """The longest time that one client waited for an answer to a write, since the last call."""
        longest = max(c.longest_gap for c in self.clients)
        for c in self.clients:
            c.longest_gap = 0.0
        return longest


def check():
    """Runs the load itself, on an ensemble with one kill as the only fault."""
    from ensemble.cluster import Cluster
    from harness.server import arguments, work_folder

    args = arguments(__doc__, size={"type": int, "default": 3}, seconds={"type": float, "default": 3}).parse_args()
    with Cluster([args.server] * args.size, work_folder("load"), args.port, SETTINGS) as cluster:
        cluster.start().wait_quorum()
        load = Load(cluster.ports()).start()
        time.sleep(args.seconds)
        cluster.wait_leader().kill()
        cluster.wait_quorum()
        load.wait_progress()
        load.stop()
        for member in cluster.running():
            load.check(member.port)
        nodes = cluster.look_same()
        return "%d writes acknowledged by %d clients, %d connections, %d sessions of visitors, %d nodes everywhere" % (
            load.acknowledged,
            len(load.clients),
            load.reconnected,
            load.visitor.total,
            nodes,
        )


if __name__ == "__main__":
    conclude(check)
