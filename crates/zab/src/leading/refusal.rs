//! Why a leader sends a learner away, in words for the log.

use core::fmt;
use ostler_proto::id::{Epoch, Zxid};

/// Why a learner is sent away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another connection of the same id lives.
    SameId,
    /// Its history is newer than the leader's: it should lead.
    Ahead {
        /// The epoch of its history.
        current: Epoch,
        /// Its last transaction.
        last: Zxid,
    },
    /// It says that it has accepted an epoch that this ensemble cannot have come to.
    EpochTooFar {
        /// What it says.
        accepted: Epoch,
        /// The highest that the leader itself had accepted.
        own: Epoch,
    },
    /// It has said nothing for too long.
    Silent,
    /// It is alive, but does not accept the epoch, or does not take over the history.
    NoProgress,
    /// Another one has come with its id, for which more speaks.
    Replaced,
    /// This number of learners without a vote is in synchronization already.
    TooMany(usize),
    /// It is alive, but has not acknowledged this proposal for too long.
    DiskStalled(Zxid),
    /// What it said does not belong here.
    OutOfTurn,
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
            Refusal::OutOfTurn => f.write_str("what it said does not belong here"),
        }
    }
}
