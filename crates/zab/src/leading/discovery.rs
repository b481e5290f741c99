//! Discovery (Zab's phase 1): a new leader finds the highest epoch that a quorum has accepted, takes the next one, and
//! asks for a promise. No server of that quorum may have a newer history than the leader.

use super::{
    AwaitedAcks, EPOCHS_AHEAD_MAX, Leading, LeadingOutput, Learner, LearnerOrigin, LearnerStage, LinkId,
    Refusal, Stage, StepDown,
};
use crate::time::Mono;
use alloc::{collections::BTreeSet, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::id::{Epoch, ServerId, Zxid};

/// A learner's first packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Greeting {
    pub(super) id: ServerId,
    pub(super) origin: LearnerOrigin,
    pub(super) observer: bool,
    /// The highest epoch that it has accepted.
    pub(super) accepted: Epoch,
    /// It can move on to a later epoch on the same connection.
    pub(super) moves: bool,
}

impl Leading {
    /// A learner's first packet has come: FOLLOWERINFO or OBSERVERINFO.
    pub(super) fn greeted(
        &mut self,
        now: Mono,
        link: LinkId,
        Greeting { id, origin, observer, accepted, moves }: Greeting,
        out: &mut Vec<LeadingOutput>,
    ) {
        // The new epoch is above each learner's accepted epoch, and epochs never go back: a wrong one would use up the
        // epochs of the ensemble.
        let own = self.own.accepted;
        if accepted.0.saturating_sub(own.0) > EPOCHS_AHEAD_MAX || accepted.next().is_none() {
            return out.push(LeadingOutput::Refuse {
                link,
                server: Some(id),
                why: Refusal::EpochTooFar { accepted, own },
            });
        }
        let refusal = if id == self.me || self.learners.contains_key(&link) {
            Some(Refusal::SameId)
        } else {
            self.replace_duplicate(now, id, origin, out).or_else(|| self.too_many_unsynced(id))
        };
        if let Some(why) = refusal {
            return out.push(LeadingOutput::Refuse { link, server: Some(id), why });
        }
        let mut stage = LearnerStage::Greeted;
        if let Stage::Discovery { highest } = &mut self.stage {
            *highest = (*highest).max(accepted);
        } else if !matches!(self.stage, Stage::Epoch { saved: false, .. }) && self.moving.is_none() {
            stage = LearnerStage::EpochSent;
            out.push(LeadingOutput::LeaderInfo { link, epoch: self.epoch });
        }
        let learner = Learner {
            id,
            observer,
            origin,
            moves,
            stage,
            heard: now,
            progressed_at: now,
            lost_data: false,
            acked_before_history: Zxid::ZERO,
            awaited_acks: AwaitedAcks::default(),
        };
        self.learners.insert(link, learner);
        self.consider_epoch(now, out);
    }

    /// If a quorum is connected: the new epoch is one above the highest that any of them has accepted.
    pub(super) fn consider_epoch(&mut self, now: Mono, out: &mut Vec<LeadingOutput>) {
        let Stage::Discovery { highest } = self.stage else { return };
        if !self.electorate.is_quorum(|server| self.is_here(server)) {
            return;
        }
        let Some(next) = highest.next() else {
            return out.push(LeadingOutput::StepDown(StepDown::NoEpochLeft));
        };
        self.epoch = next;
        if planted::is(Bug::EpochReused) && highest.0 > 0 {
            self.epoch = highest;
        }
        self.deadline = now.after(self.timing.init);
        self.stage = Stage::Epoch { saved: false, acks: BTreeSet::new() };
        out.push(LeadingOutput::SaveAccepted(self.epoch));
        if planted::is(Bug::EpochNotSaved) {
            self.accepted_saved(now, out);
        }
    }

