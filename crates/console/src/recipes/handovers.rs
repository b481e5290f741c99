//! Counts hand-overs: how often the holder of a group was another one than when this server's console last looked.
//!
//! The records of ended sessions have only those places that passed on because a session ended; most locks pass on when
//! their holders release them. So the console compares what it sees. It looks only while somebody asks, so the count is a
//! lower limit, and [`Handovers::since_ms`] says since when it counts.

use ostler_proto::id::Zxid;
use std::collections::{HashMap, VecDeque};

const HOUR_MS: i64 = 3_600_000;
/// Groups that are remembered at once. Further ones have no count.
const GROUPS_MAX: usize = 10_000;
/// Hand-overs of one group that are remembered.
const EVENTS_MAX: usize = 512;
/// All hand-overs that are remembered.
const ALL_EVENTS_MAX: usize = 100_000;

#[derive(Debug)]
struct Seen {
    token: Zxid,
    /// When hand-overs were seen, in ms since 1970, the oldest first.
    at_ms: VecDeque<i64>,
    last_ms: i64,
}

/// The hand-overs that were seen.
#[derive(Debug, Default)]
pub(crate) struct Handovers {
    groups: HashMap<Box<str>, Seen>,
    events: usize,
    since_ms: Option<i64>,
}

impl Handovers {
    /// Notes the holders at one moment, by their tokens.
    pub(crate) fn note<'a>(&mut self, now_ms: i64, holders: impl Iterator<Item = (&'a str, Zxid)>) {
        self.since_ms.get_or_insert(now_ms);
        self.forget(now_ms);
        for (path, token) in holders {
            if let Some(seen) = self.groups.get_mut(path) {
                let is_new = seen.token != token;
                (seen.token, seen.last_ms) = (token, now_ms);
                if is_new && seen.at_ms.len() < EVENTS_MAX && self.events < ALL_EVENTS_MAX {
                    seen.at_ms.push_back(now_ms);
                    self.events += 1;
                }
            } else if self.groups.len() < GROUPS_MAX {
                self.groups.insert(path.into(), Seen { token, at_ms: VecDeque::new(), last_ms: now_ms });
            }
        }
    }

    /// Forgets what is older than an hour.
    fn forget(&mut self, now_ms: i64) {
        let (old, mut events) = (now_ms - HOUR_MS, 0);
        self.groups.retain(|_, seen| {
            while seen.at_ms.front().is_some_and(|at| *at <= old) {
                seen.at_ms.pop_front();
            }
            events += seen.at_ms.len();
            seen.last_ms > old
        });
        self.events = events;
    }

    /// The hand-overs of a group in the last hour.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.groups.get(path).map_or(0, |seen| seen.at_ms.len())
    }

    /// Since when hand-overs are counted, in ms since 1970; an hour at most.
    pub(crate) fn since_ms(&self, now_ms: i64) -> i64 {
        self.since_ms.unwrap_or(now_ms).max(now_ms - HOUR_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_holder_is_a_hand_over_and_is_forgotten_after_an_hour() {
        let mut handovers = Handovers::default();
        let mut at = |now_ms, holders: &[(&str, u64)]| {
            handovers.note(now_ms, holders.iter().map(|(path, token)| (*path, Zxid(*token))));
            (handovers.count("/a"), handovers.count("/b"), handovers.since_ms(now_ms))
        };
        assert_eq!(at(1000, &[("/a", 5)]), (0, 0, 1000));
        assert_eq!(at(2000, &[("/a", 5), ("/b", 6)]), (0, 0, 1000));
        assert_eq!(at(3000, &[("/a", 7), ("/b", 6)]), (1, 0, 1000));
        // Nobody holds for a while, and then another one.
        assert_eq!(at(4000, &[("/b", 6)]), (1, 0, 1000));
        assert_eq!(at(5000, &[("/a", 9), ("/b", 8)]), (2, 1, 1000));
        assert_eq!(at(3000 + HOUR_MS, &[("/a", 9)]), (1, 1, 3000));
        assert_eq!(at(5000 + HOUR_MS, &[("/a", 9)]), (0, 0, 5000));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut handovers = Handovers::default();
        for token in 0..2 * EVENTS_MAX as u64 {
            handovers.note(1, std::iter::once(("/a", Zxid(token))));
        }
        assert_eq!(handovers.count("/a"), EVENTS_MAX);
        let paths: Vec<String> = (0..2 * GROUPS_MAX).map(|n| format!("/{n}")).collect();
        handovers.note(1, paths.iter().map(|path| (&**path, Zxid(1))));
        assert_eq!(handovers.groups.len(), GROUPS_MAX);
        handovers.note(2 + HOUR_MS, std::iter::empty());
        assert_eq!((handovers.groups.len(), handovers.events), (0, 0));
    }
}
