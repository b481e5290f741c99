"""The gateway and instances that behave badly: an instance is left alone if it has failed, and not if the request was
such that no instance answers it."""

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from examples.stage import answer
from harness.outcome import expect, expect_equal
from harness.session import Refused, Session

SESSION_MS = 1500
PATIENCE_MS = 1500
DOWN_MS = 8000
PARENT = "/examples/services/odd"
LARGE = 17 << 20
SPEC = [("scheme", True), ("://", False), ("address", True), (":", False), ("port", True)]


class Odd:
    """An instance of a service: the path says how it answers."""

    def __init__(self, name, port):
        self.name, self.asked = name, 0
        odd = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                odd.asked += 1
                words = self.path.strip("/").split("-at-")
                if words[1:] in ([], [odd.name]):
                    if words[0] == "slow":
                        time.sleep(3 * PATIENCE_MS / 1000)
                    if words[0] == "broken":
                        self.close_connection = True
                        return
                body = b"x" * LARGE if words[0] == "large" else odd.name.encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # the gateway has read enough, or waited for long enough

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = port

    def json(self):
        parts = [{"value": value, "variable": variable} for value, variable in SPEC]
        instance = {
            "name": "odd",
            "id": self.name,
            "address": "127.0.0.1",
            "port": self.port,
            "uriSpec": {"parts": parts},
        }
        return json.dumps(instance).encode()


def register(port, instances):
    session = Session(port)
    for path in ("/examples", "/examples/services", PARENT):
        try:
            session.create(path)
        except Refused:
            pass
    for instance in instances:
        session.create(PARENT + "/" + instance.name, instance.json())
    session.close()


def of_both(url, what):
    """No instance is left alone: both answer in turn."""
    answers = [answer(url + "/") for _ in range(6)]
    expect_equal(sorted(answers), 3 * [(200, "one")] + 3 * [(200, "two")], "answers after " + what)


def raw(port, text):
    """The first line of the answer to a text."""
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        s.sendall(text.encode())
        return s.recv(1000).split(b"\r\n")[0].decode()


def check(stage):
    """Returns a text that says what was seen."""
    one, two = [Odd(name, stage.a_port()) for name in ("one", "two")]
    register(stage.any_port(), (one, two))
    port = stage.a_port()
    url = "http://127.0.0.1:%d" % port
    options = ("--service", "odd", "--listen", "127.0.0.1:%d" % port)
    times = ("--patience-ms", str(PATIENCE_MS), "--down-ms", str(DOWN_MS))
    gateway = stage.start("gateway", "gateway of odd", SESSION_MS, *options, *times)
    gateway.wait_for("passes requests to odd on")

    of_both(url, "the start")
    for path, status, tries in (("/slow", 504, 2), ("/large", 502, 1)):
        before = one.asked + two.asked
        expect_equal(answer(url + path)[0], status, "the answer to " + path)
        expect_equal(one.asked + two.asked - before, tries, "instances that were asked for " + path)
        of_both(url, path)
    for line in ("OPTIONS *", "CONNECT a:1"):
        expect_equal(
            raw(port, line + " HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 400 Bad Request", "the answer to " + line
        )
        of_both(url, line)

    for path in ("/slow-at-one", "/broken-at-one"):
        before = one.asked
        while one.asked == before:
            expect_equal(answer(url + path), (200, "two"), "the answer to " + path)
        expect_equal({answer(url + "/") for _ in range(6)}, {(200, "two")}, "those that answer after " + path)
        time.sleep(DOWN_MS / 1000)
        of_both(url, "the time in which an instance is left alone")

    # A client that never sends the rest of its request does not keep the gateway from its end.
    with socket.create_connection(("127.0.0.1", port), 5) as half:
        half.sendall(b"GET / HTTP/1.1\r\nHost")
        time.sleep(0.1)
        began = time.monotonic()
        gateway.stop()
        took = time.monotonic() - began
    expect("are given up" in gateway.output, "the gateway does not say that it gave a request up")
    print(
        "slow, large and bad requests: no instance blamed; ended after %.1f s beside half a request" % took, flush=True
    )
