//! Quotas: operators set limits as ordinary znodes below /zookeeper/quota, and every server counts the usage there
//! without transactions.

use crate::prefixes::PathLengths;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
};
use ostler_proto::path::{QUOTA_LIMITS, QUOTA_ROOT, QUOTA_STATS};

/// The number of bytes of a limits or usage znode that are read. The text of a usage znode is written again with each
/// write below the limited path, and a client can write a megabyte there.
const TEXT_MAX: usize = 4096;

fn read(text: &[u8]) -> alloc::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&text[..text.len().min(TEXT_MAX)])
}

/// The numbers in a limits or usage znode; -1 means "not set" (`StatsTrack`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaNumbers {
    /// The soft limit or the number of znodes.
    pub count: i64,
    /// The soft limit or the number of bytes of data.
    pub bytes: i64,
    /// The hard limit of znodes. Writes above it are refused.
    pub count_hard: i64,
    /// The hard limit of bytes. Writes above it are refused.
    pub bytes_hard: i64,
}

impl QuotaNumbers {
    /// No number is set.
    pub const UNSET: QuotaNumbers = QuotaNumbers { count: -1, bytes: -1, count_hard: -1, bytes_hard: -1 };

    /// Parses `count=3,bytes=10=;byteHardLimit=5;countHardLimit=2`. A value that is not a number counts as not set.
    pub fn parse(text: &[u8]) -> QuotaNumbers {
        let mut numbers = QuotaNumbers::UNSET;
        let text = read(text);
        for pair in text.split([',', ';']) {
            let mut parts = pair.split('=');
            let (Some(key), Some(value)) = (parts.next(), parts.next()) else { continue };
            let value = value.parse().unwrap_or(-1);
            match key {
                "count" => numbers.count = value,
                "bytes" => numbers.bytes = value,
                "countHardLimit" => numbers.count_hard = value,
                "byteHardLimit" => numbers.bytes_hard = value,
                _ => {}
            }
        }
        numbers
    }

    /// The text of a usage znode.
    pub fn usage_text(count: i64, bytes: i64) -> String {
        format!("count={count},bytes={bytes}")
    }

    /// The text of a usage znode after a change. As in upstream, keys that a client has written there stay, and numbers
    /// wrap around: a client can write anything there, and must not stop a server by it.
    pub fn grown_text(text: &[u8], count: i64, bytes: i64) -> String {
        let text = read(text);
        let pairs = text.split([',', ';']).filter_map(|pair| {
            let mut parts = pair.split('=');
            Some((parts.next()?, parts.next()?.parse::<i64>().unwrap_or(-1)))
        });
        let mut numbers: BTreeMap<&str, i64> = pairs.collect();
        let mut take = |key| numbers.remove(key).unwrap_or(-1);
        let mut grown =
            Self::usage_text(take("count").wrapping_add(count), take("bytes").wrapping_add(bytes));
        if !numbers.is_empty() {
            grown.push('=');
        }
        for (key, value) in numbers {
            grown.push_str(&format!(";{key}={value}"));
        }
        grown
    }
}

/// The paths that have limits.
#[derive(Debug, Default)]
pub struct QuotaTable {
    limited: BTreeSet<String>,
    lengths: PathLengths,
}

/// The path of the limits znode of a limited path.
pub fn limits_path(limited: &str) -> String {
    format!("{QUOTA_ROOT}{limited}/{QUOTA_LIMITS}")
}

/// The path of the usage znode of a limited path.
pub fn stats_path(limited: &str) -> String {
    format!("{QUOTA_ROOT}{limited}/{QUOTA_STATS}")
}

/// A znode of a quota, with the path that it limits.
#[derive(Debug, PartialEq, Eq)]
pub enum QuotaNode<'a> {
    /// The limits znode of this path.
    Limits(&'a str),
    /// The usage znode of this path.
    Stats(&'a str),
}

/// The kind of a quota's znode, and the path that it limits. `None` for any other znode.
pub fn classify(path: &str) -> Option<QuotaNode<'_>> {
    let (limited, name) = path.strip_prefix(QUOTA_ROOT)?.rsplit_once('/')?;
    match name {
        QUOTA_LIMITS => Some(QuotaNode::Limits(limited)),
        QUOTA_STATS => Some(QuotaNode::Stats(limited)),
        _ => None,
    }
}

impl QuotaTable {
    /// Adds a limited path, when its limits znode is created. As in upstream, a limit on the root is ignored.
    pub fn insert(&mut self, limited: &str) {
        if !limited.is_empty() && self.limited.insert(limited.into()) {
            self.lengths.add(limited);
        }
    }

    /// Removes a limited path, when its limits znode is deleted.
    pub fn remove(&mut self, limited: &str) {
        if self.limited.remove(limited) {
            self.lengths.remove(limited);
        }
    }

    /// The nearest limited path at or above `path`.
    pub fn limit_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.limited.is_empty() {
            return None;
        }
        core::iter::once(path).chain(self.lengths.above(path)).find(|path| self.limited.contains(*path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_the_format_of_the_admin_client() {
        let numbers = QuotaNumbers::parse(b"count=3,bytes=10=;byteHardLimit=5;countHardLimit=2");
        assert_eq!(numbers, QuotaNumbers { count: 3, bytes: 10, count_hard: 2, bytes_hard: 5 });
        let unset = QuotaNumbers { count: -1, bytes: -1, count_hard: -1, bytes_hard: -1 };
        assert_eq!(QuotaNumbers::parse(b"garbage,count=x"), unset);
        assert_eq!(QuotaNumbers::grown_text(b"count=3,bytes=4=;z=1;y=2", 1, -2), "count=4,bytes=2=;y=2;z=1");
    }

    #[test]
    fn a_long_text_is_not_read_to_its_end() {
        let long = format!("count=3,bytes=4=;x={},y=1", "1".repeat(TEXT_MAX));
        assert!(QuotaNumbers::grown_text(long.as_bytes(), 1, 0).starts_with("count=4,bytes=4"));
        assert!(QuotaNumbers::grown_text("a=1,".repeat(1 << 18).as_bytes(), 1, 0).len() < 100);
        assert_eq!(QuotaNumbers::parse(long.as_bytes()).count, 3);
    }

    #[test]
    fn the_nearest_limited_path_at_or_above_counts() {
        let mut table = QuotaTable::default();
        table.insert("/a");
        table.insert("/a/b");
        table.insert("");
        assert_eq!(table.limit_of("/a/b/c"), Some("/a/b"));
        assert_eq!(table.limit_of("/a/x"), Some("/a"));
        assert_eq!(table.limit_of("/ab"), None);
        assert_eq!(classify("/zookeeper/quota/a/b/zookeeper_limits"), Some(QuotaNode::Limits("/a/b")));
    }
}
