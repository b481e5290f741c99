//! Planted bugs, which show that tests find bugs: the simulator's checks, and the tests of Curator's issues.
//!
//! Each bug is in the code where it could occur, behind `planted::is(Bug::…)`. Without the feature `planted-bugs`, which
//! only builds of `ostler-sim --planted` and of tests have, the condition is `false`, and no bug is compiled.
#![no_std]

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "`Bug::ALL` and `Bug::OF_CURATOR` describe each bug")]
pub enum Bug {
    AckBeforeSync,
    AppendOutOfOrder,
    NewLeaderAckEarly,
    TruncSkipped,
    TruncInMemoryOnly,
    ElectWithoutEpoch,
    StaleEpochAccepted,
    ObserverCounts,
    MinorityCommits,
    EpochBeforeSnapshot,
    EphemeralsLeft,
    WatchAfterReply,
    WatchesLostOnReconnect,
    NewLeaderExpiresEarly,
    CversionOffInSnapshot,
    AclMissingInSnapshot,
    EpochBeforeHistory,
    SnapshotNotKept,
    SnapshotNotSynced,
    DiffNotLogged,
    DiskErrorIgnored,
    UncommittedShown,
    EphemeralsOfTheDead,
    EpochReused,
    EpochNotSaved,
    ReadsOvertakeWrites,
    SyncAtOnce,
    OlderTreeServed,
    TouchesForgotten,
    SequenceRepeats,
    WatchFiresTwice,
    TailDropped,
    FailedMultiHalfDone,
    CommitOutOfTurn,
    MovedSessionWrites,
    ConfigKept,
    JointQuorumSkipped,
    AnswersMixedUp,
    EventsSwapped,
    MissedToldTwice,
    AclsMixedUpInSnapshot,
    PersistentFiresOnce,
    GrandchildrenUnwatched,
    PersistentNotSetAgain,
    ToldForEachMode,
    OtherWatchRemoved,
    ModesReplaced,
    RecursiveSeesLists,
    AclOfBefore,
    AuthIsTheFirst,
    TruncInLogOnly,
    MutexLooksOnce,
    LatchLeadsOn,
    OrphanNotSought,
    SearchWithoutSync,
    HolderAsksNoClock,
    SessionOutlived,
    PingsProve,
    PromisedTwice,
    CutStillCounts,
    RevalidatedUntouched,
    ChangeBeforeForgotten,
    FalseVotesCount,
    AnswersAfterDroppedEvent,
    PasswordSeenLate,
    RefusedLoginStays,
    CertificateForgotten,
    MoveUnpromised,
    MoveNotSaved,
    BorderShownEarly,
    LatchKeepsOldZnode,
    MutexFindsOldZnode,
    LatchFindsOldZnode,
    ReconnectDeletesZnode,
    LeadsByAnEarlierLook,
    ReconnectMakesZnode,
    MissingPredecessorMakesZnode,
    PathMadeOnce,
    SelectorForgetsZnode,
    SelectorHidesError,
    ReleaseGivesUp,
    DowngradeToTheEnd,
    OtherZnodesAreContenders,
    DroppedPlaceStays,
}

