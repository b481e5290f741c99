"""ZooKeeper's client protocol: opcodes, error codes, request bodies, and replies and events as named fields.

A decoded frame is a tuple of (name, value) pairs, so that two of them can be compared field by field. A Stat is a
`Stat` tuple: `side.py` replaces the values that may differ between two servers.
"""

import base64
import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from . import jute
from .jute import Malformed, Reader, boolean, buffer, int32, int64, ustring, ustrings, vector

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL, GET_CHILDREN, SYNC = range(1, 10)
PING, GET_CHILDREN2, CHECK, MULTI, CREATE2, RECONFIG, CHECK_WATCHES, REMOVE_WATCHES, CREATE_CONTAINER = range(11, 20)
CREATE_TTL, MULTI_READ = 21, 22
AUTH, SET_WATCHES, SASL, GET_EPHEMERALS, GET_ALL_CHILDREN_NUMBER, SET_WATCHES2, ADD_WATCH, WHO_AM_I = range(100, 108)
CLOSE = -11

PERSISTENT, EPHEMERAL, SEQUENTIAL, EPHEMERAL_SEQUENTIAL, CONTAINER, TTL, SEQUENTIAL_TTL = range(7)

OPS = {
    "notification": 0,
    "create": CREATE,
    "delete": DELETE,
    "exists": EXISTS,
    "getData": GET_DATA,
    "setData": SET_DATA,
    "getACL": GET_ACL,
    "setACL": SET_ACL,
    "getChildren": GET_CHILDREN,
    "sync": SYNC,
    "ping": PING,
    "getChildren2": GET_CHILDREN2,
    "check": CHECK,
    "multi": MULTI,
    "create2": CREATE2,
    "reconfig": RECONFIG,
    "checkWatches": CHECK_WATCHES,
    "removeWatches": REMOVE_WATCHES,
    "createContainer": CREATE_CONTAINER,
    "createTTL": CREATE_TTL,
    "multiRead": MULTI_READ,
    "auth": AUTH,
    "setWatches": SET_WATCHES,
    "sasl": SASL,
    "getEphemerals": GET_EPHEMERALS,
    "getAllChildrenNumber": GET_ALL_CHILDREN_NUMBER,
    "setWatches2": SET_WATCHES2,
    "addWatch": ADD_WATCH,
    "whoAmI": WHO_AM_I,
    "closeSession": CLOSE,
}
NAMES = {number: name for name, number in OPS.items()}

# Requests that take a zxid even if they are refused.
WRITES = frozenset(
    OPS[name]
    for name in (
        "create",
        "delete",
        "setData",
        "setACL",
        "multi",
        "create2",
        "reconfig",
        "createContainer",
        "createTTL",
        "closeSession",
    )
)

NO_NODE, NO_AUTH, BAD_VERSION, NODE_EXISTS, NOT_EMPTY = -101, -102, -103, -110, -111
ERRORS = {
    0: "OK",
    -2: "RUNTIMEINCONSISTENCY",
    -5: "MARSHALLINGERROR",
    -6: "UNIMPLEMENTED",
    -8: "BADARGUMENTS",
    -12: "UNKNOWNSESSION",
    -101: "NONODE",
    -102: "NOAUTH",
    -103: "BADVERSION",
    -108: "NOCHILDRENFOREPHEMERALS",
    -110: "NODEEXISTS",
    -111: "NOTEMPTY",
    -112: "SESSIONEXPIRED",
    -114: "INVALIDACL",
    -115: "AUTHFAILED",
    -118: "SESSIONMOVED",
    -121: "NOWATCHER",
    -123: "RECONFIGDISABLED",
    -125: "QUOTAEXCEEDED",
}
EVENTS = {-1: "None", 1: "NodeCreated", 2: "NodeDeleted", 3: "NodeDataChanged", 4: "NodeChildrenChanged"}

EVENT_XID, PING_XID, AUTH_XID = -1, -2, -4


class Acl(NamedTuple):
    """One entry of an access control list."""

    perms: int
    scheme: str | None
    id: str | None


Text = str | bytes | None
Acls = Sequence[tuple[int, Text, Text]] | None
# The fields of a decoded record, by name.
Fields = tuple[tuple[str, Any], ...]

OPEN = (Acl(31, "world", "anyone"),)


def name_of(op: int) -> str:
    return NAMES.get(op, "opcode %d" % op)


def error_name(code: int) -> str:
    return "%d %s" % (code, ERRORS.get(code, "?"))


def frame(payload: bytes) -> bytes:
    return int32(len(payload)) + payload


def request(xid: int, op: int, body: bytes) -> bytes:
    """The frame of one request."""
    return frame(int32(xid) + int32(op) + body)


