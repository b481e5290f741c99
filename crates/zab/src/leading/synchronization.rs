//! Synchronization (Zab's phase 2): learners get the leader's history. The epoch begins when a quorum has it on disk.

use super::{Leading, LeadingOutput, LearnerStage, LinkId, Refusal, Stage};
use crate::time::Mono;
use alloc::vec::Vec;
use ostler_planted::{self as planted, Bug};
use ostler_proto::id::{ServerId, Zxid};

impl Leading {
    /// A learner has acknowledged a zxid.
    pub(super) fn acked(&mut self, now: Mono, link: LinkId, zxid: Zxid, out: &mut Vec<LeadingOutput>) {
        let new_leader = Zxid::new(self.epoch, 0);
        let Some(learner) = self.learners.get_mut(&link) else { return };
        match learner.stage {
            LearnerStage::Syncing if zxid == new_leader => self.new_leader_acked(now, link, out),
            LearnerStage::Syncing if zxid.epoch() == self.epoch => {
                learner.acked_before_history = learner.acked_before_history.max(zxid);
            }
            LearnerStage::Syncing => {}
            // A learner acknowledges UPTODATE, too, with the zxid of NEWLEADER, whose counter is 0.
            LearnerStage::Synced | LearnerStage::Active if zxid.counter() == 0 => {
                self.border_acked(link, zxid, out);
            }
            LearnerStage::Synced | LearnerStage::Active => {
                learner.awaited_acks.acknowledged(zxid);
                out.push(LeadingOutput::Acknowledged { from: learner.id, zxid });
            }
            LearnerStage::Greeted | LearnerStage::EpochSent | LearnerStage::EpochAcked(_) => {
                let server = Some(learner.id);
                out.push(LeadingOutput::Refuse { link, server, why: Refusal::OutOfTurn });
            }
        }
    }

    /// A learner has acknowledged NEWLEADER: it has the history on disk.
    fn new_leader_acked(&mut self, now: Mono, link: LinkId, out: &mut Vec<LeadingOutput>) {
        let Some(learner) = self.learners.get_mut(&link) else { return };
        learner.stage = LearnerStage::Synced;
        let (from, acked) = (learner.id, learner.acked_before_history);
        let counts = !learner.observer && !learner.lost_data;
        let is_miscounted = planted::is(Bug::ObserverCounts) && learner.observer;
        if let Stage::Sync { acks, .. } = &mut self.stage {
            if is_miscounted {
                let mut voters = self.electorate.current.voters();
                let missing = voters.find(|of| *of != self.me && !acks.contains(of));
                acks.extend(missing);
            }
            if counts {
                acks.insert(from);
            }
        }
        if !self.is_established() {
            return self.consider_broadcast(now, out);
        }
        self.up_to_date(now, out);
        if acked > Zxid::ZERO {
            out.push(LeadingOutput::Acknowledged { from, zxid: acked });
        }
    }

    /// The current epoch is on disk: this server counts towards the quorum that has the history.
    pub fn current_saved(&mut self, now: Mono, out: &mut Vec<LeadingOutput>) {
        self.border_saved(out);
        let Stage::Sync { saved, .. } = &mut self.stage else { return };
        *saved = true;
        self.consider_broadcast(now, out);
    }

    /// If a quorum has the history on disk, the epoch begins.
    pub(super) fn consider_broadcast(&mut self, now: Mono, out: &mut Vec<LeadingOutput>) {
        let Stage::Sync { saved, acks } = &self.stage else { return };
        let has = |server: ServerId| (server == self.me && *saved) || acks.contains(&server);
        if !self.electorate.is_quorum(has) {
            return;
        }
        self.stage = Stage::Broadcast;
        out.push(LeadingOutput::Established(self.epoch));
        self.up_to_date(now, out);
    }

    /// Sends UPTODATE to learners that have the history. Only from then on do they answer heartbeats, so their silence
    /// counts from now.
    pub(super) fn up_to_date(&mut self, now: Mono, out: &mut Vec<LeadingOutput>) {
        for (link, learner) in &mut self.learners {
            if learner.stage == LearnerStage::Synced {
                (learner.stage, learner.heard) = (LearnerStage::Active, now);
                out.push(LeadingOutput::UpToDate(*link));
            }
        }
    }
}
