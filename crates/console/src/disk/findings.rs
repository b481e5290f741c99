//! Findings about a server's disk, each with the way out.

use super::forecast::Forecast;
use ostler_server::admin::{DiskReport, Folder};
use serde::{Deserialize, Serialize};

/// Less free space than this part of the disk is little, in percent.
const LITTLE: u64 = 10;
/// The disk will be full soon, ms: within a day.
const SOON_MS: u64 = 86_400_000;
/// Damaged files that are named one by one.
const NAMED_MAX: usize = 5;

/// Something that an operator should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) sentence: String,
    pub(super) way_out: String,
}

/// The level of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Warning,
    Critical,
}

/// All findings, the worst first.
pub(super) fn findings(report: &DiskReport, forecast: &Forecast) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    all.extend(failed_snapshot(report));
    all.extend(damaged(report));
    all.extend(little_space(report, &report.data, "snapshots"));
    if !report.is_one_disk {
        all.extend(little_space(report, &report.log, "logs"));
    }
    all.extend(few_snapshots(report));
    all.extend(full_soon(forecast));
    all.extend(never_purged(report));
    all.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    all
}

fn finding(level: Level, sentence: String, way_out: impl Into<String>) -> Finding {
    Finding { level, sentence, way_out: way_out.into() }
}

/// The last snapshot has failed, and none was written since.
fn failed_snapshot(report: &DiskReport) -> Option<Finding> {
    let failed = report.failed.as_ref()?;
    if report.written.is_some_and(|written| written.at >= failed.at) {
        return None;
    }
    let sentence = format!(
        "The snapshot at {} was not written: {}. The log keeps growing until one is, and a restart takes longer.",
        failed.zxid, failed.error
    );
    let folder = report.data.path.display();
    Some(finding(
        Level::Critical,
        sentence,
        format!("Give {folder} space and let the server write there, then take a snapshot."),
    ))
}

fn damaged(report: &DiskReport) -> Vec<Finding> {
    let snapshots = report.snapshots.iter().filter_map(|file| {
        let sentence = format!("{} cannot be read: {}.", file.name, file.problem.as_ref()?);
        Some(finding(
            Level::Warning,
            sentence,
            "A start takes an older snapshot and the log after it. Take a snapshot now, and move this file away to look at it.",
        ))
    });
    let logs = report.logs.iter().filter_map(|file| {
        let sentence = format!("{} cannot be read: {}.", file.name, file.problem.as_ref()?);
        Some(finding(
            Level::Critical,
            sentence,
            "A restart may need it. Take a snapshot now, and check the folder with `ostler check` before the next start.",
        ))
    });
    let mut all: Vec<Finding> = snapshots.chain(logs).collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        all.truncate(NAMED_MAX);
        all.push(finding(
            Level::Warning,
            format!("{more} more files cannot be read."),
            "The lists of the files name them.",
        ));
    }
    all
}

fn little_space(report: &DiskReport, folder: &Folder, files: &str) -> Option<Finding> {
    let space = folder.space.filter(|space| space.total_bytes > 0)?;
    let is_little = u128::from(space.free_bytes) * 100 < u128::from(space.total_bytes) * u128::from(LITTLE);
    let percent = u128::from(space.free_bytes) * 100 / u128::from(space.total_bytes);
    let sentence = format!(
        "{percent} % of the disk with the {files} is free: {} of {}.",
        size(space.free_bytes),
        size(space.total_bytes)
    );
    is_little.then(|| finding(Level::Warning, sentence, way_to_space(report)))
}

/// A snapshot is written beside the one before, so there must be room for it; with room for one alone the next one fails.
fn few_snapshots(report: &DiskReport) -> Option<Finding> {
    let newest = report.snapshots.iter().find(|file| file.problem.is_none())?;
    let free = report.data.space?.free_bytes;
    if newest.bytes == 0 || free >= newest.bytes.saturating_mul(2) {
        return None;
    }
    let level = if free < newest.bytes { Level::Critical } else { Level::Warning };
    let sentence = format!(
        "The disk with the snapshots has room for fewer than two of them: {} are free, and the newest one takes {}.",
        size(free),
        size(newest.bytes)
    );
    Some(finding(level, sentence, way_to_space(report)))
}

fn full_soon(forecast: &Forecast) -> Option<Finding> {
    let full_in_ms = forecast.full_in_ms.filter(|ms| *ms < SOON_MS)?;
    let hours = (full_in_ms / 3_600_000).max(1);
    let grows = size(forecast.grows_bytes_per_hour?.unsigned_abs());
    let sentence =
        format!("At the growth of the last hours, {grows} an hour, the disk is full in about {hours} h.");
    Some(finding(
        Level::Warning,
        sentence,
        "Find out what writes: the charts show the writes of clients. Then free space.",
    ))
}

fn never_purged(report: &DiskReport) -> Option<Finding> {
    let is_off = report.autopurge_keeps.is_none() && !report.purge.removes.is_empty();
    let sentence = format!(
        "Old files are never removed here (autopurge.purgeInterval=0): {} files with {} are not needed.",
        report.purge.removes.len(),
        size(purged_bytes(report))
    );
    is_off.then(|| finding(Level::Warning, sentence, "Purge them, or set autopurge.purgeInterval=1."))
}

fn purged_bytes(report: &DiskReport) -> u64 {
    report.purge.removes.iter().map(|(_, bytes)| bytes).sum()
}

fn way_to_space(report: &DiskReport) -> String {
    match purged_bytes(report) {
        0 => "Give the disk more space, or move other files away: a purge would remove nothing.".into(),
        bytes => format!("Purge old files: {}. Or give the disk more space.", size(bytes)),
    }
}

