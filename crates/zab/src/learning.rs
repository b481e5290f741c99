//! A learner, from its connection to the leader to the loss of that leader: it promises the epoch, takes over the
//! leader's history, then logs and acknowledges proposals (`Learner.syncWithLeader`, `Follower`, `Observer`).
//!
//! The caller carries out the outputs in order. An output that waits for the disk may be sent only when every earlier
//! output that saves something is on disk. So the epoch is promised only when it is on disk, and NEWLEADER is
//! acknowledged only when the whole history before it is. Upstream had to fix this rule several times.

use crate::{history::Record, leading::DurableState};
use alloc::{collections::VecDeque, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::id::{Epoch, Zxid};

/// A packet from the leader, as far as the learner's state needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromLeader {
    /// LEADERINFO: the leader proposes this epoch. The learner answers ACKEPOCH.
    LeaderInfo(Epoch),
    /// DIFF: this server's log is the beginning of the leader's history. The transactions that it lacks follow.
    Diff,
    /// TRUNC: the leader does not have this server's transactions after this zxid. They have to be removed.
    Trunc(Zxid),
    /// SNAP: a whole tree has come with this packet. It takes the place of everything that this server has.
    Snap(Zxid),
    /// PROPOSAL: a transaction to be logged. A follower acknowledges it; during synchronization it is acknowledged with
    /// NEWLEADER.
    Proposal(Zxid, Record),
    /// COMMIT: a quorum has the transaction, so it can be applied.
    Commit(Zxid),
    /// INFORM: a proposal and its commit in one, for an observer.
    Inform(Zxid, Record),
    /// NEWLEADER: the history is complete. The learner acknowledges it once all of it is on disk.
    NewLeader(Epoch),
    /// UPTODATE: a quorum has the history, so the epoch has begun and clients can be served.
    UpToDate,
    /// PING: a heartbeat. The learner answers it once the epoch has begun.
    Ping(Zxid),
}

/// An act that the server has to carry out as a learner, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LearningOutput {
    /// Save this as the accepted epoch. It comes with a LEADERINFO of a later epoch than the accepted one.
    SaveAccepted(Epoch),
    /// Send ACKEPOCH: this server promises to follow no earlier epoch. Waits for the disk.
    AckEpoch {
        /// The last transaction in the log; or the first zxid of an epoch that no leader knows, to ask for a whole
        /// tree.
        last: Zxid,
        /// This server's current epoch. `None` if it had accepted the epoch before: then the promise does not count.
        current: Option<Epoch>,
    },
    /// Remove all transactions after this one from the log and the tree.
    Truncate(Zxid),
    /// Put the tree that has come, which ends at this zxid, in the place of this server's tree, in memory and on disk.
    Install(Zxid),
    /// Append a transaction to the log.
    Append(Zxid, Record),
    /// Apply this transaction. It is the oldest that is logged and not applied.
    Commit(Zxid),
    /// Save this as the current epoch: the whole history of its leader has come.
    SaveCurrent(Epoch),
    /// Send ACK for everything up to this zxid. Waits for the disk.
    Ack(Zxid),
    /// Serve clients: the epoch has begun.
    Serve(Epoch),
    /// The leader has moved on to this epoch, and everything before it is committed. Clients are served as before.
    Moved(Epoch),
    /// Answer a heartbeat, with the zxid that came with it.
    Pong(Zxid),
    /// Close the connection to the leader, and look for a leader again.
    HangUp(HangUp),
}

/// Why a learner leaves its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "is", rename_all = "snake_case")
)]
pub enum HangUp {
    /// The leader proposes an epoch below one that this server has promised to another leader.
    StaleEpoch {
        /// The epoch that the leader proposes.
        proposed: Epoch,
        /// The accepted epoch of this server.
        accepted: Epoch,
    },
    /// The leader sent a packet that does not belong to this stage.
    OutOfTurn,
    /// Transactions are missing between the last one in the log and the one that came.
    Gap {
        /// The last transaction in this server's log.
        last: Zxid,
        /// The transaction that came.
        next: Zxid,
    },
    /// The leader commits another transaction than the oldest that is not committed.
    UnmatchedCommit {
        /// The oldest transaction that is not committed here.
        expected: Zxid,
        /// The transaction that the leader commits.
        committed: Zxid,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// FOLLOWERINFO or OBSERVERINFO is sent.
    Greeting,
    /// ACKEPOCH is sent, or waits for the disk.
    Promised,
    /// The history is coming.
    Syncing,
    /// The history is complete; the epoch has not begun.
    Ready,
    /// The epoch has begun: proposals come, and clients are served.
    Following,
    /// The leader was left. Later packets are ignored.
    Gone,
}

/// A move to the next epoch, at a learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moving {
    /// The next epoch is promised.
    Promised(Epoch),
    /// The border has come: later proposals are of the new epoch.
    PastBorder,
}

