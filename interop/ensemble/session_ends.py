"""Each way in which a client can lose its session is brought about on real servers, and `ostler explain session` has to
name it.

    python3 interop/ensemble/session_ends.py [--server CMD] [--port N] [--quick]

A client is stopped, killed, cut off below TCP, closes, moves, comes back too late, sends what no client sends, or fails
to log in; a server is stopped, killed, or loses its leader. The records of all members are read from their HTTP admin
servers, and judged together. The client that is cut off has a network namespace of its own, so that part takes root;
without it it is left out."""

import json
import os
import shlex
import struct
import subprocess
import sys
import time

from ensemble.cluster import Cluster
from ensemble.namespaces import Namespaces
from harness.outcome import Skip, conclude, expect, expect_equal
from harness.peers import CHECKOUT, INTEROP
from harness.program import Program
from harness.protocol import EPHEMERAL, PERSISTENT
from harness.server import arguments, command, work_folder
from harness.session import ConnectionLost, Refused, Session, SessionExpired

TIMEOUT_MS = 2000
TICK_MS = 500
# After its timeout a session ends within two ticks, and what TCP saw is known a second later.
ENDED_S = (TIMEOUT_MS + 2 * TICK_MS) / 1000 + 1.8
KNOWN_WITHIN_S = 15
ADMIN = 500  # beyond the client port
SEQUENTIAL = EPHEMERAL | 2
KEYS = {"tickTime": TICK_MS, "syncLimit": 10, "admin.enableServer": "true", "admin.serverAddress": "127.0.0.1"}


class Trial:
    """Three servers; `at(n)` is what is put before a command to run it where server n can be asked."""

    def __init__(self, make, port, folder, links=None):
        self.program = shlex.join(command(make)).split()[0]
        self.folder = work_folder(folder)
        self.cluster = Cluster([make] * 3, self.folder, port, dict(KEYS), links=links)
        self.links = links
        for member in self.cluster.members.values():
            member.settings["admin.serverPort"] = member.port + ADMIN

    def report(self, member, subject):
        """The answer of one server to the command session_ends; None if it does not answer."""
        url = "http://127.0.0.1:%d/commands/session_ends?%s" % (member.port + ADMIN, subject)
        words = ["curl", "--silent", "--fail", "--max-time", "20", url]
        if self.links:
            words = self.links.words_inside(member.number, words)
        done = subprocess.run(words, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def explain(self, session):
        """The verdict about a session, from the records of all servers that answer."""
        files = []
        for member in self.cluster.members.values():
            if answer := self.report(member, "session=" + session):
                files.append(os.path.join(self.folder, "ends-%d.json" % member.number))
                with open(files[-1], "w") as f:
                    f.write(answer)
        words = [self.program, "explain", "session", session, "--json", "--from", ",".join(files)]
        done = subprocess.run(words, capture_output=True, text=True)
        expect(done.returncode == 0, "%s: %s%s" % (shlex.join(words), done.stdout, done.stderr))
        (verdict,) = json.loads(done.stdout)["sessions"]
        return verdict

    def expect_kind(self, name, session, kind, *says):
        """The verdict has this kind, and its reason or facts say all this."""
        until = time.monotonic() + KNOWN_WITHIN_S
        while True:
            verdict = self.explain(session)
            text = " ".join([verdict["reason"], *verdict["facts"]])
            if (verdict["kind"] == kind and all(words in text for words in says)) or time.monotonic() > until:
                break
            time.sleep(0.3)
        print("%s: %s: %s" % (name, verdict["kind"], verdict["reason"]), flush=True)
        expect_equal(verdict["kind"], kind, "%s: the verdict (%s)" % (name, text))
        for words in says:
            expect(words in text, "%s: %r is not in: %s" % (name, words, text))

    def followers(self):
        leader = self.cluster.wait_quorum()
        return leader, [member for member in self.cluster.running() if member is not leader]


def name_of(session):
    return "0x%x" % (session.id & (1 << 64) - 1)


def holder(port, host="127.0.0.1", prefix=()):
    """A client as a program of its own. Returns it and its session."""
    words = [sys.executable, "-m", "ensemble.session_holder", host, str(port), str(TIMEOUT_MS)]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([INTEROP, CHECKOUT]))
    program = Program([*prefix, *words], env=env)
    return program, program.wait_for(r"^session (0x[0-9a-f]+)$").group(1)


