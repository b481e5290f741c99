"""The whole tree as clients see it, and how two of them differ."""

from collections.abc import Iterator

from .jute import Stat
from .protocol import NO_NODE, Acl
from .session import Refused, Session

Node = tuple[bytes | None, Stat, list[Acl]]
Tree = dict[str, Node]


def dump(session: Session, root: str = "/") -> Tree:
    """{path: (data, Stat, ACL)} of everything at and below `root`."""
    found: Tree = {}
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            data, stat = session.get(path)
            acl = session.get_acl(path)
            children = session.children(path)
        except Refused as e:
            if e.code == NO_NODE:
                continue
            raise
        found[path] = (data, stat, acl)
        waiting += [path.rstrip("/") + "/" + child for child in children]
    return found


def differences(before: Tree, after: Tree, limit: int = 10) -> list[str]:
    """Readable lines, one for each node that is not the same in both."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            lines.append("%s is gone" % path)
        elif path not in before:
            lines.append("%s appeared" % path)
        elif before[path] != after[path]:
            lines += ["%s: %s" % (path, text) for text in _node_differences(before[path], after[path])]
    if len(lines) > limit:
        lines[limit:] = ["... and %d more" % (len(lines) - limit)]
    return lines


def _node_differences(before: Node, after: Node) -> Iterator[str]:
    if before[0] != after[0]:
        yield "data %s became %s" % (_short(before[0]), _short(after[0]))
    for field, old, new in zip(before[1]._fields, before[1], after[1]):
        if old != new:
            yield "%s 0x%x became 0x%x" % (field, old, new)
    if before[2] != after[2]:
        yield "acl %s became %s" % (before[2], after[2])


def _short(data: bytes | None) -> str:
    return repr(data) if data is None or len(data) < 40 else "%r... (%d bytes)" % (data[:24], len(data))
