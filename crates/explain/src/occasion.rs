//! Which records of several servers belong together.
//!
//! A server's searches up to the one that led it to a leader are one story: what failed before belongs to it. Stories
//! that end in the same epoch are one election, as far as they began before its epoch did. Whoever came later did not
//! elect: it joined, and that is an occasion of its own.

use crate::{
    records::{Elected, Moment, Search},
    witness::Witness,
};
use ostler_proto::{
    election::PeerState,
    id::{Epoch, ServerId},
};
use ostler_zab::election::{ElectionEvent, Verdict};

/// One server's share: its searches, of which only the last can have succeeded.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The server with its record.
    pub witness: &'a Witness,
    /// Its searches.
    pub searches: &'a [Search],
}

/// The outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A quorum made a leader.
    Formed { leader: ServerId, epoch: Epoch },
    /// A server came to a leader that was there.
    Joined { leader: ServerId, epoch: Epoch },
    /// There is none yet.
    Open,
}

/// Records that belong together.
#[derive(Debug)]
pub struct Occasion<'a> {
    /// Its outcome.
    pub kind: Kind,
    /// By the servers' numbers.
    pub parts: Vec<Part<'a>>,
    /// Nothing later is known of its leader or epoch.
    pub lasts: bool,
}

impl Part<'_> {
    /// The server.
    pub fn server(&self) -> ServerId {
        self.witness.elections.server
    }

    /// The search that decided, or that goes on.
    pub fn decisive(&self) -> &Search {
        self.searches.last().expect("a part has a search")
    }

    /// The first of its searches.
    pub fn first(&self) -> &Search {
        self.searches.first().expect("a part has a search")
    }

    /// On the common clock.
    pub fn began(&self) -> i64 {
        self.wall(self.first(), 0)
    }

    /// A moment of one of its searches, on the common clock.
    pub fn wall(&self, search: &Search, ms: u64) -> i64 {
        search.began_ms - self.witness.ahead_ms + ms as i64
    }

    /// When it took part in the epoch, on the common clock.
    pub fn synchronised(&self) -> Option<i64> {
        let search = self.decisive();
        Some(self.wall(search, search.synchronised_ms?))
    }

    /// Its server has not looked for a leader since.
    fn is_latest(&self) -> bool {
        self.witness.elections.searches.last().is_some_and(|last| std::ptr::eq(last, self.decisive()))
    }

    /// Whether it has elected its leader by the votes of servers that looked for one, too. If not, others told it who leads.
    fn has_counted(&self) -> bool {
        let moments = &self.decisive().moments;
        let is_end = |moment: &Moment| matches!(moment.event, ElectionEvent::Elected { .. });
        let Some(end) = moments.iter().position(is_end) else { return false };
        let votes = moments[..end].iter().rev().filter_map(|moment| match moment.event {
            ElectionEvent::Received {
                state, verdict: Verdict::Counted | Verdict::Adopted { .. }, ..
            } => Some(state),
            _ => None,
        });
        votes.take(1).any(|last| last == PeerState::Looking)
    }

    /// The leaders, each with its epoch.
    fn end(&self) -> Option<(Epoch, ServerId)> {
        let search = self.decisive();
        let Elected { leader, .. } = search.elected?;
        search.synchronised_ms?;
        Some((search.discovered?.epoch, leader))
    }
}

impl<'a> Occasion<'a> {
    /// The part of the leader, if it has answered and has not forgotten.
    pub fn leader(&self) -> Option<&Part<'a>> {
        let Kind::Formed { leader, .. } = self.kind else { return None };
        self.parts.iter().find(|part| part.server() == leader)
    }

    /// How far the clocks of two servers can be apart. A millisecond is cut off at each of two servers.
    pub(crate) fn slack_ms(&self) -> i64 {
        2 + self.parts.iter().map(|part| part.witness.unsure_ms).max().unwrap_or(0)
    }

    /// When the epoch began, or the joiner was part of it.
    pub fn settled(&self) -> Option<i64> {
        match self.leader() {
            Some(leader) => leader.synchronised(),
            None => self.parts.iter().filter_map(Part::synchronised).min(),
        }
    }
}

/// All that the witnesses know of, the earliest first.
pub fn occasions(witnesses: &[Witness]) -> Vec<Occasion<'_>> {
    let mut ended: Vec<(Epoch, ServerId, Part<'_>)> = Vec::new();
    let mut open = Vec::new();
    for part in witnesses.iter().flat_map(parts) {
        match part.end() {
            Some((epoch, leader)) => ended.push((epoch, leader, part)),
            None => open.push(part),
        }
    }
    let mut epochs: Vec<(Epoch, ServerId)> =
        ended.iter().map(|(epoch, leader, _)| (*epoch, *leader)).collect();
    epochs.sort_unstable();
    epochs.dedup();
    let mut occasions = Vec::new();
    for (epoch, leader) in epochs {
        let parts = ended.iter().filter(|(of, by, _)| (*of, *by) == (epoch, leader));
        occasions_of_epoch(epoch, leader, parts.map(|(_, _, part)| *part).collect(), &mut occasions);
    }
    occasions.sort_by_key(|occasion| (occasion.settled(), occasion.parts.first().map(Part::server)));
    if !open.is_empty() {
        open.sort_by_key(Part::server);
        occasions.push(Occasion { kind: Kind::Open, parts: open, lasts: true });
    }
    occasions
}

/// A server's stories. The last one may be without an end.
fn parts(witness: &Witness) -> impl Iterator<Item = Part<'_>> {
    let stories = witness.elections.searches.split_inclusive(|search| search.synchronised_ms.is_some());
    stories.map(move |searches| Part { witness, searches })
}

/// One election, and those who joined its leader later.
fn occasions_of_epoch<'a>(
    epoch: Epoch,
    leader: ServerId,
    mut parts: Vec<Part<'a>>,
    occasions: &mut Vec<Occasion<'a>>,
) {
    parts.sort_by_key(Part::server);
    let of_leader = parts.iter().find(|part| part.server() == leader);
    let begun = match of_leader {
        Some(part) => part.synchronised(),
        None => parts.iter().filter_map(Part::synchronised).min(),
    };
    let took_part = |part: &Part<'_>| begun.is_none_or(|begun| part.began() <= begun);
    let (mut founders, mut joined): (Vec<Part<'_>>, Vec<Part<'_>>) = parts.into_iter().partition(took_part);
    // Without the leader's word, a single server may as well have joined, unless it has counted votes.
    if founders.len() == 1 && founders[0].server() != leader && !founders[0].has_counted() {
        joined.append(&mut founders);
    }
    if !founders.is_empty() {
        let lasts = match founders.iter().find(|part| part.server() == leader) {
            Some(part) => part.is_latest(),
            None => founders.iter().any(Part::is_latest),
        };
        occasions.push(Occasion { kind: Kind::Formed { leader, epoch }, parts: founders, lasts });
    }
    occasions.extend(joined.into_iter().map(|part| Occasion {
        kind: Kind::Joined { leader, epoch },
        parts: vec![part],
        lasts: part.is_latest(),
    }));
}
