"""A data folder moves between the server under test and Java servers, both ways and back again.

One server fills the folder with everything that it can hold (contents.py), and ends by kill -9 or in order. Another
server opens it: tree, Stats, ACLs, zxid and sessions must be the same. Then the first server opens it again. At the end
containers and TTL znodes are cleaned up, which shows that the kinds of the znodes were kept."""

import glob
import os
import subprocess
import time
from typing import Any

from disk import contents
from harness.outcome import Mismatch, Skip, conclude, expect, expect_equal
from harness.peers import LAUNCHER, need
from harness.server import Server, arguments, available, four_letter_word, work_folder

SMALL = {"snapCount": 200, "preAllocSize": 64}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": SMALL,
    "gz": {**SMALL, "snapshot.compression.method": "gz"},
    "snappy": {**SMALL, "snapshot.compression.method": "snappy"},
    "log only": {"snapCount": 1000000},
    "two folders": {**SMALL, "dataLogDir": "LOGS"},
    "no close list": {**SMALL, "closeSessionTxn.enabled": "false"},
    # No older snapshot and its log can stand in for the newest one.
    "newest snapshot": SMALL,
}
QUICK = ("plain", "snappy")
SUFFIX = {"gz": ["gz"], "snappy": ["snappy"]}


class Handover:
    def __init__(self, writer, reader, variant, port):
        self.writer, self.reader, self.variant, self.port = writer, reader, variant, port
        self.folder = work_folder("handover")
        self.settings: dict[str, Any] = {**contents.SETTINGS, **VARIANTS[variant]}
        if "dataLogDir" in self.settings:
            self.settings["dataLogDir"] = os.path.join(self.folder, "logs")

    def server(self, cmd, **more):
        return Server(cmd, self.folder, self.port, {**self.settings, **more})

    def run(self):
        with self.server(self.writer) as first:
            known = contents.write(self.port)
            if self.variant == "log only":
                first.stop()  # the others end by kill -9
        self._look_at_files()
        if self.variant == "newest snapshot":
            self._remove_older_snapshots()
        if self.variant == "plain":
            self._read_with_java_tools()
        with self.server(self.reader) as second:
            expect_equal(last_zxid(self.port), known.zxid, "zxid after opening")
            contents.look(self.port, known)
            contents.look_at_sessions(self.port, known, wait_for_expiry=self.variant == "plain")
            after = self._tree()
            self._look_at_log(second)
        with self.server(self.writer) as third:
            contents.look(self.port, known._replace(tree=after))
            self._look_at_log(third)
        time.sleep(contents.SHORT_TTL_MS / 1000)
        cleaning = {"znode.container.checkIntervalMs": 300}
        with self.server(self.reader, **cleaning):
            contents.look_at_cleaning(self.port)

    def _tree(self):
        s = contents.Session(self.port)
        s.add_auth("digest", contents.USER)
        try:
            return contents.dump(s)
        finally:
            s.close()

    def _files(self, kind):
        return glob.glob(self.folder + "/data/version-2/%s.*" % kind) + glob.glob(
            self.folder + "/logs/version-2/%s.*" % kind
        )

    def _look_at_files(self):
        """The writer did as its configuration says, or the check would show less than its name."""
        snapshots = self._files("snapshot")
        expect(self._files("log"), "no log file was written")
        if self.variant == "log only":
            return
        expect(len(snapshots) > 2, "only %d snapshots with a snapCount of %d" % (len(snapshots), SMALL["snapCount"]))
        suffix = SUFFIX.get(self.variant, [])
        wrong = [f for f in snapshots if os.path.basename(f).split(".")[2:] != suffix]
        expect(not wrong, "snapshot %s is not of the kind that the configuration asks for" % wrong[:1])

    def _remove_older_snapshots(self):
        for snapshot in sorted(self._files("snapshot"), key=first_zxid)[:-1]:
            os.remove(snapshot)

    def _look_at_log(self, server):
        with open(server.log, errors="replace") as f:
            bad = [line.strip() for line in f if "Digests are not matching" in line]
        expect(not bad, "%s found another digest: %s" % (server.words[0], bad[:1]))

    def _read_with_java_tools(self):
        """Java's own tools read the oldest and the newest log file, and the newest snapshot."""
        try:
            need("zk39")
        except Skip:
            return
        tool = [LAUNCHER, "3.9", "-c", "org.apache.zookeeper.server."]
        logs = sorted(self._files("log"), key=first_zxid)
        for log in {logs[0], logs[-1]}:
            java_tool(tool, "persistence.TxnLogToolkit", log)
        newest = max(self._files("snapshot"), key=first_zxid)
        text = java_tool(tool, "SnapshotFormatter", newest)
        for owner in ("0x8000000000000000", "0xff0000000036ee80"):
            expect(owner in text, "Java's SnapshotFormatter shows no node with owner %s in %s" % (owner, newest))


def first_zxid(path):
    return int(os.path.basename(path).split(".")[1], 16)


def java_tool(tool, name, path):
    p = subprocess.run(tool[:-1] + [tool[-1] + name, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(p.returncode == 0, "Java's %s cannot read %s: %s" % (name, os.path.basename(path), p.stdout[-300:]))
    return p.stdout


def last_zxid(port):
    for line in four_letter_word(port, "srvr").splitlines():
        if line.startswith("Zxid:"):
            return int(line.split()[1], 16)
    raise AssertionError("srvr shows no Zxid")


def variants(quick, first):
    """All kinds of folder with the first peer, fewer with the others."""
    if quick:
        return QUICK if first else QUICK[:1]
    return tuple(VARIANTS) if first else ("plain", "gz", "snappy")


def check():
    parser = arguments(__doc__)
    parser.add_argument(
        "--peers", default="java3.9,java3.8", help="the servers to exchange with (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer kinds of folder")
    args = parser.parse_args()
    peers, missing = available(args.peers)
    done = 0
    for n, peer in enumerate(peers):
        for variant in variants(args.quick, first=n == 0):
            for writer, reader in ((peer, args.server), (args.server, peer)):
                began = time.monotonic()
                name = "%s -> %s, %s" % (writer, reader, variant)
                try:
                    Handover(writer, reader, variant, args.port).run()
                except Skip:
                    raise
                except Exception as what:
                    raise Mismatch("%s: %s" % (name, what)) from what
                print("%s: as before (%.1f s)" % (name, time.monotonic() - began), flush=True)
                done += 1
    summary = "%d folders handed over and back" % done
    if missing:
        raise Skip("%s; not tried with %s" % (summary, "; ".join(missing)))
    return summary


if __name__ == "__main__":
    conclude(check)
