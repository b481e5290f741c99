"""An ensemble of servers of any make on this machine."""

import os
import signal
import time

from harness.outcome import Mismatch, expect
from harness.protocol import NODE_EXISTS
from harness.server import NotServing, Server, command, four_letter_word
from harness.session import ConnectionLost, Refused, Session
from harness.tree import differences, dump

PORTS_PER_SERVER = 3
BARRIER = "/barrier"
USER = b"ann:word"  # may read whatever the loads create
OWN_NODES = ("/zookeeper/config", BARRIER)  # these may differ while trees are compared


class Member(Server):
    """One server of an ensemble: a Server with a number, and ports for the others."""

    def __init__(self, cmd, folder, port, number, settings):
        super().__init__(cmd, folder, port, settings)
        self.number = number
        with open(os.path.join(self.data, "myid"), "w") as f:
            f.write("%d\n" % number)

    def _wait(self, timeout):
        """Does nothing: a member serves only with a quorum, so the caller waits for that."""

    def become(self, cmd):
        """From the next start on, another program runs on the same data folder."""
        self.words = command(cmd)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def look_alive(self):
        """Checks that the server has not ended by itself."""
        code = self.process.poll() if self.process else None
        if code is not None:
            raise Mismatch("server %d ended by itself with %s: %s" % (self.number, code, self.log_tail()))

    def srvr(self, timeout=1.0):
        """{key: value} of srvr; empty while the server does not serve."""
        try:
            text = four_letter_word(self.port, "srvr", timeout)
        except OSError:
            return {}
        return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)

    def mode(self):
        return self.srvr().get("Mode")

    def mntr(self):
        try:
            text = four_letter_word(self.port, "mntr", timeout=2.0)
        except OSError:
            return {}
        return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)

    def elections(self):
        """The server's election history; empty for a Java server, which keeps none."""
        try:
            return four_letter_word(self.port, "elec")
        except OSError:
            return ""

    def log_text(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, errors="replace") as f:
            return f.read()

    def digest_mismatches(self):
        """The count since the server's start; None if it does not answer."""
        until = time.monotonic() + 10
        while (count := self.mntr().get("zk_digest_mismatches_count")) is None:
            if self.process is None or time.monotonic() > until:
                return None
            time.sleep(0.05)
        return int(count)

    def digests(self):
        """{zxid: digest of the tree} for the last zxids with a kept digest."""
        lines = [line.split(":") for line in four_letter_word(self.port, "hash").splitlines() if ":" in line]
        return {line[0].strip(): line[-1].strip() for line in lines}

    def tree(self):
        """All nodes, after every write that was committed before this call."""
        session = Session(self.port, 30000)
        try:
            session.add_auth("digest", USER)
            # An acknowledged write comes after all others. A sync alone would trust a leader that may be deposed.
            try:
                session.create(BARRIER)
            except Refused as e:
                if e.code != NODE_EXISTS:
                    raise
            session.set(BARRIER, b"%d" % self.number)
            nodes = dump(session)
            session.close()
        finally:
            session.drop()
        return {path: node for path, node in nodes.items() if path not in OWN_NODES}


class Cluster:
    """`makes`: the command of each server, in the order of their numbers. `links`: see links.py; without, all are
    direct.

    `host`: where the others find a server, by its number.
    """

    def __init__(self, makes, folder, base_port, settings=None, observers=(), links=None, host=None):
        self.members = {}
        host = host or (links.host if links else lambda n: "127.0.0.1")
        numbers = range(1, len(makes) + 1)
        own = {n: base_port + PORTS_PER_SERVER * n for n in numbers}  # client port, then those for the others
        for n, make in zip(numbers, makes):
            keys = {"initLimit": 20, "syncLimit": 10, **(settings or {})}
            for m in numbers:
                role = ":observer" if m in observers else ""
                ports = [own[m] + 1, own[m] + 2]
                if links and m != n:
                    ports = [links.to(n, m, port) for port in ports]
                keys["server.%d" % m] = "%s:%d:%d%s" % (host(m), *ports, role)
            self.members[n] = Member(make, os.path.join(folder, "server-%d" % n), own[n], n, keys)
            if links:
                # Otherwise the servers would reach each other without the links.
                self.members[n].settings["election.callMovedServers"] = "false"
                links.house(self.members[n])

    def __getitem__(self, number):
        return self.members[number]

    def start(self):
        for member in self.members.values():
            member.start()
        return self

    def ports(self):
        return [member.port for member in self.members.values()]

    def running(self):
        return [member for member in self.members.values() if member.process is not None]

    def leader(self, among=None):
        """The one that says at this moment that it leads; None if none does."""
        for member in among or self.running():
            if member.mode() == "leader":
                return member
        return None

    def wait_leader(self):
        """Waits for a leader: a busy machine may elect once more, and a server may answer late. Returns it."""
        return self.wait_quorum(timeout=30, all_serve=False)

    def wait_quorum(self, timeout=60, all_serve=True, among=None):
        """Waits until there is a leader and, if asked, every running server serves. Returns the leader.

        `among`: look at these only.
        """
        until = time.monotonic() + timeout
        modes = {}
        while time.monotonic() < until:
            looked_at = among or self.running()
            modes = {member.number: member.mode() for member in looked_at}
            for member in looked_at:
                member.look_alive()
            leaders = [n for n, mode in modes.items() if mode == "leader"]
            if len(leaders) == 1 and (not all_serve or None not in modes.values()):
                return self.members[leaders[0]]
            time.sleep(0.02)
        logs = "".join("\n--- server %d: %s" % (m.number, m.log_tail(600)) for m in self.running())
        logs += "".join("\n--- elections of server %d: %s" % (m.number, m.elections()) for m in self.running())
        raise NotServing("no quorum within %d s, modes %s%s" % (timeout, modes, logs))

    def look_same(self, without_digests=(), mixtures=()):
        """Checks that all running servers have the same tree, and had the same digest for each zxid for which two kept
        one.

        `without_digests`: numbers of servers whose digests of the past may have been others.
        `mixtures`: the same of single epochs, as pairs of a number and an epoch.
        """
        members = self.running()
        first = members[0].number
        while True:
            trees = {member.number: patiently(member.tree) for member in members}
            # Sessions and nodes expire by themselves: a comparison counts if nothing did meanwhile.
            if trees[first] == patiently(members[0].tree):
                break
        for n, tree in trees.items():
            lines = differences(trees[first], tree)
            expect(not lines, "server %d has another tree than server %d:\n  %s" % (n, first, "\n  ".join(lines)))
        seen = {}
        for member in [m for m in members if m.number not in without_digests]:
            for zxid, digest in member.digests().items():
                if (member.number, int(zxid, 16) >> 32) in mixtures:
                    continue
                n, other = seen.setdefault(zxid, (member.number, digest))
                expect(
                    digest == other,
                    "digest at zxid %s: %s at server %d, %s at server %d" % (zxid, digest, member.number, other, n),
                )
        return len(trees[first])

    def stop(self):
        for member in self.members.values():
            member.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def patiently(ask, timeout=30):
    """The result of `ask`, which is repeated while connections to servers fail."""
    until = time.monotonic() + timeout
    while True:
        try:
            return ask()
        except (ConnectionLost, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
