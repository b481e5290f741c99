//! The end of a leader's counter: the leader moves on to the next epoch in place, with the learners that it has. There
//! is no election, and no client notices.
//!
//! # The steps
//!
//! These are the steps of a new leader, on connections that stand and with the packets that they always have:
//!
//! 1. The leader saves `e+1` as its accepted epoch. When that is on its disk it sends LEADERINFO to its followers.
//! 2. A follower saves `e+1` as its accepted epoch, and answers ACKEPOCH when that is on its disk. Proposals of `e` go on
//!    meanwhile.
//! 3. When a quorum has promised `e+1` (with the leader itself), the leader queues `e+1` as its current epoch, sends
//!    NEWLEADER to its followers, and numbers the next proposal `(e+1, 1)`, all in one step. NEWLEADER comes after the last
//!    proposal of `e` on each connection: it is the border.
//! 4. A follower that gets the border saves `e+1` as its current epoch, behind everything of `e` in the queue of its
//!    disk, and acknowledges the border when that is on disk. Proposals of `e+1` may follow at once; their records go to
//!    the disk after the current epoch.
//! 5. When a quorum has acknowledged the border, and everything of `e` is committed, the leader sends UPTODATE to its
//!    followers. Observers get LEADERINFO, NEWLEADER and UPTODATE at this point, between the last commit of `e` and the first
//!    of `e+1`.
//!
//! # Why it is safe
//!
//! *`e+1` has one leader.* A promise of an epoch is given once: a server whose accepted epoch is `e+1` already answers
//! without a promise. Nothing is numbered in `e+1` before a quorum has promised it. Any other leader of `e+1` would need a
//! quorum, too, and the two have a server in common. If that server promised `e+1` to the other first, the other has
//! `e+1`, and this leader never gets a quorum: it stays in `e` until it loses its followers. So an epoch that is promised
//! and not used is harmless, as after an election that fails.
//!
//! *A disk never has a record of `e+1` without the current epoch `e+1`, nor that without all of `e` and the accepted epoch
//! `e+1`.* The queue of the disk does everything in order, and syncs the log before it saves an epoch. So whatever a crash
//! leaves, the disk is in one of these states: (A) current epoch `e`, and a beginning of `e`; (B) current epoch `e+1`, and
//! exactly all of `e`; (C) as B, and a beginning of `e+1`. All come from one leader in the order of its stream, so each is
//! a beginning of the next. Elections compare the current epoch first and the last zxid then, which is this order. The best
//! server of a quorum therefore has what any of them has.
//!
//! *What is committed stays.* A proposal commits when a quorum has it on disk. An acknowledgement of `(e+1, 1)` implies B and
//! everything before, so the history of `e` is committed before anything of `e+1` is. A later leader is the best of
//! a quorum, which has a server in common with the one that committed. Its epoch is above each epoch that its quorum
//! has accepted. As a quorum has accepted `e+1` before anything was numbered in it, that epoch is at least `e+2`, even if its
//! leader is in state A and has never heard of the border. The part of `e+1` that others have is then taken from them by TRUNC or
//! SNAP, as with any leader that was lost.
//!
//! A server that promised `e+1` still acknowledges proposals of `e`. That is safe because the leader of both is the same, and its
//! history has all of them. A server that promises an epoch to another leader leaves this one first.
//!
//! *`(e+1, 0)` says "all of `e`".* A learner with this last zxid gets a DIFF from there: nothing is cut. So no server calls it
//! its last zxid while it has something of `e` that is not committed. The log ends with `(e, k)`, and the next record is
//! `(e+1, 1)`.
//!
//! # Servers that come meanwhile
//!
//! A learner that connects while the move is under way waits for LEADERINFO until the move is over, and then joins epoch
//! `e+1` like any other. So synchronization never crosses a border that is not committed. Afterwards a history with the border in
//! it looks like that of two leaders, so DIFF, TRUNC, SNAP, recovery, and Java's servers need nothing new.
//!
//! # Who can
//!
//! A learner says in its first packet that it can. Java ignores the bytes, and never gets one of these packets: the
//! leader begins only while all its learners can and are synchronized, whether they vote or not. A voter that is not connected
//! does not matter: it only sees a leader with a later epoch when it comes. If the leader cannot begin before its counter
//! is nearly full ([`crate::EpochLength`]), an election follows.

