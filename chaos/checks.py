"""Checks of a recorded history, and of the servers that made it. Each check returns one sentence for each error."""

import threading
from collections import defaultdict
from enum import Enum

from chaos.history import SYNC_READ
from chaos.linearizable import TooLong, linearizable

POLL_S, PATIENCE_S = 0.25, 0.3


class Verdict(Enum):
    OK = "ok"
    STALE_SYNC = "stale sync"
    BROKEN = "not linearizable"
    TOO_LONG = "not decided"


def judge(operations):
    """Checks the history of one register.

    A `sync` asks only the leader, not a quorum, so a deposed leader that does not know it yet answers it, too. So a
    history that is linearizable only without the reads after a `sync` gets a separate verdict."""
    try:
        if linearizable(operations):
            return Verdict.OK
        others = [op for op in operations if op.kind != SYNC_READ]
        return Verdict.STALE_SYNC if linearizable(others) else Verdict.BROKEN
    except TooLong:
        return Verdict.TOO_LONG


def interval(operations):
    """The time in which a register was in use."""
    return min(op.began for op in operations), max(op.ended if op.known else op.began for op in operations)


def reads_that_go_back(register, operations):
    """Checks that no client sees an older version than one that it has seen or made, at any server."""
    seen = defaultdict(int)
    for op in sorted(operations, key=lambda op: op.began):
        if op.known and op.version is not None:
            if op.version < seen[op.client]:
                yield "client %d has version %d of %s after version %d" % (
                    op.client,
                    op.version,
                    register,
                    seen[op.client],
                )
            seen[op.client] = max(seen[op.client], op.version)


def numbers_out_of_line(created):
    """Checks sequential znodes, each (began, ended, path, value): no number comes twice, and none is below one that was
    answered before the request."""
    numbered = [(began, ended, int(path[-10:])) for began, ended, path, _ in created]
    by_end = sorted(numbered, key=lambda one: one[1])
    highest, next_ended, seen = -1, 0, set()
    for began, _, number in sorted(numbered):
        while by_end[next_ended][1] < began:
            highest = max(highest, by_end[next_ended][2])
            next_ended += 1
        if number <= highest:
            yield "sequence number %d was given after %d was told" % (number, highest)
        if number in seen:
            yield "sequence number %d was given twice" % number
        seen.add(number)


def line_differs(created, unknown, present):
    """Checks the znodes that exist: all acknowledged ones with their values, and otherwise only ones with an unknown
    outcome."""
    acknowledged = {path: value for _, _, path, value in created}
    for path in sorted(acknowledged.keys() - present.keys()):
        yield "%s was acknowledged and is not there" % path
    for path in sorted(acknowledged.keys() & present.keys()):
        if present[path] != acknowledged[path]:
            yield "%s was told to the writer of %r and has %r" % (path, acknowledged[path], present[path])
    for path in sorted(present.keys() - acknowledged.keys()):
        if present[path] not in unknown:
            yield "%s is there with %r, which nobody wrote or somebody was told of as another" % (path, present[path])


class Epochs:
    """Polls all servers, and checks that each epoch has one leader."""

    def __init__(self, cluster):
        self.cluster, self.leader_of, self.wrong = cluster, {}, []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stopping.set()
        self._thread.join()

    def _watch(self):
        while not self._stopping.wait(POLL_S):
            for member in self.cluster.members.values():
                about = member.srvr(PATIENCE_S)
                if about.get("Mode") == "leader" and "Zxid" in about:
                    self.saw(int(about["Zxid"], 16), member.number)

    def saw(self, zxid, number):
        """Notes a leader that has committed in its epoch."""
        epoch, count = zxid >> 32, zxid & 0xFFFFFFFF
        if count == 0:
            return
        first = self.leader_of.setdefault(epoch, number)
        if first != number:
            self.wrong.append("epoch %d is led by server %d, and was by server %d" % (epoch, number, first))
