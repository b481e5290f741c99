//! Hot paths and clients: which paths and which clients most requests are of, estimated from a sample.

mod measured;
pub(crate) mod sketch;

use crate::input::Mono;
use alloc::{
    boxed::Box,
    string::{String, ToString},
    vec::Vec,
};
use core::{hash::Hash, net::IpAddr};
use hashbrown::Equivalent;
use measured::Measured;
pub use measured::MeasuredReport;
use ostler_proto::id::SessionId;
use sketch::Sketch;

/// One request in this number is looked at, on average.
pub const SAMPLED: u32 = 64;
/// A half of the time that the counts are of, ms.
const HALF_MS: u64 = 120_000;
/// Longer paths count as their first bytes.
const PATH_MAX: usize = 512;

/// The address and the session of a client.
pub(crate) type Client = (IpAddr, SessionId);

/// Counts of one kind, in two halves of time: the earlier one is dropped when the later one is full.
#[derive(Debug)]
pub(crate) struct Halves<K> {
    earlier: Sketch<K>,
    pub(crate) later: Sketch<K>,
}

impl<K> Default for Halves<K> {
    fn default() -> Self {
        Halves { earlier: Sketch::default(), later: Sketch::default() }
    }
}

impl<K: Hash + Eq + Clone> Halves<K> {
    pub(crate) fn turn(&mut self) {
        self.earlier = core::mem::take(&mut self.later);
    }

    /// The keys with the most requests, with the number of requests that were looked at and the error of it.
    pub(crate) fn top(&self, limit: usize) -> Vec<(K, u64, u64)> {
        self.earlier.merged(&self.later, limit)
    }
}

/// Counts by path, address and session.
#[derive(Debug)]
pub(crate) struct HotPaths {
    reads: Halves<Box<str>>,
    writes: Halves<Box<str>>,
    addresses: Halves<IpAddr>,
    sessions: Halves<SessionId>,
    /// Requests until the next one that is looked at.
    left: u32,
    /// While each request is counted: requests until the next one that is part of the sample, too.
    left_of_sample: u32,
    /// Each request is counted, or was a short time ago.
    measured: Option<Box<Measured>>,
    is_measuring: bool,
    random: u64,
    /// When the earlier and the later half began.
    began: [Mono; 2],
}

impl HotPaths {
    pub(crate) fn new(now: Mono, seed: u64) -> HotPaths {
        HotPaths {
            reads: Halves::default(),
            writes: Halves::default(),
            addresses: Halves::default(),
            sessions: Halves::default(),
            left: SAMPLED,
            left_of_sample: SAMPLED,
            measured: None,
            is_measuring: false,
            random: seed | 1,
            began: [now; 2],
        }
    }

    /// Counts a request. Returns whether it is one that is looked at.
    pub(crate) fn draws(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.left = if self.is_measuring { 1 } else { self.next_step() };
        true
    }

