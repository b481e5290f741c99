"""Curator 5.9 and the Rust recipes share data: counts, longs, queues of all kinds, caches, discovery, barriers, a
group, compressed data.

Each step runs in a Java and in a Rust process at once (Data.java, crates/recipes/examples/data.rs), and both must see
the same.
"""

from harness.outcome import conclude, expect_equal
from harness.peers import need
from harness.program import Program
from harness.server import Server, arguments, work_folder
from recipes import programs


def queue_lines(other):
    return (
        ["removed 1"]
        + ["plain %s %d" % (other, i) for i in (1, 2, 3)]
        + ["plain 4", "plain 5"]
        + ["priority first", "priority middle", "priority last", "id a", "id c", "delay now", "delay later"]
        + ["simple %s simple %d" % (other, i) for i in (1, 2, 3)]
    )


def tree_lines():
    nodes = ["/tree "]
    for who in ("java", "rust"):
        nodes += ["/tree/%s " % who, "/tree/%s-done " % who]
        nodes += ["/tree/%s/%d %s %d" % (who, i, who, i) for i in range(1, 20, 2)]
    return sorted(nodes)


STEPS = {
    "count": lambda _: ["count 40"],
    "long": lambda _: ["long 300 integer -100"],
    "queue": queue_lines,
    "cache": lambda _: tree_lines(),
    "discovery": lambda _: ["%s https://%s.host:443 payload of %s Dynamic" % (w, w, w) for w in ("java", "rust")],
    "barrier": lambda _: ["barrier passed"],
    "compressed": lambda other: ["2600 bytes, stored in fewer: true", "new data of %s" % other],
    "group": lambda _: ["%s data of %s" % (who, who) for who in ("java", "rust")],
}


def seen(program, who, step):
    program.wait_for(r"^done$", timeout=90)
    expect_equal(program.finish(), 0, "exit code of %s in step %s" % (who, step))
    lines = [line.rstrip("\r") for line in program.output.split("\n")]
    lines = [line for line in lines if line not in ("done", "", "(end of output)")]
    return sorted(lines) if step == "cache" else lines


def check():
    args = arguments(__doc__, rust={"metavar": "FILE", "help": "the Rust half, already built"}).parse_args()
    jars, folder = need("zk39"), work_folder("recipes-data")
    java, rust = programs.java("Data", folder, jars, "-Xmx256m"), programs.rust("data", args.rust)
    where = "127.0.0.1:%d" % args.port
    with Server(args.server, folder, args.port):
        for step, wanted in STEPS.items():
            both = {
                "java": Program(java + [where, step, "java", "rust"]),
                "rust": Program(rust + [where, step, "rust", "java"]),
            }
            for who, other in (("java", "rust"), ("rust", "java")):
                expect_equal(seen(both[who], who, step), wanted(other), "what %s sees in step %s" % (who, step))
            print("%s: both see the same" % step, flush=True)
    return "Curator and Rust share " + ", ".join(STEPS)


if __name__ == "__main__":
    conclude(check)
