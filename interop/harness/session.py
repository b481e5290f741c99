"""A small ZooKeeper client on a bare socket: any number of requests in flight, no hidden requests, no retries."""

import socket
import struct
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from . import protocol
from .address import connect
from .jute import Reader, Stat, buffer, ustring
from .protocol import (
    AUTH,
    AUTH_XID,
    CLOSE,
    CONTAINER,
    CREATE,
    CREATE_CONTAINER,
    CREATE_TTL,
    DELETE,
    EVENT_XID,
    EXISTS,
    GET_ACL,
    GET_CHILDREN2,
    GET_DATA,
    GET_EPHEMERALS,
    MULTI,
    NO_NODE,
    OPEN,
    PERSISTENT,
    PING_XID,
    SET_ACL,
    SET_DATA,
    Acl,
    Acls,
    create_body,
    multi_body,
    path_version,
    path_watch,
    read_acl_list,
    set_body,
)

LENGTH = struct.Struct(">i")


class Reply(NamedTuple):
    """A reply's header and the bytes of its record."""

    xid: int
    zxid: int
    error: int
    body: bytes


class ConnectionLost(Exception):
    """The connection ended, or the server did not answer in time. The session may go on."""


class SessionExpired(Exception):
    """The server does not know the session that the client asked for."""


class Refused(Exception):
    """The server answered with an error code."""

    def __init__(self, code: int, what: str | None) -> None:
        super().__init__("%s: error %d" % (what, code))
        self.code = code


def _sorted_strings(reply: Reply) -> list[str]:
    reader = Reader(reply.body)
    return sorted(text for text in reader.vector(reader.ustring) or () if text is not None)


