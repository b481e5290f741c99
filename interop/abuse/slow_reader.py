"""A client reads a large answer slowly and sends pings meanwhile: it must keep its session.

The session's timeout is 4 seconds, the answer of 60 MB is read at 1.5 MB/s for 8 seconds, with a ping each second.
Another client watches the session's ephemeral znode.
"""

import socket
import time

from abuse.asking import MB, create_large, multi_read, ping
from harness.outcome import conclude, expect
from harness.protocol import EPHEMERAL
from harness.server import Server, arguments, work_folder
from harness.session import Session

TIMEOUT_MS, PARTS, RATE, READS_FOR = 4000, 60, 1.5 * MB, 8.0
STEP = 0.05


def check():
    args = arguments(__doc__).parse_args()
    with Server(args.server, work_folder("slow-reader"), args.port, {"maxSessionTimeout": 20000}) as server:
        other = Session(server.port, 20000)
        paths = create_large(other, PARTS)
        slow = Session(server.port, TIMEOUT_MS)
        # What the machine buffers for it would be read at once.
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
        slow.create("/ephemeral", b"", EPHEMERAL)
        began = time.monotonic()
        slow.send_all([multi_read(paths)])
        read, pinged, ended_at, closed_at = 0, 0.0, None, None
        while (now := time.monotonic() - began) < READS_FOR and closed_at is None:
            if now >= pinged + 1:
                pinged = now
                try:
                    ping(slow)
                except OSError:
                    closed_at = now
                if other.exists("/ephemeral") is None:
                    ended_at = ended_at or now
            due = int(now * RATE) - read
            if due > 0:
                try:
                    chunk = slow.socket.recv(due)
                except OSError:
                    chunk = b""
                read += len(chunk)
                if not chunk:
                    closed_at = now
            time.sleep(STEP)
        lives = other.exists("/ephemeral") is not None
    figures = "%.1f MB read in %.1f s, session %s, connection %s" % (
        read / MB,
        now,
        "lives" if lives else "ended after about %.0f s" % (ended_at or now),
        "open" if closed_at is None else "closed after %.1f s" % closed_at,
    )
    print(figures, flush=True)
    expect(lives and closed_at is None, figures)
    return figures


if __name__ == "__main__":
    conclude(check)
