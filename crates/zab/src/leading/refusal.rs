//! Why a leader sends a learner away, in words for the log.

use core::fmt;
use ostler_proto::id::{Epoch, Zxid};

/// Why a learner is sent away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another server with this id is connected, or the learner has the leader's own id.
    SameId,
    /// Its history is newer than the leader's: it should lead.
    Ahead {
        /// The epoch of its history.
        current: Epoch,
        /// Its last transaction.
        last: Zxid,
    },
    /// Its accepted epoch is so far above the leader's that it cannot belong to this ensemble.
    EpochTooFar {
        /// The accepted epoch that the learner sent.
        accepted: Epoch,
        /// The accepted epoch of the leader.
        own: Epoch,
    },
    /// Nothing has come from it for too long.
    Silent,
    /// It is alive, but does not accept the epoch, or does not take over the history.
    NoProgress,
    /// Another server with this id has come, and is more likely the right one: see [`super::LearnerOrigin`].
    Replaced,
    /// This number of learners without a vote is in synchronization already.
    TooMany(usize),
    /// It is alive, but has not acknowledged this proposal for too long.
    DiskStalled(Zxid),
    /// It sent a packet that does not belong to its stage.
    OutOfTurn,
    /// The epoch has moved on in place, and it cannot move with it on this connection.
    EpochMoved,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::SameId => f.write_str(
                "another server with this id is connected: look for a second one with the same myid, or wait until the \
                 old connection is given up",
            ),
            Refusal::Ahead { current, last } => {
                write!(f, "it knows more than this leader: epoch {}, zxid {last}", current.0)
            }
            Refusal::EpochTooFar { accepted, own } => write!(
                f,
                "it says that it has accepted epoch {}, far above {} here: its data is another ensemble's, or its \
                 acceptedEpoch is damaged",
                accepted.0, own.0
            ),
            Refusal::DiskStalled(zxid) => {
                write!(f, "it lives, but has not written {zxid} to its disk within syncLimit: look at its disk")
            }
            Refusal::NoProgress => {
                f.write_str("it speaks, but has not accepted the epoch, or not taken over the history, for too long")
            }
            Refusal::Replaced => f.write_str(
                "another server has come with this id, and more speaks for it: its address, or that this one did not \
                 take over the history. Look for a second one with the same myid",
            ),
            Refusal::TooMany(there) => {
                write!(f, "{there} servers without a vote are being brought to the history: it may come again later")
            }
            Refusal::Silent => f.write_str("it has said nothing for too long"),
            Refusal::EpochMoved => f.write_str(
                "a new epoch has begun, and this connection cannot go on in it: it comes again, and follows in the new one",
            ),
            Refusal::OutOfTurn => f.write_str("what it said does not belong here"),
        }
    }
}
