"""Servers with a port that takes TLS, and the lines that measure it.

Both servers have the same certificates (ECDSA with P-256, in PEM), ask clients for theirs, and speak TLS 1.3, with
TLS_AES_256_GCM_SHA384 as both of them prefer it. No session is resumed.
"""

import os
import socket
import subprocess
import time

from candidates import Bench, Failed, Instance


class SecureInstance(Instance):
    """A server with a plain port and one with TLS; `secure` is the load generator at the latter."""

    def __init__(self, candidate, bench, folder, **options):
        certificates = os.path.join(folder, "certificates")
        for words in ("init",), ("server", "server", "--host", "127.0.0.1"), ("client", "client"):
            line = [bench.program, "certs", *words, "--folder", certificates]
            done = subprocess.run(line, capture_output=True, text=True)
            if done.returncode:
                raise Failed("%s\n  of: %s" % (done.stderr.strip(), " ".join(line)))
        authority, server, client = (
            os.path.join(certificates, name + ".pem") for name in ("ca", "server-server", "client-client")
        )
        port = bench.port + 1
        self.secure = Bench(
            bench.program, port, options=["--tls-ca", authority, "--tls-cert", client, "--tls-key", client]
        )
        settings = {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": port,
            "secureClientPortAddress": "127.0.0.1",
            "ssl.keyStore.location": server,
            "ssl.trustStore.location": authority,
            "ssl.enabledProtocols": "TLSv1.3",
            "ssl.clientAuth": "need",
        }
        super().__init__(candidate, bench, folder, settings=settings, **options)

    def start(self):
        report = super().start()
        # Java opens this port after the other.
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.secure.port), timeout=2).close()
                return report
            except OSError:
                if time.monotonic() > until:
                    raise Failed("no TLS port within a minute\n%s" % self.log_tail()) from None
                time.sleep(0.01)


def measured_mix(bench, op, size):
    """The figures of one kind of request. A JVM is given time to compile what the run needs."""
    bench("mix", "--ops", op + "=1", "--seconds", size.jit_warmup, "--warmup", 0)
    report = bench("mix", "--ops", op + "=1", "--seconds", size.seconds)
    return {
        "rate": report["ops_per_second"],
        "cpu": report["server_process"]["cpu_us_per_op"],
        "p99": report["latency_us"]["p99"],
    }


def secure_mix(op):
    """The loads of lines 1 and 2, over TLS."""

    def run(make, _, size):
        server = make(SecureInstance)
        server.start()
        try:
            return measured_mix(server.secure, op, size)
        finally:
            server.discard()

    return run


def handshakes(make, _, size):
    server = make(SecureInstance)
    server.start()
    try:
        report = server.secure("handshakes", "--warmup", size.jit_warmup, "--seconds", size.seconds)
    finally:
        server.discard()
    return {"rate": report["ops_per_second"], "cpu": report["server_process"]["cpu_us_per_op"]}


def latency(make, bench, size):
    """The same reads at the plain port and over TLS, few enough that nothing queues."""
    server = make(SecureInstance)
    server.start()
    found = {}
    try:
        for key, load in ("plain", bench), ("tls", server.secure):
            words = ["--op", "get", "--rate", size.rate, "--warmup", size.jit_warmup, "--seconds", size.seconds]
            report = load("rate", *words)
            found.update((key + "_" + part, report["latency_us"][part]) for part in ("p50", "p99"))
    finally:
        server.discard()
    return found
