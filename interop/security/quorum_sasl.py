#!/usr/bin/env python3
"""Lets the servers of an ensemble log in at each other by SASL, by DIGEST-MD5 or by Kerberos (--kerberos), step by step
while clients write. Servers of Ostler and Java are mixed.

First each server can do it (quorum.auth.enableSasl), then each one does it (learnerRequireSasl), then each one demands
it (serverRequireSasl). No write may fail, no acknowledged write may be lost, no session may end whose client comes
back, and the restart of a follower may cut off its own clients alone."""

import os
import sys
import time

# Documents run this file by its path, so it finds the packages of interop/ by itself.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ensemble.cluster import Cluster
from ensemble.load import SETTINGS, Load
from harness.kdc import Kdc
from harness.outcome import Mismatch, conclude
from harness.server import NotServing, arguments, command, work_folder
from security import steps
from security.kerberos import section

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"
SERVICE, OTHER_SERVICE = "zkquorum/localhost", "zkquorum/elsewhere"
JAAS = "java.security.auth.login.config"
KEYS = ("quorum.auth.enableSasl", "quorum.auth.learnerRequireSasl", "quorum.auth.serverRequireSasl")


class Digest:
    """Logins with a password that all servers know."""

    # A Java server of 3.9 uses DIGEST-MD5 only without its FIPS mode.
    keys = {"fips-mode": "false"}
    wrong_is = "a wrong password"

    def __init__(self, folder):
        self.right = self._file(folder, "jaas.conf", "secret")
        self.wrong = self._file(folder, "wrong.conf", "wrong")

    @staticmethod
    def _file(folder, name, password):
        path = os.path.join(folder, name)
        with open(path, "w") as f:
            f.write('QuorumServer { %s user_zk="secret"; };\n' % MODULE)
            f.write('QuorumLearner { %s username="zk" password="%s"; };\n' % (MODULE, password))
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Kerberos:
    """Logins with a principal for the host of all servers, and another one for a host that is none of theirs."""

    wrong_is = "the principal of another host"

    def __init__(self, folder, port):
        self.kdc = Kdc(os.path.join(folder, "kdc"), port, [SERVICE, OTHER_SERVICE])
        self.keys = {
            "quorum.auth.kerberos.servicePrincipal": "zkquorum/_HOST",
            "java.security.krb5.conf": self.kdc.conf,
        }
        self.right = self._file(folder, "jaas.conf", SERVICE)
        self.wrong = self._file(folder, "wrong.conf", OTHER_SERVICE)

    def _file(self, folder, name, own):
        path = os.path.join(folder, name)
        with open(path, "w") as f:
            f.write(section("QuorumServer", SERVICE, self.kdc.keytab(SERVICE)))
            f.write(section("QuorumLearner", own, self.kdc.keytab(own)))
        return path

    def __enter__(self):
        self.kdc.__enter__()
        return self

    def __exit__(self, *how):
        self.kdc.__exit__(*how)


def settings(mechanism, count):
    """The keys after this number of steps."""
    keys = {key: str(number < count).lower() for number, key in enumerate(KEYS)}
    return {**keys, **mechanism.keys, JAAS: mechanism.right}


def change(makes, port, mechanism, folder):
    usual = {**SETTINGS, "snapCount": 10000, "preAllocSize": 4096, **mechanism.keys}
    cluster = Cluster(makes, folder, port, usual, host=lambda n: "localhost")
    with cluster:
        cluster.start()
        cluster.wait_quorum()
        load = Load(cluster.ports(), 4).start()
        for number in (1, 2, 3, 2, 1):
            began = time.monotonic()
            for member in cluster.members.values():
                steps.restart(cluster, load, member, settings(mechanism, number))
            print("%s at all servers after %.1f s" % (KEYS[number - 1], time.monotonic() - began), flush=True)
            if number == len(KEYS):
                leader = steps.kill_leader(cluster, load)
                print("server %d, the leader, was killed, and another led" % leader.number, flush=True)
        return steps.end(cluster, load)


def outside(makes, port, mechanism, folder):
    """A server with a wrong password or principal, and one that does not log in, do not come in."""
    cluster = Cluster(makes, folder, port, settings(mechanism, 3), host=lambda n: "localhost")
    wrong = {mechanism.wrong_is: {JAAS: mechanism.wrong}, "no login": dict.fromkeys(KEYS, "false")}
    usual = cluster[3].settings
    steps.stays_out(cluster, {what: {**usual, **of_bad} for what, of_bad in wrong.items()})


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peers", default="java3.9,java3.8", help="the other servers (default: %(default)s)")
    parser.add_argument("--kerberos", action="store_true", help="log in by Kerberos in place of DIGEST-MD5")
    args = parser.parse_args()
    os.environ.setdefault("LEVEL", "INFO")  # Java's log then says how learners are synchronized
    makes = [args.server, *args.peers.split(",")]
    [command(make) for make in makes]  # skips what this machine has not
    folder = work_folder("quorum-sasl")
    out = os.path.join(folder, "out")
    os.makedirs(out)
    try:
        with Kerberos(folder, args.port + 50) if args.kerberos else Digest(folder) as mechanism:
            outside([args.server, makes[1], args.server], args.port, mechanism, out)
            return change(makes, args.port, mechanism, folder)
    except (Mismatch, AssertionError, NotServing) as what:
        raise Mismatch("quorum SASL of %s: %s" % (", ".join(makes), what)) from what


if __name__ == "__main__":
    conclude(check)
