"""The program `ostler` of the server command under test."""

import re

from harness.outcome import Skip, expect
from harness.server import command


def ostler(server):
    """Its path. Other makes of servers have no test server."""
    words = command(server)
    if words[1:] != ["server"]:
        raise Skip("%s has no test server" % server)
    return words[0]


def passed(pattern, output, least):
    """The number of tests that passed, by the pattern of the runner's summary. Fewer than `least` is a failure."""
    found = re.search(pattern, output)
    number = int(found[1]) if found else 0
    expect(number >= least, "fewer tests than there are: " + output[-300:])
    return number


def ended(code, output):
    """The end of a test runner's output, for the message of a failure."""
    return "exit code %d: %s" % (code, output[-1500:])
