#!/usr/bin/env python3
"""Curator's recipes and Ostler's for one path: two processes of each contend, and are killed by turns.

Whoever holds marks /holder-RECIPE with an ephemeral znode, which nobody else may find there, and writes into /journal. In a
second part a holder is stopped (SIGSTOP) until another one holds, and writes at once when it goes on: refused.

    contend.py [--server CMD] [--size N] [--hand-overs N] [--pauses N] [--recipes mutex,latch,...] [--quick]
"""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from ensemble.cluster import Cluster, patiently  # noqa: E402
from rig.outcome import conclude, expect  # noqa: E402
from rig.peers import CHECKOUT, INTEROP, need, need_program  # noqa: E402
from rig.program import Program  # noqa: E402
from rig.server import arguments, work_folder  # noqa: E402
from rig.wire import Session  # noqa: E402

RECIPES = ("mutex", "semaphore-mutex", "semaphore", "read-write", "latch", "selector")
KILL_EVERY = 25  # hand-overs
STALLED_S = 30  # a killed holder's session is over after 2 s
SETTINGS = {"tickTime": 500}


class Contenders:
    """Two processes of each kind; one that ended or was killed is started again."""

    def __init__(self, words_of, servers, recipe):
        self.words_of, self.servers, self.recipe = words_of, servers, recipe
        self.running = {}
        self.seen = {}
        self.troubles = 0
        for name in ("java-1", "rust-1", "java-2", "rust-2"):
            self.start(name)

    def start(self, name):
        words = self.words_of[name.split("-")[0]]
        self.running[name] = Program(words + [self.servers, self.recipe, name])

    def kill(self, name):
        self.look(name)
        self.running[name].kill()
        self.look(name)
        self.start(name)

    def look(self, name):
        text = self.running[name].output
        expect("VIOLATION" not in text, "%s of %s: %s" % (self.recipe, name, text[-600:]))

    def look_at_all(self):
        for name, program in list(self.running.items()):
            self.look(name)
            if program.process.poll() is not None:
                self.troubles += 1
                expect(self.troubles < 20, "%s of %s ends again and again: %s" % (self.recipe, name, program.output[-600:]))
                self.start(name)

    def stop(self):
        for name, program in self.running.items():
            program.kill()
            self.look(name)


class Journal:
    def __init__(self, port):
        self.port = port
        self.session = None

    def names(self):
        """Who has held, in order, since the last time it was emptied."""
        def ask():
            try:
                self.session = self.session or Session(self.port, 30000)
                return self.session.children("/journal")
            except Exception:
                self.session = None
                raise
        return patiently(ask)

    def holders(self, names):
        return [patiently(lambda name=name: self.session.get("/journal/" + name)[0].decode()) for name in names]

    def empty(self):
        for name in self.names():
            self.session.delete("/journal/" + name)


def hand_overs(recipe, words_of, servers, journal, wanted):
    """Lets them contend until so many hand-overs have happened; (hand-overs, turns of each, kills, restarts)."""
    contenders = Contenders(words_of, servers, recipe)
    victims = ["rust-1", "java-1", "rust-2", "java-2"]
    turns, holders, kills, moved = [], [], 0, time.monotonic()
    try:
        while True:
            contenders.look_at_all()
            names = journal.names()
            if len(names) > len(turns):
                holders += journal.holders(names[len(turns):])
                turns, moved = names, time.monotonic()
            expect(time.monotonic() < moved + STALLED_S, "%s: nobody has held for %d s" % (recipe, STALLED_S))
            # A Java process takes its time to start: what was before its first turn does not count.
            both = next((at for at, name in enumerate(holders) if name.startswith("java")), len(holders))
            changes = sum(1 for a, b in zip(holders[both:], holders[both + 1:]) if a != b)
            if changes >= wanted:
                break
            if changes >= KILL_EVERY * (kills + 1):
                contenders.kill(victims[kills % 4])
                kills += 1
            time.sleep(0.02)
    finally:
        contenders.stop()
    of_each = {kind: sum(1 for name in holders if name.startswith(kind)) for kind in ("java", "rust")}
    expect(all(of_each.values()), "%s: not all have held: %s" % (recipe, of_each))
    journal.empty()
    return changes, of_each, kills, contenders.troubles


