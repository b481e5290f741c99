#!/usr/bin/env python3
"""Runs docs/secure.md: each command and each setting of the page, taken from the page itself, at three real servers.
Then it looks whether what the page promises is so. Only these things are replaced:

    zk1.example.com to zk3.example.com    127.0.0.11 to 127.0.0.13, addresses of this machine
    the ports 2281, 2888 and 3888         free ports
    /etc/zookeeper, /var/lib/zookeeper    folders of the server that the command is for
    scp                                   a program that copies into those folders
    zk1 and 1                             the server's own name and number, where the page says so

A zoo.cfg also gets the address to listen at, since three servers share this machine. Kerberos needs a KDC, so
security/kerberos.py runs that. --quick leaves out the way from plain to TLS, which security/quorum_tls.py tests."""

import os
import re
import ssl
import subprocess
import sys
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ensemble.cluster import Cluster
from ensemble.load import SETTINGS, Load
from harness.address import found_at, secured
from harness.outcome import conclude, expect
from harness.pages import Page
from harness.peers import need_program
from harness.program import Program
from harness.server import arguments, command, four_letter_word, work_folder
from harness.session import Session
from security import steps

NUMBERS = (1, 2, 3)
ELSEWHERE = ("Kerberos",)  # sections that another check runs
RELOAD_S = 15  # the page says that servers look every two seconds; this machine may be busy
RELOADED = "the files of TLS have changed: new connections use them"
SCP = """#!/bin/bash
to="${@: -1}"
cp "${@:1:$#-1}" "HOSTS/${to%%:*}/${to#*:}"
"""
CERTIFICATES, SERVERS, CLIENTS = "1. Certificates", "2. The servers", "3. The clients"
AUTHORITY, TO_TLS, SASL = "A new authority", "From plain to TLS while clients write", "Passwords: SASL"
REFUSED = "no session with"


def address(number):
    return "127.0.0.1%d" % number


