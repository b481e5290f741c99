//! When a disk is full, and how long a restart takes.

use crate::metrics::FreeSpace;
use ostler_server::admin::{DiskReport, LastStart};
use std::time::Duration;

/// A shorter record says nothing about the growth, ms.
const RECORD_MIN_MS: u64 = 600_000;
/// A change below this in the whole record counts as none, bytes.
const NOISE: f64 = 1_048_576.0;
/// A disk that is full later than this is not full in any time that can be told, ms: ten years.
const FAR_MS: f64 = 10.0 * 365.0 * 86_400_000.0;
const HOUR_MS: f64 = 3_600_000.0;
/// With less data than this at the start, its speed is that of opening files.
const BYTES_MEASURED: u64 = 1 << 20;
const RECORDS_MEASURED: u64 = 1_000;

/// The growth of the files on a server's disks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Forecast {
    /// Bytes that the disks lose in an hour; negative if they gain some. `None` if the record is too short.
    pub(super) grows_bytes_per_hour: Option<i64>,
    /// Until the first of the disks is full; `None` if that is not in sight.
    pub(super) full_in_ms: Option<u64>,
}

impl Forecast {
    /// From the free space in the last hours. It counts what other programs write, too: they fill the disk as well.
    pub(super) fn of(record: &[FreeSpace], is_one_disk: bool) -> Forecast {
        let data = Trend::of(record.iter().filter_map(|of| Some((of.at_ms, of.data?))));
        let log = Trend::of(record.iter().filter_map(|of| Some((of.at_ms, of.log?))));
        let disks: Vec<Trend> =
            if is_one_disk { vec![data] } else { vec![data, log] }.into_iter().flatten().collect();
        if disks.is_empty() {
            return Forecast::default();
        }
        Forecast {
            grows_bytes_per_hour: Some(
                disks.iter().map(|disk| disk.grows_per_hour).sum::<f64>().round() as i64
            ),
            full_in_ms: disks.iter().filter_map(Trend::full_in_ms).min(),
        }
    }
}

/// The growth on one disk.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trend {
    grows_per_hour: f64,
    /// Free bytes at the end of the record.
    free: f64,
}

impl Trend {
    /// The line with the least squares through the free bytes at their times.
    fn of(record: impl Iterator<Item = (u64, u64)>) -> Option<Trend> {
        let points: Vec<(u64, u64)> = record.collect();
        let ((first, _), (last, free)) = (points.first()?, points.last()?);
        let span_ms = last.saturating_sub(*first);
        if span_ms < RECORD_MIN_MS {
            return None;
        }
        let hours = |at: u64| at.saturating_sub(*first) as f64 / HOUR_MS;
        let count = points.len() as f64;
        let mean = |value: &dyn Fn(&(u64, u64)) -> f64| points.iter().map(value).sum::<f64>() / count;
        let (mean_hours, mean_free) = (mean(&|of| hours(of.0)), mean(&|of| of.1 as f64));
        let covariance = mean(&|of| (hours(of.0) - mean_hours) * (of.1 as f64 - mean_free));
        let variance = mean(&|of| (hours(of.0) - mean_hours).powi(2));
        let grows = if variance > 0.0 { -covariance / variance } else { 0.0 };
        let is_noise = (grows * span_ms as f64 / HOUR_MS).abs() < NOISE;
        Some(Trend { grows_per_hour: if is_noise { 0.0 } else { grows }, free: *free as f64 })
    }

    fn full_in_ms(&self) -> Option<u64> {
        let ms = (self.grows_per_hour > 0.0).then(|| self.free / self.grows_per_hour * HOUR_MS)?;
        (ms < FAR_MS).then_some(ms as u64)
    }
}

