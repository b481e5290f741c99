//! The decisions of a seed before a run begins: the ensemble, its clients, and the faults with their times.

use crate::{
    chance::Chance,
    fault::FaultKind,
    scenes::Scene,
    world::{LOG_MS, NO_END, Shape},
};
use ostler_server_core::quorum::{LocalSessions, ObserverOptions};
use ostler_zab::EpochLength;
use std::{
    collections::BTreeSet,
    fmt::{self, Display},
};

/// The longest time for the end of a run: the ensemble comes back, then sessions end.
const ENDING_MS: u64 = 15_000;
/// The longest pause between two faults.
const PAUSE_MAX_MS: u64 = 1_200;

/// One run. The same plan gives the same run, event by event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The source of every random choice.
    pub seed: u64,
    /// A scene to play instead of random faults. Then of the other fields only the seed matters.
    pub scene: Option<Scene>,
    /// The number of participants at the beginning.
    pub voters: u8,
    /// The number of observers at the beginning.
    pub observers: u8,
    /// The number of clients that send random requests.
    pub clients: u8,
    /// The number of processes that compete for locks and leaderships.
    pub contenders: u8,
    /// The length of the run in virtual seconds. In the last 15 the ensemble comes back.
    pub seconds: u64,
    /// Kinds of faults that are left out.
    pub without: BTreeSet<FaultKind>,
    /// Numbers of single faults that are left out.
    pub skip: BTreeSet<u32>,
}

/// A fault and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedFault {
    pub(crate) number: u32,
    /// Time since the fault before it, ms.
    pub(crate) pause: u64,
    pub(crate) kind: FaultKind,
    /// The seed for random choices within the fault.
    pub(crate) salt: u64,
}

/// Each sort of decision has its own random numbers, so that leaving something out changes little else.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RandomStream {
    World = 0,
    Faults = 1,
    Swarm = 2,
    Shape = 3,
    Wide = 4,
    Moves = 5,
}

impl Plan {
    /// The shortest run, in virtual seconds.
    pub const SECONDS_MIN: u64 = ENDING_MS / 1_000 + 1;

    /// The run that a seed decides, for an ensemble of this many voters.
    pub fn new(seed: u64, voters: u8, seconds: u64) -> Plan {
        let mut chance = Plan::chance_of(seed, RandomStream::Shape);
        Plan {
            seed,
            scene: None,
            voters,
            observers: [0, 1, 0, 2][chance.below(4) as usize],
            clients: chance.between(2, 5) as u8,
            contenders: [0, 2, 3][chance.below(3) as usize],
            seconds,
            without: BTreeSet::new(),
            skip: BTreeSet::new(),
        }
    }

    /// The default number of voters of a seed: mostly 3 or 5, for 2 of 16 seeds another number from 1 to 7.
    pub fn usual_voters(seed: u64) -> u8 {
        let one_of = |sizes: &[u8]| sizes[(seed / 16) as usize % sizes.len()];
        match seed % 16 {
            10 => one_of(&[1, 2]),
            11 => one_of(&[7, 4, 6]),
            number if number % 2 == 0 => 3,
            _ => 5,
        }
    }

    /// A run of a scene. The seed decides its times.
    pub fn of_scene(scene: Scene, seed: u64) -> Plan {
        Plan { scene: Some(scene), ..Plan::new(seed, 0, 0) }
    }

    pub(crate) fn chance(&self, stream: RandomStream) -> Chance {
        Plan::chance_of(self.seed, stream)
    }

    fn chance_of(seed: u64, stream: RandomStream) -> Chance {
        Chance::new(seed.wrapping_mul(5).wrapping_add(stream as u64))
    }

    /// The time of the last fault, in ms from the beginning.
    pub(crate) fn faults_end(&self) -> u64 {
        (self.seconds * 1_000).saturating_sub(ENDING_MS)
    }

