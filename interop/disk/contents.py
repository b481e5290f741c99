"""Writes everything that a data folder can hold through one server, and checks it at another."""

import time
from collections import namedtuple

from harness.jute import Reader
from harness.outcome import expect, expect_equal
from harness.protocol import (
    BAD_VERSION,
    CHECK,
    CONTAINER,
    CREATE,
    DELETE,
    EPHEMERAL,
    EPHEMERAL_SEQUENTIAL,
    NO_NODE,
    NODE_EXISTS,
    OPEN,
    SEQUENTIAL,
    SEQUENTIAL_TTL,
    SET_DATA,
    TTL,
    create_body,
    digest_id,
    path_version,
    set_body,
)
from harness.session import Refused, Session, SessionExpired
from harness.tree import differences, dump

HOUR_MS = 3600 * 1000
SHORT_TTL_MS = 1500
LIVE_TIMEOUT_MS = 40000
LEFT_TIMEOUT_MS = 20000
USER = b"bob:secret"
SETTINGS = {"maxSessionTimeout": LIVE_TIMEOUT_MS}

# the contents that a later server must have
Known = namedtuple("Known", "tree zxid live left closed next_names")
Ended = namedtuple("Ended", "id password ephemerals")


def write(port):
    """Fill a fresh server; the sessions in the answer are left open, without a connection."""
    live = Session(port, LIVE_TIMEOUT_MS)
    live.add_auth("digest", USER)
    left = Session(port, LEFT_TIMEOUT_MS)
    passing = Session(port, LIVE_TIMEOUT_MS)

    _data(live)
    next_names = _sequences(live)
    _containers_and_ttl(live)
    _acls(live)
    _quota(live)
    _multis(live)
    _refusals(live)

    live.create("/live", b"", acl=OPEN)
    for s, name in ((live, "live"), (left, "left"), (passing, "passing")):
        s.create("/live/" + name, b"x", EPHEMERAL)
        s.create("/live/%s-" % name, b"", EPHEMERAL_SEQUENTIAL)
    closed = Ended(passing.id, passing.password, passing.ephemerals())
    passing.close()
    _churn(live)

    known = Known(
        tree=dump(live),
        zxid=live.seen_zxid,
        closed=closed,
        next_names=next_names,
        live=Ended(live.id, live.password, live.ephemerals()),
        left=Ended(left.id, left.password, left.ephemerals()),
    )
    live.drop()
    left.drop()
    return known


def _data(s):
    s.create("/data")
    for name, data in (("null", None), ("empty", b""), ("bytes", bytes(range(256))), ("large", b"\xa5" * 900_000)):
        s.create("/data/" + name, data)
    s.create("/data/to-null", b"was here")
    s.set("/data/to-null", None)
    for n in range(7):
        s.set("/data/bytes", b"version %d" % n)
    for name in ("two words", "\u00fcml\u00e4ut", "\u6f22\u5b57", "a" * 300, "#=%", "..."):
        s.create("/data/" + name, name.encode())
    path = "/deep"
    for level in range(40):
        s.create(path, b"%d" % level)
        path += "/d"
    s.create("/wide")
    _all(s, [(CREATE, create_body("/wide/%d" % n, b"%d" % n)) for n in range(500)])
    _all(s, [(DELETE, path_version("/wide/%d" % n)) for n in range(0, 500, 3)])


def _sequences(s):
    s.create("/seq")
    names = [s.create("/seq/n-", b"", SEQUENTIAL) for _ in range(5)]
    s.delete(names[4])
    s.create("/seq/plain")
    s.create("/seq-bare")
    s.create("/seq-bare/", b"", SEQUENTIAL)
    return {"/seq/n-": "/seq/n-0000000006", "/seq-bare/": "/seq-bare/0000000001"}


def _containers_and_ttl(s):
    for name in ("unused", "used", "emptied"):
        s.create("/container-" + name, b"c", CONTAINER)
    s.create("/container-used/child")
    s.create("/container-emptied/child")
    s.delete("/container-emptied/child")
    s.create("/ttl-long", b"t", TTL, ttl=HOUR_MS)
    s.create("/ttl-longest", b"t", TTL, ttl=(1 << 40) - 1)
    s.create("/ttl-short", b"t", TTL, ttl=SHORT_TTL_MS)
    s.create("/ttl-seq-", b"t", SEQUENTIAL_TTL, ttl=HOUR_MS)


def _acls(s):
    digest = [(31, "digest", digest_id(USER))]
    many = [(1, "world", "anyone"), (31, "auth", ""), (3, "ip", "127.0.0.0/8"), (31, "digest", "eve:other=")]
    s.create("/acl")
    s.create("/acl/read-only", b"r", acl=[(1, "world", "anyone"), (16, "ip", "127.0.0.1")])
    s.create("/acl/mine", b"m", acl=[(31, "auth", "")])
    for n in range(3):
        s.create("/acl/many-%d" % n, b"", acl=many)
    s.create("/acl/changed", b"")
    for acl in (many, digest, many[:3], [(31, "ip", "127.0.0.1"), (1, "world", "anyone")]):
        s.set_acl("/acl/changed", acl)
    s.create("/acl/forgotten", b"", acl=[(21, "ip", "127.0.0.1"), (31, "auth", "")])
    s.delete("/acl/forgotten")


