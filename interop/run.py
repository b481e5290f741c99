#!/usr/bin/env python3
"""Tests Ostler with real programs: clients, kazoo's tests, a comparison with Java, and data folders that move.

    python3 interop/run.py [--server CMD] [--only clients,recipes,kazoo,differential,security,counters,...] [--quick]
    python3 interop/run.py ensemble.storm [--help|...]     one check, by its module, with its own arguments

It first lets interop/peers/get fetch what is missing. Then each check ends with one line, `ok|FAILED|skipped NAME
(seconds) reason`; the output of each check is in target/interop/. Checks whose programs are missing on this machine are
skipped; with CI=true that is a failure."""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from harness.outcome import FAILED, OK, SKIPPED, Skip
from harness.peers import CHECKOUT, INTEROP, java_server
from harness.server import OSTLER, arguments, command

LOGS = os.path.join(CHECKOUT, "target", "interop")
CI = os.environ.get("CI") == "true"
LONGEST_S = {True: 900, False: 1500}  # of one check, quick and not
SHOWN_LINES = 25  # of the log of each check that failed, shown again at the end


class Check(NamedTuple):
    """A check: a module that runs as a program, and its arguments or a function that gives them."""

    name: str
    module: str
    arguments: list[str] | Callable[[], list[str]]


# Much of a quick check is waiting, so two go on at a time, each lane on ports of its own. The figures of
# the long ones must not depend on each other.
QUICK_LANES = (
    ("clients", "recipes", "kazoo", "differential", "security", "console", "testserver"),
    ("book", "examples", "counters", "admin", "disk", "ensemble", "abuse", "packages", "chaos"),
)
PORTS_OF_A_LANE = 1000

# Of kazoo's tests those of TLS and SASL.
KAZOO_SECURE = ["--tls", "--sasl", "--kerberos", "--select", "SSL or SASL"]

PEERS_OF = {
    "clients": ["zk39", "zk38", "cli_mt", "node"],
    "recipes": ["zk39", "venv"],
    "kazoo": ["venv"],
    "differential": ["zk39"],
    "book": ["mdbook", "venv", "zk39"],
    "counters": ["zk39"],
    "admin": ["zk38", "zk38_admin", "monitoring"],
    "disk": ["zk39", "zk38", "moto"],
    "ensemble": ["zk39", "zk38", "venv"],
    "abuse": [],
    "security": ["zk39", "zk38", "venv", "gssapi", "kerberos", "cli_secure"],
    "packages": ["packages"],
    "console": ["console"],
    "testserver": ["venv", "zk39", "junit"],
    "examples": ["postgres", "junit"],
    "chaos": ["faults", "zk39"],
}


