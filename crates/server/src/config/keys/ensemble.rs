use super::super::values::Kind::{Boolean, Decimal, Int, LooseBoolean, OneOf, Path, Text, YesNo};
use super::super::values::{ANY_INT, ANY_LONG, PORT};
use super::Fate::{Obeyed, Replaced};
use super::{Key, ONE_NODE, Section, bare_property, either_property, file, property};

pub(super) const SECTION: Section = Section { title: "Ensemble", keys: KEYS };

const KEYS: &[Key] = &[
    file(
        "server.N",
        Text,
        "",
        Obeyed(
            "One line is a single node, and the client port behind its ; is obeyed; more lines are an error, as \
             ensembles are not part of this build yet",
        ),
    ),
    file("group.N", Text, "", Replaced(ONE_NODE)),
    file("weight.N", Text, "", Replaced(ONE_NODE)),
    file(
        "standaloneEnabled",
        Boolean,
        "true",
        Obeyed(
            "false asks for an ensemble, of one server if need be; that is an error, as ensembles are not part of \
             this build yet",
        ),
    ),
    file("dynamicConfigFile", Path, "", Obeyed("The file that has the server.N lines in place of this one")),
    file("initLimit", ANY_INT, "", Replaced(ONE_NODE)),
    file("syncLimit", ANY_INT, "", Replaced(ONE_NODE)),
    file("connectToLearnerMasterLimit", ANY_INT, "0", Replaced(ONE_NODE)),
    file("electionAlg", Int { min: 3, max: 3 }, "3", Replaced(ONE_NODE)),
    file("peerType", OneOf(&["participant", "observer"]), "participant", Replaced(ONE_NODE)),
    file("observerMasterPort", PORT, "0", Replaced(ONE_NODE)),
    file(
        "localSessionsEnabled",
        Boolean,
        "false",
        Replaced("A single node keeps every session for itself anyway"),
    ),
    file(
        "localSessionsUpgradingEnabled",
        Boolean,
        "false",
        Replaced("A single node keeps every session for itself anyway"),
    ),
    file("syncEnabled", Boolean, "true", Replaced(ONE_NODE)),
    property("observer.syncEnabled", LooseBoolean, "true", Replaced(ONE_NODE)),
    file("quorum.cnxn.threads.size", ANY_INT, "20", Replaced(ONE_NODE)),
    property("multiAddress.enabled", LooseBoolean, "false", Replaced(ONE_NODE)),
    property("multiAddress.reachabilityCheckTimeoutMs", ANY_INT, "1000", Replaced(ONE_NODE)),
    property("multiAddress.reachabilityCheckEnabled", LooseBoolean, "true", Replaced(ONE_NODE)),
    file("oraclePath", Path, "", Replaced(ONE_NODE)),
    property("leaderServes", YesNo { otherwise: true }, "yes", Replaced(ONE_NODE)),
    property("forceSnapshotSync", LooseBoolean, "false", Replaced(ONE_NODE)),
    property("commitLogCount", ANY_INT, "500", Replaced(ONE_NODE)),
    property("snapshotSizeFactor", Decimal, "0.33", Replaced(ONE_NODE)),
    property("enableEagerACLCheck", LooseBoolean, "false", Replaced(ONE_NODE)),
    property("leader.maxConcurrentSnapSyncs", ANY_INT, "10", Replaced(ONE_NODE))
        .also(&["maxConcurrentSnapSyncs"]),
    property("leader.maxConcurrentDiffSyncs", ANY_INT, "100", Replaced(ONE_NODE))
        .also(&["maxConcurrentDiffSyncs"]),
    property("leader.maxTimeToWaitForEpoch", ANY_INT, "-1", Replaced(ONE_NODE))
        .also(&["maxTimeToWaitForEpoch"]),
    property("leader.ackLoggingFrequency", ANY_INT, "1000", Replaced(ONE_NODE)),
    either_property("leader.closeSocketAsync", LooseBoolean, "false", Replaced(ONE_NODE)),
    either_property("learner.closeSocketAsync", LooseBoolean, "false", Replaced(ONE_NODE)),
    either_property("learner.asyncSending", LooseBoolean, "false", Replaced(ONE_NODE)),
    bare_property("leader.nodelay", LooseBoolean, "true", Replaced(ONE_NODE)),
    bare_property("follower.nodelay", LooseBoolean, "true", Replaced(ONE_NODE)),
    property("leaderConnectDelayDuringRetryMs", ANY_INT, "100", Replaced(ONE_NODE)),
    property("observer.reconnectDelayMs", ANY_LONG, "0", Replaced(ONE_NODE)),
    property("observer.election.DelayMs", ANY_LONG, "200", Replaced(ONE_NODE)),
    property("observerMaster.sizeLimit", ANY_INT, "33554432", Replaced(ONE_NODE)),
    property("follower.skipLearnerRequestToNextProcessor", LooseBoolean, "false", Replaced(ONE_NODE)),
    property(
        "forward_learner_requests_to_commit_processor_disabled",
        LooseBoolean,
        "false",
        Replaced(ONE_NODE),
    ),
    property("cnxTimeout", ANY_INT, "5000", Replaced(ONE_NODE)),
    property("quorumCnxnTimeoutMs", ANY_INT, "-1", Replaced(ONE_NODE)),
    property("electionPortBindRetry", ANY_INT, "3", Replaced(ONE_NODE)),
    property("tcpKeepAlive", LooseBoolean, "false", Replaced(ONE_NODE)),
    property("fastleader.minNotificationInterval", ANY_INT, "200", Replaced(ONE_NODE)),
    property("fastleader.maxNotificationInterval", ANY_INT, "60000", Replaced(ONE_NODE)),
];
