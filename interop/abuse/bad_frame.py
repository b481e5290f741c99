"""A bad frame comes after valid requests: these are carried out and answered before the connection ends.

The requests are 60 getData of 40 kB and a create, more than a server answers in one go. The bad frame is a length
below zero, then one without a whole header.
"""

import struct

from abuse.asking import Frames, get
from harness.outcome import conclude, expect
from harness.protocol import CREATE, create_body
from harness.server import Server, arguments, work_folder
from harness.session import Session

READS, SIZE = 60, 40_000
BAD = {"a length below zero": struct.pack(">i", -5), "half a header": struct.pack(">ii", 4, 1)}


def frame(xid, op, body):
    return struct.pack(">iii", len(body) + 8, xid, op) + body


def check():
    args = arguments(__doc__).parse_args()
    faults = []
    with Server(args.server, work_folder("bad-frame"), args.port) as server:
        owner = Session(server.port)
        owner.create("/some", b"x" * SIZE)
        for n, (what, bad) in enumerate(BAD.items()):
            path, client = "/before-%d" % n, Session(server.port)
            requests = [get("/some")] * READS + [(CREATE, create_body(path))]
            whole = b"".join(frame(xid + 1, op, body) for xid, (op, body) in enumerate(requests))
            client.socket.sendall(whole + bad)
            answered = len(Frames(client).until_end())
            done = owner.exists(path) is not None
            print(
                "%s: %d of %d answered, the create %s"
                % (what, answered, len(requests), "done" if done else "not done"),
                flush=True,
            )
            if answered != len(requests) or not done:
                faults.append("%s: %d of %d answered" % (what, answered, len(requests)))
        owner.close()
    expect(not faults, "; ".join(faults))
    return "all whole requests were answered"


if __name__ == "__main__":
    conclude(check)
