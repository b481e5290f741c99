"""The rate-limited queue: no acknowledged item is lost, and in no second more items are begun than the limit says.

While items are put and handled, a consumer and the leading server are killed."""

import time

from examples.stage import Stage, wait_until
from harness.outcome import expect, expect_equal

SESSION_MS = 2500
LIMIT = 10  # a second
ITEMS = 35  # of each of two producers
HAS_PUT, HANDLES = r"^has put (\S+)$", r"^\S+ handles (\S+)$"
# The times are those of one machine's clock, which may be set by a little while the check runs.
CLOCK_S = 0.005


def handled(workers):
    """(when, item), in the order of time."""
    return sorted((line.at, match[1]) for worker in workers for line, match in worker.said(HANDLES))


def put(producers):
    return [match[1] for producer in producers for _, match in producer.said(HAS_PUT)]


def check_rate(times):
    """The largest number of items that were begun within a second."""
    for begin, end in zip(times, times[LIMIT:]):
        expect(end - begin > 1 - CLOCK_S, "%d items were begun within %.3f s" % (LIMIT + 1, end - begin))
    most, first = 0, 0
    for at, time_s in enumerate(times):
        while time_s - times[first] >= 1:
            first += 1
        most = max(most, at - first + 1)
    return most


def check(args):
    with Stage(args, "rate") as stage:

        def worker(name):
            return stage.start(
                "rate-limited-queue", name, SESSION_MS, "work", "--name", name, "--per-second", str(LIMIT)
            )

        def producer(name):
            return stage.start("rate-limited-queue", name, SESSION_MS, "put", "--prefix", name, "--count", str(ITEMS))

        workers = [worker(name) for name in ("one", "two", "three")]
        for one in workers:
            one.wait_for("handles items, and all consumers together")
        producers = [producer("red")]
        wait_until("some items are handled", lambda: len(handled(workers)) >= LIMIT)
        workers[0].kill_now()
        print("kill -9 of a consumer", flush=True)
        producers.append(producer("blue"))
        producers[1].wait_for("has put blue-3")
        server = stage.kill_leader()
        time.sleep(1)
        server.start()
        for one in producers:
            expect_equal(one.finish(), 0, "the end of a producer")
        expect_equal(len(put(producers)), 2 * ITEMS, "acknowledged items")
        wait_until("all items are handled", lambda: {item for _, item in handled(workers)} >= set(put(producers)), 25)
        for one in workers[1:]:
            one.stop()
        workers[1].show()
        begun = handled(workers)
        twice = len(begun) - len({item for _, item in begun})
        most = check_rate([at for at, _ in begun])
        took = begun[-1][0] - begun[0][0]
    return "%d acknowledged items, none lost, %d handled twice, in %.1f s; at most %d begun in a second, of %d" % (
        2 * ITEMS,
        twice,
        took,
        most,
        LIMIT,
    )
