"""The plan of faults: kinds, times and durations, all from the seed."""

from collections import namedtuple

from chaos.faults import ALL

Fault = namedtuple("Fault", "kind after_s lasts_s seed")
AT_ONCE = ([1, 2, 3], [4, 4, 2])  # and how often
LASTS_S, AFTER_S = (1.0, 8.0), (0.0, 2.0)
SHORT_AT_ONCE, SHORT_LASTS_S, SHORT_AFTER_S = 4, (0.5, 1.0), (0.0, 0.2)


def rounds(kinds, size, chance, short=False):
    """Yields without end lists of faults that run at the same time. All kinds come equally often."""
    lasts, after = (SHORT_LASTS_S, SHORT_AFTER_S) if short else (LASTS_S, AFTER_S)
    remaining = []
    while True:
        wanted = SHORT_AT_ONCE if short else chance.choices(*AT_ONCE)[0]
        faults, taken = [], 0
        while len(faults) < wanted:
            if not remaining:
                remaining = list(kinds)
                chance.shuffle(remaining)
            kind = remaining[-1]
            # One server is always left for a fault that needs the leader.
            if faults and (kind.takes == ALL or taken + kind.takes >= size):
                break
            remaining.pop()
            taken += kind.takes
            faults.append(Fault(kind, chance.uniform(*after), chance.uniform(*lasts), chance.getrandbits(32)))
            if kind.takes == ALL:
                break
        yield faults


def every_kind_once(kinds, size, chance):
    """Rounds with every kind once, as short as can be."""
    left = {kind.name for kind in kinds}
    for faults in rounds(kinds, size, chance, short=True):
        new = {fault.kind.name: fault for fault in faults if fault.kind.name in left}
        left -= new.keys()
        if new:
            yield list(new.values())
        if not left:
            return
