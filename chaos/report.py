"""The results of a run by kind of fault, and the tables at its end."""

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Row:
    """The results of one kind. Kinds that ran at the same time share what happened meanwhile."""

    times: int = 0
    seconds: float = 0.0
    acknowledged: int = 0
    unknown: int = 0
    recovery_s: float = 0.0  # the longest from the end of a round to all servers serving
    stale_syncs: int = 0
    ended: int = 0  # servers that ended by themselves, as they may when their disk is broken
    wrong: int = 0


@dataclass
class Report:
    server: str
    kinds: list
    rows: dict = field(default_factory=lambda: defaultdict(Row))
    wrong: list = field(default_factory=list)  # sentences
    rounds: int = 0
    looks: int = 0
    seconds: float = 0.0
    acknowledged: int = 0
    unknown: int = 0
    registers: int = 0
    operations: int = 0
    undecided: int = 0
    stale_syncs: int = 0
    numbers: int = 0
    epochs: int = 0
    ended: int = 0

    def fault(self, text, kinds):
        """Notes an error during or after faults of these kinds."""
        self.wrong.append(text)
        for kind in kinds:
            self.rows[kind.name].wrong += 1

    def summary(self):
        return (
            "%d rounds in %.0f s, %d operations acknowledged, %d unknown, none lost; "
            "%d registers linearizable (%d operations%s), %d reads after sync of a replaced leader; "
            "%d sequence numbers, %d epochs; %d servers ended by a broken disk"
            % (
                self.rounds,
                self.seconds,
                self.acknowledged,
                self.unknown,
                self.registers,
                self.operations,
                ", %d not decided" % self.undecided if self.undecided else "",
                self.stale_syncs,
                self.numbers,
                self.epochs,
                self.ended,
            )
        )


HEAD = ("fault", "times", "seconds", "acknowledged", "unknown", "recovery s", "stale syncs", "ended", "verdict")


def table(report, lacking):
    lines = [HEAD]
    for kind in report.kinds:
        row = report.rows[kind.name]
        lines.append(
            (
                kind.name,
                row.times,
                "%.0f" % row.seconds,
                row.acknowledged,
                row.unknown,
                "%.1f" % row.recovery_s,
                row.stale_syncs,
                row.ended,
                _verdict(row),
            )
        )
    lines += [(name, "-", "-", "-", "-", "-", "-", "-", "not on this machine") for name in lacking]
    text = [report.server] + _columns(lines)
    return "\n".join(
        text + ["wrong: " + shortly(what) for what in report.wrong] + [report.summary() if not report.wrong else ""]
    ).rstrip()


def beside(ours, theirs):
    """The verdicts and the longest recoveries of two makes."""
    lines = [("fault", ours.server, "times", "recovery s", theirs.server, "times", "recovery s")]
    for kind in ours.kinds:
        cells = [kind.name]
        for report in (ours, theirs):
            row = report.rows[kind.name]
            cells += [_verdict(row), row.times, "%.1f" % row.recovery_s]
        lines.append(tuple(cells))
    for name in (
        "rounds",
        "acknowledged",
        "unknown",
        "registers",
        "undecided",
        "stale_syncs",
        "numbers",
        "epochs",
        "ended",
    ):
        lines.append((name.replace("_", " "), getattr(ours, name), "", "", getattr(theirs, name), "", ""))
    return "\n".join(_columns(lines))


def shortly(text):
    """Shortens a text to one line: its begin and its end."""
    text = " | ".join(line.strip() for line in text.split("\n") if line.strip())
    return text if len(text) < 500 else "%s ... %s" % (text[:120], text[-360:])


def _verdict(row):
    return "%d wrong" % row.wrong if row.wrong else "ok" if row.times else "did not come"


def _columns(lines):
    wide = [max(len(str(cell)) for cell in column) for column in zip(*lines)]
    return ["  ".join(str(cell).ljust(size) for cell, size in zip(line, wide)).rstrip() for line in lines]
