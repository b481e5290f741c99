"""The tree and the sessions as the generator knows them, from the replies of server A."""

from collections import deque
from typing import Any

EPHEMERAL, CONTAINER, TTL, PERSISTENT = "ephemeral", "container", "ttl", "persistent"
_KINDS = {0: PERSISTENT, 1: EPHEMERAL, 2: PERSISTENT, 3: EPHEMERAL, 4: CONTAINER, 5: TTL, 6: TTL}
CREATES = frozenset(("create", "create2", "createContainer", "createTTL"))


def parent_of(path):
    return path[: path.rfind("/")] or "/"


class Node:
    __slots__ = ("kind", "owner", "version", "aversion", "children", "open")

    def __init__(self, kind, owner, is_open):
        self.kind = kind
        self.owner = owner
        self.version = 0
        self.aversion = 0
        self.children = 0
        self.open = is_open


class Tree:
    """All nodes, with a list beside the dict so that a random one can be drawn."""

    def __init__(self):
        self.nodes = {}
        self.order = []
        self.place = {}
        self.locked = {}
        for path in ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
            self.nodes[path] = Node(PERSISTENT, None, path != "/zookeeper/config")
        self.nodes["/"].children = 1
        self.nodes["/zookeeper"].children = 2
        self.nodes["/zookeeper/config"].version = -1
        self.nodes["/zookeeper/config"].aversion = -1

    def __contains__(self, path):
        return path in self.nodes

    def __len__(self):
        return len(self.order)

    def add(self, path, node):
        self.nodes[path] = node
        self.place[path] = len(self.order)
        self.order.append(path)
        if parent_of(path) in self.nodes:
            self.nodes[parent_of(path)].children += 1
        if not node.open:
            self.locked[path] = True

    def remove(self, path):
        if self.nodes.pop(path, None) is None:
            return
        at = self.place.pop(path)
        last = self.order.pop()
        if last != path:
            self.order[at] = last
            self.place[last] = at
        self.locked.pop(path, None)
        if parent_of(path) in self.nodes:
            self.nodes[parent_of(path)].children -= 1

    def close_session(self, owner):
        for path in [p for p in self.order if self.nodes[p].owner == owner]:
            self.remove(path)

    def apply(self, op, fields, reply, owner):
        """One successful request, or one successful part of a multi."""
        if op in CREATES:
            kind = _KINDS.get(fields["flags"], PERSISTENT)
            kind = CONTAINER if op == "createContainer" else kind
            if reply.get("path") is not None and reply["path"] not in self.nodes:
                is_open = fields.get("acl_open", True)
                self.add(reply["path"], Node(kind, owner if kind == EPHEMERAL else None, is_open))
        elif op == "delete":
            self.remove(fields["path"])
        elif op == "setData" and fields["path"] in self.nodes:
            self.nodes[fields["path"]].version = reply["stat"].version
        elif op == "setACL" and fields["path"] in self.nodes:
            node = self.nodes[fields["path"]]
            node.aversion = reply["stat"].aversion
            node.open = fields.get("acl_open", True)
            self.locked.pop(fields["path"], None)
            if not node.open:
                self.locked[fields["path"]] = True

    def apply_reply(self, request, reply, owner):
        """reply: the decoded fields as a dict."""
        if reply.get("err") != 0:
            return
        op = request.name
        if op == "closeSession":
            self.close_session(owner)
        elif op == "multi":
            results = [dict(r) for r in reply.get("results", ())][:-1]
            if all(r["err"] == 0 and r["type"] != -1 for r in results):
                for (name, fields), result in zip(request.fields.get("ops", ()), results):
                    self.apply(name, fields, result, owner)
        elif op in CREATES or op in ("delete", "setData", "setACL"):
            self.apply(op, request.fields, reply, owner)


class Slot:
    """One client of the test: its session, and its connection to each of the two servers."""

    def __init__(self, index, source):
        self.index = index
        self.source = source
        self.number = None  # of the session, counted over the run
        self.ids = [None, None]  # session id on A and on B
        self.connections: list[Any] = [None, None]
        self.history = deque(maxlen=10)
        self.forget_connection()

    @property
    def attached(self):
        return self.connections[0] is not None

    def forget_connection(self):
        """Watches and auth ids live and die with the connection."""
        self.watches = deque(maxlen=60)
        self.is_super = False

    def detach(self):
        for connection in self.connections:
            if connection is not None:
                connection.leave()
        self.connections = [None, None]
        self.forget_connection()

    def end_session(self):
        self.detach()
        self.number = None
        self.ids = [None, None]
