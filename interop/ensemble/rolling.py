"""Server lists that change by restarting one server after the other, without reconfig: Ostler, Java and mixed.

The lowest-numbered of three servers moves to another address and restarts with the new lines, while the others still
have the old ones. Then the others restart with the new lines. Two servers swap their addresses. Hosts get names in
place of addresses. Three servers become four, and four become three. An observer joins that only its own file lists. As
with Java, each server serves within seconds of its start, and has what was written before."""

import os
import time

from ensemble.cluster import PORTS_PER_SERVER, Cluster, Member
from harness.outcome import Mismatch, Skip, conclude, expect, expect_equal
from harness.protocol import NODE_EXISTS
from harness.server import NotServing, arguments, available, work_folder
from harness.session import ConnectionLost, Refused, Session

WITHIN_S = 40  # a Java server needs up to 4, of which its start is one; a busy machine takes a multiple
MOVED, OBSERVER = 1, 4
OLD_HOST, NEW_HOST = "127.0.0.1", "127.0.0.41"


def serves(member, since):
    """The time from `since` until the server takes a write of its own client."""
    while time.monotonic() - since < WITHIN_S:
        member.look_alive()
        if member.mode() is not None:
            try:
                session = Session(member.port, 5000)
                try:
                    session.create("/by-%d" % member.number)
                except Refused as e:
                    if e.code != NODE_EXISTS:
                        raise
                expect_equal(session.get("/before")[0], b"there", "what was written before")
                session.close()
                return time.monotonic() - since
            except (ConnectionLost, OSError):
                pass
        time.sleep(0.05)
    logs = "".join("\n--- the log of server %d: %s" % (member.number, member.log_tail(600)))
    raise Mismatch("server %d does not serve %d s after its start%s" % (member.number, WITHIN_S, logs))


def write_before(member):
    """A voter that comes late can make a young ensemble elect once more. Clients try again then."""
    end = time.monotonic() + WITHIN_S
    while True:
        try:
            session = Session(member.port)
            session.create("/before", b"there")
            return session.close()
        except Refused as refused:
            if refused.code == NODE_EXISTS:
                return None
            raise
        except ConnectionLost:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def restart(member):
    member.stop()
    since = time.monotonic()
    member.start()
    return serves(member, since)


def moves(makes, port, new_host):
    """Server 1 moves to other ports, on `new_host`; then 2 and 3 learn of it by a restart."""
    with Cluster(makes, work_folder("rolling"), port) as cluster:
        cluster.start().wait_quorum()
        write_before(cluster[MOVED])
        old = cluster[MOVED].settings["server.%d" % MOVED]
        free = port + PORTS_PER_SERVER * 8
        line = "%s:%d:%d" % (new_host, free + 1, free + 2)
        expect(old != line, "it does not move")
        took = []
        for number in (1, 2, 3):
            cluster[number].settings["server.%d" % MOVED] = line
            took.append(restart(cluster[number]))
            # The others still serve, or serve again.
            cluster.wait_quorum(timeout=WITHIN_S)
        nodes = cluster.look_same()
        return "served after %s s, %d nodes everywhere" % (", ".join("%.1f" % s for s in took), nodes)


def swaps(makes, port):
    """Servers 1 and 2 swap their addresses and keep their data; then 3 restarts with the new lines."""
    with Cluster(makes, work_folder("rolling"), port) as cluster:
        cluster.start().wait_quorum()
        write_before(cluster[1])
        first, second = (cluster[3].settings["server.%d" % number] for number in (1, 2))
        pair = [cluster[1], cluster[2]]
        for member in pair:
            member.stop()
        for member in [*pair, cluster[3]]:
            member.settings.update({"server.1": second, "server.2": first})
        since = time.monotonic()
        for member in pair:
            member.start()
        # The third server has the old lines, and must not disturb the others.
        took = [serves(member, since) for member in pair]
        took.append(restart(cluster[3]))
        cluster.wait_quorum(timeout=WITHIN_S)
        return "served after %s s, %d nodes everywhere" % (", ".join("%.1f" % s for s in took), cluster.look_same())


def renames(makes, port):
    """The hosts get names in place of addresses, one after the other: each server starts with what is renamed by
    then."""
    with Cluster(makes, work_folder("rolling"), port) as cluster:
        cluster.start().wait_quorum()
        write_before(cluster[1])
        took = []
        for number in (1, 2, 3):
            for renamed in range(1, number + 1):
                line = cluster[number].settings["server.%d" % renamed]
                cluster[number].settings["server.%d" % renamed] = line.replace(OLD_HOST, "localhost")
            took.append(restart(cluster[number]))
            cluster.wait_quorum(timeout=WITHIN_S)
        return "served after %s s, %d nodes everywhere" % (", ".join("%.1f" % s for s in took), cluster.look_same())


