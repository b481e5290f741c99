#!/usr/bin/env python3
"""Clients that log in by Kerberos: Java, Curator, kazoo, the C client and Ostler's shell, each with its keytab or its
ticket. Each is known by its principal and reads what only it may read. With --server java3.9 the same is tried at a
Java server."""

import os
import sys
from collections.abc import Callable
from functools import partial

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from clients import curator
from harness.kdc import REALM, Kdc
from harness.outcome import conclude, expect
from harness.peers import LAUNCHER, need
from harness.server import Server, arguments, command, work_folder
from security.clients import MAIN, output

LOGIN = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true doNotPrompt=true"
KAZOO = """
import sys
from kazoo.client import KazooClient
client = KazooClient("localhost:" + sys.argv[1], timeout=6, sasl_options={"mechanism": "GSSAPI"})
client.start(timeout=8)
print(client.get(sys.argv[2])[0].decode())
client.stop()
"""
SERVICE = "zookeeper/localhost"


def section(name, principal, keytab):
    return '%s { %s useTicketCache=false keyTab="%s" principal="%s@%s"; };\n' % (name, LOGIN, keytab, principal, REALM)


class Setup:
    """A KDC and a server whose clients have a principal each."""

    def __init__(self, server, port, more=None):
        self.folder = work_folder("kerberos")
        self.kdc = Kdc(os.path.join(self.folder, "kdc"), port + 20, ["client", "other", SERVICE])
        self.port = port
        jaas = self.file("jaas.conf", section("Server", SERVICE, self.kdc.keytab(SERVICE)))
        settings = {
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "java.security.auth.login.config": jaas,
            "java.security.krb5.conf": self.kdc.conf,
            **(more or {}),
        }
        self.server = Server(server, os.path.join(self.folder, "server"), port, settings)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def java(self, version, line, principal):
        """The output of one command of Java's shell."""
        jaas = self.file("client.conf", section("Client", principal, self.kdc.keytab(principal)))
        flags = {"java.security.auth.login.config": jaas, "java.security.krb5.conf": self.kdc.conf}
        env = {**os.environ, "JAVA_TOOL_OPTIONS": " ".join("-D%s=%s" % item for item in flags.items())}
        address = "localhost:%d" % self.port
        words = [LAUNCHER, version, "-c", MAIN, "-waitforconnection", "-timeout", "6000", "-server", address]
        return output(words + line.split(), env)

    def curator(self, path, principal):
        """The output of Secure.java, which reads a znode."""
        jars, classes = need("zk39"), os.path.join(self.folder, "classes")
        if not os.path.exists(classes):
            os.makedirs(classes)
            curator.compile_program("Secure", classes, jars)
        jaas = self.file("client.conf", section("Client", principal, self.kdc.keytab(principal)))
        flags = {"java.security.auth.login.config": jaas, "java.security.krb5.conf": self.kdc.conf}
        env = {**os.environ, "JAVA_TOOL_OPTIONS": " ".join("-D%s=%s" % item for item in flags.items())}
        return output(curator.words_of("Secure", classes, jars, "localhost:%d" % self.port, "read", path), env)

    def c_client(self, path, principal):
        """The output of the C client's shell, with a ticket."""
        self.kdc.kinit(principal)
        login = ["-n", "GSSAPI", "-u", principal, "-l", REALM, "-o", "localhost"]
        words = [need("cli_secure"), "-h", "localhost:%d" % self.port, *login, "-c", "get " + path]
        return output(words, self.kdc.env)

    def kazoo(self, line, principal):
        self.kdc.kinit(principal)
        python = os.path.join(need("venv"), "bin", "python")
        return output([python, "-c", KAZOO, str(self.port), line.split()[-1]], self.kdc.env)

    def shell(self, binary, line, options):
        words = [binary, "shell", *options, "--connect-timeout", "6000", "localhost:%d" % self.port]
        return output(words + line.split(), self.kdc.env)

    def by_keytab(self, binary, line, principal):
        options = ["--kerberos", "--kerberos-keytab", self.kdc.keytab(principal)]
        return self.shell(binary, line, [*options, "--kerberos-principal", principal])

    def by_ticket(self, binary, line, principal):
        self.kdc.kinit(principal)
        return self.shell(binary, line, ["--kerberos"])

    def by_file_of_java(self, binary, line, principal):
        jaas = self.file("client.conf", section("Client", principal, self.kdc.keytab(principal)))
        properties = self.file("client.properties", "java.security.auth.login.config=%s\n" % jaas)
        return self.shell(binary, line, ["-client-configuration", properties])


def logins(setup, versions, binary):
    owner = "client@" + REALM
    made = setup.by_keytab(binary, "create /treasure gold sasl:%s:cdrwa" % owner, "client")
    expect("Created /treasure" in made, "the shell cannot create with its keytab: %s" % made[-400:])
    who = setup.by_keytab(binary, "whoami", "client")
    expect("sasl: " + owner in who, "the shell is not known as %s: %s" % (owner, who[-400:]))
    clients: dict[str, Callable[[str], str]] = {
        "the shell with a keytab": lambda principal: setup.by_keytab(binary, "get /treasure", principal),
        "the shell with a ticket": lambda principal: setup.by_ticket(binary, "get /treasure", principal),
        "the shell with a file of Java": lambda principal: setup.by_file_of_java(binary, "get /treasure", principal),
        "Curator": partial(setup.curator, "/treasure"),
        "the C client": partial(setup.c_client, "/treasure"),
        "kazoo": lambda principal: setup.kazoo("/treasure", principal),
    }
    for version in versions:
        clients["Java " + version] = partial(setup.java, version, "get /treasure")
    for name, client in clients.items():
        found = client("client")
        expect("gold" in found, "%s cannot read with its login: %s" % (name, found[-600:]))
        expect("gold" not in client("other"), "%s: another principal has read it" % name)
        print("%s reads what its principal may read, and another principal does not" % name, flush=True)
    expect("gold" not in setup.shell(binary, "get /treasure", []), "a client without a login has read it")


def new_keys(setup, binary):
    """The server's principal gets new keys, and its keytab is replaced while it runs."""
    setup.kdc.change_keys(SERVICE)
    who = setup.by_keytab(binary, "whoami", "other")
    expect("sasl: other@" + REALM in who, "no login with the new keys: %s" % who[-400:])
    print("the keytab was replaced while the server ran", flush=True)


def without_ticket(setup, binary):
    setup.kdc.kdestroy()
    said = setup.shell(binary, "ls /", ["--kerberos"])
    expect("Kerberos has no credentials" in said, "a client without a ticket does not say so: %s" % said)
    print("without a ticket: %s" % said.strip().splitlines()[-1], flush=True)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--ostler", default="", help="Ostler's program, for the shell (default: that of --server)")
    args = parser.parse_args()
    binary = command(args.ostler or args.server)[0]
    versions = ["3.9", "3.8"]
    [need("zk" + version.replace(".", "")) for version in versions]
    setup = Setup(args.server, args.port)
    with setup.kdc, setup.server:
        logins(setup, versions, binary)
        new_keys(setup, binary)
        without_ticket(setup, binary)
    short = Setup(args.server, args.port, {"kerberos.removeRealmFromPrincipal": "true"})
    with short.kdc, short.server:
        who = short.by_keytab(binary, "whoami", "client")
        expect("sasl: client\n" in who, "the realm is not removed: %s" % who[-400:])
    return "Java, Curator, kazoo, the C client and the shell, by Kerberos"


if __name__ == "__main__":
    conclude(check)