/// The time that a restart would take to load the data, ms, by the speed of the last start; `None` if that has read too
/// little to tell.
pub(super) fn restart_ms(report: &DiskReport) -> Option<u64> {
    let newest = report.snapshots.iter().find(|file| file.problem.is_none())?;
    let LastStart { snapshot, snapshot_bytes, log, records } = report.start;
    let snapshot = scaled(snapshot, snapshot_bytes, (newest.bytes, BYTES_MEASURED))?;
    let log = scaled(log, records, (report.records_to_replay, RECORDS_MEASURED))?;
    Some((snapshot + log).as_millis() as u64)
}

/// The time for `amount`, if `took` was the time for `measured`. Below `least` the speed is not known; then as little takes
/// no longer than it took.
fn scaled(took: Duration, measured: u64, (amount, least): (u64, u64)) -> Option<Duration> {
    if measured >= least {
        return Some(took.mul_f64(amount as f64 / measured as f64));
    }
    (amount <= least).then_some(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// One point each minute.
    fn record(minutes: u64, free: impl Fn(u64) -> u64) -> Vec<FreeSpace> {
        (0..=minutes)
            .map(|minute| FreeSpace {
                at_ms: 7_000_000 + minute * 60_000,
                data: Some(free(minute)),
                log: Some(free(minute) / 2),
            })
            .collect()
    }

    #[test]
    fn a_disk_that_loses_the_same_each_hour_is_full_when_all_is_lost() {
        // 60 MiB an hour, 6,000 MiB free at the end.
        let of = Forecast::of(&record(120, |minute| (6_120 - minute) * MIB), true);
        assert_eq!(of.grows_bytes_per_hour, Some(60 * MIB as i64));
        assert_eq!(of.full_in_ms, Some(100 * 3_600_000));
    }

    #[test]
    fn the_first_of_two_disks_that_is_full_counts() {
        let mut all = record(120, |minute| (6_120 - minute) * MIB);
        // 120 MiB an hour of 240.
        all.iter_mut().zip(0..).for_each(|(of, minute)| of.log = Some((480 - 2 * minute) * MIB));
        let of = Forecast::of(&all, false);
        assert_eq!(of.grows_bytes_per_hour, Some(180 * MIB as i64));
        assert_eq!(of.full_in_ms, Some(2 * 3_600_000));
    }

    #[test]
    fn steps_up_and_down_leave_the_trend() {
        // Each half an hour a purge gives back most of what was written.
        let of =
            Forecast::of(&record(1440, |minute| (100_000 - minute / 30 * 10 - minute % 30 * 5) * MIB), true);
        let grows = of.grows_bytes_per_hour.unwrap() as f64 / MIB as f64;
        assert!((19.0..21.0).contains(&grows), "{grows}");
    }

    #[test]
    fn no_growth_and_short_records_give_no_end() {
        assert_eq!(Forecast::of(&record(9, |_| MIB), true), Forecast::default());
        assert_eq!(Forecast::of(&[], true), Forecast::default());
        let still = Forecast::of(&record(60, |_| 500 * MIB), true);
        assert_eq!(still, Forecast { grows_bytes_per_hour: Some(0), full_in_ms: None });
        let freed = Forecast::of(&record(60, |minute| (500 + minute) * MIB), true);
        assert_eq!(freed, Forecast { grows_bytes_per_hour: Some(-60 * MIB as i64), full_in_ms: None });
        // A kilobyte a minute is nothing.
        let noise = Forecast::of(&record(60, |minute| 500 * MIB - minute * 1024), true);
        assert_eq!(noise, Forecast { grows_bytes_per_hour: Some(0), full_in_ms: None });
    }

    #[test]
    fn a_restart_is_as_fast_as_the_last_one() {
        let second = Duration::from_secs(1);
        assert_eq!(scaled(second, 10 * MIB, (40 * MIB, MIB)), Some(Duration::from_secs(4)));
        assert_eq!(scaled(second, 10 * MIB, (0, MIB)), Some(Duration::ZERO));
        // The start has read nearly nothing: that says nothing about much.
        assert_eq!(scaled(second, 100, (40 * MIB, MIB)), None);
        assert_eq!(scaled(second, 100, (200, MIB)), Some(second));
    }
}
