"""The limits that hold for all clients together: new connections, the bytes of large requests, requests under way.

    python3 interop/abuse/throttles.py [--server java3.9]

The first two are the same for a Java server and for Ostler, with the same counts in `mntr`. Only Ostler's requests wait
for each other with certainty: a Java server takes them in one by one, and counts them late.
"""

import threading

from harness.outcome import conclude, expect, expect_equal
from harness.protocol import CREATE, NO_NODE, SET_DATA, create_body, set_body
from harness.server import Server, arguments, four_letter_word, work_folder
from harness.session import ConnectionLost, Session

THROTTLED = -127
TOKENS = 5
LARGE, LARGE_MAX = 1000, 5000
WRITERS, WRITES = 8, 40


def mntr(port):
    text = four_letter_word(port, "mntr")
    return dict(line.removeprefix("zk_").split("\t", 1) for line in text.splitlines() if "\t" in line)


def expect_counts(port, **wanted):
    counts = mntr(port)
    for name, value in wanted.items():
        expect_equal(counts.get(name), value, name)


def open_until_refused(port, session=None):
    """The sessions that could be opened, or the connections on which one could be taken up."""
    opened = []
    while len(opened) < 2 * TOKENS:
        try:
            known = (session.timeout_ms, session.id, session.password) if session else ()
            opened.append(Session(port, *known))
        except ConnectionLost:
            return opened
    return opened


def connections(make, port):
    """A bucket that does not fill again while the check looks."""
    settings = {"connection_throttle_tokens": TOKENS, "connection_throttle_fill_time": 1_000_000}
    with Server(make, work_folder("throttle-connections"), port, settings):
        expect_equal(len(open_until_refused(port)), TOKENS, "connections")
        expect_counts(
            port,
            connection_rejected="1",
            connection_drop_probability="0.0",
            cnt_connection_token_deficit=str(TOKENS),
            max_connection_token_deficit=str(TOKENS),
        )
    weighted = {**settings, "connection_throttle_weight_enabled": "true"}
    with Server(make, work_folder("throttle-weights"), port, weighted):
        first = Session(port)
        # Of 15 tokens a new session takes 3, and one that comes back 2.
        expect_equal(len(open_until_refused(port, first)), 6, "connections of a session that comes back")


def large_requests(make, port):
    settings = {"largeRequestThreshold": LARGE, "largeRequestMaxBytes": LARGE_MAX}
    with Server(make, work_folder("throttle-large"), port, settings):
        session = Session(port)
        session.call(CREATE, create_body("/large"))
        for _ in range(5):
            session.call(SET_DATA, set_body("/large", b"x" * (LARGE_MAX - 100)))
        try:
            session.call(SET_DATA, set_body("/large", b"x" * (LARGE_MAX + 1)))
            expect(False, "a request of more than all large ones may have was answered")
        except ConnectionLost:
            pass
        expect_counts(port, large_requests_rejected="1")
        Session(port).call(SET_DATA, set_body("/large", b"x" * (LARGE_MAX - 100)))


class Writer:
    """A session with many writes under way, and the error codes of its answers."""

    def __init__(self, port):
        self.session = Session(port, 10_000)
        self.codes = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        xids = self.session.send_all([(SET_DATA, set_body("/none", b"x"))] * WRITES)
        for xid in xids:
            reply = self.session.receive()
            expect_equal(reply.xid, xid, "the order of answers")
            self.codes.append(reply.error)


def write_all(port):
    writers = [Writer(port) for _ in range(WRITERS)]
    for writer in writers:
        writer.thread.start()
    for writer in writers:
        writer.thread.join(60)
        expect_equal(len(writer.codes), WRITES, "answers")
    return [code for writer in writers for code in writer.codes]


def requests(make, port):
    with Server(make, work_folder("throttle-requests"), port, {"request_throttle_max_requests": 2}):
        expect_equal(set(write_all(port)), {NO_NODE}, "answers of requests that waited")
        expect(int(mntr(port)["request_throttle_wait_count"]) > 0, "no request has waited")
    refusing = {"request_throttle_max_requests": 1, "throttled_op_wait_time": 1}
    with Server(make, work_folder("throttle-refused"), port, refusing):
        codes = write_all(port)
        refused = codes.count(THROTTLED)
        expect_equal(set(codes), {NO_NODE, THROTTLED}, "answers with a limit of the time to wait")
        expect_counts(port, throttled_ops=str(refused))
        return refused


def check():
    args = arguments(__doc__).parse_args()
    connections(args.server, args.port)
    large_requests(args.server, args.port)
    summary = "connections and large requests are limited, and counted"
    if not args.server.startswith("java"):
        refused = requests(args.server, args.port)
        summary += "; requests wait in order, and %d of %d were refused after 1 ms" % (refused, WRITERS * WRITES)
    return summary


if __name__ == "__main__":
    conclude(check)
