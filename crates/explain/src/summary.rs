//! An occasion in a sentence or two.

use crate::{
    moments::backers,
    occasion::{Kind, Occasion, Part},
    words::{capitalised, clock, duration, list, servers},
};
use ostler_proto::id::{Epoch, ServerId};
use ostler_server_core::quorum::election_history::{SearchReason, Takeover};
use ostler_zab::{election::ElectionEvent, leading::StepDown};

pub(crate) fn summary(occasion: &Occasion<'_>) -> Vec<String> {
    match occasion.kind {
        Kind::Formed { leader, epoch } => formed(occasion, leader, epoch),
        Kind::Joined { leader, epoch } => joined(occasion, leader, epoch),
        Kind::Open => vec![open(&occasion.parts)],
    }
}

fn formed(occasion: &Occasion<'_>, leader: ServerId, epoch: Epoch) -> Vec<String> {
    let since = occasion.settled().unwrap_or_default();
    let (verb, when) = if occasion.lasts { ("leads", "since") } else { ("led", "from") };
    let mut text = format!("Server {leader} {verb} epoch {epoch} {when} {}", clock(since));
    if let Some((backers, voters)) = ballots(occasion) {
        text += &format!(": {backers} of {voters} voters backed it");
    }
    let (from, of_what) = start(&occasion.parts);
    text += &format!("; {} from {of_what} to the start of epoch {epoch}", duration(since - from));
    let commit = occasion.leader().and_then(|part| {
        let search = part.decisive();
        Some(part.wall(search, search.first_commit?.ms))
    });
    if let Some(commit) = commit {
        text += &format!(", {} to the first commit", duration(commit - from));
    }
    let mut sentences = vec![text + "."];
    if commit.is_none() && occasion.leader().is_some() {
        sentences.push("Nothing has been committed in this epoch yet.".into());
    }
    sentences
}

/// Backers and voters, as the leader counted them, or else somebody who elected it.
fn ballots(occasion: &Occasion<'_>) -> Option<(usize, usize)> {
    let counted = |part: &Part<'_>| {
        let (me, voters) = (part.server(), &part.witness.elections.voters);
        part.decisive().moments.iter().find_map(|moment| match &moment.event {
            ElectionEvent::Elected { candidate: vote, votes: ballots } => {
                Some((backers(me, voters, *vote, ballots).len(), voters.len()))
            }
            _ => None,
        })
    };
    occasion.leader().and_then(counted).or_else(|| occasion.parts.iter().find_map(counted))
}

/// The time from which an occasion counts, as its summary does: the loss of a leader, as it was noticed first; or the start
/// of the last server that was needed; or of the one that came back.
pub(crate) fn counts_from(occasion: &Occasion<'_>) -> i64 {
    match occasion.kind {
        Kind::Formed { .. } => start(&occasion.parts).0,
        Kind::Joined { .. } | Kind::Open => occasion.parts.iter().map(Part::began).min().unwrap_or_default(),
    }
}

/// Since when there was no leader, or enough servers for one, and what that moment was.
fn start(parts: &[Part<'_>]) -> (i64, String) {
    let began = |part: &&Part<'_>| part.began();
    let lost = parts.iter().filter(|part| part.first().why != SearchReason::Started).min_by_key(began);
    if let Some(part) = lost {
        let search = part.first();
        let what = match (search.why, search.before) {
            (SearchReason::SteppedDown(StepDown::QuorumLost) | SearchReason::CounterFull, _) => {
                format!("the end of server {}'s epoch", part.server())
            }
            (_, Some(before)) if before != part.server() => format!("the loss of server {before}"),
            _ => format!("server {}'s attempt to lead", part.server()),
        };
        return (part.began(), what);
    }
    match parts.iter().max_by_key(began) {
        Some(last) => (last.began(), format!("the start of server {}", last.server())),
        None => (0, String::new()),
    }
}

fn joined(occasion: &Occasion<'_>, leader: ServerId, epoch: Epoch) -> Vec<String> {
    let Some(part) = occasion.parts.first() else { return Vec::new() };
    let search = part.decisive();
    let since = occasion.settled().unwrap_or_default();
    let (verb, when) = if occasion.lasts { ("follows", "since") } else { ("followed", "from") };
    let from = match part.first().why {
        SearchReason::Started => "its start".into(),
        _ => part
            .first()
            .before
            .map_or("the loss of its leader".into(), |id| format!("the loss of server {id}")),
    };
    let mut sentences = vec![format!(
        "Server {} {verb} server {leader} in epoch {epoch} {when} {}: there was a leader, so there was no election; {} \
         from {from} until it served clients.",
        part.server(),
        clock(since),
        duration(since - part.began()),
    )];
    if let Some(takeover) = search.takeover {
        sentences.push(match takeover.takeover {
            Takeover::Truncated(to) => format!(
                "The transactions in its log after zxid {:#x}, up to {:#x}, were never committed and are removed.",
                to.0, search.last.0
            ),
            Takeover::Snapshot(_) => "It got the leader's whole tree.".into(),
        });
    }
    sentences
}

fn open(parts: &[Part<'_>]) -> String {
    let looking: Vec<ServerId> = parts.iter().map(Part::server).collect();
    let since = parts.iter().map(Part::began).min().unwrap_or_default();
    let voters = parts.first().map_or(&[][..], |part| &part.witness.elections.voters);
    let verb = if looking.len() == 1 { "has" } else { "have" };
    let subject = capitalised(&servers(&looking));
    format!(
        "{subject} {verb} looked for a leader since {}: a leader needs a quorum of the voters {}.",
        clock(since),
        list(voters)
    )
}
