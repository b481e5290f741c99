"""Finds the programs that `interop/peers/get` has fetched. If one is missing the check is skipped."""

import os
import shutil

from .outcome import Skip

INTEROP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHECKOUT = os.path.dirname(INTEROP)
PEERS = os.path.expanduser(os.environ.get("OSTLER_PEERS") or "~/.cache/ostler-peers")
LAUNCHER = os.path.join(INTEROP, "peers", "zookeeper")


def need(part: str) -> str:
    """The path of a part (zk39, zk38, venv, cli_mt, cli_secure, node)."""
    path = os.path.join(PEERS, part)
    if os.path.exists(path + ".done"):
        return path
    try:
        with open(path + ".missing") as f:
            raise Skip(f.read().strip())
    except FileNotFoundError:
        raise Skip("no %s: run interop/peers/get" % part) from None


def need_program(name: str) -> str:
    path = shutil.which(name)
    if not path:
        raise Skip("no %s on this machine" % name)
    return path


def java_server(version: str) -> str:
    """The command prefix that starts a Java server of '3.9' or '3.8'."""
    need("zk" + version.replace(".", ""))
    return "%s %s" % (LAUNCHER, version)
