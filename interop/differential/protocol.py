"""Opcodes, request bodies, and the decoding of replies and events into named fields.

A decoded frame is a tuple of (name, value) pairs, so that two of them can be compared field by field. A Stat is a
`Stat` tuple: `side.py` replaces the values that may differ between two servers.
"""
import struct
from collections import namedtuple

import jute
from jute import Malformed, Reader, boolean, buffer, int32, int64, ustring, ustrings, vector

OPS = {
    "notification": 0, "create": 1, "delete": 2, "exists": 3, "getData": 4, "setData": 5, "getACL": 6, "setACL": 7,
    "getChildren": 8, "sync": 9, "ping": 11, "getChildren2": 12, "check": 13, "multi": 14, "create2": 15,
    "reconfig": 16, "checkWatches": 17, "removeWatches": 18, "createContainer": 19, "createTTL": 21, "multiRead": 22,
    "auth": 100, "setWatches": 101, "sasl": 102, "getEphemerals": 103, "getAllChildrenNumber": 104,
    "setWatches2": 105, "addWatch": 106, "whoAmI": 107, "closeSession": -11,
}
NAMES = {number: name for name, number in OPS.items()}

# What goes through the write path and takes a zxid even when it fails.
WRITES = frozenset(
    OPS[name]
    for name in ("create", "delete", "setData", "setACL", "multi", "create2", "reconfig", "createContainer",
                 "createTTL", "closeSession")
)

ERRORS = {
    0: "OK", -2: "RUNTIMEINCONSISTENCY", -5: "MARSHALLINGERROR", -6: "UNIMPLEMENTED", -8: "BADARGUMENTS",
    -12: "UNKNOWNSESSION", -101: "NONODE", -102: "NOAUTH", -103: "BADVERSION", -108: "NOCHILDRENFOREPHEMERALS",
    -110: "NODEEXISTS", -111: "NOTEMPTY", -112: "SESSIONEXPIRED", -114: "INVALIDACL", -115: "AUTHFAILED",
    -118: "SESSIONMOVED", -121: "NOWATCHER", -123: "RECONFIGDISABLED", -125: "QUOTAEXCEEDED",
}
EVENTS = {-1: "None", 1: "NodeCreated", 2: "NodeDeleted", 3: "NodeDataChanged", 4: "NodeChildrenChanged"}

EVENT_XID = -1
PING_XID = -2

Acl = namedtuple("Acl", "perms scheme id")
Stat = namedtuple(
    "Stat",
    "czxid mzxid ctime mtime version cversion aversion ephemeralOwner dataLength numChildren pzxid",
)


def name_of(op):
    return NAMES.get(op, "opcode %d" % op)


def error_name(code):
    return "%d %s" % (code, ERRORS.get(code, "?"))


def frame(payload):
    return int32(len(payload)) + payload


# ---- request bodies

def _acl(entry):
    return int32(entry.perms) + ustring(entry.scheme) + ustring(entry.id)


def acls(entries):
    return vector(entries, _acl)


def create(path, data, acl, flags):
    return ustring(path) + buffer(data) + acls(acl) + int32(flags)


def create_ttl(path, data, acl, flags, ttl):
    return create(path, data, acl, flags) + int64(ttl)


def path_version(path, version):
    return ustring(path) + int32(version)


def path_watch(path, watch):
    return ustring(path) + boolean(watch)


def path_int(path, value):
    return ustring(path) + int32(value)


def set_data(path, data, version):
    return ustring(path) + buffer(data) + int32(version)


def set_acl(path, acl, version):
    return ustring(path) + acls(acl) + int32(version)


def auth(scheme, data, kind=0):
    return int32(kind) + ustring(scheme) + buffer(data)


def set_watches(relative_zxid, lists):
    return int64(relative_zxid) + b"".join(ustrings(paths) for paths in lists)


def reconfig(joining, leaving, members, config_id):
    return ustring(joining) + ustring(leaving) + ustring(members) + int64(config_id)


def multi_header(kind, done, err):
    return int32(kind) + boolean(done) + int32(err)


MULTI_END = multi_header(-1, True, -1)


def multi(ops):
    """ops: pairs of (opcode, body)."""
    return b"".join(multi_header(op, False, -1) + body for op, body in ops) + MULTI_END


