"""Where two sequences of decoded frames differ."""

from typing import Any

from harness.jute import Stat
from harness.protocol import ERRORS, EVENTS, Acl


def first_difference(a, b):
    """None, or (index, field, value on A, value on B) of the first frame that differs."""
    for index in range(max(len(a), len(b))):
        one = a[index] if index < len(a) else None
        two = b[index] if index < len(b) else None
        if one != two:
            return (index,) + _field(one, two)
    return None


def _field(one, two):
    if one is None or two is None:
        return "frame", _kind(one), _kind(two)
    if one[0] != two[0]:
        return "kind", _kind(one), _kind(two)
    return _pairs(one, two)


def _kind(item):
    if item is None:
        return "nothing"
    fields: dict[str, Any] = dict(item)
    if fields["kind"] == "event":
        return "event %s" % EVENTS.get(fields.get("type", 0), fields.get("type"))
    return str(fields["kind"])


def _pairs(one, two):
    names = [name for name, _ in one] + [name for name, _ in two if name not in dict(one)]
    left, right = dict(one), dict(two)
    # The error code says most, and a missing field follows from it.
    for name in sorted(names, key=lambda n: n != "err"):
        if left.get(name, "absent") != right.get(name, "absent"):
            return _value(name, left.get(name, "absent"), right.get(name, "absent"))
    return "order of fields", one, two


def _value(name, one, two):
    if isinstance(one, Stat) and isinstance(two, Stat):
        for field, x, y in zip(Stat._fields, one, two):
            if x != y:
                return "%s.%s" % (name, field), x, y
    if name == "results" and isinstance(one, tuple) and isinstance(two, tuple):
        if len(one) != len(two):
            return "number of results", len(one), len(two)
        for index, (x, y) in enumerate(zip(one, two)):
            if x != y:
                field, v, w = _pairs(x, y)
                return "results[%d].%s" % (index, field), v, w
    return name, one, two


def show(item):
    """One frame on one line, for people."""
    if item is None:
        return "(nothing)"
    fields = dict(item)
    parts = []
    for name, value in fields.items():
        if name == "kind":
            parts.append(value)
        elif name == "err" and value:
            parts.append("err=%d %s" % (value, ERRORS.get(value, "?")))
        elif name == "type" and fields["kind"] == "event":
            parts.append("type=%s" % EVENTS.get(value, value))
        else:
            parts.append("%s=%s" % (name, _show_value(value)))
    return " ".join(parts)


def _show_value(value):
    if isinstance(value, Stat):
        return "{%s}" % " ".join("%s=%s" % pair for pair in zip(Stat._fields, value))
    if isinstance(value, Acl):
        return "%d:%s:%s" % value
    if isinstance(value, tuple) and value and isinstance(value[0], tuple) and not isinstance(value[0], Acl):
        return (
            "["
            + "; ".join(
                " ".join("%s=%s" % (n, _show_value(v)) for n, v in part) if _is_pairs(part) else repr(part)
                for part in value
            )
            + "]"
        )
    text = repr(value)
    return text if len(text) <= 300 else "%s... (%d characters)" % (text[:300], len(text))


def _is_pairs(part):
    return all(isinstance(p, tuple) and len(p) == 2 for p in part)
