//! What servers tell each other on the election port: the greeting of a connection, and votes.

use crate::{
    id::{Epoch, ServerId, Zxid},
    jute::{Reader, Writer},
};
use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// What a server does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum PeerState {
    /// It has no leader and seeks one.
    Looking = 0,
    /// It follows a leader, and votes.
    Following = 1,
    /// It leads.
    Leading = 2,
    /// It follows a leader, and does not vote.
    Observing = 3,
}

impl PeerState {
    fn from_code(code: i32) -> Option<PeerState> {
        [PeerState::Looking, PeerState::Following, PeerState::Leading, PeerState::Observing]
            .into_iter()
            .find(|state| *state as i32 == code)
    }
}

/// Somebody who may be voted for. The order of the fields is the order of candidates: the later epoch wins,
/// then the later zxid, then the larger id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// The epoch of the last leader whose history it has (`peerEpoch`).
    pub epoch: Epoch,
    /// The last transaction in its log.
    pub zxid: Zxid,
    /// Who.
    pub id: ServerId,
}

/// A vote, as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The sender's state.
    pub state: PeerState,
    /// Whom the sender backs. `None` for an observer, and for a server whose database is not trusted: such a
    /// vote counts for nobody.
    pub candidate: Option<Candidate>,
    /// The round of the election: the sender's logical clock, or that of the vote that elected its leader.
    pub round: u64,
    /// The format: 0 had no configuration.
    pub version: i32,
    /// The sender's configuration; empty in the older formats.
    pub config: String,
}

/// The format that is written.
pub const NOTIFICATION_VERSION: i32 = 2;
/// What stands in all three numbers of a vote for nobody.
const NOBODY: i64 = i64::MIN;
/// Rounds are taken over from others: a later one than this would leave too few.
const ROUND_MAX: i64 = 1 << 48;
/// What stands in the place of the epoch, and of the round, where no election was held.
const SUGGESTED: i64 = -1;
/// Lengths of the two older formats.
const WITHOUT_EPOCH: usize = 28;
const WITHOUT_VERSION: usize = 40;

/// Why bytes are no vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotificationError {
    /// Shorter than the oldest format.
    #[error("a vote of {0} bytes is too short")]
    Short(usize),
    /// A state that does not exist.
    #[error("there is no server state {0}")]
    State(i32),
    /// A candidate whose epoch has more than 32 bits.
    #[error("{0} is no epoch")]
    Epoch(i64),
    /// A round that would leave too few after it.
    #[error("round {0} is further than any ensemble has come")]
    Round(i64),
    /// A configuration that is longer than the message.
    #[error("a configuration of {0} bytes does not fit the message")]
    Config(i32),
}

impl Notification {
    /// Reads a message, without its length. The total length tells the older formats.
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
        let candidate = if leader == NOBODY || zxid < 0 {
            None
        } else {
            // Upstream's server that leads or follows by the suggestion of a leader that left says -1.
            let epoch = if epoch == SUGGESTED { zxid >> 32 } else { epoch };
            let epoch = u32::try_from(epoch).map_err(|_| NotificationError::Epoch(epoch))?;
            Some(Candidate { epoch: Epoch(epoch), zxid: Zxid::from_wire(zxid), id: ServerId(leader) })
        };
        if round > ROUND_MAX {
            return Err(NotificationError::Round(round));
        }
        Ok(Notification { state, candidate, round: round.max(0) as u64, version, config })
    }

    /// Appends the message, without its length.
    pub fn write(&self, out: &mut Vec<u8>) {
        let vote = self.candidate.map_or([NOBODY; 3], |candidate| {
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
    fn the_fields_are_where_java_has_them() {
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
    fn the_older_formats_are_told_by_their_length() {
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
    fn a_vote_for_nobody_survives_its_bytes() {
        let nobody = Notification { candidate: None, state: PeerState::Observing, ..vote() };
        let mut bytes = Vec::new();
        nobody.write(&mut bytes);
        assert_eq!(Notification::read(&bytes), Ok(nobody));
    }

    #[test]
    fn a_leader_by_suggestion_has_the_epoch_of_its_zxid() {
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
