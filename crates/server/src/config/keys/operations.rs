use super::super::values::Kind::{Boolean, Decimal, LooseBoolean, OneOf, Path, Text};
use super::super::values::{ANY_INT, ANY_LONG, PORT, int_from};
use super::Fate::{Absent, Obeyed, Replaced};
use super::{Key, Section, bare_property, file, property};

const NO_JVM: &str = "There is no Java machine that could pause";
const NO_PATH_STATS: &str = "Statistics per path are not part of this build";
const METRICS_POOL: &str = "Belongs to Java's provider of metrics; nothing has to be set here";

pub(super) const SECTION: Section = Section { title: "Operation", keys: KEYS };

const KEYS: &[Key] = &[
    property(
        "4lw.commands.whitelist",
        Text,
        "",
        Obeyed("A comma list of four-letter words that may run, or *; srvr always may"),
    ),
    bare_property(
        "readonlymode.enabled",
        LooseBoolean,
        "false",
        Obeyed(
            "A server of an ensemble that has looked for a leader for a tick, and at least 2 s, serves clients that ask \
             for read-only sessions (they are local ones, so localSessionsEnabled should be true); the word isro may run",
        ),
    ),
    file(
        "reconfigEnabled",
        Boolean,
        "false",
        Obeyed("Reconfiguration requests are processed; by default they are refused"),
    ),
    property(
        "admin.enableServer",
        LooseBoolean,
        "true",
        Obeyed("The admin server answers HTTP; anything but false is true. See operations.md"),
    ),
    property(
        "admin.serverAddress",
        Text,
        "127.0.0.1",
        Obeyed(
            "The address of the admin server. By default only this machine reaches it (Java: all addresses). At another \
             address it needs admin.forceHttps, or callers with an identity; health is shown to all",
        ),
    ),
    property(
        "admin.serverPort",
        PORT,
        "8080",
        Obeyed(
            "The port of the admin server. If it is in use, a server whose configuration has this key or \
             admin.serverAddress does not start; without them it starts without its admin server",
        ),
    ),
    property("admin.commandURL", Text, "/commands", Obeyed("The path above the commands")),
    property(
        "admin.idleTimeout",
        ANY_INT,
        "30000",
        Obeyed("A connection of the admin server without a request is closed after this number of ms"),
    ),
    property("admin.httpVersion", ANY_INT, "11", Replaced("The admin server speaks HTTP/1.1")),
    property(
        "admin.forceHttps",
        LooseBoolean,
        "false",
        Obeyed("The admin server takes TLS only, with the files of ssl.quorum.*"),
    ),
    property(
        "admin.portUnification",
        LooseBoolean,
        "false",
        Obeyed("The admin server takes TLS and plain HTTP; the first byte decides"),
    ),
    property(
        "admin.needClientAuth",
        LooseBoolean,
        "false",
        Obeyed("TLS at the admin server needs a certificate that ssl.quorum.trustStore.* trusts"),
    ),
    property(
        "admin.rateLimiterIntervalInMS",
        ANY_LONG,
        "300000",
        Obeyed(
            "The least time in ms between two commands snapshot, and between two commands restore (Java 3.9 counts \
             that of snapshot in microseconds)",
        ),
    ),
    property("admin.snapshot.enabled", LooseBoolean, "true", Obeyed("The command snapshot may run")),
    property("admin.restore.enabled", LooseBoolean, "true", Obeyed("The command restore may run")),
    property(
        "admin.openToAll",
        LooseBoolean,
        "false",
        Obeyed(
            "Ostler's own: at an address that other machines reach, everybody may read without TLS and without an identity, \
             as in Java. Session ids are shown, and who knows one can take the session (see sessionPasswords)",
        ),
    ),
    property(
        "admin.readOnly",
        LooseBoolean,
        "true",
        Obeyed(
            "Ostler's own: the console shows and changes nothing. With false, whoever reaches the console may change what the \
             ACLs of the znodes allow them, as with the shell: without a login that is what everybody (world:anyone) and their \
             address may. Operators may end sessions, take snapshots and the like",
        ),
    ),
    property(
        "admin.viewers",
        Text,
        "",
        Obeyed(
            "Ostler's own: identities as scheme:id, parted by semicolons, that alone may see the console's pages about the \
             server, beside operators. By default everybody may whom the admin server shows its commands to",
        ),
    ),
    property(
        "admin.operators",
        Text,
        "",
        Obeyed(
            "Ostler's own: identities as scheme:id, parted by semicolons, that may act on the server in the console, beside \
             super users. By default these are the identities with all permissions in the ACL of the root",
        ),
    ),
    property(
        "admin.hostNames",
        Text,
        "",
        Obeyed(
            "Ostler's own: names by which browsers reach the console, parted by semicolons, such as that of a Kubernetes \
             Service, an Ingress or a proxy: zk.example.com. Without a line it answers by addresses, localhost, the name of \
             the machine, and the hosts of the server.N lines; so the page of another site cannot read it by a name of its own",
        ),
    ),
    property(
        "admin.peers",
        Text,
        "",
        Obeyed(
            "Ostler's own: the admin servers of the other members, as ID=HOST:PORT, parted by semicolons, with https:// before \
             a host with TLS. By default each is at this server's own admin port, at the host of its server.N line. The \
             pages about the ensemble ask them",
        ),
    ),
    file(
        "metricsProvider.className",
        Text,
        "",
        Obeyed(
            "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider: /metrics for Prometheus has a port of its \
             own; with the other two classes of ZooKeeper there is none. Any other class is refused",
        ),
    ),
    file("metricsProvider.httpHost", Text, "0.0.0.0", Obeyed("The address of the port for metrics")),
    file("metricsProvider.httpPort", PORT, "7000", Obeyed("The port for metrics")),
    file(
        "metricsProvider.exportJvmInfo",
        LooseBoolean,
        "true",
        Obeyed("The figures of the process are shown, under the names of the JVM's, too"),
    ),
    file("metricsProvider.*", Text, "", Replaced(METRICS_POOL)),
    property(
        "otlp.endpoint",
        Text,
        "",
        Obeyed(
            "Ostler's own: the URL of an OpenTelemetry collector, such as http://127.0.0.1:4318, that gets traces of sampled \
             requests by OTLP over HTTP. Without it nothing is traced",
        ),
    ),
    property(
        "otlp.sampledOneIn",
        int_from(1),
        "1000",
        Obeyed(
            "Ostler's own: one request in this number is traced, the same ones at all servers with the same number",
        ),
    ),
    property(
        "audit.enable",
        LooseBoolean,
        "false",
        Obeyed(
            "Writes of clients, ephemeral znodes that end with their sessions, and start and stop of the server are \
             written into the audit log, in the lines of ZooKeeper's Slf4jAuditLogger; logback.xml is not read. See \
             operations.md",
        ),
    ),
    property(
        "audit.impl.class",
        Text,
        "",
        Obeyed(
            "org.apache.zookeeper.audit.Slf4jAuditLogger; with audit.enable any other class is refused, because Java \
             classes cannot be loaded here",
        ),
    ),
    property(
        "audit.log.target",
        OneOf(&["file", "journald"]),
        "file",
        Obeyed(
            "Ostler's own: journald writes the lines of the audit log to standard error, each with its priority, and \
             needs a service of systemd",
        ),
    ),
    property(
        "audit.log.file",
        Path,
        "",
        Obeyed(
            "Ostler's own: the file of the audit log; zookeeper_audit.log in dataDir without it. files.mode is its mode",
        ),
    ),
    property(
        "audit.log.maxFileSize",
        int_from(1),
        "10",
        Obeyed("Ostler's own: MiB of the audit file after which another one is begun"),
    ),
    property(
        "audit.log.maxFiles",
        int_from(1),
        "10",
        Obeyed("Ostler's own: older audit files that are kept, with the ends .1 (the newest), .2 and so on"),
    ),
    property(
        "audit.log.authFailures",
        LooseBoolean,
        "true",
        Obeyed("Ostler's own: failed authentications are in the audit log, too, as operation authFailed"),
    ),
    property(
        "slowRequestThresholdMs",
        ANY_LONG,
        "1000",
        Obeyed(
            "Ostler's own: requests that take this time or more, in ms, are logged with the times of their stages, and \
             kept for the command slow_requests. 0 for all requests, -1 for none",
        ),
    ),
    file("jvm.pause.monitor", Boolean, "false", Replaced(NO_JVM)),
    file("jvm.pause.info-threshold.ms", ANY_LONG, "1000", Replaced(NO_JVM)),
    file("jvm.pause.warn-threshold.ms", ANY_LONG, "10000", Replaced(NO_JVM)),
    file("jvm.pause.sleep.time.ms", ANY_LONG, "500", Replaced(NO_JVM)),
    property("jmx.log4j.disable", LooseBoolean, "false", Replaced("There is no JMX; see the word mntr")),
    property("jmx.log4j.mbean", Text, "", Replaced("There is no JMX; see the word mntr")),
    property("messageTracker.Enabled", LooseBoolean, "false", Replaced(super::BETWEEN_SERVERS)),
    property("messageTracker.BufferSize", ANY_INT, "10", Replaced(super::BETWEEN_SERVERS)),
    property("pathStats.enabled", LooseBoolean, "false", Absent(NO_PATH_STATS)),
    property("pathStats.slotCapacity", ANY_INT, "60", Replaced(NO_PATH_STATS)),
    property("pathStats.slotDuration", ANY_INT, "15", Replaced(NO_PATH_STATS)),
    property("pathStats.maxDepth", ANY_INT, "6", Replaced(NO_PATH_STATS)),
    property("pathStats.sampleRate", Decimal, "0.1", Replaced(NO_PATH_STATS)),
    property("pathStats.initialDelay", ANY_LONG, "5", Replaced(NO_PATH_STATS)),
    property("pathStats.delay", ANY_LONG, "5", Replaced(NO_PATH_STATS)),
    property("pathStats.topPathMax", ANY_INT, "20", Replaced(NO_PATH_STATS)),
];