impl Bug {
    /// The bugs that the simulator finds, with their names and descriptions.
    pub const ALL: [(Bug, &'static str, &'static str); 70] = [
        (Bug::AckBeforeSync, "ack-before-sync", "a server acknowledges what its disk has not synced"),
        (Bug::AppendOutOfOrder, "append-out-of-order", "records of one batch are written in the wrong order"),
        (
            Bug::NewLeaderAckEarly,
            "new-leader-ack-early",
            "a follower acknowledges NEWLEADER before its history is durable",
        ),
        (Bug::TruncSkipped, "trunc-skipped", "a follower ignores TRUNC and does not cut its log back"),
        (
            Bug::TruncInMemoryOnly,
            "trunc-in-memory-only",
            "TRUNC takes back what is in memory, and leaves the log",
        ),
        (
            Bug::ElectWithoutEpoch,
            "elect-without-epoch",
            "votes are compared by the count in the zxid, whatever its epoch",
        ),
        (
            Bug::StaleEpochAccepted,
            "stale-epoch-accepted",
            "a follower promises an epoch below one that it has promised",
        ),
        (Bug::ObserverCounts, "observer-counts", "the vote of an observer counts for the quorum of an epoch"),
        (Bug::MinorityCommits, "minority-commits", "a proposal commits when one server has it"),
        (
            Bug::EpochBeforeSnapshot,
            "epoch-before-snapshot",
            "the current epoch is saved before the leader's tree is",
        ),
        (Bug::EphemeralsLeft, "ephemerals-left", "a closed session's last ephemeral stays"),
        (
            Bug::WatchAfterReply,
            "watch-after-reply",
            "the writer gets its answer before the watchers get their events",
        ),
        (
            Bug::WatchesLostOnReconnect,
            "watches-lost-on-reconnect",
            "a client gets no events for the changes that it missed between two connections",
        ),
        (
            Bug::NewLeaderExpiresEarly,
            "new-leader-expires-early",
            "a new leader gives sessions half of their timeout",
        ),
        (
            Bug::CversionOffInSnapshot,
            "cversion-off-in-snapshot",
            "a snapshot has the number of existing children as cversion, not the number of all changes of the list",
        ),
        (
            Bug::AclMissingInSnapshot,
            "acl-missing-in-snapshot",
            "a snapshot lacks the ACL that was added last",
        ),
        (
            Bug::EpochBeforeHistory,
            "epoch-before-history",
            "the current epoch is saved before the history that comes with it (ZOOKEEPER-4643, 4646)",
        ),
        (
            Bug::SnapshotNotKept,
            "snapshot-not-kept",
            "a tree that came from the leader is not written to disk (ZOOKEEPER-3642)",
        ),
        (
            Bug::SnapshotNotSynced,
            "snapshot-not-synced",
            "a snapshot gets its name before its bytes are durable (ZOOKEEPER-2872)",
        ),
        (
            Bug::DiffNotLogged,
            "diff-not-logged",
            "what comes with the history is acknowledged and not logged (ZOOKEEPER-4785, 4925)",
        ),
        (
            Bug::DiskErrorIgnored,
            "disk-error-ignored",
            "a write to the log fails, and the server goes on (ZOOKEEPER-3701, 4882)",
        ),
        (
            Bug::UncommittedShown,
            "uncommitted-shown",
            "a follower applies what came with the history before it commits (ZOOKEEPER-3911)",
        ),
        (
            Bug::EphemeralsOfTheDead,
            "ephemerals-of-the-dead",
            "a session that is over still gets an ephemeral (ZOOKEEPER-2355)",
        ),
        (
            Bug::EpochReused,
            "epoch-reused",
            "a new leader takes the highest epoch that it knows of, not the next one",
        ),
        (Bug::EpochNotSaved, "epoch-not-saved", "a leader proposes its epoch before that is durable"),
        (
            Bug::ReadsOvertakeWrites,
            "reads-overtake-writes",
            "a read does not wait for the session's own write",
        ),
        (Bug::SyncAtOnce, "sync-at-once", "a follower answers a sync without asking its leader"),
        (Bug::OlderTreeServed, "older-tree-served", "a server serves a client that has seen a later tree"),
        (
            Bug::TouchesForgotten,
            "touches-forgotten",
            "a follower does not tell its leader which sessions live",
        ),
        (Bug::SequenceRepeats, "sequence-repeats", "a sequence number is the count of children at the time"),
        (Bug::WatchFiresTwice, "watch-fires-twice", "a one-shot watch stays when it has fired"),
        (
            Bug::TailDropped,
            "tail-dropped",
            "a new leader drops the records in its log that it does not know to be committed",
        ),
        (Bug::FailedMultiHalfDone, "failed-multi-half-done", "the first part of a multi that failed is done"),
        (
            Bug::CommitOutOfTurn,
            "commit-out-of-turn",
            "a leader counts itself for a proposal that is not on its own disk yet",
        ),
        (
            Bug::MovedSessionWrites,
            "moved-session-writes",
            "a late write that comes through the former server of a session is carried out",
        ),
        (Bug::ConfigKept, "config-kept", "a follower keeps its configuration when another commits"),
        (
            Bug::JointQuorumSkipped,
            "joint-quorum-skipped",
            "a change of the ensemble needs only the quorum of the new one",
        ),
        (
            Bug::AnswersMixedUp,
            "answers-mixed-up",
            "a write on a new connection gets the answer to an earlier write of the session with the same xid",
        ),
        (
            Bug::EventsSwapped,
            "events-swapped",
            "the events of a later transaction come before the events of an earlier one",
        ),
        (
            Bug::MissedToldTwice,
            "missed-told-twice",
            "a client gets two events for one change that it missed between two connections",
        ),
        (
            Bug::AclsMixedUpInSnapshot,
            "acls-mixed-up-in-snapshot",
            "two access control lists change places in a snapshot",
        ),
        (Bug::PersistentFiresOnce, "persistent-fires-once", "a persistent watch is gone when it has fired"),
        (
            Bug::GrandchildrenUnwatched,
            "grandchildren-unwatched",
            "a recursive watch fires for a znode and its children, and for no znode below them",
        ),
        (
            Bug::PersistentNotSetAgain,
            "persistent-not-set-again",
            "a client that reconnects gets its one-shot watches again, and no others",
        ),
        (
            Bug::ToldForEachMode,
            "told-for-each-mode",
            "a client with a one-shot and a persistent watch of one znode gets two events for one change",
        ),
        (
            Bug::OtherWatchRemoved,
            "other-watch-removed",
            "the removal of a persistent watch removes the recursive watch of the same path, too",
        ),
        (
            Bug::ModesReplaced,
            "modes-replaced",
            "a watch replaces the watch with another mode of the same path (ZooKeeper 3.8)",
        ),
        (
            Bug::RecursiveSeesLists,
            "recursive-sees-lists",
            "a recursive watch fires when a list of children changes (ZooKeeper 3.8)",
        ),
        (
            Bug::AclOfBefore,
            "acl-of-before",
            "setACL logs the ACL of the request before it for the same znode",
        ),
        (
            Bug::AuthIsTheFirst,
            "auth-is-the-first",
            "`auth` in an ACL stands for one identity of the caller, not for all",
        ),
        (
            Bug::TruncInLogOnly,
            "trunc-in-log-only",
            "the log is cut back, and memory keeps what was cut (ZOOKEEPER-5094)",
        ),
        (
            Bug::MutexLooksOnce,
            "mutex-looks-once",
            "a process that waits for a lock takes it when the znode before its own is gone, even if another process holds it",
        ),
        (Bug::LatchLeadsOn, "latch-leads-on", "a latch leads on when its session is lost"),
        (
            Bug::OrphanNotSought,
            "orphan-not-sought",
            "a protected create without an answer is sent again, without a search for the first one",
        ),
        (
            Bug::SearchWithoutSync,
            "search-without-sync",
            "the search for a protected create asks a server that may not have applied the create yet",
        ),
        (
            Bug::HolderAsksNoClock,
            "holder-asks-no-clock",
            "a process takes itself for the holder until a server reports the end of the session",
        ),
        (
            Bug::SessionOutlived,
            "session-outlived",
            "a client takes its session for lost half a timeout too late",
        ),
        (
            Bug::PingsProve,
            "pings-prove",
            "a holder takes answered pings as proof that its session lives, even from a server that is cut off",
        ),
        (
            Bug::PromisedTwice,
            "promised-twice",
            "a promise of an epoch counts although the epoch was promised to another leader before",
        ),
        (
            Bug::CutStillCounts,
            "cut-still-counts",
            "an acknowledgement still counts after its proposal was cut from the follower's log",
        ),
        (
            Bug::RevalidatedUntouched,
            "revalidated-untouched",
            "a leader does not count a session's return to a learner as a sign of life",
        ),
        (
            Bug::ChangeBeforeForgotten,
            "change-before-forgotten",
            "a server with two changes of the ensemble in its log uses only the oldest and the newest configuration",
        ),
        (
            Bug::FalseVotesCount,
            "false-votes-count",
            "votes in the name of a server that is away count for as long as they come",
        ),
        (
            Bug::AnswersAfterDroppedEvent,
            "answers-after-dropped-event",
            "a client whose event was dropped, because it reads too slowly, still gets later answers",
        ),
        (
            Bug::PasswordSeenLate,
            "password-seen-late",
            "the connection of a session is closed for every caller that names the session, before the password is checked",
        ),
        (Bug::RefusedLoginStays, "refused-login-stays", "a client whose login by SASL has failed is served"),
        (
            Bug::CertificateForgotten,
            "certificate-forgotten",
            "a forwarded request goes without the identity of the client's certificate",
        ),
        (
            Bug::MoveUnpromised,
            "move-unpromised",
            "a leader whose counter ends moves on to an epoch that no quorum has promised",
        ),
        (
            Bug::MoveNotSaved,
            "move-not-saved",
            "a follower moves on to its leader's next epoch, and does not save that epoch",
        ),
        (
            Bug::BorderShownEarly,
            "border-shown-early",
            "a server shows the begin of an epoch before it has applied all of the epoch before",
        ),
    ];

