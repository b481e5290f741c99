"""An ensemble is backed up under load, restored to the transaction before a delete, and a subtree is put back.

`ostler backup --follow` copies one server's files while three servers write. A subtree is deleted under that load,
and writes go on. Then all servers are killed, and `ostler restore` makes their folders anew as of the transaction
before the delete. The digest is the one that the leader recorded in its log then. Two servers start from the restored
folders, and the third one joins with its old folder: all three must have the restored tree, and no later write. The
sessions of before are unknown. At last a subtree is deleted again, and `ostler restore --subtree` puts it back while
the ensemble serves."""

import atexit
import glob
import itertools
import json
import os
import shutil
import signal
import struct
import subprocess
import threading
import time
from typing import Any

from ensemble.cluster import Cluster, Member, patiently
from harness.outcome import Mismatch, Skip, conclude, expect, expect_equal
from harness.protocol import CONTAINER, EPHEMERAL
from harness.server import OSTLER, arguments, available, command, work_folder
from harness.session import ConnectionLost, Session, SessionExpired
from harness.tree import dump

ROOT = "/precious"
CHILDREN = 300
# No log is purged: the check reads the recorded digest from the first ones.
SETTINGS = {"snapCount": 2000, "preAllocSize": 1024, "autopurge.purgeInterval": 0}
WRITERS = 3
READ_ACL = [(31, "digest", "ann:pK9wqq1hZ1Q6aLYOVDwQm9aZm9Y="), (1, "world", "anyone")]
LOAD_S = 3.0
CATCH_UP_S = 60.0
DELETE_CODES = (2, 20)


def backup_name(tree):
    """A tree without what a restore of a subtree does not keep: the numbers and times of the Stats."""
    return {path: (node[0], node[2]) for path, node in tree.items()}


def records(folder):
    """(zxid, type, bytes) of all records in a log folder."""
    for path in sorted(glob.glob(folder + "/log.*"), key=lambda p: int(p.rsplit(".", 1)[1], 16)):
        with open(path, "rb") as f:
            data = f.read()
        at = 16
        while at + 12 <= len(data):
            (length,) = struct.unpack_from(">i", data, at + 8)
            if length <= 0 or at + 12 + length >= len(data):
                break
            record = data[at + 12 : at + 12 + length]
            _, _, zxid, _, code = struct.unpack_from(">qiqqi", record)
            yield zxid, code, record
            at += 13 + length