    /// The number of requests until the next one of the sample. The steps differ, as clients send their requests in
    /// patterns.
    fn next_step(&mut self) -> u32 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + ((self.random >> 33) % u64::from(2 * SAMPLED - 1)) as u32
    }

    /// Counts each request for this time.
    pub(crate) fn measure(&mut self, now: Mono, ms: u64) {
        self.measured = Some(Box::new(Measured::new(now, ms)));
        if !self.is_measuring {
            self.is_measuring = true;
            self.left_of_sample = core::mem::replace(&mut self.left, 1);
        }
    }

    /// The counts of the last measurement, at most `limit` of each kind; `None` without one, or if it was long ago.
    pub(crate) fn measured(&self, now: Mono, limit: usize) -> Option<MeasuredReport> {
        let measured = self.measured.as_ref().filter(|measured| !measured.is_old(now))?;
        Some(measured.report(now, limit))
    }

    /// Counts a request exactly, if that goes on. Returns whether the request is part of the sample.
    fn note_exactly(&mut self, now: Mono, client: Client, path: Option<(&str, bool)>) -> bool {
        if !self.is_measuring {
            return true;
        }
        match self.measured.as_mut().filter(|measured| !measured.is_over(now)) {
            Some(measured) => measured.note(client, path),
            None => {
                self.is_measuring = false;
                self.left = self.left_of_sample.max(1);
                return false;
            }
        }
        self.left_of_sample = self.left_of_sample.saturating_sub(1);
        if self.left_of_sample > 0 {
            return false;
        }
        self.left_of_sample = self.next_step();
        true
    }

    /// Notes a request that was drawn. `path` has whether the request writes.
    pub(crate) fn note(&mut self, now: Mono, client: Client, path: Option<(&str, bool)>) {
        let path = path.map(|(path, writes)| (beginning(path, PATH_MAX), writes));
        if !self.note_exactly(now, client, path) {
            return;
        }
        self.turn(now);
        let (address, session) = client;
        self.addresses.later.add(&address, || address);
        self.sessions.later.add(&session, || session);
        let Some((path, writes)) = path else { return };
        let of = if writes { &mut self.writes } else { &mut self.reads };
        of.later.add(path, || path.into());
    }

    fn turn(&mut self, now: Mono) {
        if self.measured.as_ref().is_some_and(|measured| measured.is_old(now)) {
            self.measured = None;
        }
        let idle = now.0.saturating_sub(self.began[1].0);
        let turns = (idle / HALF_MS).min(2);
        for _ in 0..turns {
            self.reads.turn();
            self.writes.turn();
            self.addresses.turn();
            self.sessions.turn();
            self.began = [self.began[1], now];
        }
        if turns == 2 {
            self.began = [now; 2];
        }
    }

    /// At most `limit` of each.
    pub(crate) fn report(&self, now: Mono, limit: usize) -> HotReport {
        let hot = |(name, count, error): (String, u64, u64)| Hot {
            name,
            requests: count * u64::from(SAMPLED),
            at_most_too_many: error * u64::from(SAMPLED),
        };
        fn named<K: ToString>((key, count, error): (K, u64, u64)) -> (String, u64, u64) {
            (key.to_string(), count, error)
        }
        HotReport {
            span_ms: now.0.saturating_sub(self.began[0].0),
            sampled_one_in: SAMPLED,
            reads: self.reads.top(limit).into_iter().map(named).map(hot).collect(),
            writes: self.writes.top(limit).into_iter().map(named).map(hot).collect(),
            addresses: self.addresses.top(limit).into_iter().map(named).map(hot).collect(),
            sessions: self.sessions.top(limit).into_iter().map(named).map(hot).collect(),
        }
    }
}

/// The beginning of a text, up to this number of bytes, cut between two characters.
pub(crate) fn beginning(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// A path or a client with many requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hot {
    /// The path, the address or the session.
    pub name: String,
    /// About the number of its requests.
    pub requests: u64,
    /// By how much that may be too high because others were counted with it; beside that it is off as any sample is.
    pub at_most_too_many: u64,
}

/// The hot paths and clients, as `hot_paths` gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HotReport {
    /// The time that the counts are of, until now, ms.
    pub span_ms: u64,
    /// One request in this number was looked at.
    pub sampled_one_in: u32,
    /// Paths by their reads, the hottest first.
    pub reads: Vec<Hot>,
    /// Paths by their writes.
    pub writes: Vec<Hot>,
    /// Clients' addresses by their requests.
    pub addresses: Vec<Hot>,
    /// Sessions by their requests.
    pub sessions: Vec<Hot>,
}

impl<K: Hash + Eq + Clone> Sketch<K> {
    /// Both sketches together, the most frequent first.
    fn merged(&self, other: &Sketch<K>, limit: usize) -> Vec<(K, u64, u64)> {
        let mut all: Vec<(K, u64, u64)> = self
            .iter()
            .map(|(key, of)| {
                let there = other.get(key);
                (key.clone(), of.count + there.count, of.error + there.error)
            })
            .collect();
        let only_there = other.iter().filter(|(key, _)| !self.has(*key));
        all.extend(only_there.map(|(key, of)| (key.clone(), of.count, of.error)));
        all.sort_by_key(|(_, count, _)| core::cmp::Reverse(*count));
        all.truncate(limit);
        all
    }