class Hosts:
    """The folders of three hosts, and one more from where they are set up."""

    def __init__(self, program, port):
        self.folder, self.port = work_folder("page"), port
        self.admin, bin = self.path("admin"), self.path("bin")
        for number in NUMBERS:
            for name in ("/etc/zookeeper", "/var/lib/zookeeper"):
                os.makedirs(self.root(number) + name)
        os.symlink(program, os.path.join(bin, "ostler"))
        self.write(os.path.join(bin, "scp"), SCP.replace("HOSTS", self.path("hosts")))
        os.chmod(os.path.join(bin, "scp"), 0o755)
        self.env = {**os.environ, "PATH": bin + os.pathsep + os.environ["PATH"]}
        self.servers = {}

    def path(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path

    def root(self, number):
        return os.path.join(self.folder, "hosts", address(number))

    @staticmethod
    def write(path, text):
        with open(path, "w") as f:
            f.write(text)

    def here(self, text, number=None):
        """The text with what is to be replaced."""
        text = re.sub(r"zk(\d|\$n)\.example\.com", r"127.0.0.1\1", text)
        for at, port in enumerate((2281, 2888, 3888)):
            text = re.sub(r"\b%d\b" % port, str(self.port + at), text)
        if number:
            text = text.replace("server-zk1.pem", "server-zk%d.pem" % number)
            text = re.sub(r"(?<![\w/])/(etc|var/lib)/zookeeper", r"%s/\1/zookeeper" % self.root(number), text)
        return text

    def run(self, text, number=None):
        """Runs a block as it stands on the page. Returns what it printed."""
        code, said = self.result(self.here(text, number))
        expect(code == 0, "this ended with %d:\n%s%s" % (code, text, said[-800:]))
        return said

    def result(self, text):
        """Returns (exit code, output) of commands."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.admin,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
            check=False,
        )
        return done.returncode, done.stdout

    def shell(self, who, number, line, options=""):
        """(exit code, output) of the shell with the files of a client."""
        own = "ostler-certs/client-%s.pem" % who if "/" not in who else who
        tls = "--tls-ca ostler-certs/ca.pem --tls-cert %s --tls-key %s" % (own, own)
        server = "%s:%d" % (address(number), self.port)
        return self.result("ostler shell %s --connect-timeout 4000 %s %s %s" % (tls, options, server, line))

    def context(self):
        """How the client app connects with its files of now."""
        certificates = os.path.join(self.admin, "ostler-certs")
        made = ssl.create_default_context(cafile=os.path.join(certificates, "ca.pem"))
        made.load_cert_chain(os.path.join(certificates, "client-app.pem"))
        return made

    def zoo_cfg(self, number):
        return self.root(number) + "/etc/zookeeper/zoo.cfg"

    def add_settings(self, text):
        for number in NUMBERS:
            with open(self.zoo_cfg(number), "a") as f:
                f.write(self.here(text, number) + "secureClientPortAddress=%s\n" % address(number))

    def start(self, text):
        """Starts all servers by the block that starts one."""
        for number in NUMBERS:
            self.servers[number] = Program(self.here(text, number).split(), env=self.env)

    def wait_served(self, options=""):
        """Waits until each server serves a client."""
        for number in NUMBERS:
            until = time.monotonic() + 20
            while (found := self.shell("app", number, "whoami", options))[0] != 0:
                said = found[1] + self.servers[number].output[-600:]
                expect(time.monotonic() < until, "server %d does not serve: %s" % (number, said))

    def stop(self):
        for server in self.servers.values():
            server.process.terminate()
            server.process.wait(20)
            server.kill()


def set_up(page, hosts):
    """Returns the command that starts a server."""
    hosts.run(page.take(CERTIFICATES))
    hosts.run(page.take(CERTIFICATES))
    settings, ready, start = page.take(SERVERS, fence=""), page.take(SERVERS), page.take(SERVERS)
    hosts.add_settings(settings)
    for number in NUMBERS:
        said = hosts.run(ready.replace("echo 1", "echo %d" % number), number)
        expect("weakness" not in said, "`ostler check` names a weakness: %s" % said)
    print("`ostler check` names no weakness", flush=True)
    return start


def is_strict(hosts, start):
    """What the page says of security=strict, and of TLS."""
    for number, server in hosts.servers.items():
        for who in ("clients: ", "servers: ", "operators: "):
            server.wait_for("^" + who)
        audit = hosts.root(number) + "/var/lib/zookeeper/zookeeper_audit.log"
        expect(os.path.exists(audit), "server %d has no audit log" % number)
    expect(hosts.shell("app", 1, "create /other")[0] != 0, "anybody may write at the root")
    code, said = hosts.result(
        hosts.here("ostler shell --tls-ca ostler-certs/ca.pem --connect-timeout 2000 zk1.example.com:2281 whoami")
    )
    expect(code != 0 and REFUSED in said, "a client without a certificate gets in: %s" % said)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        made = hosts.context()
        made.minimum_version = made.maximum_version = version
        secured(hosts.port, lambda: made)
        expect("Mode:" in four_letter_word(hosts.port, "srvr"), "srvr is not answered by %s" % version.name)
    expect("Mode:" not in four_letter_word(hosts.port, "stat"), "stat is answered")
    weak = os.path.join(hosts.folder, "weak.cfg")
    with open(hosts.zoo_cfg(1)) as f:
        hosts.write(weak, f.read() + "clientPort=%d\n" % (hosts.port + 3))
    code, said = hosts.result("timeout 20 " + re.sub(r"\S+zoo.cfg", weak, hosts.here(start, 1)))
    expect(code not in (0, 124), "a server with a port without TLS has started: %s" % said[-400:])
    print("strict: %s" % said.strip().splitlines()[-1][:150], flush=True)


def use(page, hosts):
    hosts.run(page.take(CLIENTS))
    said = hosts.run(page.take(CLIENTS))
    for wanted in ("Created /app\n", "x509: CN=app\n", "Created /app/first\n"):
        expect(wanted in said, "the shell does not say %r: %s" % (wanted, said))
    said = hosts.run(page.take(CLIENTS))
    expect("data" in said.split(), "the shell does not read the znode: %s" % said)
    print("the clients work as written", flush=True)


def replace_authority(page, hosts):
    """No connection ends meanwhile, and at the end the certificates from before are refused."""
    secured(hosts.port, hosts.context)
    session = Session(hosts.port, 30000)
    old = hosts.path("before") + "/client-app.pem"
    hosts.run("cp ostler-certs/client-app.pem %s" % old)
    for _ in range(3):
        hosts.run(page.take(AUTHORITY))
        for number in NUMBERS:
            for _both_ports in ("ssl.", "ssl.quorum."):
                hosts.servers[number].wait_for(RELOADED, RELOAD_S)
            code, said = hosts.shell("app", number, "whoami")
            expect(code == 0, "server %d refuses a client: %s" % (number, said))
        session.exists("/app")
    for number in NUMBERS:
        code, said = hosts.shell(old, number, "whoami")
        expect(code != 0 and REFUSED in said, "server %d takes the old authority: %s" % (number, said))
    session.close()
    print("the authority is replaced, and no connection ended", flush=True)


def to_tls(page, hosts, server):
    """The rounds of restarts, under load, and back."""
    makes = [server] * len(NUMBERS)
    cluster = Cluster(makes, os.path.join(hosts.folder, "cluster"), hosts.port + 10, SETTINGS, host=address)
    rounds = [page.take(TO_TLS, fence="") for _ in range(3)]
    before = {"sslQuorum": "false", "portUnification": "false"}

    def settings(number, count):
        """The settings of a server after this number of rounds."""
        lines = "".join(hosts.here(text, number) for text in rounds[:count]).splitlines()
        return {**before, **dict(line.split("=", 1) for line in lines)}

    with cluster:
        cluster.start()
        cluster.wait_quorum()
        load = Load(cluster.ports(), 4).start()
        for count in (1, 2, 3, 2, 1, 0):
            leader = cluster.wait_quorum()
            for member in sorted(cluster.members.values(), key=lambda one: one is leader):
                steps.restart(cluster, load, member, settings(member.number, count))
        print("from plain to TLS and back: " + steps.end(cluster, load), flush=True)


def log_in(page, hosts, start):
    users = page.take(SASL)
    for number in NUMBERS:
        hosts.run(users, number)
    hosts.stop()
    hosts.add_settings(page.take(SASL, fence=""))
    hosts.start(start)
    line = page.take(SASL)
    hosts.run("echo bobsecret > right; echo guess > wrong")
    hosts.wait_served("--sasl-user bob --sasl-password-file right")
    expect("sasl: bob\n" in hosts.run(line), "the shell is not known as bob")
    expect(hosts.shell("app", 1, "whoami", "--sasl-user bob --sasl-password-file wrong")[0] != 0, "a wrong password")
    expect(hosts.shell("app", 1, "ls /")[0] != 0, "a client without a login gets in")
    print("logins work as written", flush=True)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="without the way from plain to TLS")
    args = parser.parse_args()
    [need_program(name) for name in ("bash", "openssl", "md5sum")]
    page, hosts = Page("secure.md", ELSEWHERE), Hosts(command(args.server)[0], args.port)
    found_at(hosts.port, address(1))
    if args.quick:
        page.left = [block for block in page.left if block.section != TO_TLS]
    count = len(page.left)
    start = set_up(page, hosts)
    hosts.start(start)
    hosts.wait_served()
    use(page, hosts)
    is_strict(hosts, start)
    replace_authority(page, hosts)
    log_in(page, hosts, start)
    hosts.stop()
    if not args.quick:
        to_tls(page, hosts, args.server)
    expect(not page.left, "blocks that nothing runs: %s" % page.left)
    return "%d blocks of docs/secure.md" % count


if __name__ == "__main__":
    conclude(check)
