"""Tests that the checker accepts histories that one order explains, and refuses others."""

import itertools
import random
import unittest

from chaos.history import NEVER, PLAIN_READ, READ, SWAP, WRITE, Operation
from chaos.linearizable import INITIAL, Register, TooLong, linearizable


def write(began, ended, value, version):
    return Operation(0, WRITE, began, ended, value, version)


def lost_write(began, value):
    return Operation(0, WRITE, began, NEVER, value)


def swap(began, ended, value, expected, version):
    return Operation(0, SWAP, began, ended, value, version, expected)


def read(began, ended, value, version):
    return Operation(0, READ, began, ended, value, version)


ACCEPTED = {
    "nothing": [],
    "a write and a read of it": [write(0, 1, "a", 1), read(2, 3, "a", 1)],
    "a read beside a write sees it": [write(0, 3, "a", 1), read(1, 2, "a", 1)],
    "a read beside a write does not see it": [write(0, 3, "a", 1), read(1, 2, "", 0)],
    "writes beside each other, in the other order": [write(0, 3, "a", 2), write(1, 2, "b", 1), read(4, 5, "a", 2)],
    "a lost write happened": [lost_write(0, "a"), read(5, 6, "a", 1)],
    "a lost write did not happen": [lost_write(0, "a"), read(5, 6, "", 0)],
    "a lost write happens late": [lost_write(0, "a"), read(1, 2, "", 0), read(3, 4, "a", 1)],
    "a lost write that nobody saw": [lost_write(0, "a"), write(1, 2, "b", 2), read(3, 4, "b", 2)],
    "a swap": [write(0, 1, "a", 1), swap(2, 3, "b", 1, 2), read(4, 5, "b", 2)],
    "a refused swap": [write(0, 1, "a", 1), swap(2, 3, "b", 0, None), read(4, 5, "a", 1)],
    "one of two swaps": [swap(0, 3, "a", 0, 1), swap(1, 2, "b", 0, None)],
    "a plain read is not asked": [write(0, 1, "a", 1), Operation(0, PLAIN_READ, 2, 3, "", 0)],
    "an unanswered read": [write(0, 1, "a", 1), Operation(0, READ, 2)],
}

REFUSED = {
    "a read of the past": [write(0, 1, "a", 1), read(2, 3, "", 0)],
    "a read of what nobody wrote": [read(0, 1, "a", 1)],
    "a lost acknowledged write": [write(0, 1, "a", 1), write(2, 3, "b", 1)],
    "reads that go back": [write(0, 9, "a", 1), read(1, 2, "a", 1), read(3, 4, "", 0)],
    "reads that go back, by two clients": [lost_write(0, "a"), read(1, 2, "a", 1), read(3, 4, "", 0)],
    "one version, two values": [write(0, 5, "a", 1), write(1, 4, "b", 1)],
    "two swaps of one version": [swap(0, 3, "a", 0, 1), swap(1, 2, "b", 0, 1)],
    "a swap refused for nothing": [swap(0, 1, "a", 0, None)],
    "a swap that should have been refused": [write(0, 1, "a", 1), swap(2, 3, "b", 0, 2)],
    "a write before it was asked for": [read(0, 1, "a", 1), write(2, 3, "a", 1)],
    "a lost write seen before it was asked for": [read(0, 1, "a", 1), lost_write(2, "a")],
    "a lost write that happens twice": [
        lost_write(0, "a"),
        read(1, 2, "a", 1),
        write(3, 4, "b", 2),
        read(5, 6, "a", 3),
    ],
    "orders that two readers see differently": [
        write(0, 9, "a", 1),
        write(0, 9, "b", 2),
        read(1, 2, "b", 2),
        read(3, 4, "a", 1),
    ],
}


def by_trying_all(operations):
    """The definition itself: any order of the known and some of the others."""
    known = [op for op in operations if op.known]
    lost = [op for op in operations if not op.known and op.kind in (WRITE, SWAP)]
    for count in range(len(lost) + 1):
        for some in itertools.combinations(lost, count):
            for order in itertools.permutations(known + list(some)):
                if _in_time(order) and _explains(order):
                    return True
    return False


def _in_time(order):
    return all(not later.ended < earlier.began for earlier, later in itertools.combinations(order, 2))


def _explains(order):
    register, state = Register([]), INITIAL
    for op in order:
        state = register.step(state, op)
        if state is None:
            return False
    return True


def random_history(chance, doctored):
    """The history of a correct register with random clients. If doctored, one answer is falsified."""
    moments = sorted(chance.sample(range(100), 6))
    state, operations = INITIAL, []
    for n, moment in enumerate(moments):
        kind = chance.choice([WRITE, SWAP, READ])
        op = Operation(0, kind, moment - chance.uniform(0, 30), moment + chance.uniform(0, 30), "v%d" % n)
        if kind == READ:
            op.version, op.value = state
        else:
            op.expected = chance.choice([state[0], state[0] + 1]) if kind == SWAP else None
            if kind == WRITE or op.expected == state[0]:
                state = (state[0] + 1, op.value)
                op.version = state[0]
        if kind != READ and chance.random() < 0.3:
            op.ended, op.version = NEVER, None
        operations.append(op)
    if doctored:
        op = chance.choice(operations)
        if op.known and op.version is not None:
            op.version = max(0, op.version + chance.choice([-1, 1]))
    return operations


class Linearizable(unittest.TestCase):
    def test_linearizable_histories_are_accepted(self):
        for name, operations in ACCEPTED.items():
            with self.subTest(name):
                self.assertTrue(linearizable(operations))

    def test_histories_that_no_order_explains_are_refused(self):
        for name, operations in REFUSED.items():
            with self.subTest(name):
                self.assertFalse(linearizable(operations))

    def test_random_histories_of_a_register_are_accepted(self):
        for seed in range(300):
            with self.subTest(seed=seed):
                self.assertTrue(linearizable(random_history(random.Random(seed), doctored=False)))

    def test_checker_agrees_with_the_definition_on_random_histories(self):
        said = []
        for seed in range(150):
            operations = random_history(random.Random(seed), doctored=True)
            with self.subTest(seed=seed):
                said.append(linearizable(operations))
                self.assertEqual(said[-1], by_trying_all(operations))
        self.assertGreater(said.count(False), 30)
        self.assertGreater(said.count(True), 30)

    def test_long_history_with_many_lost_writes_takes_few_steps(self):
        operations = [lost_write(n, "lost%d" % n) for n in range(20)]
        operations += [write(20 + n, 20.5 + n, "v%d" % n, 5 + n) for n in range(300)]
        self.assertTrue(linearizable(operations, steps_max=100_000))

    def test_search_over_its_limit_raises_too_long(self):
        with self.assertRaises(TooLong):
            linearizable([write(n, n + 0.5, "v%d" % n, n + 1) for n in range(50)], steps_max=10)


if __name__ == "__main__":
    unittest.main()
