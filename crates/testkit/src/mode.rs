//! The part of a server in its ensemble, as clients see it.

use ostler_server_core::quorum::MemberMode;
use std::fmt;

/// The part of a server in its ensemble, as clients see it. It is written as in the answer to the four-letter word
/// `srvr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// It is in no ensemble.
    Standalone,
    /// It has no leader, and serves no clients.
    Looking,
    /// It has no leader, and serves clients that may read only.
    ReadOnly,
    /// It leads.
    Leader,
    /// It follows as a participant.
    Follower,
    /// It follows as an observer.
    Observer,
}

impl Mode {
    pub(crate) fn of(member: Option<MemberMode>) -> Mode {
        match member {
            None => Mode::Standalone,
            Some(MemberMode::Looking) => Mode::Looking,
            Some(MemberMode::ReadOnly) => Mode::ReadOnly,
            Some(MemberMode::Leader) => Mode::Leader,
            Some(MemberMode::Follower) => Mode::Follower,
            Some(MemberMode::Observer) => Mode::Observer,
        }
    }

    /// Whether it reads and writes for clients.
    pub fn serves(self) -> bool {
        !matches!(self, Mode::Looking | Mode::ReadOnly)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Standalone => "standalone",
            Mode::Looking => "looking",
            Mode::ReadOnly => "read-only",
            Mode::Leader => "leader",
            Mode::Follower => "follower",
            Mode::Observer => "observer",
        })
    }
}
