"""`ostler testserver` from Python: the fixtures of pytest/pytest_ostler.py, and tests of kazoo that use them.

It also checks that no server and no folder is left behind, whether the tests end or are killed."""

import os
import subprocess
import time

from harness.outcome import conclude, expect, expect_equal
from harness.peers import INTEROP, need
from harness.server import arguments, work_folder
from testserver.program import ended, ostler, passed

TESTS = os.path.join(INTEROP, "testserver", "pytest")
GONE_WITHIN_S = 30  # more than the program gives its servers to end


def pytest_words(*more):
    python = os.path.join(need("venv"), "bin", "python")
    return [python, "-m", "pytest", "-p", "no:cacheprovider", "-v", *more, TESTS]


def until_gone(pids, folder):
    """Waits until no such process and nothing in the folder is left."""
    until = time.monotonic() + GONE_WITHIN_S
    while any(os.path.exists("/proc/%d" % pid) for pid in pids) or os.listdir(folder):
        expect(time.monotonic() < until, "left behind: %s, %s" % (pids, os.listdir(folder)))
        time.sleep(0.05)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(child) for child in f.read().split()]


def killed_tests_leave_nothing(environment, folder):
    """kill -9 of the tests, while a server runs."""
    tests = subprocess.Popen(pytest_words("-k", "silent"), env=environment, stdout=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 20
        while not (servers := children(tests.pid)) or not os.listdir(folder):
            expect(tests.poll() is None and time.monotonic() < until, "the tests have started no test server")
            time.sleep(0.01)
    finally:
        tests.kill()
        tests.communicate()
    until_gone(servers, folder)


def check():
    args = arguments(__doc__).parse_args()
    folder = work_folder("testserver-pytest")
    environment = dict(os.environ, OSTLER=ostler(args.server), TMPDIR=folder, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(
        pytest_words(), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
    )
    print(done.stdout, flush=True)
    expect_equal(done.returncode, 0, ended(done.returncode, done.stdout))
    number = passed(r"(\d+) passed", done.stdout, least=6)
    until_gone([], folder)
    killed_tests_leave_nothing(environment, folder)
    return "%d tests of kazoo with the fixtures of pytest; nothing is left of them, or of killed ones" % number


if __name__ == "__main__":
    conclude(check)
