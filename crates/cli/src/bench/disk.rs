//! Measures a disk: writes logs as servers do, without network, tree and clients.
//!
//! A server that syncs before it acknowledges cannot be faster on this disk.

use super::{
    counted,
    error::{BenchError, Result, While},
    meter::Meter,
    progress::Progress,
    report::Report,
    tally::Tally,
};
use clap::Args;
use ostler_proto::id::Zxid;
use ostler_storage::{
    StorageError,
    disk::OsDisk,
    txnlog::{LogOptions, TxnLog},
};
use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    process,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The interval at which the progress line may change.
const GLANCE: Duration = Duration::from_millis(100);

/// Measure how fast a disk writes and syncs transaction logs, without a server.
///
/// Each writer waits for its write before it begins the next. A write is done when more than half of the logs have
/// synced it. A log syncs all records that came during its last sync together. One log shows what the disk allows for a
/// standalone server. Three logs show what it allows for three servers of an ensemble that share the disk.
#[derive(Args)]
#[command(after_help = "Example: ostler bench disk --folder /var/lib/zookeeper --logs 3 --writers 100")]
pub(crate) struct Options {
    /// Folder on the disk to measure; the logs are written into a new folder below it, which is deleted at the end.
    #[arg(long, default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Number of logs, each with its own thread; a log has at least 64 MiB.
    #[arg(long, default_value_t = 1, value_name = "N")]
    logs: usize,
    /// Number of writers, each with one write at a time.
    #[arg(long, default_value_t = 1, value_name = "N")]
    writers: usize,
    /// Bytes of each record; a setData of 100 bytes takes about 180.
    #[arg(long, default_value_t = 180, value_name = "BYTES")]
    record_size: usize,
    /// How long to measure, in seconds.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// How long to write before measuring, in seconds.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    warmup: f64,
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    if options.logs == 0 || options.writers == 0 || options.record_size == 0 {
        return Err(BenchError::Usage("--logs, --writers and --record-size must be at least 1".into()));
    }
    let duration = |name: &str, seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|cause| BenchError::Usage(format!("--{name} {seconds}: {cause}")))
    };
    let (warmup, measured) = (duration("warmup", options.warmup)?, duration("seconds", options.seconds)?);
    let folder = Folder::create(&options.folder)?;
    let round = Round::new(options.logs, options.writers);
    let (meter, found) = thread::scope(|scope| {
        for log in 0..options.logs {
            let dir = folder.0.join(log.to_string());
            let round = &round;
            scope.spawn(move || {
                if let Err(error) = round.write_log(log, &dir, options.record_size) {
                    round.fail(error);
                }
            });
        }
        round.wait(warmup, "warming up");
        round.lock().forget();
        let meter = Meter::start(None);
        round.wait(measured, "measuring");
        (meter, round.end())
    });
    report(options, meter, found?)
}

fn report(options: &Options, meter: Meter, found: Measured) -> Result<Report> {
    let mut metered = meter.stop(found.writes.ops());
    // There is no server: the CPU time here is for the work that a server would do.
    metered.client_cpu_us_per_op = None;
    let folder = options.folder.canonicalize().during("cannot find the folder")?;
    let (logs, writers) = (counted(options.logs, "log"), counted(options.writers, "writer"));
    let settings = format!("{logs}, {writers}, records of {} bytes", options.record_size);
    let mut report = Report::new("disk", folder.display(), settings, &found.writes, metered);
    report.row("syncs", &found.syncs);
    Ok(report)
}

/// A folder of this process. It is deleted with its content when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn create(parent: &Path) -> Result<Folder> {
        let path = parent.join(format!("ostler-bench-disk-{}", process::id()));
        fs::create_dir(&path).during(format!("cannot create {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(cause) = fs::remove_dir_all(&self.0) {
            eprintln!("ostler bench: cannot remove {}: {cause}", self.0.display());
        }
    }
}

/// The measurements.
struct Measured {
    writes: Tally,
    /// Each write and sync of one log, with any number of records.
    syncs: Tally,
}

/// The state that the threads of the logs share.
struct Round {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    pipeline: Pipeline,
    found: Measured,
    failure: Option<StorageError>,
    over: bool,
}

