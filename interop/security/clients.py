#!/usr/bin/env python3
"""Clients of Java, Curator, kazoo and Ostler over TLS and with SASL: each connects with its stores, is known by its
certificate or its login, and reads what only it may read. Clients of another authority are refused. With --server
java3.9 the same is tried at a Java server."""

import os
import subprocess
import sys

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from clients import curator
from harness.outcome import conclude, expect
from harness.peers import LAUNCHER, need
from harness.server import Server, arguments, command, work_folder
from security.certificates import Authority

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"
SUBJECT = "CN=app"
# Java's own client, in both versions; JAVA_TOOL_OPTIONS takes its properties.
MAIN = "org.apache.zookeeper.ZooKeeperMain"
KAZOO = """
import sys
from kazoo.client import KazooClient
from kazoo.security import make_acl
port, ca, cert, key, user, password = sys.argv[1:7]
options = {"use_ssl": True, "ca": ca, "verify_certs": True, "check_hostname": True} if ca else {}
if cert:
    options.update(certfile=cert, keyfile=key)
if user:
    options["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
client = KazooClient("localhost:" + port, timeout=6, **options)
client.start(timeout=8)
print(client.get(sys.argv[7])[0].decode())
client.stop()
"""


class Setup:
    """A server with both ports, stores in each format, and znodes that only one client may read."""

    def __init__(self, server, port):
        self.folder = work_folder("security-clients")
        self.good = Authority(os.path.join(self.folder, "good"))
        self.bad = Authority(os.path.join(self.folder, "bad"), "bad")
        self.good.issue("server")
        for authority in (self.good, self.bad):
            authority.issue("app", "/CN=app")
            authority.stores("app")
        self.port, self.secure = port, port + 1
        self.jaas = self.file("jaas.conf", 'Server { %s user_bob="bobsecret"; };\n' % MODULE)
        settings = {
            "secureClientPort": self.secure,
            "secureClientPortAddress": "127.0.0.1",
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "java.security.auth.login.config": self.jaas,
            **self.good.keys("ssl.", "server"),
        }
        self.server = Server(server, os.path.join(self.folder, "server"), port, settings)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def java(self, version, line, properties, secure=True):
        """The output of one command of Java's shell."""
        words = [LAUNCHER, version, "-c", MAIN, "-waitforconnection", "-timeout", "6000", "-server"]
        return output([*words, self.address(secure), *line.split()], java_environment(properties, secure))

    def curator(self, line, properties, secure=True):
        """The output of Secure.java, whose command comes before the path."""
        classes, jars = os.path.join(self.folder, "classes"), need("zk39")
        if not os.path.exists(classes):
            os.mkdir(classes)
            curator.compile_program("Secure", classes, jars)
        words = curator.words_of("Secure", classes, jars, self.address(secure), *line.split())
        return output(words, java_environment(properties, secure))

    def address(self, secure):
        return "localhost:%d" % (self.secure if secure else self.port)

    def login(self, user, password):
        """The properties of a Java client that logs in."""
        client = 'Client { %s username="%s" password="%s"; };\n' % (MODULE, user, password)
        jaas = self.file("client.conf", client)
        return {"java.security.auth.login.config": jaas, "zookeeper.fips-mode": "false"}

    def stores(self, authority, kind):
        keys = authority.keys("zookeeper.ssl.", "app", kind)
        keys.update({k: v for k, v in self.good.keys("zookeeper.ssl.", "app", kind).items() if "trustStore" in k})
        return keys

    def kazoo(self, path, authority=None, login=("", "")):
        port, files = self.port, ["", "", ""]
        if authority:
            base = os.path.join(authority.folder, "app")
            port, files = self.secure, [self.good.path("pem"), base + ".crt", base + ".key"]
        python = os.path.join(need("venv"), "bin", "python")
        return output([python, "-c", KAZOO, str(port), *files, *login, path], os.environ)

    def shell(self, binary, line, authority=None, login=None):
        words, port = [], self.port
        if authority:
            base = os.path.join(authority.folder, "app.pem")
            words, port = ["--tls-ca", self.good.path("pem"), "--tls-cert", base, "--tls-key", base], self.secure
        if login:
            user, password = login
            words += ["--sasl-user", user, "--sasl-password-file", self.file("password", password + "\n")]
        return output([binary, "shell", *words, "localhost:%d" % port, *line.split()], os.environ)


def java_environment(properties, secure):
    flags = dict(properties)
    if secure:
        flags["zookeeper.clientCnxnSocket"] = "org.apache.zookeeper.ClientCnxnSocketNetty"
        flags["zookeeper.client.secure"] = "true"
    return {**os.environ, "JAVA_TOOL_OPTIONS": " ".join("-D%s=%s" % item for item in flags.items())}


