//! The kinds of faults and repairs.

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A repair: two servers are started if they are down. Every run has repairs.
    Restart,
    /// A repair: all cuts end, and all disks are fast again. Every run has repairs.
    Mend,
    /// A server's process dies.
    Kill,
    /// A server's machine loses its power, and its disk loses what was not synced.
    PowerLoss,
    /// The leader is killed or loses its power.
    KillLeader,
    /// All servers die at once.
    Blackout,
    /// No message passes from one server to another.
    Cut,
    /// A server is cut off from all others.
    Isolate,
    /// The leader, or a server if there is no leader, is cut off in one direction.
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
    /// A leader is cut off, logs proposals that no other server gets, and returns to a new leader.
    Tail,
    /// An operator ends a session, and the connections of a server.
    Meddle,
    /// Clients' connections die without a close.
    LostClients,
    /// A server dies, its disk is emptied, and the server is started again.
    Wipe,
    /// A disk goes back to an older copy of itself.
    OldDisk,
    /// Bits flip in a file.
    BitRot,
    /// A disk reports syncs that it has not done, and then loses its power.
    LostSyncs,
    /// A reconfiguration: a server joins, leaves, or changes between participant and observer.
    Reconfigure,
    /// A contender does not run for a while.
    ContenderPause,
    /// A contender dies.
    ContenderDeath,
    /// A contender is cut off from all servers.
    ContenderCut,
    /// No client writes for some seconds, and leaders die meanwhile.
    Idle,
    /// Certificates of servers expire, perhaps in the middle of an election, and are renewed later.
    BadCertificate,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 28] = [
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
        FaultKind::BadCertificate,
    ];

    /// The name in `--without`.
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
            FaultKind::BadCertificate => "bad-certificate",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<FaultKind> {
        FaultKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn is_repair(self) -> bool {
        matches!(self, FaultKind::Restart | FaultKind::Mend)
    }

    /// Whether this is a fault of contenders, and does nothing in a run without any.
    pub(crate) fn is_of_contenders(self) -> bool {
        matches!(self, FaultKind::ContenderPause | FaultKind::ContenderDeath | FaultKind::ContenderCut)
    }

    /// How often it is chosen, relative to the other kinds.
    pub(crate) fn weight(self) -> u64 {
        match self {
            FaultKind::Restart => 4,
            FaultKind::Mend | FaultKind::Kill | FaultKind::PowerLoss => 2,
            FaultKind::Tail | FaultKind::Reconfigure => 2,
            FaultKind::ContenderPause | FaultKind::ContenderCut | FaultKind::Idle => 3,
            FaultKind::BadCertificate => 4,
            _ => 1,
        }
    }
}
