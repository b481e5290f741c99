"""Reads a whole tree over the wire, for the comparison at the end."""

from differential.model import parent_of
from harness import protocol
from harness.protocol import OPS, int32

BATCH = 60


def _ask(connection, asks):
    """Sends pairs of (op, body) back to back and returns the decoded replies."""
    connection.send(b"".join(protocol.frame(int32(i + 1) + int32(op) + body) for i, (op, body) in enumerate(asks)))
    replies = []
    for op, _ in asks:
        data = connection.frame()
        if data is None:
            raise ConnectionError("the server closed the connection during the dump")
        replies.append(dict(protocol.decode_reply(data, op)))
    return replies


def dump(side, connection):
    """{path: (data, Stat, ACL, children)} in common terms; the connection needs the rights of super."""
    tree = {}
    level = ["/"]
    while level:
        found = []
        for begin in range(0, len(level), BATCH):
            batch = level[begin : begin + BATCH]
            asks = []
            for path in batch:
                asks.append((OPS["getData"], protocol.path_watch(path, False)))
                asks.append((OPS["getACL"], protocol.ustring(path)))
                asks.append((OPS["getChildren2"], protocol.path_watch(path, False)))
            replies = _ask(connection, asks)
            for at, path in enumerate(batch):
                data, acl, children = replies[3 * at : 3 * at + 3]
                if any(reply.get("err") for reply in (data, acl, children)):
                    tree[path] = (("error", tuple(r.get("err") for r in (data, acl, children))),)
                    continue
                tree[path] = side.fields(
                    (
                        ("data", data["data"]),
                        ("acl", acl["acl"]),
                        ("stat", data["stat"]),
                        ("children", children["children"]),
                    )
                )
                found += [(path if path != "/" else "") + "/" + child for child in children["children"]]
        level = found
    return tree


def differences(one, two, limit=20):
    """Lines that name the nodes and fields in which two dumps differ."""
    lines = []
    for path in sorted(set(one) | set(two), key=lambda p: (p.count("/"), p)):
        a, b = one.get(path), two.get(path)
        if a == b:
            continue
        if a is None or b is None:
            if parent_of(path) in one and parent_of(path) in two:
                lines.append("  %r: %s" % (path, "only on B" if a is None else "only on A"))
            continue
        b = dict(b)
        for name, value in a:
            if b.get(name) != value:
                lines.append("  %r %s:\n    A %r\n    B %r" % (path, name, value, b.get(name)))
    more = len(lines) - limit
    return lines[:limit] + (["  and %d more" % more] if more > 0 else [])
