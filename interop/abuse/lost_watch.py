"""A client that watches a znode gets 90 MB of answers at once, and the znode changes meanwhile: the client gets the
event.

The client reads all the time. It pipelines a write, 90 getData of 1 MB and another write; between the two writes
another client changes the watched znode, and a third one writes all the time so that all three are synced together.
If the connection ends before the event comes, the client does what the protocol says: it connects again, and sends its
watches and its last zxid with setWatches.
"""

import struct
import threading
import time

from abuse.asking import LARGE, Frames, get
from harness.jute import ustring
from harness.outcome import conclude, expect
from harness.protocol import EVENT_XID, SET_DATA, set_body
from harness.server import Server, arguments, work_folder
from harness.session import Session

SET_WATCHES, SET_WATCHES_XID = 101, -8
ROUNDS, READS = 7, 90


class Busy(threading.Thread):
    """Writes all the time, to keep the disk busy, until it is stopped."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.session, self.over = Session(port), False

    def run(self):
        while not self.over:
            for _ in self.session.send_all([(SET_DATA, set_body("/busy", b"x" * LARGE))] * 8):
                self.session.receive()

    def stop(self):
        self.over = True
        self.join()
        self.session.close()


class Watcher:
    """A client with a one-shot watch, which notes what it gets."""

    def __init__(self, port):
        self.port, self.session = port, Session(port)
        self.session.send_all([get("/watched", watch=True)])
        self.seen = self.session.receive().zxid
        self.told, self.answers = False, 0

    def look(self, frames, until_answers):
        """Reads until this many answers have come. False if the connection ends before."""
        while self.answers < until_answers:
            frame = frames.next()
            if frame is None:
                return False
            xid, zxid, _ = struct.unpack_from(">iqi", frame)
            if xid == EVENT_XID:
                self.told = True
            else:
                self.answers += 1
                self.seen = max(self.seen, zxid)
        return True

    def comes_back(self):
        """Connects again with its session, and sets its watch again."""
        old = self.session
        self.session = Session(self.port, session_id=old.id, password=old.password, seen_zxid=self.seen)
        body = struct.pack(">qi", self.seen, 1) + ustring("/watched") + struct.pack(">ii", 0, 0)
        self.session.socket.sendall(struct.pack(">iii", len(body) + 8, SET_WATCHES_XID, SET_WATCHES) + body)
        self.session.socket.settimeout(3)
        frames = Frames(self.session)
        # The event of what was missed comes before the answer to setWatches.
        self.answers = 0
        self.look(frames, 1)


def one_round(port, other):
    """Returns (whether the client got the event, whether its connection ended)."""
    watcher = Watcher(port)
    session = watcher.session
    session.send_all([(SET_DATA, set_body("/own", b"1"))] + [get("/large")] * READS)
    other.send_all([(SET_DATA, set_body("/watched", b"x"))])
    time.sleep(0.001)
    session.send_all([(SET_DATA, set_body("/own", b"2"))])
    frames = Frames(session)
    whole = watcher.look(frames, READS + 2)
    other.receive()
    if whole and not watcher.told:
        # All answers have come without the event: now only the end of the connection can follow.
        session.socket.settimeout(2)
        whole = watcher.look(frames, READS + 3)
    if not whole:
        session.drop()
        watcher.comes_back()
    watcher.session.drop()
    return watcher.told, not whole


def check():
    args = arguments(__doc__).parse_args()
    with Server(args.server, work_folder("lost-watch"), args.port) as server:
        other = Session(server.port)
        other.create("/large", b"x" * LARGE)
        for path in ("/own", "/watched", "/busy"):
            other.create(path)
        busy = Busy(server.port)
        busy.start()
        rounds = [one_round(server.port, other) for _ in range(ROUNDS)]
        busy.stop()
        other.close()
    ended = sum(ends for _, ends in rounds)
    lost = sum(not told for told, _ in rounds)
    figures = "of %d rounds %d ended the connection and %d lost the event" % (ROUNDS, ended, lost)
    print(figures, flush=True)
    expect(lost == 0, figures)
    expect(ended == 0, figures + ": a client that reads all the time is not hung up on")
    return figures


if __name__ == "__main__":
    conclude(check)
