"""Curator's and Ostler's recipes compete for one path: two processes of each, which are killed by turns.

A holder writes a mark in the transaction that checks that it holds (crates/recipes/examples/contend.rs, Contend.java).
So the server's history shows if two processes held at a time. Every second pair of kills waits until the victim holds.

    contend.py [--server CMD] [--size N] [--hand-overs N] [--kill-every N] [--recipes mutex,latch,...] [--together]
    [--quick]"""

import time
from collections import Counter

from ensemble.cluster import Cluster, patiently
from harness.outcome import conclude, expect
from harness.peers import need
from harness.program import Program
from harness.protocol import NO_NODE
from harness.server import arguments, work_folder
from harness.session import Refused, Session
from recipes import programs

RECIPES = ("latch", "selector", "mutex", "semaphore-mutex", "read-write", "semaphore")
SHARED = ("semaphore",)  # by as many as there are leases
VICTIMS = ("rust-1", "java-1", "rust-2", "java-2")
STALLED_S = 30  # a killed holder's session is over after 2 s
SETTINGS = {"tickTime": 500}


class History:
    """The server's history: the marks that exist now, and the order of the holders of each recipe."""

    def __init__(self, port, recipes):
        self.port, self.session = port, None
        self.entries = {recipe: [] for recipe in recipes}  # names of znodes
        self.holders = {recipe: [] for recipe in recipes}
        self.moved = {recipe: time.monotonic() for recipe in recipes}
        for path in ("/held", "/sharing", "/journal"):
            self.create(path)
        for recipe in recipes:
            self.create("/sharing/" + recipe)
            self.create("/journal/" + recipe)

    def ask(self, question):
        def attempt():
            try:
                self.session = self.session or Session(self.port, 30000)
                return question(self.session)
            except Refused:
                raise
            except Exception:
                self.session = None
                raise

        return patiently(attempt)

    def create(self, path):
        self.ask(lambda session: session.exists(path) or session.create(path))

    def read_on(self, recipe):
        names = self.ask(lambda session: session.children("/journal/" + recipe))
        for name in names[len(self.entries[recipe]) :]:
            path = "/journal/%s/%s" % (recipe, name)
            self.holders[recipe].append(self.ask(lambda session: session.get(path)[0].decode()))
            self.moved[recipe] = time.monotonic()
        self.entries[recipe] = names

    def hand_overs(self, recipe):
        """Pairs of a holder and the next holder."""
        holders = self.holders[recipe]
        # A Java process takes its time to start: what was before its first turn does not count.
        first = next((at for at, name in enumerate(holders) if name.startswith("java")), len(holders))
        return [pair for pair in zip(holders[first:], holders[first + 1 :]) if pair[0] != pair[1]]

    def holds(self, recipe, name):
        if recipe in SHARED:
            return self.ask(lambda session: session.exists("/sharing/%s/%s" % (recipe, name))) is not None
        try:
            return self.ask(lambda session: session.get("/held/" + recipe))[0] == name.encode()
        except Refused as e:
            if e.code == NO_NODE:
                return False
            raise


class Contenders:
    """Two processes of each kind; one that has ended is started again, under another name."""

    def __init__(self, words_of, servers, recipes):
        self.words_of, self.servers, self.recipes = words_of, servers, recipes
        self.running, self.names = {}, {}
        self.started = Counter()
        self.troubles = []
        self.killed = {"java": [0, 0], "rust": [0, 0]}  # kills, and of these while it held
        for place in VICTIMS:
            self.start(place)

    def start(self, place):
        self.started[place] += 1
        self.names[place] = "%s.%d" % (place, self.started[place])
        words = self.words_of[place.split("-")[0]]
        self.running[place] = Program(words + [self.servers, ",".join(self.recipes), self.names[place]])

    def kill(self, place, history, holding):
        """kill -9; if `holding` says so, while it holds one of the recipes, which go by turns."""
        self.look(place)
        name, kind = self.names[place], place.split("-")[0]
        recipe = self.recipes[sum(kills for kills, _ in self.killed.values()) % len(self.recipes)]
        until = time.monotonic() + 5
        while holding and time.monotonic() < until and not self.caught(place, history, recipe):
            pass
        self.running[place].kill()
        self.killed[kind][0] += 1
        # Its mark outlives it by its session.
        self.killed[kind][1] += any(history.holds(recipe, name) for recipe in self.recipes)
        self.look(place)
        self.start(place)

    def caught(self, place, history, recipe):
        """Pauses the victim. True if it holds; otherwise it continues."""
        if not history.holds(recipe, self.names[place]):
            return False
        self.running[place].pause()
        time.sleep(0.02)  # what it has sent before is done by then
        if history.holds(recipe, self.names[place]):
            return True
        self.running[place].resume()
        return False

    def look(self, place):
        text = self.running[place].output
        expect("VIOLATION" not in text, "%s: %s" % (self.names[place], text[-600:]))

    def look_at_all(self):
        for place, program in list(self.running.items()):
            self.look(place)
            if program.process.poll() is not None:
                self.troubles.append("%s: %s" % (self.names[place], program.output.strip()[-300:]))
                print(self.troubles[-1].replace("\n", " | "), flush=True)
                expect(len(self.troubles) < 20, "contenders end again and again: " + self.troubles[-1])
                self.start(place)

    def stop(self):
        for place, program in self.running.items():
            program.kill()
            self.look(place)


