"""A small ZooKeeper client on a bare socket: any number of requests in flight, no hidden requests, no retries."""
import base64
import hashlib
import socket
import struct
from collections import deque, namedtuple

from .address import connect

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL = 1, 2, 3, 4, 5, 6, 7
PING, GET_CHILDREN, CHECK, MULTI, CREATE2, CREATE_CONTAINER, CREATE_TTL = 11, 12, 13, 14, 15, 19, 21
AUTH, GET_EPHEMERALS, CLOSE = 100, 103, -11
AUTH_XID, PING_XID, EVENT_XID = -4, -2, -1

PERSISTENT, EPHEMERAL, SEQUENTIAL, EPHEMERAL_SEQUENTIAL, CONTAINER, TTL, SEQUENTIAL_TTL = range(7)
NO_NODE, NO_AUTH, BAD_VERSION, NODE_EXISTS, NOT_EMPTY = -101, -102, -103, -110, -111

Stat = namedtuple("Stat", "czxid mzxid ctime mtime version cversion aversion ephemeral_owner data_length num_children pzxid")
Reply = namedtuple("Reply", "xid zxid error body")
OPEN = [(31, "world", "anyone")]

_STAT = struct.Struct(">qqqqiiiqiiq")
_INT = struct.Struct(">i")
_HEAD = struct.Struct(">iqi")


class ConnectionLost(Exception):
    pass


class SessionExpired(Exception):
    pass


class Refused(Exception):
    """The server answered with an error code."""

    def __init__(self, code, what):
        super().__init__("%s: error %d" % (what, code))
        self.code = code


# ---- jute, writing ----------------------------------------------------------
def buffer(data):
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def string(text):
    return buffer(None if text is None else text.encode())


def acl_list(acl):
    return _INT.pack(len(acl)) + b"".join(_INT.pack(p) + string(scheme) + string(who) for p, scheme, who in acl)


def create_body(path, data=b"", flags=PERSISTENT, acl=OPEN, ttl=None):
    body = string(path) + buffer(data) + acl_list(acl) + _INT.pack(flags)
    return body if ttl is None else body + struct.pack(">q", ttl)


def set_body(path, data, version=-1):
    return string(path) + buffer(data) + _INT.pack(version)


def path_version(path, version=-1):
    return string(path) + _INT.pack(version)


def multi_body(ops):
    """`ops`: pairs of opcode and that op's own body."""
    parts = [struct.pack(">ibi", op, 0, -1) + body for op, body in ops]
    return b"".join(parts) + struct.pack(">ibi", -1, 1, -1)


def digest_id(user_and_password):
    """The ACL id that `add_auth("digest", user_and_password)` gives a connection."""
    hashed = base64.b64encode(hashlib.sha1(user_and_password).digest()).decode()
    return "%s:%s" % (user_and_password.split(b":")[0].decode(), hashed)


# ---- jute, reading ----------------------------------------------------------
class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def unpack(self, fmt):
        values = struct.unpack_from(">" + fmt, self.data, self.at)
        self.at += struct.calcsize(">" + fmt)
        return values if len(values) > 1 else values[0]

    def buffer(self):
        size = self.unpack("i")
        if size < 0:
            return None
        data = bytes(self.data[self.at:self.at + size])
        self.at += size
        return data

    def string(self):
        data = self.buffer()
        return None if data is None else data.decode()

    def strings(self):
        return [self.string() for _ in range(max(0, self.unpack("i")))]

    def acl(self):
        return [(self.unpack("i"), self.string(), self.string()) for _ in range(self.unpack("i"))]

    def stat(self):
        values = Stat(*_STAT.unpack_from(self.data, self.at))
        self.at += _STAT.size
        return values


