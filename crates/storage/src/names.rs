//! File names: `log.<zxid>` and `snapshot.<zxid>[.gz|.snappy]`, the zxid in lower-case hex without padding.
//!
//! Only exact names count. Upstream splits at dots and so takes `snapshot.5.bak` for a snapshot of zxid 5;
//! here such files are left alone.

use crate::{
    disk::Disk,
    error::{IoContext, Result},
};
use ostler_proto::id::Zxid;
use std::path::{Path, PathBuf};

/// How a snapshot comes about. A name of its own for each: a server may write one by and by while it is given another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Building {
    /// Beside the service.
    ByAndBy,
    /// While somebody waits.
    AtOnce,
}

/// How a snapshot file is compressed (`snapshot.compression.method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// `.gz`
    Gz,
    /// `.snappy`
    Snappy,
}

impl Compression {
    fn suffix(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gz => ".gz",
            Compression::Snappy => ".snappy",
        }
    }
}

/// A log file's name.
pub fn log_name(first: Zxid) -> String {
    format!("log.{:x}", first.0)
}

/// A snapshot file's name.
pub fn snapshot_name(zxid: Zxid, compression: Compression) -> String {
    format!("snapshot.{:x}{}", zxid.0, compression.suffix())
}

/// The zxid in a log file's name.
pub fn parse_log_name(name: &str) -> Option<Zxid> {
    let zxid = parse_zxid(name.strip_prefix("log.")?)?;
    (log_name(zxid) == name).then_some(zxid)
}

/// The zxid and compression in a snapshot file's name.
pub fn parse_snapshot_name(name: &str) -> Option<(Zxid, Compression)> {
    let rest = name.strip_prefix("snapshot.")?;
    let (hex, compression) = match rest.split_once('.') {
        None => (rest, Compression::None),
        Some((hex, "gz")) => (hex, Compression::Gz),
        Some((hex, "snappy")) => (hex, Compression::Snappy),
        Some(_) => return None,
    };
    let zxid = parse_zxid(hex)?;
    (snapshot_name(zxid, compression) == name).then_some((zxid, compression))
}

/// A zxid with the top bit set is -1 or worse in Java, which ignores such files.
fn parse_zxid(hex: &str) -> Option<Zxid> {
    u64::from_str_radix(hex, 16).ok().filter(|zxid| i64::try_from(*zxid).is_ok()).map(Zxid)
}

/// Where a snapshot is built before it gets its name: no prefix that Java or we would take for a snapshot.
pub(crate) fn unfinished_name(building: Building, snapshot_name: &str) -> String {
    let way = if building == Building::AtOnce { AT_ONCE } else { "" };
    format!("{UNFINISHED}{way}{snapshot_name}")
}

pub(crate) fn is_unfinished_snapshot(name: &str) -> bool {
    let way = |name: &str| name.strip_prefix(AT_ONCE).unwrap_or(name).starts_with("snapshot.");
    name.strip_prefix(UNFINISHED).is_some_and(way)
}

/// Prefix of files that a crash may leave half-written.
pub(crate) const UNFINISHED: &str = "unfinished.";
const AT_ONCE: &str = "at-once.";

/// A log file in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The zxid of its first transaction.
    pub first: Zxid,
    /// Where it is.
    pub path: PathBuf,
}

/// All log files of a folder, oldest first.
pub fn log_files(disk: &dyn Disk, dir: &Path) -> Result<Vec<LogFile>> {
    let names = disk.list(dir).during("list", dir)?;
    let mut files: Vec<LogFile> = names
        .iter()
        .filter_map(|name| parse_log_name(name).map(|first| LogFile { first, path: dir.join(name) }))
        .collect();
    files.sort_by_key(|file| file.first);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        assert_eq!(parse_log_name(&log_name(Zxid(0x1_0000_0001))), Some(Zxid(0x1_0000_0001)));
        for compression in [Compression::None, Compression::Gz, Compression::Snappy] {
            let name = snapshot_name(Zxid(0x1a), compression);
            assert_eq!(parse_snapshot_name(&name), Some((Zxid(0x1a), compression)));
        }
    }

    #[test]
    fn near_misses_are_left_alone() {
        for name in
            ["log", "log.", "log.05", "log.5.bak", "log.1A", "log.ffffffffffffffff", "xlog.5", "log.+5"]
        {
            assert_eq!(parse_log_name(name), None, "{name}");
        }
        for name in
            ["snapshot.5.tmp", "snapshot.5.gz.bak", "snapshot.g", "unfinished.snapshot.5", "snapshot.5."]
        {
            assert_eq!(parse_snapshot_name(name), None, "{name}");
        }
    }
}
