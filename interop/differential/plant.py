"""Falsifies an answer of server B, to prove that the test can fail."""

import struct

from harness import protocol

KINDS = (
    "err",
    "zxid",
    "xid",
    "byte",
    "extra-byte",
    "version",
    "lost-event",
    "late-event",
    "event-zxid",
    "lost-child",
    "close",
    "tree",
)


class Plant:
    def __init__(self, kind, after):
        self.kind = kind
        self.after = after
        self.done = None

    def alter(self, sent, frames, requests):
        if self.done or sent < self.after or self.kind == "tree":
            return frames
        changed = getattr(self, "_" + self.kind.replace("-", "_"))(list(frames), requests)
        if changed is not None and changed != frames:
            self.done = sent
            return changed
        return frames

    def _first(self, frames, accept):
        for at, (data, request) in enumerate(frames):
            if isinstance(data, bytes) and accept(data, request):
                return at
        return None

    def _change(self, frames, accept, edit):
        at = self._first(frames, accept)
        if at is None:
            return None
        frames[at] = (edit(frames[at][0]), frames[at][1])
        return frames

    def _err(self, frames, _):
        return self._change(
            frames,
            lambda d, r: r and d[12:16] == b"\xff\xff\xff\x9b",
            lambda d: d[:12] + struct.pack(">i", -102) + d[16:],
        )

    def _zxid(self, frames, _):
        return self._change(
            frames,
            lambda d, r: r and r.name == "getData",
            lambda d: d[:4] + struct.pack(">q", struct.unpack(">q", d[4:12])[0] - 1) + d[12:],
        )

    def _xid(self, frames, _):
        return self._change(frames, lambda d, r: r and r.name == "create", lambda d: struct.pack(">i", 12345) + d[4:])

    def _byte(self, frames, _):
        return self._change(
            frames,
            lambda d, r: r and r.name == "getData" and len(d) > 90 and d[16:20] != b"\xff" * 4,
            lambda d: d[:20] + bytes([d[20] ^ 1]) + d[21:],
        )

    def _extra_byte(self, frames, _):
        return self._change(frames, lambda d, r: r and r.name == "delete" and len(d) == 16, lambda d: d + b"\0")

    def _version(self, frames, _):
        return self._change(
            frames,
            lambda d, r: r and r.name == "exists" and len(d) == 84,
            lambda d: d[:48] + struct.pack(">i", struct.unpack(">i", d[48:52])[0] + 1) + d[52:],
        )

    def _lost_event(self, frames, _):
        at = self._first(frames, lambda d, r: r is None)
        return None if at is None else frames[:at] + frames[at + 1 :]

    def _late_event(self, frames, _):
        at = self._first(frames, lambda d, r: r is None)
        if at is None or at + 1 >= len(frames) or frames[at + 1][1] is None:
            return None
        frames[at], frames[at + 1] = frames[at + 1], frames[at]
        return frames

    def _event_zxid(self, frames, _):
        return self._change(frames, lambda d, r: r is None, lambda d: d[:4] + b"\xff" * 8 + d[12:])

    def _lost_child(self, frames, _):
        def edit(d):
            count, length = struct.unpack(">ii", d[16:24])
            return d[:16] + struct.pack(">i", count - 1) + d[24 + length :]

        return self._change(
            frames,
            lambda d, r: r and r.name == "getChildren" and len(d) > 20 and struct.unpack(">i", d[16:20])[0] > 0,
            edit,
        )

    def _close(self, frames, requests):
        return frames[:-1] + [(None, None)] if requests[-1].name != "ping" and not requests[-1].ends else None

    def spoil_tree(self, tree):
        """For the kind `tree`: one node's data in B's dump."""
        if self.kind == "tree" and not self.done:
            path = max(tree, key=len)
            tree[path] = (("data", b"planted"),) + tree[path][1:]
            self.done = path


assert all(kind == "tree" or hasattr(Plant, "_" + kind.replace("-", "_")) for kind in KINDS)
assert protocol.OPS["ping"] == 11
