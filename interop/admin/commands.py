"""The commands of the admin server: on the same tree, Ostler's JSON has the members and types of Java 3.8's.

    python3 interop/run.py admin.commands [--server CMD] [--port N]

Debian's Java 3.8 has the AdminServer with its jetty. Values may differ; names, types, the order of members, statuses
and the type of the content may not. What 3.9 and 3.10 have added is checked by itself."""

import os
import re
import time

from admin.http import ask
from ensemble.cluster import Cluster
from harness.jute import ustring
from harness.outcome import conclude, expect, expect_equal
from harness.peers import need
from harness.protocol import EPHEMERAL, EPHEMERAL_SEQUENTIAL, GET_DATA
from harness.server import Server, arguments, work_folder
from harness.session import Session

COMMANDS = (
    "configuration conf config connection_stat_reset crst connections cons dirs dump environment env envi "
    "get_trace_mask gtmk hash initial_configuration icfg is_read_only isro last_snapshot lsnp leader lead monitor mntr "
    "observer_connection_stat_reset orst observers obsr ruok server_stats srvr set_trace_mask stmk stat_reset srst "
    "stats stat system_properties sysp voting_view watch_summary wchs watches wchc watches_by_path wchp zabstate "
    "nothing set_trace_mask?traceMask=12 set_trace_mask?traceMask=x"
).split()
TIMEOUT_MS = 100000
RATE_MS = 500
# Objects whose keys are data: their values are compared, if both have one.
BY_DATA = {
    "expiry_time_to_session_ids",
    "session_id_to_ephemeral_paths",
    "session_id_to_watched_paths",
    "path_to_session_ids",
    "current_config",
}
# A JVM's own.
ONLY_JAVA = {"environment": {"java.security.auth.login.config"}, "system_properties": None}
# Java draws the order of these from hash tables.
UNORDERED = {
    "quorum_address",
    "election_address",
    "server_stats",
    "client_response_stats",
    "client_response",
    "proposal_stats",
    "monitor",
    "digests",
}
# A key for each learner.
LEARNER = re.compile(r"_\d+_learner_handler_qp_(size|time_ms)$")
# 3.9 and Ostler have more of these.
MAY_HAVE_MORE = {"monitor", "environment", "system_properties"}


class Admin(Server):
    """A server with an admin server."""

    def __init__(self, cmd, folder, port):
        os.makedirs(folder, exist_ok=True)
        self.admin = port + 1
        super().__init__(cmd, folder, port, settings(self.admin))


def settings(admin):
    return {
        "admin.enableServer": "true",
        "admin.serverPort": admin,
        "admin.serverAddress": "127.0.0.1",
        "admin.rateLimiterIntervalInMS": RATE_MS,
        "secret.password": "do not show",
        # The sessions of this check send no pings.
        "maxSessionTimeout": 100000,
    }


def kind(value):
    """The type of a value, as a reader of another language sees it."""
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return {int: "whole number", float: "number", str: "text", list: "list", dict: "object"}[type(value)]


def compare(where, java, ours, command):
    """Names of members and types of values; lists by their first entries."""
    # A Java member of an ensemble does not show its file.
    if where == "initial_configuration.initial_configuration" and java is None:
        return
    if kind(java) != kind(ours):
        expect(False, "%s: Java has %s %r, Ostler %s %r" % (where, kind(java), java, kind(ours), ours))
    if isinstance(java, list):
        if java and ours:
            compare(where + "[0]", java[0], ours[0], command)
        else:
            expect_equal(bool(ours), bool(java), where + ": whether the list has entries")
    if not isinstance(java, dict):
        return
    name = where.split(".")[-1]
    if name in BY_DATA:
        # Java may keep a time at which nothing expires any more.
        theirs, mine = ([value for value in of.values() if value] for of in (java, ours))
        expect_equal(bool(mine), bool(theirs), where + ": whether there are entries")
        if theirs:
            compare(where + ".*", theirs[0], mine[0], command)
        return
    skipped = ONLY_JAVA.get(command, set())
    if skipped is None:
        java = {key: java[key] for key in ("command", "error")}
    keys = [key for key in java if skipped is None or key not in skipped]
    if command == "monitor":
        # A tree that is only configured has other namespaces in Java.
        keys = [key for key in keys if "_zookeeper_write_per_namespace" not in key and not LEARNER.search(key)]

        def has(of):
            return any(LEARNER.search(key) for key in of)

        expect_equal(has(ours), has(java), "whether monitor shows the learners")
    own = list(ours)
    if command in MAY_HAVE_MORE and where == command:
        own = [key for key in own if key in keys]
    if name in UNORDERED or command in MAY_HAVE_MORE:
        keys, own = sorted(keys), sorted(own)
    lacking, more = [key for key in keys if key not in own], [key for key in own if key not in keys]
    expect(not lacking and not more, "%s: without Java's %s, and with %s" % (where, lacking, more))
    expect(own == keys, "%s: the members are in another order" % where)
    for key in keys:
        compare("%s.%s" % (where, key), java[key], ours[key], command)