def output(words, env):
    """What a program prints, whether it succeeds or not; it may also hang, as some clients do that are refused."""
    try:
        done = subprocess.run(
            words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=40, check=False
        )
        return done.stdout
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode("utf-8", "replace")


def tls(setup, versions, binary):
    for version in versions:
        for kind in ("pem", "p12", "jks"):
            who = setup.java(version, "whoami", setup.stores(setup.good, kind))
            expect("x509: %s" % SUBJECT in who, "Java %s with %s is not known: %s" % (version, kind, who[-400:]))
            print("Java %s, %s: known as %s" % (version, kind, SUBJECT), flush=True)
    made = setup.shell(binary, "create /x509 treasure x509:%s:cdrwa" % SUBJECT, setup.good)
    expect("Created /x509" in made, "the shell cannot create over TLS: %s" % made[-400:])
    owned = setup.curator("own /curator x509 %s" % SUBJECT, setup.stores(setup.good, "p12"))
    expect("treasure" in owned, "Curator cannot use a tree of its certificate's: %s" % owned[-400:])
    for name, found in (
        ("Curator", setup.curator("read /x509", setup.stores(setup.good, "jks"))),
        ("Java 3.9", setup.java("3.9", "get /x509", setup.stores(setup.good, "pem"))),
        ("kazoo", setup.kazoo("/x509", setup.good)),
        ("the shell", setup.shell(binary, "get /x509", setup.good)),
    ):
        expect("treasure" in found, "%s cannot read what its certificate may read: %s" % (name, found[-400:]))
        print("%s reads what its certificate may read" % name, flush=True)
    for name, found in (
        ("Curator with another authority", setup.curator("read /curator", setup.stores(setup.bad, "pem"))),
        ("Curator without TLS", setup.curator("read /curator", {}, secure=False)),
        ("Java 3.9 with another authority", setup.java("3.9", "get /x509", setup.stores(setup.bad, "pem"))),
        ("kazoo with another authority", setup.kazoo("/x509", setup.bad)),
        ("the shell with another authority", setup.shell(binary, "get /x509", setup.bad)),
        ("the shell without TLS", setup.shell(binary, "get /x509")),
    ):
        expect("treasure" not in found, "%s has read it" % name)
        print("%s is refused" % name, flush=True)


def sasl(setup, versions, binary):
    right, wrong = ("bob", "bobsecret"), ("bob", "wrong")
    made = setup.shell(binary, "create /sasl treasure sasl:bob:cdrwa", login=right)
    expect("Created /sasl" in made, "the shell cannot create with a login: %s" % made[-400:])

    def java(version, login):
        return setup.java(version, "get /sasl", setup.login(*login), secure=False)

    def curator_over_tls(login):
        return setup.curator("read /sasl", {**setup.login(*login), **setup.stores(setup.good, "pem")})

    made = setup.curator("own /curator-sasl sasl bob", setup.login(*right), secure=False)
    expect("treasure" in made, "Curator cannot use a tree of its login's: %s" % made[-400:])

    for version in versions:
        found = java(version, right)
        expect("treasure" in found, "Java %s cannot read with its login: %s" % (version, found[-400:]))
        expect("treasure" not in java(version, wrong), "Java %s: a wrong password" % version)
        print("Java %s logs in, and not with a wrong password" % version, flush=True)
    for name, client in (
        ("Curator", lambda login: setup.curator("read /curator-sasl", setup.login(*login), secure=False)),
        ("Curator over TLS", curator_over_tls),
        ("kazoo", lambda login: setup.kazoo("/sasl", login=login)),
        ("kazoo over TLS", lambda login: setup.kazoo("/sasl", setup.good, login)),
        ("the shell", lambda login: setup.shell(binary, "get /sasl", login=login)),
        ("the shell over TLS", lambda login: setup.shell(binary, "get /sasl", setup.good, login)),
    ):
        found = client(right)
        expect("treasure" in found, "%s cannot read with its login: %s" % (name, found[-400:]))
        expect("treasure" not in client(wrong), "%s: a wrong password" % name)
        print("%s logs in, and not with a wrong password" % name, flush=True)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--ostler", default="", help="Ostler's program, for the shell (default: that of --server)")
    args = parser.parse_args()
    binary = command(args.ostler or args.server)[0]
    versions = ["3.9", "3.8"]
    [need("zk" + version.replace(".", "")) for version in versions]
    setup = Setup(args.server, args.port)
    with setup.server:
        tls(setup, versions, binary)
        sasl(setup, versions, binary)
    return "Java, Curator, kazoo and the shell, by TLS in three formats and by SASL"


if __name__ == "__main__":
    conclude(check)