def contend(recipes, words_of, servers, port, wanted, kill_every):
    """Lets the processes contend for these recipes until each was handed over this many times. Returns the
    hand-overs."""
    began = time.monotonic()
    history = History(port, recipes)
    contenders = Contenders(words_of, servers, recipes)
    kills = 0
    try:
        while True:
            contenders.look_at_all()
            for recipe in recipes:
                history.read_on(recipe)
                stalled = time.monotonic() - history.moved[recipe]
                expect(stalled < STALLED_S, "%s: no process has held for %d s" % (recipe, STALLED_S))
            fewest = min(len(history.hand_overs(recipe)) for recipe in recipes)
            if fewest >= wanted and kills >= (wanted - 1) // kill_every:
                break
            if fewest >= kill_every * (kills + 1):
                contenders.kill(VICTIMS[kills % 4], history, holding=kills % 4 < 2)
                kills += 1
            time.sleep(0.02)
    finally:
        contenders.stop()
    for recipe in recipes:
        report(recipe, history)
    print(
        "  %s; %d ended by themselves; %.0f s"
        % (
            ", ".join(
                "%d kills of %s, %d while it held" % (all_, kind, held)
                for kind, (all_, held) in contenders.killed.items()
            ),
            len(contenders.troubles),
            time.monotonic() - began,
        ),
        flush=True,
    )
    return sum(len(history.hand_overs(recipe)) for recipe in recipes), kills


def report(recipe, history):
    turns = Counter(name.split("-")[0] for name in history.holders[recipe])
    expect(len(turns) == 2, "%s: not all have held: %s" % (recipe, dict(turns)))
    pairs = Counter(" to ".join(name.split("-")[0] for name in pair) for pair in history.hand_overs(recipe))
    print(
        "%s: %d hand-overs (%s), turns of java %d, of rust %d"
        % (
            recipe,
            sum(pairs.values()),
            ", ".join("%s %d" % pair for pair in sorted(pairs.items())),
            turns["java"],
            turns["rust"],
        ),
        flush=True,
    )


def check():
    parser = arguments(__doc__)
    parser.add_argument("--size", type=int, default=3, help="servers, 3 or more")
    parser.add_argument("--hand-overs", type=int, default=500, help="of each recipe")
    parser.add_argument("--kill-every", type=int, default=25, metavar="N", help="hand-overs (default: %(default)s)")
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--together", action="store_true", help="all recipes at once, and not one after the other")
    parser.add_argument("--contend", help="the Rust contender, if it is built (crates/recipes/examples/contend.rs)")
    parser.add_argument("--quick", action="store_true", help="few hand-overs, all recipes together")
    args = parser.parse_args()
    if args.quick:
        args.hand_overs, args.kill_every, args.together = 30, 10, True
    jars, folder = need("zk39"), work_folder("recipes")
    words_of = {
        "java": programs.java("Contend", folder, jars, "-Xmx128m"),
        "rust": programs.rust("contend", args.contend),
    }
    recipes = args.recipes.split(",")
    total, killed = 0, 0
    with Cluster([args.server] * args.size, folder, args.port, SETTINGS) as cluster:
        cluster.start()
        cluster.wait_quorum()
        servers = ",".join("127.0.0.1:%d" % port for port in cluster.ports())
        for group in [recipes] if args.together else [[recipe] for recipe in recipes]:
            changes, kills = contend(group, words_of, servers, cluster.ports()[0], args.hand_overs, args.kill_every)
            total, killed = total + changes, killed + kills
        cluster.look_same()
    return "%d hand-overs of %d recipes between Curator and Ostler with %d kills, never more holders than may be" % (
        total,
        len(recipes),
        killed,
    )


if __name__ == "__main__":
    conclude(check)
