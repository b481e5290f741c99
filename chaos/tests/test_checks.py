"""Tests that each check finds its errors, and finds none in correct histories."""

import unittest

from chaos.checks import Epochs, Verdict, judge, line_differs, numbers_out_of_line, reads_that_go_back
from chaos.history import PLAIN_READ, READ, SYNC_READ, WRITE, Operation

WRITTEN = Operation(0, WRITE, 0, 1, "a", 1)


def read(kind, client, began, value, version):
    return Operation(client, kind, began, began + 0.5, value, version)


class Checks(unittest.TestCase):
    def test_stale_read_after_sync_gets_its_own_verdict(self):
        self.assertEqual(judge([WRITTEN, read(SYNC_READ, 1, 2, "a", 1)]), Verdict.OK)
        self.assertEqual(judge([WRITTEN, read(SYNC_READ, 1, 2, "", 0)]), Verdict.STALE_SYNC)
        self.assertEqual(judge([WRITTEN, read(READ, 1, 2, "", 0)]), Verdict.BROKEN)

    def test_reads_that_go_back_for_one_client_are_found(self):
        fresh, old = read(PLAIN_READ, 1, 2, "a", 1), read(PLAIN_READ, 1, 3, "", 0)
        self.assertEqual(list(reads_that_go_back("r", [WRITTEN, fresh])), [])
        self.assertEqual(list(reads_that_go_back("r", [WRITTEN, read(PLAIN_READ, 2, 3, "", 0), fresh])), [])
        self.assertEqual(len(list(reads_that_go_back("r", [WRITTEN, fresh, old]))), 1)

    def test_sequence_numbers_out_of_order_are_found(self):
        def line(*moments):
            return [(began, ended, "/n%010d" % number, "a") for began, ended, number in moments]

        self.assertEqual(list(numbers_out_of_line(line((0, 5, 2), (1, 2, 1), (6, 7, 9)))), [])
        self.assertEqual(len(list(numbers_out_of_line(line((0, 1, 2), (2, 3, 1))))), 1)
        self.assertEqual(len(list(numbers_out_of_line(line((0, 3, 2), (1, 4, 2))))), 1)

    def test_missing_and_unexpected_sequential_znodes_are_found(self):
        created = [(0, 1, "/n0", "a")]
        self.assertEqual(list(line_differs(created, {"x"}, {"/n0": "a", "/n1": "x"})), [])
        self.assertEqual(len(list(line_differs(created, set(), {}))), 1)
        self.assertEqual(len(list(line_differs(created, set(), {"/n0": "a", "/n1": "x"}))), 1)
        self.assertEqual(len(list(line_differs(created, {"x"}, {"/n0": "x"}))), 1)

    def test_epoch_with_two_leaders_is_found(self):
        epochs = Epochs(None)
        for zxid, number in ((0x100000001, 1), (0x200000000, 2), (0x100000005, 1), (0x200000001, 2)):
            epochs.saw(zxid, number)
        self.assertEqual(epochs.wrong, [])
        epochs.saw(0x200000007, 3)
        self.assertEqual(len(epochs.wrong), 1)


if __name__ == "__main__":
    unittest.main()
