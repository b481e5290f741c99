"""Checks whether a history of one register is linearizable.

The search is that of Wing and Gong, with Lowe's memory of tried states.

Every operation must take effect at one moment between its begin and its end, and one order of those moments must
explain all answers. An operation with an unknown outcome may take effect at any later moment, or never.

The search walks the beginnings and ends in the order of time. At a beginning it may let that operation take effect, if
the register's state allows it; at the end of one that has not taken effect it must go back. The operations done
and the state they led to are remembered, so that nothing is tried twice. Answers carry versions and no two writes
put the same value: this keeps the search short. It never decides anything.
"""

from chaos.history import PLAIN_READ, SWAP, WRITE

INITIAL = (0, "")  # version and value of a register that was created and not written to
STEPS_MAX = 2_000_000


class TooLong(Exception):
    """The search was given up: the history is neither accepted nor refused."""


class Register:
    """How an operation changes (version, value); None where it cannot have its answer."""

    def __init__(self, operations):
        # A client has got this value with its version: no other write can have made that version.
        self._value_at = {0: ""}
        self._version_of = {}
        for op in operations:
            if op.known and op.version is not None:
                self._value_at.setdefault(op.version, op.value)
                self._version_of.setdefault(op.value, op.version)

    def step(self, state, op):
        version, value = state
        if op.kind == WRITE or op.kind == SWAP:
            return self._change(version, value, op)
        return state if (version, value) == (op.version, op.value) else None

    def _change(self, version, value, op):
        if op.kind == SWAP and op.known and op.version is None:
            return (version, value) if version != op.expected else None
        if op.kind == SWAP and version != op.expected:
            return None
        after = (version + 1, op.value)
        if op.known:
            return after if op.version == after[0] else None
        fits = (
            self._value_at.get(after[0], op.value) == op.value and self._version_of.get(op.value, after[0]) == after[0]
        )
        return after if fits else None


class _Event:
    """A beginning, or the end of a known operation, in a list from which pairs are taken out and put back."""

    __slots__ = ("op", "index", "end", "before", "after")

    def __init__(self, op, index):
        self.op, self.index, self.end, self.before, self.after = op, index, None, None, None

    @property
    def begins(self):
        return self.op is not None


def _timeline(operations):
    """The head of the list of events, in the order of time; at one moment, beginnings come first."""
    moments = []
    for index, op in enumerate(operations):
        begin = _Event(op, index)
        moments.append((op.began, 0, index, begin))
        if op.known:
            begin.end = _Event(None, index)
            moments.append((op.ended, 1, index, begin.end))
    head = last = _Event(None, None)
    for *_, event in sorted(moments, key=lambda moment: moment[:3]):
        last.after, event.before = event, last
        last = event
    return head


def _unlink(event):
    event.before.after = event.after
    if event.after:
        event.after.before = event.before


def _relink(event):
    event.before.after = event
    if event.after:
        event.after.before = event


def linearizable(operations, steps_max=STEPS_MAX):
    """Whether one order explains all answers. Raises TooLong after this many steps."""
    operations = [op for op in operations if op.kind != PLAIN_READ and (op.known or op.kind in (WRITE, SWAP))]
    register, state = Register(operations), INITIAL
    head, waiting = _timeline(operations), sum(op.known for op in operations)
    done, chosen, tried = 0, [], set()
    event = head.after
    for _ in range(steps_max):
        if waiting == 0:
            return True
        if event is not None and event.begins:
            after = register.step(state, event.op)
            memory = (done | 1 << event.index, after)
            if after is not None and memory not in tried:
                tried.add(memory)
                chosen.append((event, state))
                done, state = memory
                _take_out(event)
                waiting -= event.op.known
                event = head.after
            else:
                event = event.after
            continue
        # The end of an operation that has not taken effect, or of the list: the last choice was wrong.
        if not chosen:
            return False
        wrong, state = chosen.pop()
        done &= ~(1 << wrong.index)
        waiting += wrong.op.known
        _put_back(wrong)
        event = wrong.after
    raise TooLong("%d operations, %d steps" % (len(operations), steps_max))


def _take_out(begin):
    _unlink(begin)
    if begin.end:
        _unlink(begin.end)


def _put_back(begin):
    if begin.end:
        _relink(begin.end)
    _relink(begin)
