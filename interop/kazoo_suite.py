"""kazoo 2.11's own test suite against one server.

The tests in kazoo_needs_ensemble.txt may fail (a standalone Java server fails them, too); all others must pass. The
suite mostly waits, so it is split into two halves that run side by side, each with its own server. Tests that fail run
once more by themselves, because some depend on timing. --quick leaves out the tests of the gevent and
eventlet handlers, which repeat those of the client, and those that need no server.
"""

import contextlib
import glob
import os
import shlex
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET

from harness.kdc import Kdc
from harness.outcome import conclude, expect
from harness.peers import INTEROP, need
from harness.server import Server, arguments, command, work_folder

SHARDS = 2
SERVICE = "zookeeper/127.0.0.1"
PORTS_OF_A_SHARD = 20
NOT_QUICK = (
    "test_gevent_handler test_eventlet_handler test_selectors_select test_build test_exceptions test_hosts "
    "test_interrupt test_paths test_retry test_sasl test_security test_serialization test_threading_handler test_utils"
).split()
# seconds on an idle machine, to give each half as much as the other; a test file that is not here counts as 2
WEIGHT = {
    "test_partitioner": 23,
    "test_gevent_handler": 26,
    "test_eventlet_handler": 50,
    "test_watchers": 26,
    "test_client": 37,
    "test_selectors_select": 11,
    "test_lock": 18,
    "test_cache": 10,
    "test_connection": 10,
    "test_lease": 8,
    "test_queue": 5,
    "test_counter": 4,
    "test_barrier": 4,
    "test_party": 4,
    "test_interrupt": 3,
}


def test_files(quick):
    venv = need("venv")
    found = glob.glob(venv + "/lib/python3*/site-packages/kazoo/tests/test_*.py")
    expect(found, "kazoo's tests are not in %s" % venv)
    return [f for f in sorted(found) if not (quick and module(f) in NOT_QUICK)]


def module(path):
    return os.path.basename(path)[:-3]


def shards(files):
    """The heaviest file first, each to the shard that has least so far."""
    seconds = [0] * SHARDS
    shards: list[list[str]] = [[] for _ in range(SHARDS)]
    for f in sorted(files, key=lambda f: -WEIGHT.get(module(f), 2)):
        lightest = seconds.index(min(seconds))
        seconds[lightest] += WEIGHT.get(module(f), 2)
        shards[lightest].append(f)
    return [shard for shard in shards if shard]


