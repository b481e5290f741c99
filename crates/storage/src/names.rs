//! The names of logs and snapshots: `log.<zxid>` and `snapshot.<zxid>[.gz|.snappy]`, with the zxid in lower-case hex
//! without padding.
//!
//! Only exact names count. Upstream splits names at dots and takes `snapshot.5.bak` for a snapshot of zxid 5. Ostler
//! ignores such files, but for `snapshot.5.tmp`: see `snapshot/unrenamed.rs`.

use crate::{
    disk::Disk,
    error::{IoContext, Result},
};
use ostler_proto::id::Zxid;
use std::path::{Path, PathBuf};

/// The way in which a snapshot is written. Each has its own temporary name, since a server can write one of both at the
/// same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Building {
    /// Slowly, while the server goes on serving.
    Background,
    /// As fast as possible, since the server waits for it.
    Foreground,
}

/// How a snapshot file is compressed (`snapshot.compression.method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Compression {
    /// Not compressed.
    #[default]
    None,
    /// gzip; the name ends with `.gz`.
    Gz,
    /// Snappy; the name ends with `.snappy`.
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

/// The name of the log file that starts with transaction `first`.
pub fn log_name(first: Zxid) -> String {
    format!("log.{:x}", first.0)
}

/// The name of the snapshot file at `zxid`.
pub fn snapshot_name(zxid: Zxid, compression: Compression) -> String {
    format!("snapshot.{:x}{}", zxid.0, compression.suffix())
}

/// The zxid in the name of a log file. `None` for another name.
pub fn parse_log_name(name: &str) -> Option<Zxid> {
    let zxid = parse_zxid(name.strip_prefix("log.")?)?;
    (log_name(zxid) == name).then_some(zxid)
}

/// The zxid and the compression in the name of a snapshot file. `None` for another name.
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

/// The zxid in the name under which Java writes a leader's tree before it renames the file. `None` for another name.
pub fn parse_unrenamed_name(name: &str) -> Option<Zxid> {
    let (zxid, compression) = parse_snapshot_name(name.strip_suffix(".tmp")?)?;
    (compression == Compression::None).then_some(zxid)
}

/// Java ignores files whose zxid has the top bit set, since such a zxid is negative.
fn parse_zxid(hex: &str) -> Option<Zxid> {
    u64::from_str_radix(hex, 16).ok().filter(|zxid| i64::try_from(*zxid).is_ok()).map(Zxid)
}

/// The temporary name of a snapshot that is being written. Neither Java nor Ostler takes it for a snapshot.
pub(crate) fn unfinished_name(building: Building, snapshot_name: &str) -> String {
    let infix = if building == Building::Foreground { FOREGROUND } else { "" };
    format!("{UNFINISHED}{infix}{snapshot_name}")
}

pub(crate) fn is_unfinished_snapshot(name: &str) -> bool {
    let is_snapshot = |name: &str| name.strip_prefix(FOREGROUND).unwrap_or(name).starts_with("snapshot.");
    name.strip_prefix(UNFINISHED).is_some_and(is_snapshot)
}

/// The prefix of files that a crash can leave half-written.
pub(crate) const UNFINISHED: &str = "unfinished.";
/// Follows the prefix in the names of snapshots that are written in the foreground.
const FOREGROUND: &str = "at-once.";

/// A log file in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The zxid of its first transaction, from the name.
    pub first: Zxid,
    /// The path of the file.
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
    fn a_name_is_parsed_to_what_it_was_made_from() {
        assert_eq!(parse_log_name(&log_name(Zxid(0x1_0000_0001))), Some(Zxid(0x1_0000_0001)));
        for compression in [Compression::None, Compression::Gz, Compression::Snappy] {
            let name = snapshot_name(Zxid(0x1a), compression);
            assert_eq!(parse_snapshot_name(&name), Some((Zxid(0x1a), compression)));
        }
        assert_eq!(parse_unrenamed_name("snapshot.1a.tmp"), Some(Zxid(0x1a)));
    }

    #[test]
    fn inexact_names_are_ignored() {
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
        for name in ["snapshot.5", "snapshot.5.gz.tmp", "snapshot.05.tmp", "snapshot.tmp", "x.snapshot.5.tmp"]
        {
            assert_eq!(parse_unrenamed_name(name), None, "{name}");
        }
    }
}
