"""Traces: a collector gets the spans of sampled requests, and those of a follower and its leader are one trace.

python3 interop/run.py admin.traces [--server CMD] [--port N]"""

import http.server
import json
import os
import threading
import time

from ensemble.cluster import Cluster
from harness.outcome import conclude, expect, expect_equal
from harness.server import arguments, work_folder
from harness.session import Session

WITHIN_S = 15
STAGES = {"queue", "propose", "own disk", "quorum", "apply", "write out"}


class Collector:
    """Takes OTLP as JSON over HTTP."""

    def __init__(self, port):
        self.spans, self.services = [], set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                collector.take(self.path, body)
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, body):
        expect_equal(path, "/v1/traces", "the path of the collector")
        for resource in body["resourceSpans"]:
            named = {one["key"]: one["value"] for one in resource["resource"]["attributes"]}
            self.services.add(named["service.name"]["stringValue"])
            for scope in resource["scopeSpans"]:
                self.spans += scope["spans"]

    def named(self, name):
        return [span for span in list(self.spans) if span["name"] == name]

    def wait_for(self, what, condition):
        until = time.monotonic() + WITHIN_S
        while not condition():
            expect(time.monotonic() < until, "no %s among %s" % (what, sorted({s["name"] for s in self.spans})))
            time.sleep(0.1)


def attributes(span):
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def main():
    args = arguments(__doc__).parse_args()
    folder = work_folder("traces")
    collector = Collector(args.port)
    settings = {"otlp.endpoint": "http://127.0.0.1:%d" % args.port, "otlp.sampledOneIn": 1}
    with Cluster([args.server] * 3, os.path.join(folder, "three"), args.port + 1, settings) as cluster:
        cluster.start()
        leader = cluster.wait_quorum()
        follower = next(member for member in cluster.members.values() if member is not leader)
        session = Session(follower.port)
        session.create("/traced", b"")
        for at in range(20):
            session.set("/traced", b"%d" % at)
            session.get("/traced")

        def of_both():
            """Spans of one write at the follower and at the leader."""
            for root in collector.named("setData"):
                for other in collector.named("setData"):
                    if other.get("parentSpanId") == root["spanId"]:
                        return root, other
            return None

        collector.wait_for("span of a leader below one of a follower", of_both)
        root, other = of_both()
        expect_equal(other["traceId"], root["traceId"], "the trace of both")
        numbers = (str(follower.number), str(leader.number))
        expect_equal(tuple(str(attributes(s)["zookeeper.server"]) for s in (root, other)), numbers, "the servers")
        expect_equal(attributes(root)["zookeeper.path"], "/traced", "the path")
        collector.wait_for("span of a read", lambda: collector.named("getData"))

        def with_all_stages():
            """A write whose span has each stage. If the others were faster, a follower's disk is no stage of it."""
            roots = {span["spanId"] for span in collector.named("setData") if not span.get("parentSpanId")}
            stages = {}
            for span in list(collector.spans):
                if span.get("parentSpanId") in roots:
                    stages.setdefault(span["parentSpanId"], set()).add(span["name"])
            return any(STAGES <= names for names in stages.values())

        collector.wait_for("write at a follower with all stages", with_all_stages)
        for span in list(collector.spans):
            expect(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]), "%s ends early" % span["name"])
        session.close()
        collector.server.shutdown()
        collector.server.server_close()
        # A collector that is gone holds nobody up.
        session = Session(follower.port)
        for at in range(50):
            session.set("/traced", b"%d" % at)
        session.close()
    expect_equal(collector.services, {"ostler"}, "the name of the service")
    return "%d spans; those of a follower and its leader are one trace; a lost collector does no harm" % len(
        collector.spans
    )


if __name__ == "__main__":
    conclude(main)
