//! Counts by namespace, the first name of a path: `read_per_namespace`, `write_per_namespace` and
//! `quota_exceeded_error_per_namespace` of `mntr`.
//!
//! Clients can make any number of names, so their number is limited; others are not counted. Upstream keeps all.

use crate::stats::Summary;
use alloc::{boxed::Box, vec::Vec};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The number of namespaces that are counted. Later ones are not.
const NAMES_MAX: usize = 1000;
/// Longer names are not counted.
const NAME_MAX_BYTES: usize = 256;
/// Upstream counts this number of bytes for the Stat of each read.
const STAT_BYTES: usize = 68;

/// Counts of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceStats {
    /// Bytes of each read.
    pub reads: Summary,
    /// Bytes of each change.
    pub writes: Summary,
    /// Writes that a hard quota has refused.
    pub quota_refusals: u64,
}

/// Counts of all namespaces.
#[derive(Debug, Clone, Default)]
pub struct Namespaces {
    all: Vec<(Box<str>, NamespaceStats)>,
    /// Where each stands in `all`.
    places: HashMap<Box<str>, usize, FxBuildHasher>,
    /// The place of the one that was counted last: requests for one namespace come together.
    last: usize,
}

impl Namespaces {
    /// Counts a read that was answered with this number of bytes beside the Stat.
    pub(crate) fn count_read(&mut self, path: &str, bytes: usize) {
        if let Some(stats) = self.of(path) {
            stats.reads.add((path.len() + bytes + STAT_BYTES) as u64);
        }
    }

    /// Counts a change after which the znode has this number of bytes.
    pub(crate) fn count_write(&mut self, path: &str, bytes: usize) {
        if let Some(stats) = self.of(path) {
            stats.writes.add((path.len() + bytes) as u64);
        }
    }

    pub(crate) fn count_refusal(&mut self, path: &str) {
        if let Some(stats) = self.of(path) {
            stats.quota_refusals += 1;
        }
    }

    fn of(&mut self, path: &str) -> Option<&mut NamespaceStats> {
        let below_root = path.strip_prefix('/')?;
        let end = below_root.bytes().position(|byte| byte == b'/').unwrap_or(below_root.len());
        let name = &below_root[..end];
        let is_last = self.all.get(self.last).is_some_and(|(last, _)| **last == *name);
        if !is_last {
            self.last = self.find_or_add(name)?;
        }
        self.all.get_mut(self.last).map(|(_, stats)| stats)
    }

    fn find_or_add(&mut self, name: &str) -> Option<usize> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        if name.is_empty() || name.len() > NAME_MAX_BYTES || self.all.len() >= NAMES_MAX {
            return None;
        }
        self.places.insert(name.into(), self.all.len());
        self.all.push((name.into(), NamespaceStats::default()));
        Some(self.all.len() - 1)
    }

    /// All namespaces in the order of their names.
    pub fn sorted(&self) -> Vec<(&str, &NamespaceStats)> {
        let mut all: Vec<_> = self.all.iter().map(|(name, stats)| (&**name, stats)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_read_counts_for_the_first_name_of_its_path() {
        let mut all = Namespaces::default();
        for path in ["/a", "/a/b/c", "/b", "/", ""] {
            all.count_read(path, 10);
        }
        all.count_write("/a/b", 5);
        all.count_refusal("/b/c");
        let of_a = NamespaceStats {
            reads: Summary { min: 80, max: 84, sum: 164, count: 2, median: 84 },
            writes: Summary::of(9),
            quota_refusals: 0,
        };
        let of_b = NamespaceStats { reads: Summary::of(80), quota_refusals: 1, ..NamespaceStats::default() };
        assert_eq!(all.sorted(), [("a", &of_a), ("b", &of_b)]);
    }

    #[test]
    fn names_without_number_or_end_take_no_memory() {
        let mut all = Namespaces::default();
        all.count_write(&format!("/{}", "x".repeat(NAME_MAX_BYTES + 1)), 1);
        assert!(all.all.is_empty());
        all.count_write(&format!("/{}", "x".repeat(NAME_MAX_BYTES)), 1);
        assert_eq!(core::mem::take(&mut all).all.len(), 1);
        for n in 0..NAMES_MAX * 2 {
            all.count_write(&format!("/n{n}"), 1);
        }
        all.count_write("/n0/a", 1);
        assert_eq!((all.all.len(), all.of("/n0").map(|stats| stats.writes.count)), (NAMES_MAX, Some(2)));
        assert_eq!(all.of(&format!("/n{NAMES_MAX}")), None);
    }
}