def checks(args, port):
    """{part: its checks}; the servers of all of them take their ports from this one on."""
    quick = ["--quick"] if args.quick else []
    common = ["--server", args.server, "--port", str(port)]

    def on_java(version):
        return ["--server", "java" + version, "--port", str(port)]

    with_shell = ["--ostler", OSTLER.split()[0]]

    return {
        "clients": [
            Check("java-shell-3.9", "clients.java_shell", common + ["--version", "3.9"]),
            Check("java-shell-3.8", "clients.java_shell", common + ["--version", "3.8"]),
            Check("curator", "clients.curator", common),
            Check("c-shell", "clients.c_shell", common),
            Check("npm-client", "clients.npm", common),
            Check("rust-crate", "clients.rust_crate", common),
            Check("digests", "clients.digests", common),
            Check("access", "abuse.access", common),
            Check("descriptors", "abuse.descriptors", common),
            Check("words", "abuse.words", common + (["--watches", "40000", "--words", "40"] if args.quick else [])),
            Check("names", "abuse.names", common),
            Check("throttles", "abuse.throttles", common),
            Check("throttles-java-3.9", "abuse.throttles", on_java("3.9")),
            Check("abuse-sessions", "abuse.sessions", common),
            Check("abuse-sessions-secret", "abuse.sessions", common + ["--secret"]),
            Check("abuse-sessions-java-3.9", "abuse.sessions", on_java("3.9")),
            Check("own-shell", "clients.ostler_shell", common),
            Check("own-shell-java-3.9", "clients.ostler_shell", on_java("3.9")),
            Check("own-client", "clients.ostler_client", common),
            Check("own-client-java-3.9", "clients.ostler_client", on_java("3.9")),
            Check("own-client-java-3.8", "clients.ostler_client", on_java("3.8")),
        ],
        "recipes": [
            Check("recipes-data", "recipes.data", common),
            Check("console-groups", "recipes.console_groups", common),
            Check("contend", "recipes.contend", common + quick),
            Check(
                "contend-java-3.9",
                "recipes.contend",
                on_java("3.9") + quick + (["--recipes", "latch,mutex"] if quick else []),
            ),
            Check("fencing", "recipes.fencing", common + quick),
            Check("cut-off", "recipes.cut_off", common + quick),
            Check("herd", "recipes.herd", common + quick),
        ]
        + (
            []
            if args.quick
            else [
                Check("fencing-java-3.9", "recipes.fencing", on_java("3.9")),
                Check("cut-off-java-3.9", "recipes.cut_off", on_java("3.9")),
                Check("cut-off-java-3.8", "recipes.cut_off", on_java("3.8")),
                Check("herd-java-3.9", "recipes.herd", on_java("3.9")),
            ]
        ),
        "security": [
            Check("quorum-tls", "security.quorum_tls", common),
            Check("rotation", "security.rotation", common),
            Check("secure-page", "security.page", common + quick),
            Check("quorum-sasl", "security.quorum_sasl", common),
            Check("quorum-kerberos", "security.quorum_sasl", common + ["--kerberos"]),
            Check("security-clients", "security.clients", common),
            Check("c-client-secure", "security.c_client", common),
            Check("kerberos", "security.kerberos", common),
            Check("kazoo-secure", "kazoo_suite", common + KAZOO_SECURE),
            Check("handshake-flood", "security.flood", common),
            Check("strict", "security.strict", common),
        ]
        + (
            []
            if args.quick
            else [
                Check("rotation-mixed", "security.rotation", common + ["--peers", "java3.9,java3.9"]),
                Check("quorum-tls-jks", "security.quorum_tls", common + ["--kind", "jks"]),
                Check("quorum-tls-p12", "security.quorum_tls", common + ["--kind", "p12"]),
                Check("kazoo-secure-three", "kazoo_suite", common + KAZOO_SECURE + ["--servers", "3"]),
                Check("kazoo-tls", "kazoo_suite", common + ["--tls", "--sasl", "--kerberos"]),
                Check("c-client-secure-java-3.9", "security.c_client", on_java("3.9") + with_shell),
                Check("kerberos-java-3.9", "security.kerberos", on_java("3.9") + with_shell),
                Check("security-clients-java-3.9", "security.clients", on_java("3.9") + with_shell),
            ]
        ),
        "kazoo": [Check("kazoo-suite", "kazoo_suite", common + quick)],
        "differential": [
            Check("differential", "differential.run", lambda: differential_arguments(args, port)),
            # A tenth of the requests: after each, three servers a side have to be level.
            Check(
                "differential-ensemble",
                "differential.run",
                lambda: differential_arguments(args, port, divisor=10) + ["--ensemble", "3"],
            ),
        ],
        "admin": [
            Check("admin-commands", "admin.commands", common),
            Check("admin-metrics", "admin.metrics", common),
            Check("admin-access", "admin.access", common),
            Check("traces", "admin.traces", common),
            Check("handbook", "admin.handbook", common),
        ],
        "book": [Check("book", "book.run", common)],
        "counters": [
            Check("counters", "counters.run", common),
            Check("connections", "counters.connections", common),
            Check("audit", "audit.lines", common),
        ],
        "disk": [
            Check("handover", "disk.handover", common + quick),
            Check("backup", "disk.backup", common + with_shell),
            Check("inspect", "disk.inspect", common + quick),
            Check("links", "abuse.links", common),
            Check("kill-9", "disk.kill9", common + ["--rounds", "10" if args.quick else str(args.rounds)]),
        ]
        # A program with S3 takes long to build.
        + ([] if args.quick else [Check("backup-s3", "disk.backup_s3", common + with_shell)]),
        "ensemble": [
            Check("ensemble-load", "ensemble.load", common),
            Check("storm-3", "ensemble.storm", common + ["--size", "3"] + quick),
            Check("storm-5", "ensemble.storm", common + ["--size", "5", "--rounds", "10" if args.quick else "100"]),
            Check("mixed", "ensemble.mixed", common + (["--kills", "2"] if args.quick else []) + quick),
            Check("migrate", "ensemble.migrate", common),
            Check("secrets", "ensemble.secrets", common),
            Check("session-ends", "ensemble.session_ends", common + quick),
            Check("reconfig", "ensemble.reconfig", common),
            Check("unlisted", "ensemble.unlisted", common),
            Check("old-data", "ensemble.old_data", common),
            Check("local-sessions", "ensemble.local_sessions", common + quick),
            Check("read-only", "ensemble.read_only", common + quick),
            Check("observers", "ensemble.observers", common + (["--peers", "java3.9"] if args.quick else [])),
            Check("session-storm", "ensemble.session_storm", common + (["--sessions", "1000"] if args.quick else [])),
            Check("failover", "ensemble.failover", common + ["--rounds", "3" if args.quick else "50"]),
            Check("emptied", "ensemble.emptied", common + (["--peers", "java3.9"] if args.quick else [])),
            Check("lost-disk", "ensemble.lost_disk", common),
            Check("idle-epoch", "ensemble.idle_epoch", common),
            Check("counter-end", "ensemble.counter_end", common),
            Check("rolling", "ensemble.rolling", common),
            Check("from-one", "ensemble.from_one", common),
            Check("fake-peers", "abuse.peers", common),
            Check(
                "catch-up",
                "ensemble.catchup",
                common + (["--writes", "100000", "--nodes", "10000"] if args.quick else []),
            ),
        ],
        "abuse": [
            Check("lost-watch", "abuse.lost_watch", common),
            Check("slow-reader", "abuse.slow_reader", common),
            Check("unread-answers", "abuse.unread_answers", common),
            Check("bad-frame", "abuse.bad_frame", common),
        ],
        "packages": [
            Check("package-chart", "packages.chart", []),
            Check("package-deb", "packages.deb", common),
            Check("package-image", "packages.image", common),
        ],
        "console": [
            Check("console-scripts", "console.scripts", []),
            Check("console-browser", "console.browser", common),
            Check("console-rights", "console.rights", common),
        ],
        "testserver": [
            Check("testserver-pytest", "testserver.with_pytest", common),
            Check("testserver-junit", "testserver.with_junit", common),
            Check("testserver-page", "testserver.page", common),
        ],
        "examples": [
            Check("examples-" + name, "examples.run", common + ["--only", name])
            for name in ("jobs", "config", "gateway", "shards", "rate", "end")
        ]
        + [Check("examples-page", "examples.page", common)],
        "chaos": [Check("chaos-checks", "chaos.tests.run", []), Check("chaos", "chaos.run", common + ["--short"])]
        + (
            []
            if args.quick
            else [
                Check("chaos-plant", "chaos.run", common + ["--plant"]),
                Check("chaos-3", "chaos.run", common + ["--servers", "3", "--minutes", "10", "--beside"]),
                Check("chaos-5", "chaos.run", common + ["--servers", "5", "--minutes", "15"]),
            ]
        ),
    }


