"""Requests large answers, and reads them as fast or as slowly as a check needs."""

import struct

from harness.jute import ustring
from harness.protocol import GET_DATA, PING, PING_XID
from harness.session import ConnectionLost

MULTI_READ = 22
MB = 1 << 20
LARGE = MB - 2000  # a frame holds it


def get(path, watch=False):
    return GET_DATA, ustring(path) + bytes([watch])


def multi_read(paths):
    parts = [struct.pack(">ibi", GET_DATA, 0, -1) + ustring(path) + b"\0" for path in paths]
    return MULTI_READ, b"".join(parts) + struct.pack(">ibi", -1, 1, -1)


def create_large(session, count):
    """Creates this many znodes of a megabyte each. Returns their paths."""
    paths = ["/large-%d" % n for n in range(count)]
    for n, path in enumerate(paths):
        session.create(path, bytes([n % 256]) * LARGE)
    return paths


def ping(session):
    session.socket.sendall(struct.pack(">iii", 8, PING_XID, PING))


class Frames:
    """Reads a session's socket into whole frames, and long ones without copying them again and again."""

    def __init__(self, session):
        self.socket, self.have = session.socket, bytearray(session.buffer)
        session.buffer = b""

    def next(self):
        """The next frame, or None at the end of the connection."""
        head = self._take(4)
        return None if head is None else self._take(struct.unpack(">i", head)[0])

    def _take(self, size):
        while len(self.have) < size:
            try:
                chunk = self.socket.recv(1 << 20)
            except ConnectionResetError:
                chunk = b""
            except TimeoutError:
                raise ConnectionLost("no answer within %s s" % self.socket.gettimeout()) from None
            if not chunk:
                return None
            self.have += chunk
        taken = bytes(self.have[:size])
        del self.have[:size]
        return taken

    def until_end(self):
        """(xid, zxid, error) of all that still comes."""
        heads = []
        while (frame := self.next()) is not None:
            heads.append(struct.unpack_from(">iqi", frame))
        return heads


def rss_mb(server):
    with open("/proc/%d/status" % server.process.pid) as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1]) // 1024
