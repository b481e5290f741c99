"""The config watcher: it ends with the last good configuration, whatever comes before, and whichever server dies."""

import json

from ensemble.cluster import patiently
from examples.stage import Stage, wait_until
from harness.outcome import expect_equal
from harness.protocol import OPEN, Acl
from harness.session import Refused, Session

SESSION_MS = 1500
PATH, UNREADABLE = "/config", "/unreadable"
NOT_READABLE = (Acl(30, "world", "anyone"),)
WRITES = 30
USES = r"^uses version (\d+): (\d+) workers say \"(.*)\"$"
KEEPS = r"^keeps version (\d+) with \d+ workers: version (\d+) is broken"
BROKEN = (
    b"{",
    b"[]",
    b'{"workers": 0, "greeting": "x"}',
    b'{"workers": 1}',
    b'{"workers": 1, "greeting": "x", "a": 1}',
)


class Writer:
    """Writes configurations, over the deaths of servers."""

    def __init__(self, stage):
        self.stage, self.good = stage, {}

    def write(self, data):
        """Returns the version of the znode."""
        stat = patiently(lambda: self._try(data))
        if data not in BROKEN:
            self.good[stat.version] = json.loads(data)["greeting"]
        return stat.version

    def _try(self, data):
        session = Session(self.stage.any_port(), 5000)
        try:
            try:
                # The first byte of what is there, for a write whose reply was lost.
                if session.get(PATH)[0] == data:
                    return session.get(PATH)[1]
                return session.set(PATH, data)
            except Refused:
                session.create(PATH, data)
                return session.get(PATH)[1]
            finally:
                session.close()
        finally:
            session.drop()


def good(number):
    return json.dumps({"workers": 1 + number % 64, "greeting": "hello %d" % number}).encode()


def last_of(watcher, pattern):
    """The version in its last line of this kind; None if there is none."""
    said = watcher.said(pattern)
    return int(said[-1][1][1]) if said else None


def wait_for_use(watchers, version):
    for watcher in watchers:
        wait_until("%s uses version %d" % (watcher.name, version), lambda: last_of(watcher, USES) == version)


def check_uses(watcher, writer):
    """It has used good configurations only, in their order."""
    used = [(int(match[1]), match[3]) for _, match in watcher.said(USES)]
    for version, greeting in used:
        expect_equal(greeting, writer.good.get(version), "version %d as %s uses it" % (version, watcher.name))
    versions = [version for version, _ in used]
    expect_equal(versions, sorted(set(versions)), "the versions that %s has used" % watcher.name)
    return len(used)


def check_unreadable(stage):
    """A znode that may not be read: the watcher says so, keeps what it has, and uses the znode as soon as it may."""
    session = Session(stage.any_port(), 5000)
    session.create(UNREADABLE, good(0), acl=NOT_READABLE)
    watcher = stage.start("config-watcher", "of an unreadable one", SESSION_MS, "--path", UNREADABLE)
    watcher.wait_for("waits for a first good configuration: the znode cannot be read: ")
    session.set_acl(UNREADABLE, OPEN)
    wait_for_use([watcher], 0)
    session.set_acl(UNREADABLE, NOT_READABLE)
    session.close()
    # There is no event for that: the watcher hears of it when it connects again, to any server.
    for member in stage.cluster.running():
        member.kill()
        member.start()
        stage.cluster.wait_quorum()
    watcher.wait_for("keeps version 0 with 1 workers: the znode cannot be read: ")
    watcher.show()
    watcher.stop()


def check(args):
    with Stage(args, "config") as stage:
        writer = Writer(stage)
        watchers = [stage.start("config-watcher", name, SESSION_MS, "--path", PATH) for name in ("one", "two")]
        for watcher in watchers:
            watcher.wait_for("follows " + PATH)
        writer.write(BROKEN[0])
        for watcher in watchers:
            watcher.wait_for("waits for a first good configuration: version 0 is broken")
        wait_for_use(watchers, writer.write(good(0)))

        for number in range(1, WRITES + 1):
            if number == WRITES // 3:
                server = stage.kill_leader()
            if number == 2 * WRITES // 3:
                server.start()
                stage.cluster.wait_quorum()
                watchers[1].kill_now()
                watchers[1] = stage.start("config-watcher", "two again", SESSION_MS, "--path", PATH)
                print("kill -9 of a watcher, which is started again", flush=True)
            writer.write(good(number))
            writer.write(BROKEN[number % len(BROKEN)])
        server = stage.kill_leader()
        last = writer.write(good(WRITES + 1))
        wait_for_use(watchers, last)
        broken = writer.write(BROKEN[1])
        for watcher in watchers:
            wait_until(
                "%s sees the broken one" % watcher.name,
                lambda: (said := watcher.said(KEEPS)) and (int(said[-1][1][1]), int(said[-1][1][2])) == (last, broken),
            )
        watchers[0].show()
        for watcher in watchers:
            watcher.stop()
        used = [check_uses(watcher, writer) for watcher in stage.instances]
        server.start()
        stage.cluster.wait_quorum()
        check_unreadable(stage)
    return "version %d in use at the end, %d broken ones never; %s configurations used" % (
        last,
        WRITES + 2,
        ", ".join(map(str, used)),
    )
