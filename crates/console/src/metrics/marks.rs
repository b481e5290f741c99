//! Starts and elections, as marks on the charts.

use ostler_server::admin::{Place, ServerFigures};
use ostler_server_core::quorum::MemberMode;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Marks that are kept.
const MARKS_MAX: usize = 64;

/// Something that happened at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) kind: MarkKind,
    pub(crate) sentence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MarkKind {
    /// A server has a leader in a new epoch.
    Election,
    /// A server has started.
    Start,
}

/// The last marks of a server.
#[derive(Debug, Default)]
pub(super) struct Marks {
    all: VecDeque<Mark>,
    has_start: bool,
    /// The place in which the server was last seen serving.
    served: Option<Place>,
}

impl Marks {
    /// Compares the server with what was seen of it before.
    pub(super) fn see(&mut self, figures: &ServerFigures) {
        let wall_ms = figures.wall_ms.max(0) as u64;
        if !self.has_start {
            self.has_start = true;
            let at_ms = wall_ms.saturating_sub(figures.up_ms);
            self.add(Mark { at_ms, kind: MarkKind::Start, sentence: start_sentence(figures) });
        }
        let place = figures.place;
        let serves = !matches!(place.mode, None | Some(MemberMode::Looking | MemberMode::ReadOnly));
        let is_new = self.served.is_none_or(|last| (last.epoch, last.leader) != (place.epoch, place.leader));
        let (true, true, Some(leader)) = (serves, is_new, place.leader) else { return };
        self.served = Some(place);
        let at_ms = place.serves_since_ms.map_or(wall_ms, |since| since.max(0) as u64);
        let sentence = format!("Server {leader} leads in epoch {}.", place.epoch.0);
        self.add(Mark { at_ms, kind: MarkKind::Election, sentence });
    }

    fn add(&mut self, mark: Mark) {
        if self.all.len() == MARKS_MAX {
            self.all.pop_front();
        }
        self.all.push_back(mark);
    }

    pub(super) fn since(&self, since_ms: u64) -> Vec<Mark> {
        self.all.iter().filter(|mark| mark.at_ms >= since_ms).cloned().collect()
    }
}

fn start_sentence(figures: &ServerFigures) -> String {
    match figures.me {
        Some(me) => format!("Server {me} started."),
        None => "The server started.".into(),
    }
}

/// The marks of several servers. Each of them tells of the same election; the first time counts.
pub(super) fn merge(all: impl IntoIterator<Item = Mark>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = all.into_iter().collect();
    marks.sort_by_key(|mark| mark.at_ms);
    let mut merged: Vec<Mark> = Vec::new();
    for mark in marks {
        let is_same = |other: &Mark| {
            mark.kind == MarkKind::Election && other.kind == mark.kind && other.sentence == mark.sentence
        };
        if !merged.iter().any(is_same) {
            merged.push(mark);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ring::tests::figures;
    use ostler_proto::id::{Epoch, ServerId};

    fn follower(leader: i64, epoch: u32, up_ms: u64) -> ServerFigures {
        let place = Place {
            mode: Some(MemberMode::Follower),
            leader: Some(ServerId(leader)),
            epoch: Epoch(epoch),
            serves_since_ms: Some(1_000_000_500),
        };
        ServerFigures { place, me: Some(ServerId(1)), ..figures(up_ms, 0) }
    }

    #[test]
    fn a_start_and_each_leader_leave_one_mark() {
        let mut marks = Marks::default();
        let looking = Place { mode: Some(MemberMode::Looking), ..Place::default() };
        marks.see(&ServerFigures { place: looking, me: Some(ServerId(1)), ..figures(0, 0) });
        marks.see(&follower(2, 7, 10_000));
        marks.see(&follower(2, 7, 20_000));
        marks.see(&ServerFigures { place: looking, ..figures(30_000, 0) });
        marks.see(&follower(3, 8, 40_000));
        let told: Vec<(u64, String)> =
            marks.since(0).into_iter().map(|mark| (mark.at_ms - 1_000_000_000, mark.sentence)).collect();
        assert_eq!(
            told,
            [
                (0, "Server 1 started.".to_owned()),
                (500, "Server 2 leads in epoch 7.".to_owned()),
                (500, "Server 3 leads in epoch 8.".to_owned())
            ]
        );
        assert!(marks.since(1_000_000_001).iter().all(|mark| mark.kind == MarkKind::Election));
    }

    #[test]
    fn an_election_that_several_servers_tell_of_is_one() {
        let mark = |at_ms, kind, sentence: &str| Mark { at_ms, kind, sentence: sentence.into() };
        let all = [
            mark(30, MarkKind::Election, "a"),
            mark(20, MarkKind::Election, "a"),
            mark(25, MarkKind::Start, "a"),
            mark(26, MarkKind::Start, "a"),
        ];
        let times: Vec<u64> = merge(all).iter().map(|mark| mark.at_ms).collect();
        assert_eq!(times, [20, 25, 26]);
    }
}
