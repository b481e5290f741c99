//! A learner's way to its leader's history, and along with it (`Learner.syncWithLeader`, `Follower`,
//! `Observer`).
//!
//! Outputs are in the order in which they must become true. What waits for the disk says so: it may leave once
//! all that was to be saved before it is durable. That one rule is what upstream had to mend several times: the
//! epoch is promised only when it is on disk, and NEWLEADER is acknowledged only when all that precedes it is.

use crate::{history::Record, leading::DurableState};
use alloc::{collections::VecDeque, vec::Vec};
use ostler_proto::{
    id::{Epoch, Zxid},
    planted::{self, Bug},
};

/// What a leader has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromLeader {
    /// LEADERINFO: the epoch that it proposes.
    LeaderInfo(Epoch),
    /// What this server has is the beginning of what follows.
    Diff,
    /// Back to here.
    Trunc(Zxid),
    /// A whole tree has come with this packet.
    Snap(Zxid),
    /// To be logged.
    Proposal(Zxid, Record),
    /// A quorum has it.
    Commit(Zxid),
    /// Both at once.
    Inform(Zxid, Record),
    /// The end of the history.
    NewLeader(Epoch),
    /// The epoch has begun.
    UpToDate,
    /// A heartbeat.
    Ping(Zxid),
}

/// What shall be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LearningOutput {
    /// Save this as the accepted epoch.
    SaveAccepted(Epoch),
    /// Promise to follow no earlier epoch. Waits for the disk.
    AckEpoch {
        /// The last transaction in the log, or what asks for a whole tree.
        last: Zxid,
        /// `None` where the epoch was accepted before: then it counts for nothing.
        current: Option<Epoch>,
    },
    /// Take everything after this off the log and the tree.
    Truncate(Zxid),
    /// Make the tree that has come this server's, in memory and on disk.
    Install(Zxid),
    /// Log a record.
    Append(Zxid, Record),
    /// Apply what was logged, up to here.
    Commit(Zxid),
    /// Save this as the current epoch.
    SaveCurrent(Epoch),
    /// Acknowledge. Waits for the disk.
    Ack(Zxid),
    /// Serve clients.
    Serve(Epoch),
    /// Answer a heartbeat.
    Pong(Zxid),
    /// Close the connection and look for a leader again.
    HangUp(HangUp),
}

/// Why a leader is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangUp {
    /// It proposes an epoch below one that was promised to another.
    StaleEpoch {
        /// Its own.
        proposed: Epoch,
        /// What this server has accepted.
        accepted: Epoch,
    },
    /// What it said does not belong here.
    OutOfTurn,
    /// Something is missing between two records.
    Gap {
        /// The last that this server has.
        last: Zxid,
        /// What came.
        next: Zxid,
    },
    /// It commits something else than what is next.
    UnmatchedCommit {
        /// What is next.
        expected: Zxid,
        /// What it commits.
        committed: Zxid,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Has said who it is.
    Greeting,
    /// Has promised the epoch.
    Promised,
    /// Takes over the history.
    Syncing,
    /// Has it; the epoch has not begun.
    Ready,
    /// Goes along.
    Following,
    /// Has hung up.
    Gone,
}

/// A learner, from its connection to the leader to the end of that.
#[derive(Debug)]
pub struct Learning {
    own: DurableState,
    observer: bool,
    /// What this server has cannot be cut back.
    wants_tree: bool,
    epoch: Epoch,
    stage: Stage,
    /// The last in the log.
    last: Zxid,
    /// Logged and not committed.
    pending: VecDeque<Zxid>,
    /// The end of the tree that has come, until the epoch begins. A Java leader looks at it after it has begun to forward:
    /// what it forwards first may be in the tree, and is not taken twice. Upstream's learners are as lenient.
    tree_through: Zxid,
}

impl Learning {
    /// Connected, and FOLLOWERINFO or OBSERVERINFO is sent.
    pub fn new(own: DurableState, observer: bool) -> Learning {
        Learning {
            own,
            observer,
            wants_tree: false,
            epoch: own.accepted,
            stage: Stage::Greeting,
            last: own.last,
            pending: VecDeque::new(),
            tree_through: Zxid::ZERO,
        }
    }

    /// Asks for a whole tree, as a cut would leave less here than the leader believes.
    pub fn wanting_tree(mut self) -> Learning {
        self.wants_tree = true;
        self
    }

    /// Whether it goes along without a vote.
    pub fn observes(&self) -> bool {
        self.observer
    }

    /// Whether clients are served.
    pub fn is_following(&self) -> bool {
        self.stage == Stage::Following
    }

    /// The leader has spoken.
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
                // What the leader had proposed and not committed is on disk by then, too.
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
            (Stage::Following, From::Ping(zxid)) => out.push(LearningOutput::Pong(zxid)),
            _ => self.hang_up(HangUp::OutOfTurn, out),
        }
    }

    fn promise(&mut self, epoch: Epoch, out: &mut Vec<LearningOutput>) {
        let accepted = self.own.accepted;
        // No other could follow it.
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

    /// The beginning of an epoch that no leader knows is answered with a whole tree, by Java's leaders as well. It is
    /// above all that there is: who compares it with what a leader has turns this server away rather than lose anything.
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
