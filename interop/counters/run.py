"""Runs one load at an ensemble of Java servers and at one of Ostler servers, and compares every name of `mntr`.

Prints a table of the names that moved with Java only, that moved with Ostler only, that have other lines, and whose
figures have another order of magnitude: over all servers, and over followers and observers alone, because some figures
count at the leader only. Then the figures that `srst` did not reset. Each difference needs an excuse in excuses.txt,
and each excuse must be needed."""

from counters.excuses import Excuses
from counters.figures import Figures, Finding, compare
from counters.load import Ensemble
from harness.outcome import Mismatch, conclude
from harness.server import arguments

# Gauges of the moment.
OF_THE_MOMENT = (
    "open_file_descriptor_count",
    "outstanding_requests",
    "num_alive_connections",
    "global_sessions",
    "min_latency",
)

# Figures of servers that synchronize learners: which follower the observer uses, and whether it leads at the end, is
# random.
OF_A_LEARNERS_MASTER = ("diff_count", "inflight_diff_count", "inflight_snap_count", "revalidate_count", "snap_count")

# Of one epoch: Java forgets them whenever the leader changes, so what is left of a role's requests is chance.
OF_AN_EPOCH = (
    "last_client_response_size",
    "max_client_response_size",
    "min_client_response_size",
    "packets_received",
    "packets_sent",
)


def gathered(make, port):
    print("load at %s" % make, flush=True)
    ensemble = Ensemble(make, port)
    lives, after_reset = ensemble.run()
    return lives, after_reset


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peer", default="java3.9", help="whose counters are the measure (default: %(default)s)")
    args = parser.parse_args()
    java, java_reset = gathered(args.peer, args.port)
    ours, ours_reset = gathered(args.server, args.port)
    excuses = Excuses()
    findings = compare(Figures(java), Figures(ours))
    known = {finding.name for finding in findings}
    for role in ("follower", "observer"):
        # What stands still everywhere is told once.
        findings += [
            f
            for f in compare(Figures(java, role), Figures(ours, role), role)
            if f.name not in known and f.name not in OF_A_LEARNERS_MASTER + OF_AN_EPOCH
        ]
    findings += not_reset(Figures(java_reset), Figures(ours_reset), Figures(ours[-len(ours_reset) :]))
    findings = [finding for finding in findings if finding.name not in OF_THE_MOMENT]
    unexcused = [finding for finding in findings if not excuses.of(finding)]
    for finding in findings:
        key = excuses.of(finding)
        what, reason = ("excused", " [%s]" % excuses.reasons[key]) if key else ("FAULT", "")
        print("%-8s %-55s %-6s %s%s" % (what, finding.name, finding.kind, finding.text, reason))
    needless = list(excuses.needless(Figures(java), Figures(ours), findings))
    for name, kind, why in needless:
        print("NEEDLESS %-55s %-6s %s" % (name, kind, why))
    total = len(Figures(java).names())
    if unexcused or needless:
        raise Mismatch(
            "of %d metrics %d differ without an excuse, %d excuses are not needed: %s"
            % (
                total,
                len(unexcused),
                len(needless),
                ", ".join([f.name for f in unexcused] + ["excuse " + n for n, _, _ in needless]),
            )
        )
    return "%d metrics move as in Java, %d of them excused" % (total, len(findings))


def not_reset(java, ours, before):
    """Names that `srst` brings to their start in Java and leaves here. Work under way may count a little afterwards."""
    for name in sorted(java.names() & ours.names()):
        first = java.first(name)
        if first not in java.moved(name) and 2 * ours.parts(name).get(first, 0) > before.parts(name).get(first, 0) > 0:
            yield Finding(name, "size", "not reset by srst: Java %s, here %s" % (java.shown(name), ours.shown(name)))


if __name__ == "__main__":
    conclude(check)
