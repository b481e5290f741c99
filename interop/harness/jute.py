"""The Jute encoding: big-endian numbers, length-prefixed strings, buffers and vectors; -1 is null."""

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_STAT = struct.Struct(">qqqqiiiqiiq")

T = TypeVar("T")


class Stat(NamedTuple):
    """A znode's metadata, in wire order and with ZooKeeper's names."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeralOwner: int
    dataLength: int
    numChildren: int
    pzxid: int


class Malformed(Exception):
    """The bytes end too early or hold an impossible length."""


def text(raw: bytes) -> str:
    """Bytes of a ustring as str; bytes that are not UTF-8 survive as surrogate escapes, so equal str = equal bytes."""
    return raw.decode("utf-8", "surrogateescape")


def raw(string: str | bytes) -> bytes:
    return string if isinstance(string, bytes) else string.encode("utf-8", "surrogateescape")


def int32(value: int) -> bytes:
    return _INT.pack(value)


def int64(value: int) -> bytes:
    return _LONG.pack(value)


def boolean(value: object) -> bytes:
    return b"\x01" if value else b"\x00"


def buffer(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else _INT.pack(len(value)) + value


def ustring(value: str | bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else buffer(raw(value))


def vector(values: Sequence[T] | None, encode: Callable[[T], bytes]) -> bytes:
    if values is None:
        return b"\xff\xff\xff\xff"
    return _INT.pack(len(values)) + b"".join(encode(v) for v in values)


def ustrings(values: Sequence[str | bytes | None] | None) -> bytes:
    return vector(values, ustring)


class Reader:
    """Reads the fields of one record from a frame."""

    __slots__ = ("data", "pos")

    def __init__(self, data: bytes, pos: int = 0) -> None:
        self.data = data
        self.pos = pos

    def _take(self, layout: struct.Struct) -> tuple[Any, ...]:
        try:
            value = layout.unpack_from(self.data, self.pos)
        except struct.error:
            raise Malformed("frame ends at byte %d of a field" % len(self.data)) from None
        self.pos += layout.size
        return value

    def int32(self) -> int:
        return self._take(_INT)[0]

    def int64(self) -> int:
        return self._take(_LONG)[0]

    def boolean(self) -> int:
        """The byte itself, so that values other than 0 and 1 are seen."""
        if self.pos >= len(self.data):
            raise Malformed("frame ends before a boolean")
        self.pos += 1
        return self.data[self.pos - 1]

    def buffer(self) -> bytes | None:
        length = self.int32()
        if length == -1:
            return None
        end = self.pos + length
        if length < 0 or end > len(self.data):
            raise Malformed("length %d in a frame of %d bytes" % (length, len(self.data)))
        value = self.data[self.pos : end]
        self.pos = end
        return value

    def ustring(self) -> str | None:
        value = self.buffer()
        return None if value is None else text(value)

    def vector(self, read: Callable[[], T]) -> tuple[T, ...] | None:
        count = self.int32()
        if count == -1:
            return None
        if count < 0 or count > len(self.data):
            raise Malformed("vector of %d elements in a frame of %d bytes" % (count, len(self.data)))
        return tuple(read() for _ in range(count))

    def stat(self) -> Stat:
        return Stat._make(self._take(_STAT))

    def rest(self) -> bytes:
        value = self.data[self.pos :]
        self.pos = len(self.data)
        return value
