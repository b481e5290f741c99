"""/metrics: names, types and labels of ZooKeeper 3.9's exporter, and what others make of them.

    python3 interop/run.py admin.metrics [--server CMD] [--port N] [--dashboards FOLDER]

A real Prometheus scrapes a server and answers the queries of ZooKeeper's alert rules; collectd's plugin for ZooKeeper
and a pattern such as Telegraf's read `mntr`. With --dashboards each metric of the Grafana dashboards in a folder is
looked for."""

import glob
import json
import os
import re
import subprocess
import time
import urllib.parse
import urllib.request

from admin import metric_names as names
from admin.http import ask
from ensemble.cluster import Cluster
from harness.outcome import Mismatch, conclude, expect, expect_equal
from harness.peers import need, need_program
from harness.server import Server, arguments, four_letter_word, work_folder
from harness.session import Session

CLASS = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
SAMPLE = re.compile(r"^([a-z_][a-z0-9_]*)(?:\{(.*)\})? ([-+0-9.eE]+|NaN|[+-]Inf)$")
# What the alert rules of ZooKeeper's monitor guide and well-known mixins ask for.
QUERIES = [
    "up",
    "znode_count",
    "num_alive_connections",
    "approximate_data_size / 1024 / 1024",
    "watch_count",
    "increase(election_time_count[5m])",
    "open_file_descriptor_count / max_file_descriptor_count",
    "rate(fsynctime_sum[1m])",
    "rate(snapshottime_sum[5m])",
    "avg_latency",
    'jvm_memory_bytes_used / jvm_memory_bytes_max{area="heap"}',
    "quorum_size",
    "changes(leader_unavailable_time_count[5m])",
    "global_sessions",
    "rate(readlatency_sum[1m]) / rate(readlatency_count[1m])",
    'readlatency{quantile="0.99"}',
    "histogram_quantile(0.99, rate(ostler_updatelatency_milliseconds_bucket[1m]))",
    "sum by (key) (rate(write_per_namespace_count[1m]))",
    "process_resident_memory_bytes",
    "rate(process_cpu_seconds_total[1m])",
]
# A JVM's parts, which Ostler does not have.
OF_JVM = re.compile(r"^jvm_(gc_|classes_|memory_pool|buffer_|threads_(?!current)|info)")
MNTR_LINE = re.compile(r"^zk_(\w[\w.\-]+)\s+([\w.\-]+)", re.M)


def settings(port):
    return {
        "metricsProvider.className": CLASS,
        "metricsProvider.httpHost": "127.0.0.1",
        "metricsProvider.httpPort": port,
    }


