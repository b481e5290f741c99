"""Bytes that a well-behaved client does not send."""

import struct

from differential import material
from differential.request import Request
from harness import protocol

BIG = (1 << 31) - 1


class Malformed:
    def __init__(self, generator):
        self.g = generator
        self.rng = generator.rng

    def body(self, slot):
        """A good request cut short, lengthened, or with a length field that cannot be."""
        g = self.g
        makers = (
            g.create,
            g.create2,
            g.create_container,
            g.create_ttl,
            g.delete,
            g.set_data,
            g.set_acl,
            g.exists,
            g.get_data,
            g.get_children,
            g.get_children2,
            g.get_acl,
            g.sync,
            g.count_all,
            g.get_ephemerals,
            g.add_watch,
            g.check_watches,
            g.remove_watches,
            g.reconfig,
        )
        good = self.rng.choice(makers)(slot)
        if callable(good.body) or not good.body:
            return good
        body, what = self._spoil(good.body)
        fields = dict(good.fields, spoiled=what, body=body, tags=("malformed body: %s" % what,))
        return Request(good.name, body, fields)

    def _spoil(self, body):
        roll = self.rng.random()
        if roll < 0.6:
            return body[: self.rng.randrange(0, len(body))], "cut"
        if roll < 0.75:
            return body + self.rng.randbytes(self.rng.randrange(1, 9)), "bytes after the record"
        length = self.rng.choice((-2, -(1 << 31), BIG, len(body) * 2 + 9, 3000000))
        return struct.pack(">i", length) + body[4:], "path length"

    def null_string(self, slot):
        """Null where a path, a scheme or an id belongs. Java runs into a null pointer, which is -5 for most."""
        rng = self.rng
        path = self.g.existing()
        null_id = (protocol.Acl(31, rng.choice(("world", "digest", "ip", "auth")), None),)
        name, body = rng.choice(
            (
                ("create", protocol.create(None, b"", material.OPEN, 0)),
                ("create2", protocol.create(None, b"", material.OPEN, 2)),
                ("delete", protocol.path_version(None, -1)),
                ("setData", protocol.set_body(None, b"", -1)),
                ("setACL", protocol.set_acl(None, material.OPEN, -1)),
                ("setACL", protocol.set_acl(path, null_id, -1)),
                ("create", protocol.create(path + "/null-id", b"", null_id, 0)),
                ("exists", protocol.path_watch(None, False)),
                ("getData", protocol.path_watch(None, False)),
                ("getChildren", protocol.path_watch(None, False)),
                ("getChildren2", protocol.path_watch(None, False)),
                ("getACL", protocol.ustring(None)),
                ("getAllChildrenNumber", protocol.ustring(None)),
                ("sync", protocol.ustring(None)),
                ("multi", protocol.multi_body([(2, protocol.path_version(None, -1))])),
                (
                    "multiRead",
                    protocol.multi_body([(4, protocol.path_watch(path, False)), (4, protocol.path_watch(None, False))]),
                ),
            )
        )
        # A multi that breaks off in Java's preparation leaves its changes pending for a moment.
        fields = {"path": path, "flags": 0, "acl_open": False, "null": True, "tags": ("null string in %s" % name,)}
        return Request(name, body, fields, alone=name == "multi")

    def frame(self, slot):
        """What closes the connection, most of it without a reply."""
        rng = self.rng
        header = struct.pack(">ii", 5, 4)
        name, raw = rng.choice(
            (
                ("empty frame", struct.pack(">i", 0)),
                ("frame of 3 bytes", struct.pack(">i", 3) + b"abc"),
                ("header cut", struct.pack(">i", 7) + header[:7]),
                ("negative length", struct.pack(">i", -1)),
                ("negative length", struct.pack(">i", -(1 << 31)) + b"x"),
                ("one byte too long", struct.pack(">i", 1048576) + header),
                ("far too long", struct.pack(">i", BIG) + header),
                ("auth cut", protocol.frame(struct.pack(">ii", -4, 100) + b"\0\0\0")),
                ("auth without data", protocol.frame(struct.pack(">ii", -4, 100) + b"\0\0\0\0\0\0\0\x06digest")),
                ("four letter word after connect", b"ruok"),
            )
        )
        return Request("ping", b"", {"frame": name, "tags": ()}, raw=raw, alone=True, ends=True, silent=True)
