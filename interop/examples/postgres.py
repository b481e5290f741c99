"""A PostgreSQL server of the check's own, in a temporary folder."""

import atexit
import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from harness.outcome import Mismatch, Skip

USER = "postgres"
# Nothing here has to survive the machine.
OPTIONS = ("fsync=off", "synchronous_commit=off", "max_connections=20", "shared_buffers=16MB")
START_S = 20


def program(name):
    """The path of one of PostgreSQL's programs. Debian has those of the server outside of PATH."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/" + name)) or [shutil.which(name)]
    if not found[-1]:
        raise Skip("no PostgreSQL on this machine (apt-get install -y postgresql)")
    return found[-1]


def account():
    """The user that runs the server; None for the present one. PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(USER)
    except KeyError:
        raise Skip("no user %s, and PostgreSQL does not run as root" % USER) from None
    return USER


class Postgres:
    def __init__(self, port):
        self.port, self.user = port, account()
        self.folder = tempfile.mkdtemp(prefix="ostler-postgres-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        if self.user:
            shutil.chown(self.folder, self.user)
        self.data = os.path.join(self.folder, "data")
        self.process = None

    def start(self):
        self._run(program("initdb"), "-D", self.data, "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8")
        words = [program("postgres"), "-D", self.data, "-k", self.folder, "-p", str(self.port)]
        words += ["-c", "listen_addresses=127.0.0.1"]
        for option in OPTIONS:
            words += ["-c", option]
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self._as(),
            )
        atexit.register(self.stop)
        until = time.monotonic() + START_S
        while True:
            try:
                self.rows("SELECT 1")
                return self
            except Mismatch:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def _as(self):
        return {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []} if self.user else {}

    def _run(self, *words):
        p = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, check=False, **self._as())
        if p.returncode:
            raise Mismatch("%s: %s" % (" ".join(words[:3]), (p.stdout + p.stderr)[-700:]))

    def _psql(self, *words):
        options = ["-X", "-A", "-t", "-F", "\t", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        return [program("psql"), *options, *words, USER]

    @contextlib.contextmanager
    def locked(self, table):
        """Statements about the table have no answer meanwhile."""
        pipe = subprocess.PIPE
        with subprocess.Popen(self._psql("-q"), stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as psql:
            psql.stdin.write("BEGIN; LOCK TABLE %s;\n\\echo locked\n" % table)
            psql.stdin.flush()
            said = psql.stdout.readline()
            if said != "locked\n":
                raise Mismatch("LOCK TABLE %s: %s" % (table, said))
            yield
            psql.stdin.close()  # its transaction ends with it

    def rows(self, sql):
        """The rows of a query, each as a list of texts."""
        p = subprocess.run(self._psql("-c", sql), capture_output=True, text=True, check=False)
        if p.returncode:
            raise Mismatch("%s: %s" % (sql, p.stderr[-500:]))
        return [line.split("\t") for line in p.stdout.splitlines()]

    def address(self):
        """As the option --postgres has it."""
        return "host=127.0.0.1 port=%d user=%s dbname=%s" % (self.port, USER, USER)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # ends connections at once, and gives its shared memory back
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
