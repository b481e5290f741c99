#!/usr/bin/env python3
"""Connections that never do their TLS handshake: half of them silent, others that send a byte a second. Meanwhile a
client over TLS is served as before, and the memory of the server stays bounded."""

import os
import resource
import selectors
import socket
import ssl
import sys
import threading
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from collections import deque

from harness import protocol
from harness.outcome import conclude, expect
from harness.server import Server, arguments, work_folder
from harness.session import Session
from security.certificates import Authority

SILENT, SLOW = 5000, 1000
HELLO = bytes.fromhex("16030100c8010000c40303") + b"\0" * 60
REQUESTS = 3000
GROWTH_MAX_MIB = 200


class TlsSession(Session):
    """A session over TLS with a client certificate."""

    def __init__(self, port, context, timeout_ms=30000):
        plain = socket.create_connection(("localhost", port), timeout=10)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.buffer, self.xid, self.waiting, self.events = b"", 0, deque(), []
        self.port, self.seen_zxid = port, 0
        self._open(protocol.connect(timeout_ms, 0, b"\0" * 16, 0), 0)


class Flood(threading.Thread):
    """Keeps the connections open: one that the server closes is made again."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.stopping, self.made = port, False, 0
        self.selector = selectors.DefaultSelector()
        self.slow = []

    def connect(self, is_slow):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", self.port))
        self.selector.register(one, selectors.EVENT_READ, is_slow)
        self.made += 1
        if is_slow:
            self.slow.append([one, 0])

    def run(self):
        for number in range(SILENT + SLOW):
            self.connect(number < SLOW)
            if number % 100 == 0:
                time.sleep(0.01)
        last = time.monotonic()
        while not self.stopping:
            for key, _events in self.selector.select(0.2)[:200]:
                self.selector.unregister(key.fileobj)
                key.fileobj.close()
                if key.data:
                    self.slow = [entry for entry in self.slow if entry[0] is not key.fileobj]
                self.connect(key.data)
            if time.monotonic() - last > 1:
                last = time.monotonic()
                self.send_a_byte()

    def send_a_byte(self):
        for entry in self.slow:
            one, sent = entry
            try:
                entry[1] += one.send(HELLO[sent % len(HELLO) :][:1])
            except OSError:
                pass


def rss_mib(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * resource.getpagesize() / (1 << 20)


def p99_ms(session, path):
    times = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        session.get(path)
        times.append((time.perf_counter() - began) * 1000)
    return sorted(times)[int(REQUESTS * 0.99)]


def check():
    args = arguments(__doc__).parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = work_folder("flood")
    authority = Authority(os.path.join(folder, "certificates"))
    authority.issue("server")
    base = authority.issue("app")
    context = ssl.create_default_context(cafile=authority.path("pem"))
    context.load_cert_chain(base + ".pem")
    secure = args.port + 1
    settings = {
        "secureClientPort": secure,
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        **authority.keys("ssl.", "server"),
    }
    with Server(args.server, os.path.join(folder, "server"), args.port, settings) as server:
        session = TlsSession(secure, context)
        session.create("/a", b"x" * 100)
        p99_ms(session, "/a")
        quiet, before = p99_ms(session, "/a"), rss_mib(server.process.pid)
        flood = Flood(secure)
        flood.start()
        while flood.made < SILENT + SLOW:
            time.sleep(0.1)
        time.sleep(2)
        during, after = p99_ms(session, "/a"), rss_mib(server.process.pid)
        began = time.monotonic()
        TlsSession(secure, context).close()
        new = time.monotonic() - began
        flood.stopping = True
        expect(after - before < GROWTH_MAX_MIB, "the server grew by %.0f MiB" % (after - before))
        expect(new < 2, "a new client had to wait %.1f s" % new)
    memory = "memory %.0f MiB, then %.0f" % (before, after)
    p99 = "p99 of a read %.2f ms, in the flood %.2f ms (%.1f times)" % (quiet, during, during / quiet)
    return "%s; %s; a new client in %.2f s" % (p99, memory, new)


if __name__ == "__main__":
    conclude(check)
