"""Session thieves: a client tries to take over the sessions of others, at a standalone server and at an ensemble of
three.

    python3 interop/abuse/sessions.py [--server CMD] [--port N] [--secret]

It counts back from its own session id, it reads `ephemeralOwner` in Stats, and it names sessions with wrong passwords.
The check counts the sessions that it took over and ended, and the owners whose connections it closed. Attacks that fail
at Ostler must succeed at Java, which shows that they work. With `--secret` passwords are made with a secret, and a
session id from `ephemeralOwner` is of no use either.
"""

import os
import struct

from ensemble.cluster import Cluster, patiently
from harness.outcome import conclude, expect_equal
from harness.protocol import EPHEMERAL
from harness.server import Server, arguments, work_folder
from harness.session import ConnectionLost, Session, SessionExpired

OWNERS = 10
STEPS_BACK = 300
TIMEOUT_MS = 120_000  # nobody pings meanwhile
MULTIPLIER, MASK, SALT = 0x5DEECE66D, (1 << 48) - 1, 0xB3415C00


def derived(session_id):
    """The password that follows from an id: the first bytes of Java's random generator."""
    state, password = (session_id ^ SALT ^ MULTIPLIER) & MASK, b""
    for _ in range(4):
        state = (state * MULTIPLIER + 0xB) & MASK
        password += struct.pack("<I", state >> 16 & 0xFFFFFFFF)
    return password


def signed(number):
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def takes(port, session_id, password):
    """Takes over a session on a connection of the thief. Returns None if that is refused."""
    try:
        return Session(port, TIMEOUT_MS, signed(session_id), password)
    except (SessionExpired, ConnectionLost):
        return None


class Owners:
    """The sessions of the victims, each with an ephemeral, at these ports in turn."""

    def __init__(self, ports, name):
        self.sessions = []
        for n in range(OWNERS):
            session = patiently(lambda: Session(ports[n % len(ports)], TIMEOUT_MS))
            session.create("/%s-%d" % (name, n), b"", EPHEMERAL)
            self.sessions.append(session)
        self.paths = ["/%s-%d" % (name, n) for n in range(OWNERS)]

    def disturbed(self):
        """The number of sessions whose own connection was closed."""
        return OWNERS - sum(self._served(session) for session in self.sessions)

    @staticmethod
    def _served(session):
        try:
            session.exists("/")
            return True
        except ConnectionLost:
            return False

    def leave(self):
        for session in self.sessions:
            try:
                session.close()
            except ConnectionLost:
                pass


def end(session):
    """Ends a session that was taken over. Returns 1 if that succeeds, else 0."""
    try:
        session.close()
        return 1
    except ConnectionLost:
        return 0


def counted_back(ports):
    """The number of sessions that a thief ends by counting back from its own id."""
    owners, ended = Owners(ports, "neighbour"), 0
    for port in ports:
        own = patiently(lambda: Session(port, TIMEOUT_MS))
        for step in range(1, STEPS_BACK + 1):
            session = takes(port, own.id - step, derived(own.id - step))
            if session:
                ended += end(session)
            if ended == OWNERS:
                break
        own.close()
    owners.leave()
    return ended


def read_off(ports):
    """The number of sessions that a thief ends by reading their ids from their ephemerals."""
    owners, ended = Owners(ports, "seen"), 0
    own = patiently(lambda: Session(ports[-1], TIMEOUT_MS))
    for n, path in enumerate(owners.paths):
        session_id = own.exists(path).ephemeralOwner
        session = takes(ports[n % len(ports)], session_id, derived(session_id))
        if session:
            ended += end(session)
    own.close()
    owners.leave()
    return ended


def named(ports):
    """The number of owners that lose their connection when a thief names their sessions with wrong passwords at every
    server."""
    owners = Owners(ports, "named")
    for session in owners.sessions:
        for port in ports:
            for password in (b"\0" * 16, b"", derived(session.id + 1), derived(session.id)[:15]):
                got = takes(port, session.id, password)
                expect_equal(got, None, "a session that opens with a wrong password")
    disturbed = owners.disturbed()
    owners.leave()
    return disturbed


def figures(ports):
    return {"counted back": counted_back(ports), "by ephemeralOwner": read_off(ports), "named": named(ports)}


def secret_keys(folder):
    path = os.path.join(folder, "session-secrets")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write(os.urandom(32).hex() + "\n")
    return {"sessionPasswords": "secret", "sessionSecrets": path}


def check():
    args = arguments(
        __doc__, secret={"action": "store_true", "help": "passwords that do not follow from ids"}
    ).parse_args()
    is_java = args.server.startswith("java")
    folder = work_folder("abuse")
    keys = {"maxSessionTimeout": TIMEOUT_MS, **(secret_keys(folder) if args.secret else {})}
    with Server(args.server, os.path.join(folder, "one"), args.port, keys).start() as server:
        found = {"one server": figures([server.port])}
    with Cluster([args.server] * 3, os.path.join(folder, "three"), args.port + 10, keys) as cluster:
        cluster.start().wait_quorum()
        found["three"] = figures(cluster.ports())
    for where, of in found.items():
        print("%s: %s" % (where, ", ".join("%s: %d of %d" % (what, count, OWNERS) for what, count in of.items())))
        expected = OWNERS if is_java else 0
        for what in ("counted back", "named"):
            expect_equal(of[what], expected, "%s, %s" % (where, what))
        expect_equal(of["by ephemeralOwner"], 0 if args.secret else OWNERS, "%s, by ephemeralOwner" % where)
    return "; ".join("%s: %s" % (where, of) for where, of in found.items())


if __name__ == "__main__":
    conclude(check)
