"""Clients that record a history: registers for the checker, sequential znodes, and the clients of interop/ensemble.

Each client is one thread that sends one request after the other, some tens a second. When its connection is lost, it
resumes its session at any server; requests without an answer are recorded with an unknown outcome.
"""

import random
import time

from chaos.history import PLAIN_READ, READ, SWAP, SYNC_READ, WRITE, Operation
from disk.load import SESSION_MS
from ensemble import load as ensemble_load
from ensemble.load import LOST, RETRY_S, Link
from harness.jute import Reader, ustring
from harness.outcome import expect
from harness.protocol import (
    BAD_VERSION,
    CREATE,
    DELETE,
    GET_DATA,
    NO_NODE,
    NODE_EXISTS,
    SEQUENTIAL,
    SET_DATA,
    create_body,
    path_version,
    set_body,
)
from harness.session import ConnectionLost, Refused, SessionExpired

SYNC = 9
TOP, REGISTERS, LINE = "/chaos", "/chaos/register", "/chaos/line"
TURN_S = 3.0  # how long a register is used: its history stays short
AT_ONCE = 2  # registers in use
REGISTER_PAUSE_S, LINE_PAUSE_S, CLIENT_PAUSE_S = 0.03, 0.15, 0.005


class Recorder:
    """A client with a number that reconnects by itself. Each connection numbers its requests from 1 on.

    One that only writes goes on after a lost connection until a write is acknowledged, also when it is to stop: then
    all writes of earlier connections have happened or never will."""

    pause_s = 0.0
    writes_only = False

    def __init__(self, ports, number, seed):
        self.ports, self.number = list(ports), number
        self.chance = random.Random("recorder %d %d" % (seed, number))
        self.session, self.count, self.expired = None, 0, 0
        self.stopping, self.problem = False, None
        self.decided = True  # nothing of an earlier connection may still happen

    def ask(self):
        """Sends the next request and records its answer."""
        raise NotImplementedError

    def run(self):
        self.stopping = False
        try:
            while not (self.stopping and self.decided):
                try:
                    self._connect(self.chance.choice(self.ports))
                    while not (self.stopping and self.decided):
                        self.ask()
                        self.decided = True
                        time.sleep(self.chance.uniform(0.5, 1.5) * self.pause_s)  # how often is part of the load
                except LOST:
                    self.decided = not self.writes_only
                    time.sleep(RETRY_S)
                finally:
                    if self.session:
                        self.session.drop()
        except Exception as e:  # handed to the main thread
            self.problem = e

    def _connect(self, port):
        old = self.session
        try:
            if old is None:
                self.session = Link(port, SESSION_MS)
            else:
                self.session = Link(port, SESSION_MS, old.id, old.password, old.seen_zxid)
        except SessionExpired:
            self.expired += 1
            self.session = Link(port, SESSION_MS, seen_zxid=old.seen_zxid)

    def answers(self, *requests):
        """The answers to requests that are sent together. An error that is not caused by the request leaves the outcome
        unknown."""
        self.session.send_all(requests)
        replies = [self.session.receive() for _ in requests]
        for reply in replies:
            if reply.error not in (0, BAD_VERSION, NO_NODE, NODE_EXISTS):
                raise ConnectionLost("error %d" % reply.error)
        return replies

    def create(self, path):
        (reply,) = self.answers((CREATE, create_body(path)))
        expect(reply.error in (0, NODE_EXISTS), "create %s: error %d" % (path, reply.error))

    def fresh_value(self):
        self.count += 1
        return "%d.%d" % (self.number, self.count)


