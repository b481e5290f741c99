"""An ensemble under load while servers are killed, stopped for a while, and cut off from each other.

Each round injects one fault, waits for a quorum where there must be one, repairs the fault, and waits until all servers
serve and every client writes. Every few rounds the load pauses: all trees must be equal, with equal digests for each
zxid for which two servers kept one, and everything acknowledged must be there in order (see load.py). The seed decides
the faults and their times."""

import random
import time
from collections import Counter

from ensemble.cluster import Cluster
from ensemble.links import Links
from ensemble.load import SETTINGS, Load
from ensemble.namespaces import Namespaces
from harness.outcome import Mismatch, conclude, expect, expect_equal
from harness.server import NotServing, arguments, work_folder

TICK_MS, SYNC_LIMIT, INIT_LIMIT = 200, 10, 30
SYNC_S = TICK_MS * SYNC_LIMIT / 1000
LINK_PORTS = 30  # from the first port
LOOK_EVERY = 10


class Storm:
    def __init__(self, cluster, load, links, chance):
        self.cluster, self.load, self.links, self.chance = cluster, load, links, chance
        self.mismatches = Counter()
        self.longest_without_leader = 0.0  # after kills

    # ---- harms ----
    def kill_leader(self):
        self._kill_some([self.cluster.wait_leader()])

    def kill_follower(self):
        self._kill_some([self.chance.choice(self._followers())])

    def kill_minority(self):
        members = list(self.cluster.members.values())
        self._kill_some(self.chance.sample(members, (len(members) - 1) // 2))

    def kill_all(self):
        members = list(self.cluster.members.values())
        self._kill(members)
        self.chance.shuffle(members)
        for member in members:
            member.start()

    def kill_follower_then_leader(self):
        """The follower comes back behind the others while a new leader is elected."""
        follower, leader = self.chance.choice(self._followers()), self.cluster.wait_leader()
        self._kill([follower])
        self.load.wait_progress()
        self._kill([leader])
        follower.start()
        self._wait_leader(self._others([leader]))
        leader.start()

    def stop_leader(self):
        """Stops the leader for longer than syncLimit: there is a new leader when it continues."""
        leader = self.cluster.wait_leader()
        leader.pause()
        try:
            self.cluster.wait_quorum(among=self._others([leader]))
        finally:
            leader.resume()

    def stop_leader_shortly(self):
        self._stop_shortly(self.cluster.wait_leader())

    def stop_follower_shortly(self):
        """Its clients reconnect to other servers; their requests to the stopped one must not be written when it
        continues."""
        self._stop_shortly(self.chance.choice(self._followers()))

    def cut_off_leader(self):
        """Its clients still reach it."""
        leader = self.cluster.wait_leader()
        self.links.cut_off(leader.number)
        self.cluster.wait_quorum(among=self._others([leader]))
        time.sleep(self.chance.uniform(0, SYNC_S))

    def silence_leader(self):
        """The leader gets the others' packets, but they get none of its own."""
        leader = self.cluster.wait_leader()
        self.links.cut_off(leader.number, both_ways=False)
        self.cluster.wait_quorum(among=self._others([leader]))

    def deafen_leader(self):
        """The others get the leader's packets, but it gets none of theirs: they may elect it again and again."""
        number = self.cluster.wait_leader().number
        self.links.part([n for n in self.links.numbers if n != number], [number], both_ways=False)
        time.sleep(self.chance.uniform(0.5, 2) * SYNC_S)

    def leave_leader_a_minority(self):
        leader = self.cluster.wait_leader()
        company = self.chance.sample(self._followers(), (len(self.cluster.members) - 1) // 2 - 1)
        majority = self._others([leader, *company])
        self.links.part([leader.number, *(m.number for m in company)], [m.number for m in majority])
        self.cluster.wait_quorum(among=majority)

    def cut_off_follower(self):
        follower = self.chance.choice(self._followers())
        self.links.cut_off(follower.number, both_ways=self.chance.random() < 0.5)
        time.sleep(self.chance.uniform(0.1, 1.5) * SYNC_S)

    def cut_some_links(self):
        """Cuts random links in random directions. Only the result afterwards counts."""
        for pair in self.links.pairs:
            if self.chance.random() < 0.3:
                self.links.cut(*pair)
        time.sleep(self.chance.uniform(0.1, 1.5) * SYNC_S)

    # ---- their parts ----
    def _followers(self):
        return self._others([self.cluster.wait_leader()])

    def _others(self, harmed):
        return [m for m in self.cluster.members.values() if m not in harmed]

    def _kill(self, members):
        for member in members:
            self.count_mismatches(member)
        for member in members:
            member.kill()

    def _kill_some(self, members):
        self._kill(members)
        self._wait_leader(self._others(members))
        time.sleep(self.chance.uniform(0, 0.3))
        for member in members:
            member.start()

    def _wait_leader(self, among):
        began = time.monotonic()
        self.cluster.wait_quorum(among=among)
        self.longest_without_leader = max(self.longest_without_leader, time.monotonic() - began)

    def _stop_shortly(self, member):
        member.pause()
        time.sleep(self.chance.uniform(0.6, 0.95) * SYNC_S)
        member.resume()

    def count_mismatches(self, member):
        """A kill forgets the count."""
        self.mismatches[member.number] += member.digest_mismatches() or 0

    # ---- rounds ----
    def harms(self):
        """Names of the methods above, each as often as it should come."""
        names = ["kill_leader"] * 4 + ["kill_follower"] * 2 + ["kill_follower_then_leader"] * 2
        names += ["kill_all", "stop_leader", "stop_leader_shortly", "stop_follower_shortly"]
        if len(self.cluster.members) >= 5:
            names += ["kill_minority"] * 2 + ["leave_leader_a_minority"] * 2
        return names + ["cut_off_leader", "silence_leader", "deafen_leader", "cut_off_follower", "cut_some_links"]

    def round(self, harm):
        time.sleep(self.chance.uniform(0.05, 0.5))  # a random moment of the load
        getattr(self, harm)()
        self.links.heal()
        self.cluster.wait_quorum()
        self.load.wait_progress()

    def look(self):
        """Checks that every server has everything, and starts the load again."""
        self.load.stop()
        member = self.chance.choice(self.cluster.running())
        self.load.check(member.port)
        self.cluster.look_same()
        for member in self.cluster.running():
            expect_equal(member.digest_mismatches(), 0, "digest mismatches of server %d" % member.number)
        expect_equal(dict(+self.mismatches), {}, "digest mismatches before kills")
        expect_equal(self.load.expired, 0, "sessions that ended although their clients came back in time")

    def show(self):
        """After a failure: prints the servers' roles, and whether their trees differ."""
        self.links.heal()
        for one in self.load.all:
            one.stopping = True
        for member in self.cluster.running():
            about = member.srvr()
            print(
                "server %d: %s at %s, %s nodes"
                % (member.number, about.get("Mode"), about.get("Zxid"), about.get("Node count"))
            )
        try:
            self.cluster.wait_quorum(30)
            print("%d nodes, the same at all servers" % self.cluster.look_same())
        except Exception as what:
            print(what, flush=True)


def plan(storm, rounds, chance):
    """Every fault comes early, and about as often as it is listed."""
    deck = []
    for _ in range(rounds):
        if not deck:
            deck = storm.harms()
            chance.shuffle(deck)
        yield deck.pop()


def check():
    parser = arguments(__doc__)
    parser.add_argument("--size", type=int, default=3, help="servers: 3 or 5 (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="20 rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="these harms, comma-separated, in this order")
    parser.add_argument(
        "--links",
        choices=["ports", "namespaces"],
        default="ports",
        help="what is cut: connections through forwarding ports, or the links of network namespaces, one "
        "per server, which takes root (default: %(default)s)",
    )
    parser.add_argument("--clients", type=int, default=4)
    args = parser.parse_args()
    rounds, chance = 20 if args.quick else args.rounds, random.Random(args.seed)
    settings = {
        **SETTINGS,
        "tickTime": TICK_MS,
        "syncLimit": SYNC_LIMIT,
        "initLimit": INIT_LIMIT,
        "snapCount": 5000,
        "preAllocSize": 1024,
    }
    print("seed %d, %d servers, %d rounds" % (args.seed, args.size, rounds), flush=True)
    between = Namespaces(args.size) if args.links == "namespaces" else Links(args.size, args.port + LINK_PORTS)
    with (
        between as links,
        Cluster([args.server] * args.size, work_folder("storm"), args.port, settings, links=links) as cluster,
    ):
        links.start()
        cluster.start().wait_quorum()
        load = Load(cluster.ports(), args.clients, args.seed)
        storm = Storm(cluster, load, links, chance)
        only = list(filter(None, args.only.split(",")))
        harms = [only[n % len(only)] for n in range(rounds)] if only else plan(storm, rounds, chance)
        load.start()
        for n, harm in enumerate(harms, 1):
            began, before = time.monotonic(), load.acknowledged
            try:
                storm.round(harm)
                if n % LOOK_EVERY == 0 or n == rounds:
                    storm.look()
            except (Mismatch, AssertionError, NotServing) as what:
                storm.show()
                raise Mismatch("round %d of seed %d, %s: %s" % (n, args.seed, harm, what)) from what
            print(
                "round %d, %s: %d more writes (%.1f s)%s"
                % (
                    n,
                    harm,
                    load.acknowledged - before,
                    time.monotonic() - began,
                    "; all there, all equal" if n % LOOK_EVERY == 0 or n == rounds else "",
                ),
                flush=True,
            )
            if n % LOOK_EVERY == 0 and n < rounds:
                load.start()
        expect(load.acknowledged > rounds * 100, "only %d writes were acknowledged" % load.acknowledged)
        return (
            "seed %d, %d servers, %d rounds: %d writes acknowledged, none lost; %d reconnections, %d unanswered writes "
            "kept, %d sessions of visitors; trees equal, no digest mismatch; "
            "at most %.1f s without a leader after a kill"
            % (
                args.seed,
                args.size,
                rounds,
                load.acknowledged,
                load.reconnected,
                sum(c.kept for c in load.clients),
                load.visitor.total,
                storm.longest_without_leader,
            )
        )


if __name__ == "__main__":
    conclude(check)
