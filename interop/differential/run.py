#!/usr/bin/env python3
"""Sends one random stream of requests to two servers and compares their answers field by field. See README.md."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from differential import connection
from differential.coverage import Coverage
from differential.dump import differences, dump
from differential.generator import Generator
from differential.lockstep import Different, Lockstep
from differential.material import OPEN
from differential.model import TTL, Slot
from differential.plant import KINDS, Plant
from differential.request import Request
from differential.server import Ensemble, NotServing, Server
from differential.session_steps import SessionSteps
from differential.side import Side
from harness import protocol

MAINTENANCE = 25  # steps between two rounds of the super session
SESSION_STEP = 0.02  # chance that a step is about a connection
EXAMPLES = 15
KINDS_SHOWN = 60
# What a Java learner never answers, and an id that it forwards with other bytes. See README, "Ensembles".
NOT_IN_ENSEMBLES = ("malformed", "nulls", "astral")
SKIPPABLE = ("malformed", "nulls", "quota", "astral", "sessions")


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--a", required=True, help="command prefix of the reference server; a zoo.cfg is appended")
    p.add_argument("--b", required=True, help="command prefix of the server under test")
    p.add_argument("--requests", type=int, default=100000)
    p.add_argument("--seed", type=int, default=None, help="default: from the clock")
    p.add_argument("--ensemble", type=int, metavar="N", help="ensembles of N servers; it implies --no-restart")
    p.add_argument(
        "--port",
        type=int,
        default=24200,
        help="A listens on this port, B on the next; ensembles take three for each server",
    )
    p.add_argument("--skip", default="", help="comma list of: " + ", ".join(SKIPPABLE))
    p.add_argument("--keep-going", action="store_true", help="count all kinds of differences instead of stopping")
    p.add_argument("--no-restart", action="store_true", help="leave out the comparison after a restart")
    p.add_argument("--swap", action="store_true", help="finally let each server serve the other's folder")
    p.add_argument("--plant", choices=KINDS, help="falsify one answer of B, to see the test fail")
    p.add_argument("--folder", help="where the servers keep their data (default: a temporary folder)")
    options = p.parse_args()
    if options.seed is None:
        options.seed = int(time.time()) % 1000000
    options.skip = tuple(s for s in options.skip.split(",") if s)
    if options.ensemble:
        if options.swap:
            p.error("--swap is for standalone servers")
        options.no_restart = True
        options.skip += NOT_IN_ENSEMBLES
    unknown = [s for s in options.skip if s not in SKIPPABLE]
    if unknown:
        p.error("--skip knows no %s" % ", ".join(unknown))
    return options


class Run:
    def __init__(self, options, folder):
        self.options = options
        self.servers = [
            self._server(at, name, command, os.path.join(folder, name))
            for at, (name, command) in enumerate((("A", options.a), ("B", options.b)))
        ]
        self.sides = [Side(server.name, server) for server in self.servers]
        self.coverage = Coverage()
        plant = Plant(options.plant, options.requests // 2) if options.plant else None
        self.lockstep = Lockstep(
            self.sides, options.seed, self.coverage, options.keep_going, plant, spread=bool(options.ensemble)
        )
        self.generator = Generator(options.seed, self.lockstep.tree, self.lockstep.slots, options.skip)
        self.generator.newest = lambda: self.sides[0].common(self.sides[0].newest)
        self.steps = SessionSteps(self.lockstep, self.generator)
        self.slots = self.lockstep.slots

    def _server(self, at, name, command, folder):
        size = self.options.ensemble
        if size:
            return Ensemble(name, command, folder, self.options.port + 3 * size * at, size)
        return Server(name, command, folder, self.options.port + at)

    def all(self):
        after = min(1000, self.options.requests // 20)
        restarts = [] if self.options.no_restart else [("after a restart of both", False)]
        if self.options.swap:
            restarts += [("with the folders swapped", True), ("back on the own folders", False)]
        self._start()
        self._stream(self.options.requests - after * len(restarts))
        self._compare_trees("at the end of the stream")
        for when, swapped in restarts:
            self._restart(swapped)
            self._compare_trees(when)
            self._stream(self.lockstep.sent + after)
            self._compare_trees("%s and %d requests more" % (when, after))
        self._close_all_but_one()
        self._compare_trees("with all other sessions closed")

    # ---- the stream

    def _start(self):
        for side in self.sides:
            side.server.start()
        self._first_contact(self.slots[0])
        for slot in self.slots[1:]:
            self.steps.start(slot)

    def _first_contact(self, slot):
        """The first session of a server process."""
        for side in self.sides:
            side.server.wait_until_serving()
        self.lockstep.new_session(slot)

    def _stream(self, until):
        rng, lockstep = self.generator.rng, self.lockstep
        began, mark = time.monotonic(), lockstep.sent
        for step in range(1, until + 1):
            if lockstep.sent >= until:
                break
            for slot in self.slots:
                self.steps.ensure(slot)
            if step % MAINTENANCE == 0:
                self._maintain()
            slot = rng.choice(self.slots)
            if "sessions" not in self.options.skip and rng.random() < SESSION_STEP:
                self.steps.run(slot)
                continue
            self._burst(*self.generator.burst(slot))
            if lockstep.sent - mark >= 20000:
                mark = lockstep.sent
                print(
                    "  %d requests, %d nodes, %.0f s" % (mark, len(lockstep.tree), time.monotonic() - began), flush=True
                )

    def _burst(self, slot, requests):
        if requests[-1].name == "closeSession":
            self.steps.forget(slot.ids)
        self.lockstep.burst(slot, requests)

    def _maintain(self):
        """The super session opens locked nodes and thins out the tree."""
        slot, g, tree = self.slots[0], self.generator, self.lockstep.tree
        if not slot.is_super:
            self._burst(slot, [g.become_super(slot)])
        while "/" in tree.locked or len(tree.locked) > 20:
            self._burst(slot, [g.repair(slot)])
        while len(tree) > 300:
            doomed = g.rng.sample([p for p in tree.order if tree.nodes[p].children == 0], 40)
            for path in doomed:
                self._burst(slot, [Request("delete", protocol.path_version(path, -1), {"path": path, "version": -1})])

    # ---- trees

    def _compare_trees(self, when):
        """Dumps both trees as super, on the slot 0 session."""
        lockstep, slot = self.lockstep, self.slots[0]
        self.steps.ensure(slot)
        lockstep.burst(slot, [self.generator.become_super(slot)], counted=False)
        trees = [dump(side, connection) for side, connection in zip(self.sides, slot.connections)]
        if lockstep.plant:
            lockstep.plant.spoil_tree(trees[1])
        lines = differences(*trees)
        if lines:
            report = "DIFFERENCE  seed %d, trees %s:\n%s" % (self.options.seed, when, "\n".join(lines))
            if not self.options.keep_going:
                raise Different(report)
            self.lockstep.found["trees %s" % when] += 1
            self.lockstep.examples["trees %s" % when] = report
        kinds = [n.kind for n in lockstep.tree.nodes.values()]
        print("  trees %s: %d nodes, %d of them TTL; compared" % (when, len(trees[0]), kinds.count(TTL)), flush=True)

    def _restart(self, swapped):
        """Restarts both servers on their data, and resumes the sessions: their ephemerals must still be there.

        swapped: each server gets the folder of the other, so that both read what the other wrote."""
        self._settle_quotas()
        self._open_what_java_forgets()
        for slot in self.slots:
            slot.detach()
        for server in self.servers:
            server.stop()
        order = self.servers[::-1] if swapped else self.servers
        for side, server, folder in zip(self.sides, order, (s.data for s in self.servers)):
            side.server = server.start(folder)
        visitor = Slot(len(self.slots), "127.0.0.1")
        self._first_contact(visitor)
        for slot in self.slots:
            self.steps.ensure(slot)
            self.lockstep.burst(slot, [Request("getEphemerals", protocol.ustring(""))], counted=False)
        self.lockstep.burst(visitor, [Request("closeSession", b"", ends=True)], counted=False)

    def _settle_quotas(self):
        """Creates every usage node again, which counts its subtree.

        Usage is no part of the log: what a server holds after a restart depends on where its last snapshot lies, unless
        the numbers are at that moment what a fresh count gives."""
        super_slot = self.slots[0]
        for path in [p for p in self.lockstep.tree.order if p.endswith("/zookeeper_stats")]:
            # A znode with children cannot be deleted.
            below = [p for p in self.lockstep.tree.order if p.startswith(path + "/")]
            for inner in sorted(below, key=len, reverse=True):
                fields = {"path": inner, "version": -1}
                self._burst(super_slot, [Request("delete", protocol.path_version(inner, -1), fields)])
            fields = {"path": path, "version": -1, "data": b"", "flags": 0, "acl": OPEN}
            self._burst(super_slot, [Request("delete", protocol.path_version(path, -1), fields)])
            self._burst(super_slot, [Request("create", protocol.create(path, b"", OPEN, 0), fields)])

    def _open_what_java_forgets(self):
        """Opens the nodes whose ACL names an id with characters beyond U+FFFF, which Java cannot read in its own
        files."""
        slot, tree = self.slots[0], dump(self.sides[0], self.slots[0].connections[0])
        for path, fields in tree.items():
            if any("\ufffd\ufffd" in entry.id for entry in dict(fields).get("acl") or ()):
                self._burst(slot, [self.generator.open_up(path)])

    def _close_all_but_one(self):
        for slot in self.slots[1:]:
            self._burst(slot, [Request("closeSession", b"", ends=True)])


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are stopped too
    options = arguments()
    folder = options.folder or tempfile.mkdtemp(prefix="differential-")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    print(
        "differential: seed %d, %d requests\n  A: %s\n  B: %s" % (options.seed, options.requests, options.a, options.b),
        flush=True,
    )
    if options.keep_going:
        connection.PATIENCE = 3.0  # a difference often leaves one server silent
    run = Run(options, folder)
    began = time.monotonic()
    report = None
    try:
        run.all()
    except (Different, NotServing) as problem:
        report = str(problem)
    finally:
        for server in run.servers:
            server.stop()
    return finish(run, options, report, time.monotonic() - began, folder)


def finish(run, options, report, seconds, folder):
    found = run.lockstep.found
    print(run.coverage.table())
    if found:
        print(
            "\nDifferences by kind, in the order of their first appearance (later ones may follow from earlier ones):"
        )
        for signature, count in list(found.items())[:KINDS_SHOWN]:
            print("  %6d  %s" % (count, signature))
        if len(found) > KINDS_SHOWN:
            print("  and %d kinds more" % (len(found) - KINDS_SHOWN))
        print("\nFirst example of each of the first %d:" % EXAMPLES)
        for signature in list(found)[:EXAMPLES]:
            print(run.lockstep.examples[signature] + "\n")
    if report:
        print("\n" + report)
        print("  repeat with: --seed %d --requests %d" % (options.seed, options.requests))
    count = sum(found.values()) + (report is not None)
    if not options.folder and not count:
        shutil.rmtree(folder, ignore_errors=True)
    elif count:
        print("  the servers' folders and logs: %s" % folder)
    print(
        "differential: %d requests, %d differences, seed %d, %.0f s" % (run.lockstep.sent, count, options.seed, seconds)
    )
    print("0 passed, 1 failed" if count else "1 passed, 0 failed")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
