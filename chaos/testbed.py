"""The servers of one run with everything that faults can break: links, disks, clocks, shares of the machine."""

import os
import time

from chaos import clocks, disks, failures
from chaos.disks import Disk
from chaos.failures import Failures
from chaos.relay import RelayedNamespaces
from chaos.shares import Processor, Writes
from ensemble.cluster import Cluster
from ensemble.load import SETTINGS
from harness.outcome import expect

TICK_MS, SYNC_LIMIT, INIT_LIMIT = 200, 10, 30
SNAP_COUNT, PREALLOCATED_KB = 3000, 64
LEADER_PATIENCE_S = 3.0


class Testbed:
    def __init__(self, server, size, port, folder, seed, kinds):
        """`kinds`: the kinds of faults to prepare."""
        needs = {need for kind in kinds for need in kind.needs}
        numbers = range(1, size + 1)
        self.folders = {n: os.path.join(folder, "server-%d" % n) for n in numbers}
        run = "ostler-chaos-%d-%d" % (os.getpid(), port)
        self.disks = {n: Disk("%s-%d" % (run, n), self.folders[n] + "/data") for n in numbers} if disks in needs else {}
        self.links = RelayedNamespaces(size, seed)
        settings = {
            **SETTINGS,
            "tickTime": TICK_MS,
            "syncLimit": SYNC_LIMIT,
            "initLimit": INIT_LIMIT,
            "snapCount": SNAP_COUNT,
            "preAllocSize": PREALLOCATED_KB,
        }
        self.cluster = Cluster([server] * size, folder, port, settings, links=self.links)
        self.is_java = server.startswith("java")
        self.failures = {}
        if failures in needs:
            for n, member in self.cluster.members.items():
                self.failures[n] = Failures(self.folders[n])
                member.words = self.failures[n].words() + member.words
        self.clocks = {}
        if clocks in needs:
            for n, member in self.cluster.members.items():
                self.clocks[n] = clocks.Clock(self.folders[n])
                member.words = self.clocks[n].words() + member.words
        self.processors = {n: Processor("%s-%d" % (run, n)) for n in numbers} if Processor in needs else {}
        self.writes = {n: Writes("%s-%d" % (run, n)) for n in numbers} if Writes in needs else {}
        self.harmed = set()  # numbers of servers that a fault is using
        self.ended = 0  # servers that ended by themselves, as they may when their disk is broken
        self.chance = None  # of the fault that begins

    # ---- who ----
    def take_leader(self):
        """Reserves the leader for a fault, if there is one soon, so that no other fault harms it."""
        until = time.monotonic() + LEADER_PATIENCE_S
        while time.monotonic() < until:
            leader = self.cluster.leader(self._unharmed())
            if leader:
                return self.take(leader)
            time.sleep(0.05)
        return self.take_any()

    def take_follower(self):
        followers = [m for m in self._unharmed() if m.mode() != "leader"]
        return self.take(self.chance.choice(followers or self._unharmed()))

    def take_any(self):
        return self.take(self.chance.choice(self._unharmed()))

    def take_all(self):
        return [self.take(member) for member in self._unharmed()]

    def take(self, member):
        self.harmed.add(member.number)
        return member

    def release(self, *members):
        self.harmed -= {member.number for member in members}

    def _unharmed(self):
        members = [m for n, m in self.cluster.members.items() if n not in self.harmed]
        expect(members, "more faults at once than servers")
        return members

    # ---- servers ----
    def start(self, member):
        member.start()
        if self.clocks:
            self.clocks[member.number].keeps(member.process)
        for group in (self.processors, self.writes):
            if member.number in group:
                group[member.number].take_in(member.process)

    def start_all(self):
        self.links.start()
        for disk in self.disks.values():
            disk.sync()  # the configuration before the first start
        for member in self.cluster.members.values():
            self.start(member)

    def kill(self, member):
        member.look_alive()
        member.kill()

    def end_broken(self, member):
        """A server whose disk is broken may have ended before."""
        self.ended += member.process.poll() is not None
        member.kill()

    # ---- links ----
    def ways_of(self, *members):
        """All ways from and to these servers."""
        numbers = {member.number for member in members}
        return [pair for pair in self.links.pairs if numbers & set(pair)]

    def stop(self):
        self.cluster.stop()
        self.links.stop()
        for clock in self.clocks.values():
            clock.remove()
        for group in (*self.processors.values(), *self.writes.values()):
            group.remove()
        for disk in self.disks.values():
            disk.remove()
