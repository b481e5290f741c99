"""An ensemble whose servers have a network namespace each, all on one bridge: links are cut below TCP.

    links = Namespaces(3)
    cluster = Cluster(makes, folder, 27000, links=links)
    links.cut(1, 2)      # no packet of 1 reaches 2, on any connection; no connection is closed
    links.heal()

A cut way is a neighbour entry with an unused address: the packets are sent and arrive nowhere. Clients are on the
bridge itself, and reach every server at any time. It takes root (`ip netns`), and what it makes is gone at the end.
"""

import atexit
import os
import subprocess

from ensemble.links import Ways
from harness.address import found_at
from harness.outcome import Skip

NOBODY = "02:00:00:00:00:00"


class Namespaces(Ways):
    def __init__(self, size):
        super().__init__(size)
        if os.geteuid() != 0:
            raise Skip("network namespaces take root")
        # Names and addresses of one run: several may go on at the same time.
        self.run = os.getpid() % 65536
        self.bridge = "ostler%d" % self.run

    def host(self, number):
        return "10.%d.%d.%d" % (64 + self.run // 256 % 64, self.run % 256, number)

    def to(self, _seen_by, _number, port):
        return port

    def house(self, member):
        """Starts it in its namespace from now on."""
        member.words = self._enter(self._name(member.number)) + member.words
        member.settings["clientPortAddress"] = self.host(member.number)
        found_at(member.port, self.host(member.number))

    def start(self):
        atexit.register(self.stop)
        _ip(
            "link add %s type bridge" % self.bridge,
            "link set %s up" % self.bridge,
            "addr add %s/24 dev %s" % (self.host(254), self.bridge),
        )
        for n in self.numbers:
            name, here = self._name(n), "%s-%d" % (self.bridge, n)
            _ip("netns add " + name)
            _ip(
                "link add %s type veth peer name eth0 address %s netns %s" % (here, _hardware(n), name),
                "link set %s master %s up" % (here, self.bridge),
            )
            in_namespace(name, "link set lo up", "link set eth0 up", "addr add %s/24 dev eth0" % self.host(n))
        self.heal()
        return self

    def turn(self, ways, is_open):
        lines = {}
        for source, sink in ways:
            there = _hardware(sink) if is_open else NOBODY
            lines.setdefault(source, []).append(
                "neigh replace %s lladdr %s dev eth0 nud permanent" % (self.host(sink), there)
            )
        for source, orders in lines.items():
            in_namespace(self._name(source), *orders)

    def stop(self):
        for n in self.numbers:
            subprocess.run(["ip", "netns", "del", self._name(n)], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", self.bridge], stderr=subprocess.DEVNULL)

    def inside(self, name, words):
        _done(self._enter(name) + words)

    def _enter(self, name):
        """Only the network is another: `ip netns exec` would hold what is mounted, too."""
        return ["nsenter", "--net=/run/netns/" + name]

    def _name(self, number):
        return "%s-%d" % (self.bridge, number)


def _hardware(number):
    return "02:00:00:00:01:%02x" % number


def _ip(*lines):
    """Carries out `ip` commands."""
    _done(["ip", "-batch", "-"], "\n".join(lines))


def in_namespace(name, *lines):
    _done(["ip", "-netns", name, "-batch", "-"], "\n".join(lines))


def _done(words, text=None):
    done = subprocess.run(words, input=text, text=True, capture_output=True)
    if done.returncode:
        raise Skip("network namespaces are not to be had: " + done.stderr.strip())