def in_lanes(args):
    """The chosen checks, in lists that may run beside each other."""
    lists = []
    for at, parts in enumerate(QUICK_LANES if args.quick else [tuple(PEERS_OF)]):
        of_part = checks(args, args.port + at * PORTS_OF_A_LANE)
        lists.append([check for part in parts if part in args.only for check in of_part[part]])
    return lists


def differential_arguments(args, port, divisor=1):
    requests = (20000 if args.quick else args.requests) // divisor
    return [
        "--a",
        java_server("3.9"),
        "--b",
        shlex.join(command(args.server)),
        "--requests",
        str(requests),
        "--port",
        str(port),
    ]


def environment():
    """The environment in which Python finds the packages of the checks."""
    return dict(os.environ, PYTHONPATH=os.pathsep.join([INTEROP, CHECKOUT]))


def become(module, words):
    """Replaces this process with one check, which gets its own arguments."""
    os.execve(sys.executable, [sys.executable, "-m", module, *words], environment())


def fetch_peers(parts):
    wanted = dict.fromkeys(peer for part in parts for peer in PEERS_OF[part])
    p = subprocess.run(
        [sys.executable, os.path.join(INTEROP, "peers", "get"), *wanted], stdout=subprocess.PIPE, text=True
    )
    for line in p.stdout.splitlines():
        if line.startswith(("got", "missing")):
            print(line, flush=True)


