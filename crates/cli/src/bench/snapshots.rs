//! Finds out when the server wrote snapshots, from the open files of its process.

use super::process::Process;
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// The interval at which the open files are checked.
const PERIOD: Duration = Duration::from_millis(10);

/// Stretches of time, as nanoseconds since some start.
#[derive(Debug, Default)]
pub(crate) struct Stretches(Vec<(u64, u64)>);

impl Stretches {
    /// Watches `process` until `stop`; `seen` counts the snapshots that are complete and began after `warm`.
    pub(crate) fn watch(
        process: Process,
        start: Instant,
        warm: u64,
        stop: &AtomicBool,
        seen: &AtomicUsize,
    ) -> Stretches {
        let now = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut stretches = Vec::new();
        let mut begin = None;
        while !stop.load(Ordering::Relaxed) {
            let writing = process.open_files().any(|file| is_snapshot(&file));
            match (begin, writing) {
                (None, true) => begin = Some(now()),
                (Some(from), false) => {
                    stretches.push((from, now()));
                    seen.fetch_add(usize::from(from >= warm), Ordering::Relaxed);
                    begin = None;
                }
                _ => {}
            }
            std::thread::sleep(PERIOD);
        }
        stretches.extend(begin.map(|from| (from, now())));
        Stretches(stretches)
    }

    /// Leaves out what began before `warm`.
    pub(crate) fn after(&self, warm: u64) -> Stretches {
        Stretches(self.0.iter().copied().filter(|&(from, _)| from >= warm).collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.iter().map(|(from, to)| (to - from) as f64 / 1e9).sum()
    }

    /// Whether a snapshot was written while a request waited, from `due` to `done`. A short time before the file was
    /// opened counts, too.
    pub(crate) fn meet(&self, due: u64, done: u64) -> bool {
        const BEFORE: u64 = 50_000_000;
        self.0.iter().any(|&(from, to)| due <= to && done >= from.saturating_sub(BEFORE))
    }
}

/// Servers write `version-2/snapshot.<zxid>`, some by way of a temporary file there.
fn is_snapshot(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name);
    let name = file.file_name().map(|name| name.to_string_lossy());
    folder.is_some_and(|folder| folder == "version-2") && name.is_some_and(|name| name.contains("snap"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_distinguished_from_logs() {
        assert!(is_snapshot(Path::new("/data/version-2/snapshot.1a")));
        assert!(is_snapshot(Path::new("/data/version-2/snapshot.1a.tmp")));
        assert!(!is_snapshot(Path::new("/data/version-2/log.1a")));
        assert!(!is_snapshot(Path::new("/snapshot/lib/x.jar")));
    }

    #[test]
    fn requests_meet_the_snapshots_they_overlap() {
        let second = 1_000_000_000;
        let stretches = Stretches(vec![(10 * second, 12 * second)]);
        assert!(!stretches.meet(9 * second, 9 * second + 1));
        assert!(stretches.meet(9 * second, 10 * second));
        assert!(stretches.meet(11 * second, 11 * second));
        assert!(!stretches.meet(13 * second, 14 * second));
        assert_eq!((stretches.count(), stretches.seconds()), (1, 2.0));
        assert_eq!(stretches.after(11 * second).count(), 0);
    }
}
