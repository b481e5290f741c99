"""What the checks share that change the security of an ensemble under load."""

import time

from ensemble.mixed import given_snapshots_in
from harness.outcome import expect

OUTSIDE_S = 3  # so long a server is watched that must not come in


def restart(cluster, load, member, settings):
    """Restarts one server with other settings. If it does not lead, only its own clients may lose their connection."""
    load.wait_progress()
    led = cluster.wait_quorum() is member
    began = time.monotonic()
    member.stop()
    member.settings.update(settings)
    member.start()
    cluster.wait_quorum()
    load.wait_progress()
    lost = load.losses(began, but_of=member.port)
    expect(led or not lost, "the restart of server %d cut off clients of others: %s" % (member.number, lost[:3]))


def kill_leader(cluster, load):
    """kill -9 of the leader: another one leads, and then it comes back."""
    leader = cluster.wait_quorum()
    leader.kill()
    load.wait_progress()
    leader.start()
    cluster.wait_quorum()
    return leader


def end(cluster, load):
    """Nothing is lost: no write that was acknowledged, and no session. Returns the figures."""
    load.stop()
    for port in load.ports:
        load.check(port)
    expect(not load.expired, "%d sessions ended although their clients came back" % load.expired)
    mixtures = given_snapshots_in(cluster)  # see migrate.py: a Java leader sends its tree while it changes
    nodes = cluster.look_same(mixtures=mixtures)
    return "%d writes acknowledged, none failed or lost; no session lost; %d nodes, the same at all servers" % (
        load.acknowledged,
        nodes,
    )


def stays_out(cluster, wrong):
    """The last server stays outside with each of these settings ({what they are: all its settings}), and the others
    serve."""
    *others, bad = cluster.members.values()
    with cluster:
        for what, settings in wrong.items():
            bad.settings = settings
            cluster.start()
            cluster.wait_quorum(among=others)
            time.sleep(OUTSIDE_S)
            expect(bad.mode() not in ("leader", "follower"), "a server with %s is in the ensemble" % what)
            print("a server with %s stays out" % what, flush=True)
            cluster.stop()