/// A learner, from its connection to the leader to the end of the connection.
#[derive(Debug)]
pub struct Learning {
    own: DurableState,
    observer: bool,
    /// This server could not cut its log back as its last leader wanted, so it asks for a whole tree.
    wants_tree: bool,
    epoch: Epoch,
    stage: Stage,
    /// The move of the leader to the next epoch, while it is under way: see [`crate::leading::moving`].
    moving: Option<Moving>,
    /// The last transaction in the log.
    last: Zxid,
    /// Transactions that are logged and not committed.
    pending: VecDeque<Zxid>,
    /// The last zxid of the tree that has come, until the epoch begins. A Java leader takes the tree after it has begun
    /// to forward proposals, so the first of them may be in the tree already. They are skipped, as upstream's learners
    /// do.
    tree_through: Zxid,
}

impl Learning {
    /// A learner that is connected to its leader and has sent FOLLOWERINFO or OBSERVERINFO.
    pub fn new(own: DurableState, observer: bool) -> Learning {
        Learning {
            own,
            observer,
            wants_tree: false,
            epoch: own.accepted,
            stage: Stage::Greeting,
            moving: None,
            last: own.last,
            pending: VecDeque::new(),
            tree_through: Zxid::ZERO,
        }
    }

    /// Makes the learner ask for a whole tree: if it were told to cut its log back, less would be left than the leader
    /// believes.
    pub fn wanting_tree(mut self) -> Learning {
        self.wants_tree = true;
        self
    }

    /// Whether it is an observer.
    pub fn observes(&self) -> bool {
        self.observer
    }

    /// Whether clients are served.
    pub fn is_following(&self) -> bool {
        self.stage == Stage::Following
    }

    /// Takes a packet from the leader.
    pub fn heard(&mut self, what: FromLeader, out: &mut Vec<LearningOutput>) {
        use FromLeader as From;
        match (self.stage, what) {
            (Stage::Gone, _) => {}
            (Stage::Greeting, From::LeaderInfo(epoch)) => self.promise(epoch, out),
            (Stage::Promised, From::Diff | From::Trunc(_)) if self.wants_tree => {
                self.hang_up(HangUp::OutOfTurn, out);
            }
            (Stage::Promised, From::Diff) => {
                self.stage = Stage::Syncing;
                self.save_current_early(out);
            }
            (Stage::Promised, From::Trunc(to)) => {
                self.save_current_early(out);
                self.restart_from(to);
                out.push(LearningOutput::Truncate(to));
            }
            (Stage::Promised, From::Snap(at)) => {
                self.restart_from(at);
                self.tree_through = at;
                out.push(LearningOutput::Install(at));
            }
            (Stage::Syncing | Stage::Ready | Stage::Following, From::Proposal(zxid, record)) => {
                self.proposed(zxid, record, out);
            }
            (Stage::Syncing | Stage::Ready | Stage::Following, From::Commit(zxid)) => {
                self.committed(zxid, out);
            }
            (Stage::Syncing | Stage::Ready | Stage::Following, From::Inform(zxid, record)) => {
                self.proposed(zxid, record, out);
                self.committed(zxid, out);
            }
            (Stage::Syncing, From::NewLeader(epoch)) if epoch == self.epoch => {
                self.stage = Stage::Ready;
                if planted::is(Bug::NewLeaderAckEarly) {
                    out.push(LearningOutput::Ack(Zxid::new(epoch, 0)));
                }
                if !planted::is(Bug::EpochBeforeHistory) {
                    out.push(LearningOutput::SaveCurrent(epoch));
                }
                if !planted::is(Bug::NewLeaderAckEarly) {
                    out.push(LearningOutput::Ack(Zxid::new(epoch, 0)));
                }
                // The proposals that the leader has not committed are on disk by then, too.
                if !self.observer {
                    out.extend(self.pending.iter().map(|zxid| LearningOutput::Ack(*zxid)));
                }
            }
            (Stage::Ready, From::UpToDate) => {
                self.stage = Stage::Following;
                self.tree_through = Zxid::ZERO;
                out.push(LearningOutput::Ack(Zxid::new(self.epoch, 0)));
                out.push(LearningOutput::Serve(self.epoch));
            }
            // The acknowledgement of NEWLEADER must be the first word after the history, and may still wait for
            // the disk: until the epoch has begun heartbeats are not answered.
            (Stage::Syncing | Stage::Ready, From::Ping(_)) => {}
            (Stage::Following, From::LeaderInfo(next)) if self.moving.is_none() => {
                self.promise_next(next, out)
            }
            (Stage::Following, From::NewLeader(epoch)) if self.moving == Some(Moving::Promised(epoch)) => {
                self.pass_border(epoch, out);
            }
            (Stage::Following, From::UpToDate)
                if self.moving == Some(Moving::PastBorder) && !self.has_pending_before_border() =>
            {
                self.moving = None;
                out.push(LearningOutput::Moved(self.epoch));
            }
            (Stage::Following, From::Ping(zxid)) => out.push(LearningOutput::Pong(zxid)),
            _ => self.hang_up(HangUp::OutOfTurn, out),
        }
    }

