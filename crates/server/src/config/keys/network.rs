use super::super::values::Kind::{self, Boolean, LooseBoolean, Text};
use super::super::values::{ANY_INT, PORT, int_from};
use super::Fate::{Obeyed, Replaced};
use super::{JAVA_THREADS, Key, Section, bare_property, file, property};

const NO_NETTY: &str = "Belongs to a Java network library; there is one connection layer here";
const HANDSHAKE_TURNS: &str = "TLS handshakes take turns, address by address: half of the processors compute them, and one \
     address has half of those. Callers wait in line, for nio.sessionlessCnxnTimeout at most";

pub(super) const SECTION: Section = Section { title: "Network", keys: KEYS };

const KEYS: &[Key] = &[
    file(
        "clientPort",
        PORT,
        "",
        Obeyed("The port for clients; needed unless server.N names one or there is a secureClientPort"),
    ),
    file(
        "clientPortAddress",
        Text,
        "",
        Obeyed("The host name or address to listen on; all interfaces without it"),
    ),
    file(
        "clientPortListenBacklog",
        ANY_INT,
        "-1",
        Obeyed("Connections that wait to be accepted; the system's own number below 1"),
    ),
    file(
        "secureClientPort",
        PORT,
        "",
        Obeyed("The port for clients that talk by TLS; it needs ssl.keyStore.location"),
    ),
    file(
        "secureClientPortAddress",
        Text,
        "",
        Obeyed("The host name or address of secureClientPort; all interfaces without it"),
    ),
    property("maxCnxns", ANY_INT, "0", Obeyed("Connections in all; no limit below 1")),
    file(
        "maxClientCnxns",
        ANY_INT,
        "60",
        Obeyed("Connections from one IP address, or one IPv6 network; no limit below 1"),
    ),
    property(
        "maxClientCnxns.ipv6Prefix",
        Kind::Int { min: 0, max: 128 },
        "64",
        Obeyed(
            "Ostler's own: IPv6 addresses whose first bits are equal, as far as this number says, count as one for \
             maxClientCnxns. 128: each address by itself, as in ZooKeeper",
        ),
    ),
    property("clientTcpKeepAlive", LooseBoolean, "false", Obeyed("TCP keep-alive on client connections")),
    property(
        "nio.sessionlessCnxnTimeout",
        int_from(1),
        "10000",
        Obeyed("Milliseconds after which a connection without a session is closed"),
    ),
    bare_property(
        "jute.maxbuffer",
        int_from(1),
        "1048575",
        Obeyed("Bytes of the largest packet and of the largest field in one, up to 256 MiB"),
    ),
    property(
        "jute.maxbuffer.extrasize",
        ANY_INT,
        "",
        Replaced("Fields in logs and snapshots may be as long as their checksum confirms, up to 256 MiB"),
    ),
    property("serverCnxnFactory", Text, "", Replaced(NO_NETTY)),
    property("netty.advancedFlowControl.enabled", LooseBoolean, "false", Replaced(NO_NETTY))
        .also(&["advancedFlowControlEnabled"]),
    property("netty.server.outstandingHandshake.limit", ANY_INT, "-1", Replaced(HANDSHAKE_TURNS))
        .also(&["outstandingHandshake.limit"]),
    property("netty.server.earlyDropSecureConnectionHandshakes", LooseBoolean, "false", Replaced(NO_NETTY)),
    property("nio.numSelectorThreads", ANY_INT, "", Replaced(JAVA_THREADS)),
    property("nio.numWorkerThreads", ANY_INT, "", Replaced(JAVA_THREADS)),
    property(
        "nio.directBufferBytes",
        ANY_INT,
        "65536",
        Replaced("Replies are written without a copy buffer"),
    ),
    property("nio.shutdownTimeout", ANY_INT, "5000", Replaced(JAVA_THREADS)),
    property("intBufferStartingSizeBytes", ANY_INT, "1024", Replaced("Buffers grow as replies need them")),
    file(
        "quorumListenOnAllIPs",
        Boolean,
        "false",
        Obeyed("The ports for the other servers are opened on all addresses of the machine"),
    ),
];
