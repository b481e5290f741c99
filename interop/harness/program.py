"""A client program that is driven line by line: send a line, wait for the output that should follow."""

import atexit
import os
import re
import signal
import subprocess
import threading
import time

from .outcome import expect
from .session import Session


class Program:
    def __init__(self, words, cwd=None, env=None):
        self.process = subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        atexit.register(self.kill)
        self.output, self.seen, self.last_line = "", 0, "start"
        self.more = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            with self.more:
                self.output += chunk.decode("utf-8", "replace")
                self.more.notify_all()
        with self.more:
            self.output += "\n(end of output)\n"
            self.more.notify_all()

    def send(self, line):
        self.last_line = line
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it ended: the wait that follows shows its last words

    def wait_for(self, pattern, timeout=20):
        """Waits for a match, and returns the output up to its end; `^` and `$` match at lines."""
        wanted = re.compile(pattern, re.M)
        until = time.monotonic() + timeout
        with self.more:
            while not (match := wanted.search(self.output, self.seen)):
                left = until - time.monotonic()
                new = self.output[self.seen :]
                expect(
                    left > 0 and not new.endswith("(end of output)\n"),
                    "after `%s` no %r came, but: %s" % (self.last_line, pattern, new[-700:].strip()),
                )
                self.more.wait(left)
            self.seen = match.end()
            return match

    def ask(self, line, pattern, timeout=20):
        self.send(line)
        return self.wait_for(pattern, timeout)

    def finish(self, timeout=20):
        """Waits until the program ends by itself. Returns the exit code."""
        self.process.stdin.close()
        return self.process.wait(timeout)

    def pause(self):
        os.killpg(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.killpg(self.process.pid, signal.SIGCONT)

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        atexit.unregister(self.kill)


def wait_until_gone(port, path, within):
    """Waits until an ephemeral is gone, watched by another client."""
    began = time.monotonic()
    s = Session(port)
    try:
        while s.exists(path):
            expect(time.monotonic() < began + within, "%s is still there after %.1f s" % (path, within))
            time.sleep(0.05)
    finally:
        s.close()


def die_and_freeze(port, dying, dying_path, frozen, frozen_path, timeout_ms):
    """Kill one client, stop another for longer than its session lasts: the ephemerals of both go, but not too early."""
    s = Session(port)
    for path in (dying_path, frozen_path):
        expect(s.exists(path), "%s is not there" % path)
    s.close()
    frozen.pause()
    began = time.monotonic()
    dying.kill()
    seconds = timeout_ms / 1000
    for path in (dying_path, frozen_path):
        wait_until_gone(port, path, within=2 * seconds + 5)
        if path == dying_path:
            took = time.monotonic() - began
            expect(took > seconds / 4, "%s went after %.1f s of a session of %.1f s" % (path, took, seconds))
    frozen.resume()
