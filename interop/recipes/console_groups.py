"""The console recognises the locks, elections and semaphores that real clients make, and never deletes a holder's znode
of theirs.

Curator (Groups.java) and kazoo hold and wait with each of their recipes. The znodes of ZooKeeper's own recipes are made
by their names, as its sources give them.

    console_groups.py [--server CMD]
    console_groups.py --hold PORT     holds with kazoo, for this check; needs kazoo
"""

import functools
import json
import os
import sys
import threading
import time

from admin import http
from harness.outcome import conclude, expect, expect_equal
from harness.peers import INTEROP, need
from harness.program import Program
from harness.server import Server, arguments, work_folder
from harness.session import Session
from recipes import programs

OPERATOR = "digest:ann:RYbu6l5aZwqon8VWmkcGvezdzfc="  # ann:pw
EPHEMERAL_SEQUENTIAL = 3
TIMEOUT_MS = 8000

# path: (kind, library, confidence, holders, waiting, id of the first, way)
CURATOR = {
    "/curator/full": ("semaphore", "curator", "sure", 1, 1, "127.0.0.1", "expire"),
    "/curator/latch": ("latch", "curator", "sure", 1, 1, "first", "expire"),
    "/curator/mutex": ("mutex", "curator", "likely", 1, 1, "127.0.0.1", "expire"),
    "/curator/readers": ("read_write", "curator", "sure", 2, 0, "127.0.0.1", "expire"),
    "/curator/revocable": ("mutex", "curator", "likely", 1, 1, None, "revoke"),
    "/curator/selector": ("selector", "curator", "likely", 1, 1, "first", "expire"),
    "/curator/semaphore": ("semaphore", "curator", "sure", 2, 0, "127.0.0.1", "expire"),
    "/curator/semaphore-mutex": ("semaphore", "curator", "sure", 1, 1, "127.0.0.1", "expire"),
    "/curator/writer": ("read_write", "curator", "sure", 1, 1, "127.0.0.1", "expire"),
}
KAZOO = {
    "/kazoo/election": ("election", "kazoo", "likely", 1, 1, "first", "expire"),
    "/kazoo/lock": ("mutex", "kazoo", "likely", 1, 1, "first", "expire"),
    "/kazoo/mixed": ("read_write", "kazoo", "sure", 1, 1, "first", "expire"),
    "/kazoo/readers": ("read_write", "kazoo", "sure", 2, 0, "first", "expire"),
    "/kazoo/semaphore": ("semaphore", "kazoo", "likely", 1, 1, "first", "expire"),
    # A WriteLock of kazoo names its znodes as a Lock does.
    "/kazoo/writer": ("mutex", "kazoo", "likely", 1, 1, "first", "expire"),
}
ZOOKEEPER = {
    "/zookeeper-election": ("election", "zookeeper", "guess", 1, 1, "host-1", "expire"),
    "/zookeeper-lock": ("write_lock", "zookeeper", "sure", 1, 0, None, "expire"),
}


def hold(port):
    """Holds and waits with kazoo, until it is killed."""
    from kazoo.client import KazooClient

    def acquire(recipe):
        threading.Thread(target=recipe, daemon=True).start()

    kept = []
    for name in ("first", "second"):
        client = KazooClient("127.0.0.1:%s" % port, timeout=6)
        client.start()
        kept.append(client)
        acquire(client.Lock("/kazoo/lock", name).acquire)
        election = client.Election("/kazoo/election", name)
        acquire(functools.partial(election.run, time.sleep, 3600))
        acquire(client.Semaphore("/kazoo/semaphore", name, max_leases=1).acquire)
        acquire(client.ReadLock("/kazoo/readers", name).acquire)
        acquire(client.WriteLock("/kazoo/writer", name).acquire)
        mixed = client.WriteLock if name == "first" else client.ReadLock
        acquire(mixed("/kazoo/mixed", name).acquire)
        time.sleep(1.5)
    print("ready", flush=True)
    time.sleep(3600)


class Console:
    def __init__(self, port):
        self.port = port

    def get(self, path):
        answer = http.ask(self.port, "/api/v1" + path)
        expect_equal(answer.status, 200, "the answer to %s: %s" % (path, answer.body[:300].decode("utf-8", "replace")))
        return answer.json()

    def group(self, path):
        return self.get("/recipes/group?path=" + path)

    def hand_over(self, path, way):
        holder = self.group(path)["holder"]
        body = {"path": path, "holder": holder["path"], "token": holder["token"], "way": way}
        headers = {"Authorization": "digest ann:pw", "Content-Type": "application/json"}
        answer = http.ask(self.port, "/api/v1/recipes/hand-over", "POST", headers, json.dumps(body).encode())
        return answer.status, answer.json()

    def wait(self, path, wanted, what, within=15):
        until = time.monotonic() + within
        while True:
            # The server shows for 2 s what it has gathered, so a new group may not be there yet.
            answer = http.ask(self.port, "/api/v1/recipes/group?path=" + path)
            group = answer.json()
            if answer.status == 200 and wanted(group):
                return group
            expect(time.monotonic() < until, "%s: %s, but it is %s" % (path, what, group))
            time.sleep(0.3)


