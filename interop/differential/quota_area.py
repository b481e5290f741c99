"""Nodes with quotas. Java checks a quota while it prepares a write, against usage that is only counted when earlier
writes are applied, so these requests are never sent in one burst with others."""

from differential import material
from differential.request import Request
from harness import protocol

ROOTS = ("/q0", "/q1", "/q2", "/q0/s", "/q1/s")
PREFIX = "/zookeeper/quota"


def in_area(path):
    if isinstance(path, bytes):
        return False
    return bool(path) and (path.startswith(("/q0", "/q1", "/q2", PREFIX)))


def is_admin_node(path):
    return isinstance(path, str) and path.endswith(("/zookeeper_limits", "/zookeeper_stats"))


class QuotaArea:
    def __init__(self, generator):
        self.g = generator
        self.rng = generator.rng

    def request(self, slot):
        root = self.rng.choice(ROOTS)
        if root not in self.g.tree:
            return self._create(root, 0)
        if self._missing_admin_node(root) and self.rng.random() < 0.5:
            return self._setup(root)
        return self.rng.choices(
            (self._write_inside, self._setup, self._change_limits, self._remove, self._look, self._multi),
            (50, 6, 12, 5, 20, 12),
        )[0](root)

    def _missing_admin_node(self, root):
        return not all(PREFIX + root + leaf in self.g.tree for leaf in ("/zookeeper_limits", "/zookeeper_stats"))

    def _setup(self, root):
        """The admin nodes in their order, seldom out of it."""
        tree = self.g.tree
        at = PREFIX
        for part in root.strip("/").split("/"):
            at += "/" + part
            if at not in tree:
                return self._create(at, 0, data=None)
        leaves = ["/zookeeper_limits", "/zookeeper_stats"]
        if self.rng.random() < 0.3:
            leaves.reverse()
        for leaf in leaves:
            if at + leaf not in tree:
                data = self._limits() if leaf == "/zookeeper_limits" else self._stats()
                return self._create(at + leaf, 0, data=data)
        return self._look(root)

    def _stats(self):
        return self.rng.choice(
            (
                b"count=0,bytes=0",
                b"",
                b"count=3,bytes=100",
                b"count=-1,bytes=-1",
                b"count=1,bytes=2=;byteHardLimit=5",
                b"bytes=7,count=1",
            )
        )

    def _limits(self):
        rng = self.rng
        count, size = rng.choice((-1, 1, 2, 4, 8)), rng.choice((-1, 5, 20, 60, 200))
        text = "count=%d,bytes=%d" % (count, size)
        hard = []
        if rng.random() < 0.5:
            hard.append("byteHardLimit=%d" % rng.choice((-1, 0, 10, 60, 150)))
        if rng.random() < 0.5:
            hard.append("countHardLimit=%d" % rng.choice((-1, 0, 2, 4, 7)))
        if rng.random() < 0.1:
            text = rng.choice(
                (
                    "",
                    "count=3",
                    "bytes=9",
                    "countHardLimit=3",
                    "byteHardLimit=40,countHardLimit=6",
                    "other=5,count=2,countHardLimit=3",
                    "count=1,,bytes=4;;countHardLimit=2",
                )
            )
        return (text + ("=;" + ";".join(hard) if hard and text else "")).encode()

    def _inside(self, root):
        below = [p for p in self.g.tree.order if p.startswith(root)]
        return self.rng.choice(below) if below else root

    def _write_inside(self, root):
        rng = self.rng
        path = self._inside(root)
        roll = rng.random()
        if roll < 0.5:
            return self._create(path + "/" + rng.choice(material.NAMES[:6]), rng.choice((0, 0, 1, 2, 3)))
        if roll < 0.75:
            data = rng.choice((None, b"", bytes(rng.randrange(1, 30)), bytes(rng.randrange(1, 90))))
            version = rng.choice((-1, -1, -1, 9))
            return Request(
                "setData",
                protocol.set_body(path, data, version),
                {"path": path, "data": data, "version": version, "tags": ("setData under a quota",)},
                alone=True,
            )
        return Request("delete", protocol.path_version(path, -1), {"path": path, "version": -1}, alone=True)

    def _create(self, path, flags, data=b"12345"):
        name = self.rng.choice(("create", "create2"))
        if path.count("/") > 6 and not path.startswith(PREFIX):
            path = path[: path.rfind("/")]
        fields = {
            "path": path,
            "data": data,
            "acl": material.OPEN,
            "flags": flags,
            "acl_open": True,
            "tags": () if path.startswith(PREFIX) else ("create under a quota",),
        }
        return Request(name, protocol.create(path, data, material.OPEN, flags), fields, alone=True)

    def _change_limits(self, root):
        path = PREFIX + root + "/zookeeper_limits"
        if self.rng.random() < 0.08:
            path = PREFIX + root + "/zookeeper_stats"
            data = self._stats()
        else:
            data = self._limits()
        return Request(
            "setData", protocol.set_body(path, data, -1), {"path": path, "data": data, "version": -1}, alone=True
        )

    def _remove(self, root):
        path = PREFIX + root + self.rng.choice(("/zookeeper_limits", "/zookeeper_stats", ""))
        return Request("delete", protocol.path_version(path, -1), {"path": path, "version": -1}, alone=True)

    def _look(self, root):
        path = PREFIX + root + self.rng.choice(("/zookeeper_stats", "/zookeeper_stats", "/zookeeper_limits", ""))
        return Request(
            "getData",
            protocol.path_watch(path, self.rng.random() < 0.3),
            {"path": path, "tags": ("read of a quota node",)},
        )

    def _multi(self, root):
        """Several writes in one transaction: the usage is that from before it for all of them."""
        ops, shown = [], []
        for _ in range(self.rng.choice((1, 2, 3, 5))):
            path = self._inside(root)
            if self.rng.random() < 0.6:
                path += "/" + self.rng.choice(material.NAMES[:6])
                fields = {"path": path, "data": b"123", "acl": material.OPEN, "flags": 2, "acl_open": True}
                ops.append((1, protocol.create(path, b"123", material.OPEN, 2)))
                shown.append(("create", fields))
            else:
                data = bytes(self.rng.randrange(1, 60))
                ops.append((5, protocol.set_body(path, data, -1)))
                shown.append(("setData", {"path": path, "data": data, "version": -1}))
        return Request(
            "multi", protocol.multi_body(ops), {"ops": tuple(shown), "tags": ("multi under a quota",)}, alone=True
        )
