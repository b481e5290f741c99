//! Many sessions watch one znode that another session sets.

use super::{
    counted,
    error::{BenchError, Result},
    fleet::{Driver, Fleet},
    meter::Meter,
    process::Process,
    progress::Progress,
    report::Report,
    session::Target,
    tally::Tally,
    template::{self, Build, Path, Template},
    tree,
};
use clap::{Args, ValueEnum};
use ostler_proto::{id::Xid, op::Op, reply::ReplyHeader};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

const TURN: Duration = Duration::from_millis(100);
/// The connection that sets the znode; all others watch.
const WRITER: usize = 0;
/// addWatch's number for a persistent watch on one znode.
const PERSISTENT: i32 = 0;

/// Measure watch events: many sessions watch one znode, and one session sets it.
///
/// An operation is one event at one session. Its latency is the time from the set to the event. The row "last" has the
/// times from each set to the event at the last session.
#[derive(Args)]
#[command(after_help = "Example: ostler bench watch --watchers 500 --mode persistent")]
pub(crate) struct Options {
    /// Number of clients that watch, each with its own connection and session.
    #[arg(long, default_value_t = 2000, value_name = "N")]
    watchers: usize,
    /// Kind of watch.
    #[arg(long, value_enum, default_value_t = Mode::OneShot)]
    mode: Mode,
    /// Number of sets under way at a time (sent, and not all of their events arrived); always 1 with one-shot watches.
    #[arg(long, default_value_t = 4, value_name = "N")]
    outstanding: usize,
    /// Bytes of data in the znode.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    value_size: usize,
    /// How long to measure, in seconds.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// How long to send requests before measuring, in seconds.
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    warmup: f64,
    /// Parent of all znodes of the run; created at the beginning, deleted at the end.
    #[arg(long, default_value = "/ostler-bench", value_name = "PATH")]
    root: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// A watch that fires once; each session sets it again with getData before the next set is sent.
    OneShot,
    /// A persistent watch, set once with addWatch.
    Persistent,
}

pub(crate) fn run(options: &Options, target: Target, process: Option<Process>) -> Result<Report> {
    if options.watchers == 0 || options.outstanding == 0 {
        return Err(BenchError::Usage("--watchers and --outstanding must be at least 1".into()));
    }
    let path = Path::fixed(format!("{}/watched", options.root));
    let value = vec![b'x'; options.value_size];
    let mut session = target.open()?;
    tree::make_parents(&mut session, &options.root)?;
    tree::make_keys(&mut session, &path, 1, &value)?;
    session.close();

    let mut progress = Progress::new("watch");
    let sessions = target.open_many(options.watchers + 1, |count| progress.show(count as u64, "sessions"))?;
    let ping_period = sessions[WRITER].timeout / 3;
    let mut load = Load { fleet: Fleet::new(sessions)?, fan: Fan::new(options, &path, &value), ping_period };
    load.fleet.refill_all(&mut load.fan)?;
    load.run_for(Duration::from_secs_f64(options.warmup), &mut progress)?;
    load.fan.forget();
    let meter = Meter::start(process);
    load.run_for(Duration::from_secs_f64(options.seconds), &mut progress)?;
    let metered = meter.stop(load.fan.events.ops());
    drop(progress);

    let mut report = Report::new("watch", target.server, options.describe(), &load.fan.events, metered);
    report.row("last", &load.fan.last);
    load.fleet.close()?;
    let mut session = target.open()?;
    tree::remove(&mut session, &options.root)?;
    session.close();
    Ok(report)
}

impl Options {
    fn describe(&self) -> String {
        let watchers = counted(self.watchers, "watcher");
        match self.mode {
            Mode::OneShot => format!("{watchers} on one znode, one-shot watches"),
            Mode::Persistent => {
                let sets = counted(self.outstanding, "set");
                format!("{watchers} on one znode, persistent watches, {sets} outstanding")
            }
        }
    }
}

struct Load {
    fleet: Fleet,
    fan: Fan,
    ping_period: Duration,
}

