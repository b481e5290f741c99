//! The shared part of the load programs of both Rust clients: arguments, loops and output.
//!
//! `PROGRAM HOST:PORT get|set|lock|drop COUNT WARM_UP SECONDS`. One session gets or sets 100 bytes, COUNT tasks at a
//! time, each on a znode of its own; or COUNT sessions take one lock, and wait until it is released, or do not wait.
//! `ClientLoad.java` does the same, but always waits.

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use std::{
    env, process,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::sleep};

/// The data that is set and read.
pub const DATA: [u8; 100] = [b'x'; 100];
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
/// The znode above those that are read and written.
pub const ROOT: &str = "/client-load";

const WARM_UP: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;
pub type Outcome = Result<(), Failure>;

/// The program's arguments.
pub struct Plan {
    pub server: String,
    pub work: Work,
    /// Tasks of one session, or sessions that contend.
    pub count: usize,
    warm_up: Duration,
    measured: Duration,
}

#[derive(Clone, Copy)]
pub enum Work {
    Get,
    Set,
    Lock,
    /// The lock, whose release is not waited for.
    Drop,
}

impl Plan {
    /// From the command line. Ends the program if that makes no sense.
    pub fn from_arguments() -> Plan {
        parse(env::args().skip(1).collect()).unwrap_or_else(|| {
            eprintln!("usage: PROGRAM HOST:PORT get|set|lock|drop COUNT WARM_UP_SECONDS SECONDS");
            process::exit(2);
        })
    }

    /// The lock, of this process alone: what is left of another one's session does not hold it.
    pub fn lock(&self) -> String {
        format!("/client-load-lock-{}", process::id())
    }

    /// The znodes that are read and written, one for each task.
    pub fn paths(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.count).map(|task| format!("{ROOT}/{task}"))
    }
}

fn parse(arguments: Vec<String>) -> Option<Plan> {
    let [server, work, count, warm_up, measured] = <[String; 5]>::try_from(arguments).ok()?;
    let work = match &*work {
        "get" => Work::Get,
        "set" => Work::Set,
        "lock" => Work::Lock,
        "drop" => Work::Drop,
        _ => return None,
    };
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    Some(Plan {
        server,
        work,
        count: count.parse().ok()?,
        warm_up: seconds(&warm_up)?,
        measured: seconds(&measured)?,
    })
}

/// The operation that is repeated, one after the other.
pub trait Task: Send + 'static {
    fn once(&mut self) -> impl Future<Output = Outcome> + Send;
}

/// Runs the tasks side by side, and prints a line of JSON.
pub async fn measure(plan: &Plan, tasks: Vec<impl Task>) -> Outcome {
    let phase = Arc::new(AtomicU8::new(WARM_UP));
    let mut running: JoinSet<_> = tasks.into_iter().map(|task| repeat(task, phase.clone())).collect();
    sleep(plan.warm_up).await;
    let (begun, cpu_before) = (Instant::now(), cpu_time());
    phase.store(MEASURING, Relaxed);
    sleep(plan.measured).await;
    phase.store(OVER, Relaxed);
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_time() - cpu_before);

    let mut nanoseconds = histogram()?;
    while let Some(found) = running.join_next().await {
        nanoseconds.add(found??)?;
    }
    let micros = |quantile| nanoseconds.value_at_quantile(quantile) as f64 / 1000.0;
    let ops = nanoseconds.len();
    println!(
        r#"{{"ops": {ops}, "rate": {:.1}, "cpu": {:.3}, "p50": {:.1}, "p99": {:.1}}}"#,
        ops as f64 / seconds,
        cpu.as_secs_f64() * 1e6 / ops.max(1) as f64,
        micros(0.5),
        micros(0.99),
    );
    Ok(())
}

/// The nanoseconds that each turn took which ended while it was measured.
async fn repeat(mut task: impl Task, phase: Arc<AtomicU8>) -> Result<Histogram<u32>, Failure> {
    let mut nanoseconds = histogram()?;
    loop {
        let begun = Instant::now();
        task.once().await?;
        match phase.load(Relaxed) {
            WARM_UP => {}
            MEASURING => nanoseconds.saturating_record(begun.elapsed().as_nanos() as u64),
            _ => return Ok(nanoseconds),
        }
    }
}

/// Up to a minute, to one part in a hundred.
fn histogram() -> Result<Histogram<u32>, Failure> {
    Ok(Histogram::new_with_max(60_000_000_000, 2)?)
}

/// Of all threads of this process, user and system.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
