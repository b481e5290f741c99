"""Long access control lists, many identities and large requests: no other client may wait long for them.

One client sends expensive requests: reads behind lists of 40,000 entries with as many identities as a connection may
have, behind 24,000 networks, setWatches and multiReads of tens of thousands of paths, counts of the whole tree, long
lists of children and of ephemerals, the end of a session that has many. Meanwhile another client reads one znode again
and again; the result is its longest wait. --beside runs the same against another server."""

import os
import struct
import threading
import time

from harness.jute import ustring
from harness.outcome import conclude, expect
from harness.protocol import CREATE, EPHEMERAL, GET_CHILDREN2, GET_DATA, GET_EPHEMERALS, digest_id
from harness.server import Server, arguments, work_folder
from harness.session import ConnectionLost, Refused, Session

MULTI_READ, COUNT_BELOW, SET_WATCHES2 = 22, 104, 105
CHILDREN = 50_000
IN_A_FRAME = 40_000  # paths of that length
EPHEMERALS_OF_ONE = 20_000
IDENTITIES = 120  # Ostler takes 128 of a connection
TIMEOUT_MS = 120_000  # a server that does not answer for a long time must not end the sessions
PAUSE_S = 0.002  # between two reads of the waiting client


def other_identities(entries):
    return [(31, "digest", "%d:x" % n) for n in range(entries)]


