"""Runs docs/operations.md: each command and each setting of the handbook, taken from the page itself, at three servers.
Only these things are replaced:

    zk1.example.com to zk4.example.com    127.0.0.11 to 127.0.0.14, addresses of this machine
    127.0.0.1 and 0.0.0.0                 the address of the server that the command is for
    2181, 2888, 3888, 8080, 7000, 3181    free ports
    /etc/ostler, /var/lib/ostler          folders of the server that the command is for
    /backup, /restored                    folders of the first server
    systemctl, journalctl, scp            programs that start, stop, show and fill those servers
    the zxid, the session, `echo 1`       what this run has

A zoo.cfg and the line of the fourth server also get the address to listen at, since the servers share this machine.

python3 interop/run.py admin.handbook [--server CMD] [--port N]"""

import atexit
import contextlib
import os
import re
import signal
import subprocess
import time

from admin.http import ask
from harness.outcome import Mismatch, conclude, expect
from harness.pages import Page
from harness.peers import need_program
from harness.program import Program
from harness.server import arguments, command, work_folder

NUMBERS = (1, 2, 3)
JOINING = 4
FOLLOWED_S = 3  # `ostler backup --follow` looks every second
PORTS = {"2181": 0, "2888": 1, "3888": 2, "8080": 3, "7000": 4, "3181": 20}
# Blocks that cannot run here: their first words, and the check that has them.
ELSEWHERE = {"apt install": "packages.deb installs the package in a fresh Debian"}
# Commands whose exit code 1 means that something was found, such as ports without TLS.
FINDS = re.compile(r"^ostler (check|explain server|inspect repair \S+$)", re.M)
# Not those behind a colon: `scp` puts them below the folder of the other host.
FOLDERS = re.compile(r"(?<![\w/:])/(etc/ostler|var/lib/ostler|backup|restored)")
ZXID, SESSION = "0x500000a1f", "0x100a3f77c2d10004"
SYSTEMCTL = """#!/bin/bash
pid="$HOST/pid"
case $1 in
  enable|start|restart)
    [ "$1" = restart ] && "$0" stop
    if ! { [ -e "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null; }; then
      setsid ostler server "$HOST/etc/ostler/zoo.cfg" >>"$HOST/log" 2>&1 </dev/null &
      echo $! >"$pid"
    fi ;;
  stop)
    [ -e "$pid" ] || exit 0
    kill "$(cat "$pid")" 2>/dev/null
    while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.05; done
    rm "$pid" ;;
  status) kill -0 "$(cat "$pid")" ;;
esac
"""
JOURNALCTL = '#!/bin/bash\ncat "$HOST/log"\n'
SCP = """#!/bin/bash
to="${@: -1}"
cp "${@:1:$#-1}" "HOSTS/${to%%:*}/${to#*:}"
"""


def address(number):
    return "127.0.0.1%d" % number


