//! The time that the disk takes to make a write of the log durable.

use super::finding::{Finding, Level, Topic};
use ostler_server::config::ServerConfig;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{Duration, Instant},
};

/// The number of writes that are measured, and how long the measurement may take.
const WRITES: usize = 50;
const LONGEST: Duration = Duration::from_secs(5);
/// A small batch of the log.
const SIZE: usize = 4096;
/// No disk is as fast as that: the write is not durable, or the file is in memory.
const TOO_FAST: Duration = Duration::from_micros(5);
/// Each write of a client waits for this time at least.
const SLOW: Duration = Duration::from_millis(20);
const STALLED: Duration = Duration::from_secs(1);

/// Measures in the folder of the logs, or in the nearest one above that exists.
pub(super) fn check(config: &ServerConfig) -> Option<Finding> {
    let wanted = config.folders.data_log_dir.join("version-2");
    let folder = wanted.ancestors().find(|folder| folder.is_dir())?;
    if !config.log.force_sync {
        let text =
            "forceSync=no: acknowledged writes are lost if the machine loses its power; remove the line";
        return Some(Finding::new(Level::Warning, Topic::Disk, text));
    }
    match measure(folder) {
        Ok(times) => judge(folder, times),
        Err(error) => Some(Finding::new(
            Level::Warning,
            Topic::Disk,
            format!("{}: the sync time of this disk cannot be measured: {error}", folder.display()),
        )),
    }
}

/// The times of writes of the log's kind. The file is removed, also after an error.
fn measure(folder: &Path) -> io::Result<Vec<Duration>> {
    let path = folder.join(format!("ostler-check-{}.tmp", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let begun = Instant::now();
    let measured = (|| {
        let mut times = Vec::with_capacity(WRITES);
        while times.len() < WRITES && begun.elapsed() < LONGEST {
            let start = Instant::now();
            file.write_all(&[7; SIZE])?;
            file.sync_data()?;
            times.push(start.elapsed());
        }
        Ok(times)
    })();
    fs::remove_file(&path)?;
    measured
}

/// `None` without a measured write.
fn judge(folder: &Path, mut times: Vec<Duration>) -> Option<Finding> {
    times.sort();
    let (median, longest) = (*times.get(times.len() / 2)?, *times.last()?);
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
    let measured = format!(
        "{}: a synced write of {SIZE} bytes takes {} (median of {}), {} at most",
        folder.display(),
        ms(median),
        times.len(),
        ms(longest)
    );
    let (level, advice) = if median < TOO_FAST {
        (
            Level::Warning,
            "; no disk is as fast, so this may be memory, or a disk that reports a sync before it is done",
        )
    } else if median > SLOW {
        (
            Level::Warning,
            "; each write of a client waits for that, so put dataLogDir on a disk of its own, such as an SSD",
        )
    } else if longest > STALLED {
        (
            Level::Warning,
            "; followers may take this server for dead meanwhile, so put dataLogDir on a disk of its own",
        )
    } else {
        (Level::Fact, "")
    };
    Some(Finding::new(level, Topic::Disk, format!("{measured}{advice}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(times: &[u64]) -> Level {
        let times = times.iter().map(|us| Duration::from_micros(*us)).collect();
        judge(Path::new("/logs"), times).unwrap().level
    }

    #[test]
    fn slow_stalled_and_impossible_disks_are_warned_of() {
        assert_eq!(level(&[400, 500, 600]), Level::Fact);
        assert_eq!(level(&[400, 25_000, 26_000]), Level::Warning);
        assert_eq!(level(&[400, 500, 1_100_000]), Level::Warning);
        assert_eq!(level(&[1, 1, 600]), Level::Warning);
        assert_eq!(judge(Path::new("/logs"), Vec::new()), None);
    }

    #[test]
    fn the_file_of_the_measurement_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!measure(dir.path()).unwrap().is_empty());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
