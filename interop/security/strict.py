#!/usr/bin/env python3
"""An ensemble with security=strict: whoever reaches a port without a good certificate learns nothing and changes
nothing. Every port is tried in plain text, by TLS without a certificate, and with one of another authority. The ports
of the servers are tried with a client's certificate, too."""

import os
import socket
import ssl
import struct
import sys
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ensemble.cluster import Cluster
from harness import protocol
from harness.outcome import Mismatch, conclude, expect
from harness.server import arguments, work_folder
from harness.session import ConnectionLost, Refused
from security.certificates import Authority
from security.flood import TlsSession

NO_AUTH = -102
GREETING = struct.pack(">qqi", -65536, 9, 14) + b"127.0.0.1:9999"
SENT = {
    "srvr": b"srvr",
    "ruok": b"ruok",
    "a connect request": protocol.connect(30000, 0, b"\0" * 16, 0),
    "a greeting of the election port": GREETING,
    "an OBSERVERINFO": struct.pack(">iqi", 16, 0, 20) + struct.pack(">qiq", 9, 0x10000, 0) + struct.pack(">i", -1),
}


def context(authority, own=None):
    made = ssl.create_default_context(cafile=authority.path("pem"))
    if own:
        made.load_cert_chain(own)
    return made


def answer(port, sent, secure=None):
    """The bytes that a port sends back, until it closes the connection or a second passes."""
    with socket.create_connection(("localhost", port), timeout=5) as plain:
        try:
            one = secure.wrap_socket(plain, server_hostname="localhost") if secure else plain
            one.sendall(sent)
            one.settimeout(1)
            found = b""
            while chunk := one.recv(65536):
                found += chunk
            return found
        except (OSError, ssl.SSLError):
            return b""


def walk(ports, callers):
    """Returns the number of attempts."""
    tried = 0
    for where, port in ports:
        for who, secure in callers:
            for what, sent in SENT.items():
                found = answer(port, sent, secure)
                expect(not found, "%s answers %s from a caller %s: %r" % (where, what, who, found[:80]))
                tried += 1
    return tried


def serve(cluster, secure_ports, secure):
    """Waits until a client with a certificate is served."""
    until = time.monotonic() + 60
    while True:
        try:
            return TlsSession(secure_ports[0], secure)
        except (OSError, ConnectionLost) as error:
            for member in cluster.members.values():
                member.look_alive()
            if time.monotonic() > until:
                raise Mismatch("no client is served: %s" % error) from error
            time.sleep(0.2)


def check():
    args = arguments(__doc__).parse_args()
    folder = work_folder("strict")
    good, bad = Authority(os.path.join(folder, "good")), Authority(os.path.join(folder, "bad"), "bad")
    good.issue("server")
    client, admin = good.issue("app", "/CN=app") + ".pem", good.issue("admin", "/CN=admin") + ".pem"
    foreign = bad.issue("app", "/CN=app") + ".pem"
    # A client's certificate names no host of a server.
    elsewhere = good.issue("laptop", "/CN=laptop", names="DNS:laptop.example") + ".pem"
    settings = {
        "security": "strict",
        "clientPort": None,
        "clientPortAddress": None,
        "4lw.commands.whitelist": None,
        "secureClientPortAddress": "127.0.0.1",
        "sslQuorum": "true",
        "X509AuthenticationProvider.superUser": "CN=admin",
        **good.keys("ssl.", "server"),
        **good.keys("ssl.quorum.", "server"),
    }
    cluster = Cluster([args.server] * 3, folder, args.port, settings, host=lambda n: "localhost")
    for member in cluster.members.values():
        member.settings["secureClientPort"] = member.port
    ports = cluster.ports()
    with cluster:
        cluster.start()
        session = serve(cluster, ports, context(good, client))
        anybody = [
            ("in plain text", None),
            ("without a certificate", context(good)),
            ("with a certificate of another authority", context(good, foreign)),
        ]
        of_servers = [
            ("%s port of server %d" % (name, n), member.port + at)
            for n, member in cluster.members.items()
            for name, at in (("the quorum", 1), ("the election", 2))
        ]
        of_clients = [("the client port of server %d" % n, member.port) for n, member in cluster.members.items()]
        tried = walk(of_clients + of_servers, anybody)
        tried += walk(of_servers, [("with a client's certificate", context(good, elsewhere))])
        try:
            session.create("/mine")
            raise Mismatch("any client may write at the root")
        except Refused as refused:
            expect(refused.code == NO_AUTH, "a write at the root fails with %d" % refused.code)
        TlsSession(ports[1], context(good, admin)).create("/app")
        for member in cluster.members.values():
            member.look_alive()
        for name in os.listdir(os.path.join(folder, "server-1", "data", "version-2")):
            mode = os.stat(os.path.join(folder, "server-1", "data", "version-2", name)).st_mode
            expect(mode & 0o077 == 0, "others may read %s" % name)
        audit = os.path.join(folder, "server-1", "data", "zookeeper_audit.log")
        expect(os.path.exists(audit), "there is no audit log")
    return "%d attempts at %d ports got no byte; only the super user may write at the root" % (
        tried,
        len(of_clients + of_servers),
    )


if __name__ == "__main__":
    conclude(check)