/// A size for people, in the units of the pages.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ostler_proto::id::Zxid;
    use ostler_server::admin::{
        FailedSnapshot, LastStart, LogOnDisk, Purge, SnapshotOnDisk, Space, WrittenSnapshot,
    };
    use std::time::{Duration, SystemTime};

    const GIB: u64 = 1 << 30;

    pub(crate) fn report() -> DiskReport {
        let folder = Folder {
            path: "/data/version-2".into(),
            space: Some(Space { free_bytes: 50 * GIB, total_bytes: 100 * GIB }),
        };
        let snapshot = |zxid| SnapshotOnDisk {
            name: format!("snapshot.{zxid:x}"),
            zxid: Zxid(zxid),
            bytes: GIB,
            at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(zxid)),
            problem: None,
        };
        let log = LogOnDisk {
            name: "log.1".into(),
            from: Zxid(1),
            to: Some(Zxid(99)),
            bytes: 64 << 20,
            problem: None,
        };
        DiskReport {
            data: folder.clone(),
            log: folder,
            is_one_disk: true,
            snapshots: vec![snapshot(80), snapshot(40)],
            logs: vec![log],
            written: None,
            failed: None,
            last_zxid: Zxid(99),
            start: LastStart::default(),
            records_to_replay: 19,
            autopurge_keeps: Some(3),
            purge: Purge { keep: 3, removes: Vec::new() },
        }
    }

    fn found(report: &DiskReport) -> Vec<(Level, String)> {
        let all = findings(report, &Forecast::default());
        assert!(all.iter().all(|finding| !finding.way_out.is_empty()));
        all.into_iter().map(|finding| (finding.level, finding.sentence)).collect()
    }

    #[test]
    fn nothing_is_wrong_with_an_ordinary_disk() {
        assert_eq!(found(&report()), []);
    }

    #[test]
    fn little_space_is_found_on_each_disk() {
        let mut of = report();
        of.data.space = Some(Space { free_bytes: 9 * GIB, total_bytes: 100 * GIB });
        assert_eq!(
            found(&of),
            [(Level::Warning, "9 % of the disk with the snapshots is free: 9.7 GB of 107.4 GB.".into())]
        );
        of.is_one_disk = false;
        of.log.space = Some(Space { free_bytes: 0, total_bytes: 1024 });
        let sentences = found(&of);
        assert_eq!(sentences.len(), 2);
        assert_eq!(sentences[1].1, "0 % of the disk with the logs is free: 0 bytes of 1.0 kB.");
        let none = Folder { space: None, ..of.data.clone() };
        assert_eq!(found(&DiskReport { data: none.clone(), log: none, ..report() }), []);
    }

    #[test]
    fn room_for_fewer_than_two_snapshots_is_found() {
        let mut of = report();
        let mut levels = |free_bytes| {
            of.data.space = Some(Space { free_bytes, total_bytes: free_bytes });
            found(&of).iter().map(|finding| finding.0).collect::<Vec<_>>()
        };
        assert_eq!(levels(2 * GIB), []);
        assert_eq!(levels(2 * GIB - 1), [Level::Warning]);
        assert_eq!(levels(GIB - 1), [Level::Critical]);
    }

    #[test]
    fn a_failed_snapshot_counts_until_one_is_written() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let failed = FailedSnapshot { zxid: Zxid(0x90), at, error: "the disk is full".into() };
        let mut of = DiskReport { failed: Some(failed), ..report() };
        let sentences = found(&of);
        assert_eq!(sentences[0].0, Level::Critical);
        assert!(
            sentences[0].1.starts_with("The snapshot at 0x90 was not written: the disk is full."),
            "{sentences:?}"
        );
        let written = |secs| WrittenSnapshot {
            zxid: Zxid(0x91),
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(secs),
            took: Duration::ZERO,
        };
        of.written = Some(written(99));
        assert_eq!(found(&of).len(), 1);
        of.written = Some(written(101));
        assert_eq!(found(&of), []);
    }

    #[test]
    fn damaged_files_are_named_up_to_a_number() {
        let mut of = report();
        of.snapshots[0].problem = Some("its end is not that of a snapshot".into());
        of.logs[0].problem = Some("it does not begin as a log does".into());
        assert_eq!(
            found(&of),
            [
                (Level::Critical, "log.1 cannot be read: it does not begin as a log does.".into()),
                (Level::Warning, "snapshot.50 cannot be read: its end is not that of a snapshot.".into())
            ]
        );
        of.snapshots = vec![of.snapshots[0].clone(); 8];
        assert_eq!(found(&of).len(), 6);
    }

    #[test]
    fn the_end_of_the_space_and_of_patience_is_found() {
        let soon = Forecast { grows_bytes_per_hour: Some(10 << 30), full_in_ms: Some(5 * 3_600_000) };
        let all = findings(&report(), &soon);
        assert_eq!(
            all[0].sentence,
            "At the growth of the last hours, 10.7 GB an hour, the disk is full in about 5 h."
        );
        let later = Forecast { full_in_ms: Some(SOON_MS), ..soon };
        assert_eq!(findings(&report(), &later), []);
    }

    #[test]
    fn files_that_nothing_removes_are_found_with_their_size() {
        let removes = vec![("log.1".to_owned(), 1000), ("snapshot.0".to_owned(), 24)];
        let mut of = DiskReport { purge: Purge { keep: 3, removes }, ..report() };
        assert_eq!(found(&of), [], "the next purge removes them");
        of.autopurge_keeps = None;
        let expected = "Old files are never removed here (autopurge.purgeInterval=0): 2 files with 1.0 kB are not needed.";
        assert_eq!(found(&of), [(Level::Warning, expected.into())]);
    }
}