def pauses(words_of, servers, rounds):
    """The holder is stopped until the other one holds; it writes at once when it goes on."""
    names = ("one", "two")
    holders = [Program(words_of["rust"] + [servers, "hold", name]) for name in names]
    first = 0
    last = 0
    try:
        until = time.monotonic() + 20
        while "holding" not in holders[first].output:
            first = 1 - first
            expect(time.monotonic() < until, "nobody holds")
            time.sleep(0.01)
        last = int(holders[first].wait_for(r"^holding (\d+)$").group(1))
        for _ in range(rounds):
            paused, other = holders[first], holders[1 - first]
            paused.pause()
            token = int(other.wait_for(r"^holding (\d+)$", timeout=20).group(1))
            expect(token > last, "token %d after %d" % (token, last))
            paused.resume()
            said = paused.wait_for(r"^(refused|WRITTEN|not known.*)$").group(1)
            expect(said == "refused", "a holder that was paused: " + said)
            first, last = 1 - first, token
    finally:
        for program in holders:
            program.resume()
            program.kill()


def compile_java(folder, jars):
    source = os.path.join(INTEROP, "recipes", "Contend.java")
    cmd = [need_program("javac"), "-nowarn", "-proc:none", "-d", folder, "-cp", jars + "/*", source]
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(p.returncode == 0, "javac failed: " + p.stdout[-1500:])


def build_rust():
    """Where cargo says that it is."""
    cmd = [need_program("cargo"), "build", "--quiet", "--message-format=json", "-p", "ostler-recipes", "--example", "contend"]
    p = subprocess.run(cmd, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(p.returncode == 0, "cargo build failed: " + p.stderr[-1500:])
    built = [json.loads(line).get("executable") for line in p.stdout.splitlines() if line.startswith("{")]
    return next(filter(None, reversed(built)))


def check():
    parser = arguments(__doc__)
    parser.add_argument("--size", type=int, default=3, help="servers, 3 or more")
    parser.add_argument("--hand-overs", type=int, default=500, help="of each recipe")
    parser.add_argument("--pauses", type=int, default=100)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--contend", help="the Rust contender, if it is built (crates/recipes/examples/contend.rs)")
    parser.add_argument("--quick", action="store_true", help="few of everything")
    args = parser.parse_args()
    if args.quick:
        args.hand_overs, args.pauses = 40, 5
    jars, folder = need("zk39"), work_folder("recipes")
    compile_java(folder, jars)
    contend = args.contend or build_rust()
    log = "-Dlog4j2.configurationFile=%s/log4j2.xml" % jars
    words_of = {
        "java": ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlevel=OFF", log, "-cp",
                 "%s:%s/*" % (folder, jars), "Contend"],
        "rust": [contend],
    }
    with Cluster([args.server] * args.size, folder, args.port, SETTINGS) as cluster:
        cluster.start()
        cluster.wait_quorum()
        servers = ",".join("127.0.0.1:%d" % port for port in cluster.ports())
        journal = Journal(cluster.ports()[0])
        patiently(lambda: Session(journal.port).create("/journal"))
        total = 0
        for recipe in filter(None, args.recipes.split(",")):
            began = time.monotonic()
            changes, of_each, kills, troubles = hand_overs(recipe, words_of, servers, journal, args.hand_overs)
            total += changes
            print("%s: %d hand-overs, turns %s, %d kills, %d restarts, %.0f s" % (
                recipe, changes, of_each, kills, troubles, time.monotonic() - began), flush=True)
        pauses(words_of, servers, args.pauses)
    return "%d hand-overs between Curator and Ostler, one holder at a time; %d writes of paused holders refused" % (
        total, args.pauses)


if __name__ == "__main__":
    conclude(check)
