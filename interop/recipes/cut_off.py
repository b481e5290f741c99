"""A holder whose server is cut off must stop taking itself for the holder before another process holds the lock.

The holder (crates/recipes/examples/idle_holder.rs) writes nothing, and its follower, which takes ten seconds to notice
that it is cut off, still answers its pings. Meanwhile the leader ends its session, and the next process gets the lock.
Before that the holder must hold for several session timeouts. The check must find a holder that relies on answered
pings.

    cut_off.py [--server CMD] [--rounds N] [--quick]
"""

import time

from ensemble.cluster import Cluster
from ensemble.links import Links
from harness.outcome import conclude, expect
from harness.program import Program
from harness.server import arguments, work_folder
from recipes import programs

SESSION_MS = 3000
SETTINGS = {"tickTime": 200, "syncLimit": 50}
LINKS_FROM = 70  # ports behind those of the servers


def one_round(cluster, links, words, path, *how):
    """How long two processes were holders, in ms; negative: how long none was."""
    leader = cluster.wait_quorum()
    follower = next(member for member in cluster.running() if member is not leader)
    holder = Program(words + ["127.0.0.1:%d" % follower.port, path, str(SESSION_MS), *how])
    others = []
    try:
        holder.wait_for(r"^holds from \d+$")
        others.append(Program(words + ["127.0.0.1:%d" % leader.port, path, str(SESSION_MS)]))
        time.sleep(3 * SESSION_MS / 1000)
        expect("held until" not in holder.output, "a holder lost the lock although all servers work: " + holder.output)
        links.cut_off(follower.number)
        taken = int(others[0].wait_for(r"^holds from (\d+)$").group(1))
        held = int(holder.wait_for(r"^held until (\d+)$", timeout=30).group(1))
    finally:
        links.heal()
        for program in [holder, *others]:
            program.kill()
    return (held - taken) / 1000


def check():
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--holder", help="the holder, if it is built (crates/recipes/examples/idle_holder.rs)")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    args = parser.parse_args()
    rounds = 1 if args.quick else args.rounds
    words, folder = programs.rust("idle_holder", args.holder), work_folder("cut-off")
    with Links(3, args.port + LINKS_FROM) as links:
        with Cluster([args.server] * 3, folder, args.port, SETTINGS, links=links) as cluster:
            links.start()
            cluster.start()
            apart = [one_round(cluster, links, words, "/held/%d" % n) for n in range(rounds)]
            print("no process held for %s ms" % ", ".join("%.0f" % -both for both in apart), flush=True)
            expect(max(apart) < 0, "two believed to hold, for %.0f ms" % max(apart))
            both = one_round(cluster, links, words, "/held/unproven", "unproven")
            expect(both > 0, "a holder that relies on pings was not found out")
    return "%d times no process held for %.0f to %.0f ms; by pings alone two held for %.0f ms" % (
        rounds,
        -max(apart),
        -min(apart),
        both,
    )


if __name__ == "__main__":
    conclude(check)
