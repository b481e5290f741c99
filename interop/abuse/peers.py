"""Fake peers at the quorum port and the election port of Ostler or Java servers.

Neither port asks for a password. The harm of a fake peer must be limited: the memory that it takes, how long it keeps
out the server whose id it uses, and how long it prevents an election.
"""

import resource
import struct
import threading
import time

from abuse import fake_peer
from ensemble.cluster import Cluster
from harness.outcome import Mismatch, conclude, expect
from harness.server import NotServing, arguments, work_folder

HERE, ELSEWHERE = "127.0.0.1", "127.0.0.66"
FAKE_PEERS, MB_EACH, MB_MAX = 24, 49, 64
WITHIN_S = 10
GARBAGE = 2000


def resident_mb(member):
    with open("/proc/%d/status" % member.process.pid) as f:
        line = next(line for line in f if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def wait_for(condition, since, within, what):
    while not condition():
        if time.monotonic() - since > within:
            raise Mismatch("%s: not within %d s" % (what, within))
        time.sleep(0.02)
    return time.monotonic() - since


def large_packets(make, port):
    """Fake peers send their id, or nothing, and then most of a large packet."""
    with Cluster([make] * 3, work_folder("abuse"), port) as cluster:
        leader = cluster.start().wait_quorum()
        absent = next(m for m in cluster.members.values() if m is not leader)
        absent.kill()
        before, worst, sockets, sent = resident_mb(leader), 0, [], []

        def send(number):
            s = fake_peer.dial(leader.port + 1)
            sockets.append(s)
            count = 0
            try:
                # Some send no id, some an unknown id, and one the id of the server that is down.
                if number % 3:
                    s.sendall(fake_peer.follower_info(absent.number if number == 1 else 100 + number))
                    time.sleep(0.2)
                s.sendall(struct.pack(">iqi", fake_peer.REQUEST, -1, (MB_EACH + 1) << 20))
                for _ in range(MB_EACH):
                    s.sendall(b"x" * (1 << 20))
                    count += 1
            except OSError:
                pass
            sent.append(count)

        threads = [threading.Thread(target=send, args=(n,), daemon=True) for n in range(FAKE_PEERS)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until and any(thread.is_alive() for thread in threads):
            worst = max(worst, resident_mb(leader))
            time.sleep(0.05)
        worst = max(worst, resident_mb(leader))
        for s in sockets:
            s.close()
        figures = "%d fake peers, %d MB of a packet each: %d MB of memory before, %d MB at most" % (
            FAKE_PEERS,
            MB_EACH,
            before,
            worst,
        )
        expect(worst - before < MB_MAX, figures)
        return figures


def absent_voter(make, port, source, is_whole):
    """A fake learner uses the id of a server that is down and then comes back."""
    with Cluster([make] * 3, work_folder("abuse"), port) as cluster:
        leader = cluster.start().wait_quorum()
        absent = next(m for m in cluster.members.values() if m is not leader)
        absent.kill()
        with fake_peer.learner(leader, absent.number, source, is_whole):
            time.sleep(2)
            since = time.monotonic()
            absent.start()
            took = wait_for(
                lambda: absent.mode() == "follower", since, WITHIN_S, "a server serves although a fake peer uses its id"
            )
        return "back %.1f s after its start" % took


def first_start(make, port):
    """At the first start of an ensemble a fake peer votes as a server that has data."""
    with Cluster([make] * 3, work_folder("abuse"), port) as cluster:
        said = (HERE, cluster[3].port + 2)
        # Each server gets a vote for another server's data, and passes it on.
        with fake_peer.votes(cluster[1], 3, said, ELSEWHERE, 2), fake_peer.votes(cluster[2], 3, said, ELSEWHERE, 1):
            cluster[1].start()
            cluster[2].start()
            time.sleep(2)
            cluster[3].start()
            until = time.monotonic() + 5
            during = "no leader meanwhile"
            while time.monotonic() < until:
                if cluster.leader():
                    during = "a leader meanwhile"
                    break
                time.sleep(0.05)
        since = time.monotonic()
        try:
            cluster.wait_quorum(timeout=WITHIN_S)
        except NotServing as e:
            raise Mismatch(
                "not even %d s after the end of false votes: %s" % (WITHIN_S, str(e).split("\n")[0])
            ) from None
        return "%s; all serve %.1f s after their end" % (during, time.monotonic() - since)


def voter_away(make, port, backs=3):
    """One of three servers is down, the leader of the other two restarts, and a fake peer votes as the third."""
    with Cluster([make] * 3, work_folder("abuse"), port) as cluster:
        cluster.start().wait_quorum()
        cluster[3].kill()
        two = [cluster[1], cluster[2]]
        leader = cluster.wait_quorum(among=two)
        said = (HERE, cluster[3].port + 2)
        with (
            fake_peer.votes(cluster[1], 3, said, ELSEWHERE, backs),
            fake_peer.votes(cluster[2], 3, said, ELSEWHERE, backs),
        ):
            time.sleep(0.5)
            leader.stop()
            since = time.monotonic()
            leader.start()
            took = wait_for(
                lambda: None not in [m.mode() for m in two],
                since,
                2 * WITHIN_S,
                "two of three serve while false votes come",
            )
        since = time.monotonic()
        cluster[3].start()
        back = wait_for(lambda: cluster[3].mode() is not None, since, WITHIN_S, "the third serves after that")
        return "two of three serve %.1f s after a start, the third %.1f s after its own" % (took, back)


def garbage(make, port):
    """Silent connections from a follower's address to the quorum port and the election port of the leader."""
    with Cluster([make] * 3, work_folder("abuse"), port) as cluster:
        leader = cluster.start().wait_quorum()
        follower = next(m for m in cluster.members.values() if m is not leader)
        follower.stop()
        sockets = []
        try:
            until = time.monotonic() + WITHIN_S
            for number in range(GARBAGE):
                if time.monotonic() > until:
                    break  # a full backlog takes no more
                try:
                    s = fake_peer.dial(leader.port + 1 + number % 2, timeout=0.1)
                    sockets.append(s)
                    if number % 4 > 1:
                        s.sendall(b"\x00\x00")
                except OSError:
                    pass
            since = time.monotonic()
            follower.start()
            took = wait_for(
                lambda: follower.mode() is not None,
                since,
                3 * WITHIN_S,
                "a follower serves beside garbage from its address",
            )
        finally:
            for s in sockets:
                s.close()
        figures = "%d connections; the follower serves %.1f s after its start" % (len(sockets), took)
        expect(took < WITHIN_S, figures)
        return figures


def check():
    args = arguments(__doc__, only={"help": "names of scenes, comma-separated"}).parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, GARBAGE + 500)), hard))
    make, port = args.server, args.port
    scenes = {
        "packets": lambda: large_packets(make, port),
        "idle": lambda: absent_voter(make, port, HERE, False),
        "elsewhere": lambda: absent_voter(make, port, ELSEWHERE, False),
        "whole": lambda: absent_voter(make, port, ELSEWHERE, True),
        "first-start": lambda: first_start(make, port),
        "away": lambda: voter_away(make, port),
        "away-for-1": lambda: voter_away(make, port, 1),
        "garbage": lambda: garbage(make, port),
    }
    failed = []
    wanted = args.only.split(",") if args.only else list(scenes)
    for name in wanted:
        try:
            print("%s: %s" % (name, scenes[name]()), flush=True)
        except (Mismatch, NotServing) as what:
            print("FAILED %s: %s" % (name, str(what).split("\n")[0]), flush=True)
            failed.append(name)
    expect(not failed, "%d of %d: %s" % (len(failed), len(wanted), ", ".join(failed)))
    return "%d scenes at the ports of the servers for each other" % len(wanted)


if __name__ == "__main__":
    conclude(check)
