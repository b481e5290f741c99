#!/usr/bin/env python3
"""Replaces the authority of an ensemble under load, as docs/secure.md says it, with `ostler certs` and without a
restart: first all trust both authorities, then all get certificates of the new one, then all trust the new one only.

Clients and servers use TLS with certificates on both sides. Writers keep their sessions, and callers connect all the
time with the files of the day. Without a kill no connection may be lost and none refused; no acknowledged write may be
lost, and no session may end whose client comes back. At the end a client and a server of the old authority are refused
everywhere. The leader is killed once in the middle and once at the end. With --peers other servers are Java's."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ensemble.cluster import Cluster
from ensemble.load import LOST, SETTINGS, Load
from harness.address import secured
from harness.outcome import Mismatch, conclude, expect, expect_equal
from harness.server import NotServing, arguments, command, work_folder
from harness.session import Session
from security import steps

SECURE = 50  # a server's port for TLS clients, beyond its plain one
RELOAD_S = 10  # within this time a server uses its new files; Ostler looks every 2 s
APP = "client-app.pem"
TRUST = "ca.pem"


class Certificates:
    """The folder of `ostler certs`, and copies of its files at each server and client."""

    def __init__(self, program, folder):
        self.program, self.folder = program, os.path.join(folder, "ostler-certs")
        self.homes = folder
        self.run("init")

    def run(self, *words):
        done = subprocess.run(
            [self.program, "certs", *words, "--folder", self.folder], capture_output=True, text=True, check=False
        )
        expect(done.returncode == 0, "ostler certs %s: %s" % (" ".join(words), done.stderr))

    def server(self, number):
        self.run("server", "zk%d" % number, "--host", "localhost")

    def client(self):
        self.run("client", "app")

    def home(self, who):
        """The folder with the files of a server or client."""
        path = os.path.join(self.homes, str(who))
        os.makedirs(path, exist_ok=True)
        return path

    def give(self, who, name):
        """Copies a file, and puts it in its place at once."""
        path = os.path.join(self.home(who), name)
        shutil.copy(os.path.join(self.folder, name), path + ".new")
        os.rename(path + ".new", path)

    def of_server(self, number):
        own = os.path.join(self.home(number), "server-zk%d.pem" % number)
        trust = os.path.join(self.home(number), TRUST)
        keys = {"keyStore.location": own, "trustStore.location": trust}
        return {prefix + key: file for prefix in ("ssl.", "ssl.quorum.") for key, file in keys.items()}

    def context(self, who, own=APP):
        """How this client connects with its files of now."""
        made = ssl.create_default_context(cafile=os.path.join(self.home(who), TRUST))
        made.load_cert_chain(os.path.join(self.home(who), own))
        return made


class Callers(threading.Thread):
    """New sessions at each server in turn. It counts those that fail while no server is being killed."""

    def __init__(self, ports):
        super().__init__(daemon=True)
        self.ports, self.stopping, self.tolerant = ports, False, False
        self.came, self.refused = 0, []

    def run(self):
        while not self.stopping:
            for port in self.ports:
                tolerant = self.tolerant
                try:
                    session = Session(port)
                    session.get("/load")
                    session.close()
                    self.came += 1
                except LOST as error:
                    if not (tolerant or self.tolerant):
                        self.refused.append("port %d: %s" % (port, error))
                time.sleep(0.05)


class Rotation:
    def __init__(self, program, makes, port):
        folder = work_folder("rotation")
        self.certificates = made = Certificates(program, folder)
        settings = {
            **SETTINGS,
            "sslQuorum": "true",
            "secureClientPortAddress": "127.0.0.1",
            # A Java server needs this; an Ostler server always looks at its files.
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "client.certReload": "true",
            "sslQuorumReloadCertFiles": "true",
        }
        self.cluster = Cluster(makes, folder, port, settings, host=lambda n: "localhost")
        made.client()
        for who in ("app", "old"):
            made.give(who, APP)
            made.give(who, TRUST)
        self.secure = []
        for number, member in self.cluster.members.items():
            self._new_server(number)
            made.give(number, TRUST)
            member.settings["secureClientPort"] = member.port + SECURE
            member.settings.update(made.of_server(number))
            self.secure.append(member.port + SECURE)
            secured(self.secure[-1], lambda: made.context("app"))
        made.give("old-server", TRUST)
        shutil.copy(os.path.join(made.home(1), "server-zk1.pem"), made.home("old-server"))

    def _new_server(self, number):
        self.certificates.server(number)
        self.certificates.give(number, "server-zk%d.pem" % number)

    def run(self):
        with self.cluster:
            self.cluster.start()
            self.cluster.wait_quorum()
            wait_until("all servers take clients", lambda: all(map(self._serves, self.secure)))
            self.load = Load(self.secure, 4).start()
            self.callers = Callers(self.secure)
            self.load.wait_progress()
            self.callers.start()
            self._trust_both()
            self._new_certificates()
            self._trust_the_new_one()
            self.callers.stopping = True
            self.callers.join(10)
            return "%s; %d callers, none refused" % (steps.end(self.cluster, self.load), self.callers.came)

    def _serves(self, port):
        try:
            Session(port).close()
            return True
        except LOST:
            return False

    def _trust_both(self):
        with Quietly(self, "all trust both authorities"):
            self.certificates.run("rotate")
            # Only files that are there already may be given now: issued are certificates of the new authority.
            self.certificates.client()
            self.certificates.give("probe", APP)
            self.certificates.give("probe", TRUST)
            for number in self.cluster.members:
                self.certificates.give(number, TRUST)
                self._wait_taken(number, "probe")
            self.certificates.give("app", TRUST)

    def _new_certificates(self):
        issuers = set()
        for number in self.cluster.members:
            with Quietly(self, "server %d has a certificate of the new authority" % number):
                before = self._shown(number)
                self._new_server(number)
                wait_until("server %d shows its new certificate" % number, lambda: self._shown(number) != before)
                issuers.add(before)
            if number == 1:
                self._kill_leader("with certificates of both authorities")
        with Quietly(self, "the clients have certificates of the new authority"):
            self.certificates.give("app", APP)
            issuers.add(self._shown(1))
        expect_equal(len(issuers), 2, "authorities of the servers' certificates")

    def _trust_the_new_one(self):
        with Quietly(self, "all trust the new authority only"):
            self.certificates.run("rotate", "--finish")
            for number in self.cluster.members:
                self.certificates.give(number, TRUST)
            self.certificates.give("app", TRUST)
            for number in self.cluster.members:
                self._wait_refused(number)
        self._kill_leader("with certificates of the new authority")
        with Quietly(self, "a client and a server of the old authority are refused"):
            for number in self.cluster.members:
                self._wait_refused(number)

    def _kill_leader(self, what):
        self.callers.tolerant = True
        leader = steps.kill_leader(self.cluster, self.load)
        wait_until("server %d takes clients" % leader.number, lambda: self._serves(leader.port + SECURE))
        self.load.wait_progress()
        self.callers.tolerant = False
        print("server %d, the leader, was killed, and came back %s" % (leader.number, what), flush=True)

    # ---- what a server shows and takes ----
    def _shown(self, number):
        """The authority of the certificate that the server shows to clients."""
        with self._handshake(self.cluster[number].port + SECURE, self.certificates.context("app")) as one:
            return one.getpeercert()["issuer"]

    @staticmethod
    def _handshake(port, context):
        plain = socket.create_connection(("127.0.0.1", port), timeout=5)
        return context.wrap_socket(plain, server_hostname="localhost")

    def _is_taken(self, port, context, sent):
        """Whether the other side goes on after the handshake. The refusal of TLS 1.3 comes with the first read."""
        try:
            with self._handshake(port, context) as one:
                one.sendall(sent)
                one.settimeout(0.5)
                return bool(one.recv(1))
        except TimeoutError:
            return True
        except OSError:
            return False

    def _wait_taken(self, number, who):
        port = self.cluster[number].port + SECURE
        wait_until(
            "server %d takes a client of the new authority" % number,
            lambda: self._is_taken(port, self.certificates.context(who), b"ruok"),
        )

    def _wait_refused(self, number):
        """Neither a client nor a server of the old authority is let in, at any port, where those of now are."""
        member = self.cluster[number]
        of_servers = [member.port + 2] + ([member.port + 1] if member.mode() == "leader" else [])
        self._wait_told_apart("client", member.port + SECURE, ("old", APP), ("app", APP))
        for port in of_servers:
            self._wait_told_apart("server", port, ("old-server", "server-zk1.pem"), (1, "server-zk1.pem"))

    def _wait_told_apart(self, what, port, old, new):
        contexts = {}
        for name, files in (("the old authority", old), ("the new authority", new)):
            contexts[name] = made = self.certificates.context(*files)
            # It is the server that has to refuse; these believe everybody.
            made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        for name, made in contexts.items():
            wanted = name == "the new authority"
            wait_until(
                "port %d %s a %s of %s" % (port, "takes" if wanted else "refuses", what, name),
                lambda: self._is_taken(port, made, b"ruok") == wanted,
            )


class Quietly:
    """A step in which no connection may be lost, and no caller refused."""

    def __init__(self, rotation, what):
        self.rotation, self.what = rotation, what

    def __enter__(self):
        self.began = time.monotonic()
        self.rotation.load.wait_progress()

    def __exit__(self, kind, *_):
        if kind:
            return
        self.rotation.load.wait_progress()
        came = self.rotation.callers.came
        wait_until("callers come", lambda: self.rotation.callers.came > came + len(self.rotation.secure))
        for member in self.rotation.cluster.running():
            member.look_alive()
        losses = self.rotation.load.losses(self.began)
        expect(not losses, "connections were lost while %s: %s" % (self.what, losses[:3]))
        refused = self.rotation.callers.refused
        expect(not refused, "callers were refused while %s: %s" % (self.what, refused[:3]))
        print("%s after %.1f s" % (self.what, time.monotonic() - self.began), flush=True)


def wait_until(what, condition):
    until = time.monotonic() + RELOAD_S
    while not condition():
        expect(time.monotonic() < until, "not within %d s: %s" % (RELOAD_S, what))
        time.sleep(0.05)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="", help="the other servers, such as java3.9,java3.9 (default: the first)")
    parser.add_argument("--ostler", default="", help="Ostler's program, for `certs` (default: that of --server)")
    args = parser.parse_args()
    os.environ.setdefault("LEVEL", "INFO")  # Java's log then says how learners are synchronized
    makes = [args.server, *args.peers.split(",")] if args.peers else [args.server] * 3
    [command(make) for make in makes]  # skips what this machine has not
    try:
        return Rotation(command(args.ostler or args.server)[0], makes, args.port).run()
    except (Mismatch, AssertionError, NotServing) as what:
        raise Mismatch("rotation at %s: %s" % (", ".join(makes), what)) from what


if __name__ == "__main__":
    conclude(check)