def connect(timeout, session_id=0, password=b"\0" * 16, last_zxid=0, read_only=False, protocol=0):
    """read_only=None leaves the byte out, as clients before 3.4 do."""
    body = int32(protocol) + int64(last_zxid) + int32(timeout) + int64(session_id) + buffer(password)
    return body if read_only is None else body + boolean(read_only)


# ---- replies

def _read_acl(r):
    return Acl(r.int32(), r.ustring(), r.ustring())


def _stat(r):
    return Stat._make(r.stat())


def _in_any_order(values):
    return None if values is None else tuple(sorted(values, key=lambda v: (v is None, v)))


def _path(r):
    return (("path", r.ustring()),)


def _path_stat(r):
    return ("path", r.ustring()), ("stat", _stat(r))


def _only_stat(r):
    return (("stat", _stat(r)),)


def _data_stat(r):
    return ("data", r.buffer()), ("stat", _stat(r))


def _children(r):
    return (("children", _in_any_order(r.vector(r.ustring))),)


def _children_stat(r):
    return _children(r) + (("stat", _stat(r)),)


def _acl_stat(r):
    return ("acl", r.vector(lambda: _read_acl(r))), ("stat", _stat(r))


def _nothing(_r):
    return ()


def _error_body(r):
    return (("errorBody", r.int32()),)


_MULTI_BODIES = {1: _path, 15: _path_stat, 2: _nothing, 5: _only_stat, 13: _nothing, 8: _children, 4: _data_stat,
                 -1: _error_body}


def _multi(r):
    results = []
    while True:
        kind, done, err = r.int32(), r.boolean(), r.int32()
        if done:
            results.append((("end", (kind, done, err)),))
            return (("results", tuple(results)),)
        if kind not in _MULTI_BODIES:
            raise Malformed("result of type %d in a multi reply" % kind)
        results.append((("type", kind), ("err", err)) + _MULTI_BODIES[kind](r))


REPLIES = {
    "create": _path, "create2": _path_stat, "createContainer": _path_stat, "createTTL": _path_stat,
    "delete": _nothing, "exists": _only_stat, "getData": _data_stat, "setData": _only_stat, "getACL": _acl_stat,
    "setACL": _only_stat, "getChildren": _children, "getChildren2": _children_stat, "sync": _path,
    "ping": _nothing, "multi": _multi, "multiRead": _multi, "checkWatches": _nothing, "removeWatches": _nothing,
    "auth": _nothing, "setWatches": _nothing, "setWatches2": _nothing, "closeSession": _nothing,
    "sasl": lambda r: (("token", r.buffer()),),
    "getEphemerals": lambda r: (("ephemerals", _in_any_order(r.vector(r.ustring))),),
    "getAllChildrenNumber": lambda r: (("totalNumber", r.int32()),),
    "addWatch": _error_body,
    "whoAmI": lambda r: (("clientInfo", _in_any_order(r.vector(lambda: (r.ustring(), r.ustring())))),),
    "reconfig": _data_stat,
}
REPLY_OF_OP = {OPS[name]: decode for name, decode in REPLIES.items()}

_HEADER = struct.Struct(">iqi")


def reply_header(data):
    """(xid, zxid, err), or None for a frame that is too short to hold one."""
    return _HEADER.unpack_from(data, 0) if len(data) >= 16 else None


def decode_event(data):
    r = Reader(data, 16)
    xid, zxid, err = reply_header(data)
    try:
        fields = (("kind", "event"), ("zxid", zxid), ("err", err), ("type", r.int32()), ("state", r.int32()),
                  ("path", r.ustring()))
    except Malformed as problem:
        fields = (("kind", "event"), ("zxid", zxid), ("err", err), ("undecodable", str(problem)))
    return _with_rest(fields, r)


def decode_reply(data, op):
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


def _with_rest(fields, r):
    left = r.rest()
    return fields + (("bytesAfterRecord", left),) if left else fields


def decode_connect(data):
    r = Reader(data)
    try:
        fields = (("kind", "connected"), ("protocolVersion", r.int32()), ("timeOut", r.int32()),
                  ("sessionId", r.int64()), ("password", r.buffer()))
    except Malformed as problem:
        return (("kind", "connected"), ("undecodable", str(problem)), ("body", data))
    return fields + (("readOnlyByte", r.rest()),)


def password_of(session_id):
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
