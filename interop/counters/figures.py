"""Compares the figures of two ensembles. Starts no servers.

A figure is a line of `mntr`. Lines of one metric belong together: `zk_cnt_election_time` is part `cnt` of
`election_time`, and a plain counter or gauge has the one part "". Figures of processes that are gone are added to those
of the ones after them; extremes are the extreme of all.
"""

import re
from collections import defaultdict, namedtuple

SUMMED = ("", "cnt", "sum")
BY_SERVER = re.compile(r"^\d+_")  # sets whose keys are servers' numbers: who leads is chance
PARTS = re.compile(r"(avg|min|max|cnt|sum|p50|p95|p99|p999)_(.+)")
# They have a part's name in front, and are gauges.
GAUGES_LIKE_PARTS = ("latency", "proposal_size", "client_response_size", "file_descriptor_count")
TIMES = re.compile(r"_ms$|time$|latency$|uptime$")
ORDER_OF_MAGNITUDE = 10
SMALL = 10  # with fewer values than this the comparison would be random
LONG_MS = 5.0  # a time with this mean is one that any server takes
IN_NO_TIME = ("sync_processor_queue_time_ms",)  # but for these: a batch takes all that waits
# Sizes that say how far a killed server's last snapshot was behind.
SIZES_BY_CHANCE = ("startup_txns_loaded",)

Finding = namedtuple("Finding", "name kind text")


def part_of(line):
    """(metric, part) of a line's name; servers' numbers in front become `*`."""
    name = line[len("zk_") :]
    match = PARTS.fullmatch(name)
    if match and match.group(2) not in GAUGES_LIKE_PARTS:
        return BY_SERVER.sub("*_", match.group(2)), match.group(1)
    return BY_SERVER.sub("*_", name), ""


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


class Figures:
    """`lives`: the lines {name: text} of each life of a process; `role`: of those that ended in this one only."""

    def __init__(self, lives, role=None):
        self.values = defaultdict(dict)
        for life in lives:
            if role and life.get("zk_server_state") != role:
                continue
            for line, text in life.items():
                value = number(text)
                if value is None:
                    continue
                metric, part = part_of(line)
                before = self.values[metric].get(part)
                if before is None:
                    self.values[metric][part] = value
                else:
                    self.values[metric][part] = before + value if part in SUMMED else max(before, value)

    def names(self):
        return set(self.values)

    def parts(self, name):
        return self.values.get(name, {})

    def first(self, name):
        """The part that shows whether anything was counted."""
        return "cnt" if "cnt" in self.parts(name) else ""

    def moved(self, name):
        """The parts that are not where they start."""
        return {part for part, value in self.parts(name).items() if value > 0}

    def shown(self, name):
        parts = self.parts(name)
        if not parts:
            return "no line"
        shown = [part for part in ("", "cnt", "sum", "max", "p50") if part in parts]
        return " ".join(("%s %g" % (part, parts[part])).strip() for part in shown)


def is_time(name):
    return TIMES.search(name) is not None


def too_fast(name, moved):
    """Percentiles of a time that may be 0 ms: the highest is not, so they are taken."""
    return {"p50", "p95", "p99"} if is_time(name) and "p999" in moved else set()


def compare(java, ours, role=None):
    """What differs, by metric: `still` moved in Java only, `alone` here only, `lines` has not Java's lines, `size` is
    of another order of magnitude. One finding a metric: the first of these that fits."""
    findings = []
    for name in sorted(java.names() | ours.names()):
        kind, text = _difference(name, java, ours)
        if kind:
            where = " (%ss)" % role if role else ""
            text = "%s%s: Java %s, here %s" % (text, where, java.shown(name), ours.shown(name))
            findings.append(Finding(name, kind, text))
    return findings


def _difference(name, java, ours):
    theirs, own = java.parts(name), ours.parts(name)
    if set(theirs) != set(own) and bool(theirs) != bool(own):
        return ("lines", "a metric without lines here") if theirs else ("lines", "lines that Java has not")
    if set(theirs) != set(own):
        return "lines", "other lines: %s" % " ".join(sorted(set(theirs) ^ set(own)))
    moved, own_moved = java.moved(name), ours.moved(name)
    first = java.first(name)
    if first in moved and first not in own_moved:
        return "still", "moves in Java only"
    if first in own_moved and first not in moved and (first or not is_time(name)):  # 1 ms instead of 0 is random
        return "alone", "moves here only"
    if first == "cnt" and first in moved:
        long = not is_time(name) or (theirs["sum"] / theirs["cnt"] >= LONG_MS and name not in IN_NO_TIME)
        stands = sorted(moved - own_moved - {"min"} - too_fast(name, own_moved)) if long else []
        if stands:
            return "still", "these stand still: %s" % " ".join(stands)
    if name in SIZES_BY_CHANCE:
        return None, None
    for part in (first, "max" if first and not is_time(name) else first):
        few, many = sorted((theirs.get(part, 0), own.get(part, 0)))
        if many >= SMALL and many > ORDER_OF_MAGNITUDE * max(few, 1) and (first or not is_time(name)):
            return "size", "another order of magnitude"
    return None, None
