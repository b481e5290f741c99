"""Steps with connections and sessions: connect, disconnect, reconnect, and invalid handshakes."""

from differential.connection import Connection, Silent
from differential.lockstep import CLOSED, LONG_TIMEOUT, SILENT
from differential.request import Request
from harness import protocol

TIMEOUTS = (LONG_TIMEOUT, LONG_TIMEOUT, 100000, 60000, 20000, 19999, 0, -1, 1, 200001, (1 << 31) - 1, -(1 << 31))
BAD_PASSWORDS = (b"\0" * 16, b"x" * 16, b"short", b"", None, b"y" * 40)


class SessionSteps:
    def __init__(self, lockstep, generator):
        self.lockstep = lockstep
        self.generator = generator
        self.rng = generator.rng
        self.ended = []  # ids, per side, of sessions that were closed
        self.steps = (
            (8, self.come_back),
            (4, self.take_over),
            (3, self.wrong_password),
            (2, self.seen_too_much),
            (2, self.unknown_session),
            (2, self.ended_session),
            (2, self.bad_connect),
            (1, self.four_letter_word),
            (1, self.short_visit),
        )

    def run(self, slot):
        """Runs a random step. The slot has a session, and may or may not have a connection."""
        weights = [w for w, _ in self.steps]
        step = self.rng.choices([s for _, s in self.steps], weights)[0]
        self._count(step.__name__)
        step(slot)

    def _count(self, name):
        self.lockstep.coverage.situation("session step: " + name.replace("_", " "))

    # ---- coming and going

    def start(self, slot):
        """The slot's first session, or the next one after a closeSession."""
        options = {}
        if self.rng.random() < 0.15:
            options["read_only"] = None
        elif self.rng.random() < 0.15:
            options["read_only"] = True
        if self.rng.random() < 0.2:
            options["protocol"] = self.rng.choice((1, -1, 77))
        if self.rng.random() < 0.3:
            options["password"] = self.rng.choice((None, b"", b"z" * 16, b"q" * 30))
        follow = self._eager() if self.rng.random() < 0.3 else ()
        self.lockstep.new_session(slot, self._timeout(), follow=follow, **options)

    def _timeout(self):
        """Mostly long ones: a session must not expire in the middle of the run."""
        return LONG_TIMEOUT if self.rng.random() < 0.5 else self.rng.choice(TIMEOUTS)

    def _eager(self):
        """Requests that a client sends right after its ConnectRequest, without waiting."""
        requests = [
            Request("auth", protocol.auth("digest", b"alice:secret"), {"scheme": "digest"}, xid=-4),
            Request("setWatches", protocol.set_watches(0, (("/eager",), ("/eager",), ())), {}, xid=-8),
            Request("exists", protocol.path_watch("/", False), {"path": "/"}, xid=1),
        ]
        return requests[self.rng.randrange(3) :]

    def come_back(self, slot):
        """The client's TCP connection ends, then the session is resumed."""
        slot.detach()
        self._resume(slot)

    def take_over(self, slot):
        """Opens a second connection for a session whose first one is still open."""
        self._resume(slot)

    def _resume(self, slot):
        newest = self.generator.newest()
        last_zxid = self.rng.choice((0, 0, -1, newest, max(0, newest - 3)))
        options = {"read_only": None} if self.rng.random() < 0.15 else {}
        follow = self._eager() if self.rng.random() < 0.3 else ()
        self.lockstep.reattach(slot, self._timeout(), last_zxid, follow=follow, **options)

    def ensure(self, slot):
        """Gives the slot a session with a connection again."""
        if slot.attached:
            return
        if slot.number is not None:
            self.lockstep.reattach(slot)
            if not slot.attached:
                self.lockstep.lost(slot)
        if not slot.attached:
            self.start(slot)

    def forget(self, slot_ids):
        self.ended.append(tuple(slot_ids))

    # ---- refusals

    def wrong_password(self, slot):
        """A wrong password is refused. Java also closes the session's own connection, and Ostler does not, so there is
        none here."""
        password = self.rng.choice(BAD_PASSWORDS)
        slot.detach()
        number, ids = slot.number, list(slot.ids)
        slot.connections = [None, None]
        self.lockstep.open(slot, [protocol.connect(LONG_TIMEOUT, session, password) for session in ids])
        slot.number, slot.ids = number, ids
        slot.forget_connection()

    def seen_too_much(self, slot):
        """A client that has seen a later zxid is dropped before anything else happens."""
        ahead = self.rng.choice((1, 1000, 1 << 40))
        self.lockstep.reattach(slot, last_zxid=lambda side: side.newest + ahead)
        if slot.attached:
            self.lockstep.burst(slot, [Request("ping", b"", xid=protocol.PING_XID)], counted=False)

    def unknown_session(self, slot):
        # None with ff below the top byte: a follower without the secret leaves these to the others (docs/sessions.md).
        unknown = self.rng.choice((1, -(1 << 62), 0x1234567890ABCDEF, -(1 << 63)))
        password = self.rng.choice((protocol.password_of(unknown), b"\0" * 16))
        self._refused(slot, [protocol.connect(LONG_TIMEOUT, unknown, password)] * 2)

    def ended_session(self, slot):
        """A session that was closed cannot be resumed, not even with its password."""
        if not self.ended:
            return
        ids = self.rng.choice(self.ended)
        self._refused(slot, [protocol.connect(LONG_TIMEOUT, i, protocol.password_of(i)) for i in ids])

    def _refused(self, slot, bodies):
        """Sends a handshake that must be refused. The slot's own connection must survive."""
        own, number, ids = slot.connections, slot.number, list(slot.ids)
        slot.connections = [None, None]
        self.lockstep.open(slot, bodies)
        for connection in slot.connections:
            if connection is not None:
                connection.close()
        slot.connections, slot.number, slot.ids = own, number, ids

    # ---- bytes in place of a ConnectRequest

    def bad_connect(self, slot):
        good = protocol.connect(LONG_TIMEOUT)
        self._exchange(
            slot,
            self.rng.choice(
                (
                    protocol.frame(b""),
                    protocol.frame(good[:10]),
                    protocol.frame(good[:27]),
                    protocol.frame(good[:35]),
                    b"\xff\xff\xff\xff",
                    b"\x7f\xff\xff\xff",
                    b"\0\x10\0\0" + good,
                    protocol.frame(b"\xfe" * 40),
                )
            ),
        )

    def four_letter_word(self, slot):
        self._exchange(slot, self.rng.choice((b"ruok", b"isro", b"gtmk")))

    def _exchange(self, slot, raw):
        """Sends bytes on fresh connections and compares everything up to the close."""
        answers = []
        for side in self.lockstep.sides:
            connection = Connection(side.server.port_of(slot.index), slot.source)
            connection.send(raw)
            try:
                answers.append([(("kind", "bytes"), ("bytes", connection.unframed())), CLOSED])
            except Silent:
                answers.append([SILENT])
            connection.close()
        self.lockstep.check(answers[0], answers[1], slot, ["raw bytes %r" % raw])

    def short_visit(self, slot):
        """The slot's session ends and a new one begins."""
        if slot.attached:
            self.forget(slot.ids)
            self.lockstep.burst(slot, [Request("closeSession", b"", ends=True)])
