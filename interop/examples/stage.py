"""The ensemble and the programs of a check: three servers, and programs of crates/examples at them."""

import contextlib
import datetime
import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from typing import NamedTuple

from ensemble.cluster import Cluster
from harness.outcome import Mismatch, expect
from harness.peers import CHECKOUT, need_program
from harness.program import Program
from harness.server import work_folder

PROGRAMS = ("job-scheduler", "config-watcher", "greeter", "gateway", "shard-worker", "rate-limited-queue")
SETTINGS = {"tickTime": 200}
LINE = re.compile(r"^(\S+Z) +(INFO|WARN|ERROR) (.*)$", re.M)
SHOWN_LINES = 6


class Line(NamedTuple):
    """A line of a program's log; `at` in seconds since 1970."""

    at: float
    level: str
    text: str


def built():
    """{name: path} of all programs."""
    # As `cargo test --workspace` builds them: after that nothing is left to do. The example makes cargo choose the
    # features that tests have, and with them the libraries that are built.
    words = [need_program("cargo"), "build", "--quiet", "--message-format=json", "--workspace"]
    for name in PROGRAMS:
        words += ["--bin", name]
    p = subprocess.run([*words, "--example", "get_started"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    expect(p.returncode == 0, "cargo build failed: " + p.stderr[-1500:])
    lines = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]
    made = {line["target"]["name"]: line["executable"] for line in lines if line.get("executable")}
    missing = [name for name in PROGRAMS if name not in made]
    expect(not missing, "cargo names no program %s" % missing)
    return {name: made[name] for name in PROGRAMS}


class Instance(Program):
    """A program that runs, with a name for messages."""

    def __init__(self, words, name):
        super().__init__(words)
        self.name = name
        self.ended_at = None  # by kill -9

    def lines(self):
        return [Line(seconds(at), level, text) for at, level, text in LINE.findall(self.output)]

    def said(self, pattern):
        """All matches in its log so far, as (line, match)."""
        wanted = re.compile(pattern)
        return [(line, match) for line in self.lines() if (match := wanted.search(line.text))]

    def kill_now(self):
        """kill -9."""
        self.ended_at = time.time()
        self.kill()

    def stop(self, timeout=10):
        """SIGTERM: it has to end by itself, with 0."""
        self.process.terminate()
        code = self.process.wait(timeout)
        # The last lines may not be read yet.
        with self.more:
            self.more.wait_for(lambda: self.output.endswith("(end of output)\n"), timeout)
        expect(code == 0, "%s ended with %s: %s" % (self.name, code, self.output[-700:]))

    def show(self, pattern="", count=SHOWN_LINES):
        """Prints its last lines with this pattern."""
        for line, _ in self.said(pattern)[-count:]:
            print("  %s: %s" % (self.name, line.text), flush=True)


def seconds(at):
    return datetime.datetime.fromisoformat(at).timestamp()


class Stage:
    """Three servers, and the programs that run at them. All of them end with this."""

    def __init__(self, args, name):
        self.programs = built()
        self.folder = work_folder("examples-" + name)
        self.cluster = Cluster([args.server] * 3, self.folder, args.port, SETTINGS)
        self.port = args.port + 100  # for programs
        self.instances = []

    def __enter__(self):
        self.cluster.start()
        self.cluster.wait_quorum()
        return self

    def __exit__(self, *_):
        for instance in self.instances:
            with contextlib.suppress(ProcessLookupError):
                instance.resume()
            instance.kill()
        self.cluster.stop()

    def servers(self):
        return ",".join("127.0.0.1:%d" % port for port in self.cluster.ports())

    def start(self, program, name, session_ms, *options):
        words = [self.programs[program], "--servers", self.servers(), "--session-ms", str(session_ms), *options]
        instance = Instance(words, name)
        self.instances.append(instance)
        return instance

    def a_port(self):
        self.port += 1
        return self.port

    def kill_leader(self):
        """kill -9 of the leading server. Returns it."""
        leader = self.cluster.wait_quorum()
        leader.kill()
        print("kill -9 of server %d, the leader" % leader.number, flush=True)
        return leader

    def any_port(self):
        """The client port of a server that runs."""
        return self.cluster.running()[0].port


def answer(url):
    """(status, text) of a GET; the status 0 if there is no answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except OSError as lost:
        return 0, str(lost)


def wait_until(what, ask, timeout=15.0, look_every=0.02):
    """Waits until `ask` gives something true, and returns (it, the seconds that it took)."""
    began = time.monotonic()
    while not (answer := ask()):
        if time.monotonic() - began > timeout:
            raise Mismatch("%s: not within %.0f s" % (what, timeout))
        time.sleep(look_every)
    return answer, time.monotonic() - began
