#!/usr/bin/env python3
"""Runs real servers under load, and injects real faults, one or several at a time, from a seed.

    sudo python3 chaos/run.py --servers 3 --minutes 20 --seed 1
    sudo python3 chaos/run.py --servers 5 --minutes 10 --beside     Ostler, then Java ZooKeeper, side by side

Each server has its own network namespace and disk. After every few faults the load rests, and all answers to clients
and the trees of all servers are checked. At the end a table of faults and verdicts is printed."""

import os
import random
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Documents run this file by its path, so it finds the packages of interop/ and chaos/ by itself.
CHECKOUT = os.path.dirname(HERE)
sys.path[:0] = [CHECKOUT, os.path.join(CHECKOUT, "interop")]

from chaos.campaign import LOOK_EVERY, Campaign
from chaos.faults import KINDS
from chaos.plan import every_kind_once, rounds
from chaos.report import Report, beside, shortly, table
from harness.outcome import Mismatch, Skip, conclude, expect
from harness.peers import need_program
from harness.server import arguments, command, work_folder

PEER = "java3.9"
LONGEST_S = 4 * 3600
WRONG_MAX = 50
PORTS = 100  # for each make


def chosen(names):
    """The kinds of faults that this machine can inject, and why it cannot inject the others."""
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise Mismatch("no fault is called %s; there are %s" % (", ".join(unknown), ", ".join(KINDS)))
    kinds = [KINDS[name] for name in names]
    lacking = {kind.name: kind.cannot() for kind in kinds if kind.cannot()}
    return [kind for kind in kinds if kind.name not in lacking], lacking


def campaign(report, args, port, wrong_max=WRONG_MAX):
    """Runs one make of server for its time or its rounds."""
    server, kinds = report.server, report.kinds
    chance = random.Random("plan %d" % args.seed)
    plan = every_kind_once(kinds, args.servers, chance) if args.short else rounds(kinds, args.servers, chance)
    until = time.monotonic() + (LONGEST_S if args.short else args.minutes * 60)
    look_every = sys.maxsize if args.short else LOOK_EVERY  # rounds; in any case at the end
    print(
        "%s: %d servers, seed %d, %s"
        % (server, args.servers, args.seed, "every fault once" if args.short else "%g minutes" % args.minutes),
        flush=True,
    )
    # After an error the rest of the plan goes on with a new ensemble.
    while not Campaign(server, args.servers, port, args.seed, kinds, report).run(plan, until, look_every):
        if time.monotonic() > until or len(report.wrong) >= wrong_max:
            break


def lying(server):
    """The server's command with a bug: it acknowledges writes that are not on disk."""
    library = os.path.join(work_folder("chaos-plant"), "lying_sync.so")
    subprocess.run(
        [need_program("cc"), "-shared", "-fPIC", "-o", library, os.path.join(HERE, "lying_sync.c")], check=True
    )
    return "env LD_PRELOAD=%s %s" % (library, shlex.join(command(server)))


def caught(args):
    """Whether the checks find the planted bug."""
    report = Report(lying(args.server), [KINDS["power-cut-all"], KINDS["kill-leader"]])
    campaign(report, args, args.port, wrong_max=1)
    expect(report.wrong, "a server that acknowledges what is not on disk was not found out")
    return "the planted bug was found after %d rounds: %s" % (report.rounds, shortly(report.wrong[0]))


def check():
    parser = arguments(__doc__)
    parser.add_argument("--servers", type=int, default=3, help="of the ensemble: 3 or 5 (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=5, help="of each make (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default=",".join(KINDS), help="kinds, comma-separated (default: all)")
    parser.add_argument("--short", action="store_true", help="every fault once and shortly, whatever the minutes")
    parser.add_argument("--beside", action="store_true", help="then the same with " + PEER)
    parser.add_argument("--plant", action="store_true", help="break the sync of the log: it must be found out")
    args = parser.parse_args()
    if os.geteuid() != 0:
        raise Skip("namespaces, disks and control groups take root")
    if args.plant:
        return caught(args)
    servers = [args.server] + ([PEER] if args.beside else [])
    for server in servers:
        command(server)
    kinds, lacking = chosen(args.faults.split(","))
    for name, why in lacking.items():
        print("not on this machine: %s: %s" % (name, why), flush=True)
    reports = [Report(server, kinds) for server in servers]
    for n, report in enumerate(reports):
        try:
            campaign(report, args, args.port + PORTS * n)
        finally:  # a run that is interrupted prints its results, too
            print("\n" + table(report, lacking), flush=True)
    if args.beside:
        print("\n" + beside(*reports), flush=True)
    mine = reports[0]
    if mine.wrong:
        raise Mismatch(
            "seed %d, %d servers: %s" % (args.seed, args.servers, "; ".join(shortly(text) for text in mine.wrong[:3]))
        )
    return "seed %d, %d servers: %s%s" % (
        args.seed,
        args.servers,
        mine.summary(),
        "; not on this machine: " + ", ".join(lacking) if lacking else "",
    )


if __name__ == "__main__":
    conclude(check)