def load(port):
    """Two sessions with data, ephemerals and watches."""
    one, two = Session(port, TIMEOUT_MS), Session(port, TIMEOUT_MS)
    one.create("/app", b"x" * 100)
    one.create("/app/e", b"", EPHEMERAL)
    one.create("/app/s-", b"", EPHEMERAL_SEQUENTIAL)
    for at in range(300):
        two.set("/app", b"%d" % at)
    watch(two, "/app")
    watch(one, "/app/e")
    return one, two


def watch(session, path):
    """Leaves a watch for the data."""
    session.call(GET_DATA, ustring(path) + b"\x01", "watch " + path)


def ask_both(java, ours, path, **more):
    return ask(java, path, **more), ask(ours, path, **more)


def compare_all(java, ours):
    """Every command at both ports. Returns how many."""
    for command in COMMANDS:
        theirs, mine = ask_both(java, ours, "/commands/" + command)
        what = "/commands/" + command
        expect_equal(mine.status, theirs.status, what + ": the status")
        expect_equal(mine.headers["content-type"], theirs.headers["content-type"], what + ": the content's type")
        compare(theirs.json().get("command"), theirs.json(), mine.json(), theirs.json().get("command"))
        # One member on each line, as scripts with grep want it.
        shape = [re.sub(r"(?<= : ).*", "", line) for line in mine.body.decode().split("\n")]
        expect(shape[0] == "{" and shape[-1] == "}", "%s: the first and the last line: %s" % (what, shape))
    return len(COMMANDS)


def other_requests(java, ours):
    for path in ("/commands", "/commands/", "/nothing", "/commands/nothing/more"):
        theirs, mine = ask_both(java, ours, path)
        expect_equal(mine.status, theirs.status, path)
    links = ask(ours, "/commands").body.decode()
    for line in ask(java, "/commands").body.decode().splitlines():
        expect(line in links.splitlines(), "/commands has no line %s" % line)
    for method, status in (("HEAD", 200), ("PUT", 405), ("DELETE", 405), ("TRACE", 403)):
        theirs, mine = ask_both(java, ours, "/commands/ruok", method=method)
        expect_equal((mine.status, theirs.status), (status, status), method + " /commands/ruok")
    expect_equal(ask(ours, "/commands/ruok", method="HEAD").body, b"", "the body of HEAD")
    expect_equal(ask(ours, "/commands/ruok", method="POST").status, 405, "POST /commands/ruok")


def secrets(port):
    text = ask(port, "/commands/initial_configuration").body.decode()
    expect("do not show" not in text and "secret.password=****" in text, "initial_configuration shows a secret")


def of_new_versions(server):
    """snapshot, restore and shed_connections, and that they need an identity."""
    port = server.admin
    for path, method in (("snapshot", "GET"), ("restore", "POST"), ("shed_connections", "POST")):
        url = "/commands/" + path
        expect_equal(ask(port, url, method).status, 401, path + " without an identity")
        for header in ("ip", "digest a:b", "digest super:wrong"):
            answer = ask(port, url, method, {"Authorization": header})
            expect_equal(answer.status, 403, "%s with Authorization: %s" % (path, header))
        for header in ("Basic x", "digest a b", "nothing"):
            answer = ask(port, url, method, {"Authorization": header})
            expect_equal(answer.status, 401, "%s with Authorization: %s" % (path, header))
    super_user = {"Authorization": "digest super:secret"}
    sent = ask(port, "/commands/snapshot", headers=super_user)
    expect_equal((sent.status, sent.headers["content-type"]), (200, "application/octet-stream"), "snapshot")
    expect_equal(sent.body[:4], b"ZKSN", "the first bytes of the snapshot")
    expect_equal(int(sent.headers["snapshot_size"]), len(sent.body), "snapshot_size")
    expect(sent.headers["last_zxid"].startswith("0x"), "last_zxid")
    expect_equal(ask(port, "/commands/snapshot", headers=super_user).status, 429, "a second snapshot at once")
    for body in (b"{}", b"nonsense", b'{"percentage": 101}'):
        answer = ask(port, "/commands/shed_connections", "POST", super_user, body)
        expect_equal(answer.status, 400, "shed_connections %r" % body)
    answer = ask(port, "/commands/shed_connections", "POST", super_user, b'{"percentage": 100}')
    expect(answer.status == 200 and answer.json()["connections_shed"] >= 2, "shed_connections: %r" % answer.body)
    refused_restore(server, sent, super_user)
    time.sleep(2 * RATE_MS / 1000)
    restored(server, sent, super_user)


def refused_restore(server, sent, super_user):
    """Nothing changes if the snapshot is not whole."""
    late = Session(server.port, TIMEOUT_MS)
    late.create("/undone", b"")
    answer = ask(server.admin, "/commands/restore", "POST", super_user, sent.body[:-9])
    expect_equal(answer.status, 500, "restore of a snapshot that ends early")
    expect(late.exists("/undone"), "a snapshot that ends early was restored")
    late.drop()


