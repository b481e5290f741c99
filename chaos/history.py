"""The clients' operations and answers, with begin and end times on one clock."""

import threading
from collections import defaultdict
from dataclasses import dataclass

NEVER = float("inf")  # the end of an operation with an unknown outcome

WRITE, SWAP, READ, SYNC_READ, PLAIN_READ = "write", "swap", "read", "sync-read", "plain-read"


@dataclass(slots=True)
class Operation:
    """An operation on one register.

    A write puts `value`; a swap does if the version is `expected`. `version` is what the answer says: after a write,
    or of what was read; None of a swap is a refusal. With `ended` NEVER, neither says anything.
    """

    client: int
    kind: str
    began: float
    ended: float = NEVER
    value: str = ""
    version: int | None = None
    expected: int | None = None

    @property
    def known(self):
        return self.ended != NEVER


class History:
    """Operations by register, added by many threads, taken out when a register is at rest."""

    def __init__(self):
        self._lock = threading.Lock()
        self._of = defaultdict(list)
        self.acknowledged = self.unknown = 0

    def add(self, register, operation):
        with self._lock:
            self._of[register].append(operation)
            if operation.known:
                self.acknowledged += 1
            else:
                self.unknown += 1

    def take(self):
        """Takes the operations out: {register: its operations}."""
        with self._lock:
            taken, self._of = self._of, defaultdict(list)
        return dict(taken)
