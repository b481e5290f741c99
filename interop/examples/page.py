"""Runs docs/examples.md in a network of its own, where its addresses are free: each command as it stands there. At the
end the leading server is killed. The lines that the page shows have to be among those that the programs print. Numbers
may be others.

A block `text,later` shows what the check `examples.jobs` looks for. These things are replaced: `cargo run` finds the
programs that are built, and PostgreSQL is one of the check's own.

python3 interop/run.py examples.page [--server CMD]"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

from examples.postgres import Postgres
from examples.stage import built, wait_until
from harness.outcome import SKIPPED, Skip, conclude, expect
from harness.pages import Page
from harness.peers import CHECKOUT, need_program
from harness.program import Program
from harness.server import arguments, command, four_letter_word, work_folder

PORTS = (2181, 2182, 2183)
POSTGRES_PORT = 5432
INSIDE = "OSTLER_EXAMPLES_PAGE"
RUN = "cargo run -q -p ostler-examples --bin "
# `cargo run` with these words, which stand for what has been built.
CARGO = """#!/bin/bash
[ "$1 $2 $3 $4 $5" = "run -q -p ostler-examples --bin" ] || exit 99
program=$6
shift 6
[ "$1" = -- ] && shift
exec "%s/$program" "$@"
"""
# A line of a log begins with its time and its level, which the page leaves out.
BEGIN = re.compile(r"^\S+Z +[A-Z]+ +")
NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
SHOWN_WITHIN_S = 15.0
# The section about the death of a server, whose lines come after it.
AFTER_THE_KILL = "Kill a server"


class Terminals:
    """The programs of the page, each in a terminal of its own, and what they have printed."""

    def __init__(self, folder, env):
        self.folder, self.env, self.running, self.printed = folder, env, [], ""

    def run(self, block):
        """Commands that do not end by themselves go on."""
        if block.startswith("ostler ensemble") or block.startswith(RUN) and " put" not in block:
            program = Program(["bash", "-c", "exec " + block], cwd=self.folder, env=self.env)
            self.running.append(program)
            if block.startswith(RUN):
                wait_until("the begin of " + block, lambda: says_more_than_its_connection(program.output))
            return
        words = ["bash", "-euo", "pipefail", "-c", block]
        done = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60, check=False
        )
        self.printed += done.stdout
        expect(done.returncode == 0, "this ended with %d:\n%s%s" % (done.returncode, block, done.stdout + done.stderr))

    def lines(self, since=None):
        """The lines that anybody has printed or, after the kill of a server, that each of the programs has."""
        if since is None:
            return set().union(*(same_lines(text) for text in [self.printed, *(one.output for one in self.running)]))
        return set.intersection(*(same_lines(one.output[at:]) for one, at in since.items()))

    def wait_for(self, shown, since=None):
        """Waits until all these lines have been printed."""
        wanted = [line for line in shown.splitlines() if line.strip() not in ("", "...")]

        def missing():
            lines = self.lines(since)
            return [line for line in wanted if same(line) not in lines]

        until = time.monotonic() + SHOWN_WITHIN_S
        while left := missing():
            ends = "\n".join(one.output[-600:] for one in self.running)
            expect(time.monotonic() < until, "the page shows what nobody prints: %s\n%s" % (left, ends))
            time.sleep(0.1)
        return len(wanted)


def same(line):
    """A line without its time, its level and numbers."""
    return NUMBER.sub("N", BEGIN.sub("", line)).strip()


def says_more_than_its_connection(text):
    lines = [same(line) for line in text.splitlines() if line.strip()]
    return any(not line.startswith("connection:") for line in lines)


def same_lines(text):
    return {same(line) for line in text.splitlines()}


def kill_leader(ensemble):
    """kill -9 of the leading server."""

    def leaders():
        return [port for port in PORTS if "Mode: leader" in asked(port)]

    (port,), _ = wait_until("a leader", leaders)
    with open("/proc/%d/task/%d/children" % (ensemble, ensemble)) as f:
        servers = [int(word) for word in f.read().split()]
    (victim,) = [pid for pid in servers if "server-%d/" % (PORTS.index(port) + 1) in commandline(pid)]
    os.kill(victim, signal.SIGKILL)


def asked(port):
    try:
        return four_letter_word(port, "srvr")
    except OSError:
        return ""


def commandline(pid):
    with open("/proc/%d/cmdline" % pid) as f:
        return f.read().replace("\0", " ")


def site(args):
    """The folder in which the commands run, and their environment."""
    folder = work_folder("examples-page")
    programs = os.path.join(folder, "programs")
    os.mkdir(programs)
    os.symlink(shutil.which(command(args.server)[0]), os.path.join(programs, "ostler"))
    with open(os.path.join(programs, "cargo"), "w") as f:
        f.write(CARGO % os.path.dirname(args.built))
    os.chmod(os.path.join(programs, "cargo"), 0o755)
    return folder, {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"]}


def inside(args):
    subprocess.run([need_program("ip"), "link", "set", "lo", "up"], check=True)
    page, count, shown = Page("examples.md"), 0, 0
    with Postgres(POSTGRES_PORT):
        terminals = Terminals(*site(args))
        since = None
        try:
            for block in page.left:
                if block.section == AFTER_THE_KILL and since is None:
                    since = {one: len(one.output) for one in terminals.running[1:]}
                    kill_leader(terminals.running[0].process.pid)
                if block.fence == "sh":
                    print(block.text, end="", flush=True)
                    terminals.run(block.text)
                    count += 1
                    if len(terminals.running) == 1:
                        wait_until("a leader", lambda: any("Mode: leader" in asked(port) for port in PORTS))
                elif block.fence == "text":
                    shown += terminals.wait_for(block.text, since if "connection:" in block.text else None)
            expect(since is not None, "the page has no section `%s`" % AFTER_THE_KILL)
        finally:
            for one in terminals.running:
                one.kill()
    return "%d commands of docs/examples.md, %d lines as it shows them" % (count, shown)


def check():
    parser = arguments(__doc__, built={"help": "one of the programs, if they are built"})
    args = parser.parse_args()
    if os.environ.get(INSIDE):
        return inside(args)
    if os.geteuid() != 0:
        raise Skip("not root: the check needs a network of its own, and PostgreSQL another user")
    # Built outside, since cargo may want the network.
    program = args.built or built()["gateway"]
    words = [need_program("unshare"), "--net", sys.executable, "-u", "-m", "examples.page", "--server", args.server]
    env = {**os.environ, INSIDE: "1"}
    done = subprocess.run(
        [*words, "--built", program], cwd=CHECKOUT, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    print(done.stdout.rstrip(), flush=True)
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    if done.returncode == SKIPPED:
        raise Skip(last.removeprefix("skipped: "))
    expect(done.returncode == 0, last)
    return last.removeprefix("ok: ")


if __name__ == "__main__":
    conclude(check)