impl Round {
    fn new(logs: usize, writers: usize) -> Round {
        let pipeline = Pipeline::new(logs, writers, Instant::now());
        let found = Measured { writes: Tally::new(), syncs: Tally::new() };
        let state = State { pipeline, found, failure: None, over: false };
        Round { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of one log.
    fn write_log(&self, log: usize, dir: &Path, size: usize) -> std::result::Result<(), StorageError> {
        fs::create_dir(dir).map_err(|source| StorageError::Io {
            action: "create",
            path: dir.into(),
            source,
        })?;
        let record = vec![b'x'; size];
        let mut written = TxnLog::open(Arc::new(OsDisk), dir.into(), LogOptions::default());
        let mut last = 0;
        loop {
            let proposed = {
                let waits = |state: &mut State| !state.over && state.pipeline.proposed == last;
                let state = self.changed.wait_while(self.lock(), waits);
                let state = state.unwrap_or_else(PoisonError::into_inner);
                if state.over {
                    return Ok(());
                }
                state.pipeline.proposed
            };
            let begun = Instant::now();
            for number in last + 1..=proposed {
                written.append(Zxid(number), &record)?;
            }
            written.commit()?;
            let now = Instant::now();
            last = proposed;
            let mut state = self.lock();
            let State { pipeline, found, .. } = &mut *state;
            found.syncs.count(nanos(now - begun), 0);
            pipeline.synced(log, proposed, now, |took| found.writes.count(nanos(took), 0));
            drop(state);
            self.changed.notify_all();
        }
    }

    fn fail(&self, error: StorageError) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        state.over = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for this time while the logs are written, or until one of them fails.
    fn wait(&self, time: Duration, what: &'static str) {
        let (begun, mut progress) = (Instant::now(), Progress::new(what));
        while let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            thread::sleep(left.min(GLANCE));
            let state = self.lock();
            if state.over {
                return;
            }
            progress.show(state.found.writes.ops(), "writes");
        }
    }

    fn end(&self) -> Result<Measured> {
        let mut state = self.lock();
        state.over = true;
        let none = Measured { writes: Tally::new(), syncs: Tally::new() };
        let found = std::mem::replace(&mut state.found, none);
        let failure = state.failure.take();
        drop(state);
        self.changed.notify_all();
        failure.map_or(Ok(found), |failure| Err(failure.into()))
    }
}

impl State {
    fn forget(&mut self) {
        self.found.writes.clear();
        self.found.syncs.clear();
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The writes that are not done. Writes are numbered from one.
struct Pipeline {
    /// The number of the last write.
    proposed: u64,
    /// The times at which the writes began that are not done, in their order.
    begun: VecDeque<Instant>,
    /// The last write that each log has synced.
    synced: Vec<u64>,
}

impl Pipeline {
    /// Each writer begins its first write.
    fn new(logs: usize, writers: usize, now: Instant) -> Pipeline {
        Pipeline { proposed: writers as u64, begun: vec![now; writers].into(), synced: vec![0; logs] }
    }

    /// A log has synced all writes up to `last`. For each write that is done now, `done` gets the time that it took,
    /// and
    /// its writer begins another.
    fn synced(&mut self, log: usize, last: u64, now: Instant, mut done: impl FnMut(Duration)) {
        self.synced[log] = last;
        let finished = self.proposed - self.begun.len() as u64;
        for _ in finished..self.on_a_majority() {
            let begun = self.begun.pop_front().expect("what a log has synced was proposed");
            done(now - begun);
            self.begun.push_back(now);
            self.proposed += 1;
        }
    }

    fn on_a_majority(&self) -> u64 {
        let mut synced = self.synced.clone();
        synced.sort_unstable();
        synced[(synced.len() - 1) / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of the writes that are done now, in milliseconds.
    fn sync(pipeline: &mut Pipeline, log: usize, last: u64, start: Instant, at: u64) -> Vec<u128> {
        let mut told = Vec::new();
        let now = start + Duration::from_millis(at);
        pipeline.synced(log, last, now, |took| told.push(took.as_millis()));
        told
    }

    #[test]
    fn a_write_is_done_when_more_than_half_of_the_logs_have_it() {
        let start = Instant::now();
        let mut pipeline = Pipeline::new(3, 2, start);
        assert_eq!(sync(&mut pipeline, 0, 2, start, 5), []);
        assert_eq!(sync(&mut pipeline, 1, 1, start, 6), [6]);
        assert_eq!(pipeline.proposed, 3, "its writer has begun another");
        assert_eq!(sync(&mut pipeline, 2, 2, start, 9), [9]);
        assert_eq!(sync(&mut pipeline, 1, 3, start, 10), []);
        assert_eq!(sync(&mut pipeline, 2, 4, start, 11), [5]);
    }

    #[test]
    fn four_logs_need_three_and_one_log_needs_itself() {
        let start = Instant::now();
        let mut four = Pipeline::new(4, 1, start);
        assert_eq!(sync(&mut four, 0, 1, start, 1), []);
        assert_eq!(sync(&mut four, 3, 1, start, 2), []);
        assert_eq!(sync(&mut four, 1, 1, start, 3), [3]);
        let mut one = Pipeline::new(1, 1, start);
        assert_eq!(sync(&mut one, 0, 1, start, 4), [4]);
    }

    #[test]
    fn the_folder_is_gone_after_a_run() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().to_owned();
        // However slow the disk is, a run that is long enough has a write.
        let mut lengths = (0..12).map(|doublings| 0.05 * f64::from(1 << doublings));
        let has_writes = |seconds| {
            let folder = folder.clone();
            let options = Options { folder, logs: 3, writers: 3, record_size: 180, seconds, warmup: 0.0 };
            run(&options).unwrap().total.ops > 0
        };
        assert!(lengths.any(has_writes));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_folder_is_named_in_the_error() {
        let folder = PathBuf::from("/nonexistent/folder");
        let options = Options { folder, logs: 1, writers: 1, record_size: 1, seconds: 1.0, warmup: 0.0 };
        let said = run(&options).unwrap_err().to_string();
        assert!(said.contains("cannot create /nonexistent/folder/"), "{said}");
    }
}
