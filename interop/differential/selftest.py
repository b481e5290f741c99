#!/usr/bin/env python3
"""Proves that the differential test can fail: with each kind of planted error it must, and without one it must not."""

import argparse
import os
import subprocess
import sys

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from differential.plant import KINDS

HERE = os.path.dirname(os.path.abspath(__file__))


def run(options, *more):
    command = [
        sys.executable,
        os.path.join(HERE, "run.py"),
        "--a",
        options.server,
        "--b",
        options.server,
        "--requests",
        str(options.requests),
        "--seed",
        str(options.seed),
        "--port",
        str(options.port),
        "--no-restart",
        *(["--ensemble", options.ensemble] if options.ensemble else []),
        *more,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--server", required=True, help="command prefix of the server to compare with itself")
    p.add_argument("--requests", type=int, default=2500)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--ensemble", metavar="N", help="ensembles of N servers")
    p.add_argument("--port", type=int, default=24200)
    options = p.parse_args()
    wrong = []
    for kind in (None,) + KINDS:
        code, output = run(options, *(("--plant", kind) if kind else ()))
        lines = output.splitlines()
        reported = any(line.startswith("DIFFERENCE") for line in lines)
        good = (code, reported) == ((1, True) if kind else (0, False))
        field = next((line.strip() for line in lines if line.startswith("  field")), lines[-2] if lines else "")
        print("%-4s planted %-11s exit %d  %s" % ("ok" if good else "BAD", kind or "nothing", code, field), flush=True)
        if not good:
            wrong.append(kind)
            print(output)
    print("%d passed, %d failed" % (len(KINDS) + 1 - len(wrong), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