class Lanes:
    """Runs lists of checks beside each other, and counts the results."""

    def __init__(self, quick):
        self.quick = quick
        self.count = {OK: 0, FAILED: 0, SKIPPED: 0}
        self.failures = []  # (what was printed, the path of its log)
        self._printing = threading.Lock()
        self._given_up = threading.Event()

    def run(self, lanes):
        with ThreadPoolExecutor(len(lanes)) as threads:
            try:
                for lane in [threads.submit(self._in_turn, checks) for checks in lanes]:
                    lane.result()
            finally:  # an interruption reaches this thread alone
                self._given_up.set()

    def _in_turn(self, lane):
        for check in lane:
            if self._given_up.is_set():
                return
            began = time.monotonic()
            outcome, reason = run(check, self.quick, self._given_up)
            if outcome == SKIPPED and CI:
                outcome, reason = FAILED, "skipped, which CI must not: " + reason
            word = {OK: "ok", FAILED: "FAILED", SKIPPED: "skipped"}[outcome]
            with self._printing:
                self.count[outcome] += 1
                line = "%s %s (%.0f s) %s" % (word, check.name, time.monotonic() - began, reason)
                print(line, flush=True)
                if outcome == FAILED:
                    self.failures.append((line, log_of(check)))


def log_of(check):
    return os.path.join(LOGS, check.name + ".log")


def run(check, quick, given_up):
    """Runs one check. Returns (outcome, reason)."""
    try:
        words = check.arguments() if callable(check.arguments) else check.arguments
    except Skip as why:
        return SKIPPED, str(why)
    log_path = log_of(check)
    with open(log_path, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", check.module, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment(),
        )
        try:
            code = ended(process, time.monotonic() + LONGEST_S[quick], given_up)
        finally:
            end(process)
        if code is None:
            return FAILED, "not done after %d s; see %s" % (LONGEST_S[quick], shown(log_path))
    reason = re.sub(r"^(ok|FAILED|skipped|%s): " % check.name, "", last_line(log_path))
    if code in (OK, SKIPPED):
        return code, reason
    return FAILED, "%s; see %s" % (reason[:400], shown(log_path))


def ended(process, until, given_up):
    """The exit code; None if the check runs for too long or is given up."""
    while process.poll() is None and time.monotonic() < until and not given_up.is_set():
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            pass
    return process.poll()


def end(process):
    """Ends a check: SIGTERM lets it stop its servers, then the rest of its process group is killed."""
    for number, patience in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
        if process.poll() is None:
            try:
                os.killpg(process.pid, number)
                process.wait(patience)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


def shown(path):
    return os.path.relpath(path, os.getcwd())


def last_line(path):
    """The last line of a check that is not just a count of tests."""
    with open(path, errors="replace") as f:
        lines = [line.strip() for line in f if line.strip() and not re.match(r"\d+ passed, ", line)]
    return lines[-1] if lines else "no output"


def end_of(path):
    """The last lines of a log, for readers that cannot open the file."""
    try:
        with open(path, errors="replace") as f:
            return "".join("    %s\n" % line.rstrip()[:300] for line in f.readlines()[-SHOWN_LINES:])
    except FileNotFoundError:
        return ""


def part_names(text):
    names = text.split(",")
    unknown = [name for name in names if name not in PEERS_OF]
    if unknown:
        raise argparse.ArgumentTypeError("no part %s; parts are %s" % (unknown[0], ",".join(PEERS_OF)))
    return names


def main():
    if sys.argv[1:] and not sys.argv[1].startswith("-"):
        become(sys.argv[1], sys.argv[2:])
    parser = arguments(__doc__)
    parser.add_argument("--only", type=part_names, default=list(PEERS_OF), help="parts, of %s" % ",".join(PEERS_OF))
    parser.add_argument("--quick", action="store_true", help="smaller parts of everything, two at a time")
    parser.add_argument("--requests", type=int, default=200_000, help="of the comparison (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=50, help="of kill -9 (default: %(default)s)")
    args = parser.parse_args()
    try:
        command(args.server)
    except Skip as why:
        sys.exit("cannot start: %s" % why)
    os.makedirs(LOGS, exist_ok=True)
    fetch_peers(args.only)
    running = Lanes(args.quick)
    running.run(in_lanes(args))
    for line, log_path in running.failures:
        print("%s\n%s" % (line, end_of(log_path)), end="")
    count = running.count
    print("%d passed, %d failed, %d skipped" % (count[OK], count[FAILED], count[SKIPPED]))
    return FAILED if count[FAILED] else OK


if __name__ == "__main__":
    sys.exit(main())
