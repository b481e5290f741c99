"""Runs the example programs of crates/examples at three servers, and kills servers and instances of the programs. What
may not happen is looked for from outside.

python3 interop/run.py examples.run [--server CMD] [--port N] [--only jobs,config,gateway,shards,rate,end]"""

import time

from examples import config, end, gateway, jobs, rate, shards
from harness.outcome import Skip, conclude, expect
from harness.server import arguments

CHECKS = {
    "jobs": jobs.check,
    "config": config.check,
    "gateway": gateway.check,
    "shards": shards.check,
    "rate": rate.check,
    "end": end.check,
}


def check():
    parser = arguments(__doc__, only={"default": ",".join(CHECKS), "help": "checks, of %(default)s"})
    args = parser.parse_args()
    names = args.only.split(",")
    expect(set(names) <= set(CHECKS), "checks are " + ",".join(CHECKS))
    said, left_out = [], []
    for name in names:
        began = time.monotonic()
        try:
            said.append(CHECKS[name](args))
        except Skip as why:
            left_out.append("%s: %s" % (name, why))
            continue
        print("%s: %s (%.0f s)" % (name, said[-1], time.monotonic() - began), flush=True)
    if left_out:
        raise Skip("; ".join(left_out))
    return "; ".join(said)


if __name__ == "__main__":
    conclude(check)
