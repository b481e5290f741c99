"""The values that differ between the two servers: zxids, session ids and clocks, and their translation to common
terms."""

import re
import time
from bisect import bisect_right
from itertools import groupby

from harness import jute
from harness.jute import Stat
from harness.protocol import password_of


def as_java_reads(text):
    """A character beyond U+FFFF is two surrogates where Java wrote it, and two U+FFFD once it has read that, as it
    reads each operation of a multi."""
    pairs = re.compile(b"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
    return jute.text(pairs.sub("\ufffd\ufffd".encode(), jute.raw(text)))


def in_auth_order(acl):
    """Scheme "auth" becomes one entry per id of the connection, and those come in no specified order."""
    if acl is None:
        return None
    acl = [entry._replace(id=as_java_reads(entry.id)) for entry in acl]
    groups = groupby(acl, key=lambda entry: (entry.perms, entry.scheme))
    return tuple(entry for _, group in groups for entry in sorted(group, key=repr))


class Side:
    def __init__(self, name, server):
        self.name = name
        self.server = server
        self.newest = 0  # highest zxid seen in a reply
        self.epoch = None  # of an ensemble, above the counter in each zxid
        self.left_out = []  # zxids taken by malformed writes (see README, "zxids")
        self.sessions = {}  # session id -> number of the session in this run
        self.time_of = {}  # zxid -> time of its transaction
        self.began = time.time()

    # ---- zxids

    def common(self, zxid):
        """This server's zxid in the numbering that leaves out the epoch, and the zxids of malformed writes."""
        return zxid - (self.epoch or 0) - bisect_right(self.left_out, zxid) if zxid > 0 else zxid

    def own(self, common):
        """The way back: the zxid of the transaction (never of a malformed write) with this common number."""
        if common <= 0:
            return common
        zxid = common + (self.epoch or 0)
        for taken in self.left_out:
            if taken <= zxid:
                zxid += 1
        return zxid

    def learn(self, zxid, malformed_write):
        if self.epoch is None and zxid > 0:
            self.epoch = zxid >> 32 << 32
        if malformed_write and zxid == self.newest + 1:
            self.left_out.append(zxid)
        self.newest = max(self.newest, zxid)

    def skip_to(self, common):
        """Catches up with the other server after a difference in the number of transactions."""
        while self.common(self.newest) > common:
            self.left_out.append(self.own(self.common(self.newest)))
            self.left_out.sort()

    # ---- sessions

    def meet(self, session_id, number):
        """Registers a new session; the server that its id names. The rest is chance here, and counted in Java."""
        self.sessions[session_id] = number
        return session_id >> 56

    def owner(self, session_id):
        return 0 if session_id == 0 else "session %s" % self.sessions.get(session_id, "unknown 0x%x" % session_id)

    # ---- records

    def stat(self, stat):
        common = self.common
        return Stat(
            common(stat.czxid),
            common(stat.mzxid),
            self._clock(stat.czxid, stat.ctime),
            self._clock(stat.mzxid, stat.mtime),
            stat.version,
            stat.cversion,
            stat.aversion,
            self.owner(stat.ephemeralOwner),
            stat.dataLength,
            stat.numChildren,
            common(stat.pzxid),
        )

    def _clock(self, zxid, millis):
        """A transaction has one time, near the wall clock; nodes that no transaction made have time 0."""
        if zxid == 0 or millis == 0:
            return "none" if millis == 0 else "time without a transaction"
        known = self.time_of.setdefault(zxid, millis)
        if known != millis:
            return "two times for zxid %d" % zxid
        return "set" if self.began - 5 <= millis / 1000 <= time.time() + 5 else "far from the wall clock"

    def fields(self, pairs):
        """The pairs with every zxid, session id and time in common terms."""
        return tuple((name, self._value(name, value)) for name, value in pairs)

    def _value(self, name, value):
        if name == "zxid":
            return self.common(value)
        if name == "data":
            return self.server.with_own_names(value)
        if name == "stat":
            return self.stat(value)
        if name == "acl":
            return in_auth_order(value)
        if name == "results":
            return tuple(self.fields(result) for result in value)
        return value

    def connected(self, pairs):
        """A ConnectResponse; the password is replaced by whether it is the one that belongs to the session id."""
        values = dict(pairs)
        session_id = values.get("sessionId")
        if not session_id:
            return pairs
        values["password"] = "derived from the id" if values["password"] == password_of(session_id) else "another"
        values["sessionId"] = "an id"
        return tuple(values.items())