    /// The bugs that Curator has had, with the numbers of its issues and descriptions. The tests of the recipes find
    /// them.
    pub const OF_CURATOR: [(Bug, &'static str, &'static str); 14] = [
        (Bug::LatchKeepsOldZnode, "696", "in its next session a latch leads by the znode of the last one"),
        (Bug::MutexFindsOldZnode, "604", "a mutex that looks for its znode takes that of its last session"),
        (Bug::LatchFindsOldZnode, "498", "a latch that looks for its znode takes that of its last session"),
        (Bug::ReconnectDeletesZnode, "620", "a reconnect deletes the znode by which a latch leads again"),
        (
            Bug::LeadsByAnEarlierLook,
            "653",
            "after a reconnect a latch creates a new znode, but decides that it leads from a list of the queue with its \
             old one",
        ),
        (Bug::ReconnectMakesZnode, "644", "a reconnect makes a latch give its znode up and create another"),
        (
            Bug::MissingPredecessorMakesZnode,
            "645",
            "a contender that finds the znode before its own gone creates another one instead of looking again",
        ),
        (
            Bug::PathMadeOnce,
            "724",
            "a latch creates the parent of its znode only before its first leadership",
        ),
        (Bug::SelectorForgetsZnode, "188", "a selector that has led leaves its znode behind"),
        (Bug::SelectorHidesError, "15", "a selector that cannot contend does not say why"),
        (Bug::ReleaseGivesUp, "595, 678", "a release that meets a connection loss is not tried again"),
        (Bug::DowngradeToTheEnd, "621, 276", "a writer that becomes a reader goes to the end of the queue"),
        (
            Bug::OtherZnodesAreContenders,
            "43",
            "znodes below a lock that are no contenders come before all contenders",
        ),
        (Bug::DroppedPlaceStays, "335, 462", "a contender that stops waiting leaves its znodes behind"),
    ];

    /// The bug of Curator that was reported in the issue with this number.
    pub fn of_curator_issue(number: &str) -> Option<Bug> {
        let mut all = Bug::OF_CURATOR.into_iter();
        all.find(|(_, issues, _)| issues.split(", ").any(|issue| issue == number)).map(|(bug, ..)| bug)
    }

    /// The bug of the simulator with this name.
    pub fn named(name: &str) -> Option<Bug> {
        Bug::ALL.into_iter().find(|(_, of, _)| *of == name).map(|(bug, ..)| bug)
    }
}

#[cfg(feature = "planted-bugs")]
mod planted_one {
    use super::Bug;
    use core::sync::atomic::{AtomicU8, Ordering};

    const NONE: u8 = u8::MAX;
    /// The only global variable of the workspace. Builds with it are for tests only.
    static PLANTED: AtomicU8 = AtomicU8::new(NONE);

    /// Plants a bug in this process, or removes it.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(NONE, |bug| bug as u8), Ordering::Relaxed);
    }

    /// Whether this bug is planted.
    pub fn is(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted-bugs")]
pub use planted_one::{is, plant};

/// Whether this bug is planted.
#[cfg(not(feature = "planted-bugs"))]
pub const fn is(_: Bug) -> bool {
    false
}

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