class Hosts:
    """The folders of the hosts, and how commands run at each."""

    def __init__(self, program, port):
        self.folder, self.port, self.zxid, self.session = work_folder("handbook"), port, "", ""
        parts = ("etc/ostler", "var/lib/ostler", "backup", "restored")
        roots = ["hosts/%s/%s" % (address(number), part) for number in (*NUMBERS, JOINING) for part in parts]
        for name in ("admin", "bin", *roots):
            os.makedirs(os.path.join(self.folder, name))
        os.symlink(program, self.path("bin", "ostler"))
        for name, text in (("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL), ("scp", SCP)):
            with open(self.path("bin", name), "w") as f:
                f.write(text.replace("HOSTS", self.path("hosts")))
            os.chmod(self.path("bin", name), 0o755)
        self.env = {**os.environ, "PATH": self.path("bin") + os.pathsep + os.environ["PATH"]}
        atexit.register(self.stop)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def root(self, number):
        return self.path("hosts", address(number))

    def here(self, text, number=1):
        """The text with what is to be replaced."""
        text = re.sub(r"(zk\d\.example\.com)(\S*);2181", r"\1\2;\1:2181", text)
        text = re.sub(r"\b(127\.0\.0\.1|0\.0\.0\.0)\b", address(number), text)
        text = re.sub(r"zk(\d|\$n)\.example\.com", r"127.0.0.1\1", text)
        for was, at in PORTS.items():
            text = re.sub(r"\b%s\b" % was, str(self.port + at), text)
        text = FOLDERS.sub(lambda match: "%s/%s" % (self.root(number), match[1]), text)
        text = re.sub(r"^echo \d >", "echo %d >" % number, text, flags=re.M)
        return text.replace(ZXID, self.zxid).replace(SESSION, self.session)

    def result(self, text, number=1):
        try:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", self.here(text, number)],
                cwd=self.path("admin"),
                env={**self.env, "HOST": self.root(number)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=90,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            with open(self.root(number) + "/log", errors="replace") as log:
                raise Mismatch("%s\nthe log of server %d: %s" % (late, number, log.read()[-2000:])) from late
        return done.returncode, done.stdout

    def run(self, text, number=1):
        """Runs a block as it stands on the page, for one server. Returns what it printed."""
        said = ""
        # Each command that finds something has an exit code of its own, so it runs by itself.
        parts = text.splitlines(keepends=True) if FINDS.search(text) and "<<" not in text else [text]
        for part in parts:
            code, more = self.result(part, number)
            said += more
            expect(
                code == 0 or (code == 1 and FINDS.search(part)),
                "at server %d this ended with %d:\n%s%s" % (number, code, part, more[-1500:]),
            )
        return said

    def on_all(self, text):
        return [self.run(text, number) for number in NUMBERS]

    def write_settings(self, text, numbers):
        """Writes zoo.cfg with the settings of the page."""
        for number in numbers:
            own = "clientPortAddress=%s\nadmin.serverPort=%d\n" % (address(number), self.port + PORTS["8080"])
            own += "metricsProvider.httpHost=%s\n" % address(number)
            with open(self.root(number) + "/etc/ostler/zoo.cfg", "w") as f:
                f.write(self.here(text, number) + own)

    def wait_voters(self):
        self.on_all("until curl -fsS 'http://127.0.0.1:8080/readyz?voter'; do sleep 0.2; done")

    def stop(self):
        for number in (*NUMBERS, JOINING):
            with contextlib.suppress(OSError, ValueError):
                with open(self.root(number) + "/pid") as f:
                    os.kill(int(f.read()), signal.SIGKILL)


def background(hosts, text, wanted, meanwhile=None):
    """Runs a block that goes on until it is stopped."""
    words = ["bash", "-c", "cd '%s'; exec %s" % (hosts.path("admin"), hosts.here(text))]
    program = Program(words, env={**hosts.env, "HOST": hosts.root(1)})
    program.wait_for(wanted, 60)
    if meanwhile:
        meanwhile()
    program.process.send_signal(signal.SIGTERM)
    program.process.wait(30)
    program.kill()


def first_start(page, hosts):
    hosts.run(page.take("First start"))
    start, use = page.take("First start"), page.take("First start")

    def works():
        expect("world" in hosts.run(use), "the shell does not read the znode")

    background(hosts, start, "^listening on", works)
    background(hosts, page.take("First start"), "leader")


def ensemble(page, hosts):
    """Starts three servers with all settings of the page, and changes the ensemble."""
    digest = hosts.run(page.take("Secure")).strip()
    settings = "".join(block.text for block in page.left if block.fence == "properties")
    page.left = [block for block in page.left if block.fence != "properties"]
    expect("superDigest=super:%s\n" % digest in settings, "the page has another digest than %s" % digest)
    hosts.run(page.take("Secure"))
    hosts.write_settings(settings, NUMBERS)
    section = "An ensemble, and changing it"
    hosts.on_all(page.take(section))
    hosts.on_all(page.take("Start and stop").replace("systemctl stop", "systemctl status"))
    hosts.on_all(page.take(section))
    hosts.wait_voters()
    hosts.run(page.take(section))
    line = "server.4=zk4.example.com:2888:3888:participant;2181\n"
    hosts.write_settings(settings + line, (JOINING,))
    hosts.run("echo 4 > /var/lib/ostler/myid; systemctl start ostler", JOINING)
    hosts.run("until curl -fsS http://127.0.0.1:8080/readyz; do sleep 0.2; done", JOINING)
    section = "Changing the ensemble"
    said = hosts.run(page.take(section))
    expect("server.4=" in said, "the fourth server is no member: %s" % said)
    hosts.run(page.take(section))
    hosts.run("systemctl stop ostler", JOINING)


def take_all(page, hosts, *sections):
    """Runs all blocks of sections, in their order, at the first server."""
    said = ""
    for section in sections:
        while any((block.section, block.fence) == (section, "sh") for block in page.left):
            said += hosts.run(page.take(section))
    return said


def delete(hosts):
    """Deletes /app, and notes the last transaction before."""
    hosts.run("ostler shell zk1.example.com:2181 create /app data")
    hosts.run("ostler shell zk1.example.com:2181 create /app/config value")
    said = hosts.run("ostler inspect log /var/lib/ostler")
    hosts.zxid = re.findall(r"zxid (0x[0-9a-f]+)", said)[-1]
    hosts.run("ostler shell zk1.example.com:2181 deleteall /app")
    time.sleep(FOLLOWED_S)


def value(hosts):
    return hosts.result("ostler shell zk2.example.com:2181 get /app/config")


def back_up_and_restore(page, hosts):
    section = "Back up and restore"
    hosts.run(page.take(section))
    background(hosts, page.take(section), "^base", lambda: delete(hosts))
    hosts.run(page.take(section))
    history = hosts.run(page.take("Restore a subtree"))
    expect("delete /app" in history, "the history has no delete: %s" % history)
    expect(value(hosts)[0] != 0, "/app/config is still there")
    hosts.run(page.take("Restore a subtree"))
    expect("value" in value(hosts)[1], "the subtree is not back")
    hosts.run("ostler shell zk1.example.com:2181 create /later value")
    section = "Restore an ensemble"
    hosts.on_all(page.take(section))
    hosts.run(page.take(section))
    hosts.on_all(page.take(section))
    hosts.wait_voters()
    expect("value" in value(hosts)[1], "the ensemble is not what it was")
    expect(hosts.result("ostler shell zk1.example.com:2181 get /later")[0] != 0, "a later write is still there")


def ended_session(hosts):
    """Ends a session, and notes its id."""
    hosts.run("ostler shell zk1.example.com:2181 ls /")
    connection = ask(hosts.port + PORTS["8080"], "/commands/session_ends", host=address(1)).json()
    hosts.session = connection["ends"][-1]["session"]


def repair(page, hosts):
    """The parts of "What to do when" that stop a server."""
    section = "Damaged files"
    hosts.run(page.take(section), 2)
    hosts.run(page.take(section), 2)
    hosts.wait_voters()
    hosts.run(page.take("A server lost its disk"), 3)
    expect("value" in hosts.run("ostler shell zk3.example.com:2181 get /app/config"), "server 3 has not the data")


def check():
    args = arguments(__doc__).parse_args()
    [need_program(name) for name in ("bash", "openssl", "curl", "setsid", "ss")]
    page, hosts = Page("operations.md"), Hosts(command(args.server)[0], args.port)
    page.left = [block for block in page.left if block.fence]
    for first_words, reason in ELSEWHERE.items():
        (block,) = [block for block in page.left if block.text.startswith(first_words)]
        page.left.remove(block)
        print("not run here: %s (%s)" % (block.text.strip(), reason), flush=True)
    count = len(page.left)
    take_all(page, hosts, "Install")
    first_start(page, hosts)
    ensemble(page, hosts)
    print("the ensemble serves, and was changed", flush=True)
    take_all(page, hosts, "Health", "The admin server", "Metrics, dashboards and alerts")
    take_all(page, hosts, "Slow requests and hot paths", "Logs", "Four-letter words")
    print("watched", flush=True)
    back_up_and_restore(page, hosts)
    print("backed up and restored", flush=True)
    hosts.run(page.take("Upgrade"))
    hosts.on_all(page.take("Upgrade"))
    take_all(page, hosts, "Storms and limits")
    ended_session(hosts)
    take_all(page, hosts, "No leader", "A session was lost", "Slow", "The disk is full")
    repair(page, hosts)
    take_all(page, hosts, "Clients cannot connect", "Deleted data", "Wrong clock")
    hosts.on_all("systemctl stop ostler")
    expect(not page.left, "blocks that nothing runs: %s" % page.left)
    return "%d blocks of docs/operations.md" % count


if __name__ == "__main__":
    conclude(check)
