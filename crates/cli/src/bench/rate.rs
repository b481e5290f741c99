//! Sends requests on a fixed schedule, even while replies are late. A request's latency begins when the request is due.
//! So a stall of the server counts for every request that it delays.

use super::{
    counted,
    error::{BenchError, Result, While},
    fleet::{Driver, Fleet},
    meter::{Meter, Metered},
    ops::Places,
    process::Process,
    progress::Progress,
    report::Report,
    session::Target,
    snapshots::Stretches,
    tally::Tally,
    template::{self, Template},
    tree,
    wire::Wire,
};
use clap::{Args, ValueEnum};
use ostler_proto::{op::Op, reply::ReplyHeader};
use std::{
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

const TURN: Duration = Duration::from_millis(100);

/// Measure latency at a fixed rate of requests.
///
/// A request's latency begins when the request is due, even if it is sent later. So a stall of the server counts for
/// every request that it delays.
#[derive(Args)]
#[command(after_help = "Example: ostler bench rate --rate 5000 --op get --seconds 60")]
pub(crate) struct Options {
    /// Requests per second, of all sessions together.
    #[arg(long, default_value_t = 2000, value_name = "N")]
    rate: u32,
    /// Operation to send.
    #[arg(long, value_enum, default_value_t = Ask::Set)]
    op: Ask,
    /// Number of clients, each with its own connection and session; they send in turn.
    #[arg(long, default_value_t = 4, value_name = "N")]
    sessions: usize,
    /// Bytes of data in each znode.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    value_size: usize,
    /// Number of znodes that the requests read or write in turn.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    keys: u32,
    /// How long to measure, in seconds; with --snapshots up to ten times as long.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    seconds: f64,
    /// How long to send requests before measuring, in seconds.
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    warmup: f64,
    /// Report requests during snapshots separately, and go on until the server has written this number of snapshots;
    /// the server must be on this machine, and its open files readable.
    #[arg(long, value_name = "N")]
    snapshots: Option<usize>,
    /// Parent of all znodes of the run; created at the beginning, deleted at the end.
    #[arg(long, default_value = "/ostler-bench", value_name = "PATH")]
    root: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ask {
    /// setData.
    Set,
    /// getData.
    Get,
}

pub(crate) fn run(options: &Options, target: Target, process: Option<Process>) -> Result<Report> {
    if options.rate == 0 || options.sessions == 0 || options.keys == 0 {
        return Err(BenchError::Usage("--rate, --sessions and --keys must be at least 1".into()));
    }
    if options.snapshots.is_some() {
        let process = process.ok_or_else(|| BenchError::NoProcess("it does not listen here".into()))?;
        process.check_open_files()?;
    }
    let places = Places { root: options.root.clone() };
    let value = vec![b'x'; options.value_size];
    let mut session = target.open()?;
    tree::make_parents(&mut session, &places.keys_parent())?;
    tree::make_keys(&mut session, &places.key(), options.keys, &value)?;
    session.close();

    let report = measure(options, target, process, &places, &value)?;
    let mut session = target.open()?;
    tree::remove(&mut session, &options.root)?;
    session.close();
    Ok(report)
}

fn measure(
    options: &Options,
    target: Target,
    process: Option<Process>,
    places: &Places,
    value: &[u8],
) -> Result<Report> {
    let sessions = target.open_many(options.sessions, |_| {})?;
    let streams = sessions
        .iter()
        .map(|session| session.stream.try_clone())
        .collect::<std::io::Result<Vec<Wire<TcpStream>>>>()
        .during("cannot share a socket")?;
    let mut fleet = Fleet::new(sessions)?;
    let schedule = Schedule::of(options, &fleet);
    let sender = Sender { schedule, backlog: vec![Vec::new(); streams.len()], streams, keys: options.keys };
    let template = match options.op {
        Ask::Set => template::set_data(&places.key(), value),
        Ask::Get => template::read(Op::GetData, &places.key(), false),
    };
    let mut replies = Replies::new(schedule);
    let signals = Signals::default();
    let meter = Meter::start(process);

    let (outcome, stretches) = thread::scope(|scope| {
        let sending = scope.spawn(|| sender.run(&template, &signals));
        let (over, seen) = (&signals.over, &signals.snapshots_seen);
        let looking = process.filter(|_| options.snapshots.is_some()).map(|process| {
            scope.spawn(move || Stretches::watch(process, schedule.start, schedule.warm, over, seen))
        });
        let received = receive(&mut fleet, &mut replies, &signals, options.snapshots);
        signals.stop_sending.store(true, Ordering::Relaxed);
        signals.over.store(true, Ordering::Relaxed);
        let sent = sending.join().expect("the sender does not panic");
        let stretches = looking.map(|thread| thread.join().expect("the watcher does not panic"));
        (sent.and(received), stretches.unwrap_or_default())
    });
    outcome?;
    let metered = meter.stop(replies.samples.len() as u64);
    fleet.close()?;
    Ok(report(options, target, &replies, &stretches, metered))
}

/// The flags and counters that the threads of a run share.
struct Signals {
    stop_sending: AtomicBool,
    /// The number of all requests that were sent, once it is known.
    sent: AtomicU64,
    over: AtomicBool,
    snapshots_seen: AtomicUsize,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals {
            stop_sending: AtomicBool::new(false),
            sent: AtomicU64::new(u64::MAX),
            over: AtomicBool::new(false),
            snapshots_seen: AtomicUsize::new(0),
        }
    }
}

/// Takes replies until all requests are answered.
fn receive(
    fleet: &mut Fleet,
    replies: &mut Replies,
    signals: &Signals,
    snapshots_wanted: Option<usize>,
) -> Result<()> {
    let mut progress = Progress::new("rate");
    while (replies.samples.len() as u64) < signals.sent.load(Ordering::Acquire) {
        fleet.turn(replies, TURN)?;
        progress.show(replies.samples.len() as u64, "requests");
        let seen = signals.snapshots_seen.load(Ordering::Relaxed);
        if snapshots_wanted.is_some_and(|wanted| seen >= wanted) && fleet.now() > replies.schedule.enough {
            signals.stop_sending.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn report(
    options: &Options,
    target: Target,
    replies: &Replies,
    stretches: &Stretches,
    mut metered: Metered,
) -> Report {
    let (mut quiet, mut busy) = (Tally::new(), Tally::new());
    let warm = replies.schedule.warm;
    for &Sample { due, done, error } in replies.samples.iter().filter(|sample| sample.due >= warm) {
        let tally = if stretches.meet(due, done) { &mut busy } else { &mut quiet };
        tally.count(done.saturating_sub(due), error);
    }
    let mut total = quiet.clone();
    total.add(&busy);
    // The meter ran through the warm-up too, which has the same cost per request but is not counted.
    let last = replies.samples.iter().map(|sample| sample.done).max().unwrap_or(warm);
    metered.seconds = Duration::from_nanos(last.saturating_sub(warm)).as_secs_f64();
    let op = match options.op {
        Ask::Set => "set",
        Ask::Get => "get",
    };
    let sessions = counted(options.sessions, "session");
    let settings = format!("{op} at {}/s from {sessions}, {} bytes", options.rate, options.value_size);
    let mut report = Report::new("rate", target.server, settings, &total, metered);
    if options.snapshots.is_some() {
        report.row("no snapshot", &quiet);
        report.row("snapshot", &busy);
        let stretches = stretches.after(warm);
        report.figure("snapshots", "", stretches.count() as f64);
        report.figure("snapshots_took", "seconds", stretches.seconds());
    }
    report
}

/// The times at which requests are due. Request `k` goes to session `k % sessions`, with xid `k / sessions + 1`.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    start: Instant,
    /// Times here are nanoseconds since `start`.
    first: u64,
    /// Requests due earlier only warm the server up.
    warm: u64,
    /// The time from which a run that waits for snapshots may end.
    enough: u64,
    rate: u64,
    sessions: u64,
    total: u64,
}

impl Schedule {
    fn of(options: &Options, fleet: &Fleet) -> Schedule {
        const LEAD: u64 = 20_000_000;
        const LONGER_FOR_SNAPSHOTS: f64 = 10.0;
        let first = fleet.now() + LEAD;
        let after = |seconds| first + Duration::from_secs_f64(seconds).as_nanos() as u64;
        let longer = if options.snapshots.is_some() { LONGER_FOR_SNAPSHOTS } else { 1.0 };
        Schedule {
            start: fleet.start(),
            first,
            warm: after(options.warmup),
            enough: after(options.warmup + options.seconds),
            rate: options.rate.into(),
            sessions: options.sessions as u64,
            total: ((options.warmup + options.seconds * longer) * f64::from(options.rate)) as u64,
        }
    }

    fn due(&self, request: u64) -> u64 {
        self.first + (u128::from(request) * 1_000_000_000 / u128::from(self.rate)) as u64
    }
}

/// The thread that sends. Its sockets are nonblocking: bytes that a socket does not accept wait in `backlog`.
struct Sender {
    schedule: Schedule,
    streams: Vec<Wire<TcpStream>>,
    backlog: Vec<Vec<u8>>,
    keys: u32,
}

impl Sender {
    /// Sends until the schedule ends or `stop_sending` is set.
    fn run(mut self, template: &Template, signals: &Signals) -> Result<()> {
        let mut sent = 0;
        let outcome = self.send_all(template, &signals.stop_sending, &mut sent);
        // After an error no replies are waited for.
        signals.sent.store(if outcome.is_ok() { sent } else { 0 }, Ordering::Release);
        outcome
    }

    fn send_all(&mut self, template: &Template, stop: &AtomicBool, sent: &mut u64) -> Result<()> {
        const RETRY: Duration = Duration::from_millis(1);
        let schedule = self.schedule;
        loop {
            let now = schedule.start.elapsed();
            let ending = stop.load(Ordering::Relaxed);
            while !ending && *sent < schedule.total && u128::from(schedule.due(*sent)) <= now.as_nanos() {
                let link = (*sent % schedule.sessions) as usize;
                let xid = (*sent / schedule.sessions + 1) as i32;
                let key = (*sent % u64::from(self.keys)) as u32;
                template.append(&mut self.backlog[link], xid, &[key]);
                *sent += 1;
            }
            self.flush()?;
            let flushed =
                self.backlog.iter().all(Vec::is_empty) && !self.streams.iter().any(Wire::has_unsent);
            if flushed && (ending || *sent == schedule.total) {
                return Ok(());
            }
            let pause = Duration::from_nanos(schedule.due(*sent)).saturating_sub(schedule.start.elapsed());
            thread::sleep(if flushed { pause } else { pause.min(RETRY) });
        }
    }

    fn flush(&mut self) -> Result<()> {
        for (number, (stream, backlog)) in self.streams.iter_mut().zip(&mut self.backlog).enumerate() {
            if !backlog.is_empty() || stream.has_unsent() {
                stream.send(backlog).map_err(|cause| BenchError::Lost { number, cause })?;
            }
        }
        Ok(())
    }
}

/// The driver: records replies, and sends nothing.
struct Replies {
    schedule: Schedule,
    due_xids: Vec<i32>,
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    due: u64,
    done: u64,
    error: i32,
}

impl Replies {
    fn new(schedule: Schedule) -> Replies {
        Replies { schedule, due_xids: vec![1; schedule.sessions as usize], samples: Vec::new() }
    }
}

impl Driver for Replies {
    fn reply(&mut self, link: usize, now: u64, header: ReplyHeader, _body: &[u8]) -> Result<()> {
        let expected = self.due_xids[link];
        if header.xid.0 != expected {
            return Err(BenchError::OutOfOrder { number: link, expected, got: header.xid.0 });
        }
        self.due_xids[link] += 1;
        let request = (expected as u64 - 1) * self.schedule.sessions + link as u64;
        self.samples.push(Sample { due: self.schedule.due(request), done: now, error: header.error });
        Ok(())
    }

    fn refill(&mut self, _link: usize, _now: u64, _out: &mut Vec<u8>) {}
}
