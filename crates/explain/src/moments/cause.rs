//! Why a search for a leader began.

use crate::{records::Search, timeline::LineKind, words::duration};
use ostler_server_core::quorum::election_history::SearchReason;
use ostler_zab::{leading::StepDown, learning::HangUp};

/// The kind of the first line of a search.
pub(crate) fn kind(search: &Search) -> LineKind {
    match search.why {
        SearchReason::Started => LineKind::Start,
        SearchReason::SteppedDown(_) | SearchReason::CounterFull => LineKind::Ended,
        _ => LineKind::Loss,
    }
}

/// The reason in a sentence, without a capital letter.
pub(crate) fn cause(search: &Search) -> String {
    let before = search.before.map_or_else(|| "the leader".into(), |id| format!("server {id}"));
    match search.why {
        SearchReason::Started => "it starts.".into(),
        SearchReason::LeaderGone => match search.silent_ms {
            Some(ms) => {
                format!(
                    "the connection to {before} is gone; its last message came {} before.",
                    duration(ms as i64)
                )
            }
            None => format!("the connection to {before} is gone."),
        },
        SearchReason::ElectionVoid => format!("the others say that {before}, just elected, does not lead."),
        SearchReason::LeaderUnreachable => format!("{before}, just elected, cannot be reached."),
        SearchReason::LeaderSilent { ms } => {
            format!("{before} has said nothing for {}.", duration(ms as i64))
        }
        SearchReason::LeaderBroken => format!("{before} has sent a message that no leader sends."),
        SearchReason::Left(HangUp::StaleEpoch { proposed, accepted }) => {
            format!(
                "{before} proposes epoch {proposed}, but this server has promised epoch {accepted} to another leader, \
                 and follows no leader of an earlier epoch."
            )
        }
        SearchReason::Left(HangUp::OutOfTurn) => format!("{before} has sent a message out of turn."),
        SearchReason::Left(HangUp::Gap { last, next }) => {
            format!("{before} has sent zxid {:#x}, which does not follow {:#x}.", next.0, last.0)
        }
        SearchReason::Left(HangUp::UnmatchedCommit { expected, committed }) => {
            format!("{before} commits zxid {:#x}, but {:#x} is next.", committed.0, expected.0)
        }
        SearchReason::SteppedDown(StepDown::NoFollowers) => {
            "stops trying to lead: no quorum has connected to it.".into()
        }
        SearchReason::SteppedDown(StepDown::EpochNotAccepted) => {
            "stops trying to lead: no quorum has promised its epoch.".into()
        }
        SearchReason::SteppedDown(StepDown::NotSynchronised) => {
            "stops trying to lead: no quorum has taken over its history.".into()
        }
        SearchReason::SteppedDown(StepDown::QuorumLost) => "no longer leads: no quorum follows it.".into(),
        SearchReason::SteppedDown(StepDown::NoEpochLeft) => {
            "stops trying to lead: it has accepted the last epoch there is.".into()
        }
        SearchReason::Reconfigured => "there is a new configuration.".into(),
        SearchReason::CutBack => {
            "has cut its log back. After that the leader was lost, or it must send its whole tree.".into()
        }
        SearchReason::CounterFull => "ends its own epoch: nearly all zxids of this epoch are used.".into(),
    }
}