class Session:
    """One connection with its session.

    `send_all` and `receive` allow any number of requests in flight; `call` and the named operations wait for each
    reply.
    """

    def __init__(
        self,
        port: int,
        timeout_ms: int = 10000,
        session_id: int = 0,
        password: bytes | None = b"\0" * 16,
        seen_zxid: int = 0,
        read_only: bool = False,
    ) -> None:
        self.socket = connect(port, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.xid = 0
        self.waiting: deque[int] = deque()
        self.events: list[tuple[int, str | None]] = []
        self.seen_zxid = seen_zxid
        self._open(protocol.connect(timeout_ms, session_id, password, seen_zxid, read_only), session_id)

    def _open(self, request: bytes, session_id: int) -> None:
        """Sends the connect request and takes the session from the answer."""
        self.socket.sendall(buffer(request))
        answer = Reader(self._frame())
        answer.int32()  # the protocol's version
        self.timeout_ms, self.id = answer.int32(), answer.int64()
        self.password = answer.buffer()
        self.read_only = answer.rest() == b"\1"
        if self.timeout_ms <= 0:
            self.socket.close()
            raise SessionExpired("session 0x%x is unknown to the server" % session_id)

    def _frame(self) -> bytes:
        while True:
            have = len(self.buffer)
            if have >= 4:
                size = LENGTH.unpack_from(self.buffer)[0]
                if have >= 4 + size:
                    frame, self.buffer = self.buffer[4 : 4 + size], self.buffer[4 + size :]
                    return frame
            self._fill()

    def _fill(self) -> None:
        try:
            chunk = self.socket.recv(1 << 18)
        except TimeoutError:
            raise ConnectionLost("no answer within %s s" % self.socket.gettimeout()) from None
        except OSError as e:
            raise ConnectionLost(str(e)) from None
        if not chunk:
            raise ConnectionLost("closed by the server")
        self.buffer += chunk

    def send_all(self, requests: Iterable[tuple[int, bytes]]) -> list[int]:
        """Sends (opcode, body) pairs in one write. Returns their xids."""
        frames, xids = [], []
        for op, body in requests:
            self.xid += 1
            xids.append(self.xid)
            frames.append(protocol.request(self.xid, op, body))
        try:
            self.socket.sendall(b"".join(frames))
        except OSError as e:
            raise ConnectionLost(str(e)) from None
        self.waiting.extend(xids)
        return xids

    def receive(self) -> Reply:
        """The next reply, in request order; events that came before it are added to `events`."""
        while True:
            frame = self._frame()
            header = protocol.reply_header(frame)
            if header is None:
                raise ConnectionLost("a frame of %d bytes" % len(frame))
            xid, zxid, error = header
            if xid == EVENT_XID:
                event = Reader(frame, 16)
                kind, _state = event.int32(), event.int32()
                self.events.append((kind, event.ustring()))
            elif xid != PING_XID:
                break
        if xid != AUTH_XID:
            expected = self.waiting.popleft()
            if xid != expected:
                raise AssertionError("reply to xid %d where %d was due" % (xid, expected))
        self.seen_zxid = max(self.seen_zxid, zxid)
        return Reply(xid, zxid, error, frame[16:])

    def receive_waiting(self) -> list[Reply]:
        """At least one reply, and all that already arrived with it."""
        replies = [self.receive()]
        while len(self.buffer) >= 4 and len(self.buffer) >= 4 + LENGTH.unpack_from(self.buffer)[0] and self.waiting:
            replies.append(self.receive())
        return replies

    def call(self, op: int, body: bytes = b"", what: str | None = None) -> Reply:
        self.send_all([(op, body)])
        reply = self.receive()
        if reply.error:
            raise Refused(reply.error, what or "opcode %d" % op)
        return reply

    # Operations that wait for their reply.

    def create(
        self, path: str, data: bytes | None = b"", flags: int = PERSISTENT, acl: Acls = OPEN, ttl: int | None = None
    ) -> str:
        op = CREATE_TTL if ttl is not None else CREATE_CONTAINER if flags == CONTAINER else CREATE
        created = Reader(self.call(op, create_body(path, data, flags, acl, ttl), "create " + path).body).ustring()
        assert created is not None, "the reply to a create has no path"
        return created

    def delete(self, path: str, version: int = -1) -> None:
        self.call(DELETE, path_version(path, version), "delete " + path)

    def set(self, path: str, data: bytes | None, version: int = -1) -> Stat:
        return Reader(self.call(SET_DATA, set_body(path, data, version), "set " + path).body).stat()

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        reader = Reader(self.call(GET_DATA, path_watch(path), "get " + path).body)
        return reader.buffer(), reader.stat()

    def exists(self, path: str) -> Stat | None:
        try:
            return Reader(self.call(EXISTS, path_watch(path), "exists " + path).body).stat()
        except Refused as e:
            if e.code == NO_NODE:
                return None
            raise

    def children(self, path: str) -> list[str]:
        return _sorted_strings(self.call(GET_CHILDREN2, path_watch(path), "children of " + path))

    def get_acl(self, path: str) -> list[Acl]:
        return list(read_acl_list(Reader(self.call(GET_ACL, ustring(path), "acl of " + path).body)) or ())

    def set_acl(self, path: str, acl: Acls, version: int = -1) -> None:
        self.call(SET_ACL, protocol.set_acl(path, acl, version), "set acl of " + path)

    def multi(self, ops: Iterable[tuple[int, bytes]]) -> Reply:
        return self.call(MULTI, multi_body(ops), "multi")

    def ephemerals(self) -> list[str]:
        return _sorted_strings(self.call(GET_EPHEMERALS, ustring("/"), "ephemerals"))

    def add_auth(self, scheme: str, data: bytes | None) -> None:
        self.socket.sendall(protocol.request(AUTH_XID, AUTH, protocol.auth(scheme, data)))
        reply = self.receive()
        if reply.error:
            raise Refused(reply.error, "auth " + scheme)

    def close(self) -> None:
        """End the session."""
        self.call(CLOSE)
        self.socket.close()

    def drop(self) -> None:
        """Leave the connection, keep the session."""
        self.socket.close()
