//! Votes: the messages that servers exchange on the election port, and their bytes.
//!
//! The greeting that comes before them on a connection is in `crates/server/src/peers/election_wire.rs`.

use crate::{
    id::{Epoch, ServerId, Zxid},
    jute::{Reader, Writer},
};
use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// The state that a server names in its votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum PeerState {
    /// The server has no leader and searches for one.
    Looking = 0,
    /// The server follows a leader, as a participant.
    Following = 1,
    /// The server leads.
    Leading = 2,
    /// The server follows a leader, as an observer.
    Observing = 3,
}

impl PeerState {
    fn from_code(code: i32) -> Option<PeerState> {
        [PeerState::Looking, PeerState::Following, PeerState::Leading, PeerState::Observing]
            .into_iter()
            .find(|state| *state as i32 == code)
    }
}

/// A server that votes can back. Candidates are compared by the fields in their order: the later epoch wins, then the
/// later zxid, then the larger id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Candidate {
    /// The candidate's current epoch: the epoch of the last leader whose history it has (`peerEpoch`).
    pub epoch: Epoch,
    /// The last transaction in the candidate's log.
    pub zxid: Zxid,
    /// The candidate's server id.
    pub id: ServerId,
}

/// A vote as servers send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The sender's state.
    pub state: PeerState,
    /// The candidate that the sender backs. `None` from an observer, and from a server whose database is not trusted:
    /// such a vote counts for no candidate.
    pub candidate: Option<Candidate>,
    /// The election round: the sender's logical clock, or the round of the vote that elected its leader.
    pub round: u64,
    /// The version of the format. Votes below version 2 carry no configuration.
    pub version: i32,
    /// The text of the sender's configuration; empty in the older formats.
    pub config: String,
}

/// The version of the format that [`Notification::write`] writes.
pub const NOTIFICATION_VERSION: i32 = 2;
/// The value of server id, zxid and epoch in a vote without a candidate.
const NO_CANDIDATE: i64 = i64::MIN;
/// The highest round that is accepted. A server takes over later rounds from others, so a round near the end of the
/// numbers would leave none for the next elections.
const ROUND_MAX: i64 = 1 << 48;
/// The value of epoch and round if the leader was suggested by a leader that left, without an election.
const SUGGESTED: i64 = -1;
/// Lengths of the two older formats, in bytes.
const WITHOUT_EPOCH: usize = 28;
const WITHOUT_VERSION: usize = 40;

/// The reason why bytes are not a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotificationError {
    /// The message is shorter than its format.
    #[error("a vote of {0} bytes is too short")]
    Short(usize),
    /// The state is none of [`PeerState`].
    #[error("there is no server state {0}")]
    State(i32),
    /// The epoch of the candidate does not fit into 32 bits.
    #[error("{0} is not an epoch")]
    Epoch(i64),
    /// The round is so high that it would leave too few for the next elections.
    #[error("round {0} is higher than any ensemble reaches")]
    Round(i64),
    /// The configuration is longer than the rest of the message.
    #[error("a configuration of {0} bytes does not fit the message")]
    Config(i32),
}

impl Notification {
    /// Reads a message, without its length prefix. The older formats are recognized by the length.
    pub fn read(bytes: &[u8]) -> Result<Notification, NotificationError> {
        let short = |_| NotificationError::Short(bytes.len());
        let mut r = Reader::new(bytes);
        let state = r.i32().map_err(short)?;
        let (leader, zxid, round) =
            (r.i64().map_err(short)?, r.i64().map_err(short)?, r.i64().map_err(short)?);
        let epoch = if bytes.len() == WITHOUT_EPOCH { zxid >> 32 } else { r.i64().map_err(short)? };
        let (mut version, mut config) = (0, String::new());
        if bytes.len() > WITHOUT_VERSION {
            version = r.i32().map_err(short)?;
        }
        if version > 1 {
            let length = r.i32().map_err(short)?;
            let text = usize::try_from(length).ok().and_then(|length| r.take(length).ok());
            config = String::from_utf8_lossy(text.ok_or(NotificationError::Config(length))?).to_string();
        }
        let state = PeerState::from_code(state).ok_or(NotificationError::State(state))?;
        let candidate = if leader == NO_CANDIDATE || zxid < 0 {
            None
        } else {
            // An upstream server sends -1 if its leader was suggested by a leader that left.
            let epoch = if epoch == SUGGESTED { zxid >> 32 } else { epoch };
            let epoch = u32::try_from(epoch).map_err(|_| NotificationError::Epoch(epoch))?;
            Some(Candidate { epoch: Epoch(epoch), zxid: Zxid::from_wire(zxid), id: ServerId(leader) })
        };
        if round > ROUND_MAX {
            return Err(NotificationError::Round(round));
        }
        Ok(Notification { state, candidate, round: round.max(0) as u64, version, config })
    }

