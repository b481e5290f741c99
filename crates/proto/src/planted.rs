//! Bugs on purpose, to see that the simulator finds them.
//!
//! Each stands where somebody could make it, behind `if planted::is(Bug::…)`. Without the feature `planted-bugs`, which
//! only `ostler sim --planted` and its tests are built with, that is `if false`, and nothing of it is compiled.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the table says what each is")]
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
}

impl Bug {
    /// All of them, with their names and what they are.
    pub const ALL: [(Bug, &'static str, &'static str); 65] = [
        (Bug::AckBeforeSync, "ack-before-sync", "a server acknowledges what its disk has not synced"),
        (Bug::AppendOutOfOrder, "append-out-of-order", "records of one batch are written in the wrong order"),
        (
            Bug::NewLeaderAckEarly,
            "new-leader-ack-early",
            "a follower acknowledges NEWLEADER before its history is durable",
        ),
        (Bug::TruncSkipped, "trunc-skipped", "a follower that is told to cut its log back does nothing"),
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
        (
            Bug::ObserverCounts,
            "observer-counts",
            "an observer counts where a quorum is gathered for an epoch",
        ),
        (Bug::MinorityCommits, "minority-commits", "a proposal commits when one server has it"),
        (
            Bug::EpochBeforeSnapshot,
            "epoch-before-snapshot",
            "the current epoch is saved before the leader's tree is",
        ),
        (Bug::EphemeralsLeft, "ephemerals-left", "a closed session's last ephemeral stays"),
        (Bug::WatchAfterReply, "watch-after-reply", "watchers are told after the writer is answered"),
        (
            Bug::WatchesLostOnReconnect,
            "watches-lost-on-reconnect",
            "what a client missed while it was away is not told",
        ),
        (
            Bug::NewLeaderExpiresEarly,
            "new-leader-expires-early",
            "a new leader gives sessions half of their time",
        ),
        (
            Bug::CversionOffInSnapshot,
            "cversion-off-in-snapshot",
            "a snapshot's count of children is that of today's, not of all",
        ),
        (
            Bug::AclMissingInSnapshot,
            "acl-missing-in-snapshot",
            "a snapshot lacks the list that was added last",
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
            "a new leader takes the highest epoch that it hears of, not the next",
        ),
        (Bug::EpochNotSaved, "epoch-not-saved", "a leader proposes its epoch before that is durable"),
        (
            Bug::ReadsOvertakeWrites,
            "reads-overtake-writes",
            "a read does not wait for the session's own write",
        ),
        (Bug::SyncAtOnce, "sync-at-once", "a follower answers a sync by itself"),
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
            "a new leader forgets what it had logged and does not know to be committed",
        ),
        (Bug::FailedMultiHalfDone, "failed-multi-half-done", "the first part of a multi that failed is done"),
        (
            Bug::CommitOutOfTurn,
            "commit-out-of-turn",
            "a leader counts its own disk before it has the proposal",
        ),
        (
            Bug::MovedSessionWrites,
            "moved-session-writes",
            "a session's late write by way of its former server happens",
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
            "a write on a session's new connection gets the answer to an earlier one with its number",
        ),
        (Bug::EventsSwapped, "events-swapped", "of two transactions the later one's watchers are told first"),
        (Bug::MissedToldTwice, "missed-told-twice", "what a client missed while it was away is told twice"),
        (
            Bug::AclsMixedUpInSnapshot,
            "acls-mixed-up-in-snapshot",
            "two access control lists change places in a snapshot",
        ),
        (Bug::PersistentFiresOnce, "persistent-fires-once", "a persistent watch is gone when it has fired"),
        (
            Bug::GrandchildrenUnwatched,
            "grandchildren-unwatched",
            "a recursive watch is told of a znode and its children, and of nothing below them",
        ),
        (
            Bug::PersistentNotSetAgain,
            "persistent-not-set-again",
            "a client that comes back gets its one-shot watches again, and no others",
        ),
        (
            Bug::ToldForEachMode,
            "told-for-each-mode",
            "who has a one-shot and a persistent watch of one znode is told twice",
        ),
        (
            Bug::OtherWatchRemoved,
            "other-watch-removed",
            "who removes a persistent watch loses the recursive one of that path, too",
        ),
        (
            Bug::ModesReplaced,
            "modes-replaced",
            "a watch takes the place of another of the same path (ZooKeeper 3.8)",
        ),
        (
            Bug::RecursiveSeesLists,
            "recursive-sees-lists",
            "a recursive watch is told of changed lists of children (ZooKeeper 3.8)",
        ),
        (Bug::AclOfBefore, "acl-of-before", "setACL logs the list that the request before it gave the znode"),
        (
            Bug::AuthIsTheFirst,
            "auth-is-the-first",
            "`auth` in a list stands for one identity of who asks, and not for all",
        ),
        (
            Bug::TruncInLogOnly,
            "trunc-in-log-only",
            "the log is cut back, and memory keeps what was cut (ZOOKEEPER-5094)",
        ),
        (
            Bug::MutexLooksOnce,
            "mutex-looks-once",
            "who waits for a lock has it when the one before it is gone, whoever else holds it",
        ),
        (Bug::LatchLeadsOn, "latch-leads-on", "a latch leads on when its session is lost"),
        (
            Bug::OrphanNotSought,
            "orphan-not-sought",
            "a protected create without an answer is done again, and the first is not looked for",
        ),
        (
            Bug::SearchWithoutSync,
            "search-without-sync",
            "a protected create is looked for on a server that may not have seen it yet",
        ),
        (
            Bug::HolderAsksNoClock,
            "holder-asks-no-clock",
            "a holder believes to hold until somebody tells it of the session's end",
        ),
        (
            Bug::SessionOutlived,
            "session-outlived",
            "a client takes its session for lost half a timeout too late",
        ),
        (
            Bug::PingsProve,
            "pings-prove",
            "a holder takes answered pings for a proof that its session lives, from a server that is cut off, too",
        ),
        (
            Bug::PromisedTwice,
            "promised-twice",
            "a promise counts though the epoch was promised to another leader before",
        ),
        (
            Bug::CutStillCounts,
            "cut-still-counts",
            "a follower counts for what it had acknowledged before its log was cut back",
        ),
        (
            Bug::RevalidatedUntouched,
            "revalidated-untouched",
            "a leader does not take a session's return to a learner for a sign of it",
        ),
        (
            Bug::ChangeBeforeForgotten,
            "change-before-forgotten",
            "a server with two changes of the ensemble in its log goes by the oldest configuration and the newest",
        ),
        (
            Bug::FalseVotesCount,
            "false-votes-count",
            "votes in the name of a server that is away count as long as they come, whatever comes of them",
        ),
        (
            Bug::AnswersAfterDroppedEvent,
            "answers-after-dropped-event",
            "a client that reads too slowly to be told of a change is still answered what was asked later",
        ),
        (
            Bug::PasswordSeenLate,
            "password-seen-late",
            "a session loses its connection to whoever names it, and then the password is looked at",
        ),
    ];

    /// By its name.
    pub fn named(name: &str) -> Option<Bug> {
        Bug::ALL.into_iter().find(|(_, of, _)| *of == name).map(|(bug, ..)| bug)
    }
}

#[cfg(feature = "planted-bugs")]
mod planted_one {
    use super::Bug;
    use core::sync::atomic::{AtomicU8, Ordering};

    const NONE: u8 = u8::MAX;
    /// The only global of the workspace: of this build, which keeps nobody's data.
    static PLANTED: AtomicU8 = AtomicU8::new(NONE);

    /// Plants a bug in this process, or takes it out.
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
