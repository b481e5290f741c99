"""The servers that are compared. Starts and ends each in a folder of its own."""

import atexit
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.expanduser(os.environ.get("OSTLER_PEERS") or "~/.cache/ostler-peers")


class Failed(Exception):
    """A server or the load generator gave up; the text says why."""


class Java:
    """ZooKeeper 3.9 as its own scripts start it: the JVM's defaults, and a heap."""

    name = "java"

    def __init__(self):
        self.lib = os.path.join(PEERS, "zk39")
        jars = glob.glob(os.path.join(self.lib, "zookeeper-3*.jar"))
        if not jars:
            raise Failed("no ZooKeeper 3.9 in %s: run interop/peers/get" % PEERS)
        version = re.search(r"zookeeper-(3[\d.]*\d)", jars[0])
        self.title = "ZooKeeper " + (version.group(1) if version else "3.9")

    def command(self, heap):
        return [
            "java",
            "-Xmx" + heap,
            "-Dzookeeper.admin.enableServer=false",
            "-Dlevel=WARN",
            "-Dlog4j2.configurationFile=" + os.path.join(self.lib, "log4j2.xml"),
            "-cp",
            os.path.join(self.lib, "*"),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        ]


class Ostler:
    """This checkout's server."""

    name = "ostler"
    title = "Ostler"

    def __init__(self, program):
        self.program = program

    def command(self, heap):
        return [self.program, "server"]


class Bench:
    """The load generator, pointed at one port, or at those of an ensemble. `options` go with every load."""

    def __init__(self, program, *ports, options=()):
        self.program, self.port, self.options = program, ports[0], list(options)
        self.servers = ",".join("127.0.0.1:%d" % port for port in ports)
        if not os.path.exists(program):
            raise Failed("no %s: run cargo build --release" % program)

    def __call__(self, *words, command=()):
        line = [self.program, "bench", "--json", "--server", self.servers]
        line += self.options
        line += [str(word) for word in words] + (["--"] + list(command) if command else [])
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode:
            raise Failed("%s\n  of: %s" % (done.stderr.strip(), " ".join(line)))
        report = json.loads(done.stdout)
        if report["errors"]:
            raise Failed("error replies %s\n  to: %s" % (report["errors"], " ".join(line)))
        return report


class Member:
    """One server of an ensemble; the load generator knows it by its port."""

    def __init__(self, candidate, folder, number, ports, heap="1g"):
        self.port = ports[number - 1]
        data = os.path.join(folder, "data%d" % number)
        os.makedirs(data)
        with open(os.path.join(data, "myid"), "w") as f:
            f.write("%d\n" % number)
        keys = {
            "tickTime": 2000,
            "initLimit": 10,
            "syncLimit": 5,
            "dataDir": data,
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
        }
        # The two ports of the servers' own talk lie above all client ports.
        for other, port in enumerate(ports, 1):
            keys["server.%d" % other] = "127.0.0.1:%d:%d" % (port + 100, port + 200)
        self.config = os.path.join(folder, "zoo%d.cfg" % number)
        with open(self.config, "w") as f:
            f.writelines("%s=%s\n" % item for item in keys.items())
        self.log = os.path.join(folder, "log%d" % number)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(candidate.command(heap) + [self.config], stdout=log, stderr=log)

    def serves(self):
        code = self.process.poll()
        if code is not None:
            with open(self.log, errors="replace") as log:
                raise Failed("a server of the ensemble ended with %s: %s" % (code, log.read()[-800:]))
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"srvr")
                return b"Mode: " in b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return False


class Ensemble:
    """Servers that elect a leader, each on a data folder of its own."""

    def __init__(self, candidate, bench, folder, servers=3):
        self.folder = folder
        ports = [bench.port + i for i in range(servers)]
        self.members = [Member(candidate, folder, number, ports) for number in range(1, servers + 1)]
        self.bench = Bench(bench.program, *ports)
        Instance.running.append(self)
        until = time.monotonic() + 60
        while not all(member.serves() for member in self.members):
            if time.monotonic() > until:
                raise Failed("no ensemble of %s within a minute, see %s" % (candidate.title, folder))
            time.sleep(0.1)

    def end(self):
        for member in self.members:
            member.process.kill()
            member.process.wait()
        Instance.running.remove(self)

    def discard(self):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Instance:
    """One server on one data folder; it may be started several times."""

    running = []

    def __init__(self, candidate, bench, folder, heap="1g", settings=None):
        self.candidate, self.bench, self.folder, self.heap = candidate, bench, folder, heap
        self.data = os.path.join(folder, "data")
        self.log = os.path.join(folder, "log")
        os.makedirs(self.data, exist_ok=True)
        self.pid = None
        self.configure(settings or {})

    def configure(self, settings):
        """Writes zoo.cfg; takes effect at the next start."""
        keys = {
            "tickTime": 2000,
            "dataDir": self.data,
            "clientPort": self.bench.port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            **settings,
        }
        self.config = os.path.join(self.folder, "zoo.cfg")
        with open(self.config, "w") as f:
            f.writelines("%s=%s\n" % item for item in keys.items())

    def start(self):
        """Starts the server and waits until it has served a request; the load generator's report."""
        words = self.candidate.command(self.heap) + [self.config]
        try:
            report = self.bench("first-request", "--leave-running", "--seconds", 300, "--log", self.log, command=words)
        except Failed as failure:
            raise Failed("%s\n%s" % (failure, self.log_tail())) from None
        self.pid = int(report["figures"]["pid"])
        Instance.running.append(self)
        return report

    def time_first_request(self):
        """Starts the server, times it, stops it."""
        words = self.candidate.command(self.heap) + [self.config]
        return self.bench("first-request", "--log", self.log, command=words)["figures"]["first_reply_after_ms"]

    def log_tail(self):
        try:
            with open(self.log, errors="replace") as f:
                return "  its log ends: " + f.read()[-800:]
        except OSError:
            return "  it left no log"

    def rss(self):
        """Bytes in core."""
        with open("/proc/%s/status" % self.pid) as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS:"))

    def end(self, number=signal.SIGKILL):
        """Ends the server and waits until it is gone."""
        if self.pid is None:
            return
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass
        until = time.monotonic() + 60
        while self._alive():
            if time.monotonic() > until:
                raise Failed("server %d does not end" % self.pid)
            time.sleep(0.001)
        self.pid = None
        Instance.running.remove(self)

    def _alive(self):
        # A killed process stays as a zombie until its parent waits for it, but first its threads must end:
        # until then it keeps its port.
        try:
            with open("/proc/%s/stat" % self.pid) as f:
                zombie = f.read().rsplit(")", 1)[1].split()[0] == "Z"
            return not zombie or len(os.listdir("/proc/%s/task" % self.pid)) > 1
        except OSError:
            return False

    def discard(self):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


@atexit.register
def end_all():
    for instance in list(Instance.running):
        instance.end()


def end_strays(folder):
    """Ends servers that an interrupted run was just starting: they have a zoo.cfg in its folder."""
    inside = os.path.join(folder, "").encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
            if any(word.startswith(inside) for word in words):
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
