"""The audit log: the same operations at a Java server and at Ostler leave the same lines, field by field.

    python3 interop/run.py audit.lines [--server CMD] [--port N]

Only the time, the order of a client's user names, and the lines that Ostler alone writes (authFailed) may differ."""

import os
import time

from harness.jute import int64, ustring
from harness.outcome import conclude, expect, expect_equal
from harness.peers import need
from harness.protocol import (
    AUTH,
    AUTH_XID,
    CHECK,
    CONTAINER,
    CREATE,
    CREATE2,
    CREATE_TTL,
    DELETE,
    EPHEMERAL,
    EPHEMERAL_SEQUENTIAL,
    MULTI,
    OPEN,
    PERSISTENT,
    RECONFIG,
    SEQUENTIAL,
    SEQUENTIAL_TTL,
    SET_DATA,
    TTL,
    auth,
    create_body,
    multi_body,
    path_version,
    request,
    set_body,
)
from harness.server import Server, arguments, work_folder
from harness.session import ConnectionLost, Refused, Session

PATIENCE_S = 10
FILE = "zookeeper_audit.log"
LOGGER = "audit.Slf4jAuditLogger: "
# Without its own shutdown hook: that one runs beside Java's, and could close the log before the line `serverStop`.
LOG4J = """<Configuration status="WARN" shutdownHook="disable">
  <Appenders>
    <Console name="c" target="SYSTEM_ERR"><PatternLayout pattern="%%d %%p %%c{1} %%m%%n"/></Console>
    <File name="audit" fileName="%s"><PatternLayout pattern="%%d{ISO8601} %%p %%c{2}: %%m%%n"/></File>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.zookeeper.audit.Slf4jAuditLogger" level="INFO" additivity="false">
      <AppenderRef ref="audit"/>
    </Logger>
    <Root level="WARN"><AppenderRef ref="c"/></Root>
  </Loggers>
</Configuration>
"""


class Audited(Server):
    """A server with an audit log."""

    def __init__(self, cmd, folder, port):
        super().__init__(cmd, folder, port, {"audit.enable": "true"})
        self.audit = os.path.join(self.data, FILE)
        if cmd.startswith("java"):
            # The launcher has a log4j2.xml of its own; a later flag wins.
            log4j = os.path.join(folder, "log4j2.xml")
            with open(log4j, "w") as f:
                f.write(LOG4J % self.audit)
            jars = need("zk39")
            self.words = ["java", "-Xmx512m", "-Dzookeeper.admin.enableServer=false"]
            self.words += ["-Dlog4j2.configurationFile=" + log4j, "-Dzookeeper.audit.enable=true"]
            self.words += ["-cp", jars + "/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain"]

    def lines(self):
        with open(self.audit, encoding="utf-8") as f:
            return [fields(line.rstrip("\n")) for line in f]

    def wait_for(self, text):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with open(self.audit, encoding="utf-8") as f:
                if text in f.read():
                    return
            time.sleep(0.05)
        expect(False, "no line with %r in %s" % (text, self.audit))


def fields(line):
    """(level, ((key, value), ...)) of a line, without its time and with the user names in order."""
    head, _, rest = line.partition(LOGGER)
    stamp, level, *more = head.split(" ")
    expect(not more[1:] and len(stamp) == 23 and stamp[10] == "T" and stamp[19] == ",", "the head of %r" % line)
    pairs = [tuple(pair.split("=", 1)) for pair in rest.split("\t")]
    return level, tuple((key, ",".join(sorted(value.split(","))) if key == "user" else value) for key, value in pairs)


def refused(act, *arguments_):
    try:
        act(*arguments_)
    except Refused:
        return
    expect(False, "a request that had to fail was successful")


