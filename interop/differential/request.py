"""One request of the stream."""

from harness import protocol
from harness.jute import int32


class Request:
    """`body` may be a function of a Side, for requests that carry a server's own zxids.

    ends: the server is expected to close the connection after it. alone: must not share a burst, because Java's answer
    would depend on how far its pipeline is. first: may only open a burst (it is answered ahead of the pipeline).
    """

    __slots__ = ("op", "name", "body", "fields", "xid", "raw", "ends", "alone", "first", "silent")

    def __init__(self, op, body, fields=None, xid=0, raw=None, ends=False, alone=False, first=False, silent=False):
        self.op = protocol.OPS[op] if isinstance(op, str) else op
        self.name = protocol.name_of(self.op)
        self.body = body
        self.fields = fields or {}
        self.xid = xid
        self.raw = raw  # the whole bytes to send, in place of a frame
        self.ends = ends
        self.alone = alone
        self.first = first
        self.silent = silent  # no reply is expected, only the close

    def frame(self, side):
        if self.raw is not None:
            return self.raw
        body = self.body(side) if callable(self.body) else self.body
        return protocol.frame(int32(self.xid) + int32(self.op) + body)

    @property
    def expected_xid(self):
        return protocol.PING_XID if self.name == "ping" else self.xid

    def __str__(self):
        shown = " ".join("%s=%s" % (k, _short(v)) for k, v in self.fields.items() if k != "acl_open")
        return "%s xid=%d %s%s" % (self.name, self.xid, shown, " [raw %s]" % _short(self.raw) if self.raw else "")


def _short(value, limit=400):
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "... (%d characters)" % len(text)
