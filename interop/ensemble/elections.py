"""Three servers go through the cases of docs/elections.md, and `ostler explain election` explains each.

The document shows this output. The result of each election is checked, too.
"""

import glob
import json
import os
import subprocess
import time

from ensemble.cluster import Cluster
from ensemble.links import Links
from harness.outcome import conclude, expect, expect_equal
from harness.protocol import CREATE, create_body
from harness.server import arguments, command, four_letter_word, work_folder
from harness.session import Session

FIRST_LEADER = 2
LINK_PORTS = 30  # from the first port
PATIENCE_S = 30


class LinksOfOne(Links):
    """Only what a leader and its learners say goes through ports that can be cut, and only that of one leader."""

    def __init__(self, size, base_port, number):
        super().__init__(size, base_port)
        self.number = number

    def to(self, seen_by, number, port):
        is_quorum_port = (seen_by, number) not in self.used
        if number != self.number:
            return port
        return super().to(seen_by, number, port) if is_quorum_port else port


class Walk:
    def __init__(self, cluster, links, ostler):
        self.cluster, self.links, self.ostler = cluster, links, ostler

    def explain(self, *options):
        servers = ",".join("127.0.0.1:%d" % port for port in self.cluster.ports())
        words = [self.ostler, "explain", "election", servers, *options]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def show(self, title, *options):
        print("==== %s" % title)
        print(self.explain(*options), flush=True)

    def latest(self):
        return json.loads(self.explain("--json"))["elections"][0]

    def fresh_start(self):
        first, second, third = self.cluster[1], self.cluster[2], self.cluster[3]
        first.start()
        until("server 1 repeats its vote", lambda: told(first) > 1)
        second.start()
        self.cluster.wait_quorum(among=[first, second])
        self.write(second, "/first")
        third.start()
        self.cluster.wait_quorum()
        latest = self.latest()
        expect_equal((latest["kind"], latest["winner"]), ("joined", FIRST_LEADER), "what server 3 comes to")
        self.show("fresh start", "--last", "2")

    def followers_return(self):
        self.cluster[1].kill()
        self.write(self.cluster[2], "/while-away")
        self.cluster[1].start()
        self.cluster.wait_quorum()
        latest = self.latest()
        expect_equal((latest["kind"], latest["winner"]), ("joined", FIRST_LEADER), "what server 1 comes back to")
        self.show("a follower's return")

    def leaders_death(self):
        """The leader dies with writes in its log that no other server has."""
        leader, others = self.cluster[FIRST_LEADER], [self.cluster[1], self.cluster[3]]
        session = Session(leader.port, 30000)
        session.create("/known-to-all")
        for other in others:
            self.write(other, "/at-%d" % other.number)
        self.links.cut(FIRST_LEADER, 1)
        self.links.cut(FIRST_LEADER, 3)
        session.send_all((CREATE, create_body("/lost-%d" % n)) for n in range(3))
        until("the leader has logged them", lambda: logged(leader, b"/lost-2"))
        leader.kill()
        self.links.stop()  # with all that it held back
        self.cluster.wait_quorum(among=others)
        latest = self.latest()
        expect_equal((latest["kind"], latest["winner"]), ("formed", 3), "after the leader's death")
        self.show("the leader's death")
        self.links.start()
        leader.start()
        self.cluster.wait_quorum()
        until("the old leader is part of the new epoch", lambda: self.latest()["kind"] == "joined")
        expect(any("never committed" in sentence for sentence in self.latest()["summary"]), "what only the old leader had is taken back")
        self.cluster.look_same()
        self.show("the old leader's return")

    def write(self, member, path):
        session = Session(member.port, 30000)
        session.create(path)
        session.drop()


def until(what, there):
    ends = time.monotonic() + PATIENCE_S
    while not there():
        expect(time.monotonic() < ends, "not within %d s: %s" % (PATIENCE_S, what))
        time.sleep(0.02)


def told(member):
    """How often a server without a leader has sent its vote."""
    try:
        searches = json.loads(four_letter_word(member.port, "elec"))["searches"]
    except OSError:
        return 0
    return sum(moment["what"] == "told" for search in searches for moment in search["moments"])


def logged(member, text):
    for path in glob.glob(os.path.join(member.data, "version-2", "log.*")):
        with open(path, "rb") as log:
            if text in log.read():
                return True
    return False


def check():
    args = arguments(__doc__).parse_args()
    ostler = command(args.server)[0]
    links = LinksOfOne(3, args.port + LINK_PORTS, FIRST_LEADER)
    with links, Cluster([args.server] * 3, work_folder("elections"), args.port, links=links) as cluster:
        links.start()
        walk = Walk(cluster, links, ostler)
        walk.fresh_start()
        walk.followers_return()
        walk.leaders_death()
        return "three occasions explained"


if __name__ == "__main__":
    conclude(check)