def _quota(s):
    s.create("/limited")
    s.create("/limited/before", b"12345")
    s.create("/zookeeper/quota/limited")
    s.create("/zookeeper/quota/limited/zookeeper_limits", b"count=100,bytes=5000")
    s.create("/zookeeper/quota/limited/zookeeper_stats", b"count=0,bytes=0")
    s.create("/limited/after", b"1234567")
    s.set("/limited/before", b"1")


def _multis(s):
    s.create("/multi")
    s.multi(
        [
            (CREATE, create_body("/multi/a", b"1")),
            (CREATE, create_body("/multi/a/b", b"2")),
            (SET_DATA, set_body("/multi/a", b"3", 0)),
            (CHECK, path_version("/multi/a", 1)),
            (CREATE, create_body("/multi/e-", b"", EPHEMERAL_SEQUENTIAL)),
            (CREATE, create_body("/multi/t", b"")),
            (DELETE, path_version("/multi/t")),
        ]
    )
    failed = s.multi([(SET_DATA, set_body("/multi/a", b"must not stay")), (CHECK, path_version("/multi/a", 77))])
    reader = Reader(failed.body)
    expect_equal((reader.int32(), reader.boolean(), reader.int32()), (-1, 0, 0), "first result of a failed multi")
    s.multi([])


def _refusals(s):
    for code, op, body in (
        (BAD_VERSION, SET_DATA, set_body("/multi/a", b"must not stay", 99)),
        (NODE_EXISTS, CREATE, create_body("/multi/a", b"must not stay")),
        (NO_NODE, DELETE, path_version("/nowhere")),
    ):
        try:
            s.call(op, body)
        except Refused as e:
            expect_equal(e.code, code, "refusal of opcode %d" % op)
        else:
            expect(False, "opcode %d was not refused with %d" % (op, code))


def _churn(s):
    """Enough writes that a small snapCount makes snapshots in between, and leaves a tail of log.

    Each new znode has an ACL of its own. Java writes the ACLs of a snapshot before the znodes, so its snapshots can
    have znodes whose ACL they lack."""
    s.create("/churn", b"0")
    owner = (31, "digest", digest_id(USER))
    for burst in range(6):
        sets = [(SET_DATA, set_body("/churn", b"%d" % n)) for n in range(50)]
        bodies = [
            create_body("/churn/%d-%d" % (burst, n), b"", acl=[owner, (1, "ip", "10.%d.%d.1" % (burst, n))])
            for n in range(50)
        ]
        creates = [(CREATE, body) for body in bodies]
        _all(s, [request for pair in zip(sets, creates, strict=True) for request in pair])
        time.sleep(0.05)  # a snapshot is written beside the writes


def _all(s, requests):
    s.send_all(requests)
    for _ in requests:
        reply = s.receive()
        if reply.error:
            raise Refused(reply.error, "xid %d" % reply.xid)


def look(port, known):
    """Compare what a server holds with what is known. Ends no session and writes only the session of its own."""
    s = Session(port, LIVE_TIMEOUT_MS)
    s.add_auth("digest", USER)
    found = dump(s)
    s.close()
    lines = differences(known.tree, found)
    expect(not lines, "the tree is another one:\n  " + "\n  ".join(lines))


def look_at_sessions(port, known, wait_for_expiry):
    """The live session goes on, a forged and a closed one do not, the one that nobody takes up expires."""
    for id, password, why in (
        (known.live.id, b"\1" * 16, "with a wrong password"),
        (known.closed.id, known.closed.password, "that was closed"),
    ):
        try:
            Session(port, LIVE_TIMEOUT_MS, id, password)
        except SessionExpired:
            continue
        expect(False, "a session %s could be taken up" % why)
    live = Session(port, LIVE_TIMEOUT_MS, known.live.id, known.live.password, known.zxid)
    expect_equal(live.id, known.live.id, "id of the session taken up")
    expect_equal(live.ephemerals(), known.live.ephemerals, "ephemerals of the session taken up")
    if wait_for_expiry:
        until = time.monotonic() + 3 * LEFT_TIMEOUT_MS / 1000
        while any(live.exists(path) for path in known.left.ephemerals):
            expect(time.monotonic() < until, "the session that nobody took up does not expire")
            time.sleep(0.2)
    else:
        left = Session(port, LEFT_TIMEOUT_MS, known.left.id, known.left.password, known.zxid)
        expect_equal(left.ephemerals(), known.left.ephemerals, "ephemerals of the second session taken up")
        left.close()
    for prefix, expected in known.next_names.items():
        expect_equal(live.create(prefix, b"", SEQUENTIAL), expected, "next sequential name")
    live.close()


def look_at_cleaning(port):
    """With a short check interval: the emptied container and the outlived TTL node go, all others of their kind
    stay."""
    s = Session(port)
    until = time.monotonic() + 10
    while s.exists("/container-emptied") or s.exists("/ttl-short"):
        expect(time.monotonic() < until, "/container-emptied or /ttl-short is not removed")
        time.sleep(0.1)
    for path in ("/container-unused", "/container-used", "/ttl-long", "/ttl-longest"):
        expect(s.exists(path), "%s was removed" % path)
    expect(any(name.startswith("ttl-seq-") for name in s.children("/")), "the sequential TTL node was removed")
    for path in ("/live/live", "/live/left"):
        expect(not s.exists(path), "%s outlived its session" % path)
    s.close()
