"""Load by four-letter words: callers that read the answer slowly, and long answers while another session writes.

    python3 interop/abuse/words.py [--server java3.9] [--watches 200000] [--words 100]

First --watches watches are set. Then 36 connections from one address ask for `wchp` and read nothing: after a while the
server must close each of them. Then --words words are asked for at once while a session reads and writes: none of its
requests may wait long.
"""

import socket
import threading
import time

from harness.jute import ustring
from harness.outcome import conclude, expect
from harness.protocol import EXISTS
from harness.server import Server, arguments, work_folder
from harness.session import ConnectionLost, Session

SLOW = 36
SLOW_GONE_AFTER_S = 13.0
WORDS = ("wchp", "wchc", "dump", "cons")
WAITS_AT_MOST_S = 1.0
AT_ONCE = 10000


def leave_watches(port, count):
    """Opens sessions that together watch this many paths, of 40 characters each."""
    sessions = []
    for number in range(4):
        session = Session(port, 60000)
        for first in range(0, count // 4, AT_ONCE):
            requests = [
                (EXISTS, ustring("/watched/by-%d/%025d" % (number, at)) + b"\1")
                for at in range(first, min(first + AT_ONCE, count // 4))
            ]
            session.send_all(requests)
            for _ in requests:
                session.receive()
        sessions.append(session)
    return sessions


def ask(port, word, receive_buffer=None):
    s = socket.socket()
    if receive_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.settimeout(30)
    s.connect(("127.0.0.1", port))
    s.sendall(word.encode())
    return s


def open_ends(port):
    """Ports of clients whose connection the server at `port` has not closed, as the system has it."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as f:
            for words in map(str.split, f.readlines()[1:]):
                local, remote = (int(place.split(":")[1], 16) for place in words[1:3])
                if local == port and words[3] in ("01", "08"):  # established, or closed by the client alone
                    found.add(remote)
    return found


def slow_readers(port):
    """The number of slow readers that are still connected after a while."""
    slow = [ask(port, "wchp", receive_buffer=2048) for _ in range(SLOW)]
    ports = [s.getsockname()[1] for s in slow]
    began = time.monotonic()
    left = SLOW
    while left and time.monotonic() < began + SLOW_GONE_AFTER_S:
        time.sleep(0.5)
        left = len(open_ends(port).intersection(ports))
    took = time.monotonic() - began
    for s in slow:
        s.close()
    return left, took


def under_words(port, count):
    """The longest wait of another session's request, and the number of words that were answered in full."""
    session = Session(port, 60000)
    answered, failed = [], []

    def one(word):
        try:
            with ask(port, word) as s:
                size = 0
                while chunk := s.recv(1 << 20):
                    size += len(chunk)
                (answered if size else failed).append(word)
        except OSError:
            failed.append(word)

    threads = [threading.Thread(target=one, args=(WORDS[n % len(WORDS)],)) for n in range(count)]
    waits, done = [], threading.Event()

    def work():
        number = 0
        while not done.is_set():
            at = time.monotonic()
            try:
                session.set("/written", b"%d" % number)
                session.get("/written")
            except ConnectionLost:
                done.set()
            waits.append(time.monotonic() - at)
            number += 1

    worker = threading.Thread(target=work)
    worker.start()
    time.sleep(0.5)
    before = max(waits)
    began = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    took = time.monotonic() - began
    done.set()
    worker.join()
    return before, sorted(waits), len(answered), took


def check():
    parser = arguments(__doc__, watches={"type": int, "default": 200000}, words={"type": int, "default": 100})
    args = parser.parse_args()
    with Server(args.server, work_folder("words"), args.port, {"maxSessionTimeout": 60000}) as server:
        first = Session(args.port, 60000)
        first.create("/written", b"")
        watching = leave_watches(args.port, args.watches)
        before, waits, answered, took = under_words(args.port, args.words)
        print(
            "%d of %d words answered in %.1f s; meanwhile a write and a read took at most %.0f ms, 99%% below %.0f ms "
            "(%.0f ms without words)"
            % (answered, args.words, took, waits[-1] * 1000, waits[len(waits) * 99 // 100] * 1000, before * 1000),
            flush=True,
        )
        left, after = slow_readers(args.port)
        print("%d of %d slow readers are connected after %.1f s" % (left, SLOW, after), flush=True)
        expect(server.process.poll() is None, "the server has ended")
        expect(waits[-1] < WAITS_AT_MOST_S, "a write and a read took %.1f s while words were answered" % waits[-1])
        expect(left == 0, "%d of %d slow readers are still connected after %.0f s" % (left, SLOW, after))
        for session in watching:
            session.socket.close()
    return "%d words over %d watches: others wait %.0f ms at most; slow readers gone after %.0f s" % (
        answered,
        args.watches,
        waits[-1] * 1000,
        after,
    )


if __name__ == "__main__":
    conclude(check)
