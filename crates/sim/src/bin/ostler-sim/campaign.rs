//! Runs many seeds. After a failure it searches for a smaller run that still fails.

use crate::{
    SimArgs,
    worker::{RunFigures, Verdict, Worker},
};
use indicatif::{ProgressBar, ProgressStyle};
use ostler_sim::{Plan, shrink};
use std::{
    io,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The most runs that the search for a smaller run may take.
const SHRINK_RUNS: usize = 150;

/// A campaign: many seeds, run by several worker processes.
pub(super) struct Campaign<'a> {
    args: &'a SimArgs,
    next: AtomicU64,
    totals: Mutex<Totals>,
    over: AtomicBool,
}

#[derive(Default)]
struct Totals {
    runs: u64,
    numbers: RunFigures,
    broken: Option<(Plan, String)>,
}

impl<'a> Campaign<'a> {
    pub(super) fn new(args: &'a SimArgs) -> Campaign<'a> {
        Campaign { args, next: AtomicU64::new(0), totals: Mutex::default(), over: AtomicBool::new(false) }
    }

    /// Runs all seeds, or until one fails. Then searches for a smaller run that fails.
    pub(super) fn run(&self) -> ExitCode {
        let begun = Instant::now();
        let bar = ProgressBar::new(self.args.seeds);
        let style = ProgressStyle::with_template("{pos}/{len} seeds {wide_bar} {elapsed} left {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let jobs = self.args.jobs().min(self.args.seeds.max(1) as usize);
        let done: Vec<io::Result<()>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| self.work(&bar))).collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
        });
        bar.finish_and_clear();
        if let Some(error) = done.into_iter().find_map(Result::err) {
            eprintln!("ostler-sim: a worker process failed: {error}");
            return ExitCode::FAILURE;
        }
        let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{}", totals.line(begun.elapsed(), jobs));
        match &totals.broken {
            None => ExitCode::SUCCESS,
            Some((plan, how)) => {
                println!("\nA promise is broken: {how}\n  ostler-sim {plan}");
                if let Err(error) = print_smaller(plan) {
                    eprintln!("ostler-sim: no smaller run was looked for: {error}");
                }
                ExitCode::FAILURE
            }
        }
    }

    fn work(&self, bar: &ProgressBar) -> io::Result<()> {
        let mut worker = Worker::start(None)?;
        while !self.over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.args.seeds {
                break;
            }
            let plan = self.args.plan(self.args.seed.wrapping_add(number));
            let verdict = worker.attempt(&plan)?;
            let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
            totals.runs += 1;
            match verdict {
                Verdict::Kept(numbers) => totals.add(numbers),
                Verdict::Broken(how) => {
                    totals.broken.get_or_insert((plan, how));
                    self.over.store(true, Ordering::Relaxed);
                }
            }
            bar.inc(1);
        }
        Ok(())
    }
}

impl Totals {
    fn add(&mut self, of: RunFigures) {
        self.numbers.virtual_ms += of.virtual_ms;
        self.numbers.epochs += of.epochs;
        self.numbers.transactions += of.transactions;
        self.numbers.faults += of.faults;
        // Seeds are finished in any order.
        self.numbers.fingerprint ^= of.fingerprint;
    }

    fn line(&self, took: Duration, jobs: usize) -> String {
        let of = &self.numbers;
        let wall = took.as_secs_f64().max(0.001);
        let ratio = of.virtual_ms as f64 / 1000.0 / wall / jobs as f64;
        format!(
            "{} seeds, {} virtual seconds, {} epochs, {} transactions, {} faults; {wall:.1} s on {jobs} processes, \
             {ratio:.0} virtual seconds per second and process; hash of all events {:016x}",
            self.runs,
            of.virtual_ms / 1000,
            of.epochs,
            of.transactions,
            of.faults,
            of.fingerprint
        )
    }
}

fn print_smaller(plan: &Plan) -> io::Result<()> {
    let mut worker = Worker::start(None)?;
    let mut failed = None;
    let (mut runs, mut how) = (0, String::new());
    let small = shrink(plan, SHRINK_RUNS, |plan| {
        runs += 1;
        match worker.attempt(plan) {
            Ok(Verdict::Broken(message)) => {
                how = message;
                true
            }
            Ok(Verdict::Kept(_)) => false,
            Err(error) => {
                failed = Some(error);
                false
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if small != *plan {
        println!("\nThe smallest of {runs} runs that fails: {how}\n  ostler-sim {small}");
    }
    println!("\nWith --explain it tells what happens.");
    Ok(())
}
