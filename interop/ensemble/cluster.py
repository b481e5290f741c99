"""Several servers of any make that form one ensemble on this machine."""
import os
import time

from rig.server import NotServing, Server, four_letter_word

PORTS_PER_SERVER = 3


class Member(Server):
    """One server of an ensemble: a Server with a number, and ports for the others."""

    def __init__(self, cmd, folder, port, number, settings):
        super().__init__(cmd, folder, port, settings)
        self.number = number
        with open(os.path.join(self.data, "myid"), "w") as f:
            f.write("%d\n" % number)

    def _wait(self, timeout):
        """A member serves only with a quorum: who starts it waits for that."""

    def become(self, cmd):
        """The same data folder, under another program from the next start on."""
        from rig.server import command
        self.words = command(cmd)

    def srvr(self):
        """{key: value} of srvr; empty while it does not serve."""
        try:
            text = four_letter_word(self.port, "srvr", timeout=1.0)
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


class Cluster:
    """`makes`: the command of each server, in the order of their numbers."""

    def __init__(self, makes, folder, base_port, settings=None, observers=()):
        self.members = {}
        numbers = range(1, len(makes) + 1)
        keys = {"initLimit": 20, "syncLimit": 10, **(settings or {})}
        for n in numbers:
            role = ":observer" if n in observers else ""
            at = base_port + PORTS_PER_SERVER * n
            keys["server.%d" % n] = "127.0.0.1:%d:%d%s" % (at + 1, at + 2, role)
        for n, make in zip(numbers, makes):
            home = os.path.join(folder, "server-%d" % n)
            port = base_port + PORTS_PER_SERVER * n
            self.members[n] = Member(make, home, port, n, keys)

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

    def leader(self):
        for member in self.running():
            if member.mode() == "leader":
                return member
        return None

    def wait_quorum(self, timeout=60, all_serve=True):
        """Waits until there is a leader and, if asked, every running server serves; the leader."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            modes = [member.mode() for member in self.running()]
            if modes.count("leader") == 1 and (not all_serve or None not in modes):
                return self.leader()
            time.sleep(0.02)
        logs = "".join("\n--- server %d: %s" % (m.number, m.log_tail(600)) for m in self.running())
        raise NotServing("no quorum within %d s, modes %s%s" % (timeout, modes, logs))

    def stop(self):
        for member in self.members.values():
            member.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
