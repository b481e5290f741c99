"""Reconfiguration under load: an ensemble grows from one server to three, another server joins, the leader leaves, a
server is replaced, one changes its client port, and one changes its ports for other servers.

    python3 interop/ensemble/reconfig.py [--server CMD] [--port N] [--makes CMD,CMD,CMD,CMD,CMD]

Five servers take part; each may be a Java server (java3.9). Clients write as soon as there are three servers. Each
change must commit, every server must show the new configuration, and writes may fail only by lost connections."""

import os
import socket
import struct
import time

from ensemble.cluster import PORTS_PER_SERVER, Cluster, Member
from ensemble.load import SETTINGS, Load
from harness.jute import ustring
from harness.outcome import Mismatch, conclude, expect
from harness.server import arguments, work_folder
from harness.session import ConnectionLost, Refused, Session, SessionExpired

RECONFIG, NO_QUORUM_YET, IN_PROGRESS = 16, -13, -14
KEYS = {
    **SETTINGS,
    "reconfigEnabled": "true",
    "skipACL": "yes",
    "standaloneEnabled": "false",
    "initLimit": 20,
    "syncLimit": 10,
}


class Changing(Member):
    """A member that rewrites its own zoo.cfg at each reconfiguration."""

    def _write_config(self):
        path = os.path.join(self.folder, "zoo.cfg")
        return path if os.path.exists(path) else super()._write_config()


class Changes:
    def __init__(self, makes, folder, base_port):
        self.makes, self.folder, self.base = makes, folder, base_port
        self.cluster = Cluster([], folder, base_port)
        self.moved = {}  # client ports that are not those of the start, by number
        self.moved_doors = {}  # the same for the first of the two ports for other servers

    def port(self, number):
        return self.base + PORTS_PER_SERVER * number

    def spec(self, number):
        at = self.port(number)
        door = self.moved_doors.get(number, at + 1)
        return "127.0.0.1:%d:%d:participant;127.0.0.1:%d" % (door, door + 1, self.moved.get(number, at))

    def add(self, number, known):
        """Starts a server whose configuration names these servers, itself included."""
        keys = {**KEYS, **{"server.%d" % n: self.spec(n) for n in known}}
        home = os.path.join(self.folder, "server-%d" % number)
        self.cluster.members[number] = Changing(self.makes[number - 1], home, self.port(number), number, keys).start()

    def change(self, joining=None, leaving=None, timeout=30):
        """Sends a reconfig to a server that stays, and repeats it only after a lost connection. Returns the new
        configuration."""
        until = time.monotonic() + timeout
        body = ustring(joining) + ustring(leaving) + ustring(None) + struct.pack(">q", -1)
        while time.monotonic() < until:
            for member in self.cluster.running():
                if str(member.number) == leaving:
                    continue
                try:
                    session = Session(member.port)
                    session.call(RECONFIG, body, "reconfig joining %s leaving %s" % (joining, leaving))
                    session.close()
                    return
                except Refused as answer:
                    if answer.code not in (NO_QUORUM_YET, IN_PROGRESS):
                        raise
                except (ConnectionLost, SessionExpired, OSError):
                    if self._shown(joining, leaving):
                        return
        raise Mismatch("no answer to reconfig joining %s leaving %s" % (joining, leaving))

    def config(self, member):
        session = Session(member.port)
        try:
            return session.get("/zookeeper/config")[0].decode()
        finally:
            session.close()

    def _shown(self, joining, leaving):
        for member in self.cluster.running():
            try:
                text = self.config(member)
                if (joining is None or joining in text) and (leaving is None or "server.%s=" % leaving not in text):
                    return True
            except (ConnectionLost, SessionExpired, OSError):
                pass
        return False

    def wait_shown(self, numbers, timeout=30):
        """Waits until each of these servers shows exactly these servers."""
        wanted = ["server.%d=%s" % (n, self.spec(n)) for n in sorted(numbers)]
        until, texts = time.monotonic() + timeout, None
        while time.monotonic() < until:
            try:
                texts = [self.config(self.cluster[n]) for n in numbers]
                if all(text.splitlines()[:-1] == wanted for text in texts) and len(set(texts)) == 1:
                    return
            except (ConnectionLost, SessionExpired, OSError):
                pass
        raise Mismatch("servers %s do not show their configuration, but %s" % (list(numbers), texts))


