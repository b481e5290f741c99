"""`ostler inspect` shows what Java's own tools show.

A Java server fills a folder, then TxnLogToolkit and SnapshotFormatter are compared with Ostler's dump, fact by fact.
Sizes, histories, comparison and repair are tried on the same folder."""

import base64
import glob
import json
import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from typing import Any

from disk import contents
from disk.handover import first_zxid
from harness.outcome import Mismatch, Skip, conclude, expect, expect_equal
from harness.peers import LAUNCHER, need
from harness.server import Server, arguments, available, command, work_folder

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "gz": {"snapshot.compression.method": "gz"},
    "snappy": {"snapshot.compression.method": "snappy"},
}
SMALL = {"snapCount": 300, "preAllocSize": 64, "autopurge.snapRetainCount": 100}
# A line of TxnLogToolkit; ACLs and data can continue on the next lines.
TXN = re.compile(
    r"^(\S+, \S+ \S+ UTC) session (0x[0-9a-f]+) cxid (0x[0-9a-f]+) zxid (0x[0-9a-f]+) (\S+) ?(.*)$", re.DOTALL
)
STAT = {
    "cZxid": "czxid",
    "mZxid": "mzxid",
    "pZxid": "pzxid",
    "cversion": "cversion",
    "dataVersion": "version",
    "aclVersion": "aversion",
    "ephemeralOwner": "owner",
    "ctime": "ctime_ms",
    "mtime": "mtime_ms",
}


