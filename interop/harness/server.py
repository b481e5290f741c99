"""One server of any make: its folder and zoo.cfg, start, wait until it serves, stop, kill."""

import argparse
import atexit
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from .address import connect
from .outcome import Skip
from .peers import CHECKOUT, java_server

OSTLER = "target/release/ostler server"
BASE_PORT = int(os.environ.get("OSTLER_INTEROP_PORT", "24300"))
TICK = 500  # ms; sessions may then be as short as one second

# Java reads these from -D only, and an Ostler from zoo.cfg: both are given.
RAW_PROPERTIES = (
    "znode.container.checkIntervalMs",
    "jute.maxbuffer",
    "readonlymode.enabled",
    "java.security.auth.login.config",
    "java.security.krb5.conf",
)


class NotServing(Exception):
    """A server ended or stayed silent; the text carries the end of its log."""


def arguments(description, **more):
    """The argument parser that all scripts share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--server",
        default=OSTLER,
        metavar="CMD",
        help="command prefix of the server under test, followed by the zoo.cfg; java3.9 and java3.8 "
        "are short for the real ones (default: %(default)s)",
    )
    parser.add_argument("--port", type=int, default=BASE_PORT, help="first port to use (default: %(default)s)")
    for name, options in more.items():
        parser.add_argument("--" + name.replace("_", "-"), **options)
    return parser


def command(text):
    """Words of a server command, with paths in the checkout made absolute."""
    if text.startswith("java"):
        text = java_server(text[len("java") :])
    words = shlex.split(text)
    inside = os.path.join(CHECKOUT, words[0])
    if os.sep in words[0] and os.path.exists(inside):
        words[0] = inside
    if not shutil.which(words[0]):
        raise Skip("no server program %s (cargo build --release makes Ostler's)" % words[0])
    return words


def available(commands):
    """Of comma-separated commands those that this machine can run, and why not the others."""
    found, reasons = [], []
    for text in filter(None, commands.split(",")):
        try:
            command(text)
            found.append(text)
        except Skip as why:
            reasons.append("%s: %s" % (text, why))
    return found, reasons


def work_folder(name):
    """A fresh folder for one run, removed at the end; kept if OSTLER_KEEP is set."""
    path = tempfile.mkdtemp(prefix="ostler-%s-" % name)
    if os.environ.get("OSTLER_KEEP"):
        print("keeping %s" % path)
    else:
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def four_letter_word(port, word, timeout=2.0):
    with connect(port, timeout) as s:
        s.sendall(word.encode())
        answer = b""
        while chunk := s.recv(65536):
            answer += chunk
        return answer.decode("utf-8", "replace")


class Server:
    """`settings` are zoo.cfg keys beyond the usual ones (dots written as in zoo.cfg). None leaves a usual one out."""

    def __init__(self, cmd, folder, port, settings=None):
        self.words = command(cmd)
        self.folder, self.port = folder, port
        self.data = os.path.join(folder, "data")
        self.log = os.path.join(folder, "log")
        self.settings = dict(settings or {})
        self.process: subprocess.Popen[bytes] | None = None
        os.makedirs(self.data, exist_ok=True)

    def _write_config(self):
        keys = {
            "tickTime": TICK,
            "dataDir": self.data,
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "4lw.commands.whitelist": "*",
            "admin.enableServer": "false",
            "extendedTypesEnabled": "true",
            **self.settings,
        }
        path = os.path.join(self.folder, "zoo.cfg")
        with open(path, "w") as f:
            f.writelines("%s=%s\n" % item for item in keys.items() if item[1] is not None)
        return path

    def start(self, timeout=60):
        assert self.process is None, "start of a running server"
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", self.port)) == 0:
                raise NotServing("port %d is in use by another program: give --port" % self.port)
        flags = ["-D%s=%s" % (k, self.settings[k]) for k in RAW_PROPERTIES if k in self.settings]
        env = dict(os.environ, JAVA_TOOL_OPTIONS=" ".join(flags)) if flags else None
        config = self._write_config()
        with open(self.log, "ab") as log:
            log.write(b"--- start %s\n" % shlex.join(self.words).encode())
            log.flush()
            self.process = subprocess.Popen(
                self.words + [config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=env,
                start_new_session=True,
            )
        atexit.register(self.kill)
        self._wait(timeout)
        return self

    def _wait(self, timeout):
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if self.process.poll() is not None:
                code, self.process = self.process.returncode, None
                raise NotServing("server ended with %s at start: %s" % (code, self.log_tail()))
            try:
                if "Mode:" in four_letter_word(self.port, "srvr"):
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise NotServing("server did not serve within %d s: %s" % (timeout, self.log_tail()))

    def log_tail(self, size=1200):
        with open(self.log, errors="replace") as f:
            return f.read()[-size:]

    def signal(self, number):
        os.killpg(self.process.pid, number)  # its own process group: only what was started here

    def stop(self, timeout=20):
        """Stops the server with SIGTERM. Returns the exit code."""
        return self._end(signal.SIGTERM, timeout)

    def kill(self):
        """kill -9."""
        return self._end(signal.SIGKILL, 10)

    def _end(self, number, timeout):
        if self.process is None:
            return None
        try:
            self.signal(number)
        except ProcessLookupError:
            pass
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            code = self.process.wait()
        self.process = None
        atexit.unregister(self.kill)
        return code

    def __enter__(self):
        return self.start() if self.process is None else self

    def __exit__(self, *_):
        self.kill()
