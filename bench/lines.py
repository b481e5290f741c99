"""The lines of the comparison: each loads a server and returns figures."""

import time
from dataclasses import dataclass, field

import secure
from candidates import Ensemble, Failed

HIGHER, LOWER = "higher", "lower"


@dataclass
class Size:
    """How much of everything; --quick takes less."""

    seconds: int = 10
    jit_warmup: int = 10
    znodes: int = 1_000_000
    idle: int = 10_000
    watchers: int = 2_000
    hold: int = 15
    snapshots: int = 2
    rounds: int = 3
    big_rounds: int = 2
    big_heap: str = "4g"
    rate: int = 1_000
    snap_count: int = 20_000

    @staticmethod
    def quick():
        return Size(
            seconds=3,
            jit_warmup=5,
            znodes=100_000,
            idle=2_000,
            hold=12,
            snapshots=1,
            rounds=1,
            big_rounds=1,
            big_heap="2g",
            snap_count=8_000,
        )


@dataclass
class Figure:
    """One number of a line. `better` says which way; `text` formats it."""

    key: str
    title: str
    better: str
    unit: str = ""


@dataclass
class Line:
    number: str
    run: object
    figures: list = field(default_factory=list)
    big: bool = False


def mix(op):
    def run(make, bench, size):
        server = make()
        server.start()
        try:
            return secure.measured_mix(bench, op, size)
        finally:
            server.discard()

    return run


def watch(make, bench, size):
    server = make()
    server.start()
    try:
        found = {}
        # A one-shot watch allows one set at a time.
        for key, mode, outstanding in (
            ("one-shot", "one-shot", 1),
            ("persistent-16", "persistent", 16),
            ("persistent-64", "persistent", 64),
        ):
            words = ["watch", "--mode", mode, "--watchers", size.watchers, "--seconds", size.seconds]
            report = bench(*words, "--outstanding", outstanding, "--warmup", size.jit_warmup)
            found[key] = report["ops_per_second"]
            found[key + "_last"] = report["rows"]["last"]["latency_us"]["p50"] / 1000
    finally:
        server.discard()
    return found


def million(make, bench, size):
    server = make(heap=size.big_heap)
    server.start()
    try:
        filled = bench("fill", "--nodes", size.znodes)
        loaded = server.rss()
        killed = time.monotonic()
        server.end()
        server.start()
        back = time.monotonic() - killed
        restarted = server.rss()
    finally:
        server.discard()
    return {
        "fill": filled["figures"]["znodes_per_second"],
        "loaded": loaded / 2**20,
        "restarted": restarted / 2**20,
        "back": back,
    }


def idle(make, bench, size):
    server = make()
    server.start()
    try:
        figures = bench("idle", "--sessions", size.idle, "--seconds", size.hold)["figures"]
    finally:
        server.discard()
    return {
        "total": (figures["rss_held_bytes"] - figures["rss_empty_bytes"]) / 2**20,
        "each": figures["rss_per_session_bytes"] / 1024,
    }


def first_request(make, bench, size):
    server = make()
    try:
        return {"first": server.time_first_request()}
    finally:
        server.discard()


def snapshot(make, bench, size):
    server = make(heap=size.big_heap)
    server.start()
    try:
        bench("fill", "--nodes", size.znodes)
        server.end()
        server.configure({"snapCount": size.snap_count})
        server.start()
        words = ["--rate", size.rate, "--snapshots", size.snapshots, "--warmup", size.jit_warmup]
        report = bench("rate", *words, "--seconds", 2 * size.seconds)
    finally:
        server.discard()
    quiet, busy = (report["rows"][name]["latency_us"] for name in ("no snapshot", "snapshot"))
    if not quiet or not busy:
        raise Failed("the server wrote %s snapshot during the run" % ("no" if quiet else "nothing but one"))
    return {
        "quiet": quiet["p99"] / 1000,
        "busy": busy["p99"] / 1000,
        "worst": busy["max"] / 1000,
        "took": report["figures"]["snapshots_took_seconds"] / report["figures"]["snapshots"],
    }


def ensemble(words):
    """Loads three servers with reads, then with writes."""

    def run(make, bench, size):
        servers = make(Ensemble)
        found = {}
        try:
            for op in "get", "set":
                load = ["mix", "--ops", op + "=1", *words]
                servers.bench(*load, "--seconds", size.jit_warmup, "--warmup", 0)
                report = servers.bench(*load, "--seconds", size.seconds)
                found[op] = report["ops_per_second"]
                found[op + "_cpu"] = report["server_process"]["cpu_us_per_op"]
                found.update(("%s_%s" % (op, part), report["latency_us"][part]) for part in ("p50", "p99"))
        finally:
            servers.discard()
        return found

    return run


