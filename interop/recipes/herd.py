"""Counts watch events and requests of a hand-over among many contenders, in the fair election and in the unfair one.

The fair election (LeaderLatch) must cost one event and the same number of requests for any number of contenders. The
unfair one notifies all contenders. Clients and server count, see crates/recipes/examples/herd.rs.

    herd.py [--server CMD] [--sizes 10,100,1000] [--hand-overs N] [--unfair-hand-overs N] [--quick]
"""

import os
import re
import subprocess

from harness.outcome import conclude, expect, expect_equal
from harness.server import Server, arguments, work_folder
from recipes import programs

SETTINGS = {"maxSessionTimeout": 3600000}
ROW = "%-7s %10s %10s %22s %23s %15s  %s"
PINGS = 20  # packets that may have come besides; mntr is one


def run(words, folder, args, kind, contenders, hand_overs):
    """One herd at a server of its own; its counts."""
    place = os.path.join(folder, "%s-%d" % (kind, contenders))
    with Server(args.server, place, args.port, SETTINGS):
        cmd = words + ["127.0.0.1:%d" % args.port, kind, str(contenders), str(hand_overs)]
        p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    expect(p.returncode == 0, "herd ended with %d: %s" % (p.returncode, p.stdout[-600:]))
    count = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", p.stdout)}
    operations = {name: int(value) for name, value in re.findall(r"(\w+):(\d+)", p.stdout)}

    # The removal of an unused watch is not counted as an operation by the clients.
    operations["removeWatches"] = count["hand_overs"] if kind == "fair" else 0
    shown = ["%s %.4g" % (name, number / hand_overs) for name, number in operations.items() if number]
    print(
        ROW
        % (
            kind,
            contenders,
            hand_overs,
            "%.2f (at most %d)" % (count["server_events"] / hand_overs, count["most_events"]),
            "%.2f" % (count["server_requests"] / hand_overs),
            "%.0f" % (count["received"] / hand_overs),
            ", ".join(shown),
        ),
        flush=True,
    )
    expect_equal(count["server_events"], count["events"], "events by the server's count")
    more = count["server_requests"] - sum(operations.values())
    expect(0 <= more <= PINGS, "by the server's count there were %d requests more" % more)
    return count


def check():
    parser = arguments(__doc__)
    parser.add_argument("--sizes", default="10,100,1000", help="contenders (default: %(default)s)")
    parser.add_argument("--hand-overs", type=int, default=1000)
    parser.add_argument("--unfair-hand-overs", type=int, default=100)
    parser.add_argument("--herd", help="the herd, if it is built (crates/recipes/examples/herd.rs)")
    parser.add_argument("--quick", action="store_true", help="smaller herds, fewer hand-overs")
    args = parser.parse_args()
    if args.quick:
        args.sizes, args.hand_overs, args.unfair_hand_overs = "10,100", 50, 10
    words, folder = programs.rust("herd", args.herd), work_folder("herd")
    sizes = [int(size) for size in args.sizes.split(",")]
    print(
        ROW % ("", "contenders", "hand-overs", "events per hand-over", "requests per hand-over", "bytes received", "")
    )
    fair = [run(words, folder, args, "fair", size, args.hand_overs) for size in sizes]
    unfair = [run(words, folder, args, "unfair", size, args.unfair_hand_overs) for size in sizes]
    few = fair[0]["server_requests"]
    for size, count in zip(sizes, fair):
        expect_equal(
            count["server_events"], args.hand_overs, "events of %d hand-overs among %d" % (args.hand_overs, size)
        )
        expect(
            abs(count["server_requests"] - few) <= PINGS,
            "%d requests of %d hand-overs among %d contenders, %d among %d"
            % (count["server_requests"], args.hand_overs, size, few, sizes[0]),
        )
    for size, count in zip(sizes, unfair):
        # On a busy machine a contender may check late, find the leader gone, and need no event.
        losers = (size - 1) * args.unfair_hand_overs
        expect(count["server_events"] >= 0.95 * losers, "fewer events than losers in the unfair election")
    return (
        "among %d contenders a hand-over takes %.2f event and %.2f requests, as among %d; "
        "unfair %.2f and %.2f (%d and %d hand-overs)"
        % (
            sizes[-1],
            fair[-1]["server_events"] / args.hand_overs,
            fair[-1]["server_requests"] / args.hand_overs,
            sizes[0],
            unfair[-1]["server_events"] / args.unfair_hand_overs,
            unfair[-1]["server_requests"] / args.unfair_hand_overs,
            args.hand_overs,
            args.unfair_hand_overs,
        )
    )


if __name__ == "__main__":
    conclude(check)
