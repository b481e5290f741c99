"""The end of the programs: each ends by SIGTERM within some seconds, also if no server is there and it holds something
that it would give back."""

import time

from examples.postgres import Postgres
from examples.stage import Stage
from harness.outcome import expect

SESSION_MS = 6000
# Each has said this by then, and holds something that it has to give back at its end.
HOLDS = {
    "greeter": "east is registered",
    "job-scheduler": "^.*leads, with token",
    "shard-worker": "works on 000",
    "rate-limited-queue": "handles item-1",
    "config-watcher": "follows /examples/config",
    "gateway": "passes requests to greeter on",
}
ENDS_WITHIN_S = 8.0


def start(stage, address):
    def one(program, *options):
        return stage.start(program, program, SESSION_MS, *options)

    put = one("rate-limited-queue", "put", "--count", "20")
    put.wait_for("has put item-20")
    return [
        one("greeter", "--name", "east"),
        one("job-scheduler", "--name", "a", "--postgres", address, "--job-ms", "20000"),
        one("shard-worker", "--name", "a"),
        one("rate-limited-queue", "work", "--name", "a", "--per-second", "1"),
        one("config-watcher"),
        one("gateway", "--listen", "127.0.0.1:%d" % stage.a_port()),
    ]


def check(args):
    with Postgres(args.port + 90) as database, Stage(args, "end") as stage:
        programs = start(stage, database.address())
        for one in programs:
            one.wait_for(HOLDS[one.name])
        stage.cluster.stop()
        print("kill -9 of all servers", flush=True)
        for one in programs:
            one.wait_for("connection: Suspended")
        began = time.monotonic()
        for one in programs:
            one.process.terminate()
        took = {}
        for one in programs:
            one.stop(2 * ENDS_WITHIN_S)
            took[one.name] = time.monotonic() - began
            print("%s has ended after %.1f s" % (one.name, took[one.name]), flush=True)
        longest = max(took.values())
        expect(longest < ENDS_WITHIN_S, "without a server a program ended only after %.1f s" % longest)
    return "%d programs ended without a server, the last one %.1f s after SIGTERM" % (len(programs), longest)
