"""Forty clients ask for 60 MB each and do not read: measures the memory that this takes and keeps, and other clients'
waits.

Printed: the server's resident memory before, at its peak and some seconds after the forty have gone; how long another
client waited at most for small znodes, and for one of 1 MB. Then the same with the znodes written anew before each of
the forty asks, so that no two of the answers can share their bytes.
"""

import threading
import time

from abuse.asking import LARGE, create_large, multi_read, rss_mb
from harness.outcome import conclude, expect
from harness.protocol import SET_DATA, set_body
from harness.server import Server, arguments, work_folder
from harness.session import Session

CLIENTS, PARTS, FRESH_PARTS = 40, 60, 12
HELD_S = 3.0
# A bound of the server under test for answers that wait; other makes do not know the key.
BOUND_MB = 200
GROWTH_MAX_MB, LEFT_MAX_MB, WAIT_MAX_S = BOUND_MB + 150, 120, 2.0


class Neighbour(threading.Thread):
    """Reads a small znode and a large one by turns, and notes the longest waits."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.session, self.small, self.large, self.over = Session(port, 20000), 0.0, 0.0, False

    def run(self):
        while not self.over:
            self.small = max(self.small, self._timed("/small"))
            self.large = max(self.large, self._timed("/one"))
            time.sleep(0.02)

    def _timed(self, path):
        began = time.monotonic()
        self.session.get(path)
        return time.monotonic() - began

    def stop(self):
        self.over = True
        self.join()
        self.session.close()


def phase(server, owner, paths, fresh):
    """{figure: value} while forty clients ask and do not read."""
    neighbour = Neighbour(server.port)
    neighbour.start()
    before = peak = rss_mb(server)
    clients = []
    for n in range(CLIENTS):
        if fresh:
            owner.send_all([(SET_DATA, set_body(path, bytes([n]) * LARGE)) for path in paths])
            for _ in paths:
                owner.receive()
        client = Session(server.port, 20000)
        client.send_all([multi_read(paths)])
        clients.append(client)
        peak = max(peak, rss_mb(server))
    until = time.monotonic() + HELD_S
    while time.monotonic() < until:
        peak = max(peak, rss_mb(server))
        time.sleep(0.05)
    for client in clients:
        client.drop()
    time.sleep(3)
    after = rss_mb(server)
    neighbour.stop()
    return {"before": before, "peak": peak, "after": after, "small": neighbour.small, "large": neighbour.large}


def check():
    args = arguments(__doc__).parse_args()
    faults = []
    settings = {"maxSessionTimeout": 60000, "largeAnswersMaxBytes": BOUND_MB << 20, "snapCount": 10_000_000}
    with Server(args.server, work_folder("unread-answers"), args.port, settings) as server:
        owner = Session(server.port, 60000)
        paths = create_large(owner, PARTS)
        owner.create("/small", b"x")
        owner.create("/one", b"x" * LARGE)
        for name, asked, fresh in (("the same znodes", paths, False), ("written anew", paths[:FRESH_PARTS], True)):
            got = phase(server, owner, asked, fresh)
            print(
                "%s, %d MB for each: memory %d MB before, %d at the peak, %d after; longest wait %.2f s small, %.2f s "
                "large" % (name, len(asked), got["before"], got["peak"], got["after"], got["small"], got["large"]),
                flush=True,
            )
            if got["peak"] - got["before"] > GROWTH_MAX_MB:
                faults.append("%s: memory grows by %d MB" % (name, got["peak"] - got["before"]))
            if got["after"] - got["before"] > LEFT_MAX_MB:
                faults.append("%s: %d MB more are kept" % (name, got["after"] - got["before"]))
            if got["small"] > WAIT_MAX_S:
                faults.append("%s: a small read waited %.1f s" % (name, got["small"]))
        owner.close()
    expect(not faults, "; ".join(faults))
    return "memory is bounded and comes back"


if __name__ == "__main__":
    conclude(check)
