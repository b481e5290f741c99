"""The tests of the checks themselves."""

import os
import sys
import unittest

from harness.outcome import conclude, expect

HERE = os.path.dirname(os.path.abspath(__file__))


def check():
    result = unittest.TextTestRunner(stream=sys.stdout).run(
        unittest.defaultTestLoader.discover(HERE, top_level_dir=os.path.dirname(os.path.dirname(HERE)))
    )
    expect(
        result.wasSuccessful(), "%d of %d tests failed" % (len(result.failures) + len(result.errors), result.testsRun)
    )
    expect(result.testsRun > 0, "no test was found")
    return "%d tests of the checks" % result.testsRun


if __name__ == "__main__":
    conclude(check)
