//! Many seeds, one after the other, and what to do about one that fails.

use crate::{
    SimArgs,
    worker::{Numbers, Verdict, Worker},
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

/// Runs that shrinking may take.
const SHRINK_RUNS: usize = 150;

/// A run of seeds.
pub(super) struct Campaign<'a> {
    args: &'a SimArgs,
    next: AtomicU64,
    sum: Mutex<Sum>,
    over: AtomicBool,
}

#[derive(Default)]
struct Sum {
    runs: u64,
    numbers: Numbers,
    broken: Option<(Plan, String)>,
}

impl<'a> Campaign<'a> {
    pub(super) fn new(args: &'a SimArgs) -> Campaign<'a> {
        Campaign { args, next: AtomicU64::new(0), sum: Mutex::default(), over: AtomicBool::new(false) }
    }

    /// Runs all seeds, or until one fails; then looks for the smallest run that does.
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
            eprintln!("ostler-sim: a worker could not be started or spoken to: {error}");
            return ExitCode::FAILURE;
        }
        let sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{}", sum.line(begun.elapsed(), jobs));
        match &sum.broken {
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
            let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
            sum.runs += 1;
            match verdict {
                Verdict::Kept(numbers) => sum.add(numbers),
                Verdict::Broken(how) => {
                    sum.broken.get_or_insert((plan, how));
                    self.over.store(true, Ordering::Relaxed);
                }
            }
            bar.inc(1);
        }
        Ok(())
    }
}

impl Sum {
    fn add(&mut self, of: Numbers) {
        self.numbers.virtual_ms += of.virtual_ms;
        self.numbers.epochs += of.epochs;
        self.numbers.transactions += of.transactions;
        self.numbers.faults += of.faults;
        // The seeds come in any order.
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
