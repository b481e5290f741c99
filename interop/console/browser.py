"""The console of a real ensemble in a real browser (crates/console/tests/browser).

python3 interop/run.py console.browser [--server CMD] [--port N]"""

import os
import shutil
import subprocess

from harness.outcome import Mismatch, conclude
from harness.peers import CHECKOUT, need, need_program
from harness.server import arguments, command


def alone():
    """The words before a command that give it a network of its own, where this machine lets us. Other checks make and
    remove network interfaces, and at each such change Chromium breaks off what it loads (ERR_NETWORK_CHANGED)."""
    words = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if not shutil.which("unshare") or not shutil.which("ip"):
        return []
    tried = subprocess.run([*words, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return words if tried.returncode == 0 else []


def check():
    args = arguments(__doc__).parse_args()
    need("console")
    run = os.path.join(CHECKOUT, "crates", "console", "tests", "browser", "run.mjs")
    words = [need_program("node"), run, "--server", command(args.server)[0], "--port", str(args.port)]
    done = subprocess.run(alone() + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, flush=True)
    if done.returncode != 0:
        failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
        raise Mismatch("; ".join(failed) or "run.mjs ended with %d" % done.returncode)
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    conclude(check)