    /// Appends the message, without its length prefix.
    pub fn write(&self, out: &mut Vec<u8>) {
        let vote = self.candidate.map_or([NO_CANDIDATE; 3], |candidate| {
            [candidate.id.0, candidate.zxid.to_wire(), candidate.epoch.0.into()]
        });
        out.i32(self.state as i32);
        out.i64(vote[0]);
        out.i64(vote[1]);
        out.i64(self.round as i64);
        out.i64(vote[2]);
        out.i32(NOTIFICATION_VERSION);
        out.buffer(Some(self.config.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn vote() -> Notification {
        Notification {
            state: PeerState::Looking,
            candidate: Some(Candidate { epoch: Epoch(5), zxid: Zxid::new(Epoch(5), 9), id: ServerId(3) }),
            round: 7,
            version: NOTIFICATION_VERSION,
            config: "version=0".into(),
        }
    }

    #[test]
    fn a_vote_has_the_bytes_of_java() {
        let mut bytes = Vec::new();
        vote().write(&mut bytes);
        let mut expected = vec![0, 0, 0, 0];
        for number in [3_i64, 0x5_0000_0009, 7, 5] {
            expected.extend(number.to_be_bytes());
        }
        expected.extend([0, 0, 0, 2, 0, 0, 0, 9]);
        expected.extend(b"version=0");
        assert_eq!(bytes, expected);
        assert_eq!(Notification::read(&bytes), Ok(vote()));
    }

    #[test]
    fn older_formats_are_recognized_by_their_length() {
        let mut bytes = Vec::new();
        vote().write(&mut bytes);
        let old = |length: usize| Notification::read(&bytes[..length]);
        assert_eq!(old(27), Err(NotificationError::Short(27)));
        for length in [28, 36] {
            assert!(old(length).is_ok_and(|n| n.version == 0 && n.candidate == vote().candidate));
        }
        assert_eq!(old(43), Err(NotificationError::Short(43)));
        assert_eq!(old(50), Err(NotificationError::Config(9)));
    }

    #[test]
    fn a_vote_without_candidate_is_read_as_it_was_written() {
        let without_candidate = Notification { candidate: None, state: PeerState::Observing, ..vote() };
        let mut bytes = Vec::new();
        without_candidate.write(&mut bytes);
        assert_eq!(Notification::read(&bytes), Ok(without_candidate));
    }

    #[test]
    fn a_suggested_leader_gets_the_epoch_of_its_zxid() {
        let mut bytes = Vec::new();
        vote().write(&mut bytes);
        bytes[20..28].copy_from_slice(&(-1_i64).to_be_bytes());
        bytes[28..36].copy_from_slice(&(-1_i64).to_be_bytes());
        assert_eq!(Notification::read(&bytes), Ok(Notification { round: 0, ..vote() }));
        bytes[20..28].copy_from_slice(&i64::MAX.to_be_bytes());
        assert_eq!(Notification::read(&bytes), Err(NotificationError::Round(i64::MAX)));
        bytes[28..36].copy_from_slice(&(-2_i64).to_be_bytes());
        assert_eq!(Notification::read(&bytes), Err(NotificationError::Epoch(-2)));
    }

    #[test]
    fn candidates_compare_by_epoch_then_zxid_then_id() {
        let of = |epoch, zxid, id| Candidate { epoch: Epoch(epoch), zxid: Zxid(zxid), id: ServerId(id) };
        assert!(of(2, 0, 1) > of(1, 9, 9));
        assert!(of(2, 3, 1) > of(2, 2, 9));
        assert!(of(2, 3, 2) > of(2, 3, 1));
    }
}
