//! Scenes: courses of events that random faults seldom produce. Their times are random.
//!
//! Most scenes are only tests. A scene with a name can also be run like a seed: `ostler-sim --scene NAME`.

#[cfg(test)]
mod counter_ends;
#[cfg(test)]
mod courses;
mod cut_acknowledgement;
mod cut_off_holder;
mod epoch_twice;
mod false_votes;
#[cfg(test)]
mod idle_epochs;
#[cfg(test)]
mod interrupted_acts;
#[cfg(test)]
mod kept_trees;
mod later_epoch;
#[cfg(test)]
mod living_sessions;
#[cfg(test)]
mod local_sessions;
mod lost_disk;
#[cfg(test)]
mod operators_errors;
#[cfg(test)]
mod read_only;
#[cfg(test)]
mod reconfigurations;
#[cfg(test)]
mod seeds;
#[cfg(test)]
mod session_thieves;
#[cfg(test)]
mod slow_synchronisation;
#[cfg_attr(not(test), allow(dead_code, reason = "tests use the rest"))]
mod steering;
mod two_changes;

use crate::{
    plan::Plan,
    world::{LOG_MS, NO_END, Shape, World},
};
use ostler_planted::Bug;
use ostler_server_core::quorum::{LocalSessions, ObserverOptions};

/// A scene with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// Two servers have promised an epoch that never began, and meet the leader of an earlier one.
    LaterEpoch,
    /// A lock holder and the follower that it is connected to are cut off together.
    CutOffHolder,
    /// Two reconfigurations, and a server that does not know whether they are in force.
    TwoChanges,
    /// A server loses its disk and dies while it is synchronized again.
    LostDisk,
    /// Two leaders propose the same epoch.
    EpochTwice,
    /// A follower's log is cut back below a proposal that it has acknowledged.
    CutAcknowledgement,
    /// An attacker sends votes in the names of servers.
    FalseVotes,
}

impl Scene {
    /// All scenes with a name.
    pub const ALL: [Scene; 7] = [
        Scene::LaterEpoch,
        Scene::CutOffHolder,
        Scene::TwoChanges,
        Scene::LostDisk,
        Scene::EpochTwice,
        Scene::CutAcknowledgement,
        Scene::FalseVotes,
    ];

    /// The name in `--scene`.
    pub fn name(self) -> &'static str {
        match self {
            Scene::LaterEpoch => "later-epoch",
            Scene::CutOffHolder => "cut-off-holder",
            Scene::TwoChanges => "two-changes",
            Scene::LostDisk => "lost-disk",
            Scene::EpochTwice => "epoch-twice",
            Scene::CutAcknowledgement => "cut-acknowledgement",
            Scene::FalseVotes => "false-votes",
        }
    }

    /// The scene with this name.
    pub fn named(name: &str) -> Option<Scene> {
        Scene::ALL.into_iter().find(|scene| scene.name() == name)
    }

    /// The scene that leads up to a bug that random faults seldom find.
    fn of_bug(bug: Bug) -> Option<Scene> {
        match bug {
            Bug::StaleEpochAccepted => Some(Scene::LaterEpoch),
            Bug::PingsProve => Some(Scene::CutOffHolder),
            Bug::PromisedTwice => Some(Scene::EpochTwice),
            Bug::CutStillCounts => Some(Scene::CutAcknowledgement),
            Bug::ChangeBeforeForgotten => Some(Scene::TwoChanges),
            Bug::FalseVotesCount => Some(Scene::FalseVotes),
            _ => None,
        }
    }

    pub(crate) fn shape(self, seed: u64) -> Shape {
        match self {
            Scene::LaterEpoch => later_epoch::shape(seed),
            Scene::CutOffHolder => cut_off_holder::shape(seed),
            Scene::TwoChanges => two_changes::shape(seed),
            Scene::LostDisk => lost_disk::shape(seed),
            Scene::EpochTwice => epoch_twice::shape(seed),
            Scene::CutAcknowledgement => cut_acknowledgement::shape(seed),
            Scene::FalseVotes => false_votes::shape(seed),
        }
    }

    /// Plays the scene. All servers have been started.
    pub(crate) fn play(self, world: &mut World) {
        match self {
            Scene::LaterEpoch => later_epoch::play(world),
            Scene::CutOffHolder => cut_off_holder::play(world),
            Scene::TwoChanges => two_changes::play(world),
            Scene::LostDisk => lost_disk::play(world),
            Scene::EpochTwice => epoch_twice::play(world),
            Scene::CutAcknowledgement => cut_acknowledgement::play(world),
            Scene::FalseVotes => false_votes::play(world),
        }
    }
}

/// The number of paces (seeds) at which a scene is played to find a bug.
const PACES: u64 = 20;

/// The runs in which a planted bug is searched: first the scene that leads up to it, if there is one, then `by_chance`.
pub fn search(bug: Bug, by_chance: impl Iterator<Item = Plan>) -> impl Iterator<Item = Plan> {
    let paces = Scene::of_bug(bug).into_iter().flat_map(|scene| (1..=PACES).map(move |seed| (scene, seed)));
    paces.map(|(scene, seed)| Plan::of_scene(scene, seed)).chain(by_chance)
}

fn shape(seed: u64) -> Shape {
    let (history, snapshot_txns) = if seed.is_multiple_of(2) { (4, 20) } else { (500, 2) };
    Shape {
        voters: 3,
        observers: 0,
        observing: ObserverOptions::default(),
        clients: 0,
        contenders: 0,
        history,
        snapshot_txns,
        epoch: NO_END,
        pace_ms: 1,
        local: LocalSessions::Off,
        read_only_after_ms: None,
        init_ms: 1_500,
        sync_limit_ms: 500,
        prealloc_bytes: 4 << 10,
        reconfig: false,
        log_ms: LOG_MS,
        tree_ms: (0, 0),
        timeouts_change: false,
        large_bytes: 0,
        slow_readers: false,
        wide: false,
        idle_end: false,
        session_thieves: false,
        secret: false,
        secured: false,
        lacks_moves: None,
    }
}
