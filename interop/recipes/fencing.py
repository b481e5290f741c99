"""Writes of a paused holder are refused: it is stopped (SIGSTOP) for longer than its session lasts, until another one
holds.

Two processes (crates/recipes/examples/fenced.rs) write all the time; the one that holds is stopped, and when it goes on
it writes at once: through its guard, and in its next session with the same check. Both must be refused, and in the
journal no holder may have written after a later one.

    fencing.py [--server CMD] [--size N] [--rounds N] [--recipes latch,mutex] [--quick]
"""

import re
import time

from ensemble.cluster import Cluster, patiently
from harness.jute import Reader, ustring
from harness.outcome import conclude, expect, expect_equal
from harness.program import Program
from harness.protocol import GET_DATA
from harness.server import arguments, work_folder
from harness.session import Session
from recipes import programs

SESSION_MS = 1000
PAUSE_S = 1.3  # at least; a session that was heard of just before is over a tick later
SETTINGS = {"tickTime": 200}
AT_ONCE = r"^after a pause it (believes to hold|knows that it does not hold), its write is (.*)$"
IN_NEXT_SESSION = r"^in its next session the write is (.*)$"


def token_of(program):
    """That of what it holds now; 0 if it holds nothing."""
    said = re.findall(r"^(holds|lost|after a pause) ?(\d*)", program.output, re.M)
    return int(said[-1][1]) if said and said[-1][0] == "holds" else 0


def holder_of(holders):
    """(the one that holds, its token, the other one)."""
    until = time.monotonic() + 20
    while True:
        for program in holders:
            expect(program.process.poll() is None, "a holder has ended: " + program.output[-600:])
        # One that has lost its session unawares is still to learn of it.
        first, second = sorted(holders, key=token_of, reverse=True)
        if token_of(first):
            return first, token_of(first), second
        expect(time.monotonic() < until, "no process holds: " + holders[0].output[-300:] + holders[1].output[-300:])
        time.sleep(0.01)


def pause(holders):
    """One round; (whether a write was under way, whether the holder believed to hold when it went on)."""
    paused, before, other = holder_of(holders)
    other.seen = len(other.output)
    paused.pause()
    stopped = time.monotonic()
    after = int(other.wait_for(r"^holds (\d+)$").group(1))
    expect(before < after, "token %d after %d" % (after, before))
    time.sleep(max(0, stopped + PAUSE_S - time.monotonic()))
    paused.seen = len(paused.output)
    paused.resume()
    at_once = paused.wait_for(AT_ONCE)
    expect_equal(at_once.group(2), "refused", "the write of a holder that was paused")
    expect_equal(paused.wait_for(IN_NEXT_SESSION).group(1), "refused", "its write in the next session")
    under_way = paused.output[: paused.seen].rpartition("\nholds ")[2]
    return "under way" in under_way, at_once.group(1).startswith("believes")


def journal(session, recipe):
    """The tokens of all records, in the order in which they were written."""
    names = session.children("/journal/" + recipe)
    tokens = []
    for at in range(0, len(names), 500):
        paths = ["/journal/%s/%s" % (recipe, name) for name in names[at : at + 500]]
        session.send_all([(GET_DATA, ustring(path) + b"\0") for path in paths])
        tokens += [int(Reader(session.receive().body).buffer() or b"") for _ in paths]
    return tokens


def pauses(recipe, words, servers, port, rounds):
    began, under_way, believed = time.monotonic(), 0, 0
    patiently(lambda: Session(port).create("/journal/" + recipe))
    holders = [Program(words + [servers, recipe, name, str(SESSION_MS)]) for name in ("one", "two")]
    try:
        for _ in range(rounds):
            was_under_way, believed_to_hold = pause(holders)
            under_way += was_under_way
            believed += believed_to_hold
    finally:
        for program in holders:
            program.resume()
            program.kill()
    tokens = journal(Session(port, 30000), recipe)
    late = [at for at in range(1, len(tokens)) if tokens[at] < tokens[at - 1]]
    expect(not late, "%s: records %s of %d were written after a later holder's" % (recipe, late[:5], len(tokens)))
    print(
        "%s: refused %d of %d, and as many in the next session; %d pauses in the midst of a write, %d holders unaware; "
        "%d records of %d holders in order; %.0f s"
        % (recipe, rounds, rounds, under_way, believed, len(tokens), len(set(tokens)), time.monotonic() - began),
        flush=True,
    )


def check():
    parser = arguments(__doc__)
    parser.add_argument("--size", type=int, default=3, help="servers, 3 or more")
    parser.add_argument("--rounds", type=int, default=100, help="of each recipe")
    parser.add_argument("--recipes", default="latch,mutex")
    parser.add_argument("--fenced", help="the holder, if it is built (crates/recipes/examples/fenced.rs)")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    args = parser.parse_args()
    if args.quick:
        args.rounds = 3
    words, folder, recipes = programs.rust("fenced", args.fenced), work_folder("fencing"), args.recipes.split(",")
    with Cluster([args.server] * args.size, folder, args.port, SETTINGS) as cluster:
        cluster.start()
        cluster.wait_quorum()
        port = cluster.ports()[0]
        servers = ",".join("127.0.0.1:%d" % port for port in cluster.ports())
        patiently(lambda: Session(port).create("/journal"))
        for recipe in recipes:
            pauses(recipe, words, servers, port, args.rounds)
    return "%d writes of %d paused holders refused" % (2 * args.rounds * len(recipes), args.rounds * len(recipes))


if __name__ == "__main__":
    conclude(check)