def line_of(port, number):
    own = port + PORTS_PER_SERVER * number
    return "%s:%d:%d" % (OLD_HOST, own + 1, own + 2)


def grows(makes, port):
    """From three to four voters: the fourth comes with the new lines, then the others restart with them."""
    with Cluster(makes, work_folder("rolling"), port) as cluster:
        fourth = cluster[4]
        first_three = [cluster[n] for n in (1, 2, 3)]
        for member in first_three:
            del member.settings["server.4"]
            member.start()
        cluster.wait_quorum(among=first_three)
        write_before(cluster[1])
        since = time.monotonic()
        fourth.start()
        took = [serves(fourth, since)]
        # The leader last. If the new server leads, servers with the old list do not know it, and wait for their
        # own restart, as with Java.
        leader = cluster.wait_leader()
        for member in sorted(first_three, key=lambda member: member is leader):
            member.settings["server.4"] = line_of(port, 4)
            took.append(restart(member))
            cluster.wait_quorum(timeout=WITHIN_S)
        return "served after %s s, %d nodes everywhere" % (", ".join("%.1f" % s for s in took), cluster.look_same())


def shrinks(makes, port):
    """From four to three: the fourth ends, then the others restart without its line."""
    with Cluster(makes, work_folder("rolling"), port) as cluster:
        cluster.start().wait_quorum()
        write_before(cluster[1])
        cluster[4].stop()
        took = []
        for number in (1, 2, 3):
            del cluster[number].settings["server.4"]
            took.append(restart(cluster[number]))
            cluster.wait_quorum(timeout=WITHIN_S)
        return "served after %s s, %d nodes everywhere" % (", ".join("%.1f" % s for s in took), cluster.look_same())


def unlisted_observer(voters, observer, port):
    with Cluster([voters] * 3, work_folder("rolling"), port) as cluster:
        cluster.start().wait_quorum()
        write_before(cluster[1])
        own = port + PORTS_PER_SERVER * OBSERVER
        keys = dict(cluster[1].settings.items())
        keys["server.%d" % OBSERVER] = "127.0.0.1:%d:%d:observer" % (own + 1, own + 2)
        member = Member(observer, os.path.join(work_folder("rolling"), "server-%d" % OBSERVER), own, OBSERVER, keys)
        try:
            since = time.monotonic()
            member.start()
            took = serves(member, since)
            expect_equal(member.mode(), "observer", "what server %d is" % OBSERVER)
            return "served after %.1f s" % took
        finally:
            member.kill()


def check():
    parser = arguments(__doc__)
    parser.add_argument("--only", help="scenes whose names begin like this")
    parser.add_argument("--peers", default="java3.9", help="the servers to mix with (default: %(default)s)")
    args = parser.parse_args()
    peers, missing = available(args.peers)
    ours = args.server
    scenes = []
    for mover, others in [(ours, ours)] + [pair for peer in peers for pair in ((ours, peer), (peer, ours))]:
        name = "%s among %s" % tuple("Ostler" if make == ours else make for make in (mover, others))
        scenes += [
            ("other ports, %s" % name, lambda m=mover, o=others: moves([m, o, o], args.port, OLD_HOST)),
            ("other address, %s" % name, lambda m=mover, o=others: moves([m, o, o], args.port, NEW_HOST)),
            ("from three to four, %s" % name, lambda m=mover, o=others: grows([o, o, o, m], args.port)),
            ("from four to three, %s" % name, lambda m=mover, o=others: shrinks([m, o, o, o], args.port)),
            ("two change places, %s" % name, lambda m=mover, o=others: swaps([m, o, o], args.port)),
            ("names for addresses, %s" % name, lambda m=mover, o=others: renames([m, o, o], args.port)),
            (
                "observer that only its file lists, %s" % name,
                lambda m=mover, o=others: unlisted_observer(o, m, args.port),
            ),
        ]
    failed = []
    scenes = [(name, scene) for name, scene in scenes if name.startswith(args.only or "")]
    for name, scene in scenes:
        try:
            print("%s: %s" % (name, scene()), flush=True)
        except (Mismatch, NotServing, AssertionError) as what:
            print("FAILED %s: %s" % (name, what), flush=True)
            failed.append("%s: %s" % (name, str(what).split("\n")[0]))
    if failed:
        raise Mismatch("%d of %d: %s" % (len(failed), len(scenes), "; ".join(failed)))
    if missing:
        raise Skip("%d changes served; not tried with %s" % (len(scenes), "; ".join(missing)))
    return "%d changes of server lists by restarts, each server serves within %d s" % (len(scenes), WITHIN_S)


if __name__ == "__main__":
    conclude(check)
