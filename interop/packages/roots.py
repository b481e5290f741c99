"""Root file systems: a fresh Debian, and programs that run in a root file system as a user of it."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping

from harness.outcome import Skip, expect
from harness.peers import CHECKOUT, need
from harness.server import command, four_letter_word

PACKAGING = os.path.join(CHECKOUT, "packaging")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def need_root() -> None:
    if os.geteuid() != 0:
        raise Skip("not root: chroot needs it")


def binary(server: str) -> str:
    """The program of a server command such as `target/release/ostler server`."""
    words = command(server)
    if len(words) != 2 or words[1] != "server":
        raise Skip("the packages hold Ostler, not %s" % server)
    return words[0]


def packaging_environment() -> dict[str, str]:
    """With the programs that `interop/peers/get packages` has installed."""
    tools = need("packages")
    return dict(os.environ, PATH=os.path.join(tools, "bin") + os.pathsep + os.environ["PATH"])


def build(*words: str) -> None:
    """Runs packaging/build. What it prints is shown."""
    subprocess.run([os.path.join(PACKAGING, "build"), *words], check=True, env=packaging_environment())


def fresh_debian(folder: str) -> str:
    """A copy of the system that debootstrap has made."""
    root = os.path.join(folder, "debian")
    subprocess.run(["cp", "-a", os.path.join(need("packages"), "debian"), root], check=True)
    return root


def in_root(root: str, *words: str, environment: Mapping[str, str] | None = None) -> str:
    """Runs a program as root in a root file system. Returns its output."""
    env = {"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", **(environment or {})}
    done = subprocess.run(
        ["chroot", root, *words],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    expect(done.returncode == 0, "%s: exit code %d: %s" % (" ".join(words), done.returncode, done.stdout[-2000:]))
    return done.stdout


class Manager:
    """Takes the place of systemd: the socket on which a service says how it is."""

    def __init__(self, root: str) -> None:
        os.makedirs(os.path.join(root, "run"), exist_ok=True)
        path = os.path.join(root, "run", "notify")
        if os.path.exists(path):
            os.remove(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        os.chmod(path, 0o777)
        self.environment = {"NOTIFY_SOCKET": "/run/notify"}

    def wait_for(self, word: str, timeout: float = 30) -> None:
        """Waits for a message with this line."""
        until = time.monotonic() + timeout
        heard = []
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                lines = self.socket.recv(4096).decode().splitlines()
            except TimeoutError:
                break
            heard += lines
            if word in lines:
                return
        raise AssertionError("no %s on the socket of systemd in %d s, but %s" % (word, timeout, heard))


class Contained:
    """A program that runs in a root file system as a user of it, with an environment of its own."""

    def __init__(self, root: str, user: str, words: list[str], environment: dict[str, str], log: str) -> None:
        self.log = log
        with open(log, "ab") as out:
            self.process = subprocess.Popen(
                ["chroot", "--userspec=" + user, root, *words],
                env=dict(environment, PATH=PATH),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def wait_serving(self, port: int, timeout: float = 60) -> str:
        """Waits until it serves. Returns its mode."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            expect(self.process.poll() is None, "ended with %s: %s" % (self.process.returncode, self.tail()))
            try:
                answer = four_letter_word(port, "srvr")
            except OSError:
                answer = ""
            if "Mode: " in answer:
                return answer.split("Mode: ")[1].split()[0]
            time.sleep(0.05)
        raise AssertionError("does not serve at port %d: %s" % (port, self.tail()))

    def tail(self, size: int = 1500) -> str:
        with open(self.log, errors="replace") as f:
            return f.read()[-size:]

    def stop(self, number: int = signal.SIGTERM, timeout: float = 30) -> int:
        """Returns the exit code."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        return self.process.wait(timeout)

    def __enter__(self) -> "Contained":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
