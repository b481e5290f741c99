//! The text of votes and packets in a trace. The tests of the core use the text of votes, too.

use ostler_proto::election::{Notification, PeerState};

/// A vote in few words, with the names of upstream's log.
pub(crate) fn vote(of: &Notification) -> String {
    let state = match of.state {
        PeerState::Looking => "LOOKING",
        PeerState::Following => "FOLLOWING",
        PeerState::Leading => "LEADING",
        PeerState::Observing => "OBSERVING",
    };
    let candidate = of.candidate.map_or("nobody".to_owned(), |of| {
        format!("{} (peerEpoch {}, zxid {})", of.id.0, of.epoch.0, of.zxid)
    });
    format!("VOTE {state} round {} for {candidate}", of.round)
}