def closed(trial, follower, _leader):
    session = Session(follower.port, TIMEOUT_MS)
    session.create("/closed", b"", EPHEMERAL)
    session.close()
    trial.expect_kind("closed", name_of(session), "closed_by_client", "/closed")


def paused(trial, follower, leader):
    for server in (follower, leader):
        program, session = holder(server.port)
        time.sleep(1)
        program.pause()
        time.sleep(ENDED_S)
        trial.expect_kind("paused client at a " + (server.mode() or "?"), session, "client_paused", "/held-")
        program.kill()


def killed(trial, follower, _leader):
    program, session = holder(follower.port)
    time.sleep(0.5)
    program.kill()
    time.sleep(ENDED_S)
    trial.expect_kind("killed client", session, "client_gone", "let the session expire")


def came_back(trial, follower, leader):
    first = Session(follower.port, TIMEOUT_MS)
    first.drop()
    again = Session(leader.port, TIMEOUT_MS, first.id, first.password, first.seen_zxid)
    trial.expect_kind("came back in time", name_of(first), "moved")
    again.close()


def moved(trial, follower, leader):
    """The first connection hangs while the client has gone on."""
    first = Session(follower.port, TIMEOUT_MS)
    again = Session(leader.port, TIMEOUT_MS, first.id, first.password, first.seen_zxid)
    until = time.monotonic() + ENDED_S
    while time.monotonic() < until:
        again.exists("/")
        time.sleep(0.3)
    trial.expect_kind("moved", name_of(first), "moved")
    again.close()
    first.drop()


def too_late(trial, follower, leader):
    first = Session(follower.port, TIMEOUT_MS)
    first.drop()
    time.sleep(ENDED_S)
    try:
        Session(leader.port, TIMEOUT_MS, first.id, first.password, first.seen_zxid)
    except SessionExpired:
        pass
    trial.expect_kind("came back too late", name_of(first), "network", "too late", "after the end of its session")


def bad_frames(trial, follower, _leader):
    for name, sent, says in (
        ("long frame", struct.pack(">i", 1 << 30), "1073741824"),
        ("negative frame", struct.pack(">i", -7), "-7"),
        ("frame without header", struct.pack(">ih", 2, 0), "no request header"),
    ):
        session = Session(follower.port, TIMEOUT_MS)
        session.socket.sendall(sent)
        time.sleep(0.3)
        trial.expect_kind(name, name_of(session), "client_fault", says)
        time.sleep(ENDED_S)
        trial.expect_kind(name + ", expired", name_of(session), "client_fault", says, "did not come back")


def auth_failed(trial, follower, _leader):
    session = Session(follower.port, TIMEOUT_MS)
    try:
        session.add_auth("no-such-scheme", b"x")
    except (Refused, ConnectionLost):
        pass
    time.sleep(0.3)
    trial.expect_kind("failed login", name_of(session), "auth_failed")


def passed_on(trial, follower, leader):
    """The lock of a session that expires goes to the next in line."""
    first, second = Session(follower.port, TIMEOUT_MS), Session(leader.port, 10000)
    second.create("/locks", b"", PERSISTENT)
    held = first.create("/locks/lock-", b"", SEQUENTIAL)
    waiting = second.create("/locks/lock-", b"", SEQUENTIAL)
    first.drop()
    time.sleep(ENDED_S)
    trial.expect_kind("lock", name_of(first), "client_gone", held + " was first in line; " + waiting)
    second.close()


