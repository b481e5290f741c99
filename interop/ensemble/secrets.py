"""Three Ostler servers under load begin to use a secret for session passwords, change it, and go back to Java servers.

    python3 interop/ensemble/secrets.py [--server CMD] [--port N] [--peer java3.9]

Each step restarts one server after the other, as in docs/sessions.md. A Java server that starts too early must stay
outside without harm. No acknowledged write may be lost. No session may end whose client comes back: sessions from
before the secret, sessions from after it, and sessions that write nothing and stay connected."""

import os
import time

from ensemble.cluster import Cluster, patiently
from ensemble.load import SETTINGS, Client, Load
from harness.outcome import Mismatch, conclude, expect, expect_equal
from harness.protocol import EPHEMERAL
from harness.server import NotServing, arguments, command, work_folder
from harness.session import ConnectionLost, Session, SessionExpired

MARK = 0xFF
OUTSIDE_S, SAID_WITHIN_S = 5, 60
STAY_MS = 60000


def has_secret(session_id):
    return session_id >> 48 & 0xFF == MARK


class Stayer:
    """A session with an ephemeral, which reconnects again and again to any server that accepts it."""

    def __init__(self, ports, path):
        self.ports, self.path = ports, path
        self.session = patiently(lambda: Session(ports[0], STAY_MS))
        self.session.create(path, b"", EPHEMERAL)

    def look(self):
        """Checks that the session is answered, on a new connection if needed."""
        for attempt in range(600):
            try:
                expect(self.session.exists(self.path) is not None, "%s is gone" % self.path)
                return
            except ConnectionLost:
                time.sleep(0.02)
            self._come_back(self.ports[attempt % len(self.ports)])
        raise Mismatch("the session of %s finds no server" % self.path)

    def _come_back(self, port):
        old = self.session
        try:
            self.session = Session(port, STAY_MS, old.id, old.password, old.seen_zxid)
        except SessionExpired:
            raise Mismatch("the session of %s was ended" % self.path) from None
        except (ConnectionLost, OSError):
            pass


class LaterLoad(Load):
    """A second load, whose clients have other znodes than those of the first."""

    CLIENT = staticmethod(lambda ports, number, seed: Client(ports, number + 100, seed))


class Steps:
    def __init__(self, ours, peer, port, folder):
        self.ours, self.peer = ours, peer
        self.folder, self.files = folder, 0
        self.cluster = Cluster([ours] * 3, folder, port, {**SETTINGS, "tickTime": 500, "preAllocSize": 4096})
        self.stayers = []

    def run(self):
        with self.cluster:
            self.cluster.start().wait_quorum()
            self.load = Load(self.cluster.ports(), 3).start()
            self._stay(secret=False)
            one, two = os.urandom(32).hex(), os.urandom(32).hex()
            self._roll("the secret is there", [one], "derived")
            self._roll("it is used", [one], "secret")
            self._load_anew()
            self._stay(secret=True)
            self._java_stays_outside()
            self._roll("another is known", [one, two], "secret")
            self._roll("another is used", [two, one], "secret")
            self._roll("the first is gone", [two], "secret")
            self._roll("they leave", [two], "leaving")
            self.load.stop()
            self.cluster.look_same()
            self.load.start()
            for member in self.cluster.members.values():
                self._restart(member, self.peer, None, None)
                print("server %d is Java's" % member.number, flush=True)
            self.load.stop()
            for member in self.cluster.running():
                self.load.check(member.port)
            self._look()
            expect_equal(self.load.expired, 0, "sessions that ended although their clients came back")
            # Digests of Java servers that have lost their leader under load differ by themselves: see mixed.py.
            nodes = self.cluster.look_same(without_digests=self.cluster.members)
        return "%d writes acknowledged, none lost, no session lost; %d nodes, the same at all servers" % (
            self.load.acknowledged,
            nodes,
        )

    def _load_anew(self):
        """Starts clients with new sessions."""
        self.load.stop()
        self._look()
        self.load = LaterLoad(self.cluster.ports(), 3, seed=1).start()

    def _stay(self, secret):
        for _port in self.cluster.ports():
            stayer = Stayer(self.cluster.ports(), "/stays-%d" % len(self.stayers))
            expect_equal(has_secret(stayer.session.id), secret, "the id says that there is a secret")
            self.stayers.append(stayer)

    def _look(self):
        for stayer in self.stayers:
            stayer.look()
        self.load.look()
        expect_equal(self.load.expired, 0, "sessions that ended although their clients came back")

    def _roll(self, what, secrets, kind):
        for member in self.cluster.members.values():
            self._restart(member, self.ours, secrets, kind)
        print("%s: %d writes so far, no session ended" % (what, self.load.acknowledged), flush=True)

    def _restart(self, member, make, secrets, kind):
        self.load.wait_progress()
        member.stop()
        member.become(make)
        for key in ("sessionSecrets", "sessionPasswords"):
            member.settings.pop(key, None)
        if secrets:
            member.settings.update({"sessionSecrets": self._file(secrets), "sessionPasswords": kind})
        member.start()
        self.cluster.wait_quorum()
        self.load.wait_progress()
        self._look()

    def _file(self, secrets):
        self.files += 1
        path = os.path.join(self.folder, "secrets-%d" % self.files)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.writelines(line + "\n" for line in secrets)
        return path

    def _java_stays_outside(self):
        leader = self.cluster.wait_quorum()
        member = next(m for m in self.cluster.members.values() if m is not leader)
        keys = dict(member.settings)
        member.stop()
        member.become(self.peer)
        for key in ("sessionSecrets", "sessionPasswords"):
            member.settings.pop(key)
        before = len(leader.log_text())
        member.start()
        began, refused_at = time.monotonic(), None
        while refused_at is None or time.monotonic() < refused_at + OUTSIDE_S:
            expect(member.mode() is None, "a Java server serves, and its clients' sessions have a secret")
            self._look()
            if refused_at is None and "cannot judge session passwords" in leader.log_text()[before:]:
                refused_at = time.monotonic()
            expect(refused_at or time.monotonic() < began + SAID_WITHIN_S, "the leader says nothing of it")
            time.sleep(0.1)
        member.stop()
        member.become(self.ours)
        member.settings.update(keys)
        member.start()
        self.cluster.wait_quorum()
        self.load.wait_progress()
        self._look()
        print("a Java server stayed outside", flush=True)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peer", default="java3.9", help="the servers at the end (default: %(default)s)")
    args = parser.parse_args()
    command(args.peer), command(args.server)  # skips the check if the program is missing
    try:
        return Steps(args.server, args.peer, args.port, work_folder("secrets")).run()
    except (AssertionError, NotServing) as what:
        raise Mismatch(str(what)) from what


if __name__ == "__main__":
    conclude(check)