# ---- request bodies


def _acl(entry: tuple[int, Text, Text]) -> bytes:
    perms, scheme, identity = entry
    return int32(perms) + ustring(scheme) + ustring(identity)


def acl_list(entries: Acls) -> bytes:
    return vector(entries, _acl)


def create(path: Text, data: bytes | None, acl: Acls, flags: int) -> bytes:
    return ustring(path) + buffer(data) + acl_list(acl) + int32(flags)


def create_ttl(path: Text, data: bytes | None, acl: Acls, flags: int, ttl: int) -> bytes:
    return create(path, data, acl, flags) + int64(ttl)


def create_body(
    path: Text, data: bytes | None = b"", flags: int = PERSISTENT, acl: Acls = OPEN, ttl: int | None = None
) -> bytes:
    """The body of a create; with a TTL in milliseconds, of a createTTL."""
    return create(path, data, acl, flags) if ttl is None else create_ttl(path, data, acl, flags, ttl)


def path_version(path: Text, version: int = -1) -> bytes:
    return ustring(path) + int32(version)


def path_watch(path: Text, watch: object = False) -> bytes:
    return ustring(path) + boolean(watch)


def path_int(path: Text, value: int) -> bytes:
    return ustring(path) + int32(value)


def set_body(path: Text, data: bytes | None, version: int = -1) -> bytes:
    return ustring(path) + buffer(data) + int32(version)


def set_acl(path: Text, acl: Acls, version: int) -> bytes:
    return ustring(path) + acl_list(acl) + int32(version)


def auth(scheme: Text, data: bytes | None, kind: int = 0) -> bytes:
    return int32(kind) + ustring(scheme) + buffer(data)


def set_watches(relative_zxid: int, lists: Iterable[Sequence[str]]) -> bytes:
    return int64(relative_zxid) + b"".join(ustrings(paths) for paths in lists)


def reconfig(joining: Text, leaving: Text, members: Text, config_id: int) -> bytes:
    return ustring(joining) + ustring(leaving) + ustring(members) + int64(config_id)


def multi_header(kind: int, done: object, err: int) -> bytes:
    return int32(kind) + boolean(done) + int32(err)


MULTI_END = multi_header(-1, True, -1)


def multi_body(ops: Iterable[tuple[int, bytes]]) -> bytes:
    """ops: pairs of (opcode, body)."""
    return b"".join(multi_header(op, False, -1) + body for op, body in ops) + MULTI_END


def digest_id(user_and_password: bytes) -> str:
    """The ACL id that `add_auth("digest", user_and_password)` gives a connection."""
    hashed = base64.b64encode(hashlib.sha1(user_and_password).digest()).decode()
    return "%s:%s" % (user_and_password.split(b":")[0].decode(), hashed)


def connect(
    timeout: int,
    session_id: int = 0,
    password: bytes | None = b"\0" * 16,
    last_zxid: int = 0,
    read_only: bool | None = False,
    protocol: int = 0,
) -> bytes:
    """read_only=None leaves the byte out, as clients before 3.4 do."""
    body = int32(protocol) + int64(last_zxid) + int32(timeout) + int64(session_id) + buffer(password)
    return body if read_only is None else body + boolean(read_only)


# ---- replies


def _read_acl(r: Reader) -> Acl:
    return Acl(r.int32(), r.ustring(), r.ustring())


def read_acl_list(r: Reader) -> tuple[Acl, ...] | None:
    return r.vector(lambda: _read_acl(r))


