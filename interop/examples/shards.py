"""The pool of workers: no shard has two workers, and each has one again after workers and servers were killed.

Three things are looked at from outside: the times at which workers say that they begin and stop a shard, the znodes
that say who owns a shard, and the transaction log of a server, which has each step of each worker in its order."""

import json
import subprocess
import time

from ensemble.cluster import patiently
from examples.stage import Stage, wait_until
from harness.outcome import expect, expect_equal
from harness.protocol import Acl
from harness.server import command
from harness.session import Refused, Session

SESSION_MS = 3000
LONG_SESSION_MS = 20000  # no end of it is waited for
SHARDS = 8
READ = 1  # the right
LOCKS, PARTY = "/examples/shards/pool/locks", "/examples/shards/pool/party"
PROGRESS = "/examples/shards/progress"
WORKS, STOPS = r"^works on (.*)$", r"^stops (.*): "


class View:
    """The znodes of the pool, over the deaths of servers."""

    def __init__(self, stage):
        self.stage = stage

    def _read(self, ask):
        def once():
            session = Session(self.stage.any_port(), 5000)
            try:
                found = ask(session)
                session.close()
                return found
            finally:
                session.drop()

        return patiently(once)

    def owners(self):
        """{shard: the session that owns it}."""

        def ask(session):
            found = {}
            for shard in children(session, LOCKS):
                queue = sorted(children(session, LOCKS + "/" + shard), key=lambda name: name[-10:])
                stat = session.exists("%s/%s/%s" % (LOCKS, shard, queue[0])) if queue else None
                if stat:
                    found[shard] = stat.ephemeralOwner
            return found

        return self._read(ask)

    def steps(self):
        """{shard: the number of steps}."""

        def ask(session):
            return {
                shard: json.loads(session.get(PROGRESS + "/" + shard)[0])["steps"]
                for shard in children(session, PROGRESS)
            }

        return self._read(ask)

    def wait_for_workers(self, number, what):
        """Waits until all shards are owned, by this number of workers, and each has made a step since."""
        began = time.monotonic()

        def divided():
            owners = self.owners()
            return len(owners) == SHARDS and len(set(owners.values())) == number

        wait_until("%s: %d workers own all shards" % (what, number), divided, 20, 0.1)
        before = self.steps()
        wait_until(
            "%s: a step with each shard" % what,
            lambda: (
                all(steps > before.get(shard, 0) for shard, steps in self.steps().items())
                and len(before) == SHARDS
                or not before
                and len(self.steps()) == SHARDS
            ),
            10,
            0.1,
        )
        print("%s: %d workers work on all shards after %.1f s" % (what, number, time.monotonic() - began), flush=True)


def children(session, path):
    try:
        return session.children(path)
    except Refused:
        return []


def spans(worker, paused):
    """[(shard, begin, end)] of a worker. A pause ends a span: `paused` has the times of pauses."""
    open_spans, found = {}, []
    for line, match in worker.said(WORKS + "|" + STOPS):
        if match[1] is not None:
            open_spans = dict.fromkeys(match[1].split(), line.at)
            continue
        for shard in match[2].split():
            begin = open_spans.pop(shard)
            ends = [at for at in paused if begin < at < line.at]
            found.append((shard, begin, min([line.at, *ends])))
    expect(not open_spans or worker.ended_at, "%s has not stopped %s" % (worker.name, open_spans))
    return found + [(shard, begin, worker.ended_at) for shard, begin in open_spans.items()]


def check_spans(workers, pauses):
    """No two spans of a shard have a moment in common."""
    all_spans = [
        (shard, begin, end, one.name) for one in workers for shard, begin, end in spans(one, pauses.get(one, []))
    ]
    all_spans.sort()
    for (shard, _, end, name), (other, begin, _, following) in zip(all_spans, all_spans[1:]):
        expect(
            shard != other or end <= begin,
            "shard %s: %s began %.3f s before %s had stopped" % (shard, following, end - begin, name),
        )
    return len(all_spans)


def check_log(args, member):
    """In the transaction log no step has an earlier token than one before it, and each counts on."""
    words = [command(args.server)[0], "inspect", "log", member.data, "--json", "--data", "text"]
    p = subprocess.run(words, capture_output=True, text=True, check=False)
    expect(p.returncode == 0, "ostler inspect: " + p.stderr[-500:])
    last, steps = {}, 0
    for shard, now in steps_of(p.stdout):
        before = last.get(shard, {"token": 0, "steps": 0})
        expect(now["token"] >= before["token"], "shard %s: %s was written after %s" % (shard, now, before))
        expect_equal(now["steps"], before["steps"] + 1, "the number of steps with shard " + shard)
        last[shard], steps = now, steps + 1
    expect(len(last) == SHARDS, "the log has steps with %d shards only" % len(last))
    return steps


def steps_of(log):
    """(shard, data) of each step."""
    for line in log.splitlines():
        # A step is a multi: the check of the fence, and the write.
        for part in json.loads(line).get("parts", []):
            path, data = part.get("path", ""), part.get("data")
            if path.startswith(PROGRESS + "/") and data:
                yield path.rpartition("/")[2], json.loads(data)


def check_error(stage, view, worker):
    """A worker that ends with an error closes its session: so its shards and its membership are gone at once."""
    session = Session(stage.any_port())
    session.set_acl(PROGRESS + "/000", (Acl(READ, "world", "anyone"),))
    session.close()
    failing = worker("failing", LONG_SESSION_MS)
    failing.wait_for("works on 000")
    expect(failing.process.wait(10) != 0, "a worker that may not write has ended with 0")
    session = Session(stage.any_port())
    gone_within = LONG_SESSION_MS / 1000 / 2
    wait_until("the end of a failed worker's membership", lambda: not session.children(PARTY), gone_within)
    wait_until("the end of a failed worker's ownership", lambda: not view.owners(), gone_within)
    session.close()
    print("a worker ends with an error: its shards are free at once", flush=True)


def check(args):
    with Stage(args, "shards") as stage:

        def worker(name, session_ms=SESSION_MS):
            options = ("--name", name, "--shards", str(SHARDS), "--settle-ms", "300", "--pause-ms", "50")
            return stage.start("shard-worker", name, session_ms, *options)

        view, pauses = View(stage), {}
        one, two, three = [worker(name) for name in ("one", "two", "three")]
        view.wait_for_workers(3, "started")
        four = worker("four")
        view.wait_for_workers(4, "one more")

        one.kill_now()
        view.wait_for_workers(3, "kill -9 of a worker")

        server = stage.kill_leader()
        view.wait_for_workers(3, "kill -9 of the leading server")
        server.start()
        stage.cluster.wait_quorum()

        pauses[two] = [time.time()]
        two.pause()
        view.wait_for_workers(2, "a worker is paused")
        two.resume()
        view.wait_for_workers(3, "it goes on")

        three.stop()
        view.wait_for_workers(2, "SIGTERM of a worker")
        for last in (two, four):
            last.stop()
        four.show(count=4)
        found = check_spans([one, two, three, four], pauses)
        steps = check_log(args, stage.cluster[server.number % 3 + 1])
        check_error(stage, view, worker)
    return "%d times a worker had a shard, never two at once; %d steps in the order of the tokens" % (found, steps)