class RegisterClient(Recorder):
    """Reads and writes registers that all clients share, each for a few seconds."""

    pause_s = REGISTER_PAUSE_S

    def __init__(self, ports, number, seed, history):
        super().__init__(ports, number, seed)
        self.history, self.made, self.known_versions = history, set(), {}
        self.starts = 0  # of the load: what was swept away is not used again
        self.barrier = "%s/barrier-%d" % (TOP, number)

    def run(self):
        self.starts += 1
        super().run()

    def ask(self):
        turn = time.monotonic() // TURN_S
        path = "%s/%d-%d-%d" % (REGISTERS, self.starts, turn, self.chance.randrange(AT_ONCE))
        if path not in self.made:
            self.create(path)
            self.create(self.barrier)
            self.made.add(path)
        kind = self.chance.choices([WRITE, SWAP, READ, SYNC_READ, PLAIN_READ], [25, 20, 20, 15, 20])[0]
        op = Operation(self.number, kind, time.monotonic())
        try:
            getattr(self, "_" + kind.replace("-", "_"))(path, op)
            op.ended = time.monotonic()
            if op.version is not None:
                self.known_versions[path] = op.version
        finally:
            self.history.add(path, op)

    def _write(self, path, op):
        op.value = self.fresh_value()
        (reply,) = self.answers((SET_DATA, set_body(path, op.value.encode())))
        op.version = self._stat(reply, path).version

    def _swap(self, path, op):
        op.value, op.expected = self.fresh_value(), self.known_versions.get(path, 0)
        (reply,) = self.answers((SET_DATA, set_body(path, op.value.encode(), op.expected)))
        op.version = None if reply.error == BAD_VERSION else self._stat(reply, path).version

    def _read(self, path, op):
        """Reads after a write of this client: then the server has every write that was committed before."""
        barrier, reply = self.answers((SET_DATA, set_body(self.barrier, b"")), (GET_DATA, ustring(path) + b"\0"))
        self._stat(barrier, self.barrier)
        self._value(reply, path, op)

    def _sync_read(self, path, op):
        _, reply = self.answers((SYNC, ustring(path)), (GET_DATA, ustring(path) + b"\0"))
        self._value(reply, path, op)

    def _plain_read(self, path, op):
        (reply,) = self.answers((GET_DATA, ustring(path) + b"\0"))
        self._value(reply, path, op)

    def _value(self, reply, path, op):
        expect(reply.error == 0, "%s was created, and a read of it has error %d" % (path, reply.error))
        reader = Reader(reply.body)
        op.value, op.version = (reader.buffer() or b"").decode(), reader.stat().version

    def _stat(self, reply, path):
        expect(reply.error == 0, "%s was created, and a write of it has error %d" % (path, reply.error))
        return Reader(reply.body).stat()


class Liner(Recorder):
    """Creates sequential znodes below one parent, and notes the times of each request and answer."""

    pause_s = LINE_PAUSE_S
    writes_only = True

    def __init__(self, ports, number, seed):
        super().__init__(ports, number, seed)
        self.created, self.unknown = [], []  # (began, ended, path, value), and values
        self.told = self.lost = 0

    def ask(self):
        value, began = self.fresh_value(), time.monotonic()
        self.unknown.append(value)
        try:
            (reply,) = self.answers((CREATE, create_body(LINE + "/n", value.encode(), SEQUENTIAL)))
        except LOST:
            self.lost += 1
            raise
        expect(reply.error == 0, "create in %s: error %d" % (LINE, reply.error))
        self.created.append((began, time.monotonic(), Reader(reply.body).ustring(), value))
        self.unknown.pop()
        self.told += 1


class PacedClient(ensemble_load.Client):
    def next_write(self):
        time.sleep(CLIENT_PAUSE_S)  # how often is part of the load
        return super().next_write()


class RecordedLoad(ensemble_load.Load):
    CLIENT = PacedClient

    def __init__(self, ports, seed, history, registers=4, liners=2):
        super().__init__(ports, 1, seed)
        session = Link(ports[0])
        for path in (TOP, REGISTERS, LINE):
            session.create(path)
        session.close()
        self.history = history
        self.recorders = [RegisterClient(ports, n, seed, history) for n in range(registers)]
        self.liners = [Liner(ports, registers + n, seed) for n in range(liners)]
        self.all += [*self.recorders, *self.liners]

    @property
    def acknowledged(self):
        return super().acknowledged + self.history.acknowledged + sum(one.told for one in self.liners)

    @property
    def expired(self):
        return super().expired + sum(one.expired for one in [*self.recorders, *self.liners])

    @property
    def unknown(self):
        return self.history.unknown + sum(one.lost for one in self.liners)

    def line(self):
        """Takes out the record of the znodes that were created, and of those that may have been."""
        created = [one for liner in self.liners for one in liner.created]
        unknown = {value for liner in self.liners for value in liner.unknown}
        for liner in self.liners:
            liner.created, liner.unknown = [], []
        return created, unknown

    def abandon(self):
        """Stops the clients without waiting for them."""
        for one in self.all:
            one.stopping = True


def sweep(port):
    """Removes znodes that were checked, so that trees stay small."""
    session = Link(port)
    for folder in (REGISTERS, LINE):
        names = session.children(folder)
        for n in range(0, len(names), 200):
            part = names[n : n + 200]
            session.send_all((DELETE, path_version("%s/%s" % (folder, name))) for name in part)
            for _ in part:
                session.receive()
    session.close()


def children_with_data(port, folder):
    """{path: value} after every write that was committed before this call."""
    session = Link(port)
    session.set(TOP, b"looked")
    found = {}
    for name in session.children(folder):
        path = "%s/%s" % (folder, name)
        try:
            found[path] = session.get(path)[0].decode()
        except Refused as e:
            if e.code != NO_NODE:
                raise
    session.drop()
    return found
