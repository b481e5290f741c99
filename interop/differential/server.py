"""Starts and stops a server, or an ensemble of them, given as a command prefix; a zoo.cfg's path is appended to it."""

import os
import shlex
import signal
import socket
import subprocess
import time

TICK = 10000
# The deletion of containers and TTL nodes, and the expiry of sessions, depend on clocks. The test sets their times so
# high that the order of transactions depends on the requests alone.
REAPER_INTERVAL = 86400000

ZOO_CFG = """\
tickTime=%(tick)d
dataDir=%(data)s
clientPort=%(port)d
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
extendedTypesEnabled=true
enforceQuota=true
DigestAuthenticationProvider.superDigest=super:xQJmxLMiHGwaqBvst5y6rkB6HQs=
znode.container.checkIntervalMs=%(reaper)d
"""


class NotServing(Exception):
    """The server ended, or did not come up in time."""


class Server:
    def __init__(self, name, command, folder, port, more=""):
        """more: further lines of zoo.cfg."""
        self.name = name
        self.more = more
        self.command = shlex.split(command)
        self.folder = folder
        self.port = port
        self.data = os.path.join(folder, "data")
        self.log = os.path.join(folder, "log")
        self.process = None
        os.makedirs(self.data)

    def port_of(self, _client):
        return self.port

    def with_own_names(self, data):
        """Replaces what is different at every server by a common name."""
        return data

    def start(self, data=None):
        """data: another folder to serve than its own."""
        if self._reachable():
            raise SystemExit("port %d is in use by something else; choose another with --port" % self.port)
        config = os.path.join(self.folder, "zoo.cfg")
        with open(config, "w") as f:
            f.write(ZOO_CFG % {"tick": TICK, "data": data or self.data, "port": self.port, "reaper": REAPER_INTERVAL})
            f.write(self.more)
        # Java reads the reaper's interval only as a bare system property, not from zoo.cfg, and decodes the bytes of
        # a digest auth packet with the platform's charset.
        java = "-Dznode.container.checkIntervalMs=%d -Dfile.encoding=UTF-8" % REAPER_INTERVAL
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command + [config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={"LEVEL": "ERROR", **os.environ, "JAVA_TOOL_OPTIONS": java},
                start_new_session=True,
            )
        return self

    def _reachable(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def wait_until_serving(self, seconds=150):
        """Asks `srvr` until it is answered with a mode; a Java server that is still starting may leave a client
        hanging, and one that has missed the others' votes sends its own again only after up to a minute."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            if b"Mode:" in self._srvr():
                return
            time.sleep(0.05)
        raise NotServing(
            "server %s (%s) does not serve on port %d; its last words:\n%s"
            % (self.name, " ".join(self.command), self.port, self.last_words())
        )

    def _srvr(self):
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(b"srvr")
                while chunk := probe.recv(4096):
                    answer += chunk
        except OSError:
            pass
        return answer

    def last_words(self, size=3000):
        with open(self.log, errors="replace") as f:
            return f.read()[-size:]

    def stop(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.process = None


class Ensemble:
    """An ensemble of servers of one make. Each client always uses the same one of them."""

    def __init__(self, name, command, folder, port, size):
        self.name = name
        # Of each member: for clients, for learners, for votes.
        self.ports = [range(port + 3 * n, port + 3 * n + 3) for n in range(size)]
        lines = ["server.%d=127.0.0.1:%d:%d\n" % (n, ports[1], ports[2]) for n, ports in enumerate(self.ports, 1)]
        more = "initLimit=10\nsyncLimit=5\n" + "".join(lines)
        self.members = [
            Server("%s%d" % (name, n), command, os.path.join(folder, str(n)), ports[0], more)
            for n, ports in enumerate(self.ports, 1)
        ]
        for number, member in enumerate(self.members, 1):
            with open(os.path.join(member.data, "myid"), "w") as f:
                f.write("%d\n" % number)

    def port_of(self, client):
        return self.ports[client % len(self.ports)][0]

    def with_own_names(self, data):
        """The configuration names ports, which are this ensemble's own."""
        if data is None or not data.startswith(b"server."):
            return data
        for member, ports in enumerate(self.ports):
            for at, port in enumerate(ports):
                data = data.replace(b"%d" % port, b"port%d.%d" % (member, at))
        return data

    def start(self):
        for member in self.members:
            member.start()
        return self

    def wait_until_serving(self):
        for member in self.members:
            member.wait_until_serving()

    def last_words(self):
        return "\n".join("%s: %s" % (member.name, member.last_words(1000)) for member in self.members)

    def stop(self):
        for member in self.members:
            member.stop()