def _in_any_order(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(sorted(values, key=lambda v: (v is None, v)))


def _path(r: Reader) -> Fields:
    return (("path", r.ustring()),)


def _path_stat(r: Reader) -> Fields:
    return ("path", r.ustring()), ("stat", r.stat())


def _only_stat(r: Reader) -> Fields:
    return (("stat", r.stat()),)


def _data_stat(r: Reader) -> Fields:
    return ("data", r.buffer()), ("stat", r.stat())


def _children(r: Reader) -> Fields:
    return (("children", _in_any_order(r.vector(r.ustring))),)


def _children_stat(r: Reader) -> Fields:
    return _children(r) + (("stat", r.stat()),)


def _acl_stat(r: Reader) -> Fields:
    return ("acl", read_acl_list(r)), ("stat", r.stat())


def _nothing(_r: Reader) -> Fields:
    return ()


def _error_body(r: Reader) -> Fields:
    return (("errorBody", r.int32()),)


_MULTI_BODIES: dict[int, Callable[[Reader], Fields]] = {
    1: _path,
    15: _path_stat,
    2: _nothing,
    5: _only_stat,
    13: _nothing,
    8: _children,
    4: _data_stat,
    -1: _error_body,
}


def _multi(r: Reader) -> Fields:
    results: list[Fields] = []
    while True:
        kind, done, err = r.int32(), r.boolean(), r.int32()
        if done:
            results.append((("end", (kind, done, err)),))
            return (("results", tuple(results)),)
        if kind not in _MULTI_BODIES:
            raise Malformed("result of type %d in a multi reply" % kind)
        results.append((("type", kind), ("err", err)) + _MULTI_BODIES[kind](r))


REPLIES: dict[str, Callable[[Reader], Fields]] = {
    "create": _path,
    "create2": _path_stat,
    "createContainer": _path_stat,
    "createTTL": _path_stat,
    "delete": _nothing,
    "exists": _only_stat,
    "getData": _data_stat,
    "setData": _only_stat,
    "getACL": _acl_stat,
    "setACL": _only_stat,
    "getChildren": _children,
    "getChildren2": _children_stat,
    "sync": _path,
    "ping": _nothing,
    "multi": _multi,
    "multiRead": _multi,
    "checkWatches": _nothing,
    "removeWatches": _nothing,
    "auth": _nothing,
    "setWatches": _nothing,
    "setWatches2": _nothing,
    "closeSession": _nothing,
    "sasl": lambda r: (("token", r.buffer()),),
    "getEphemerals": lambda r: (("ephemerals", _in_any_order(r.vector(r.ustring))),),
    "getAllChildrenNumber": lambda r: (("totalNumber", r.int32()),),
    "addWatch": _error_body,
    "whoAmI": lambda r: (("clientInfo", _in_any_order(r.vector(lambda: (r.ustring(), r.ustring())))),),
    "reconfig": _data_stat,
}
REPLY_OF_OP = {OPS[name]: decode for name, decode in REPLIES.items()}

_HEADER = struct.Struct(">iqi")


def reply_header(data: bytes) -> tuple[int, int, int] | None:
    """(xid, zxid, err), or None for a frame that is too short to hold one."""
    return _HEADER.unpack_from(data, 0) if len(data) >= 16 else None


def decode_event(data: bytes) -> Fields:
    r = Reader(data)
    _xid, zxid, err = r.int32(), r.int64(), r.int32()
    fields: Fields
    try:
        fields = (
            ("kind", "event"),
            ("zxid", zxid),
            ("err", err),
            ("type", r.int32()),
            ("state", r.int32()),
            ("path", r.ustring()),
        )
    except Malformed as problem:
        fields = (("kind", "event"), ("zxid", zxid), ("err", err), ("undecodable", str(problem)))
    return _with_rest(fields, r)


def decode_reply(data: bytes, op: int) -> Fields:
    """The fields of a reply to `op`; bytes after the last field show up as an extra one."""
    header = reply_header(data)
    if header is None:
        return (("kind", "reply"), ("shortFrame", data))
    xid, zxid, err = header
    fields = (("kind", "reply"), ("xid", xid), ("zxid", zxid), ("err", err))
    r = Reader(data, 16)
    decode = REPLY_OF_OP.get(op, _nothing)
    # An error has no body, but for a SASL step and a multiRead that breaks off.
    if err != 0 and (op not in (OPS["multiRead"], OPS["sasl"]) or len(data) == 16):
        return _with_rest(fields, r)
    try:
        return _with_rest(fields + decode(r), r)
    except Malformed as problem:
        return fields + (("undecodable", str(problem)), ("body", data[16:]))


def _with_rest(fields: Fields, r: Reader) -> Fields:
    left = r.rest()
    return fields + (("bytesAfterRecord", left),) if left else fields


def decode_connect(data: bytes) -> Fields:
    r = Reader(data)
    try:
        fields = (
            ("kind", "connected"),
            ("protocolVersion", r.int32()),
            ("timeOut", r.int32()),
            ("sessionId", r.int64()),
            ("password", r.buffer()),
        )
    except Malformed as problem:
        return (("kind", "connected"), ("undecodable", str(problem)), ("body", data))
    return fields + (("readOnlyByte", r.rest()),)


def password_of(session_id: int) -> bytes:
    """16 bytes of Java's linear congruential generator, seeded with the session id and a fixed constant."""
    mask = (1 << 48) - 1
    state = ((session_id ^ 0xB3415C00) ^ 0x5DEECE66D) & mask
    out = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & mask
        out += struct.pack("<I", (state >> 16) & 0xFFFFFFFF)
    return out


assert password_of(0x01000019EB460005).hex() == "b7435b1e2527b0c5c043b4117845d1f6"
assert jute.text(b"\xed\xa0\xbd") != jute.text(b"\xef\xbf\xbd")
