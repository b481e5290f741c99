"""Who gets what at the admin server: at loopback, at an open address, by TLS, with a certificate, from a web page.

python3 interop/run.py admin.access [--server CMD] [--port N]"""

import http.client
import os
import select
import socket
import ssl
import time

from admin.http import ask
from ensemble.cluster import Cluster
from harness.outcome import conclude, expect, expect_equal
from harness.server import Server, arguments, work_folder
from security.certificates import Authority

SUPER = {"Authorization": "digest super:secret"}
SUPER_DIGEST = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="
HEALTH = ("/livez", "/readyz", "/commands/ruok")
CONNECTIONS_MAX = 128


class Place:
    """Starts one server after the other."""

    def __init__(self, args):
        self.args, self.folder, self.count = args, work_folder("access"), 0

    def server(self, **settings):
        self.count += 1
        keys = {**self.keys(), **{key.replace("_", "."): value for key, value in settings.items()}}
        return Server(self.args.server, os.path.join(self.folder, str(self.count)), self.args.port, keys).start()

    def keys(self):
        return {
            "admin.enableServer": "true",
            "admin.serverPort": self.admin,
            "DigestAuthenticationProvider.superDigest": SUPER_DIGEST,
        }

    @property
    def admin(self):
        return self.args.port + 1


def status(place, path, headers=None, method="GET"):
    return ask(place.admin, path, method, headers).status


def loopback(place):
    with place.server():
        for path in (*HEALTH, "/commands/stats", "/metrics"):
            expect_equal(status(place, path), 200, path)
        foreign = {"Host": "evil.example:%d" % place.admin}
        expect_equal(status(place, "/commands/stats", foreign), 403, "a request by the name of another host")
        expect_equal(status(place, "/commands/ruok", foreign), 200, "ruok by the name of another host")
        for page in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            expect_equal(status(place, "/commands/srst", page), 403, "a reset from a page of another site")
        any_number = "/commands/session_ends?after=%d&address=127.0.0.1" % (2**64 - 1)
        expect_equal(status(place, any_number), 200, "the largest number")
        # The kernel may complete a burst of connections late and in another order, so any of them can be the last one.
        # After 30 s the server would end them all, as silent ones.
        idle = [socket.create_connection(("127.0.0.1", place.admin)) for _ in range(CONNECTIONS_MAX + 1)]
        ended, _, _ = select.select(idle, [], [], 20)
        expect(ended, "one connection too many is open after 20 s")
        expect_equal([connection.recv(1) for connection in ended], [b""], "one connection too many")
        for connection in idle:
            connection.close()
        until_served(place)


def until_served(place):
    for _ in range(200):
        try:
            if status(place, "/livez") == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    expect(False, "the admin server does not serve, perhaps after many connections")


def guarded(place):
    with place.server(**{"admin.serverAddress": "0.0.0.0"}):
        for path in HEALTH:
            expect_equal(status(place, path), 200, path + " at an open address")
        for path in ("/commands/stats", "/commands/monitor", "/metrics", "/commands/session_ends"):
            expect_equal(status(place, path), 401, path + " without an identity")
            expect_equal(status(place, path, SUPER), 200, path + " of the super user")
            expect_equal(status(place, path, {"Authorization": "digest a:b"}), 403, path + " of anybody")
            expect_equal(status(place, path, {"Authorization": "ip"}), 403, path + " by an address")
        guesses = [status(place, "/metrics", {"Authorization": "digest super:%d" % number}) for number in range(9)]
        expect_equal(guesses, [403] * 5 + [429] * 4, "passwords tried one after the other")
        expect_equal(status(place, "/metrics", SUPER), 200, "the super user after that")
    with place.server(**{"admin.serverAddress": "0.0.0.0", "admin.openToAll": "true"}):
        expect_equal(status(place, "/commands/stats"), 200, "stats at a port that is open to all")
        expect_equal(status(place, "/commands/snapshot"), 401, "snapshot at a port that is open to all")


def https(place, context, path, headers=None):
    connection = http.client.HTTPSConnection("127.0.0.1", place.admin, timeout=20, context=context)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def by_tls(place):
    authority = Authority(os.path.join(place.folder, "ca"))
    server, operator = authority.issue("server"), authority.issue("operator", "/CN=operator")
    stores = {
        "admin.serverAddress": "0.0.0.0",
        "ssl.quorum.keyStore.location": server + ".pem",
        "ssl.quorum.trustStore.location": authority.path("pem"),
    }
    trusts = ssl.create_default_context(cafile=authority.path("pem"))
    with place.server(**stores, **{"admin.forceHttps": "true"}):
        code, headers, _ = https(place, trusts, "/commands/stats")
        expect_equal(code, 200, "stats by HTTPS")
        expect("max-age" in headers.get("strict-transport-security", ""), "no Strict-Transport-Security by HTTPS")
        plain_is_refused(place)
    with place.server(**stores, **{"admin.portUnification": "true"}):
        expect_equal(https(place, trusts, "/commands/stats")[0], 200, "stats by HTTPS at a port for both")
        expect_equal(status(place, "/commands/stats"), 401, "stats without TLS at a port for both")
        expect_equal(status(place, "/readyz"), 200, "/readyz without TLS at a port for both")
    needs = {
        "admin.forceHttps": "true",
        "admin.needClientAuth": "true",
        "X509AuthenticationProvider.superUser": "CN=operator",
        "authProvider.1": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
    }
    with place.server(**stores, **needs):
        try:
            https(place, trusts, "/livez")
            expect(False, "a caller without a certificate was served")
        except (ssl.SSLError, ConnectionError, http.client.HTTPException):
            pass
        trusts.load_cert_chain(operator + ".crt", operator + ".key")
        expect_equal(https(place, trusts, "/commands/stats")[0], 200, "stats with a certificate")
        expect_equal(https(place, trusts, "/commands/snapshot")[0], 401, "snapshot without the header")
        code, _, body = https(place, trusts, "/commands/snapshot", {"Authorization": "x509"})
        expect_equal((code, body[:4]), (200, b"ZKSN"), "snapshot of the super user by certificate")


def plain_is_refused(place):
    try:
        ask(place.admin, "/livez")
        expect(False, "plain HTTP was served at a port for TLS only")
    except (OSError, http.client.HTTPException):
        pass


def without_files(place):
    """As in Java the server runs on."""
    keys = {"admin.forceHttps": "true", "ssl.quorum.keyStore.location": "/nowhere/server.pem"}
    with place.server(**keys, **{"ssl.quorum.trustStore.location": "/nowhere/ca.pem"}) as server:
        with socket.socket() as s:
            expect(s.connect_ex(("127.0.0.1", place.admin)) != 0, "the admin server runs without its files")
        expect("the admin server is not started" in server.log_tail(4000), "no line says why there is no admin server")


def alone(place):
    """What a member without a leader has in its log may be taken back."""
    folder = os.path.join(place.folder, "alone")
    keys = {**place.keys(), "admin.rateLimiterIntervalInMS": 0}
    with Cluster([place.args.server] * 3, folder, place.args.port + 1, keys) as cluster:
        cluster[1].start()
        until_served(place)
        for path in ("/commands/snapshot", "/commands/snapshot?streaming=false"):
            expect_equal(status(place, path, SUPER), 503, "%s at a member without a leader" % path)


def main():
    args = arguments(__doc__).parse_args()
    place = Place(args)
    loopback(place)
    guarded(place)
    by_tls(place)
    without_files(place)
    alone(place)
    return "loopback, open addresses, HTTPS, client certificates, web pages and many connections"


if __name__ == "__main__":
    conclude(main)
