"""One TCP connection that carries length-prefixed frames."""

import socket
import struct

_LENGTH = struct.Struct(">i")
PATIENCE = 30.0  # seconds until a missing frame counts as "the server stays silent"


class Silent(Exception):
    """The server neither answered nor closed the connection."""


class Connection:
    def __init__(self, port, source="127.0.0.1"):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(source, 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = bytearray()
        self.start = 0
        self.ended = False

    def send(self, data):
        """Errors are left for `frame` to find: the server may close while it still has replies for us."""
        try:
            self.sock.sendall(data)
        except OSError:
            pass

    def frame(self):
        """The next frame's payload, or None when the server has closed the connection."""
        while True:
            have = len(self.pending) - self.start
            if have >= 4:
                length = _LENGTH.unpack_from(self.pending, self.start)[0]
                if have >= 4 + length:
                    begin = self.start + 4
                    payload = bytes(self.pending[begin : begin + length])
                    self.start = begin + length
                    if self.start == len(self.pending):
                        self.pending = bytearray()
                        self.start = 0
                    return payload
            if not self._fill():
                return None

    def _fill(self):
        if self.ended:
            return False
        try:
            received = self.sock.recv(262144)
        except TimeoutError:
            raise Silent("no frame and no close within %.0f s" % PATIENCE) from None
        except OSError:
            received = b""  # a reset is an end like any other
        if not received:
            self.ended = True
            return False
        self.pending += received
        return True

    def unframed(self):
        """All bytes up to the server's close, for the answers of four letter words."""
        while self._fill():
            pass
        rest = bytes(self.pending[self.start :])
        self.start = len(self.pending)
        return rest

    def leave(self):
        """Ends it and waits until the server has, too. Java's server takes its session's next connection for this one
        if it hears of the end after that has come, and then does not close that one when the session is taken over."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
            while self._fill():
                pass
        except (OSError, Silent):
            pass
        self.close()

    def close(self):
        self.ended = True
        self.sock.close()