class Inspection:
    def __init__(self, ostler, peer, variant, port):
        self.ostler, self.peer, self.port = ostler, peer, port
        self.version = peer[len("java") :] if peer.startswith("java") else "3.9"
        self.folder = work_folder("inspect")
        self.data = os.path.join(self.folder, "data")
        self.settings = {**contents.SETTINGS, **SMALL, **VARIANTS[variant]}
        self.without_acl = 0

    def run(self):
        with Server(self.peer, self.folder, self.port, self.settings) as server:
            contents.write(self.port)
            server.stop()
        logs = sorted(self._files("log"), key=first_zxid)
        snapshots = sorted(self._files("snapshot"), key=first_zxid)
        expect(len(logs) > 1 and len(snapshots) > 1, "%d logs, %d snapshots" % (len(logs), len(snapshots)))
        records = sum(self._compare_log(log) for log in logs)
        znodes = sum(self._compare_snapshot(snapshot) for snapshot in snapshots)
        self._ask_about_folder(records)
        self._repair(logs[-1])
        return "%d transactions, %d znodes of %d snapshots, %d without their ACL" % (
            records,
            znodes,
            len(snapshots),
            self.without_acl,
        )

    def _files(self, kind):
        return glob.glob(self.data + "/version-2/%s.*" % kind)

    def inspect(self, *words, code=0):
        """The lines of JSON that `ostler inspect` prints."""
        run = subprocess.run([*self.ostler, "inspect", *words, "--json"], capture_output=True, text=True)
        expect_equal(run.returncode, code, "exit code of inspect %s: %s" % (" ".join(words), run.stderr[-300:]))
        return [json.loads(line) for line in run.stdout.splitlines()]

    def _java(self, name, *words):
        tool = [LAUNCHER, self.version, "-c", "org.apache.zookeeper.server." + name, *words]
        environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        run = subprocess.run(tool, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        expect_equal(run.returncode, 0, "exit code of Java's " + name)
        return run.stdout.decode("utf-8", "replace")

    def _compare_log(self, log):
        text = self._java("persistence.TxnLogToolkit", log)
        # The next transaction starts with a line of this form; a value has none.
        starts = [m.start() for m in re.finditer(r"(?m)^\S+, \S+ \S+ UTC session 0x", text)]
        end = text.rindex("EOF reached after")
        count = int(text[end:].split()[3])
        theirs = [text[a:b].rstrip("\n") for a, b in zip(starts, [*starts[1:], end], strict=True)]
        ours = [line for line in self.inspect("log", log, "--data", "base64") if line["kind"] == "txn"]
        expect_equal(len(ours), count, "transactions in " + log)
        expect_equal(len(theirs), count, "lines of TxnLogToolkit")
        for their, our in zip(theirs, ours, strict=True):
            compare_txn(their, our)
        return count

    def _compare_snapshot(self, snapshot):
        text = self._java("SnapshotFormatter", "-d", snapshot)
        body, sessions = text.split("Session Details (sid, timeout, ephemeralCount):\n")
        blocks = [block.split("\n") for block in body.split("\n----\n")[1:]]
        lines = self.inspect("snapshot", snapshot, "--data", "base64")
        ours = {line["path"]: line for line in lines if line["kind"] == "znode"}
        theirs = {block[0]: dict(map(fact_of, filter(None, block[1:]))) for block in blocks if block[0]}
        expect_equal(sorted(ours), sorted(theirs), "paths in " + snapshot)
        self.without_acl += sum(our["acl"] is None for our in ours.values())
        for path, facts in theirs.items():
            compare_znode(path, facts, ours[path])
        known = sorted((line["session"], line["timeout_ms"]) for line in lines if line["kind"] == "session")
        listed = sorted(
            (session, int(timeout))
            for session, timeout, _ in (line.split(", ") for line in sessions.splitlines() if line.startswith("0x"))
        )
        expect_equal(known, listed, "sessions in " + snapshot)
        last = re.search(r"Last zxid: (0x[0-9a-f]+)", sessions)
        end = lines[-1]
        expect_equal(end["kind"], "end", "the last line of " + snapshot)
        # The tool names the newest change of a znode, or the zxid in the file's name. Java writes a snapshot while
        # transactions go on, so a znode may be newer than what the snapshot says to hold.
        changes = [int(our[name], 16) for our in ours.values() for name in ("czxid", "mzxid", "pzxid")]
        expect_equal(last and int(last[1], 16), max([int(end["zxid"], 16), *changes]), "last zxid of " + snapshot)
        return len(ours)

    def _ask_about_folder(self, records):
        sizes = self.inspect("sizes", self.data, "--depth", "1")
        state = sizes[0]
        whole = next(line for line in sizes if line["kind"] == "prefix" and line["path"] == "/")
        expect_equal(whole["znodes"], state["znodes"], "znodes at and below /")
        history = self.inspect("history", self.data, "/data/bytes")
        versions = [line["version"] for line in history if line.get("op") == "setData"]
        expect_equal(versions, [1, 2, 3, 4, 5, 6, 7], "versions in the history of /data/bytes")
        expect_equal(history[-1]["transactions"], records, "transactions read for the history")
        end = self.inspect("compare", self.data, self.data)[-1]
        expect_equal((end["added"], end["removed"], end["changed"]), (0, 0, 0), "a folder beside itself")
        first = history[0]["zxid"]
        changed = self.inspect("compare", self.data, self.data, "--at", first)[-1]
        expect_equal(changed["changed"], 0, "a folder beside itself at " + first)
        self.inspect("repair", self.data)

    def _repair(self, log):
        """Damage is found, and only repaired when the loss is named."""
        copy = os.path.join(self.folder, "damaged")
        shutil.copytree(self.data, copy)
        path = os.path.join(copy, "version-2", os.path.basename(log))
        good = [line for line in self.inspect("log", path) if line["kind"] == "txn"]
        middle = good[len(good) // 2]
        with open(path, "r+b") as f:
            f.seek(middle["offset"] + 20)
            byte = f.read(1)
            f.seek(middle["offset"] + 20)
            f.write(bytes([byte[0] ^ 0xFF]))
        report = self.inspect("repair", copy, code=1)[0]
        damage = [line for line in self.inspect("log", path, code=1) if line["kind"] == "damage"]
        expect_equal(damage[0]["offset"], middle["offset"], "offset of the damage")
        needed = report["needs_drop"]
        if needed is None:
            expect_equal(report["before"]["start"], "works", "a start with damage that nothing needs")
            return
        self.inspect("repair", copy, "--apply", "--drop-after", needed["after"])
        with Server(self.peer, self.folder, self.port, {**self.settings, "dataDir": copy}):
            pass
        expect(glob.glob(copy + "/before-repair-1/*"), "no copy of the changed files was kept")


def fact_of(line):
    """Name and value of a line of SnapshotFormatter; the value can be empty."""
    name, _, value = line.strip().partition(" =")
    return name, value.strip()


def compare_txn(their, our):
    """One transaction: TxnLogToolkit's text and Ostler's JSON."""
    found = TXN.match(their)
    expect(found, "cannot read a line of TxnLogToolkit: %r" % their[:200])
    assert found
    time, session, cxid, zxid, op, rest = found.groups()
    op = "createTTL" if op == "createTtl" else op  # 3.8 spells it so, 3.9 as Ostler does
    seconds = datetime.strptime(time, "%m/%d/%y, %I:%M:%S %p UTC").replace(tzinfo=UTC).timestamp()
    facts = (zxid, session, int(cxid, 16), op, seconds)
    shown = (our["zxid"], hex(int(our["session"], 16)), our["cxid"] & 0xFFFFFFFF, our["op"], our["time_ms"] // 1000)
    expect_equal(shown, facts, "transaction " + zxid)
    wanted = {
        "createSession": lambda: rest == str(our["timeout_ms"]),
        "error": lambda: rest == str(our["code"]),
        "delete": lambda: rest == "'" + our["path"],
        "deleteContainer": lambda: rest == "'" + our["path"],
        "closeSession": lambda: all("'" + path in rest for path in our.get("ephemerals", [])),
        "setData": lambda: rest.startswith(our["path"] + ",") and rest.endswith(",%d" % our["version"]),
        "setACL": lambda: rest.startswith("'" + our["path"] + ",") and rest.endswith(",%d" % our["version"]),
        "create": lambda: fits_create(rest, our, str(our["ephemeral"]).lower(), our["parent_cversion"]),
        "create2": lambda: fits_create(rest, our, str(our["ephemeral"]).lower(), our["parent_cversion"]),
        "createContainer": lambda: fits_create(rest, our, our["parent_cversion"]),
        "createTTL": lambda: fits_create(rest, our, our["parent_cversion"], our.get("ttl_ms")),
        "multi": lambda: fits_parts(rest, our["parts"]),
    }
    expect(op in wanted, "an operation that is not compared: " + op)
    expect(wanted[op](), "transaction %s: Java shows %r, Ostler %r" % (zxid, rest[:300], {**our, "data_base64": ""}))


def fits_create(rest, our, *last):
    """Path, data and ACL, then the numbers at the end."""
    data = base64.b64decode(our.get("data_base64", "")).decode("utf-8", "replace")
    acl = rest[rest.rindex(",[") :]
    ids = all("s{'%s,'%s}" % (entry["scheme"], entry["id"]) in acl for entry in our["acl"])
    readable = "\ufffd" in data or len(data) > 1000 or rest.startswith(our["path"] + "," + data + ",[")
    return rest.startswith(our["path"] + ",") and readable and ids and rest.endswith("]," + ",".join(map(str, last)))


def fits_parts(rest, parts):
    """The parts in their order; Java prints the bytes of each as they are."""
    at = 0
    for part in parts:
        at = rest.find(part["op"] + ":", at)
        if at < 0 or part.get("path", "") not in rest[at:]:
            return False
        at += 1
    return True


def compare_znode(path, facts, our):
    """One znode: SnapshotFormatter's facts and Ostler's JSON."""
    for key, name in STAT.items():
        value, shown = facts[key], our[name]
        if key in ("ctime", "mtime"):
            value = datetime.strptime(value, "%a %b %d %H:%M:%S %Z %Y").replace(tzinfo=UTC).timestamp()
            shown = shown // 1000
        elif value.startswith("0x"):
            value, shown = int(value, 16), int(shown, 16)
        else:
            value = int(value)
        expect_equal(shown, value, "%s of %s" % (key, path))
    expect_equal(our.get("data_base64", ""), facts.get("data", "").replace("\n", ""), "data of " + path)


def check():
    parser = arguments(__doc__)
    parser.add_argument(
        "--peers", default="java3.9,java3.8", help="the servers that fill folders (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer kinds of folder")
    args = parser.parse_args()
    need("zk39")
    words = command(args.server)
    if words[-1] != "server":
        raise Skip("ostler inspect is a command of Ostler's own program")
    peers, missing = available(args.peers)
    done = []
    for number, peer in enumerate([*peers, args.server]):
        for variant in VARIANTS if number == 0 and not args.quick else ("plain",):
            name = "%s, %s" % (peer, variant)
            try:
                summary = Inspection(words[:-1], peer, variant, args.port).run()
            except Skip:
                raise
            except Exception as what:
                raise Mismatch("%s: %s" % (name, what)) from what
            print("%s: %s" % (name, summary), flush=True)
            done.append(name)
    if missing:
        raise Skip("%d folders read; not tried with %s" % (len(done), "; ".join(missing)))
    return "%d folders read as Java's tools read them" % len(done)


if __name__ == "__main__":
    conclude(check)
