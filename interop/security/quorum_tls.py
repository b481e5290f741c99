#!/usr/bin/env python3
"""Changes an ensemble from plain connections between its servers to TLS and back, one server after the other, while
clients write. Servers of Ostler and Java are mixed.

The steps are those of docs/secure.md: first each server takes both (portUnification), then each one speaks TLS
(sslQuorum), then each one takes only TLS. No write may fail, no acknowledged write may be lost, no session may end
whose client comes back, and the restart of a follower may cut off its own clients alone."""

import os
import sys
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ensemble.cluster import Cluster
from ensemble.load import SETTINGS, Load
from harness.outcome import Mismatch, conclude
from harness.server import NotServing, arguments, command, work_folder
from security import steps
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
                settings = {
                    **self.keys,
                    "sslQuorum": str(ssl_quorum).lower(),
                    "portUnification": str(unification).lower(),
                }
                for member in self.cluster.members.values():
                    steps.restart(self.cluster, self.load, member, settings)
                print("%s at all servers after %.1f s" % (what, time.monotonic() - began), flush=True)
                if (ssl_quorum, unification) == (True, False):
                    leader = steps.kill_leader(self.cluster, self.load)
                    print("server %d, the leader, was killed, and another led" % leader.number, flush=True)
            return steps.end(self.cluster, self.load)


def outside(makes, port):
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
    usual = {key: value for key, value in cluster[3].settings.items() if not key.startswith("ssl")}
    steps.stays_out(cluster, {what: {**usual, **of_bad} for what, of_bad in wrong.items()})


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9,java3.8", help="the other servers (default: %(default)s)")
    parser.add_argument("--kind", default="pem", choices=("pem", "p12", "jks"), help="format of the stores")
    args = parser.parse_args()
    os.environ.setdefault("LEVEL", "INFO")  # Java's log then says how learners are synchronized
    makes = [args.server, *args.peers.split(",")]
    [command(make) for make in makes]  # skips what this machine has not
    try:
        outside([args.server, args.peers.split(",")[0], args.server], args.port)
        outside([args.server] * 3, args.port)
        return Change(makes, args.port, args.kind).run()
    except (Mismatch, AssertionError, NotServing) as what:
        raise Mismatch("quorum TLS of %s: %s" % (", ".join(makes), what)) from what


if __name__ == "__main__":
    conclude(check)
