"""Random parts of requests: names, odd paths, data, ACL lists and users."""

import base64
import hashlib

from harness.protocol import Acl

ALL = 31
OPEN = (Acl(ALL, "world", "anyone"),)
USERS = (b"alice:secret", b"bob:pw", b"carol:a:b", "j\u00f6rg:\u00fc".encode())
SUPER = b"super:admin"
# What a digest provider makes of auth data that is not of the usual form.
ODD_USERS = (b"nocolon", b"", b":", b":pw", b"bob:", b"a\nb:c", "\U0001f600:x".encode())


def digest_id(user):
    return "%s:%s" % (user.decode().split(":", 1)[0], base64.b64encode(hashlib.sha1(user).digest()).decode())


NAMES = (
    "a",
    "b",
    "c",
    "d",
    "e",
    "node",
    "n0",
    "\u00e9",
    "\u65e5\u672c",
    "a b",
    "..x",
    "x.",
    "A",
    "-",
    "a\u00a0b",
    "queue-",
    "\ufeffbom",
    "lock",
)

# Every rule of path validation, and what each operation makes of a path it does not validate.
ODD_PATHS = (
    "",
    "a",
    "nope/x",
    "/",
    "//",
    "///",
    "/a/",
    "/a//b",
    "//a",
    "/.",
    "/..",
    "/a/.",
    "/a/..",
    "/./x",
    "/../x",
    "/a/./b",
    "/a/../b",
    "/a\0b",
    "/\0",
    "\0",
    "/\x01",
    "/a\x1fb",
    "/\x7f",
    "/\x80",
    "/\x9f",
    "/\u00a0",
    "/\ud7ff",
    "/\ue000",
    "/\uf8ff",
    "/\uf900",
    "/\uffef",
    "/\ufff0",
    "/\uffff",
    "/\U0001f600",
    "/a/\U00010000b",
    b"/\xff",
    b"/a\xc3",
    "/zookeeper",
    "/zookeeper/",
    "/zookeeper/quota",
    "/zookeeper/config",
    "/zookeeper/nope",
    "/zookeeper/config/x",
    "/missing/x",
    "/missing/x/",
    "/...",
    "/a/...",
    " ",
    "/ ",
    "/a/ ",
)

GOOD_IPS = (
    "127.0.0.1",
    "127.0.0.0/8",
    "127.0.0.2",
    "127.0.0.2/31",
    "127.0.0.3/32",
    "10.0.0.0/8",
    "0.0.0.0/0",
    "127.0.0.1/0",
    "::1",
)
BAD_IPS = (
    "127.0.0",
    "127.0.0.1/33",
    "127.0.0.1/-1",
    "127.0.0.1/x",
    "127.0.0.1/",
    "/8",
    "",
    "localhost",
    "256.0.0.1",
    "127.0.0.1/8/9",
    "1.2.3.4.5",
    "::1/129",
    "127.0.0.01",
    " 127.0.0.1",
)
GOOD_DIGEST_IDS = ("a:b", "a:b:", ":b", "a:b::", " : ", "a:b=c/d", "a:\u00e9")
BAD_DIGEST_IDS = ("", "a", "a:", "a:b:c", ":", "::", "::b")


def data(rng):
    """None (null) and empty are different things; sizes up to a few pages, seldom more."""
    roll = rng.random()
    if roll < 0.08:
        return None
    if roll < 0.16:
        return b""
    if roll < 0.93:
        return rng.randbytes(rng.randrange(1, 40))
    if roll < 0.998:
        return rng.randbytes(rng.randrange(40, 3000))
    return rng.randbytes(rng.randrange(3000, 60000))


def good_acl(rng):
    """A list that the server takes, and whether it leaves the node open to everybody."""
    if rng.random() < 0.8:
        return OPEN, True
    users = [digest_id(u) for u in USERS]
    some = rng.randrange(0, 32)
    lists = (
        (Acl(1, "world", "anyone"),),
        (Acl(30, "world", "anyone"),),
        (Acl(2, "world", "anyone"),),
        (Acl(some, "world", "anyone"),),
        (Acl(ALL & ~(1 << rng.randrange(5)), "world", "anyone"),),
        (Acl(rng.choice((0, 32, 63, -1, 1 << 30, -(1 << 31))), "world", "anyone"),),
        (Acl(ALL, "digest", rng.choice(users)),),
        (Acl(ALL, "digest", rng.choice(users)), Acl(1, "world", "anyone")),
        (Acl(16, "digest", rng.choice(users)), Acl(15, "world", "anyone")),
        (Acl(some, "digest", rng.choice(GOOD_DIGEST_IDS)), Acl(ALL, "digest", users[0])),
        (Acl(ALL, "ip", rng.choice(GOOD_IPS)),),
        (Acl(some, "ip", rng.choice(GOOD_IPS)), Acl(1, "world", "anyone")),
        OPEN + OPEN,
        (Acl(1, "world", "anyone"), Acl(1, "world", "anyone"), Acl(ALL, "world", "anyone")),
        (Acl(3, "world", "anyone"), Acl(28, "world", "anyone")),
        (Acl(ALL, "auth", rng.choice(("", "anything"))),),
        (Acl(1, "auth", ""), Acl(ALL, "world", "anyone")),
        (Acl(some, "auth", ""), Acl(ALL, "auth", ""), Acl(1, "world", "anyone")),
    )
    return rng.choice(lists), False


def bad_acl(rng):
    return rng.choice(
        (
            None,
            (),
            (Acl(ALL, "world", "someone"),),
            (Acl(ALL, "world", ""),),
            (Acl(ALL, "nope", "anyone"),),
            (Acl(ALL, "", ""),),
            (Acl(ALL, None, "anyone"),),
            (Acl(ALL, None, None),),
            (Acl(ALL, "super", ""),),
            (Acl(ALL, "World", "anyone"),),
            (Acl(ALL, "x509", "CN=a"),),
            (Acl(ALL, "sasl", "a"),),
            (Acl(ALL, "digest", rng.choice(BAD_DIGEST_IDS)),),
            (Acl(ALL, "ip", rng.choice(BAD_IPS)),),
            OPEN + (Acl(ALL, "digest", rng.choice(BAD_DIGEST_IDS)),),
            OPEN + (Acl(ALL, "ip", rng.choice(BAD_IPS)),),
            OPEN + (Acl(ALL, "nope", ""),),
        )
    )


def acl(rng):
    if rng.random() < 0.07:
        return bad_acl(rng), False
    return good_acl(rng)
