//! The samples of the last 24 hours.

use super::{
    latency::Ranges,
    marks::{Mark, Marks},
};
use ostler_server::admin::ServerFigures;
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The time between two samples, ms.
pub(crate) const STEP_MS: u64 = 10_000;
/// The samples that are kept: those of 24 hours.
const LENGTH: usize = 8_640;

/// The work of a server since the sample before, and its size at the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// Milliseconds since the sample before.
    pub(super) span_ms: u32,
    /// Answered requests.
    pub(super) operations: u32,
    /// The latency of reads and writes.
    pub(super) latency: Ranges,
    /// Syncs of the log, and the time of all of them.
    pub(super) syncs: u32,
    pub(super) sync_ms: u32,
    pub(super) outstanding: u32,
    pub(super) connections: u32,
    pub(super) sessions: u32,
    pub(super) descriptors: u32,
    pub(super) watches: u32,
    pub(super) znodes: u64,
    pub(super) bytes: u64,
    pub(super) memory: u64,
    pub(super) data_free: Option<u64>,
    pub(super) log_free: Option<u64>,
}

/// All that is kept takes less than this many bytes.
const _: () = assert!(size_of::<Option<Sample>>() * LENGTH < 2 << 20);

impl Sample {
    fn between(before: &ServerFigures, now: &ServerFigures) -> Sample {
        let (core, last) = (&now.core, &before.core);
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Sample {
            span_ms: small(now.up_ms.saturating_sub(before.up_ms)),
            operations: small(grown(last.latency_ms.count, core.latency_ms.count)),
            latency: Ranges::between(
                (&last.latency_ranges, last.latency_ms.max),
                (&core.latency_ranges, core.latency_ms.max),
            ),
            syncs: small(grown(before.syncs.count, now.syncs.count)),
            sync_ms: small(grown(before.syncs.sum, now.syncs.sum)),
            outstanding: small(core.outstanding as u64),
            connections: small(core.connections as u64),
            sessions: small(core.sessions as u64),
            descriptors: small(now.descriptors),
            watches: small(core.watches as u64),
            znodes: core.znodes as u64,
            bytes: core.bytes,
            memory: now.memory,
            data_free: now.data_free,
            log_free: now.log_free,
        }
    }
}

/// The growth of a count. A count that is lower than before was reset (`srst`) meanwhile.
pub(super) fn grown(before: u64, now: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

/// Free bytes at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FreeSpace {
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Of the disk with the snapshots.
    pub(crate) data: Option<u64>,
    /// Of the disk with the logs.
    pub(crate) log: Option<u64>,
}

/// The samples of a server.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The last figures, from which the next sample counts.
    last: Option<ServerFigures>,
    /// The number of the first sample: its time since the start of the server, in steps.
    first: u64,
    /// `None` where no sample was taken in time.
    samples: VecDeque<Option<Sample>>,
    marks: Marks,
}

impl Ring {
    /// Adds the figures of now.
    pub(crate) fn add(&self, figures: ServerFigures) {
        self.lock().add(figures);
    }

