"""An ensemble that has lost its quorum serves read-only clients, and these go on when the quorum is back.

    python3 interop/ensemble/read_only.py [--server CMD] [--port N] [--quick]

Uses bare sockets, kazoo (read_only=True) and ZooKeeper's shell (-r) at the last server, first with the server under
test, then with Java 3.9, which must do the same."""

import os
import socket
import struct
import time

from ensemble.cluster import Cluster, patiently
from harness.jute import buffer, ustring
from harness.outcome import Skip, conclude, expect, expect_equal
from harness.peers import LAUNCHER, need
from harness.program import Program
from harness.protocol import CREATE, EPHEMERAL, GET_DATA, MULTI, SET_DATA, create_body, multi_body, set_body
from harness.server import arguments, available, four_letter_word, work_folder
from harness.session import ConnectionLost, Refused, Session, SessionExpired

SYNC, RECONFIG = 9, 16
NOT_READ_ONLY = -119
KEYS = {"readonlymode.enabled": "true", "localSessionsUpgradingEnabled": "true", "initLimit": 10, "syncLimit": 4}
SHELL_MS = 6000


def wait(what, is_so, timeout=30):
    until = time.monotonic() + timeout
    while not is_so():
        expect(time.monotonic() < until, "not within %d s: %s" % (timeout, what))
        time.sleep(0.05)


def code_of(call):
    try:
        call()
    except Refused as refusal:
        return refusal.code
    return 0


def is_closed(port, **hello):
    """Whether the server closes the connection without an answer to the handshake."""
    try:
        Session(port, **hello)
    except ConnectionLost as lost:
        return str(lost) == "closed by the server" or "reset" in str(lost)
    return False