def scrape(port):
    """{family: (type, [(name, labels)])}, in the order of the text."""
    answer = ask(port, "/metrics")
    expect_equal(answer.status, 200, "/metrics")
    expect_equal(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8", "the content's type")
    families, family = {}, None
    for line in answer.body.decode().splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            expect(family not in families, "%s comes twice" % family)
            families[family] = (kind, [])
            continue
        match = SAMPLE.match(line)
        if not match or family is None:
            raise Mismatch("a line that is no sample: %s" % line)
        expect(match[1].startswith(family), "%s stands below %s" % (match[1], family))
        families[family][1].append((match[1], match[2] or ""))
    return families


def check_names(families, role):
    """Every name of Java's at a server in this role, with its type and labels; nothing else but names of our own."""
    wanted = dict.fromkeys(names.GAUGES, "gauge")
    if role != "standalone":
        wanted.update(dict.fromkeys(names.GAUGES_OF_MEMBERS, "gauge"))
        wanted["synced_observers"] = "gauge"
    if role == "leader":
        wanted.update(dict.fromkeys(names.GAUGES_OF_LEADERS, "gauge"))
    wanted.update(dict.fromkeys(names.GAUGES_WITH_KEY, "gauge"))
    wanted.update(dict.fromkeys(names.COUNTERS + names.COUNTERS_WITH_KEY, "counter"))
    summaries = names.MEDIANS + names.MEDIANS_WITH_KEY + names.QUANTILES + names.QUANTILES_WITH_KEY
    wanted.update(dict.fromkeys(summaries, "summary"))
    lacking = sorted(set(wanted) - set(families))
    expect(not lacking, "%s: no %s" % (role, lacking))
    more = [name for name in families if name not in wanted and not name.startswith(("ostler_", "process_", "jvm_"))]
    expect(not more, "%s: Java has no %s" % (role, more))
    for name, kind in wanted.items():
        expect_equal(families[name][0], kind, "%s: the type of %s" % (role, name))
    for name in names.MEDIANS:
        expect_equal(quantiles(families, name), ["0.5"], "the quantiles of " + name)
    for name in names.QUANTILES:
        expect_equal(quantiles(families, name), ["0.5", "0.9", "0.99"], "the quantiles of " + name)
    for name in names.GAUGES_WITH_KEY + names.COUNTERS_WITH_KEY + names.MEDIANS_WITH_KEY + names.QUANTILES_WITH_KEY:
        for sample, labels in families[name][1]:
            expect(labels.startswith('key="'), "%s has no label key: {%s}" % (sample, labels))


def quantiles(families, name):
    own = [labels for sample, labels in families[name][1] if sample == name]
    ends = sorted(sample[len(name) :] for sample, _ in families[name][1] if sample != name)
    expect_equal(ends, ["_count", "_sum"], "the samples of " + name)
    return [labels.removeprefix('quantile="').removesuffix('"') for labels in own]


def load(port):
    session = Session(port)
    session.create("/app", b"")
    for at in range(300):
        session.set("/app", b"%d" % at)
        session.get("/app")
    return session


class Prometheus:
    """A real Prometheus that scrapes a port each second."""

    def __init__(self, folder, port, target):
        self.url = "http://127.0.0.1:%d/api/v1/query?query=" % port
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w") as f:
            f.write("global: {scrape_interval: 1s}\nscrape_configs:\n")
            f.write("- {job_name: zookeeper, static_configs: [{targets: ['127.0.0.1:%d']}]}\n" % target)
        words = [need_program("prometheus"), "--config.file=" + config, "--log.level=error"]
        words += ["--web.listen-address=127.0.0.1:%d" % port, "--storage.tsdb.path=" + os.path.join(folder, "tsdb")]
        self.process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def query(self, text):
        with urllib.request.urlopen(self.url + urllib.parse.quote(text), timeout=10) as answer:
            return json.load(answer)["data"]["result"]

    def answers(self, text, patience=20):
        """Waits until a query has a result."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            try:
                if self.query(text):
                    return True
            except OSError:
                pass
            time.sleep(0.2)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def asked_names(expression):
    """The metrics in an expression of PromQL."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\w+(:\w+)+', " ", expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    words = re.findall(r"\b[a-z_][a-z0-9_]*\b(?!\s*\()", bare)
    return [
        word for word in words if word not in ("and", "or", "unless", "bool", "offset", "group_left", "group_right")
    ]


def of_dashboards(folder, families):
    """Metrics that dashboards ask for and a leader's scrape does not have. Returns (asked, lacking)."""
    have = {sample for _, samples in families.values() for sample, _ in samples} | set(families)
    asked = set()

    def walk(value):
        if isinstance(value, dict):
            if isinstance(value.get("expr"), str):
                asked.update(asked_names(value["expr"]))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    for path in glob.glob(os.path.join(folder, "*.json")):
        with open(path) as f:
            walk(json.load(f))
    # The rest comes from Kubernetes, not from ZooKeeper.
    of_cluster = re.compile(
        r"^(kube|container|kubelet|node|machine|up$|kubedb|label_|active$|cluster$|namespace$|pod$)"
    )
    known = {name for name in asked if not of_cluster.match(name)}
    ends = re.compile(r"_(sum|count|bucket)$")
    lacking = sorted(n for n in known if n not in have and ends.sub("", n) not in families and not OF_JVM.match(n))
    return known, lacking


def check_mntr(port):
    """What reads `mntr` by a pattern, and collectd."""
    text = four_letter_word(port, "mntr")
    lines = [line for line in text.splitlines() if line]
    matched = MNTR_LINE.findall(text)
    expect_equal(len(matched), len(lines), "lines of mntr that Telegraf's pattern reads")
    figures = dict(matched)
    for key in ("avg_latency", "znode_count", "num_alive_connections", "open_file_descriptor_count"):
        float(figures[key])
    return len(lines)


def check_collectd(folder, port):
    """collectd's own plugin writes what it has read into files."""
    daemon, out = need_program("collectd"), os.path.join(folder, "csv")
    config = os.path.join(folder, "collectd.conf")
    with open(config, "w") as f:
        f.write('Interval 1\nTypesDB "/usr/share/collectd/types.db"\nBaseDir "%s"\nHostname "h"\n' % folder)
        f.write('LoadPlugin csv\n<Plugin csv>\n DataDir "%s"\n</Plugin>\n' % out)
        f.write('LoadPlugin zookeeper\n<Plugin zookeeper>\n Host "127.0.0.1"\n Port "%d"\n</Plugin>\n' % port)
    words = [daemon, "-f", "-C", config, "-P", os.path.join(folder, "pid")]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    wanted = ["latency-avg", "latency-max", "gauge-watch_count", "gauge-ephemerals", "bytes-approximate_data_size"]
    try:
        until = time.monotonic() + 20
        while True:
            found = [os.path.basename(path) for path in glob.glob(out + "/h/zookeeper/*")]
            lacking = [name for name in wanted if not any(one.startswith(name.split("-")[0]) for one in found)]
            if found and not lacking:
                return len(found)
            expect(time.monotonic() < until, "collectd has read no %s of %s" % (lacking, found))
            time.sleep(0.2)
    finally:
        process.kill()
        process.wait()


def main():
    args = arguments(__doc__, dashboards={"help": "a folder with Grafana's JSON"}).parse_args()
    need("monitoring")
    folder = work_folder("metrics")
    alone = Server(args.server, os.path.join(folder, "alone"), args.port, settings(args.port + 1))
    with alone.start():
        session = load(alone.port)
        families = scrape(args.port + 1)
        check_names(families, "standalone")
        few = ask(args.port + 1, "/metrics?name[]=znode_count&name[]=fsynctime_sum").body.decode()
        expect_equal(few.count("# TYPE"), 2, "families of /metrics?name[]=")
        expect_equal(ask(args.port + 1, "/other").status, 404, "/other")
        lines = check_mntr(alone.port)
        read = check_collectd(folder, alone.port)
        session.close()
    cluster = Cluster([args.server] * 3, os.path.join(folder, "three"), args.port + 10)
    for number, member in cluster.members.items():
        member.settings.update(settings(args.port + 30 + number))
    with cluster:
        cluster.start()
        leader = cluster.wait_quorum()
        session = load(leader.port)
        for number, member in cluster.members.items():
            check_names(scrape(args.port + 30 + number), "leader" if member is leader else "follower")
        target = args.port + 30 + leader.number
        asked = 0
        if args.dashboards:
            known, missing = of_dashboards(args.dashboards, scrape(target))
            expect(not missing, "dashboards ask for %s" % missing)
            asked = len(known)
        with Prometheus(folder, args.port + 40, target) as prometheus:
            for _at in range(2):
                session.set("/app", b"again")
                for query in QUERIES:
                    expect(prometheus.answers(query), "no result for %s" % query)
        session.close()
    dashboards = ", %d metrics of dashboards" % asked if asked else ""
    return (
        "names, types and labels of three roles, %d queries answered by Prometheus%s, collectd read %d values, mntr %d"
        % (len(QUERIES), dashboards, read, lines)
    )


if __name__ == "__main__":
    conclude(main)