class Writer(threading.Thread):
    """Creates and sets znodes without pause, and remembers which ones were acknowledged, with their times."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.session = Session(port, 30000)
        self.root = "/busy/%d" % number
        self.session.create(self.root)
        self.session.create(self.root + "/here", b"", EPHEMERAL)
        self.created: list[tuple[str, int]] = []
        self.stopping = False
        self.problem: Exception | None = None

    def run(self):
        try:
            for n in itertools.count():
                if self.stopping:
                    return
                path = "%s/n%d" % (self.root, n)
                self.session.create(path, b"%d" % n)
                self.created.append((path, self.session.seen_zxid))
                if n % 3 == 0:
                    self.session.set(self.root, b"%d" % n)
        except Exception as e:  # handed to the main thread
            self.problem = e


class Check:
    def __init__(self, ostler, makes, restored_makes, port):
        self.ostler = command(ostler)[0]
        self.folder = work_folder("backup")
        self.place = os.path.join(self.folder, "backup")
        self.cluster = Cluster(makes, self.folder, port, SETTINGS)
        self.restored_makes = restored_makes

    def program(self, *words, code=0):
        p = subprocess.run([self.ostler, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print("$ ostler %s\n%s" % (" ".join(words), p.stdout), end="", flush=True)
        expect_equal(p.returncode, code, "exit code of ostler %s (%s)" % (words[0], p.stdout[-400:]))
        return p.stdout

    def run(self):
        with self.cluster:
            return self._run()

    def _run(self):
        self.cluster.start().wait_quorum()
        source = self.cluster[1]
        self._fill(source)
        follower = self._follow(source)
        writers = [Writer(port, n) for n, port in enumerate(self.cluster.ports()[:WRITERS])]
        for writer in writers:
            writer.start()
        time.sleep(LOAD_S)
        self._delete(self.cluster[2])
        time.sleep(LOAD_S)
        for writer in writers:
            writer.stopping = True
        for writer in writers:
            writer.join()
            expect(writer.problem is None, "a writer failed: %s" % writer.problem)
        last = max(writer.session.seen_zxid for writer in writers)
        self._catch_up(follower, last)
        before, digest, deleted = self._transaction_before(source)
        self.program("restore", "--from", self.place, "--verify")
        for member in self.cluster.running():
            member.kill()
        self._restore(before, digest)
        self._start_with_an_old_server()
        self._look(writers, before)
        self._put_subtree_back(before)
        return "restored to 0x%x, before 0x%x of %d transactions" % (before, deleted, last & 0xFFFFFFFF)

    def _fill(self, member):
        s = Session(member.port, 30000)
        s.create("/busy")
        s.create(ROOT, b"root of all")
        s.create(ROOT + "/secret", b"s", acl=READ_ACL)
        s.create(ROOT + "/empty", b"")
        s.create(ROOT + "/null", None)
        s.create(ROOT + "/container", b"", CONTAINER)
        s.create(ROOT + "/container/in", b"c")
        s.create(ROOT + "/ephemeral", b"e", EPHEMERAL)
        for n in range(CHILDREN):
            s.create("%s/%d" % (ROOT, n), b"%d" % n * 20)
        self.filler = s
        self.wanted = dump(s, ROOT)

    def _follow(self, member):
        words = [self.ostler, "backup", os.path.join(member.folder, "zoo.cfg"), "--to", self.place, "--follow"]
        with open(os.path.join(self.folder, "backup.log"), "wb") as log:
            process = subprocess.Popen(words + ["--interval", "200"], stdout=log, stderr=log)
        atexit.register(process.kill)
        return process

    def _delete(self, member):
        s = Session(member.port, 30000)
        for child in s.children(ROOT + "/container"):
            s.delete(ROOT + "/container/" + child)
        for child in s.children(ROOT):
            s.delete(ROOT + "/" + child)
        s.delete(ROOT)
        s.close()

    def _parts(self):
        for path in sorted(glob.glob(self.place + "/*/part.json")):
            with open(path) as f:
                yield json.load(f)

    def _catch_up(self, process, last):
        until = time.monotonic() + CATCH_UP_S
        try:
            while time.monotonic() < until:
                expect(process.poll() is None, "the backup ended by itself: " + self._log())
                confirmed = [int(part["confirmed_through"], 16) for part in self._parts()]
                if confirmed and confirmed[-1] >= last:
                    return
                time.sleep(0.1)
            raise Mismatch("the backup has 0x%x of 0x%x: %s" % (max(confirmed, default=0), last, self._log()))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()

    def _log(self):
        with open(os.path.join(self.folder, "backup.log"), errors="replace") as f:
            return f.read()[-600:]

    def _transaction_before(self, member):
        """The transaction before the first delete below ROOT, and the digest that the leader recorded with it."""
        previous: Any = None
        for zxid, code, record in records(os.path.join(member.data, "version-2")):
            if code in DELETE_CODES and ROOT.encode() in record:
                version, digest = struct.unpack(">iQ", previous[1][-12:])
                expect_equal(version, 2, "version of the recorded digest")
                return previous[0], digest, zxid
            previous = zxid, record
        raise Mismatch("the log of server %d has no delete below %s" % (member.number, ROOT))

    def _restore(self, before, digest):
        restored = os.path.join(self.folder, "restored")
        words = ["restore", "--from", self.place, "--to-zxid", hex(before)]
        text = self.program(*words, "--into", restored, "--servers", "1,2,3")
        expect("digest 0x%x (as recorded then)" % digest in text, "digest 0x%x is not that of: %s" % (digest, text))
        again = self.program(*words, "--into", restored, "--servers", "1", code=1)
        expect("has data" in again, "a folder with data was not refused: " + again)
        for number in (1, 2):
            member = self.cluster[number]
            shutil.rmtree(member.data)
            shutil.move(os.path.join(restored, str(number)), member.data)
        for member, make in zip(self.cluster.members.values(), self.restored_makes):
            member.become(make)

    def _start_with_an_old_server(self):
        """Server 3 keeps the folder of before, with all that is to be undone."""
        restored = [self.cluster[1], self.cluster[2]]
        for member in restored:
            member.start()
        self.cluster.wait_quorum(among=restored)
        self.cluster[3].start()
        self.cluster.wait_quorum()
        self.cluster.look_same()
        for member in self.cluster.running():
            expect_equal(member.digest_mismatches() or 0, 0, "digest mismatches of server %d" % member.number)

    def _look(self, writers, before):
        """The subtree is there, no later write is, and the sessions of before are unknown."""
        for member in self.cluster.running():
            tree = patiently(member.tree)
            wanted = {path: node for path, node in self.wanted.items() if not path.endswith("/ephemeral")}
            found = {path: node for path, node in tree.items() if path == ROOT or path.startswith(ROOT + "/")}
            lost, more = wanted.keys() - found.keys(), found.keys() - wanted.keys()
            expect(not lost and not more, "server %d lacks %s, and has %s" % (member.number, lost, more))
            expect_equal(backup_name(found), backup_name(wanted), "subtree at server %d" % member.number)
            for writer in writers:
                for path, zxid in writer.created:
                    there = path in tree
                    expect_equal(there, zxid <= before, "%s of 0x%x at server %d" % (path, zxid, member.number))
                expect(writer.root + "/here" not in tree, "an ephemeral of an ended session is there")
        for old in [self.filler] + [writer.session for writer in writers]:
            self._look_at_session(old)

    def _look_at_session(self, old):
        for member in self.cluster.running():
            try:
                Session(member.port, 30000, old.id, old.password)
            except SessionExpired:
                continue
            except ConnectionLost:
                raise Mismatch("session 0x%x got no answer at server %d" % (old.id, member.number)) from None
            raise Mismatch("session 0x%x lives on at server %d" % (old.id, member.number))

    def _put_subtree_back(self, before):
        member: Member = self.cluster[2]
        s = Session(member.port, 30000)
        wanted = dump(s, ROOT)
        for path in sorted(wanted, key=lambda path: -path.count("/")):
            if path != ROOT and not path.endswith("/7"):
                s.delete(path)
        s.set(ROOT + "/7", b"changed")
        words = ["restore", "--from", self.place, "--to-zxid", hex(before), "--subtree", ROOT]
        words += ["--server", "127.0.0.1:%d" % member.port]
        text = self.program(*words, "--dry-run")
        expect(s.exists(ROOT + "/8") is None, "a dry run has created a znode")
        expect("would be created" in text, "what a dry run says: " + text)
        text = self.program(*words)
        expect("0 failed" in text and "1 left out" in text, "what a restore of a subtree says: " + text)
        expect_equal(s.get(ROOT + "/7")[0], b"changed", "a znode that exists")
        self.program(*words, "--overwrite")
        found = dump(s, ROOT)
        expect_equal(backup_name(found), backup_name(wanted), "subtree that was put back")
        s.close()


def check():
    parser = arguments(__doc__)
    parser.add_argument(
        "--peers", default="java3.9", help="the servers whose files are backed up, too (default: %(default)s)"
    )
    parser.add_argument("--ostler", default=OSTLER.split()[0], help="the program ostler (default: %(default)s)")
    args = parser.parse_args()
    peers, missing = available(args.peers)
    # The servers that are backed up, and those that start from the restored folders.
    pairs = [(args.server, args.server)] + [(peer, args.server) for peer in peers] + [(peer, peer) for peer in peers]
    done = []
    for makes, restored in pairs:
        try:
            done.append(Check(args.ostler, [makes] * 3, [restored] * 3, args.port).run())
        except Skip:
            raise
        except Exception as what:
            raise Mismatch("%s restored as %s: %s" % (makes, restored, what)) from what
        print("%s restored as %s: %s" % (makes, restored, done[-1]), flush=True)
    if missing:
        raise Skip("%s; not tried with %s" % ("; ".join(done), "; ".join(missing)))
    return "; ".join(done)


if __name__ == "__main__":
    conclude(check)
