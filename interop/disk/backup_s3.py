"""A backup in S3-compatible storage: a local S3 server (moto), which is stopped in between, and comes back.

`ostler backup --follow` writes into a bucket while a client writes. The storage is stopped for a while, then the backup
goes on. `ostler restore` makes a folder of it, and a server that starts from there has the tree of that transaction.
The program must have been built with `--features s3`."""

import atexit
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from harness.outcome import Skip, conclude, expect, expect_equal
from harness.peers import need
from harness.server import OSTLER, Server, arguments, command, work_folder
from harness.session import Session
from harness.tree import dump

KEYS = {"AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "s3cr3t-never-shown", "AWS_REGION": "us-east-1"}
LOAD_S = 2.0
PATIENCE_S = 60.0


class Storage:
    """moto's S3 server. It holds everything in memory, so a stop is a pause."""

    def __init__(self, port):
        self.url = "http://127.0.0.1:%d" % port
        program = os.path.join(need("moto"), "bin", "moto_server")
        out = subprocess.DEVNULL
        self.process = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=out, stderr=out)
        atexit.register(self.process.kill)
        until = time.monotonic() + PATIENCE_S
        while not self._has_bucket():
            expect(time.monotonic() < until, "moto did not start")
            time.sleep(0.1)

    def _has_bucket(self):
        try:
            put = urllib.request.Request(self.url + "/backups", method="PUT")
            with urllib.request.urlopen(put, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def objects(self):
        """The number of objects."""
        with urllib.request.urlopen(self.url + "/backups?list-type=2", timeout=20) as answer:
            return str(answer.read()).count("<Key>")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


class Writer(threading.Thread):
    def __init__(self, port):
        super().__init__(daemon=True)
        self.session = Session(port, 30000)
        self.session.create("/app")
        self.count = 0
        self.stopping = False

    def run(self):
        while not self.stopping:
            self.session.create("/app/%d" % self.count, b"%d" % self.count * 100)
            self.count += 1


class Check:
    def __init__(self, make, ostler, port):
        self.make, self.ostler = make, command(ostler)[0]
        self.folder = work_folder("backup-s3")
        self.server = Server(make, os.path.join(self.folder, "1"), port, {"snapCount": 500, "preAllocSize": 512})
        self.storage = Storage(port + 1)
        self.env = dict(os.environ, AWS_ENDPOINT=self.storage.url, AWS_ALLOW_HTTP="true", **KEYS)
        self.said = ""

    def program(self, *words, code=0):
        pipe = subprocess.PIPE
        p = subprocess.run([self.ostler, *words], stdout=pipe, stderr=subprocess.STDOUT, text=True, env=self.env)
        print("$ ostler %s\n%s" % (" ".join(words), p.stdout), end="", flush=True)
        self.said += p.stdout
        if "built without S3" in p.stdout:
            raise Skip("the program was built without --features s3")
        expect_equal(p.returncode, code, "exit code of ostler %s" % words[0])
        return p.stdout

    def run(self):
        place = "s3://backups/zk1"
        with self.server:
            config = os.path.join(self.server.folder, "zoo.cfg")
            self.program("backup", config, "--to", place)
            writer = Writer(self.server.port)
            writer.start()
            follower = self._follow(config, place)
            time.sleep(LOAD_S)
            self.storage.pause()
            time.sleep(LOAD_S)
            self.storage.resume()
            time.sleep(LOAD_S)
            writer.stopping = True
            writer.join()
            wanted, last = dump(writer.session, "/app"), writer.session.seen_zxid
            follower.send_signal(signal.SIGTERM)
            follower.wait()
            self._note(follower)
            self.program("backup", config, "--to", place)
        self.program("restore", "--from", place, "--verify")
        restored = os.path.join(self.folder, "restored")
        self.program("restore", "--from", place, "--to-zxid", "0x%x" % last, "--into", restored, "--servers", "1")
        again = Server(self.make, os.path.join(self.folder, "2"), self.server.port)
        os.rmdir(again.data)
        os.rename(os.path.join(restored, "1"), again.data)
        with again:
            expect_equal(dump(Session(again.port, 30000), "/app"), wanted, "the restored tree")
        objects = self.storage.objects()
        self._refusals(place)
        expect(KEYS["AWS_SECRET_ACCESS_KEY"] not in self.said, "the secret key was printed")
        return "%d znodes restored from %d objects" % (len(wanted), objects)

    def _follow(self, config, place):
        self.log = os.path.join(self.folder, "backup.log")
        with open(self.log, "wb") as log:
            words = [self.ostler, "backup", config, "--to", place, "--follow", "--interval", "200"]
            process = subprocess.Popen(words, stdout=log, stderr=log, env=self.env)
        atexit.register(process.kill)
        return process

    def _note(self, follower):
        with open(self.log, errors="replace") as f:
            text = f.read()
        print("the backup that followed ended with %s:\n%s" % (follower.returncode, text[-1500:]), flush=True)
        self.said += text

    def _refusals(self, place):
        """A bucket that does not exist, and storage that is gone, are named."""
        expect("absent" in self.program("restore", "--from", "s3://absent/zk1", "--verify", code=1), "no bucket named")
        self.storage.process.kill()
        expect("zk1" in self.program("restore", "--from", place, "--verify", code=1), "the place is not named")


def check():
    parser = arguments(__doc__)
    parser.add_argument("--ostler", default=None, help="the program (default: that of the server)")
    args = parser.parse_args()
    return Check(args.server, args.ostler or OSTLER, args.port).run()


if __name__ == "__main__":
    conclude(check)
