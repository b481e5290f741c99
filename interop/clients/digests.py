"""`DigestAuthenticationProvider.digestAlg`: ids, access and the super user with each hash that Java has for them."""

import base64
import hashlib

from harness.outcome import Mismatch, conclude, expect_equal
from harness.protocol import NO_AUTH
from harness.server import NotServing, Server, arguments, work_folder
from harness.session import Refused, Session

KEY = "DigestAuthenticationProvider."
HASHES = {None: "sha1", "SHA1": "sha1", "SHA-256": "sha256", "SHA-512": "sha512", "SHA3-256": "sha3_256"}
SUPER, USERS = b"super:test", (b"bob:pw", b"ann:with:colons")


def digest_id(name, user_and_password):
    """`user:` and the hash of "user:password" as a whole, in base64 with its `=`."""
    hashed = base64.b64encode(hashlib.new(name, user_and_password).digest()).decode()
    return "%s:%s" % (user_and_password.split(b":")[0].decode(), hashed)


def code(act, *arguments_):
    try:
        act(*arguments_)
        return 0
    except Refused as e:
        return e.code


def look(server, name):
    for number, user in enumerate(USERS):
        path = "/of-%d" % number
        session = Session(server.port)
        session.add_auth("digest", user)
        session.create(path, b"secret", 0, [(31, "auth", "")])
        expect_equal(
            [tuple(entry)[1:] for entry in session.get_acl(path)],
            [("digest", digest_id(name, user))],
            "the id of %s" % user.decode(),
        )
        session.close()
        for who, due in ((None, NO_AUTH), (b"bob:other", NO_AUTH), (user, 0), (SUPER, 0)):
            session = Session(server.port)
            if who:
                session.add_auth("digest", who)
            expect_equal(code(session.get, path), due, "%r reads what is %s's" % (who, user.decode()))
            session.close()
    # An id that was computed before, without a server.
    session = Session(server.port)
    session.create("/made", b"", 0, [(31, "digest", digest_id(name, USERS[0]))])
    expect_equal(code(session.get, "/made"), NO_AUTH, "anybody reads /made")
    session.add_auth("digest", USERS[0])
    expect_equal(code(session.get, "/made"), 0, "its owner reads /made")
    session.close()


def check():
    args = arguments(__doc__).parse_args()
    failed = []
    for algorithm, name in HASHES.items():
        settings = {KEY + "superDigest": digest_id(name, SUPER)}
        if algorithm:
            settings[KEY + "digestAlg"] = algorithm
        try:
            with Server(args.server, work_folder("digests"), args.port, settings) as server:
                look(server, name)
        except (NotServing, Mismatch) as what:
            print("FAILED %s: %s" % (algorithm, str(what)[-300:]), flush=True)
            failed.append(algorithm)
    if failed:
        raise Mismatch("not as Java has it with digestAlg=%s" % ", ".join(map(str, failed)))
    return "%d hashes: ids, access and the super user" % len(HASHES)


if __name__ == "__main__":
    conclude(check)