def move(changes, member, staying):
    """A server changes its client port: connected clients stay, and the old port is closed."""
    old, new, held = member.port, changes.port(6), changes.port(7)
    stays = Session(old)
    changes.moved[member.number] = new
    changes.change(joining="server.%d=%s" % (member.number, changes.spec(member.number)))
    member.port = new
    changes.wait_shown(staying)
    stays.set("/load/visitor", b"still here")
    stays.close()
    expect(refuses(old), "the old port still answers")
    print("server %d takes clients at another port" % member.number, flush=True)
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", held))
        holder.listen()
        changes.moved[member.number] = held
        changes.change(joining="server.%d=%s" % (member.number, changes.spec(member.number)))
        Session(new).close()
    expect("cannot move" in member.log_text(), "nothing in the log about a port that cannot be had")
    print("a port that is in use leaves the old one as it was", flush=True)


def move_doors(changes, member, other, staying):
    """A server changes its ports for other servers: a server that restarts finds it at the new ports."""
    old = changes.port(member.number) + 1
    changes.moved_doors[member.number] = changes.port(8)
    changes.change(joining="server.%d=%s" % (member.number, changes.spec(member.number)))
    changes.wait_shown(staying)
    expect(refuses(old) and refuses(old + 1), "the old ports for the other servers still answer")
    other.kill()
    other.start()
    changes.wait_shown(staying)
    print("server %d has moved, and server %d has found it" % (member.number, other.number), flush=True)


def refuses(port, timeout=5):
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.02)
    return False


def check():
    parser = arguments(__doc__)
    parser.add_argument(
        "--makes", help="the commands of servers 1 to 5, comma-separated (default: the server five times)"
    )
    args = parser.parse_args()
    makes = args.makes.split(",") if args.makes else [args.server] * 5
    changes = Changes(makes, work_folder("reconfig"), args.port)
    cluster = changes.cluster
    try:
        changes.add(1, (1,))
        cluster.wait_quorum()
        for known in ((1, 2), (1, 2, 3)):
            changes.add(known[-1], known)
            changes.change(joining="server.%d=%s" % (known[-1], changes.spec(known[-1])))
            changes.wait_shown(known)
        print("three have grown from one", flush=True)
        load = Load([changes.port(n) for n in (1, 2, 3)], clients=4)
        for one in load.all:
            one.ports = [changes.port(n) for n in (1, 2, 3, 4, 5)]
        load.start()
        load.wait_progress()

        changes.add(4, (1, 2, 3, 4))
        changes.change(joining="server.4=" + changes.spec(4))
        changes.wait_shown((1, 2, 3, 4))
        load.wait_progress()
        print("server 4 has joined", flush=True)

        leader = cluster.wait_quorum().number
        changes.change(leaving=str(leader))
        staying = [n for n in (1, 2, 3, 4) if n != leader]
        changes.wait_shown(staying)
        cluster[leader].kill()
        load.wait_progress()
        print("server %d, which led, has left" % leader, flush=True)

        gone = min(staying)
        changes.add(5, staying + [5])
        changes.change(joining="server.5=" + changes.spec(5), leaving=str(gone))
        staying = [n for n in staying if n != gone] + [5]
        changes.wait_shown(staying)
        cluster[gone].kill()
        print("server 5 has taken the place of server %d" % gone, flush=True)

        move(changes, cluster[staying[0]], staying)
        load.wait_progress()

        # The one before comes back at its new port for clients, which is still in use.
        last, other = cluster[staying[-1]], cluster[staying[1]]
        move_doors(changes, last, other, staying)
        load.wait_progress()

        load.stop()
        load.check(changes.port(staying[1]))
        return "joined, left, replaced and moved under load; %d writes acknowledged, none lost, longest gap %.0f ms" % (
            load.acknowledged,
            load.longest_gap() * 1000,
        )
    finally:
        cluster.stop()


if __name__ == "__main__":
    conclude(check)