use super::{Leading, LeadingOutput, LearnerStage, LinkId, Refusal, Stage};
use crate::time::Mono;
use alloc::{collections::BTreeSet, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::id::{Epoch, ServerId, Zxid};

/// The move to the next epoch, while it is under way.
#[derive(Debug)]
pub(super) enum Move {
    /// Waits for a quorum to promise the next epoch.
    Promise { next: Epoch, saved: bool, acks: BTreeSet<ServerId> },
    /// The border is sent. Waits for a quorum to have it on disk, and then for the commit of everything before it.
    Border { saved: bool, acks: BTreeSet<ServerId>, on_disk: bool },
}

impl Leading {
    /// Begins the move to the next epoch, if the epoch has begun, no other move and no change of the electorate is under
    /// way, all learners are synchronized, and all of them can move.
    pub fn begin_move(&mut self, out: &mut Vec<LeadingOutput>) {
        let can = |of: &super::Learner| of.moves && of.stage == LearnerStage::Active;
        let all_can = self.moving.is_none()
            && self.is_established()
            && self.electorate.next.is_none()
            && self.learners.values().all(can)
            && self.electorate.is_quorum(|server| server == self.me || self.follows(server));
        let Some(next) = self.epoch.next().filter(|_| all_can) else { return };
        self.own.accepted = next;
        self.moving = Some(Move::Promise { next, saved: false, acks: BTreeSet::new() });
        out.push(LeadingOutput::SaveAccepted(next));
    }

    /// The followers that serve clients.
    pub fn active_followers(&self) -> impl Iterator<Item = LinkId> {
        let active = |of: &super::Learner| of.stage == LearnerStage::Active && !of.observer;
        self.learners.iter().filter(move |(_, of)| active(of)).map(|(link, _)| *link)
    }

    /// Whether a move is under way.
    pub fn is_moving(&self) -> bool {
        self.moving.is_some()
    }

    /// Whether a quorum has the border on disk, and only commits are waited for.
    pub fn is_border_on_disk(&self) -> bool {
        matches!(self.moving, Some(Move::Border { on_disk: true, .. }))
    }

    /// The next epoch is on this server's disk: it can be sent.
    pub(super) fn next_accepted_saved(&mut self, out: &mut Vec<LeadingOutput>) {
        let Some(Move::Promise { next, saved, .. }) = &mut self.moving else { return };
        *saved = true;
        let epoch = *next;
        out.extend(self.active_followers().map(|link| LeadingOutput::LeaderInfo { link, epoch }));
        self.consider_border(out);
    }

    /// A follower has answered LEADERINFO. An answer to an earlier move names an earlier current epoch.
    pub(super) fn next_epoch_acked(
        &mut self,
        link: LinkId,
        current: Option<Epoch>,
        out: &mut Vec<LeadingOutput>,
    ) {
        let Some(Move::Promise { acks, .. }) = &mut self.moving else { return };
        let Some(learner) = self.learners.get(&link).filter(|of| !of.observer) else { return };
        if current == Some(self.epoch) {
            acks.insert(learner.id);
            self.consider_border(out);
        }
    }

    /// If a quorum has promised the next epoch, it begins.
    fn consider_border(&mut self, out: &mut Vec<LeadingOutput>) {
        let Some(Move::Promise { next, saved: true, acks }) = &self.moving else { return };
        let next = *next;
        let promised = |server: ServerId| server == self.me || acks.contains(&server);
        if !self.electorate.is_quorum(promised) && !planted::is(Bug::MoveUnpromised) {
            return;
        }
        self.epoch = next;
        self.moving = Some(Move::Border { saved: false, acks: BTreeSet::new(), on_disk: false });
        out.push(LeadingOutput::MoveOn(next));
    }

    /// A learner has acknowledged a border. An acknowledgement of an earlier one is late.
    pub(super) fn border_acked(&mut self, link: LinkId, border: Zxid, out: &mut Vec<LeadingOutput>) {
        let Some(Move::Border { acks, .. }) = &mut self.moving else { return };
        let Some(learner) = self.learners.get(&link).filter(|of| !of.observer) else { return };
        if border == Zxid::new(self.epoch, 0) {
            acks.insert(learner.id);
            self.consider_end(out);
        }
    }

    /// The current epoch is on this server's disk.
    pub(super) fn border_saved(&mut self, out: &mut Vec<LeadingOutput>) {
        if let Some(Move::Border { saved, .. }) = &mut self.moving {
            *saved = true;
            self.consider_end(out);
        }
    }

    fn consider_end(&mut self, out: &mut Vec<LeadingOutput>) {
        let Some(Move::Border { saved, acks, on_disk: false }) = &self.moving else { return };
        let has = |server: ServerId| (server == self.me && *saved) || acks.contains(&server);
        if !self.electorate.is_quorum(has) {
            return;
        }
        if let Some(Move::Border { on_disk, .. }) = &mut self.moving {
            *on_disk = true;
        }
        self.own.current = self.epoch;
        out.push(LeadingOutput::BorderOnDisk(self.epoch));
    }

    /// A quorum has the border on disk, and everything before it is committed: the move is over. Learners that waited get
    /// the new epoch.
    pub fn border_committed(&mut self, now: Mono, out: &mut Vec<LeadingOutput>) {
        if !self.is_border_on_disk() {
            return;
        }
        self.moving = None;
        self.tell_of_border(out);
        for (link, of) in &mut self.learners {
            if of.stage == LearnerStage::Greeted {
                (of.stage, of.progressed_at) = (LearnerStage::EpochSent, now);
                out.push(LeadingOutput::LeaderInfo { link: *link, epoch: self.epoch });
            }
        }
    }

    /// At an observer master: its leader has moved on to this epoch, and everything before is committed here. An observer
    /// that cannot move, or is not synchronized yet, has to come again.
    pub fn relay_move(&mut self, epoch: Epoch, out: &mut Vec<LeadingOutput>) {
        debug_assert!(matches!(self.stage, Stage::Broadcast));
        self.epoch = epoch;
        self.own = super::DurableState { accepted: epoch, current: epoch, last: self.own.last };
        let stays = |of: &super::Learner| of.moves && of.stage == LearnerStage::Active;
        for (link, of) in self.learners.extract_if(.., |_, of| !stays(of)) {
            out.push(LeadingOutput::Refuse { link, server: Some(of.id), why: Refusal::EpochMoved });
        }
        self.tell_of_border(out);
    }

    fn tell_of_border(&self, out: &mut Vec<LeadingOutput>) {
        let epoch = self.epoch;
        let active = self.learners.iter().filter(|(_, of)| of.stage == LearnerStage::Active);
        out.extend(active.map(|(link, of)| match of.observer {
            true => LeadingOutput::MoveObserver { link: *link, epoch },
            false => LeadingOutput::UpToDate(*link),
        }));
    }

    /// Promises on a connection that was of the wrong server do not count.
    pub(super) fn forget_move_acks(&mut self, id: ServerId) {
        if let Some(Move::Promise { acks, .. } | Move::Border { acks, .. }) = &mut self.moving {
            acks.remove(&id);
        }
    }
}