def restored(server, sent, super_user):
    """The data become those of the snapshot, also after a restart."""
    answer = ask(server.admin, "/commands/restore", "POST", super_user, sent.body)
    expect_equal(answer.status, 200, "restore: %r" % answer.body)
    expect_equal(answer.json()["last_zxid"], int(sent.headers["last_zxid"], 16), "last_zxid of restore")
    session = Session(server.port, TIMEOUT_MS)
    expect(session.exists("/app") and not session.exists("/undone"), "the data are not those of the snapshot")
    session.create("/after", b"")
    session.drop()
    server.kill()
    with server.start():
        session = Session(server.port, TIMEOUT_MS)
        expect(session.exists("/after") and not session.exists("/undone"), "a restart has lost the restoration")
        session.drop()


def pages(port, count):
    """`limit` and `after` give all connections once."""
    seen, after = [], ""
    while after is not None:
        part = ask(port, "/commands/connections?limit=3" + (after and "&after=" + after)).json()
        seen += [one["remote_socket_address"] for one in part["connections"]]
        after = part["next"]
    expect(len(seen) == len(set(seen)) >= count, "the parts of /commands/connections: %s" % seen)


def standalone(args, folder):
    java, ours = (
        Admin(cmd, os.path.join(folder, name), port)
        for cmd, name, port in (("java3.8", "java", args.port), (args.server, "ostler", args.port + 10))
    )
    # The digest of super:secret.
    ours.settings["DigestAuthenticationProvider.superDigest"] = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="
    with java.start(), ours.start():
        sessions = [load(server.port) for server in (java, ours)]
        count = compare_all(java.admin, ours.admin)
        other_requests(java.admin, ours.admin)
        secrets(ours.admin)
        more = [Session(ours.port) for _ in range(8)]
        pages(ours.admin, 10)
        health = ask(ours.admin, "/readyz?quorum&voter")
        expect_equal((health.status, health.json()["ready"]), (200, True), "/readyz")
        expect_equal(ask(ours.admin, "/livez").status, 200, "/livez")
        of_new_versions(ours)
        for session in [*more, *(one for pair in sessions for one in pair)]:
            session.drop()
    return count


def admin_of(member):
    """The port of a member's admin server."""
    return member.settings["admin.serverPort"]


def ensemble(args, folder):
    """Leader and follower of three servers of each make."""
    clusters = []
    for make, name, port in (("java3.8", "java3", args.port + 20), (args.server, "ostler3", args.port + 40)):
        cluster = Cluster([make] * 3, os.path.join(folder, name), port)
        for number, member in cluster.members.items():
            member.settings.update(settings(port + 15 + number))
        clusters.append(cluster)
    java, ours = clusters
    with java, ours:
        roles, kept = {}, []
        for cluster in clusters:
            cluster.start()
            leader = cluster.wait_quorum()
            follower = next(member for member in cluster.members.values() if member is not leader)
            roles[id(cluster)] = (leader, follower)
            kept += [*load(leader.port), load_watch(follower.port)]
        for theirs, mine in zip(roles[id(java)], roles[id(ours)]):
            compare_all(admin_of(theirs), admin_of(mine))
            expect_equal(ask(admin_of(mine), "/readyz?quorum&voter").status, 200, "/readyz of a voter")
        for member in ours.members.values():
            if member is not roles[id(ours)][1]:
                member.kill()
        lonely = roles[id(ours)][1]
        # Between the two ends it may elect the other server, and wait for its history.
        wait_for_health(admin_of(lonely), lambda health: "looks for a leader" in health.json().get("reason", ""))
        expect_equal(ask(admin_of(lonely), "/readyz").status, 503, "/readyz without a leader")
        expect_equal(ask(admin_of(lonely), "/livez").status, 200, "/livez without a leader")
        body = ask(admin_of(lonely), "/commands/stats")
        expect_equal(body.status, 200, "stats without a leader")
        expect("not currently serving" in body.json()["error"], "stats without a leader: %r" % body.body)
        expect_equal(ask(admin_of(lonely), "/commands/monitor").status, 200, "monitor without a leader")


def load_watch(port):
    session = Session(port, TIMEOUT_MS)
    session.create("/other", b"")
    session.create("/other/e", b"", EPHEMERAL)
    watch(session, "/other")
    return session


def wait_for_health(port, is_met):
    until = time.monotonic() + 30
    while not is_met(health := ask(port, "/readyz")):
        expect(time.monotonic() < until, "/readyz: %r" % health.body)
        time.sleep(0.05)


def main():
    args = arguments(__doc__).parse_args()
    need("zk38")
    need("zk38_admin")
    os.environ["ADMIN"] = "true"
    folder = work_folder("admin")
    count = standalone(args, folder)
    ensemble(args, folder)
    return (
        "%d requests of commands beside Java 3.8: standalone, leader and follower; identities, pages and health" % count
    )


if __name__ == "__main__":
    conclude(main)
