#!/usr/bin/env python3
"""The C client's shell over TLS, and with a login by DIGEST-MD5. It is known by its certificate or its login, and reads
what only it may read; with another authority, or with a wrong password, it is refused. With --server java3.9 the same
is tried at a Java server. The client cannot do both at once (ZOOKEEPER-3482)."""

import os
import sys
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.outcome import conclude, expect
from harness.peers import need
from harness.program import Program
from harness.server import arguments, command
from security.clients import SUBJECT, Setup

CONNECTED = r"SESSION_EVENT state = CONNECTED_STATE"
REFUSED_S = 3  # so long a client is watched that is refused; it tries again without end


class CClient:
    """The shell, with a certificate of this authority, a login, or neither."""

    def __init__(self, setup, authority=None, login=None):
        words, port = [], setup.port
        if authority:
            base = os.path.join(authority.folder, "app")
            files = [setup.good.path("pem"), base + ".crt", base + ".key", ""]
            words, port = ["-s", ",".join(files)], setup.secure
        if login:
            user, password = login
            secret = setup.file("c-password", password + "\n")
            words = ["-n", "DIGEST-MD5", "-u", user, "-p", secret, "-o", "zk-sasl-md5"]
        self.program = Program([need("cli_secure"), "-h", "localhost:%d" % port, *words])

    def __enter__(self):
        return self.program

    def __exit__(self, *_):
        self.program.kill()


def uses_its_own(setup, binary, path, acl, authority=None, login=None):
    """It reads and changes what only its identity may use, sees the change, and others do not."""
    made = setup.shell(binary, "create %s treasure %s:cdrwa" % (path, acl), authority, login)
    expect("Created " + path in made, "the shell cannot create %s: %s" % (path, made[-400:]))
    with CClient(setup, authority, login) as own, CClient(setup) as other:
        own.wait_for(CONNECTED)
        own.ask("get " + path, r"^treasure$")
        own.ask("set %s other" % path, r"CHANGED_EVENT.*for path %s$" % path)
        own.ask("create +e %s/e" % path, r"name = %s/e$" % path)
        other.wait_for(CONNECTED)
        other.ask("get " + path, r"rc = -102$")
        own.ask("quit", r"Quitting")
        expect(own.finish() == 0, "the shell ends with an error")
    print("the C client uses what is for %s alone" % acl, flush=True)


def is_refused(setup, what, authority=None, login=None):
    """It gets no session: it is not connected, and each request fails at once or is never sent."""
    with CClient(setup, authority, login) as one:
        time.sleep(REFUSED_S)
        one.send("ls /")
        time.sleep(1)
        expect("CONNECTED_STATE" not in one.output, "%s is connected: %s" % (what, one.output[-400:]))
        expect("rc = 0" not in one.output, "%s is served: %s" % (what, one.output[-400:]))
    print("%s is refused" % what, flush=True)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--ostler", default="", help="Ostler's program, for the shell (default: that of --server)")
    args = parser.parse_args()
    need("cli_secure")
    binary = command(args.ostler or args.server)[0]
    setup = Setup(args.server, args.port)
    with setup.server:
        uses_its_own(setup, binary, "/c-x509", "x509:" + SUBJECT, authority=setup.good)
        uses_its_own(setup, binary, "/c-sasl", "sasl:bob", login=("bob", "bobsecret"))
        is_refused(setup, "a client of another authority", authority=setup.bad)
        is_refused(setup, "a client with a wrong password", login=("bob", "wrong"))
    return "the C client by TLS and by DIGEST-MD5, each with an ACL of its own"


if __name__ == "__main__":
    conclude(check)
