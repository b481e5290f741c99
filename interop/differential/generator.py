"""Chooses the next step. Everything comes from the seed and from what server A has answered so far."""

import random
from collections import deque

from differential import material
from differential.malformed import Malformed
from differential.model import parent_of
from differential.multis import Multis
from differential.quota_area import QuotaArea, in_area, is_admin_node
from differential.request import Request
from harness import protocol

TREE_SIZE = 220
TTLS = (3600000, 86400000, 1 << 36, 1099511627775)
BAD_TTLS = (0, -1, -2, -3600000, 1099511627776, 1 << 62, -(1 << 63))


class Generator:
    def __init__(self, seed, tree, slots, skip=()):
        self.rng = random.Random(seed)
        self.tree = tree
        self.slots = slots
        self.skip = skip
        self.recent = deque(maxlen=24)  # paths of this and of earlier bursts, alive or not
        self.newest = lambda: 0  # newest common zxid; set by the runner
        self.postponed = deque()  # (slot, request) that must have a burst of its own, or open one
        self.root_lock = None
        multis, malformed, quota = Multis(self), Malformed(self), QuotaArea(self)
        self.mix = [
            (13, self.create),
            (7, self.create2),
            (2.5, self.create_container),
            (3.5, self.create_ttl),
            (12, self.delete),
            (8, self.exists),
            (8, self.get_data),
            (10, self.set_data),
            (5, self.get_children),
            (5, self.get_children2),
            (2, self.count_all),
            (2.5, self.get_ephemerals),
            (4, self.get_acl),
            (4.5, self.set_acl),
            (2, self.sync),
            (9, multis.write),
            (3, multis.read),
            (3, self.set_watches),
            (3, self.set_watches2),
            (5, self.add_watch),
            (4, self.check_watches),
            (4, self.remove_watches),
            (1.5, self.who_am_i),
            (1.5, self.ping),
            (0.4, self.reconfig),
            (1.2, self.auth),
            (0.5, self.repair),
            (0.02, self.big),
            (0.25, self.close_session),
            (0.3, self.lone_check),
            (0.3, self.unknown_opcode),
        ]
        if "malformed" not in skip:
            self.mix += [(3, malformed.body), (0.3, malformed.frame)]
        if "nulls" not in skip:
            self.mix.append((0.6, malformed.null_string))
        if "quota" not in skip:
            self.mix.append((7, quota.request))
        self.weights = [weight for weight, _ in self.mix]
        self.makers = [maker for _, maker in self.mix]

    # ---- steps

    def burst(self, slot):
        """Chooses 1 to 8 requests for one session."""
        if self.postponed:
            slot, request = self.postponed.popleft()
            return slot, [request]
        size = min(8, 1 + int(self.rng.expovariate(0.28)))
        requests = []
        while len(requests) < size:
            request = self.one(slot)
            if request.alone or request.first and requests:
                self.postponed.append((slot, request))
                size -= 1
                continue
            requests.append(request)
            if request.ends or request.name == "setACL":
                # Java checks later requests of a burst against the old list until the new one is applied.
                break
        return self.burst(slot) if not requests else (slot, requests)

    def one(self, slot):
        request = self.rng.choices(self.makers, self.weights)[0](slot)
        path = request.fields.get("path")
        if request.op in protocol.WRITES and in_area(path):
            request.alone = True
        return request

    # ---- paths

    def existing(self):
        if self.recent and self.rng.random() < 0.3:
            return self.rng.choice(self.recent)
        if not self.tree.order or self.rng.random() < 0.04:
            return self.rng.choice(("/", "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", ""))
        return self.rng.choice(self.tree.order)

    def leaf(self):
        for _ in range(6):
            path = self.existing()
            node = self.tree.nodes.get(path)
            if node is not None and node.children == 0:
                return path
        return self.existing()

    def fresh(self):
        """A path for a new node below an existing one; often the name is taken already."""
        parent = self.existing()
        for _ in range(4):
            if parent.count("/") < 5 and not parent.startswith("/zookeeper"):
                break
            parent = self.existing()
        if self.rng.random() < 0.25 or parent.count("/") >= 5:
            parent = "/"
        base = parent if parent != "/" else ""
        path = base + "/" + self.rng.choice(material.NAMES)
        if path in self.tree and self.rng.random() < 0.75:
            path = base + "/" + self.rng.choice(material.NAMES)
        return path

    def odd(self):
        if self.rng.random() < 0.3:
            return self.existing() + self.rng.choice(("/", "//x", "/.", "/..", "/\x02", "\0", "/./y", "\ue123"))
        return self.rng.choice(material.ODD_PATHS)

    def target(self, pick=None):
        roll = self.rng.random()
        if roll < 0.08 and self.tree.locked:
            return self.rng.choice(list(self.tree.locked))
        if roll < 0.82:
            return (pick or self.existing)()
        return self.fresh() if roll < 0.92 else self.odd()

    def remember(self, path):
        if isinstance(path, str) and path.startswith("/"):
            self.recent.append(path)
        return path

    def flag(self):
        return self.rng.random() < 0.35

    def version(self, path, which="version"):
        node = self.tree.nodes.get(path)
        roll = self.rng.random()
        if roll < 0.5:
            return -1
        if roll < 0.85 and node is not None:
            return getattr(node, which)
        return self.rng.choice((0, 1, 2, 5, -2, 1 << 30, -(1 << 31)))

    # ---- creates

    def create_fields(self, flags):
        full = len(self.tree) > TREE_SIZE
        path = self.existing() if full and self.rng.random() < 0.25 else self.fresh()
        while is_admin_node(path):
            path = self.fresh()
        roll = self.rng.random()
        tags: tuple[str, ...] = ()
        if roll < 0.05:
            path = self.odd()
        elif flags in (2, 3, 6) and roll < 0.35:
            path = parent_of(path).rstrip("/") + "/" if roll < 0.2 else self.existing() + "/"
            tags = ("sequential with trailing slash",)
        elif roll > 0.97 and "quota" not in self.skip:
            path = self.rng.choice(("/zookeeper/", "/zookeeper/x/", "/zookeeper/config/")) + self.rng.choice("xyz")
            tags = ("create under /zookeeper",)
        acl, is_open = material.acl(self.rng)
        self.remember(path)
        return {
            "path": path,
            "data": material.data(self.rng),
            "acl": acl,
            "flags": flags,
            "acl_open": is_open,
            "tags": tags,
        }

    def plain_flags(self):
        """Flag 4 is not sent with create and create2: see README, "left out"."""
        roll = self.rng.random()
        if roll < 0.04:
            return self.rng.choice((5, 6, 7, 8, -1, 1 << 20, -(1 << 31)))
        return self.rng.choices((0, 1, 2, 3), (45, 25, 18, 12))[0]

    def create(self, slot, name="create"):
        fields = self.create_fields(self.plain_flags())
        body = protocol.create(fields["path"], fields["data"], fields["acl"], fields["flags"])
        return Request(name, body, fields)

    def create2(self, slot):
        return self.create(slot, "create2")

    def create_container(self, slot):
        flags = 4 if self.rng.random() < 0.93 else self.rng.choice((5, 6, 7, -1))
        fields = self.create_fields(flags)
        body = protocol.create(fields["path"], fields["data"], fields["acl"], flags)
        return Request("createContainer", body, fields)

    def create_ttl(self, slot):
        roll = self.rng.random()
        if roll < 0.8:
            flags, ttl = self.rng.choice((5, 6)), self.rng.choice(TTLS)
        elif roll < 0.92:
            flags, ttl = self.rng.choice((5, 6)), self.rng.choice(BAD_TTLS)
        elif roll < 0.97:
            # Never with a negative ttl: a non-TTL flag with ttl -1 crashes Java.
            flags, ttl = self.rng.choice((0, 1, 2, 3, 4)), self.rng.choice((0, 1, 3600000))
        else:
            flags, ttl = self.rng.choice((7, -1)), self.rng.choice(TTLS)
        fields = dict(self.create_fields(flags), ttl=ttl)
        if flags not in (5, 6):
            fields["tags"] = ("ttl with flag %d" % flags,)
        body = protocol.create_ttl(fields["path"], fields["data"], fields["acl"], flags, ttl)
        return Request("createTTL", body, fields)

    # ---- other writes

    def delete(self, slot):
        path = self.remember(self.target(self.leaf if self.rng.random() < 0.75 else None))
        version = self.version(path)
        return Request("delete", protocol.path_version(path, version), {"path": path, "version": version})

    def big(self, slot):
        """A frame of exactly the greatest length that is taken."""
        path = self.leaf()
        while is_admin_node(path) or in_area(path):
            path = self.leaf()
        empty = len(protocol.set_body(path, b"", -1)) + 8
        data = bytes(1048575 - empty)
        return Request(
            "setData",
            protocol.set_body(path, data, -1),
            {"path": path, "data": "(%d bytes)" % len(data), "version": -1, "tags": ("longest frame",)},
        )

    def data_target(self, pick=None):
        """A path for setData; never a quota node, whose text must stay readable: see README, "left out"."""
        path = self.target(pick)
        while is_admin_node(path):
            path = self.target(pick)
        return path

    def set_data(self, slot):
        path = self.remember(self.data_target())
        data, version = material.data(self.rng), self.version(path)
        return Request(
            "setData", protocol.set_body(path, data, version), {"path": path, "data": data, "version": version}
        )

    def set_acl(self, slot):
        path = self.target()
        acl, is_open = material.acl(self.rng)
        if path == "/" and acl:
            return self.lock_root(slot)
        version = self.version(path, "aversion")
        return Request(
            "setACL",
            protocol.set_acl(path, acl, version),
            {"path": path, "acl": acl, "version": version, "acl_open": is_open},
        )

    def lock_root(self, slot):
        """Takes one permission from the root for a while; `repair` restores it."""
        acl = (protocol.Acl(31 & ~self.rng.choice((1, 2, 4, 8)), "world", "anyone"),)
        self.tree.locked["/"] = True
        return Request(
            "setACL",
            protocol.set_acl("/", acl, -1),
            {"path": "/", "acl": acl, "version": -1, "acl_open": False, "tags": ("setACL /",)},
        )

    def repair(self, slot):
        """Restores the ACL of a locked node, root first. Always works on the super session only."""
        if not self.tree.locked:
            return self.get_acl(slot)
        return self.open_up("/" if "/" in self.tree.locked else self.rng.choice(list(self.tree.locked)))

    def open_up(self, path):
        fields = {"path": path, "acl": material.OPEN, "version": -1, "acl_open": True}
        return Request("setACL", protocol.set_acl(path, material.OPEN, -1), fields)

    def reconfig(self, slot):
        joining = self.rng.choice((None, "", "server.1=127.0.0.1:1:2;3", "nonsense"))
        config = self.rng.choice((-1, 0, 5))
        return Request(
            "reconfig", protocol.reconfig(joining, None, None, config), {"joining": joining, "config": config}
        )

    def close_session(self, slot):
        return Request("closeSession", b"", ends=True)

    # ---- reads

    def _watching(self, slot, name, kind, pick=None):
        path, watch = self.target(pick), self.flag()
        if watch:
            slot.watches.append((path, kind))
        return Request(name, protocol.path_watch(path, watch), {"path": path, "watch": watch})

    def exists(self, slot):
        pick = self.fresh if self.rng.random() < 0.3 else None
        return self._watching(slot, "exists", 2, pick)

    def get_data(self, slot):
        return self._watching(slot, "getData", 2)

    def get_children(self, slot):
        return self._watching(slot, "getChildren", 1, self._busy_parent)

    def get_children2(self, slot):
        return self._watching(slot, "getChildren2", 1, self._busy_parent)

    def _busy_parent(self):
        path = self.existing()
        return parent_of(path) if path and self.rng.random() < 0.5 else path

    def count_all(self, slot):
        path = self.rng.choice(("/", "")) if self.rng.random() < 0.25 else self.target(self._busy_parent)
        return Request("getAllChildrenNumber", protocol.ustring(path), {"path": path})

    def get_ephemerals(self, slot):
        roll = self.rng.random()
        if roll < 0.4:
            prefix = self.rng.choice((None, "", " ", "/", " / ", "\t"))
        elif roll < 0.9:
            path = self.existing()
            prefix = path[: self.rng.randrange(1, len(path) + 1)] if path else path
        else:
            prefix = self.odd()
        return Request("getEphemerals", protocol.ustring(prefix), {"prefix": prefix})

    def get_acl(self, slot):
        pick = None
        if self.tree.locked and self.rng.random() < 0.4:

            def pick():
                return self.rng.choice(list(self.tree.locked))

        path = self.target(pick)
        return Request("getACL", protocol.ustring(path), {"path": path})

    def sync(self, slot):
        path = self.target()
        return Request("sync", protocol.ustring(path), {"path": path})

    def who_am_i(self, slot):
        return Request("whoAmI", b"")

    def ping(self, slot):
        return Request("ping", b"", xid=self.rng.choice((-2, -2, 7)))

    # ---- watches

    def _watch_paths(self):
        pick = (self.existing, self.existing, self._busy_parent, self.fresh, self.odd)
        return tuple(self.rng.choice(pick)() for _ in range(self.rng.choice((0, 0, 1, 1, 2, 3))))

    def _relative_zxid(self):
        newest = self.newest()
        return self.rng.choice(
            (
                0,
                -1,
                newest,
                newest,
                max(0, newest - self.rng.randrange(1, 60)),
                max(0, newest - self.rng.randrange(1, 600)),
                newest + 1000,
                (1 << 63) - 1,
            )
        )

    def _set_watches(self, slot, name, kinds):
        lists, common = tuple(self._watch_paths() for _ in kinds), self._relative_zxid()
        if not slot.is_super:
            # Java before 3.9.6 sends events of znodes that the client may not read. So the request says that the
            # client has seen all changes, and names no znode of the list that waits for a creation.
            lists, common = (lists[0], (), *lists[2:]), (1 << 63) - 1
        for paths, kind in zip(lists, kinds):
            slot.watches.extend((path, kind) for path in paths)
        newest = self.newest()

        def body(side):
            relative = side.own(common) if 0 < common <= newest else common
            return protocol.set_watches(relative, lists)

        xid = -8 if self.rng.random() < 0.8 else 0
        return Request(name, body, {"relativeZxid": common, "lists": lists}, xid=xid)

    def set_watches(self, slot):
        return self._set_watches(slot, "setWatches", (2, 2, 1))

    def set_watches2(self, slot):
        return self._set_watches(slot, "setWatches2", (2, 2, 1, 4, 5))

    def add_watch(self, slot):
        path = self.target(self._busy_parent)
        mode = self.rng.choice((0, 0, 0, 0, 1, 1, 1, 1, 1, 2, -1, 7))
        slot.watches.append((path, 4 + mode if mode in (0, 1) else 3))
        return Request("addWatch", protocol.path_int(path, mode), {"path": path, "mode": mode})

    def _of_a_watch(self, slot, name):
        if slot.watches and self.rng.random() < 0.75:
            path, kind = self.rng.choice(slot.watches)
            if self.rng.random() < 0.3:
                kind = self.rng.choice((1, 2, 3, 4, 5))
        else:
            path, kind = self.target(), self.rng.choice((1, 2, 3, 4, 5, 0, 6, -1))
        return Request(name, protocol.path_int(path, kind), {"path": path, "type": kind})

    def check_watches(self, slot):
        return self._of_a_watch(slot, "checkWatches")

    def remove_watches(self, slot):
        return self._of_a_watch(slot, "removeWatches")

    # ---- what is answered ahead of the pipeline, or ends the connection

    def auth(self, slot):
        roll = self.rng.random()
        if roll < 0.72:
            if slot.index == 0 and not slot.is_super:
                return self.become_super(slot)
            user = self.rng.choice(material.USERS)
            return self._auth("digest", user, good=True)
        if roll < 0.82:
            odd = material.ODD_USERS if "astral" not in self.skip else material.ODD_USERS[:-1]
            return self._auth("digest", self.rng.choice(odd), good=True)
        if roll < 0.87:
            return self._auth("ip", self.rng.choice((None, b"", b"1.2.3.4")), good=True)
        if roll < 0.92:
            # No SASL is configured: a null token and no error.
            tokens = (b"", b"x") if "nulls" in self.skip else (b"", b"x", None)
            token = self.rng.choice(tokens)
            return Request("sasl", protocol.buffer(token), {"token": token}, first=True, alone=token is None)
        scheme, data = self.rng.choice(
            (
                ("world", b"anyone"),
                ("auth", b""),
                ("nope", b"x"),
                ("super", b"super:admin"),
                ("sasl", b"x"),
                ("x509", b"CN=a"),
                ("digest", None),
                (None, b"x"),
                ("", b""),
                ("Digest", b"a:b"),
                ("ensemble", b"a"),
            )
        )
        return self._auth(scheme, data, good=False)

    def become_super(self, slot):
        slot.is_super = True
        return self._auth("digest", material.SUPER, good=True)

    def _auth(self, scheme, data, good):
        xid = -4 if self.rng.random() < 0.7 else 0
        body = protocol.auth(scheme, data, self.rng.choice((0, 0, 0, 5, -1)))
        return Request(
            "auth", body, {"scheme": scheme, "data": data}, xid=xid, first=good, alone=not good, ends=not good
        )

    def lone_check(self, slot):
        path = self.existing()
        return Request("check", protocol.path_version(path, -1), {"path": path}, alone=True, ends=True)

    def unknown_opcode(self, slot):
        # Not 20 (deleteContainer) and not -10 (createSession): see README, "left out".
        op = self.rng.choice((0, -1, 10, 23, 24, 99, 108, 1000, -2, -12, (1 << 31) - 1, -(1 << 31)))
        return Request(op, self.rng.choice((b"", protocol.ustring("/"))), alone=True, ends=True)
