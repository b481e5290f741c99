"""Drives both servers with the same requests, one step at a time, and compares what comes back."""

import random
import time
from collections import Counter
from typing import Any

from differential.compare import first_difference, show
from differential.connection import Connection, Silent
from differential.model import Slot, Tree
from differential.request import Request
from harness import protocol

CLOSED = (("kind", "closed"),)
SILENT = (("kind", "silent"),)
SOURCES = ("127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3")
LONG_TIMEOUT = 200000
PATIENCE = 30.0  # seconds until a server that lags behind counts as one that has lost data


class Different(Exception):
    """A difference between the servers; the text is the report."""


class Lockstep:
    """spread: the clients are at several servers, so the others sync after each step of one."""

    def __init__(self, sides, seed, coverage, keep_going=False, plant=None, spread=False):
        self.sides = sides
        self.seed = seed
        self.coverage = coverage
        self.keep_going = keep_going
        self.plant = plant
        self.spread = spread
        self.found = Counter()  # signature of a difference -> how often
        self.examples = {}
        self.slots = [Slot(i, source) for i, source in enumerate(SOURCES)]
        self.tree = Tree()
        self.sessions_made = 0
        self.sent = 0  # requests of the stream, fences not counted
        self.close_zxids = set()  # common zxids of closeSession transactions
        self.xids = random.Random(seed ^ 0x5EED)

    # ---- bursts

    def burst(self, slot, requests, counted=True):
        """Sends the requests back to back on one session, and compares all that its connection and the other
        connections get."""
        for request in requests:
            if request.xid == 0:
                request.xid = self._xid()
            slot.history.append((self.sent, str(request)))
            self.sent += counted
        last = requests[-1]
        received = []
        for index, side in enumerate(self.sides):
            connection = slot.connections[index]
            connection.send(b"".join(request.frame(side) for request in requests))
            received.append(self._collect(connection, requests, last.ends))
        if self.plant:
            received[1] = self.plant.alter(self.sent, received[1], requests)
        items = [self._decode(side, frames, requests) for side, frames in zip(self.sides, received)]
        for index, side in enumerate(self.sides):
            self._sort_close_events(side, items[index])
        replies = self._replies(items[0], requests)
        self.check(items[0], items[1], slot, requests)
        for request, reply in replies:
            self.coverage.reply(request, reply)
            self.tree.apply_reply(request, reply, slot.number)
        if self.keep_going:
            self._even_out()
        ended = any(item in (CLOSED, SILENT) for pair in items for item in pair)
        if last.name == "closeSession" and last.ends:
            slot.end_session()
        elif ended:
            slot.detach()
        if self.spread or any(
            request.ends or request.op in protocol.WRITES and reply["err"] == 0 for request, reply in replies
        ):
            self.fence(slot)
        return [reply for _, reply in replies]

    def _xid(self):
        """A random xid. Servers only copy it; -1 is left out, because events have it."""
        roll = self.xids.random()
        if roll < 0.97:
            return self.xids.randrange(1, 1 << 31)
        return self.xids.choice((-2, -4, -8, -9, -100, -(1 << 31), 1, (1 << 31) - 1))

    def _collect(self, connection, requests, ends):
        """Frames up to the last expected reply, or to the close: [(frame, request or None for an event)]."""
        waiting = [request for request in requests if not request.silent]
        waiting.reverse()
        got: list[tuple[Any, Any]] = []
        try:
            while waiting or ends:
                data = connection.frame()
                if data is None:
                    got.append((None, None))
                    break
                header = protocol.reply_header(data)
                if header is not None and header[0] == protocol.EVENT_XID:
                    got.append((data, None))
                else:
                    got.append((data, waiting.pop() if waiting else requests[-1]))
        except Silent:
            got.append((SILENT, None))
        return got

    def _decode(self, side, frames, requests):
        """Decodes in two rounds: the replies show which zxids to leave out, then everything is translated to common
        terms."""
        for data, request in frames:
            if request is None:
                continue
            header = protocol.reply_header(data)
            if header is None:
                continue
            _, zxid, err = header
            side.learn(zxid, err == -5 and request.op in protocol.WRITES)
            if request.name == "closeSession" and err == 0:
                self.close_zxids.add(side.common(zxid))
        items = []
        for data, request in frames:
            if data is None:
                items.append(CLOSED)
            elif data is SILENT:
                items.append(SILENT)
            elif request is None:
                items.append(side.fields(protocol.decode_event(data)))
            else:
                items.append(side.fields(protocol.decode_reply(data, request.op)))
        return items

    def _sort_close_events(self, side, items):
        """The ephemerals of a closed session go in no specified order, so their events are compared sorted."""
        begin = 0
        while begin < len(items):
            zxid = self._close_event(items[begin])
            end = begin + 1
            while zxid is not None and end < len(items) and self._close_event(items[end]) == zxid:
                end += 1
            if end - begin > 1:
                items[begin:end] = sorted(items[begin:end], key=repr)
            begin = end

    def _close_event(self, item):
        if item[0] != ("kind", "event"):
            return None
        zxid = item[1][1]
        return zxid if zxid in self.close_zxids else None

    def _replies(self, items, requests):
        """Pairs of request and reply fields, for the model and the counts; events are counted on the way."""
        waiting = [request for request in requests if not request.silent]
        pairs = []
        for item in items:
            fields = dict(item)
            if fields["kind"] == "event":
                self.coverage.event(fields)
            elif fields["kind"] == "reply" and waiting:
                pairs.append((waiting.pop(0), fields))
            elif fields["kind"] == "closed":
                self.coverage.closed(requests[-1])
        return pairs

    # ---- fences

    def fence(self, writer):
        """Sends a ping on every other connection. Events that the write has caused there arrive before its reply."""
        attached = [slot for slot in self.slots if slot.attached and slot is not writer]
        ping = [Request("ping", b"", xid=protocol.PING_XID)]
        if self.spread:
            ping = [Request("sync", protocol.ustring("/"), {"path": "/"}, xid=1)]
        for slot in attached:
            for side, connection in zip(self.sides, slot.connections):
                connection.send(ping[0].frame(side))
        for slot in attached:
            received = [self._until_level(*both, ping) for both in zip(self.sides, slot.connections)]
            if (
                received[0] == received[1]
                and self.sides[0].left_out == self.sides[1].left_out
                and len(received[0]) == 1
            ):
                continue
            if self.plant:
                received[1] = self.plant.alter(self.sent, received[1], ping)
            items = [self._decode(side, frames, ping) for side, frames in zip(self.sides, received)]
            for side, pair in zip(self.sides, items):
                self._sort_close_events(side, pair)
            self._replies(items[0], ping)
            self.check(items[0], items[1], slot, ping)
            if any(item in (CLOSED, SILENT) for pair in items for item in pair):
                slot.detach()

    def _until_level(self, side, connection, ping):
        """Repeats a sync until the client's server has everything that was answered, and returns all events and the
        answer. Java may answer a sync while an earlier transaction of another client is still being applied."""
        events, until = [], time.monotonic() + PATIENCE
        while True:
            *before, last = self._collect(connection, ping, False)
            events += before
            header = protocol.reply_header(last[0]) if isinstance(last[0], bytes) else None
            level = not self.spread or header is None or header[1] >= side.newest
            if level or time.monotonic() > until:
                return events + [last]
            connection.send(ping[0].frame(side))

    def _even_out(self):
        level = min(side.common(side.newest) for side in self.sides)
        for side in self.sides:
            side.skip_to(level)

    # ---- connections

    def open(self, slot, bodies, read_only_byte=True, follow=()):
        """Connects with one ConnectRequest per side and compares the answers. Returns A's fields, or None on a close.

        follow: requests that are sent at once, without waiting for the ConnectResponse."""
        connections, items = [], []
        for index, side in enumerate(self.sides):
            connection = self._dial(side, slot)
            connection.send(protocol.frame(bodies[index]) + b"".join(r.frame(side) for r in follow))
            connections.append(connection)
            items.append(self._first_answer(side, connection))
        what = "connect timeout/id/password as in %s" % bodies[0].hex()
        slot.history.append((self.sent, what))
        self.check(
            [side.connected(i) for side, i in zip(self.sides, items)][:1],
            [self.sides[1].connected(items[1])],
            slot,
            [what],
        )
        first = dict(items[0])
        if first["kind"] != "connected" or not first.get("sessionId"):
            self._expect_close(slot, connections, what, answered=first["kind"] == "connected")
            return None
        if not dict(items[1]).get("sessionId"):
            for connection in connections:
                connection.close()
            return None
        slot.detach()
        slot.connections = connections
        slot.ids = [dict(i)["sessionId"] for i in items]
        return first

    def _dial(self, side, slot):
        try:
            return Connection(side.server.port_of(slot.index), slot.source)
        except OSError as problem:
            raise Different(
                "SERVER GONE  seed %d, request %d: %s no longer takes connections (%s)\n  its last words:\n%s\n"
                "  last requests of client %d:\n%s"
                % (
                    self.seed,
                    self.sent,
                    side.name,
                    problem,
                    side.server.last_words(),
                    slot.index,
                    "\n".join("    #%d %s" % line for line in slot.history),
                )
            ) from None

    def _first_answer(self, side, connection):
        try:
            data = connection.frame()
        except Silent:
            return SILENT
        return CLOSED if data is None else protocol.decode_connect(data)

    def _expect_close(self, slot, connections, what, answered):
        ends = [self._collect(connection, [], True) for connection in connections]
        if answered:
            self.check([self._ended(e) for e in ends[:1]], [self._ended(e) for e in ends[1:]], slot, [what])
        for connection in connections:
            connection.close()

    def _ended(self, frames):
        return CLOSED if frames == [(None, None)] else (("kind", "more"), ("frames", repr(frames)))

    def new_session(self, slot, timeout=LONG_TIMEOUT, follow=(), **options):
        """Opens a session on both servers. The ids must name the same server."""
        body = protocol.connect(timeout, **options)
        answer = self.open(slot, (body, body), follow=follow)
        if answer is None:
            return None
        slot.number = self.sessions_made
        self.sessions_made += 1
        makers = [side.meet(session, slot.number) for side, session in zip(self.sides, slot.ids)]
        self.check(
            [(("kind", "session"), ("madeBy", makers[0]))],
            [(("kind", "session"), ("madeBy", makers[1]))],
            slot,
            ["new session"],
        )
        self.coverage.situation("new session")
        self._after_connect(slot, follow)
        return answer

    def reattach(self, slot, timeout=LONG_TIMEOUT, last_zxid=0, follow=(), **options):
        """Resumes the slot's session on a new connection, with the right password.

        last_zxid: a common zxid, or a function of a Side."""
        old = slot.connections if slot.attached else None
        bodies = [
            protocol.connect(
                timeout,
                session_id=session,
                password=protocol.password_of(session),
                last_zxid=last_zxid(side) if callable(last_zxid) else side.own(last_zxid),
                **options,
            )
            for side, session in zip(self.sides, slot.ids)
        ]
        number, ids = slot.number, list(slot.ids)
        slot.connections = [None, None]
        answer = self.open(slot, bodies, follow=follow)
        slot.number = number
        if old is not None:
            self.old_connection_ends(slot, old, answer is not None)
        if answer is None:
            slot.ids = ids
            return None
        slot.forget_connection()
        self.check(
            [(("kind", "session"), ("sameId", slot.ids[0] == ids[0]))],
            [(("kind", "session"), ("sameId", slot.ids[1] == ids[1]))],
            slot,
            ["re-attach"],
        )
        self._after_connect(slot, follow)
        return answer

    def old_connection_ends(self, slot, old, kicked):
        """A takeover closes the session's former connection; a refused takeover does not."""
        if kicked:
            self._expect_close(slot, old, "the session was taken over by another connection", answered=True)
        else:
            slot.connections = old

    def _after_connect(self, slot, follow):
        """Creating a session takes a zxid that only a later reply shows."""
        if follow:
            received = [self._collect(connection, list(follow), False) for connection in slot.connections]
            items = [self._decode(side, frames, follow) for side, frames in zip(self.sides, received)]
            self.check(items[0], items[1], slot, list(follow))
            for request, reply in self._replies(items[0], list(follow)):
                self.coverage.reply(request, reply)
        self.burst(slot, [Request("ping", b"", xid=protocol.PING_XID)], counted=False)

    def lost(self, slot):
        """Both servers have refused a session that should be alive: after an earlier difference, or after a pause of
        this machine that was longer than the shortest session timeout."""
        if not self.keep_going:
            raise Different(
                "SESSION LOST  seed %d, request %d: both servers refuse to resume session %s; did it expire?"
                % (self.seed, self.sent, slot.number)
            )
        slot.end_session()

    # ---- comparing

    def check(self, a, b, slot, requests):
        difference = first_difference(a, b)
        if difference is None:
            for item in a:
                if item == SILENT:
                    raise Different(self._report(a, b, (0, "kind", "silent", "silent"), slot, requests))
            return
        if not self.keep_going:
            raise Different(self._report(a, b, difference, slot, requests))
        self._note(a, b, difference, slot, requests)

    def _note(self, a, b, difference, slot, requests):
        index, field, one, two = difference
        request = self._request_of(a, index, requests)
        item = a[index] if index < len(a) else b[index]
        what = "event" if item[0] == ("kind", "event") else getattr(request, "name", str(request)[:20])
        if field.endswith("zxid") and isinstance(one, int) and isinstance(two, int):
            distance = two - one
            one, two = "a zxid", "-1" if two == -1 else "%+d" % distance
        signature = "%-20s %-28s A: %-34s B: %s" % (what, field, _brief(one), _brief(two))
        self.found[signature] += 1
        if signature not in self.examples:
            self.examples[signature] = self._report(a, b, difference, slot, requests)

    def _request_of(self, items, index, requests):
        """The request whose reply stands at or after this place."""
        waiting = [r for r in requests if not getattr(r, "silent", False)]
        replies = sum(1 for item in items[:index] if item[0] == ("kind", "reply"))
        return waiting[min(replies, len(waiting) - 1)] if waiting else requests[-1]

    def _report(self, a, b, difference, slot, requests):
        index, field, one, two = difference
        request = self._request_of(a, index, requests)
        lines = [
            "DIFFERENCE  seed %d, request %d, client %d (session %s)" % (self.seed, self.sent, slot.index, slot.number),
            "  request   %s" % request,
            "  field     %s" % field,
            "  A         %s" % _brief(one, 600),
            "  B         %s" % _brief(two, 600),
            "  this client's answers, in common terms (> marks the first that differs):",
        ]
        for at in range(max(len(a), len(b))):
            mark = ">" if at == index else " "
            lines.append("  %s A %s" % (mark, show(a[at] if at < len(a) else None)))
            if at == index or at >= len(b) or at >= len(a) or a[at] != b[at]:
                lines.append("  %s B %s" % (mark, show(b[at] if at < len(b) else None)))
        lines.append("  last requests of this client, the newest last:")
        lines += ["    #%d %s" % line for line in slot.history]
        return "\n".join(lines)


def _brief(value, limit=60):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[:limit] + "..."