class Session:
    """One connection with its session. `send` and `receive` pipeline; `call` and the named operations do one at a
    time."""

    def __init__(self, port, timeout_ms=10000, session_id=0, password=b"\0" * 16, seen_zxid=0, read_only=False):
        self.socket = connect(port, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.xid = 0
        self.waiting = deque()
        self.events = []
        hello = struct.pack(">iqiq", 0, seen_zxid, timeout_ms, session_id) + buffer(password) + bytes([read_only])
        self.socket.sendall(buffer(hello))
        answer = Reader(self._frame())
        _, self.timeout_ms, self.id = answer.unpack("iiq")
        self.password = answer.buffer()
        self.read_only = answer.unpack("b") == 1
        self.seen_zxid = seen_zxid
        if self.timeout_ms <= 0:
            self.socket.close()
            raise SessionExpired("session 0x%x is unknown to the server" % session_id)

    def _frame(self):
        while True:
            have = len(self.buffer)
            if have >= 4:
                size = _INT.unpack_from(self.buffer)[0]
                if have >= 4 + size:
                    frame, self.buffer = self.buffer[4:4 + size], self.buffer[4 + size:]
                    return frame
            self._fill()

    def _fill(self):
        try:
            chunk = self.socket.recv(1 << 18)
        except TimeoutError:
            raise ConnectionLost("no answer within %s s" % self.socket.gettimeout()) from None
        except OSError as e:
            raise ConnectionLost(str(e)) from None
        if not chunk:
            raise ConnectionLost("closed by the server")
        self.buffer += chunk

    def send_all(self, requests):
        """Send (opcode, body) pairs in one write; their xids."""
        frames, xids = [], []
        for op, body in requests:
            self.xid += 1
            xids.append(self.xid)
            frames.append(struct.pack(">iii", len(body) + 8, self.xid, op) + body)
        try:
            self.socket.sendall(b"".join(frames))
        except OSError as e:
            raise ConnectionLost(str(e)) from None
        self.waiting.extend(xids)
        return xids

    def receive(self):
        """The next reply, in request order; events and pings that came before it are put aside."""
        while True:
            frame = self._frame()
            xid, zxid, error = _HEAD.unpack_from(frame)
            if xid == EVENT_XID:
                event = Reader(frame, 16)
                kind, _ = event.unpack("ii")
                self.events.append((kind, event.string()))
            elif xid != PING_XID:
                break
        if xid != AUTH_XID:
            expected = self.waiting.popleft()
            if xid != expected:
                raise AssertionError("reply to xid %d where %d was due" % (xid, expected))
        self.seen_zxid = max(self.seen_zxid, zxid)
        return Reply(xid, zxid, error, frame[16:])

    def receive_waiting(self):
        """At least one reply, and all that already arrived with it."""
        replies = [self.receive()]
        while len(self.buffer) >= 4 and len(self.buffer) >= 4 + _INT.unpack_from(self.buffer)[0] and self.waiting:
            replies.append(self.receive())
        return replies

    def call(self, op, body=b"", what=None):
        self.send_all([(op, body)])
        reply = self.receive()
        if reply.error:
            raise Refused(reply.error, what or "opcode %d" % op)
        return reply

    # ---- operations, one at a time ----
    def create(self, path, data=b"", flags=PERSISTENT, acl=OPEN, ttl=None):
        op = CREATE_TTL if ttl is not None else CREATE_CONTAINER if flags == CONTAINER else CREATE
        return Reader(self.call(op, create_body(path, data, flags, acl, ttl), "create " + path).body).string()

    def delete(self, path, version=-1):
        self.call(DELETE, path_version(path, version), "delete " + path)

    def set(self, path, data, version=-1):
        return Reader(self.call(SET_DATA, set_body(path, data, version), "set " + path).body).stat()

    def get(self, path):
        reader = Reader(self.call(GET_DATA, string(path) + b"\0", "get " + path).body)
        return reader.buffer(), reader.stat()

    def exists(self, path):
        try:
            return Reader(self.call(EXISTS, string(path) + b"\0", "exists " + path).body).stat()
        except Refused as e:
            if e.code == NO_NODE:
                return None
            raise

    def children(self, path):
        return sorted(Reader(self.call(GET_CHILDREN, string(path) + b"\0", "children of " + path).body).strings())

    def get_acl(self, path):
        return Reader(self.call(GET_ACL, string(path), "acl of " + path).body).acl()

    def set_acl(self, path, acl, version=-1):
        self.call(SET_ACL, string(path) + acl_list(acl) + _INT.pack(version), "set acl of " + path)

    def multi(self, ops):
        return self.call(MULTI, multi_body(ops), "multi")

    def ephemerals(self):
        return sorted(Reader(self.call(GET_EPHEMERALS, string("/"), "ephemerals").body).strings())

    def add_auth(self, scheme, data):
        body = _INT.pack(0) + string(scheme) + buffer(data)
        self.socket.sendall(struct.pack(">iii", len(body) + 8, AUTH_XID, AUTH) + body)
        reply = self.receive()
        if reply.error:
            raise Refused(reply.error, "auth " + scheme)

    def close(self):
        """End the session."""
        self.call(CLOSE)
        self.socket.close()

    def drop(self):
        """Leave the connection, keep the session."""
        self.socket.close()
