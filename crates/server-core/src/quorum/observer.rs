//! Chooses the server that a learner connects to. A follower takes the leader; an observer may take one observer master
//! after the other, and waits before it connects.
//!
//! If many observers lose one server, they must not all come to the next at once: each waits for a random time.

use super::{
    Ensemble,
    role::{Dialling, MemberRole},
};
use crate::{
    context::Context,
    effect::{DialTarget, Effect},
    input::{Mono, Now},
    report::QuorumReport,
    server::Server,
};
use alloc::vec::Vec;
use ostler_proto::id::ServerId;

/// The longest time in ms before a server whose promised epoch is later than the leader's connects again.
const OUTSIDE_FOR: u64 = 500;

/// The settings of observers and observer masters; times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObserverOptions {
    /// Whether followers serve observers, and observers follow followers (`observerMasterPort`).
    pub masters: bool,
    /// The longest wait of an observer before it looks for a leader again (`observer.election.DelayMs`).
    pub election_delay: u64,
    /// The longest wait of an observer before it connects to the leader, or begins again with the first observer master
    /// (`observer.reconnectDelayMs`).
    pub reconnect_delay: u64,
}

/// The act that follows a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterWait {
    Elect,
    Dial(DialTarget),
}

/// An observer's attempts at one observer master after the other.
#[derive(Debug)]
pub(super) struct MasterRetry {
    /// The number of attempts so far.
    tried: usize,
    waiting: Option<(Mono, AfterWait)>,
    random: u64,
}

impl MasterRetry {
    pub(super) fn new(me: ServerId, seed: u64) -> MasterRetry {
        let random = (seed ^ (me.0 as u64) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        MasterRetry { tried: 0, waiting: None, random }
    }

    /// A random time of at least 1 ms and at most `longest`.
    fn some_time(&mut self, longest: u64) -> u64 {
        // xorshift64: its quality is enough, and the seed makes it repeatable.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        1 + (self.random >> 11) % longest.max(1)
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.waiting.map(|(until, _)| until)
    }

    pub(super) fn stop_waiting(&mut self) {
        self.waiting = None;
    }
}

impl Ensemble {
    /// Begins an observer's wait before its next election. Returns true if it has to wait.
    pub(super) fn delay_election(&mut self, now: Now) -> bool {
        let delay = self.config.observing.election_delay;
        if !self.is_observer() || self.search_id <= 1 || delay == 0 {
            return false;
        }
        let until = now.mono.after(self.master_retry.some_time(delay));
        self.master_retry.waiting = Some((until, AfterWait::Elect));
        true
    }

    /// The next server to connect to, and whether to wait before. The order of observer masters differs between
    /// observers.
    fn next_master(&mut self, leader: ServerId) -> (DialTarget, bool) {
        let observing = self.config.observing;
        let voters = self.config.membership.voters().filter(|voter| *voter != leader);
        let mut masters: Vec<ServerId> = voters.collect();
        if !observing.masters || masters.is_empty() {
            return (DialTarget::Leader(leader), true);
        }
        // Rotated by the server id, so that observers spread over all of them.
        let start = self.me.0.unsigned_abs() as usize % masters.len();
        masters.rotate_left(start);
        let at = self.master_retry.tried % masters.len();
        let begins_again = at == 0 && self.master_retry.tried > 0;
        self.master_retry.tried += 1;
        (DialTarget::Follower(masters[at]), begins_again)
    }
}

impl Ensemble {
    pub(crate) fn report(&self, pending_syncs: usize) -> QuorumReport {
        let learners = self.role.learners().map(|learners| learners.leading.counts()).unwrap_or_default();
        let votes = |server: &ServerId| self.electorate.voters().contains(server);
        let non_voting_followers = match &self.role {
            MemberRole::Leading(leader) => leader
                .learners
                .leading
                .synced()
                .filter(|server| !votes(server))
                .count()
                .saturating_sub(learners.observers),
            _ => 0,
        };
        QuorumReport {
            voters: self.config.membership.voters().count(),
            learners,
            non_voting_followers,
            pending_syncs,
            master: self.connected_to().filter(|_| self.is_observer()),
            serves_since: self.election_history.serves_since(),
        }
    }
}

impl Server {
    /// A leader is elected: connects to it or to an observer master, perhaps after a wait.
    pub(super) fn dial(&mut self, cx: &mut Context<'_>, leader: ServerId) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let (to, may_wait) = if ensemble.is_observer() {
            ensemble.next_master(leader)
        } else {
            (DialTarget::Leader(leader), false)
        };
        let (DialTarget::Leader(master) | DialTarget::Follower(master)) = to;
        ensemble.role = MemberRole::Dialling(Dialling { leader, to: master, since: cx.now.mono });
        let delay = match (may_wait, core::mem::take(&mut ensemble.promised_later_epoch)) {
            (true, _) => ensemble.config.observing.reconnect_delay,
            (false, true) => OUTSIDE_FOR,
            (false, false) => 0,
        };
        if delay == 0 {
            return cx.effects.push(Effect::Dial { search_id: ensemble.search_id, to });
        }
        let until = cx.now.mono.after(ensemble.master_retry.some_time(delay));
        ensemble.master_retry.waiting = Some((until, AfterWait::Dial(to)));
    }

    /// Ends a wait that is over.
    pub(super) fn end_master_wait(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some((_, then)) = ensemble.master_retry.waiting.filter(|(until, _)| *until <= cx.now.mono) else {
            return;
        };
        ensemble.master_retry.waiting = None;
        match then {
            AfterWait::Elect => self.begin_election(cx),
            AfterWait::Dial(to) => cx.effects.push(Effect::Dial { search_id: ensemble.search_id, to }),
        }
    }
}