    fn has<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
        self.get(key).count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: (IpAddr, SessionId) = (IpAddr::V4(core::net::Ipv4Addr::LOCALHOST), SessionId(7));

    #[test]
    fn a_sixty_fourth_of_the_requests_is_looked_at() {
        let mut hot = HotPaths::new(Mono(0), 3);
        let drawn = (0..640_000).filter(|_| hot.draws()).count();
        assert!((9_500..10_500).contains(&drawn), "{drawn}");
    }

    /// Counts this number of requests of a path at a time.
    fn ask(hot: &mut HotPaths, now: u64, path: &str, count: usize) {
        for _ in 0..count {
            if hot.draws() {
                hot.note(Mono(now), CLIENT, Some((path, false)));
            }
        }
    }

    #[test]
    fn each_request_is_counted_while_that_is_asked_for() {
        let mut hot = HotPaths::new(Mono(0), 3);
        ask(&mut hot, 0, "/before", 10_000);
        assert_eq!(hot.measured(Mono(0), 10), None);
        hot.measure(Mono(1000), 500);
        ask(&mut hot, 1000, "/a", 6400);
        ask(&mut hot, 1499, "/b", 3);
        let measured = hot.measured(Mono(1400), 10).unwrap();
        assert_eq!((measured.left_ms, measured.at_most_too_few), (100, 0));
        let counts: Vec<(&str, u64)> =
            measured.hot.reads.iter().map(|one| (&*one.name, one.requests)).collect();
        assert_eq!(counts, [("/a", 6400), ("/b", 3)]);
        assert_eq!((measured.hot.addresses[0].requests, measured.hot.span_ms), (6403, 400));
        ask(&mut hot, 1500, "/after", 64_000);
        let measured = hot.measured(Mono(2000), 10).unwrap();
        assert_eq!((measured.hot.reads.len(), measured.hot.span_ms, measured.left_ms), (2, 500, 0));
        // The sample has gone on meanwhile, and goes on.
        let sampled = hot.report(Mono(2000), 10);
        let share =
            |name: &str| sampled.reads.iter().find(|one| one.name == name).map_or(0, |one| one.requests);
        assert!((3_000..10_000).contains(&share("/a")), "{}", share("/a"));
        assert!((56_000..72_000).contains(&share("/after")), "{}", share("/after"));
        assert_eq!(hot.measured(Mono(200_000), 10), None, "it was long ago");
        ask(&mut hot, 200_000, "/later", 1000);
        assert!(hot.measured.is_none(), "and takes no memory");
    }

    #[test]
    fn the_hottest_path_comes_first_and_old_ones_go() {
        let mut hot = HotPaths::new(Mono(0), 3);
        for at in 0..100 {
            hot.note(Mono(0), CLIENT, Some(("/hot", false)));
            if at % 4 == 0 {
                hot.note(Mono(0), CLIENT, Some(("/warm", false)));
                hot.note(Mono(0), CLIENT, Some(("/hot", true)));
            }
        }
        let report = hot.report(Mono(1000), 10);
        let names: Vec<&str> = report.reads.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["/hot", "/warm"]);
        assert_eq!((report.reads[0].requests, report.writes[0].requests), (6400, 1600));
        assert_eq!((&*report.addresses[0].name, &*report.sessions[0].name), ("127.0.0.1", "0x7"));
        assert_eq!(report.span_ms, 1000);
        hot.note(Mono(HALF_MS), CLIENT, Some(("/next", false)));
        assert_eq!(hot.report(Mono(HALF_MS), 10).reads.len(), 3, "the earlier half still counts");
        hot.note(Mono(2 * HALF_MS), CLIENT, None);
        assert_eq!(hot.report(Mono(2 * HALF_MS), 10).reads.len(), 1);
        hot.note(Mono(9 * HALF_MS), CLIENT, None);
        let report = hot.report(Mono(9 * HALF_MS + 5), 10);
        assert_eq!((report.reads, report.span_ms), (Vec::new(), 5));
    }

    #[test]
    fn long_paths_are_cut_between_characters() {
        assert_eq!(beginning("aéz", 2), "a");
        assert_eq!(beginning("aéz", 3), "aé");
        assert_eq!(beginning("a", 9), "a");
    }
}
