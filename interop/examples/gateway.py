"""The gateway: requests are answered while instances of the service are killed and paused, and servers are killed. Then
the same with instances that behave badly: blame.py."""

import itertools
import threading
import time

from examples import blame
from examples.stage import Stage, answer, wait_until
from harness.outcome import expect, expect_equal

SESSION_MS = 1500
PATIENCE_MS = 300
REQUEST_EVERY_S = 0.02
PAUSE_S = 2.0
LONGEST_S = 2.0  # an answer, with all tries
AGAIN_S = 5.0  # from the start of an instance to the first answer


class Load:
    """Asks the gateway all the time, and keeps (when, status, seconds, text) of each answer."""

    def __init__(self, port):
        self.url, self.answers = "http://127.0.0.1:%d/hello/" % port, []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, daemon=True)
        self._thread.start()

    def _ask_on(self):
        for number in itertools.count():
            if self._end.wait(REQUEST_EVERY_S):
                return
            began = time.monotonic()
            status, text = answer(self.url + str(number))
            if status == 200 and not text.startswith("hello %d, from " % number):
                status = -1
            self.answers.append((began, status, time.monotonic() - began, text))

    def since(self, at):
        return [one for one in list(self.answers) if one[0] >= at]

    def end(self):
        self._end.set()
        self._thread.join(10)


def look(load, began, what):
    """Every request since then has been answered by an instance."""
    time.sleep(0.1)
    answers = load.since(began)
    bad = [one for one in answers if one[1] != 200]
    longest = max(one[2] for one in answers)
    expect(len(answers) > 5, "%s: only %d answers" % (what, len(answers)))
    expect(not bad, "%s: %d of %d requests failed: %s" % (what, len(bad), len(answers), bad[:3]))
    expect(longest < LONGEST_S, "%s: an answer took %.1f s" % (what, longest))
    froms = {one[3].split()[-1] for one in answers}
    print(
        "%s: %d requests, all answered, by %s; the longest took %.0f ms"
        % (what, len(answers), " ".join(sorted(froms)), 1000 * longest),
        flush=True,
    )
    return froms


def check(args):
    with Stage(args, "gateway") as stage:

        def greeter(name):
            options = ("--name", name, "--listen", "127.0.0.1:%d" % stage.a_port())
            one = stage.start("greeter", name, SESSION_MS, *options)
            one.wait_for("is registered")
            return one

        east, west, north = [greeter(name) for name in ("east", "west", "north")]
        port = stage.a_port()
        options = ("--listen", "127.0.0.1:%d" % port, "--patience-ms", str(PATIENCE_MS), "--down-ms", "1000")
        gateway = stage.start("gateway", "gateway", SESSION_MS, *options)
        gateway.wait_for("passes requests to greeter on")
        load = Load(port)
        began = time.monotonic()
        time.sleep(0.5)
        expect_equal(look(load, began, "three instances"), {"east", "west", "north"}, "those that answer")

        began = time.monotonic()
        east.kill_now()
        time.sleep(1)
        look(load, began, "kill -9 of east")

        began = time.monotonic()
        server = stage.kill_leader()
        time.sleep(2)
        look(load, began, "kill -9 of the leading server")
        server.start()

        began = time.monotonic()
        west.pause()
        time.sleep(PAUSE_S)
        look(load, began, "west is paused")
        west.resume()

        began = time.monotonic()
        south = greeter("south")
        north.stop()
        time.sleep(0.5)
        look(load, began, "SIGTERM of north")

        for one in (west, south):
            one.kill_now()
        wait_until("503 without an instance", lambda: load.answers[-1][1] == 503)
        began = time.monotonic()
        greeter("last")
        wait_until("an answer of a new instance", lambda: load.answers[-1][1] == 200, AGAIN_S)
        took = time.monotonic() - began
        print("all killed: 503; a new instance is started and answers after %.0f ms" % (1000 * took), flush=True)
        load.end()
        gateway.stop()
        gateway.show()
        statuses = {one[1] for one in load.answers}
        expect(statuses <= {200, 503}, "answers with other codes: %s" % statuses)
        blame.check(stage)
    return "%d requests; none failed while an instance was left, and the first was answered %.0f ms after a start" % (
        len(load.answers),
        1000 * took,
    )