def stopped_server(trial, follower, _leader):
    session = Session(follower.port, TIMEOUT_MS)
    session.create("/at-stopped", b"", EPHEMERAL)
    follower.pause()
    time.sleep(ENDED_S + 2)
    follower.resume()
    trial.cluster.wait_quorum()
    time.sleep(1)
    trial.expect_kind("stopped server", name_of(session), "server", "did not run for")
    session.drop()


def killed_server(trial, follower, _leader):
    session = Session(follower.port, TIMEOUT_MS)
    session.create("/at-killed", b"", EPHEMERAL)
    follower.kill()
    session.drop()
    time.sleep(ENDED_S)
    trial.expect_kind("killed server", name_of(session), "server", "had left the leader")
    follower.start()
    trial.cluster.wait_quorum()


def lost_leader(trial, follower, leader):
    session = Session(follower.port, TIMEOUT_MS)
    session.create("/at-follower", b"", EPHEMERAL)
    leader.kill()
    time.sleep(0.5)
    session.drop()
    trial.cluster.wait_quorum()
    time.sleep(ENDED_S)
    trial.expect_kind("lost leader", name_of(session), "server", "had no leader")
    leader.start()
    trial.cluster.wait_quorum()


CASES = (closed, paused, killed, came_back, moved, too_late, bad_frames, auth_failed, passed_on)
ROUGH = (stopped_server, killed_server, lost_leader)


class HousedClient(Namespaces):
    """Namespaces for three servers, and a fourth one for a client."""

    CLIENT = 4

    def __init__(self):
        super().__init__(self.CLIENT)

    def words_inside(self, number, words):
        return self._enter(self._name(number)) + words


def cut_off(make, port):
    """The client's packets arrive nowhere, and none reach it; no connection is closed by that."""
    with HousedClient().start() as links:
        trial = Trial(make, port, "session-ends-cut", links)
        with_servers = trial.cluster.start()
        try:
            _leader, (follower, _other) = trial.followers()
            prefix = links.words_inside(links.CLIENT, [])
            program, session = holder(follower.port, links.host(follower.number), prefix)
            time.sleep(1)
            links.cut_off(links.CLIENT)
            time.sleep(ENDED_S)
            trial.expect_kind("client cut off", session, "network", "did not acknowledge")
            program.kill()
        finally:
            for member in with_servers.members.values():
                member.kill()


def by_address(trial, follower, _leader):
    """The program asks the servers by itself."""
    program, session = holder(follower.port)
    time.sleep(0.5)
    program.kill()
    time.sleep(ENDED_S)
    admin = ",".join("http://127.0.0.1:%d" % (port + ADMIN) for port in trial.cluster.ports())
    words = [trial.program, "explain", "session", session, "--admin", admin]
    text = subprocess.run(words, capture_output=True, text=True).stdout
    print(text, flush=True)
    expect(text.startswith("Session %s: the client went away: " % session), text)
    everything = subprocess.run([*words[:3], "127.0.0.1", *words[4:]], capture_output=True, text=True).stdout
    expect("Session %s: the client went away" % session in everything, everything)


def check():
    args = arguments(__doc__, quick={"action": "store_true", "help": "leave out what restarts servers"}).parse_args()
    trial = Trial(args.server, args.port, "session-ends")
    trial.cluster.start()
    cases = CASES + (by_address,) + (() if args.quick else ROUGH)
    try:
        for case in cases:
            leader, (follower, _other) = trial.followers()
            case(trial, follower, leader)
    finally:
        for member in trial.cluster.members.values():
            member.kill()
    try:
        cut_off(args.server, args.port + 20)
        cut = "one client cut off below TCP"
    except Skip as why:
        cut = "nobody cut off (%s)" % why
    return "%d cases named rightly, %s" % (len(cases), cut)


if __name__ == "__main__":
    conclude(check)
