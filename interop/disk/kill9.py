"""kill -9 under load, again and again in one folder, while the server under test and Java servers take turns.

Every round opens the folder of the round before, checks that everything acknowledged is there (see load.py), loads
again with some 250 writes in flight, and kills the server at a random moment. The seed decides the moments."""

import random
import time

from disk.load import Client, Visitors, join, start
from harness.outcome import Mismatch, Skip, conclude, expect
from harness.server import Server, arguments, available, work_folder
from harness.session import Session

CLIENTS = 4
SETTINGS = {"snapCount": 4000, "preAllocSize": 512, "maxSessionTimeout": 120000}


def turns(server, peers):
    """The order of the servers: the server under test twice, then a peer between each two of its turns."""
    order = [server]
    for peer in peers:
        order += [server, peer]
    return order


def one_round(server, clients, visitors, port, load_for):
    """Start, look, load, kill; how many unanswered writes the server had kept."""
    kept = 0
    server.start()
    try:
        if not clients:
            Session(port).create("/load")
            clients += [Client(port, n) for n in range(CLIENTS)]
        else:
            visitors.look(port)
            kept = sum(c.come_back(port) for c in clients)
        threads = start(clients, visitors, port)
        time.sleep(load_for)
    finally:
        server.kill()
    join(threads, clients, visitors)
    return kept


def check():
    parser = arguments(__doc__)
    parser.add_argument(
        "--peers", default="java3.9,java3.8", help="servers that take turns; empty: none (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    peers, missing = available(args.peers)
    order = turns(args.server, peers)
    folder, chance = work_folder("kill9"), random.Random(args.seed)
    clients, visitors = [], Visitors()
    before, answered = None, 0
    for n in range(args.rounds + 1):  # the last round checks the state after the last kill
        cmd = order[n % len(order)]
        began = time.monotonic()
        try:
            kept = one_round(
                Server(cmd, folder, args.port, SETTINGS), clients, visitors, args.port, chance.uniform(0.2, 1.2)
            )
        except Exception as what:
            raise Mismatch("round %d of seed %d, %s -> %s: %s" % (n, args.seed, before, cmd, what)) from what
        total = sum(c.total for c in clients)
        print(
            "round %d, %s: all there, %d unanswered writes kept; %d more answered (%.1f s)"
            % (n, cmd, kept, total - answered, time.monotonic() - began),
            flush=True,
        )
        before, answered = cmd, total
    expect(answered > args.rounds * 100, "only %d writes were answered in all" % answered)
    summary = "%d rounds, %d writes acknowledged, none lost" % (args.rounds, answered)
    if missing:
        raise Skip("%s by the server alone; not tried with %s" % (summary, "; ".join(missing)))
    return summary


if __name__ == "__main__":
    conclude(check)
