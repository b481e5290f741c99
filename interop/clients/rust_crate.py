"""The Rust crate `zookeeper-client` (rust-zookeeper-client/), its lock recipe, and the end of its sessions."""

import os
import subprocess

from harness.outcome import conclude, expect, expect_equal
from harness.peers import INTEROP, PEERS, need_program
from harness.program import Program, die_and_freeze
from harness.server import Server, arguments, work_folder

SESSION_MS = 3000  # as in main.rs


def build():
    """Built beside the other peers, so that the checkout stays as it is."""
    cargo = need_program("cargo")
    target = os.path.join(PEERS, "rust-zookeeper-client")
    cmd = [
        cargo,
        "build",
        "--quiet",
        "--manifest-path",
        os.path.join(INTEROP, "clients", "rust-zookeeper-client", "Cargo.toml"),
        "--target-dir",
        target,
    ]
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(p.returncode == 0, "cargo build failed: " + p.stdout[-1500:])
    return os.path.join(target, "debug", "rust-zookeeper-client-check")


def check():
    args = arguments(__doc__).parse_args()
    binary = build()

    def program(*words):
        return Program([binary, "127.0.0.1:%d" % args.port, *words])

    with Server(args.server, work_folder("rust"), args.port):
        everything = program()
        everything.wait_for(r"^all operations work$", timeout=60)
        expect_equal(everything.finish(), 0, "exit code of the client")
        dying, frozen = program("hold", "/dying"), program("hold", "/frozen")
        dying.wait_for(r"^holding$")
        frozen.wait_for(r"^holding$")
        die_and_freeze(args.port, dying, "/dying", frozen, "/frozen", SESSION_MS)
        frozen.wait_for(r"^expired$")
    return "the Rust crate's operations, watches, locks and sessions"


if __name__ == "__main__":
    conclude(check)