    /// The accepted epoch is on disk: it can be sent to learners.
    pub fn accepted_saved(&mut self, now: Mono, out: &mut Vec<LeadingOutput>) {
        self.next_accepted_saved(out);
        let Stage::Epoch { saved, .. } = &mut self.stage else { return };
        *saved = true;
        for (link, learner) in &mut self.learners {
            if learner.stage == LearnerStage::Greeted {
                (learner.stage, learner.progressed_at) = (LearnerStage::EpochSent, now);
                out.push(LeadingOutput::LeaderInfo { link: *link, epoch: self.epoch });
            }
        }
        self.consider_history(now, out);
    }

    /// A learner has promised the epoch, or cannot. It says what it has.
    pub(super) fn epoch_acked(
        &mut self,
        now: Mono,
        link: LinkId,
        last: Zxid,
        current: Option<Epoch>,
        out: &mut Vec<LeadingOutput>,
    ) {
        let established = self.is_established();
        let Some(learner) = self.learners.get_mut(&link) else { return };
        let server = Some(learner.id);
        if learner.stage == LearnerStage::Active && learner.moves {
            return self.next_epoch_acked(link, current, out);
        }
        if learner.stage != LearnerStage::EpochSent {
            return out.push(LeadingOutput::Refuse { link, server, why: Refusal::OutOfTurn });
        }
        let has_nothing = last == Zxid::ZERO && current.is_none_or(|current| current == Epoch(0));
        if has_nothing && !established && self.servers_with_data.contains(&learner.id) {
            learner.lost_data = true;
            out.push(LeadingOutput::DataLost(learner.id));
        }
        if let Stage::Epoch { acks, .. } = &mut self.stage {
            let knows_more = current.filter(|current| (*current, last) > (self.own.current, self.own.last));
            if !learner.observer && (current.is_none() || knows_more.is_some()) {
                self.unwilling.insert(learner.id);
            } else if !learner.observer && !learner.lost_data {
                acks.insert(learner.id);
            }
            if let Some(current) = knows_more {
                self.learners.remove(&link);
                out.push(LeadingOutput::Refuse { link, server, why: Refusal::Ahead { current, last } });
            } else {
                learner.stage = LearnerStage::EpochAcked(last);
                self.consider_history(now, out);
            }
            return self.step_down_if_unpromised(out);
        }
        // The leader's history is decided, so this learner's history is not compared with it.
        (learner.stage, learner.progressed_at) = (LearnerStage::Syncing, now);
        out.push(LeadingOutput::Synchronise { link, last });
    }

    /// Steps down if no quorum can promise this epoch any more. Upstream waits for `initLimit`.
    pub(super) fn step_down_if_unpromised(&self, out: &mut Vec<LeadingOutput>) {
        if !self.electorate.is_quorum(|server| self.may_promise(server)) {
            out.push(LeadingOutput::StepDown(StepDown::EpochNotAccepted));
        }
    }

    /// Whether a server has promised the epoch or may still do so.
    pub(super) fn may_promise(&self, server: ServerId) -> bool {
        let Stage::Epoch { acks, .. } = &self.stage else { return true };
        acks.contains(&server) || !self.unwilling.contains(&server)
    }

    /// If a quorum has promised the epoch: none of them has a newer history than this server, so synchronization
    /// begins.
    pub(super) fn consider_history(&mut self, now: Mono, out: &mut Vec<LeadingOutput>) {
        let Stage::Epoch { saved: true, acks } = &self.stage else { return };
        if !self.electorate.is_quorum(|server| server == self.me || acks.contains(&server)) {
            return;
        }
        self.deadline = now.after(self.timing.init);
        self.stage = Stage::Sync { saved: false, acks: BTreeSet::new() };
        out.push(LeadingOutput::SaveCurrent(self.epoch));
        for (link, learner) in &mut self.learners {
            if let LearnerStage::EpochAcked(last) = learner.stage {
                (learner.stage, learner.progressed_at) = (LearnerStage::Syncing, now);
                out.push(LeadingOutput::Synchronise { link: *link, last });
            }
        }
    }
}
