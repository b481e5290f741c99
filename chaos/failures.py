"""Lets one sync or write of a server's log fail, by a library that is loaded before the C library. The next call
works."""

import functools
import os
import shutil
import subprocess
import time

from harness.outcome import expect
from harness.server import work_folder

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "failing_call.c")
CALLS = ("sync", "write")
CALL_WITHIN_S, END_WITHIN_S = 5.0, 20.0
# Another library may stand in front already.
BEHIND_OTHERS = 'LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$0" exec "$@"'


class Failures:
    def __init__(self, folder):
        self.token, self.library = os.path.join(folder, "failing-call"), _library()

    def words(self):
        """The words to put before a server's command."""
        return ["env", "FAILING_CALL=" + self.token, "sh", "-c", BEHIND_OTHERS, self.library]

    def fail_next(self, call):
        with open("%s.%s" % (self.token, call), "w"):
            pass

    def wait_ended(self, member):
        """Waits until the call has failed and the server has ended by itself, because it cannot know what is on its
        disk. A server that is cut off may have nothing to write: then there is no such call."""
        if not _soon(lambda: not self._waits(), CALL_WITHIN_S):
            self.forget()
            with open("/proc/%d/maps" % member.process.pid) as f:
                expect(self.library in f.read(), "server %d does not have the library" % member.number)
            return
        expect(
            _soon(lambda: member.process.poll() is not None, END_WITHIN_S),
            "server %d goes on after an error of its log" % member.number,
        )

    def forget(self):
        for call in CALLS:
            if os.path.exists("%s.%s" % (self.token, call)):
                os.remove("%s.%s" % (self.token, call))

    def _waits(self):
        return any(os.path.exists("%s.%s" % (self.token, call)) for call in CALLS)


def _soon(is_so, within_s):
    until = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@functools.cache
def _library():
    library = os.path.join(work_folder("chaos-failures"), "failing_call.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
    return library


def cannot():
    return None if shutil.which("cc") else "no C compiler"
