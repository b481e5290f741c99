"""Tests of the plan: the seed decides it, every kind comes, and no round harms more servers than there are."""

import itertools
import random
import unittest

from chaos.faults import ALL, KINDS
from chaos.plan import every_kind_once, rounds

EVERY = list(KINDS.values())


class Plan(unittest.TestCase):
    def test_same_seed_gives_the_same_plan(self):
        one, same, other = (list(itertools.islice(rounds(EVERY, 3, random.Random(seed)), 50)) for seed in (1, 1, 2))
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)

    def test_faults_at_one_time_leave_a_server_unharmed(self):
        for size in (3, 5):
            for faults in itertools.islice(rounds(EVERY, size, random.Random(7)), 500):
                takes = [fault.kind.takes for fault in faults]
                self.assertTrue(takes == [ALL] or sum(takes) < size, takes)

    def test_kinds_come_equally_often(self):
        count = dict.fromkeys(KINDS, 0)
        for faults in itertools.islice(rounds(EVERY, 3, random.Random(3)), 300):
            for fault in faults:
                count[fault.kind.name] += 1
        self.assertLessEqual(max(count.values()) - min(count.values()), 1)

    def test_the_short_plan_has_every_kind_once(self):
        for seed in range(20):
            names = [fault.kind.name for faults in every_kind_once(EVERY, 3, random.Random(seed)) for fault in faults]
            self.assertEqual(sorted(names), sorted(KINDS))


if __name__ == "__main__":
    unittest.main()