def networks(entries):
    return [(31, "ip", "%d.%d.%d.0/24" % (11 + n // 65536, n // 256 % 256, n % 256)) for n in range(entries)]


def multi_read(paths):
    op = struct.pack(">ibi", GET_DATA, 0, -1)
    return b"".join(op + ustring(path) + b"\0" for path in paths) + struct.pack(">ibi", -1, 1, -1)


def set_watches(paths):
    listed = struct.pack(">i", len(paths)) + b"".join(ustring(path) for path in paths)
    return struct.pack(">q", 1 << 62) + listed + 4 * struct.pack(">i", 0)


class Waiter(threading.Thread):
    """Reads one znode again and again."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.session = connected(port)
        self.longest = 0.0
        self.done = threading.Event()

    def run(self):
        while not self.done.is_set():
            began = time.monotonic()
            try:
                self.session.get("/open")
            except ConnectionLost:  # its session may have ended while it waited
                self.done.set()
            self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(PAUSE_S)

    def end(self):
        self.done.set()
        self.join()
        self.session.drop()


def prepare(port, children):
    s = connected(port)
    s.create("/open", b"open")
    mine = digest_id(b"u%d:pw" % (IDENTITIES - 1))
    s.create("/names", acl=other_identities(40_000))
    s.create("/mine", acl=other_identities(40_000) + [(31, "digest", mine)])
    s.create("/networks", acl=networks(24_000))
    s.create("/p")
    create_many(s, children)
    s.close()


def create_many(session, count, prefix="/p/", flags=0):
    for first in range(0, count, 500):
        paths = ["%s%07d" % (prefix, n) for n in range(first, min(first + 500, count))]
        session.multi([(CREATE, create(path, flags)) for path in paths])


def create(path, flags=0):
    return (
        ustring(path)
        + struct.pack(">i", 0)
        + struct.pack(">i", 1)
        + struct.pack(">i", 31)
        + ustring("world")
        + ustring("anyone")
        + struct.pack(">i", flags)
    )


def attacks(children):
    """(name, requests) of what one client sends at once."""
    names, some = (
        (GET_CHILDREN2, ustring("/p") + b"\0"),
        ["/p/%07d" % (n * children // IN_A_FRAME) for n in range(IN_A_FRAME)],
    )
    yield "100 reads in a multiRead behind 40,000 names", [(MULTI_READ, multi_read(["/names"] * 100))]
    yield "the same, ten times, behind a list that grants", [(MULTI_READ, multi_read(["/mine"] * 100))] * 10
    yield "100 reads in a multiRead behind 24,000 networks", [(MULTI_READ, multi_read(["/networks"] * 100))]
    yield "3,000 getData behind 40,000 names", [(GET_DATA, ustring("/names") + b"\0")] * 3000
    yield "setWatches of %d paths" % len(some), [(SET_WATCHES2, set_watches(some))]
    yield "a multiRead of %d znodes" % len(some), [(MULTI_READ, multi_read(some))]
    yield "100 counts of all znodes", [(COUNT_BELOW, ustring("/"))] * 100
    yield "30 getChildren of %d" % children, [names] * 30
    # The earlier answer is not valid any more.
    new = [[(CREATE, create("/p/new%d" % n)), names] for n in range(10)]
    yield "10 getChildren of %d, each of a new list" % children, [request for pair in new for request in pair]
    yield "20 getEphemerals of %d" % EPHEMERALS_OF_ONE, [(GET_EPHEMERALS, ustring("/"))] * 20


def connected(port):
    """Opens a session. A server that does not answer for a long time gives none at first."""
    until = time.monotonic() + 120
    while True:
        try:
            session = Session(port, TIMEOUT_MS)
            session.socket.settimeout(120)
            return session
        except (ConnectionLost, OSError):
            if time.monotonic() > until:
                raise


def against(cmd, port, name, children):
    """The name of each attack, with the longest wait of the other client, in ms."""
    found = []

    def tell(what, longest, took):
        print("%s: %s: longest wait %.1f ms, took %.0f ms" % (name, what, longest * 1000, took * 1000), flush=True)
        found.append((longest * 1000, what))

    with Server(cmd, os.path.join(work_folder("access"), name), port, {"maxSessionTimeout": TIMEOUT_MS}) as server:
        prepare(server.port, children)
        quiet = Waiter(server.port)
        quiet.start()
        time.sleep(1)
        quiet.end()
        tell("nothing", quiet.longest, 1)
        found.clear()
        for what, requests in attacks(children):
            attacker = connected(server.port)
            if requests[0][0] == GET_EPHEMERALS:
                create_many(attacker, EPHEMERALS_OF_ONE, "/p/e", EPHEMERAL)
            for n in range(IDENTITIES):
                attacker.add_auth("digest", b"u%d:pw" % n)
            tell(what, *while_one_waits(server.port, lambda: ask_all(attacker, requests)))
            if requests[0][0] == GET_EPHEMERALS:
                tell("the end of their session", *while_one_waits(server.port, attacker.close))
            attacker.drop()
        tell(
            "%d identities" % (10 * IDENTITIES), *while_one_waits(server.port, lambda: too_many_identities(server.port))
        )
    return max(found)


def while_one_waits(port, attack):
    """The longest wait, and how long the attack took."""
    waiter = Waiter(port)
    waiter.start()
    time.sleep(0.2)
    began = time.monotonic()
    try:
        attack()
    except (ConnectionLost, Refused):
        pass  # the attacker's own session has ended, too
    took = time.monotonic() - began
    waiter.end()
    return waiter.longest, took


def ask_all(attacker, requests):
    attacker.send_all(requests)
    for _ in requests:
        attacker.receive()


def too_many_identities(port):
    """Sends a request with as many identities as the server allows."""
    attacker = connected(port)
    try:
        for n in range(10 * IDENTITIES):
            attacker.add_auth("digest", b"v%d:pw" % n)
        ask_all(attacker, [(MULTI_READ, multi_read(["/names"] * 100))])
    finally:
        attacker.drop()


def main():
    args = arguments(
        __doc__,
        beside={
            "metavar": "CMDS",
            "default": "",
            "help": "comma-separated servers to measure as well, java3.9 for example",
        },
        children={"type": int, "default": CHILDREN, "metavar": "N", "help": "of one znode (default: %(default)s)"},
        most={
            "type": float,
            "default": 250,
            "metavar": "MS",
            "help": "the wait that is a failure (default: %(default)s)",
        },
    ).parse_args()
    longest, what = against(args.server, args.port, "server", args.children)
    for at, cmd in enumerate(filter(None, args.beside.split(","))):
        against(cmd, args.port + 1 + at, os.path.basename(cmd.split()[0]), args.children)
    expect(longest <= args.most, "the other client waited %.0f ms for an answer: %s" % (longest, what))
    return "the longest wait was %.1f ms (%s)" % (longest, what)


if __name__ == "__main__":
    conclude(main)
