"""Plays a fake server at the quorum port and the election port of a real one: false votes, and a false learner."""

import socket
import struct
import threading

LOOKING, FOLLOWING, LEADING = 0, 1, 2
REQUEST, ACK, PING, NEWLEADER, FOLLOWERINFO, UPTODATE = 1, 3, 5, 10, 11, 12
DIFF, TRUNC, SNAP, LEADERINFO, ACKEPOCH = 13, 14, 15, 17, 18


def dial(port, source=None, timeout=2.0):
    return socket.create_connection(("127.0.0.1", port), timeout, (source, 0) if source else None)


def greeting(server, host, port):
    address = b"%s:%d" % (host.encode(), port)
    return struct.pack(">qqi", -65536, server, len(address)) + address


def vote(leader, zxid, epoch, round, state=LOOKING):
    body = struct.pack(">iqqqqi", state, leader, zxid, round, epoch, 1)
    return struct.pack(">i", len(body)) + body


def packet(kind, zxid, data=b""):
    return struct.pack(">iqi", kind, zxid, len(data)) + data + struct.pack(">i", -1)


def follower_info(server, epoch=0):
    return packet(FOLLOWERINFO, epoch << 32, struct.pack(">qiq", server, 0x10000, 0))


class Repeated:
    """Repeats an action in a thread of its own until the `with` block ends. It goes on after a lost connection."""

    def __init__(self, act, pause=0.02):
        self.act, self.pause, self.is_over, self.done = act, pause, threading.Event(), 0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.is_over.is_set():
            try:
                self.act(self.is_over)
                self.done += 1
            except OSError:
                pass
            self.is_over.wait(self.pause)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join(5)


def votes(member, claimed, said, source, backs=None, every=0.05):
    """Sends votes in the name of another server, for that server or for `backs`, with a growing zxid and round."""
    count = [0]

    def act(is_over):
        with dial(member.port + 2, source) as s:
            s.sendall(greeting(claimed, *said))
            s.settimeout(every)
            while not is_over.is_set():
                count[0] += 1
                s.sendall(vote(backs or claimed, (7 << 32) + count[0], 7, 10 + count[0]))
                try:
                    if not s.recv(65536):
                        return
                except TimeoutError:
                    pass

    return Repeated(act)


def learner(member, claimed, source, is_whole):
    """Connects to a leader as a follower. If `is_whole`, it acknowledges the history and answers pings. Otherwise it
    only sends its first packet."""

    def act(is_over):
        with dial(member.port + 1, source) as s:
            s.sendall(follower_info(claimed))
            s.settimeout(0.2)
            buffered, epoch = b"", 0
            while not is_over.is_set():
                try:
                    chunk = s.recv(1 << 20)
                    if not chunk:
                        return
                    buffered += chunk
                except TimeoutError:
                    s.sendall(packet(PING, 0))
                    continue
                if not is_whole:
                    continue
                # A tree is no packet: look for the packets around it.
                head = buffered.find(struct.pack(">iq", LEADERINFO, 0)[:4])
                if not epoch and head >= 0 and len(buffered) >= head + 12:
                    epoch = struct.unpack(">q", buffered[head + 4 : head + 12])[0]
                    s.sendall(packet(ACKEPOCH, 0, struct.pack(">i", 0)))
                    buffered = b""
                if epoch and struct.pack(">iq", NEWLEADER, epoch) in buffered:
                    s.sendall(packet(ACK, epoch))
                    buffered = b""

    return Repeated(act, 0.1)
