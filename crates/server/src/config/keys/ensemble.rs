use super::super::values::Kind::{Boolean, Decimal, Int, LooseBoolean, OneOf, Path, Text, YesNo};
use super::super::values::{ANY_INT, ANY_LONG, Kind, PORT};
use super::Fate::{Absent, Obeyed, Replaced};
use super::{BETWEEN_SERVERS, Key, Section, bare_property, either_property, file, property};

pub(super) const SECTION: Section = Section { title: "Ensemble", keys: KEYS };

const KEYS: &[Key] = &[
    file(
        "server.N",
        Text,
        "",
        Obeyed(
            "A server of the ensemble; dataDir/myid has the id of this server. A single line makes a standalone server, \
             and the client port behind its ; is obeyed",
        ),
    ),
    file(
        "group.N",
        Text,
        "",
        Obeyed("The voters of group N, joined by colons: more than half of the groups decide"),
    ),
    file("weight.N", Text, "", Obeyed("The weight of server N's vote in its group")),
    file(
        "standaloneEnabled",
        Boolean,
        "true",
        Obeyed("false makes an ensemble even of a single server.N line"),
    ),
    file("dynamicConfigFile", Path, "", Obeyed("The file that has the server.N lines in place of this one")),
    file(
        "initLimit",
        ANY_INT,
        "10",
        Obeyed(
            "Ticks that a learner may take to connect and to take over the leader's history, not counting the time in \
             which a whole tree keeps coming",
        ),
    ),
    file(
        "syncLimit",
        ANY_INT,
        "5",
        Obeyed("Ticks of silence after which a leader and a learner give each other up"),
    ),
    file("connectToLearnerMasterLimit", ANY_INT, "0", Replaced(BETWEEN_SERVERS)),
    file("electionAlg", Int { min: 3, max: 3 }, "3", Replaced(BETWEEN_SERVERS)),
    file(
        "peerType",
        OneOf(&["participant", "observer"]),
        "participant",
        Replaced("The role in the server.N line counts"),
    ),
    file(
        "observerMasterPort",
        PORT,
        "0",
        Obeyed(
            "Observers follow followers in place of the leader: at this port of theirs, which is the same for all. Set \
             it for followers and observers",
        ),
    ),
    file(
        "localSessionsEnabled",
        Boolean,
        "false",
        Obeyed(
            "New sessions are known only to the server to which the client is connected. They cost no transaction and \
             cannot move to another server; a standalone server ignores this",
        ),
    ),
    file(
        "localSessionsUpgradingEnabled",
        Boolean,
        "false",
        Obeyed(
            "A local session that asks for an ephemeral is made known to all servers first; without this it gets an \
             error",
        ),
    ),
    file("syncEnabled", Boolean, "true", Replaced(BETWEEN_SERVERS)),
    property("observer.syncEnabled", LooseBoolean, "true", Replaced(BETWEEN_SERVERS)),
    file("quorum.cnxn.threads.size", ANY_INT, "20", Replaced(BETWEEN_SERVERS)),
    property(
        "multiAddress.enabled",
        LooseBoolean,
        "false",
        Replaced("Several addresses of a server are always read, and all tried at once"),
    ),
    property("multiAddress.reachabilityCheckTimeoutMs", ANY_INT, "1000", Replaced(BETWEEN_SERVERS)),
    property("multiAddress.reachabilityCheckEnabled", LooseBoolean, "true", Replaced(BETWEEN_SERVERS)),
    file(
        "oraclePath",
        Path,
        "",
        Absent("An oracle that decides between two servers is not part of this build"),
    ),
    property("leaderServes", YesNo { otherwise: true }, "yes", Replaced("A leader always serves clients")),
    property(
        "forceSnapshotSync",
        LooseBoolean,
        "false",
        Absent("Sending the whole tree to every learner is not part of this build"),
    ),
    property(
        "commitLogCount",
        ANY_INT,
        "500",
        Obeyed(
            "Committed transactions kept in memory for learners that missed them; at least 200,000, within 64 MiB",
        ),
    ),
    property(
        "epochLength",
        Kind::Int { min: 0, max: 4_286_967_295 },
        "4286967295",
        Obeyed(
            "Ostler's own: after this number of transactions, at least 1,000, a leader begins the next epoch without an \
             election, if all its learners can. If they cannot, an election follows after twice this number, at the \
             latest at the counter's end. 0: always an election. The default is right; less is for tests",
        ),
    ),
    property(
        "snapshotSizeFactor",
        Decimal,
        "0.33",
        Obeyed(
            "A learner gets transactions from the log on disk if they are less than this part of a snapshot",
        ),
    ),
    property("enableEagerACLCheck", LooseBoolean, "false", Replaced(BETWEEN_SERVERS)),
    property("leader.maxConcurrentSnapSyncs", ANY_INT, "10", Replaced(BETWEEN_SERVERS))
        .also(&["maxConcurrentSnapSyncs"]),
    property("leader.maxConcurrentDiffSyncs", ANY_INT, "100", Replaced(BETWEEN_SERVERS))
        .also(&["maxConcurrentDiffSyncs"]),
    property("leader.maxTimeToWaitForEpoch", ANY_INT, "-1", Replaced(BETWEEN_SERVERS))
        .also(&["maxTimeToWaitForEpoch"]),
    property("leader.ackLoggingFrequency", ANY_INT, "1000", Replaced(BETWEEN_SERVERS)),
    either_property("leader.closeSocketAsync", LooseBoolean, "false", Replaced(BETWEEN_SERVERS)),
    either_property("learner.closeSocketAsync", LooseBoolean, "false", Replaced(BETWEEN_SERVERS)),
    either_property("learner.asyncSending", LooseBoolean, "false", Replaced(BETWEEN_SERVERS)),
    bare_property("leader.nodelay", LooseBoolean, "true", Replaced(BETWEEN_SERVERS)),
    bare_property("follower.nodelay", LooseBoolean, "true", Replaced(BETWEEN_SERVERS)),
    property("leaderConnectDelayDuringRetryMs", ANY_INT, "100", Replaced(BETWEEN_SERVERS)),
    property(
        "observer.reconnectDelayMs",
        ANY_LONG,
        "0",
        Obeyed(
            "Milliseconds; an observer waits a random time of at most this before it connects to the leader, or begins \
             again with the first of the followers",
        ),
    ),
    property(
        "observer.election.DelayMs",
        ANY_LONG,
        "200",
        Obeyed(
            "Milliseconds; an observer waits a random time of at most this before it looks for a leader again",
        ),
    ),
    property(
        "observerMaster.sizeLimit",
        ANY_INT,
        "33554432",
        Replaced("A follower keeps as much for observers as a leader for learners: see commitLogCount"),
    ),
    property("follower.skipLearnerRequestToNextProcessor", LooseBoolean, "false", Replaced(BETWEEN_SERVERS)),
    property(
        "forward_learner_requests_to_commit_processor_disabled",
        LooseBoolean,
        "false",
        Replaced(BETWEEN_SERVERS),
    ),
    property(
        "cnxTimeout",
        ANY_INT,
        "5000",
        Obeyed("Milliseconds that connecting to another server may take"),
    ),
    property("quorumCnxnTimeoutMs", ANY_INT, "-1", Replaced(BETWEEN_SERVERS)),
    property(
        "electionPortBindRetry",
        ANY_INT,
        "3",
        Obeyed(
            "How often a start tries again to listen, a second apart, if its name has no address yet or the port is in \
             use, for clients by name and for other servers. 0: without end, as in Kubernetes, where a name may come after \
             its server",
        ),
    ),
    property("tcpKeepAlive", LooseBoolean, "false", Replaced(BETWEEN_SERVERS)),
    property(
        "fastleader.minNotificationInterval",
        ANY_INT,
        "200",
        Obeyed("Milliseconds until an unanswered vote is sent again; doubles each time"),
    ),
    property(
        "fastleader.maxNotificationInterval",
        ANY_INT,
        "60000",
        Obeyed(
            "Milliseconds between repetitions of a vote at most; a second while a voter cannot be reached",
        ),
    ),
    property(
        "election.refuseOtherEnsembles",
        Boolean,
        "true",
        Obeyed(
            "Ostler's own: votes of servers whose configuration lists none of this ensemble's hosts do not count, and \
             their connections are closed. Set false while all servers get new names at once",
        ),
    ),
    property(
        "election.callMovedServers",
        Boolean,
        "true",
        Obeyed(
            "Ostler's own: a server that greets from another address than that of its line is called there, if it \
             cannot be reached at the address of the line. Set false where servers may reach each other by their \
             lines only",
        ),
    ),
];