    /// The kinds of faults in this run. Every run has only some kinds, because many kinds at once hide what few would
    /// show.
    fn swarm(&self) -> Vec<FaultKind> {
        let mut chance = self.chance(RandomStream::Swarm);
        let share = chance.between(1, 3);
        let mut kinds: Vec<FaultKind> = Vec::new();
        let has_contenders = Plan::new(self.seed, self.voters, self.seconds).contenders > 0;
        let is_idle = self.is_wide() && !has_contenders;
        let possible = |kind: &FaultKind| match kind {
            FaultKind::Idle => is_idle,
            FaultKind::BadCertificate => self.is_secured(),
            kind => has_contenders || !kind.is_of_contenders(),
        };
        for kind in FaultKind::ALL.into_iter().filter(possible) {
            if kind.is_repair() || chance.below(4) < share {
                kinds.extend(std::iter::repeat_n(kind, kind.weight() as usize));
            }
        }
        kinds
    }

    /// All faults in their order.
    pub(crate) fn schedule(&self) -> Vec<PlannedFault> {
        let kinds = self.swarm();
        let mut chance = self.chance(RandomStream::Faults);
        // Some runs are busy and some are not.
        let longest = [PAUSE_MAX_MS, PAUSE_MAX_MS / 3, PAUSE_MAX_MS * 3][chance.below(3) as usize];
        let (mut at, mut planned) = (0, Vec::new());
        while at < self.faults_end() {
            let pause = chance.between(50, longest);
            let kind = kinds[chance.below(kinds.len() as u64) as usize];
            let salt = chance.below(1 << 30);
            at += pause;
            planned.push(PlannedFault { number: planned.len() as u32, pause, kind, salt });
        }
        planned
    }

    pub(crate) fn happens(&self, of: &PlannedFault) -> bool {
        !self.without.contains(&of.kind) && !self.skip.contains(&of.number)
    }

    pub(crate) fn shape(&self) -> Shape {
        if let Some(scene) = self.scene {
            return scene.shape(self.seed);
        }
        let shape = self.usual_shape();
        let shape = if self.is_wide() { self.widened(shape) } else { shape };
        if self.is_moving() { self.with_moves(shape) } else { shape }
    }

    /// Whether counters end early, and leaders move on to the next epoch in place. One of seven seeds has that; the
    /// runs of all other seeds stay as they were before.
    fn is_moving(&self) -> bool {
        self.seed % 7 == 5
    }

    fn with_moves(&self, shape: Shape) -> Shape {
        let mut chance = self.chance(RandomStream::Moves);
        let count = [chance.between(3, 10), chance.between(20, 60), chance.between(100, 200)];
        let count = count[chance.below(3) as usize] as u32;
        let servers = (self.voters + self.observers).into();
        let lacks_moves = (chance.below(4) == 0).then(|| chance.between(1, servers) as i64);
        Shape {
            epoch: EpochLength { in_place: Some(count), enough: count + 60, most: count + 80 },
            lacks_moves,
            // In a short epoch, a learner that needs longer than the epoch lasts would never be synchronized.
            log_ms: LOG_MS,
            tree_ms: (0, 0),
            ..shape
        }
    }

    /// Whether the seed has the additional features of [`Plan::widened`]. Two of five seeds do; the runs of all other
    /// seeds stay as they were before these features existed.
    fn is_wide(&self) -> bool {
        matches!(self.seed % 5, 2 | 3)
    }

    /// Whether servers have certificates, and clients log in. One of five seeds has that; the runs of all other seeds
    /// stay as they were before.
    fn is_secured(&self) -> bool {
        self.seed % 5 == 4
    }

    fn widened(&self, shape: Shape) -> Shape {
        let mut chance = self.chance(RandomStream::Wide);
        let mut one_of = |count: u64| chance.below(count) as usize;
        let slow = ([LOG_MS, LOG_MS, (500, 3_000)][one_of(3)], [(0, 0), (0, 0), (200, 3_000)][one_of(3)]);
        // In an epoch of 100 writes, a learner that needs longer than the epoch lasts would never be synchronized.
        let (log_ms, tree_ms) = if shape.epoch.most < 10_000 { (LOG_MS, (0, 0)) } else { slow };
        Shape {
            wide: true,
            log_ms,
            tree_ms,
            timeouts_change: one_of(2) == 0,
            large_bytes: [0, 0, 20_000][one_of(3)],
            slow_readers: one_of(3) == 0,
            idle_end: one_of(2) == 0,
            session_thieves: self.seed % 5 == 3,
            secret: self.seed % 10 == 3,
            ..shape
        }
    }

