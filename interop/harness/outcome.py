"""The end of every script: exit code 0 and a last line `ok ...`, 1 and `FAILED ...`, or 77 and `skipped: ...`."""

import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

OK, FAILED, SKIPPED = 0, 1, 77


class Skip(Exception):
    """This machine lacks something that the check needs."""


class Mismatch(AssertionError):
    """The server under test did something that ZooKeeper does not."""


def expect(condition: object, text: str) -> None:
    if not condition:
        raise Mismatch(text)


def expect_equal(got: object, wanted: object, what: str) -> None:
    if got != wanted:
        raise Mismatch("%s: got %r, expected %r" % (what, got, wanted))


def conclude(check: Callable[[], str | None]) -> NoReturn:
    """Runs a script's main function, and makes the exit code and the last line of its result."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))  # so that the servers are stopped at exit
    try:
        summary = check()
    except Skip as why:
        print("skipped: %s" % why, flush=True)
        sys.exit(SKIPPED)
    except Mismatch as what:
        if what.__cause__:
            traceback.print_exception(what.__cause__)
        print("FAILED: %s" % " | ".join(str(what).split("\n")), flush=True)
        sys.exit(FAILED)
    except Exception as error:
        traceback.print_exc()
        print("FAILED: %s: %s" % (type(error).__name__, error), flush=True)
        sys.exit(FAILED)
    print("ok: %s" % summary, flush=True)
    sys.exit(OK)