class Trial:
    def __init__(self, make, port, local="true"):
        self.cluster = Cluster([make] * 3, work_folder("read-only"), port, {**KEYS, "localSessionsEnabled": local})

    def lose_the_quorum(self):
        """Kills the leader and a follower. Returns the last server."""
        leader = self.cluster.wait_quorum()
        left, dies = [member for member in self.cluster.running() if member is not leader]
        for member in (leader, dies):
            member.kill()
        began = time.monotonic()
        wait("server %d serves readers" % left.number, lambda: left.mode() == "read-only")
        took = time.monotonic() - began
        expect(took > 1.5, "readers were served %.1f s after the quorum was lost" % took)
        return left, [leader, dies]

    def run(self):
        with self.cluster.start():
            self.cluster.wait_quorum()
            first = patiently(lambda: Session(self.cluster[1].port, 30_000))
            first.create("/a", b"before")
            first.create("/mine", b"", EPHEMERAL)
            for member in self.cluster.running():  # all have it
                sync = Session(member.port)
                sync.call(SYNC, ustring("/"))
                sync.close()
            left, gone = self.lose_the_quorum()
            self._words(left.port)
            self._sockets(left.port, first)
            programs = self._programs(left.port)
            for member in gone:
                member.start()
            self.cluster.wait_quorum()
            self._goes_on(first, programs)
            return self.cluster.look_same()

    def _words(self, port):
        expect_equal(four_letter_word(port, "isro"), "ro", "isro")
        srvr = four_letter_word(port, "srvr")
        expect_equal(srvr.splitlines()[1], "READ-ONLY mode; serving only read-only clients", "second line of srvr")
        expect("Mode: read-only\n" in srvr, "srvr says %r" % srvr)
        mntr = dict(line.split("\t", 1) for line in four_letter_word(port, "mntr").splitlines())
        expect_equal(mntr["zk_server_state"], "read-only", "zk_server_state")
        expect("zk_peer_state" not in mntr, "zk_peer_state is %s" % mntr.get("zk_peer_state"))

    def _sockets(self, port, first):
        expect(is_closed(port), "a client that wants to write got an answer")
        expect(is_closed(port, session_id=first.id, password=first.password), "a session of the ensemble got an answer")
        expect(
            is_closed(port, session_id=first.id, password=first.password, read_only=True),
            "a session of the ensemble was taken by a server without a leader",
        )
        reader = Session(port, read_only=True)
        expect(reader.read_only, "the handshake does not say that the server is read-only")
        expect_equal(reader.get("/a")[0], b"before", "what was written before")
        expect(reader.exists("/mine"), "an ephemeral of a session that lives is not shown")
        writes = {
            "create": (CREATE, create_body("/b")),
            "ephemeral": (CREATE, create_body("/b", flags=EPHEMERAL)),
            "set": (SET_DATA, set_body("/a", b"no")),
            "multi": (MULTI, multi_body([])),
            "sync": (SYNC, ustring("/a")),
            "malformed": (CREATE, b""),
            "reconfig": (RECONFIG, ustring(None) * 3 + struct.pack(">q", -1)),
        }
        for name, (op, body) in writes.items():
            expect_equal(code_of(lambda: reader.call(op, body)), NOT_READ_ONLY, "error of %s" % name)
        reader.call(GET_DATA, ustring("/a") + b"\1")  # leaves a watch
        expect("Local Session Sets (" in four_letter_word(port, "dump"), "dump shows no local sessions")
        again = Session(port, session_id=reader.id, password=reader.password, read_only=True)
        expect_equal(again.id, reader.id, "session that came back")
        again.close()
        try:
            Session(port, session_id=reader.id, password=reader.password, read_only=True)
            expect(False, "a session that was closed came back")
        except SessionExpired:
            pass

    def _programs(self, port):
        kazoo = Program(
            [
                os.path.join(need("venv"), "bin", "python"),
                os.path.join(os.path.dirname(__file__), "kazoo_reader.py"),
                ",".join("127.0.0.1:%d" % p for p in self.cluster.ports()),
            ]
        )
        kazoo.wait_for(r"^now CONNECTED\n", timeout=40)
        kazoo.ask("state", r"^state CONNECTED_RO\n")
        kazoo.ask("get /a", r"^data before$")
        kazoo.ask("set /a kazoo", r"^not a read-only call$")
        shell = Program(
            [
                LAUNCHER,
                "3.9",
                "-c",
                "org.apache.zookeeper.ZooKeeperMain",
                "-timeout",
                str(SHELL_MS),
                "-r",
                "-server",
                ",".join("127.0.0.1:%d" % p for p in self.cluster.ports()),
            ]
        )
        shell.wait_for(r"state:ConnectedReadOnly type:None", timeout=40)
        shell.ask("get /a", r"^before$")
        shell.ask("set /a shell", r"Not a read-only call")
        return kazoo, shell

    def _goes_on(self, first, programs):
        """All clients move to a server with a leader by themselves, and the session from before the loss goes on."""
        back = patiently(
            lambda: Session(self.cluster[2].port, 30_000, first.id, first.password, seen_zxid=first.seen_zxid)
        )
        expect_equal((back.id, back.ephemerals()), (first.id, ["/mine"]), "session of before, and what it owns")
        back.set("/a", b"after")
        kazoo, shell = programs
        shell.wait_for(r"state:SyncConnected type:None", timeout=60)
        shell.ask("set /a shell", r"(?s).*")
        wait("the shell's write", lambda: back.get("/a")[0] == b"shell")
        wait("kazoo has found a server that writes", lambda: _says(kazoo, "state", r"^state CONNECTED\n"), 60)
        kazoo.ask("set /a kazoo", r"^set kazoo$", timeout=30)
        wait("kazoo's write", lambda: back.get("/a")[0] == b"kazoo")  # the two may be at different servers
        back.close()
        for program in programs:
            program.kill()

    def no_sessions(self):
        """Without local sessions no client can get a session: the handshake is answered as a write is."""
        with self.cluster.start():
            self.cluster.wait_quorum()
            left, _ = self.lose_the_quorum()
            asks = Session.__new__(Session)
            asks.socket, asks.buffer = socket.create_connection(("127.0.0.1", left.port), timeout=10), b""
            asks.socket.sendall(buffer(struct.pack(">iqiq", 0, 0, 4000, 0) + buffer(b"\0" * 16) + b"\1"))
            xid, _, error = struct.unpack(">iqi", asks._frame())
            expect_equal((xid, error), (0, NOT_READ_ONLY), "answer to a handshake")
            asks.drop()


def _says(program, line, pattern):
    try:
        program.ask(line, pattern, timeout=1)
        return True
    except AssertionError:
        return False


def check():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="only the server under test")
    args = parser.parse_args()
    peers, missing = available("java3.9")
    for make in [args.server] + ([] if args.quick else peers):
        began = time.monotonic()
        Trial(make, args.port).run()
        Trial(make, args.port, local="false").no_sessions()
        print("%s: readers were served (%.1f s)" % (make, time.monotonic() - began), flush=True)
    summary = (
        "without a quorum clients read and cannot write; kazoo, the Java shell and earlier sessions go on after it"
    )
    if missing:
        raise Skip("%s; not tried with %s" % (summary, "; ".join(missing)))
    return summary


if __name__ == "__main__":
    conclude(check)