    fn usual_shape(&self) -> Shape {
        let mut chance = self.chance(RandomStream::Shape);
        let mut one_of = |count: u64| chance.below(count) as usize;
        Shape {
            voters: self.voters.into(),
            observers: self.observers.into(),
            observing: ObserverOptions {
                masters: one_of(4) < 3,
                election_delay: [0, 200][one_of(2)],
                reconnect_delay: [0, 50][one_of(2)],
            },
            clients: self.clients.into(),
            contenders: self.contenders.into(),
            history: [4, 15, 500][one_of(3)],
            snapshot_txns: [4, 20, 200][one_of(3)],
            epoch: [NO_END, EpochLength { in_place: None, enough: 100, most: 120 }, NO_END][one_of(3)],
            pace_ms: [20, 150, 500][one_of(3)],
            // A lock needs ephemerals.
            local: [LocalSessions::Off, LocalSessions::Upgradeable, LocalSessions::Fixed]
                [one_of(if self.contenders > 0 { 2 } else { 3 })],
            read_only_after_ms: [None, Some(300)][one_of(2)],
            prealloc_bytes: [0, 4 << 10, 64 << 10][one_of(3)],
            reconfig: one_of(3) == 0,
            log_ms: LOG_MS,
            tree_ms: (0, 0),
            timeouts_change: false,
            large_bytes: 0,
            slow_readers: false,
            wide: false,
            idle_end: false,
            session_thieves: false,
            secret: false,
            secured: self.is_secured(),
            lacks_moves: None,
            // No server may depend on it: with a minute, a server that waits for it is not back at the end.
            init_ms: [1_500, 60_000][one_of(2)],
            // Longer than many sessions of contenders: a server that is cut off notices that only after this time.
            sync_limit_ms: if self.contenders > 0 { [500, 2_000][one_of(2)] } else { 500 },
        }
    }
}

/// The arguments of `ostler-sim` that repeat the run.
impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scene) = self.scene {
            return write!(f, "--scene {} --seed {}", scene.name(), self.seed);
        }
        write!(f, "--seed {} --servers {} --seconds {}", self.seed, self.voters, self.seconds)?;
        write!(f, " --observers {} --clients {}", self.observers, self.clients)?;
        write!(f, " --contenders {}", self.contenders)?;
        let list = |of: Vec<String>| of.join(",");
        if !self.without.is_empty() {
            write!(f, " --without {}", list(self.without.iter().map(|kind| kind.name().into()).collect()))?;
        }
        if !self.skip.is_empty() {
            write!(f, " --skip {}", list(ranges(&self.skip)))?;
        }
        Ok(())
    }
}

/// Writes `3,4,5,9` as `3-5,9`.
fn ranges(numbers: &BTreeSet<u32>) -> Vec<String> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let text = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    runs.into_iter().map(text).collect()
}

/// Reads what [`Plan`] writes after `--skip`.
pub fn parse_skip(text: &str) -> Result<BTreeSet<u32>, String> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.parse::<u32>().map_err(|_| format!("{part}: must be a fault's number, or two as 3-5"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if last.saturating_sub(first) > 100_000 {
            return Err(format!("{part}: no run has more than 100,000 faults"));
        }
        numbers.extend(first..=last);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_skipped_faults_is_written_and_read() {
        let skip = BTreeSet::from([3, 4, 5, 9, 11, 12]);
        assert_eq!(ranges(&skip).join(","), "3-5,9,11-12");
        assert_eq!(parse_skip("3-5,9,11-12"), Ok(skip));
        assert!(parse_skip("x").is_err() && parse_skip("1-4000000000").is_err());
    }

    #[test]
    fn a_hundred_seeds_have_every_size() {
        let mut sizes = [0; 8];
        (1..=100).for_each(|seed| sizes[usize::from(Plan::usual_voters(seed))] += 1);
        assert_eq!(sizes[0], 0);
        assert!(sizes[1..].iter().all(|runs| *runs > 0) && sizes[3] + sizes[5] > 80, "{sizes:?}");
    }

    #[test]
    fn a_plan_without_a_kind_of_fault_has_the_same_schedule() {
        let plan = Plan::new(7, 3, 60);
        let schedule = plan.schedule();
        let kind = schedule[3].kind;
        let without = Plan { without: [kind].into(), ..plan.clone() };
        assert_eq!(without.schedule(), schedule);
        assert!(!without.happens(&schedule[3]) && plan.happens(&schedule[3]));
    }
}
