//! Many servers' lines in one order.
//!
//! Servers count milliseconds, each from a start of its own, so two of them may disagree by one or two about what came
//! first. Where one line is known to be the cause of another it goes first.

use crate::ballots::BoxedVote;
use ostler_proto::id::{Epoch, ServerId};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Something that other lines can be a consequence of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    /// A server told the others whom it backs: server, candidate, round.
    Told(ServerId, Option<ServerId>, u64),
    /// The leader found itself elected.
    Elected(ServerId),
    /// A server promised an epoch.
    Promised(Epoch),
    /// An epoch began.
    Begun(Epoch),
    /// The leader committed its first transaction.
    Commit(Epoch),
}

/// The kind of a line, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// The leader was lost, or could not be followed.
    Loss,
    /// The server has started.
    Start,
    /// The server sends its vote.
    Vote,
    /// The server changes its vote or its round.
    Change,
    /// Something has come: a vote, or a connection.
    Receive,
    /// A leader is elected, or will be soon.
    Decide,
    /// A step of the elected leader.
    Lead,
    /// A step of a learner.
    Follow,
    /// The server's history was changed to be the leader's.
    Synced,
    /// The server serves, or commits.
    Serving,
    /// A leader has stepped down.
    Ended,
    /// The record lacks something here.
    Unknown,
}

/// The rule that decided about a vote, by the words of docs/elections.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The later round counts.
    Round,
    /// The later epoch wins.
    Epoch,
    /// The later zxid wins.
    Zxid,
    /// The larger server id wins.
    Id,
}

/// The meaning of a line, for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) kind: LineKind,
    pub(crate) rule: Option<DecidedBy>,
    /// The parts of the text that name the rule.
    pub(crate) highlights: Vec<&'static str>,
    /// The vote that has changed: whose, and for whom.
    pub(crate) changed: Option<(ServerId, ServerId)>,
}

impl About {
    pub(crate) fn only(kind: LineKind) -> About {
        About { kind, rule: None, highlights: Vec::new(), changed: None }
    }

    /// With the vote that has changed.
    pub(crate) fn changing(self, voter: ServerId, candidate: ServerId) -> About {
        About { changed: Some((voter, candidate)), ..self }
    }

    /// With the rule that decided, and the parts of the text that name it.
    pub(crate) fn by(self, rule: DecidedBy, highlights: Vec<&'static str>) -> About {
        About { rule: Some(rule), highlights, ..self }
    }
}

/// A server's whole ballot box, at the moments at which it changed.
pub(crate) type BallotChange = Option<Vec<BoxedVote>>;

/// One line of one server.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// On the common clock.
    pub(crate) at: i64,
    pub(crate) server: ServerId,
    pub(crate) text: String,
    pub(crate) mark: Option<Mark>,
    /// The event that must have happened before, if a server reports it.
    pub(crate) after: Option<Mark>,
    pub(crate) about: About,
    /// The server's ballot box from then on, if it has changed.
    pub(crate) ballots: BallotChange,
}

/// Passes that move lines behind their causes. Real records need one or two.
const PASSES_MAX: usize = 32;

/// Each list is one server's, in its order. `slack` is how far apart two servers' clocks can be.
pub(crate) fn merge(mut lists: Vec<Vec<Line>>, slack: i64) -> Vec<Line> {
    // A line that was moved may move others.
    for _ in 0..PASSES_MAX {
        if !delay_for_causes(&mut lists, slack) {
            break;
        }
    }
    let mut heads = vec![0; lists.len()];
    let (mut merged, mut told): (Vec<Line>, HashSet<Mark>) = (Vec::new(), HashSet::new());
    loop {
        let first = |n: &usize| lists[*n].get(heads[*n]);
        let earliest = (0..lists.len()).filter_map(|n| first(&n)).map(|line| line.at).min();
        let Some(earliest) = earliest else { return merged };
        let due: Vec<usize> =
            (0..lists.len()).filter(|n| first(n).is_some_and(|line| line.at == earliest)).collect();
        let waits = |n: &usize| {
            let Some(cause) = &lists[*n][heads[*n]].after else { return false };
            let of_now = |list: &usize| lists[*list][heads[*list]..].iter();
            let mut pending = due.iter().flat_map(|list| of_now(list).take_while(|line| line.at == earliest));
            !told.contains(cause) && pending.any(|other| other.mark.as_ref() == Some(cause))
        };
        let next = due.iter().copied().find(|n| !waits(n)).unwrap_or(due[0]);
        let line = lists[next][heads[next]].clone();
        told.extend(line.mark.clone());
        merged.push(line);
        heads[next] += 1;
    }
}

/// Moves lines behind their causes, if those are within reach. Whether anything moved.
fn delay_for_causes(lists: &mut [Vec<Line>], slack: i64) -> bool {
    let mut causes: HashMap<Mark, i64> = HashMap::new();
    for (mark, at) in lists.iter().flatten().filter_map(|line| Some((line.mark.clone()?, line.at))) {
        causes.entry(mark).and_modify(|earliest| *earliest = at.min(*earliest)).or_insert(at);
    }
    let mut moved = false;
    for list in lists {
        let mut before = i64::MIN;
        for line in list {
            let cause = line.after.as_ref().and_then(|mark| causes.get(mark)).copied();
            let cause = cause.filter(|cause| *cause <= line.at.saturating_add(slack));
            let earliest = before.max(cause.unwrap_or(i64::MIN));
            if line.at < earliest {
                line.at = earliest;
                moved = true;
            }
            before = line.at;
        }
    }
    moved
}