    /// Looks at what is kept.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Kept) -> T) -> T {
        look(&self.lock())
    }

    /// The free space of the disks, one in each minute.
    pub(crate) fn free_space(&self) -> Vec<FreeSpace> {
        const EACH: usize = 6;
        self.look(|kept| {
            kept.timed()
                .step_by(EACH)
                .map(|(at_ms, sample)| FreeSpace { at_ms, data: sample.data_free, log: sample.log_free })
                .collect()
        })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, figures: ServerFigures) {
        self.marks.see(&figures);
        let number = (figures.up_ms + STEP_MS / 2) / STEP_MS;
        let Some(last) = self.last else {
            self.last = Some(figures);
            self.first = number + 1;
            return;
        };
        let next = self.first + self.samples.len() as u64;
        if number < next {
            // Too early: the next one counts for both.
            return;
        }
        let missed = (number - next).min(LENGTH as u64);
        if missed as usize == LENGTH {
            self.samples.clear();
            self.first = number;
        } else {
            (0..missed).for_each(|_| self.samples.push_back(None));
        }
        self.samples.push_back(Some(Sample::between(&last, &figures)));
        while self.samples.len() > LENGTH {
            self.samples.pop_front();
            self.first += 1;
        }
        self.last = Some(figures);
    }

    /// The samples, each with the time at which it begins, in milliseconds since 1970. The clock of now counts for all of
    /// them.
    pub(super) fn timed(&self) -> impl Iterator<Item = (u64, &Sample)> {
        let started_ms = self.last.map_or(0, |last| (last.wall_ms.max(0) as u64).saturating_sub(last.up_ms));
        let begins = move |at: usize| started_ms + (self.first + at as u64).saturating_sub(1) * STEP_MS;
        let all = self.samples.iter().enumerate();
        all.filter_map(move |(at, sample)| Some((begins(at), sample.as_ref()?)))
    }

    /// The last time that the ring has heard of, in milliseconds since 1970.
    pub(super) fn now_ms(&self) -> u64 {
        self.last.map_or(0, |last| last.wall_ms.max(0) as u64)
    }

    /// The marks since a time.
    pub(super) fn marks_since(&self, since_ms: u64) -> Vec<Mark> {
        self.marks.since(since_ms)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ostler_server_core::{report::figures::Figures, stats::Summary};

    /// The figures of a server that has answered this number of requests, `up_ms` after its start.
    pub(crate) fn figures(up_ms: u64, operations: u64) -> ServerFigures {
        ServerFigures {
            core: Figures {
                latency_ms: Summary { count: operations, ..Summary::default() },
                ..Figures::default()
            },
            syncs: Summary::default(),
            memory: 0,
            descriptors: 0,
            data_free: Some(up_ms),
            log_free: None,
            me: None,
            place: Default::default(),
            wall_ms: 1_000_000_000 + up_ms as i64,
            up_ms,
        }
    }

    fn operations(ring: &Ring) -> Vec<u32> {
        ring.look(|kept| kept.timed().map(|(_, sample)| sample.operations).collect())
    }

    #[test]
    fn a_sample_counts_from_the_one_before() {
        let ring = Ring::default();
        for (up_ms, count) in [(3, 5), (10_004, 25), (19_998, 26), (30_001, 4)] {
            ring.add(figures(up_ms, count));
        }
        // The counts were reset before the last one.
        assert_eq!(operations(&ring), [20, 1, 4]);
        assert_eq!(ring.look(|kept| kept.timed().next().map(|(at, _)| at)), Some(1_000_000_000));
    }

    #[test]
    fn a_gap_stays_a_gap_and_its_end_counts_for_it() {
        let ring = Ring::default();
        for (up_ms, count) in [(0, 0), (10_000, 1), (50_000, 41), (51_000, 90), (60_000, 100)] {
            ring.add(figures(up_ms, count));
        }
        assert_eq!(operations(&ring), [1, 40, 59]);
        let times: Vec<u64> = ring.look(|kept| kept.timed().map(|(at, _)| at - 1_000_000_000).collect());
        assert_eq!(times, [0, 40_000, 50_000]);
    }

    #[test]
    fn a_day_is_kept() {
        let ring = Ring::default();
        (0..LENGTH as u64 + 100).for_each(|at| ring.add(figures(at * STEP_MS, at)));
        assert_eq!(ring.look(|kept| kept.timed().count()), LENGTH);
        assert_eq!(
            ring.look(|kept| kept.timed().next().map(|(at, _)| at)),
            Some(1_000_000_000 + 99 * STEP_MS)
        );
        // The machine slept for two days.
        ring.add(figures(3 * 86_400_000, 20_000));
        assert_eq!(ring.look(|kept| kept.timed().count()), 1);
    }
}
