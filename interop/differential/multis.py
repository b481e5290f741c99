"""multi and multiRead."""

from differential import material
from differential.quota_area import in_area
from differential.request import Request
from harness import protocol
from harness.protocol import OPS, multi_header


class Multis:
    def __init__(self, generator):
        self.g = generator
        self.rng = generator.rng

    def write(self, slot):
        roll = self.rng.random()
        if roll < 0.06:
            return self._broken()
        if roll < 0.12:
            return self._chain()
        ops = [self._write_op() for _ in range(self._size())]
        return self._request(ops)

    def _size(self):
        return self.rng.choices((0, 1, 2, 3, 4, 6, 9), (3, 14, 26, 24, 18, 10, 5))[0]

    def _request(self, ops, tags=()):
        fields = {"ops": tuple((name, f) for name, f, _ in ops), "tags": tags}
        body = protocol.multi_body([(OPS[name], b) for name, _, b in ops])
        alone = any(in_area(f.get("path")) for _, f, _ in ops)
        return Request("multi", body, fields, alone=alone)

    def _write_op(self):
        # Mostly things that work, so that long multis succeed often enough.
        roll = self.rng.random()
        if roll < 0.4:
            return self._create()
        if roll < 0.58:
            path = self.g.leaf() if self.rng.random() < 0.93 else self.g.target()
            return self._delete(path, self._version(path))
        if roll < 0.8:
            path = self.g.data_target()
            return self._set(path, material.data(self.rng), self._version(path))
        path = self.g.existing() if self.rng.random() < 0.95 else self.g.target()
        return self._check(path, self._version(path))

    def _version(self, path):
        return -1 if self.rng.random() < 0.6 else self.g.version(path)

    def _create(self, path=None, flags=None):
        name = self.rng.choices(("create", "create2", "createContainer", "createTTL"), (50, 25, 10, 15))[0]
        if flags is None:
            flags = self._flags(name)
        elif flags in (5, 6):
            name = "createTTL"
        elif name in ("createContainer", "createTTL"):
            name = "create2"
        fields = self.g.create_fields(flags)
        if self.rng.random() < 0.6:
            fields.update(acl=material.OPEN, acl_open=True)
        if fields["acl"] is None:
            fields["acl"] = ()  # a null list is sent by `_broken`
        if path is not None:
            fields["path"] = path
        if name == "createTTL":
            return self._create_ttl(fields)
        body = protocol.create(fields["path"], fields["data"], fields["acl"], fields["flags"])
        return name, fields, body

    def _flags(self, name):
        if name == "createContainer":
            return 4
        if name == "createTTL":
            # A non-TTL flag makes it a plain create inside a multi.
            return self.rng.choice((5, 5, 6, 6, 0, 1, 2))
        return self.rng.choices((0, 1, 2, 3, 4), (45, 20, 18, 12, 5))[0]

    def _create_ttl(self, fields):
        ttls = (3600000, 86400000, 1099511627775) if self.rng.random() < 0.9 else (0, -1, 1099511627776)
        fields["ttl"] = self.rng.choice(ttls)
        return (
            "createTTL",
            fields,
            protocol.create_ttl(fields["path"], fields["data"], fields["acl"], fields["flags"], fields["ttl"]),
        )

    def _delete(self, path, version):
        return "delete", {"path": path, "version": version}, protocol.path_version(path, version)

    def _set(self, path, data, version):
        return "setData", {"path": path, "data": data, "version": version}, protocol.set_body(path, data, version)

    def _check(self, path, version):
        return "check", {"path": path, "version": version}, protocol.path_version(path, version)

    def _chain(self):
        """Operations that depend on earlier operations of the same multi."""
        rng = self.rng
        base = "%s/%s" % ("" if rng.random() < 0.5 else self.g.existing().rstrip("/"), rng.choice(material.NAMES))
        child = base + "/" + rng.choice(material.NAMES)
        flags = rng.choice((0, 0, 0, 1, 4))
        shapes = (
            [self._create(base, flags), self._set(base, b"x", 0), self._set(base, None, 1), self._check(base, 2)],
            [self._create(base, flags), self._create(child, 0), self._delete(child, 0), self._delete(base, -1)],
            [self._create(base, 0), self._create(child, 1), self._delete(base, -1)],
            [
                self._create(base, 0),
                self._create(base + "/s", 2),
                self._create(base + "/s", 3),
                self._create(base + "/", 2),
                self._check(base, 0),
            ],
            [self._delete(base, -1), self._create(base, 0), self._check(base, 0)],
            [self._create(base, 1), self._create(child, 0)],
            [self._create(base, 0), self._delete(base, -1), self._create(base, 2), self._create(base, 0)],
            [self._set(base, b"1", -1), self._set(base, b"2", -1), self._check(base, -1)],
            [self._check("/", -1), self._set("/", b"root", -1), self._check("/", self.g.version("/"))],
            [self._create(base, 5), self._delete(base, 0)],
        )
        return self._request(rng.choice(shapes), ("multi with ops that depend on each other",))

    def _broken(self):
        """Whole requests that are refused with one code, and no results."""
        rng = self.rng
        good = self._create("/multi-broken", 0)
        path = self.g.existing()
        cut = protocol.multi_body([(1, good[2]), (2, protocol.path_version(path, -1))])
        bad_flag = protocol.create(path + "/f", b"", material.OPEN, rng.choice((7, -1, 100)))
        ttl_flag = protocol.create(path + "/f", b"", material.OPEN, rng.choice((5, 6)))
        read = protocol.path_watch(path, False)
        shapes = [
            ("no terminator", multi_header(1, False, -1) + good[2]),
            ("cut", cut[: rng.randrange(0, len(cut) - 9)]),
            ("bad flag", protocol.multi_body([(1, good[2]), (rng.choice((1, 15)), bad_flag)])),
            ("TTL flag on a plain create", protocol.multi_body([(rng.choice((1, 15, 19)), ttl_flag)])),
            ("writes and reads mixed", protocol.multi_body([(1, good[2]), (4, read)])),
            ("reads only", protocol.multi_body([(rng.choice((4, 8)), read)])),
            ("unknown op", protocol.multi_body([(rng.choice((3, 7, 9, 14, 0, -1, 20)), read)])),
            ("done in the first header", multi_header(rng.choice((1, 5, -1)), True, 7) + b"left over"),
            ("done is 2", b"\xff\xff\xff\xff\x02\0\0\0\0"),
            ("bytes after the terminator", protocol.multi_body([(13, protocol.path_version("/", -1))]) + b"more"),
            ("empty", b""),
        ]
        if "nulls" not in self.g.skip:
            shapes.append(("null ACL", protocol.multi_body([(1, protocol.create("/n", b"", None, 0))])))
        shape, body = rng.choice(shapes)
        return Request("multi", body, {"shape": shape, "tags": ("multi: " + shape,)}, alone=True)

    def read(self, slot):
        roll = self.rng.random()
        if roll < 0.08:
            return self._broken_read()
        ops, shown = [], []
        for _ in range(self._size()):
            path = self.g.target()
            op = self.rng.choice((4, 8))
            ops.append((op, protocol.path_watch(path, self.rng.random() < 0.3)))
            shown.append((protocol.name_of(op), path))
        return Request("multiRead", protocol.multi_body(ops), {"reads": tuple(shown)})

    def _broken_read(self):
        path = self.g.existing()
        read = protocol.path_watch(path, False)
        write = protocol.set_body(path, b"never", -1)
        shape, body = self.rng.choice(
            (
                ("writes only", protocol.multi_body([(5, write)])),
                ("mixed", protocol.multi_body([(4, read), (5, write)])),
                ("no terminator", multi_header(4, False, -1) + read),
                ("exists", protocol.multi_body([(3, read)])),
                ("empty", b""),
                ("check", protocol.multi_body([(13, protocol.path_version(path, -1))])),
            )
        )
        return Request("multiRead", body, {"shape": shape, "tags": ("multiRead: " + shape,)})
