"""Clients use up all open files that a server may have: it must go on writing, and accept clients again afterwards.

    python3 interop/abuse/descriptors.py [--server java3.9] [--addresses 18] [--each 60]

The server runs with `ulimit -n 1024` and has a snapshot and a new log every hundred writes, so the disk needs files
while clients hold as many connections as they get. Then a server with a low soft limit and a higher hard limit must
raise the soft limit by itself.
"""

import os
import resource
import socket
import struct
import time

from harness.outcome import conclude, expect
from harness.server import Server, arguments, four_letter_word, work_folder
from harness.session import Session

LIMIT = 1024
HELLO = struct.pack(">iqiq", 0, 0, 30000, 0) + struct.pack(">i", 16) + b"\0" * 17
WRITES = 350
LOOK_S = 1.0
BUSY_MAX = 0.5  # of a core, by a server that has nothing to do
OWN_FILES = 200  # of this script, beside the crowd's


def limited(server, soft, hard):
    """The same server with limits of open files."""
    script = 'ulimit -S -n %d && ulimit -H -n %d && exec "$@"' % (soft, hard)
    server.words = ["sh", "-c", script, "sh"] + server.words
    return server


def crowd(port, addresses, each):
    """Opens connections from this many addresses. Returns those with a session, and the number that was refused."""
    there, refused = [], 0
    for number in range(addresses):
        for _ in range(each):
            try:
                s = socket.create_connection(
                    ("127.0.0.1", port), timeout=2, source_address=("127.0.1.%d" % (number + 1), 0)
                )
                s.sendall(struct.pack(">i", len(HELLO)) + HELLO)
                there.append(s)
            except OSError:
                refused += 1
    until = time.monotonic() + 3
    served = []
    for s in there:
        s.settimeout(max(0.05, until - time.monotonic()))
        try:
            if s.recv(64):
                served.append(s)
                continue
        except OSError:
            pass
        refused += 1
        s.close()
    return served, refused


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check():
    args = arguments(__doc__, addresses={"type": int, "default": 18}, each={"type": int, "default": 60}).parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(args.addresses * args.each + OWN_FILES, hard), hard))
    settings = {"maxClientCnxns": 60, "snapCount": 100, "maxSessionTimeout": 60000}
    server = limited(Server(args.server, work_folder("descriptors"), args.port, settings), LIMIT, LIMIT)
    with server:
        first = Session(args.port, 30000)
        first.create("/written", b"")
        served, refused = crowd(args.port, args.addresses, args.each)
        print("%d connections served, %d refused" % (len(served), refused), flush=True)
        expect(server.process.poll() is None, "the server has ended: %s" % server.log_tail(300))
        began = cpu_seconds(server.process.pid)
        time.sleep(LOOK_S)
        busy = (cpu_seconds(server.process.pid) - began) / LOOK_S
        print("%.2f of a core is used while nothing happens" % busy, flush=True)
        slowest = 0.0
        for number in range(WRITES):
            at = time.monotonic()
            try:
                first.set("/written", b"%d" % number)
            except Exception as error:
                expect(False, "write %d under the crowd: %s; the server: %s" % (number, error, server.log_tail(300)))
            slowest = max(slowest, time.monotonic() - at)
        print("%d writes under the crowd, the slowest took %.0f ms" % (WRITES, slowest * 1000), flush=True)
        for s in served:
            s.close()
        until = time.monotonic() + 5
        while True:
            try:
                with_place = Session(args.port, 10000)
                break
            except Exception as error:
                expect(time.monotonic() < until, "no place for a client after the crowd is gone: %s" % error)
                time.sleep(0.1)
        expect(with_place.get("/written")[0] == b"%d" % (WRITES - 1), "the last write is not there")
        expect(server.process.poll() is None, "the server has ended: %s" % server.log_tail(300))
        expect(busy < BUSY_MAX, "the server uses %.2f of a core while nothing happens" % busy)
    raised = limited(Server(args.server, work_folder("descriptors"), args.port + 1), 256, LIMIT)
    with raised:
        text = four_letter_word(raised.port, "mntr")
        limit = next(int(line.split()[1]) for line in text.splitlines() if "max_file_descriptor_count" in line)
        expect(limit == LIMIT, "a soft limit of 256 below a hard one of %d became %d" % (LIMIT, limit))
    return "%d of %d served, %.2f of a core, slowest write %.0f ms, then a place for others; soft limit raised" % (
        len(served),
        args.addresses * args.each,
        busy,
        slowest * 1000,
    )


if __name__ == "__main__":
    conclude(check)