def lines(size):
    znodes, idle_sessions = f"{size.znodes:,} znodes", f"{size.idle:,} idle sessions"
    watchers = f"{size.watchers:,} watchers on one znode"
    three = "three servers"
    load = "16 sessions x 16 outstanding, 100 bytes"
    return [
        Line(
            "1",
            mix("get"),
            [
                Figure("rate", "getData, " + load, HIGHER, "/s"),
                Figure("cpu", "server CPU per getData", LOWER, "us"),
                Figure("p99", "p99 of getData", LOWER, "us"),
            ],
        ),
        Line(
            "2",
            mix("set"),
            [
                Figure("rate", "setData with fsync, " + load, HIGHER, "/s"),
                Figure("cpu", "server CPU per setData", LOWER, "us"),
                Figure("p99", "p99 of setData", LOWER, "us"),
            ],
        ),
        Line(
            "3",
            watch,
            [
                Figure("one-shot", watchers + ", one-shot: events", HIGHER, "/s"),
                Figure("one-shot_last", "from the set to the last event, median", LOWER, "ms"),
                Figure("persistent-16", watchers + ", persistent, 16 sets outstanding: events", HIGHER, "/s"),
                Figure("persistent-16_last", "from the set to the last event, 16 sets at once, median", LOWER, "ms"),
                Figure("persistent-64", watchers + ", persistent, 64 sets outstanding: events", HIGHER, "/s"),
                Figure("persistent-64_last", "from the set to the last event, 64 sets at once, median", LOWER, "ms"),
            ],
        ),
        Line(
            "4",
            million,
            [
                Figure("fill", znodes + " of 100 bytes: creates", HIGHER, "/s"),
                Figure("loaded", "memory after creating them", LOWER, "MiB"),
                Figure("restarted", "memory after a restart with them", LOWER, "MiB"),
                Figure("back", "from kill -9 until served again", LOWER, "s"),
            ],
            big=True,
        ),
        Line(
            "5",
            idle,
            [
                Figure("total", idle_sessions + ": memory above an empty server", LOWER, "MiB"),
                Figure("each", "memory per session", LOWER, "KiB"),
            ],
        ),
        Line("6", first_request, [Figure("first", "from exec to the first request served, empty folder", LOWER, "ms")]),
        Line(
            "7",
            snapshot,
            [
                Figure("quiet", f"p99 of setData at {size.rate:,}/s over {znodes}, no snapshot", LOWER, "ms"),
                Figure("busy", "p99 while a snapshot is written", LOWER, "ms"),
                Figure("worst", "slowest setData while a snapshot is written", LOWER, "ms"),
                Figure("took", "time a snapshot takes", LOWER, "s"),
            ],
            big=True,
        ),
        Line(
            "8",
            ensemble(["--sessions", 18, "--outstanding", 16]),
            [
                Figure("get", three + ", 18 sessions x 16 outstanding: getData", HIGHER, "/s"),
                Figure("get_cpu", "their CPU per getData", LOWER, "us"),
                Figure("set", three + ", 18 sessions x 16 outstanding: setData", HIGHER, "/s"),
                Figure("set_cpu", "their CPU per setData", LOWER, "us"),
            ],
        ),
        Line(
            "9",
            ensemble(["--sessions", 3, "--outstanding", 1]),
            [
                Figure("set_p50", three + ", 3 sessions x 1 outstanding: p50 of setData", LOWER, "us"),
                Figure("set_p99", "p99 of setData", LOWER, "us"),
            ],
        ),
        Line(
            "10",
            secure.secure_mix("get"),
            [
                Figure("rate", "TLS: getData, " + load, HIGHER, "/s"),
                Figure("cpu", "TLS: server CPU per getData", LOWER, "us"),
                Figure("p99", "TLS: p99 of getData", LOWER, "us"),
            ],
        ),
        Line(
            "11",
            secure.secure_mix("set"),
            [
                Figure("rate", "TLS: setData with fsync, " + load, HIGHER, "/s"),
                Figure("cpu", "TLS: server CPU per setData", LOWER, "us"),
                Figure("p99", "TLS: p99 of setData", LOWER, "us"),
            ],
        ),
        Line(
            "12",
            secure.handshakes,
            [
                Figure("rate", "TLS: full handshakes, 8 at once, sessions taken up", HIGHER, "/s"),
                Figure("cpu", "TLS: server CPU per handshake", LOWER, "us"),
            ],
        ),
        Line(
            "13",
            secure.latency,
            [
                Figure("plain_p50", f"p50 of getData at {size.rate:,}/s, plain", LOWER, "us"),
                Figure("tls_p50", "the same over TLS", LOWER, "us"),
                Figure("plain_p99", f"p99 of getData at {size.rate:,}/s, plain", LOWER, "us"),
                Figure("tls_p99", "the same over TLS", LOWER, "us"),
            ],
        ),
    ]