def shown(group):
    holds = sum(one["holds"] for one in group["queue"])
    first = group["holder"]["id"]
    way = group["hand_over"]["way"]
    return group["kind"], group["made_by"], group["confidence"], holds, group["waiting"], first, way


def make_zookeepers(port):
    """Znodes as ZooKeeper's WriteLock and LeaderElectionSupport make them. The sessions are kept alive by no pings."""
    one, two = Session(port, TIMEOUT_MS), Session(port, TIMEOUT_MS)
    for parent in ("/zookeeper-lock", "/zookeeper-election"):
        one.create(parent)
    one.create("/zookeeper-lock/x-%d-" % one.id, b"\x12\x34", flags=EPHEMERAL_SEQUENTIAL)
    for at, session in enumerate((one, two)):
        session.create("/zookeeper-election/n_", b"host-%d" % (at + 1), flags=EPHEMERAL_SEQUENTIAL)
    return one, two


def check_recognised(console, expected):
    for path, wanted in expected.items():
        group = console.wait(path, lambda group: shown(group) == wanted, "expected %r" % (wanted,))
        expect_equal(group["alarms"], [], "alarms of " + path)
        expect(group["holder"]["session"] and group["holder"]["address"], "no session or address: %s" % group)


def check_nothing_is_deleted(console, expected):
    """No way but the end of the session takes anything from a holder of another library."""
    for path, wanted in expected.items():
        before = console.group(path)["holder"]
        for way in {"fence", "revoke"} - {wanted[-1]}:
            status, answer = console.hand_over(path, way)
            expect_equal((status, answer["code"]), (409, "PLAN"), "%s of %s" % (way, path))
        expect_equal(console.group(path)["holder"], before, "the holder of " + path)


def check():
    parser = arguments(__doc__)
    parser.add_argument("--hold", metavar="PORT", help="hold with kazoo")
    args = parser.parse_args()
    if args.hold:
        return hold(args.hold)
    venv, jars, folder = need("venv"), need("zk39"), work_folder("console-groups")
    settings = {
        "admin.enableServer": "true",
        "admin.serverAddress": "127.0.0.1",
        "admin.serverPort": args.port + 1,
        "admin.readOnly": "false",
        "admin.operators": OPERATOR,
    }
    at = "127.0.0.1:%d" % args.port
    with Server(args.server, os.path.join(folder, "server"), args.port, settings):
        console = Console(args.port + 1)
        curator = Program(programs.java("Groups", folder, jars) + [at])
        env = dict(os.environ, PYTHONPATH=INTEROP)
        kazoo = Program([venv + "/bin/python", os.path.abspath(__file__), "--hold", str(args.port)], env=env)
        try:
            return with_holders(console, args.port, curator, kazoo)
        finally:
            curator.kill()
            kazoo.kill()


def with_holders(console, port, curator, kazoo):
    curator.wait_for("^ready$", 60)
    kazoo.wait_for("^ready$", 60)
    check_recognised(console, {**CURATOR, **KAZOO})
    owners = make_zookeepers(port)
    check_recognised(console, ZOOKEEPER)
    everything = {**CURATOR, **KAZOO, **ZOOKEEPER}
    found = console.get("/recipes")
    expect_equal([item["path"] for item in found["items"]], sorted(everything), "the recognised groups")

    # Nothing is heard of these two sessions any more, and then they expire.
    silent = console.wait(
        "/zookeeper-lock", lambda group: group["alarms"], "its holder is silent", TIMEOUT_MS / 1000 + 1
    )
    expect_equal([alarm["kind"] for alarm in silent["alarms"]], ["holder_silent"], "alarms of a silent holder")
    check_nothing_is_deleted(console, {**CURATOR, **KAZOO})
    del owners

    status, answer = console.hand_over("/curator/revocable", "revoke")
    expect_equal((status, answer["done"]), (200, True), "a revocation")
    curator.wait_for("^first is asked to release$")
    expect_equal(console.group("/curator/revocable")["queue"][0]["holds"], True, "the holder decides")

    curator.seen = 0
    status, answer = console.hand_over("/curator/latch", "expire")
    expect_equal((status, answer["done"]), (200, True), "the end of a session of Curator")
    curator.wait_for("^second leads$")
    curator.seen = 0
    curator.wait_for("^first does not lead$")
    after = console.wait("/curator/latch", lambda group: group["holder"]["id"] == "second", "the second leads")
    expect_equal(after["handovers_last_hour"], 1, "hand-overs")

    status, answer = console.hand_over("/kazoo/lock", "expire")
    expect_equal((status, answer["done"]), (200, True), "the end of a session of kazoo")
    console.wait("/kazoo/lock", lambda group: group["holder"]["id"] == "second", "the second holds")
    return "%d groups of Curator, %d of kazoo and %d of ZooKeeper's recipes recognised; none was deleted" % (
        len(CURATOR),
        len(KAZOO),
        len(ZOOKEEPER),
    )


if __name__ == "__main__":
    if "--hold" in sys.argv:
        check()
    else:
        conclude(check)
