"""Servers for tests with pytest: `ostler_server` is a standalone server, `ostler_ensemble` three servers.

Copy this file beside your tests, and name it in conftest.py: pytest_plugins = ["pytest_ostler"]. The program `ostler`
has to be in PATH; the environment variable OSTLER names another one. docs/testserver.md has the calls."""

import json
import os
import subprocess
import urllib.error
import urllib.request

import pytest


class OstlerError(Exception):
    """A call was refused, or has failed; the text says why and what helps."""


class Testserver:
    """The program `ostler testserver`. It ends when its standard input is closed, so also when these tests die."""

    __test__ = False  # for pytest: it is no test

    def __init__(self, program="ostler"):
        words = [program, "testserver", "--end-with-stdin"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise OstlerError("`%s` did not start: standard error says why" % " ".join(words))
        self.control = json.loads(line)["control"]

    def call(self, method, path, body=None):
        """One call by HTTP. Returns the JSON of the answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.control + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=310) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            raise OstlerError("%s %s: %s" % (method, path, json.load(refused)["error"])) from None

    def start(self, servers=1, **options):
        """Starts a standalone server, or an ensemble of up to 9 servers."""
        return Ensemble(self, self.call("POST", "/ensembles", {"servers": servers, **options})["id"])

    def close(self):
        """Ends the program with all its servers."""
        self.process.stdin.close()
        self.process.wait(30)


class Ensemble:
    """An ensemble or a standalone server. A server is its id, or "leader"; an end of the network also "clients" or
    "servers"."""

    def __init__(self, testserver, id):
        self.testserver, self.id = testserver, id
        self.connect = self.state()["connect"]

    def call(self, method, path="", body=None):
        return self.testserver.call(method, "/ensembles/%d%s" % (self.id, path), body)

    def state(self):
        return self.call("GET")

    def leader(self, other_than=None, within_s=10):
        """Waits until a server leads. Returns its id."""
        other = "" if other_than is None else "&other_than=%d" % other_than
        return self.call("GET", "/leader?within_ms=%d%s" % (within_s * 1000, other))["leader"]

    def until_serving(self, within_s=10):
        """Waits until all servers that run serve clients."""
        self.call("GET", "/serving?within_ms=%d" % (within_s * 1000))

    def kill(self, server=1):
        """Ends a server as kill -9 does."""
        self.call("POST", "/servers/%s/kill" % server)

    def stop(self, server=1):
        self.call("POST", "/servers/%s/stop" % server)

    def restart(self, server=1):
        self.call("POST", "/servers/%s/restart" % server)

    def pause(self, server=1):
        """Freezes a server as SIGSTOP does."""
        self.call("POST", "/servers/%s/pause" % server)

    def resume(self, server=1):
        self.call("POST", "/servers/%s/resume" % server)

    def sessions(self):
        return self.call("GET", "/sessions")["sessions"]

    def expire(self, session):
        """Expires a session: the server closes it. With kazoo its id is `client.client_id[0]`."""
        self.call("POST", "/sessions/%s/expire" % session)

    def disconnect(self, session):
        """Closes the connection of a session, which lives on."""
        self.call("POST", "/sessions/%s/disconnect" % session)

    def cut(self, one, other):
        """Closes all connections between two ends, and each new one at once."""
        self.call("POST", "/network/cut", {"between": [one, other]})

    def silence(self, source, target):
        """Holds back what one end sends to the other. Neither notices."""
        self.call("POST", "/network/silence", {"from": source, "to": target})

    def delay(self, source, target, ms):
        """Delays what one end sends to the other."""
        self.call("POST", "/network/delay", {"from": source, "to": target, "ms": ms})

    def heal(self):
        """Ends all cuts, silences and delays."""
        self.call("POST", "/network/heal")

    def delete(self):
        """Ends the servers, and removes their folders."""
        self.call("DELETE")


@pytest.fixture(scope="session")
def ostler_testserver():
    """The program, once for all tests."""
    testserver = Testserver(os.environ.get("OSTLER", "ostler"))
    yield testserver
    testserver.close()


@pytest.fixture
def ostler_server(ostler_testserver):
    """A standalone server for one test."""
    server = ostler_testserver.start()
    yield server
    server.delete()


@pytest.fixture
def ostler_ensemble(ostler_testserver):
    """Three servers for one test."""
    ensemble = ostler_testserver.start(servers=3)
    yield ensemble
    ensemble.delete()
