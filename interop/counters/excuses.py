"""Reads excuses.txt: lines `NAME KIND REASON` that allow a difference. KIND is one of figures.compare's; NAME begins
with `*_` where a server's number is in front."""

import os

from harness.outcome import expect

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "excuses.txt")
KINDS = ("still", "alone", "lines", "size")


class Excuses:
    def __init__(self, path=FILE):
        self.reasons = {}
        with open(path) as f:
            for at, line in enumerate(f, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                words = line.split(None, 2)
                expect(
                    len(words) == 3 and words[1] in KINDS,
                    "%s:%d: not `NAME KIND REASON`: %s" % (path, at, line.strip()),
                )
                expect(tuple(words[:2]) not in self.reasons, "%s:%d: %s twice" % (path, at, words[0]))
                self.reasons[tuple(words[:2])] = words[2].strip()

    def of(self, finding):
        """The key of the excuse that fits, or None."""
        key = (finding.name, finding.kind)
        return key if key in self.reasons else None

    def needless(self, java, ours, findings):
        """Excuses for what is well: a name that is excused for standing still has moved, and the like."""
        found = {(finding.name, finding.kind) for finding in findings}
        for name, kind in self.reasons:
            if (name, kind) in found:
                continue
            if kind == "still" and ours.first(name) in ours.moved(name):
                yield name, kind, "the figure moves now: %s" % ours.shown(name)
            elif kind != "still":
                yield name, kind, "the figure is as in Java now: %s" % ours.shown(name)
