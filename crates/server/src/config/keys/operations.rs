use super::super::values::Kind::{Boolean, Decimal, LooseBoolean, OneOf, Path, Text};
use super::super::values::{ANY_INT, ANY_LONG, PORT, int_from};
use super::Fate::{Absent, Obeyed, Replaced};
use super::{Key, Section, bare_property, file, property};

const NO_ADMIN: &str = "Belongs to the HTTP admin server, which this build does not have";
const NO_JVM: &str = "There is no Java machine that could pause";
const NO_PATH_STATS: &str = "Statistics per path are not part of this build";
const MNTR: &str = "Metrics are read with the word mntr; exporters are not part of this build";

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
        "",
        Absent("The HTTP admin server is not part of this build; use the four-letter words"),
    ),
    property("admin.serverAddress", Text, "0.0.0.0", Replaced(NO_ADMIN)),
    property("admin.serverPort", PORT, "8080", Replaced(NO_ADMIN)),
    property("admin.commandURL", Text, "/commands", Replaced(NO_ADMIN)),
    property("admin.idleTimeout", ANY_INT, "30000", Replaced(NO_ADMIN)),
    property("admin.httpVersion", ANY_INT, "11", Replaced(NO_ADMIN)),
    property("admin.forceHttps", LooseBoolean, "false", Replaced(NO_ADMIN)),
    property("admin.portUnification", LooseBoolean, "false", Replaced(NO_ADMIN)),
    property("admin.needClientAuth", LooseBoolean, "false", Replaced(NO_ADMIN)),
    property("admin.rateLimiterIntervalInMS", ANY_LONG, "300000", Replaced(NO_ADMIN)),
    property("admin.snapshot.enabled", LooseBoolean, "true", Replaced(NO_ADMIN)),
    property("admin.restore.enabled", LooseBoolean, "true", Replaced(NO_ADMIN)),
    file("metricsProvider.className", Text, "", Absent(MNTR)),
    file("metricsProvider.*", Text, "", Replaced(MNTR)),
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
