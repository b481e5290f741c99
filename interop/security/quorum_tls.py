#!/usr/bin/env python3
"""Changes an ensemble from plain connections between its servers to TLS and back, one server after the other, while
clients write. Servers of Ostler and Java are mixed.

The steps are those of docs/tls.md: first each server takes both (portUnification), then each one speaks TLS
(sslQuorum), then each one takes only TLS. No acknowledged write may be lost, and no session may end whose client comes
back."""

import os
import sys
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ensemble.cluster import Cluster
from ensemble.load import SETTINGS, Load
from harness.outcome import Mismatch, conclude, expect, expect_equal
from harness.server import NotServing, arguments, command, work_folder
from security.certificates import Authority

# (sslQuorum, portUnification) after each step, and what the step is.
STEPS = (
    (False, True, "both are taken, plain is spoken"),
    (True, True, "TLS is spoken"),
    (True, False, "TLS only"),
    (True, True, "plain is taken again"),
    (False, True, "plain is spoken again"),
    (False, False, "plain only"),
)


class Change:
    def __init__(self, makes, port, kind):
        self.folder = work_folder("quorum-tls")
        self.authority = Authority(os.path.join(self.folder, "certificates"))
        self.authority.issue("server")
        self.authority.stores("server")
        self.keys = self.authority.keys("ssl.quorum.", "server", kind)
        settings = {**SETTINGS, "snapCount": 10000, "preAllocSize": 4096}
        self.cluster = Cluster(makes, self.folder, port, settings, host=lambda n: "localhost")

    def run(self):
        with self.cluster:
            self.cluster.start()
            self.cluster.wait_quorum()
            self.load = Load(self.cluster.ports(), 4).start()
            for ssl_quorum, unification, what in STEPS:
                began = time.monotonic()
                for member in self.cluster.members.values():
                    self._restart(member, ssl_quorum, unification)
                print("%s at all servers after %.1f s" % (what, time.monotonic() - began), flush=True)
                if (ssl_quorum, unification) == (True, False):
                    self._kill_leader()
            self.load.stop()
            for member in self.cluster.running():
                self.load.check(member.port)
            expect_equal(self.load.expired, 0, "sessions that ended although their clients came back")
        return "%d writes acknowledged, none lost, no session lost" % self.load.acknowledged

    def _restart(self, member, ssl_quorum, unification):
        self.load.wait_progress()
        member.stop()
        member.settings.update(self.keys)
        member.settings["sslQuorum"] = str(ssl_quorum).lower()
        member.settings["portUnification"] = str(unification).lower()
        member.start()
        self.cluster.wait_quorum()
        self.load.wait_progress()

    def _kill_leader(self):
        leader = self.cluster.wait_quorum()
        leader.kill()
        self.load.wait_progress()
        leader.start()
        self.cluster.wait_quorum()
        print("server %d, the leader, was killed, and another led" % leader.number, flush=True)


def stays_out(makes, port):
    """A server without TLS, and one with another authority, do not come into an ensemble with TLS."""
    folder = work_folder("quorum-tls-out")
    good, other = Authority(os.path.join(folder, "good")), Authority(os.path.join(folder, "other"), "other")
    good.issue("server")
    other.issue("server")
    good.issue("elsewhere", names="DNS:elsewhere.example")
    wrong = {"plain": {}, "another authority": {"sslQuorum": "true", **other.keys("ssl.quorum.", "server")}}
    if makes[1] == makes[0]:  # a Java server takes every name
        wrong["another name"] = {"sslQuorum": "true", **good.keys("ssl.quorum.", "elsewhere")}
    settings = {"sslQuorum": "true", **good.keys("ssl.quorum.", "server")}
    cluster = Cluster(makes, folder, port, settings, host=lambda n: "localhost")
    bad = cluster[3]
    usual = dict(bad.settings)
    with cluster:
        for what, settings in wrong.items():
            bad.settings = {k: v for k, v in usual.items() if not k.startswith("ssl")}
            bad.settings.update(settings)
            for member in cluster.members.values():
                member.start()
            cluster.wait_quorum(among=[cluster[1], cluster[2]])
            time.sleep(3)
            expect(bad.mode() not in ("leader", "follower"), "a server with %s is in the ensemble" % what)
            print("a server with %s stays out" % what, flush=True)
            cluster.stop()


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9,java3.8", help="the other servers (default: %(default)s)")
    parser.add_argument("--kind", default="pem", choices=("pem", "p12", "jks"), help="format of the stores")
    args = parser.parse_args()
    makes = [args.server, *args.peers.split(",")]
    [command(make) for make in makes]  # skips what this machine has not
    try:
        stays_out([args.server, args.peers.split(",")[0], args.server], args.port)
        stays_out([args.server] * 3, args.port)
        return Change(makes, args.port, args.kind).run()
    except (Mismatch, AssertionError, NotServing) as what:
        raise Mismatch("quorum TLS of %s: %s" % (", ".join(makes), what)) from what


if __name__ == "__main__":
    conclude(check)