def play(port):
    """All operations. Returns the ids of the sessions."""
    a = Session(port, timeout_ms=4000)
    a.create("/a")
    a.create("/e", b"", EPHEMERAL)
    a.create("/s-", b"", SEQUENTIAL)
    a.create("/es-", b"", EPHEMERAL_SEQUENTIAL)
    a.create("/c", b"", CONTAINER)
    a.create("/t", b"", TTL, OPEN, 100_000)
    a.create("/st-", b"", SEQUENTIAL_TTL, OPEN, 100_000)
    a.call(CREATE2, create_body("/a/2"))
    a.set("/a", b"1")
    a.add_auth("digest", b"bob:pw")
    a.set_acl("/a", [(31, "world", "anyone"), (1, "ip", "127.0.0.1"), (3, "auth", "")])
    a.delete("/a/2")
    for act in (
        (a.create, "/a"),
        (a.create, "/none/x", b"", EPHEMERAL_SEQUENTIAL),
        (a.set, "/none", b""),
        (a.set, "/a", b"", 77),
        (a.delete, "/none"),
        (a.delete, "/"),
        (a.set_acl, "/none", OPEN),
        (a.create, "/bad-acl", b"", PERSISTENT, [(31, "nonsense", "x")]),
        (a.call, RECONFIG, 3 * ustring("") + int64(-1)),
    ):
        refused(*act)
    a.call(
        MULTI,
        multi_body(
            [
                (CREATE, create_body("/m")),
                (CREATE2, create_body("/m2", b"", EPHEMERAL)),
                (CREATE, create_body("/m-", b"", SEQUENTIAL)),
                (CREATE_TTL, create_body("/mt", b"", TTL, OPEN, 100_000)),
                (CHECK, path_version("/m")),
                (SET_DATA, set_body("/m", b"1")),
                (DELETE, path_version("/m2")),
            ]
        ),
    )
    a.call(MULTI, multi_body([(CREATE, create_body("/n")), (DELETE, path_version("/none"))]))
    a.get("/a")
    a.call(MULTI, multi_body([(CHECK, path_version("/a"))]))
    # One session ends by its client, one by its timeout.
    b = Session(port, timeout_ms=1000)
    b.create("/left", b"", EPHEMERAL)
    b.drop()
    a.close()
    # An authentication that fails.
    c = Session(port, timeout_ms=4000)
    c.socket.sendall(request(AUTH_XID, AUTH, auth("nonsense", b"x")))
    try:
        c.receive()
    except ConnectionLost:
        pass
    return a.id, b.id, c.id


def record(cmd, folder, port):
    os.makedirs(folder, exist_ok=True)
    with Audited(cmd, folder, port) as server:
        ids = play(port)
        server.wait_for("znode=/left\tresult=")
        server.stop()
        names = {"0x%x" % number: "session %d" % at for at, number in enumerate(ids)}
        return [
            (level, tuple((key, names.get(value, value) if key == "session" else value) for key, value in line))
            for level, line in server.lines()
        ]


def check():
    args = arguments(__doc__).parse_args()
    folder = work_folder("audit")
    theirs = record("java3.9", os.path.join(folder, "java"), args.port)
    ours = record(args.server, os.path.join(folder, "ostler"), args.port + 1)
    failed_auth = [line for line in ours if ("operation", "authFailed") in line[1]]
    expect_equal(len(failed_auth), 1, "lines about the authentication that fails")
    ours = [line for line in ours if line not in failed_auth]
    # A server may delete the ephemerals of one session in any order.
    deletion = ("operation", "ephemeralZNodeDeletionOnSessionCloseOrExpire")

    def split(lines):
        deletions = sorted(line for line in lines if deletion in line[1])
        return [line for line in lines if deletion not in line[1]], deletions

    differences = []
    for their_part, our_part in zip(split(theirs), split(ours), strict=True):
        for line in their_part:
            if line not in our_part:
                differences.append("Java alone: %s" % (line,))
        for line in our_part:
            if line not in their_part:
                differences.append("Ostler alone: %s" % (line,))
        if not differences:
            expect_equal(our_part, their_part, "the order of the lines")
    expect(not differences, "\n".join(differences))
    return "%d lines are the same" % len(theirs)


if __name__ == "__main__":
    conclude(check)