impl Load {
    fn run_for(&mut self, duration: Duration, progress: &mut Progress) -> Result<()> {
        let end = Instant::now() + duration;
        let mut next_ping = Instant::now() + self.ping_period;
        let ping = template::ping();
        while Instant::now() < end {
            if self.fan.may_set() {
                let now = self.fleet.now();
                let fan = &mut self.fan;
                // All sets that are allowed leave with one write.
                self.fleet.send(WRITER, |out| {
                    while fan.may_set() {
                        fan.set(now, out);
                    }
                })?;
            }
            self.fleet.turn(&mut self.fan, TURN)?;
            progress.show(self.fan.events.ops(), "events");
            if Instant::now() >= next_ping {
                next_ping += self.ping_period;
                for link in 0..self.fleet.len() {
                    self.fleet.send(link, |out| out.extend_from_slice(&ping))?;
                }
            }
        }
        Ok(())
    }
}

/// The driver: knows which session has got which event.
struct Fan {
    mode: Mode,
    /// Sets whose events have not all arrived; the oldest is number `first`.
    sets: VecDeque<Set>,
    first: u64,
    depth: usize,
    watchers: Vec<Watcher>,
    /// The number of watchers whose watch is set.
    armed: usize,
    set_template: Template,
    arm_template: Template,
    next_set_xid: i32,
    events: Tally,
    last: Tally,
}

struct Set {
    sent: u64,
    /// The number of watchers that have not got its event.
    missing: usize,
}

struct Watcher {
    received: u64,
    /// Whether the watch is to be set.
    arm: bool,
    next_xid: i32,
}

impl Fan {
    fn new(options: &Options, path: &Path, value: &[u8]) -> Fan {
        let arm_template = match options.mode {
            Mode::OneShot => template::read(Op::GetData, path, true),
            Mode::Persistent => Build::new(Op::AddWatch).path(path).int(PERSISTENT).end(),
        };
        Fan {
            mode: options.mode,
            sets: VecDeque::new(),
            first: 0,
            depth: if options.mode == Mode::OneShot { 1 } else { options.outstanding },
            watchers: (0..options.watchers)
                .map(|_| Watcher { received: 0, arm: true, next_xid: 1 })
                .collect(),
            armed: 0,
            set_template: template::set_data(path, value),
            arm_template,
            next_set_xid: 1,
            events: Tally::new(),
            last: Tally::new(),
        }
    }

    fn forget(&mut self) {
        self.events.clear();
        self.last.clear();
    }

    fn may_set(&self) -> bool {
        self.armed == self.watchers.len() && self.sets.len() < self.depth
    }

    fn set(&mut self, now: u64, out: &mut Vec<u8>) {
        self.set_template.append(out, self.next_set_xid, &[0]);
        self.next_set_xid = self.next_set_xid.wrapping_add(1) & i32::MAX;
        self.sets.push_back(Set { sent: now, missing: self.watchers.len() });
    }

    fn event(&mut self, link: usize, now: u64) {
        let watcher = &mut self.watchers[link - 1];
        // A session has the events of its watch in the order of the sets.
        let number = watcher.received - self.first;
        watcher.received += 1;
        if self.mode == Mode::OneShot {
            self.armed -= 1;
            watcher.arm = true;
        }
        let Some(set) = self.sets.get_mut(number as usize) else { return };
        set.missing -= 1;
        self.events.count(now.saturating_sub(set.sent), 0);
        while let Some(set) = self.sets.front().filter(|set| set.missing == 0) {
            self.last.count(now.saturating_sub(set.sent), 0);
            self.sets.pop_front();
            self.first += 1;
        }
    }
}

impl Driver for Fan {
    fn reply(&mut self, link: usize, now: u64, header: ReplyHeader, _body: &[u8]) -> Result<()> {
        match header.xid {
            Xid::PING => {}
            Xid::NOTIFICATION => self.event(link, now),
            _ if header.error != 0 => {
                let what = if link == WRITER { "set" } else { "watch" };
                return Err(BenchError::Setup {
                    what,
                    path: "of the watched znode".into(),
                    code: header.error,
                });
            }
            _ if link == WRITER => {}
            _ => self.armed += 1,
        }
        Ok(())
    }

    fn refill(&mut self, link: usize, _now: u64, out: &mut Vec<u8>) {
        if link == WRITER {
            return;
        }
        let watcher = &mut self.watchers[link - 1];
        if std::mem::take(&mut watcher.arm) {
            self.arm_template.append(out, watcher.next_xid, &[0]);
            watcher.next_xid = watcher.next_xid.wrapping_add(1) & i32::MAX;
        }
    }
}
