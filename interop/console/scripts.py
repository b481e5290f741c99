"""The scripts of the console: their unit tests, and their types.

python3 interop/run.py console.scripts"""

import glob
import os
import subprocess

from harness.outcome import Mismatch, conclude
from harness.peers import CHECKOUT, need, need_program
from harness.server import arguments

CONSOLE = os.path.join(CHECKOUT, "crates", "console")


def check():
    arguments(__doc__).parse_args()
    modules = os.path.join(need("console"), "node_modules")
    tests = sorted(glob.glob(os.path.join(CONSOLE, "tests", "js", "*.test.js")))
    node = need_program("node")
    run(node, "--test", *tests)
    run(node, os.path.join(modules, "typescript", "bin", "tsc"), "--project", os.path.join(CONSOLE, "tsconfig.json"))
    return "%d files of unit tests, and all types fit" % len(tests)


def run(*words):
    done = subprocess.run(words, cwd=CONSOLE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, flush=True)
        raise Mismatch("%s ended with %d" % (os.path.basename(words[1]), done.returncode))


if __name__ == "__main__":
    conclude(check)