class Run:
    """pytest on some of the tests, with a server of its own."""

    def __init__(self, args, tests, folder, port):
        os.makedirs(folder)
        self.xml = os.path.join(folder, "result.xml")
        self.log = os.path.join(folder, "log")
        env = dict(
            os.environ,
            PYTHONPATH=INTEROP,
            TMPDIR=folder,
            OSTLER_KAZOO_SERVER=shlex.join(command(args.server)),
            OSTLER_KAZOO_TLS=str(int(args.tls)),
            ZOOKEEPER_CLUSTER_SIZE=str(args.servers),
            ZOOKEEPER_VERSION="3.9.5",
            ZOOKEEPER_PATH="/nonexistent",
            ZOOKEEPER_CLASSPATH="unused",
            ZOOKEEPER_PORT_OFFSET=str(port),
        )
        if args.kdc:
            env.update((name, args.kdc.env[name]) for name in ("KRB5_CONFIG", "PATH"))
            # Runs that go on at a time have a ticket each.
            env.update(KRB5_TEST_ENV=args.kdc.folder, KRB5CCNAME="FILE:%s/tickets" % folder)
        env.pop("CI", None)  # with it the harness looks for a server of GitHub's making
        left_out = [name for name, kept in (("SSL", args.tls), ("SASL", args.sasl)) if not kept]
        chosen = " and ".join("not " + name for name in left_out)
        if args.select:
            chosen = " and ".join(filter(None, [chosen, "(%s)" % args.select]))
        cmd = [
            need("venv") + "/bin/python",
            "-m",
            "pytest",
            "-p",
            "harness.kazoo_plugin",
            "-p",
            "no:cacheprovider",
            "-q",
            "-ra",
            "--tb=short",
            "--timeout=120",
            "--timeout-method=signal",
            "--maxfail=60",
            "--junitxml",
            self.xml,
            "--rootdir",
            os.path.dirname(tests[0].partition("::")[0]),
            "-k",
            chosen,
            *tests,
        ]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(cmd, env=env, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def results(self):
        """{test: passed|failed|skipped}, after the end of the run."""
        self.process.wait()
        if not os.path.exists(self.xml):
            with open(self.log, errors="replace") as f:
                expect(False, "pytest broke off: %s" % f.read()[-600:])
        states = {}
        for case in ET.parse(self.xml).getroot().iter("testcase"):
            kinds = {e.tag for e in case}
            state = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            name = test_name(case)
            if states.get(name) != "failed":  # an error at teardown is an entry of its own
                states[name] = state
        return states


def test_name(case):
    where = (case.get("classname") or "").split(".")
    return "::".join(where + [case.get("name")])


def run_again(args, failed, files, folder):
    """Those of `failed` that pass when run by themselves."""
    file_of = {module(f): f for f in files}
    passed = set()
    for n, name in enumerate(failed):
        mod, _, rest = name.partition("::")
        again = Run(args, ["%s::%s" % (file_of[mod], rest)], os.path.join(folder, "again%d" % n), args.port)
        if set(again.results().values()) == {"passed"}:
            passed.add(name)
    return passed


def allowed_to_fail():
    with open(os.path.join(INTEROP, "kazoo_needs_ensemble.txt")) as f:
        return {line.strip() for line in f if line.strip() and not line.startswith("#")}


def check():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what repeats the client's tests")
    parser.add_argument("--select", help="pytest -k expression")
    parser.add_argument(
        "--tls", action="store_true", help="keep the TLS tests (the server needs a secure port with JKS stores)"
    )
    parser.add_argument("--sasl", action="store_true", help="keep the SASL tests")
    parser.add_argument(
        "--kerberos", action="store_true", help="also the tests of Kerberos, with a KDC of their own; needs --sasl"
    )
    parser.add_argument("--servers", type=int, default=1, help="size of the ensemble (default: %(default)s)")
    args = parser.parse_args()
    files, folder = test_files(args.quick), work_folder("kazoo")
    args.kdc = kdc(folder, args.port + SHARDS * PORTS_OF_A_SHARD) if args.kerberos else None
    with args.kdc or contextlib.nullcontext():
        return run_all(args, files, folder)


def kdc(folder, port):
    """The KDC that kazoo's tests expect, and the keytabs by their names there."""
    made = Kdc(os.path.join(folder, "kdc"), port, ["client", SERVICE, "zookeeper/localhost"], "KAZOOTEST.ORG")
    shutil.copy(made.keytab(SERVICE), os.path.join(made.folder, "server.keytab"))
    return made


def run_all(args, files, folder):
    preflight = os.path.join(folder, "preflight")
    os.mkdir(preflight)
    Server(args.server, preflight, args.port).start().stop()

    began = time.monotonic()
    runs = [
        Run(args, some, os.path.join(folder, "shard%d" % n), args.port + n * PORTS_OF_A_SHARD)
        for n, some in enumerate(shards(files))
    ]
    results = {}
    for run in runs:
        results.update(run.results())
    allowed = allowed_to_fail()
    failed = sorted(t for t, state in results.items() if state == "failed" and t not in allowed)
    recovered = run_again(args, failed[:20], files, folder)
    for name in failed:
        print("FAILED %s%s" % (name, " (passed when run by itself)" if name in recovered else ""))
    count = {state: list(results.values()).count(state) for state in ("passed", "failed", "skipped")}
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count, "in %.0f s" % (time.monotonic() - began))
    for name in sorted(allowed & {t for t, state in results.items() if state == "passed"}):
        print("passed although it needs an ensemble: " + name)
    lost = [t for t in failed if t not in recovered]
    expect(not lost, "%d of kazoo's tests fail: %s" % (len(lost), ", ".join(lost[:3])))
    expect(count["passed"] > 0, "no test ran")
    return "%d of kazoo's tests passed, %d need an ensemble%s" % (
        count["passed"] + len(recovered),
        count["failed"] - len(failed),
        ", %d at the second try" % len(recovered) if recovered else "",
    )


if __name__ == "__main__":
    conclude(check)
