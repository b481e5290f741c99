"""Moves the wall clock of a running server, by libfaketime. The monotonic clock is not moved, because no operator and
no time server can move it."""

import glob
import os

LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"
# A Java server with the fix spins in its waits and never serves.
ONLY_THE_WALL_CLOCK = {"FAKETIME_NO_CACHE": 1, "FAKETIME_DONT_FAKE_MONOTONIC": 1, "FAKETIME_FORCE_MONOTONIC_FIX": 0}
LEFT_BEHIND = ("/dev/shm/faketime_shm_%d", "/dev/shm/sem.faketime_sem_%d")


class Clock:
    def __init__(self, folder):
        self.file, self.processes = os.path.join(folder, "clock"), []
        self.move(0)

    def words(self):
        """The words to put before a server's command."""
        settings = {"LD_PRELOAD": _library(), "FAKETIME_TIMESTAMP_FILE": self.file, **ONLY_THE_WALL_CLOCK}
        return ["env"] + ["%s=%s" % item for item in settings.items()]

    def keeps(self, process):
        """Removes what the library leaves behind for killed processes."""
        self.processes.append(process.pid)

    def remove(self):
        for left in [name % pid for pid in self.processes for name in LEFT_BEHIND]:
            if os.path.exists(left):
                os.remove(left)

    def move(self, seconds):
        """From the true time."""
        with open(self.file + ".new", "w") as f:
            f.write("%+d\n" % seconds)
        os.replace(self.file + ".new", self.file)


def _library():
    return next(iter(glob.glob(LIBRARY)), None)


def cannot():
    return None if _library() else "no libfaketime (apt-get install libfaketime)"
