//! The text of packets, and of what servers decide.

use ostler_proto::id::ServerId;
use ostler_zab::{
    Record,
    election::{ElectionEvent, ElectionRecord, IgnoreReason, Rule, Verdict},
    leading::{FromLearner, StepDown},
    learning::{FromLeader, HangUp},
};

pub(crate) fn name(record: &Record) -> String {
    String::from_utf8_lossy(&record.0).into_owned()
}

pub(crate) fn from_learner(of: FromLearner) -> String {
    match of {
        FromLearner::Info { observer: false, accepted, .. } => {
            format!("FOLLOWERINFO acceptedEpoch {}", accepted.0)
        }
        FromLearner::Info { observer: true, accepted, .. } => {
            format!("OBSERVERINFO acceptedEpoch {}", accepted.0)
        }
        FromLearner::AckEpoch { last, current: Some(current) } => {
            format!("ACKEPOCH last {last}, currentEpoch {}", current.0)
        }
        FromLearner::AckEpoch { last, current: None } => {
            format!("ACKEPOCH last {last}, epoch accepted before")
        }
        FromLearner::Ack(zxid) => format!("ACK {zxid}"),
        FromLearner::SignOfLife => "PING".into(),
    }
}

pub(crate) fn from_leader(of: &FromLeader) -> String {
    match of {
        FromLeader::LeaderInfo(epoch) => format!("LEADERINFO epoch {}", epoch.0),
        FromLeader::Diff => "DIFF".into(),
        FromLeader::Trunc(to) => format!("TRUNC {to}"),
        FromLeader::Snap(at) => format!("SNAP {at}"),
        FromLeader::Proposal(zxid, record) => format!("PROPOSAL {zxid} {}", name(record)),
        FromLeader::Commit(zxid) => format!("COMMIT {zxid}"),
        FromLeader::Inform(zxid, record) => format!("INFORM {zxid} {}", name(record)),
        FromLeader::NewLeader(epoch) => format!("NEWLEADER epoch {}", epoch.0),
        FromLeader::UpToDate => "UPTODATE".into(),
        FromLeader::Ping(_) => "PING".into(),
    }
}

/// The verdict of a server on the vote that has just come.
pub(crate) fn verdict(record: &ElectionRecord, of: ServerId) -> String {
    let received = record.entries.iter().rev().find_map(|entry| match entry.event {
        ElectionEvent::Received { from, verdict, .. } if from == of => Some(verdict),
        _ => None,
    });
    let later = |later_round: bool| if later_round { ", later round" } else { "" };
    match received {
        // The vote has begun a new election, with a new record.
        None | Some(Verdict::ElectionVoid) => "the election is void".into(),
        Some(Verdict::Adopted { rule, later_round }) => {
            let rule = match rule {
                Rule::FirstHeard => "the first",
                Rule::LaterEpoch => "later epoch",
                Rule::LaterZxid => "later zxid",
                Rule::LargerId => "larger id",
            };
            format!("adopted: {rule}{}", later(later_round))
        }
        Some(Verdict::LaterRound) => "later round, worse candidate".into(),
        Some(Verdict::Counted) => "counted".into(),
        Some(Verdict::Worse) => "worse candidate".into(),
        Some(Verdict::Ignored { why }) => format!("ignored: {}", ignored(why)),
    }
}

fn ignored(why: IgnoreReason) -> &'static str {
    match why {
        IgnoreReason::NoVoter => "the sender has no vote",
        IgnoreReason::BacksNobody => "no candidate",
        IgnoreReason::CandidateDoesNotVote => "the candidate has no vote",
        IgnoreReason::EarlierRound => "earlier round",
        IgnoreReason::Untrusted => "this server has no vote",
        IgnoreReason::Decided => "a leader is elected",
        IgnoreReason::AnotherEnsemble => "another ensemble",
        IgnoreReason::LeftOut => "left out",
        IgnoreReason::SaysTooMuchOfThisServer => "claims more than this server has",
    }
}

pub(crate) fn step_down(why: StepDown) -> &'static str {
    match why {
        StepDown::NoFollowers => "no quorum of followers has connected",
        StepDown::EpochNotAccepted => "no quorum promises the epoch",
        StepDown::NotSynchronised => "no quorum has taken over the history",
        StepDown::QuorumLost => "the followers are no quorum any more",
        StepDown::NoEpochLeft => "no epoch is left",
    }
}

pub(crate) fn hang_up(why: HangUp) -> String {
    match why {
        HangUp::StaleEpoch { proposed, accepted } => {
            format!("epoch {} is proposed, {} is accepted", proposed.0, accepted.0)
        }
        HangUp::OutOfTurn => "the packet is out of turn".into(),
        HangUp::Gap { last, next } => format!("{next} comes after {last}"),
        HangUp::UnmatchedCommit { expected, committed } => {
            format!("{committed} is committed before {expected}")
        }
    }
}
