"""Servers that the configuration in force does not name: one with the lowest id and one with the highest. They follow
while each voter is restarted, which breaks all their connections, then join, leave, and follow again.

    python3 interop/run.py ensemble.unlisted [--server CMD] [--port N] [--makes CMD,CMD,CMD,CMD,CMD]

Servers 2 to 4 vote at first, servers 1 and 5 are to join. Each may be a Java server (java3.9)."""

import time

from ensemble.reconfig import Changes
from harness.outcome import Mismatch, conclude, expect
from harness.server import arguments, work_folder
from harness.session import ConnectionLost, Refused, Session, SessionExpired

VOTERS, UNLISTED = (2, 3, 4), (1, 5)
FOLLOWS_WITHIN_S = 20


def wait_follows(member, path, value):
    """Waits until a server shows this znode."""
    until = time.monotonic() + FOLLOWS_WITHIN_S
    while time.monotonic() < until:
        member.look_alive()
        try:
            session = Session(member.port)
            found = session.get(path)[0]
            session.close()
            if found == value:
                return
        except (ConnectionLost, SessionExpired, Refused, OSError):
            pass
        time.sleep(0.05)
    raise Mismatch("server %d does not follow the others: %s" % (member.number, member.log_tail(3000)))


class Counter:
    """A znode that gets another value for each look."""

    def __init__(self, cluster):
        self.cluster, self.value = cluster, 0

    def wait_all_follow(self):
        """Writes by a voter, and waits until all running servers show it."""
        self.cluster.wait_quorum(among=[self.cluster[n] for n in VOTERS])
        self.value += 1
        session = Session(self.cluster[VOTERS[0]].port)
        if self.value == 1:
            session.create("/counter", b"0")
        session.set("/counter", b"%d" % self.value)
        session.close()
        for member in self.cluster.running():
            wait_follows(member, "/counter", b"%d" % self.value)


def restart_voters(cluster, counter):
    for number in VOTERS:
        cluster[number].kill()
        cluster[number].start()
        counter.wait_all_follow()


def check():
    parser = arguments(__doc__)
    parser.add_argument("--makes", help="the commands of servers 1 to 5, comma-separated")
    args = parser.parse_args()
    makes = args.makes.split(",") if args.makes else [args.server] * 5
    changes = Changes(makes, work_folder("unlisted"), args.port)
    cluster = changes.cluster
    counter = Counter(cluster)
    try:
        for number in VOTERS:
            changes.add(number, VOTERS)
        counter.wait_all_follow()
        for number in UNLISTED:
            changes.add(number, sorted((*VOTERS, number)))
        counter.wait_all_follow()
        restart_voters(cluster, counter)
        print("both follow while the voters are restarted", flush=True)
        for number in UNLISTED:
            changes.change(joining="server.%d=%s" % (number, changes.spec(number)))
        changes.wait_shown(sorted(VOTERS + UNLISTED))
        print("both have joined", flush=True)
        for number in UNLISTED:
            changes.change(leaving=str(number))
        changes.wait_shown(VOTERS)
        restart_voters(cluster, counter)
        texts = {changes.config(member) for member in cluster.running()}
        expect(len(texts) == 1, "the servers show several configurations: %s" % texts)
        return "followed through %d restarts of voters, joined and left" % (2 * len(VOTERS))
    finally:
        cluster.stop()


if __name__ == "__main__":
    conclude(check)