    fn promise(&mut self, epoch: Epoch, out: &mut Vec<LearningOutput>) {
        let accepted = self.own.accepted;
        // No later epoch could follow this one, so no other leader could ever be elected.
        if epoch > Epoch::LAST {
            return self.hang_up(HangUp::OutOfTurn, out);
        }
        if epoch < accepted && !planted::is(Bug::StaleEpochAccepted) {
            return self.hang_up(HangUp::StaleEpoch { proposed: epoch, accepted }, out);
        }
        let mut current = None;
        if epoch > accepted {
            out.push(LearningOutput::SaveAccepted(epoch));
            current = Some(self.own.current);
        }
        if planted::is(Bug::PromisedTwice) {
            current = Some(self.own.current);
        }
        (self.epoch, self.stage) = (epoch, Stage::Promised);
        out.push(LearningOutput::AckEpoch { last: self.last_to_tell(), current });
    }

    /// The leader moves on, and asks for a promise. This server has promised no later epoch than that of its leader: it
    /// would not follow that leader, see [`Learning::promise`].
    fn promise_next(&mut self, next: Epoch, out: &mut Vec<LearningOutput>) {
        if next > Epoch::LAST || next <= self.epoch {
            return self.hang_up(HangUp::OutOfTurn, out);
        }
        out.push(LearningOutput::SaveAccepted(next));
        (self.own.accepted, self.moving) = (next, Some(Moving::Promised(next)));
        out.push(LearningOutput::AckEpoch { last: self.last, current: Some(self.epoch) });
    }

    /// The border has come. The current epoch goes to the disk after everything before the border.
    fn pass_border(&mut self, epoch: Epoch, out: &mut Vec<LearningOutput>) {
        (self.epoch, self.own.current, self.moving) = (epoch, epoch, Some(Moving::PastBorder));
        if !planted::is(Bug::MoveNotSaved) {
            out.push(LearningOutput::SaveCurrent(epoch));
        }
        out.push(LearningOutput::Ack(Zxid::new(epoch, 0)));
    }

    fn has_pending_before_border(&self) -> bool {
        self.pending.front().is_some_and(|zxid| zxid.epoch() < self.epoch)
    }

    /// The last zxid to send with ACKEPOCH. To get a whole tree this server sends the first zxid of a later epoch:
    /// leaders answer that with SNAP, Java's too. It is above every zxid of the ensemble, so a leader that still
    /// compares it with its own history refuses this server. Nothing is lost then.
    fn last_to_tell(&self) -> Zxid {
        match self.epoch.next() {
            Some(unknown) if self.wants_tree => Zxid::new(unknown, 0),
            _ => self.own.last,
        }
    }

    fn save_current_early(&self, out: &mut Vec<LearningOutput>) {
        if planted::is(Bug::EpochBeforeHistory) {
            out.push(LearningOutput::SaveCurrent(self.epoch));
        }
    }

    fn restart_from(&mut self, zxid: Zxid) {
        (self.last, self.stage) = (zxid, Stage::Syncing);
    }

    fn proposed(&mut self, zxid: Zxid, record: Record, out: &mut Vec<LearningOutput>) {
        if zxid <= self.tree_through {
            return;
        }
        // The first proposal of an epoch comes after its border.
        if zxid.epoch() > self.epoch {
            return self.hang_up(HangUp::OutOfTurn, out);
        }
        let follows =
            if zxid.epoch() == self.last.epoch() { zxid.0 == self.last.0 + 1 } else { zxid > self.last };
        if !follows {
            return self.hang_up(HangUp::Gap { last: self.last, next: zxid }, out);
        }
        self.last = zxid;
        self.pending.push_back(zxid);
        out.push(LearningOutput::Append(zxid, record));
        if planted::is(Bug::UncommittedShown) && self.stage == Stage::Syncing {
            self.pending.pop_front();
            out.push(LearningOutput::Commit(zxid));
        }
        if self.stage != Stage::Syncing && !self.observer {
            out.push(LearningOutput::Ack(zxid));
        }
    }

    fn committed(&mut self, zxid: Zxid, out: &mut Vec<LearningOutput>) {
        if self.stage == Stage::Gone || zxid <= self.tree_through {
            return;
        }
        // Upstream ignores a commit of nothing: it was in the history already.
        let Some(expected) = self.pending.front().copied() else { return };
        if zxid != expected {
            return self.hang_up(HangUp::UnmatchedCommit { expected, committed: zxid }, out);
        }
        self.pending.pop_front();
        out.push(LearningOutput::Commit(zxid));
    }

    fn hang_up(&mut self, why: HangUp, out: &mut Vec<LearningOutput>) {
        self.stage = Stage::Gone;
        out.push(LearningOutput::HangUp(why));
    }
}
