//! The kinds of things that go wrong, and of what puts them right.

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Servers that are down are started. Some of it is in every run.
    Restart,
    /// All cuts end. In every run, too.
    Mend,
    /// A server's process dies.
    Kill,
    /// A server's machine loses its power, and the disk what was not synced.
    PowerLoss,
    /// The leader dies, one way or the other.
    KillLeader,
    /// All servers die at once.
    Blackout,
    /// Nothing passes from one server to another.
    Cut,
    /// A server is cut off from all others.
    Isolate,
    /// A server is cut off in one direction, the leader if there is one.
    IsolateOneWay,
    /// A server's process does not run for a while.
    Pause,
    /// A server's disk becomes slow.
    SlowDisk,
    /// One of the next calls to a disk fails.
    DiskError,
    /// A disk is full until its server is started again.
    DiskFull,
    /// A wall clock jumps.
    ClockJump,
    /// A clock goes too fast or too slow.
    ClockDrift,
    /// A leader logs what nobody else gets, and comes back to one that knows nothing of it.
    Tail,
    /// Somebody ends a session, and the connections of a server.
    Meddle,
    /// Clients' connections die without a word.
    LostClients,
    /// A disk is emptied, and its server started.
    Wipe,
    /// A disk goes back to an older copy of itself.
    OldDisk,
    /// Bits flip in a file.
    BitRot,
    /// A disk does not sync what it says it has synced, and then the power goes.
    LostSyncs,
    /// The ensemble is changed: a server comes, goes, or gets a vote or loses it.
    Reconfigure,
    /// A process that holds locks and leads does not run for a while.
    ContenderPause,
    /// It dies without a word.
    ContenderDeath,
    /// It is cut off from all servers.
    ContenderCut,
    /// For some seconds nobody writes, and leaders die.
    Idle,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [FaultKind; 27] = [
        FaultKind::Restart,
        FaultKind::Mend,
        FaultKind::Kill,
        FaultKind::PowerLoss,
        FaultKind::KillLeader,
        FaultKind::Blackout,
        FaultKind::Cut,
        FaultKind::Isolate,
        FaultKind::IsolateOneWay,
        FaultKind::Pause,
        FaultKind::SlowDisk,
        FaultKind::DiskError,
        FaultKind::DiskFull,
        FaultKind::ClockJump,
        FaultKind::ClockDrift,
        FaultKind::Tail,
        FaultKind::Meddle,
        FaultKind::LostClients,
        FaultKind::Wipe,
        FaultKind::OldDisk,
        FaultKind::BitRot,
        FaultKind::LostSyncs,
        FaultKind::Reconfigure,
        FaultKind::ContenderPause,
        FaultKind::ContenderDeath,
        FaultKind::ContenderCut,
        FaultKind::Idle,
    ];

    /// As in `--without`.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Restart => "restart",
            FaultKind::Mend => "mend",
            FaultKind::Kill => "kill",
            FaultKind::PowerLoss => "power-loss",
            FaultKind::KillLeader => "kill-leader",
            FaultKind::Blackout => "blackout",
            FaultKind::Cut => "cut",
            FaultKind::Isolate => "isolate",
            FaultKind::IsolateOneWay => "isolate-one-way",
            FaultKind::Pause => "pause",
            FaultKind::SlowDisk => "slow-disk",
            FaultKind::DiskError => "disk-error",
            FaultKind::DiskFull => "disk-full",
            FaultKind::ClockJump => "clock-jump",
            FaultKind::ClockDrift => "clock-drift",
            FaultKind::Tail => "tail",
            FaultKind::Meddle => "meddle",
            FaultKind::LostClients => "lost-clients",
            FaultKind::Wipe => "wipe",
            FaultKind::OldDisk => "old-disk",
            FaultKind::BitRot => "bit-rot",
            FaultKind::LostSyncs => "lost-syncs",
            FaultKind::Reconfigure => "reconfigure",
            FaultKind::ContenderPause => "contender-pause",
            FaultKind::ContenderDeath => "contender-death",
            FaultKind::ContenderCut => "contender-cut",
            FaultKind::Idle => "idle",
        }
    }

    /// By its name.
    pub fn named(name: &str) -> Option<FaultKind> {
        FaultKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn is_repair(self) -> bool {
        matches!(self, FaultKind::Restart | FaultKind::Mend)
    }

    /// Nothing happens where nobody contends.
    pub(crate) fn is_of_contenders(self) -> bool {
        matches!(self, FaultKind::ContenderPause | FaultKind::ContenderDeath | FaultKind::ContenderCut)
    }

    /// How often it comes among others.
    pub(crate) fn weight(self) -> u64 {
        match self {
            FaultKind::Restart => 4,
            FaultKind::Mend | FaultKind::Kill | FaultKind::PowerLoss => 2,
            FaultKind::Tail | FaultKind::Reconfigure => 2,
            FaultKind::ContenderPause | FaultKind::ContenderCut | FaultKind::Idle => 3,
            _ => 1,
        }
    }
}
