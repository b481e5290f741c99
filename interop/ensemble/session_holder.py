"""A client as a program of its own, to be stopped, killed or cut off: it keeps one session alive by reads.

    python3 -m ensemble.session_holder HOST PORT TIMEOUT_MS

Prints `session 0x...` once the session is open, and ends with the connection."""

import sys
import time

from harness.address import found_at
from harness.protocol import EPHEMERAL
from harness.session import ConnectionLost, Session


def main():
    host, port, timeout_ms = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found_at(port, host)
    session = Session(port, timeout_ms)
    session.create("/held-%x" % (session.id & (1 << 64) - 1), b"", EPHEMERAL)
    print("session 0x%x" % (session.id & (1 << 64) - 1), flush=True)
    try:
        while True:
            time.sleep(timeout_ms / 5000)
            session.exists("/")
    except ConnectionLost:
        pass


if __name__ == "__main__":
    main()
