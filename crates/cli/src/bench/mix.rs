//! A closed loop of mixed requests: each session keeps a number of them outstanding.

use super::{
    counted,
    error::{BenchError, Result},
    fleet::{Driver, Fleet},
    meter::Meter,
    ops::{self, Kind, Places, Shares},
    process::Process,
    progress::Progress,
    report::Report,
    session::Target,
    tally::Tally,
    template::Template,
    tree,
};
use clap::Args;
use ostler_proto::reply::ReplyHeader;
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore, SeedableRng},
};
use std::{collections::VecDeque, time::Duration};

/// Children of the znode that `children` lists.
const FAMILY: u32 = 10;
const TURN: Duration = Duration::from_millis(100);

/// Measure a random mix of operations on many znodes.
///
/// Each session sends its next request as soon as one of its earlier requests is answered.
#[derive(Args)]
#[command(after_help = "Example: ostler bench mix --sessions 64 --ops get=80,set=15,create=5 --seconds 30")]
pub(crate) struct Options {
    /// Number of clients, each with its own connection and session.
    #[arg(long, default_value_t = 16, value_name = "N")]
    sessions: usize,
    /// Number of requests that each session keeps unanswered at a time.
    #[arg(long, default_value_t = 16, value_name = "N")]
    outstanding: usize,
    /// Operations and their weights; the operations are get, set, exists, create, delete, children, multi (a check and
    /// a set) and sync.
    #[arg(long, default_value = "get=90,set=10", value_name = "OP=WEIGHT,...")]
    ops: Shares,
    /// Bytes of data in each znode.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    value_size: usize,
    /// Number of znodes that the requests read and write at random.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    keys: u32,
    /// How long to measure, in seconds.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// End after this number of requests, not after --seconds.
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// How long to send requests before measuring, in seconds.
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    warmup: f64,
    /// Parent of all znodes of the run; created at the beginning, deleted at the end.
    #[arg(long, default_value = "/ostler-bench", value_name = "PATH")]
    root: String,
    /// Do not delete the znodes at the end.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(options: &Options, target: Target, process: Option<Process>) -> Result<Report> {
    options.check()?;
    let places = Places { root: options.root.clone() };
    let value = vec![b'x'; options.value_size];
    prepare(target, &places, options.keys, &value)?;

    let mut fleet = Fleet::new(target.open_many(options.sessions, |_| {})?)?;
    let mut mix = Mix::new(options, &places, &value);
    let mut progress = Progress::new("mix");
    fleet.refill_all(&mut mix)?;
    let warm = Duration::from_secs_f64(options.warmup).as_nanos() as u64;
    while fleet.now() < warm {
        fleet.turn(&mut mix, TURN)?;
        progress.show(mix.done, "requests (warming up)");
    }

    mix.forget();
    let meter = Meter::start(process);
    let end = fleet.now() + Duration::from_secs_f64(options.seconds).as_nanos() as u64;
    while options.requests.map_or_else(|| fleet.now() < end, |requests| mix.done < requests) {
        fleet.turn(&mut mix, TURN)?;
        progress.show(mix.done, "requests");
    }
    let metered = meter.stop(mix.done);
    drop(progress);

    let mut total = Tally::new();
    mix.tallies.iter().for_each(|tally| total.add(tally));
    let mut report = Report::new("mix", target.server, options.describe(), &total, metered);
    for kind in options.ops.kinds() {
        report.row(kind.name(), &mix.tallies[kind as usize]);
    }
    mix.stopping = true;
    while mix.under_way > 0 {
        fleet.turn(&mut mix, TURN)?;
    }
    fleet.close()?;
    if !options.keep {
        let mut session = target.open()?;
        tree::remove(&mut session, &options.root)?;
        session.close();
    }
    Ok(report)
}

fn prepare(target: Target, places: &Places, keys: u32, value: &[u8]) -> Result<()> {
    let mut session = target.open()?;
    for parent in [places.keys_parent(), places.family(), places.fresh_parent()] {
        tree::make_parents(&mut session, &parent)?;
    }
    tree::make_keys(&mut session, &places.key(), keys, value)?;
    tree::make_keys(&mut session, &places.family_member(), FAMILY, value)?;
    session.close();
    Ok(())
}

impl Options {
    fn check(&self) -> Result<()> {
        let usage = |what: &str| Err(BenchError::Usage(what.to_owned()));
        if self.sessions == 0 || self.outstanding == 0 || self.keys == 0 {
            return usage("--sessions, --outstanding and --keys must be at least 1");
        }
        if !self.root.starts_with('/') || self.root.len() < 2 {
            return usage("--root must be an absolute path below /");
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let ops: Vec<&str> = self.ops.kinds().map(Kind::name).collect();
        let sessions = counted(self.sessions, "session");
        format!("{sessions} x {} outstanding, {}, {} bytes", self.outstanding, ops.join("+"), self.value_size)
    }
}

/// The driver of the mix.
struct Mix {
    workers: Vec<Worker>,
    templates: [Template; 8],
    urn: Vec<Kind>,
    keys: u32,
    outstanding: usize,
    chance: Xoshiro256PlusPlus,
    tallies: [Tally; 8],
    done: u64,
    under_way: usize,
    stopping: bool,
}

/// The state of one session.
#[derive(Default)]
struct Worker {
    /// The outstanding requests, oldest first, with the times at which they were sent.
    sent: VecDeque<(u64, Kind)>,
    next_xid: i32,
    due_xid: i32,
    /// The number of znodes that this session has created, and deleted.
    created: u32,
    deleted: u32,
}

impl Mix {
    fn new(options: &Options, places: &Places, value: &[u8]) -> Mix {
        let worker = || Worker { next_xid: 1, due_xid: 1, ..Worker::default() };
        Mix {
            workers: (0..options.sessions).map(|_| worker()).collect(),
            templates: places.templates(value),
            urn: options.ops.urn(),
            keys: options.keys,
            outstanding: options.outstanding,
            chance: Xoshiro256PlusPlus::seed_from_u64(1),
            tallies: std::array::from_fn(|_| Tally::new()),
            done: 0,
            under_way: 0,
            stopping: false,
        }
    }

    fn forget(&mut self) {
        self.tallies.iter_mut().for_each(Tally::clear);
        self.done = 0;
    }

    fn below(&mut self, bound: u32) -> u32 {
        (((self.chance.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    fn draw(&mut self, link: usize) -> (Kind, [u32; 2]) {
        let mut kind = self.urn[0];
        if self.urn.len() > 1 {
            let at = self.below(self.urn.len() as u32);
            kind = self.urn[at as usize];
        }
        let worker = &mut self.workers[link];
        // A session without a znode of its own creates one first.
        if kind == Kind::Delete && worker.deleted == worker.created {
            kind = Kind::Create;
        }
        let fresh = |count: &mut u32| {
            *count += 1;
            [link as u32, *count]
        };
        let numbers = match kind {
            Kind::Create => fresh(&mut worker.created),
            Kind::Delete => fresh(&mut worker.deleted),
            _ => [self.below(self.keys), 0],
        };
        (kind, numbers)
    }
}

impl Driver for Mix {
    fn reply(&mut self, link: usize, now: u64, header: ReplyHeader, body: &[u8]) -> Result<()> {
        let worker = &mut self.workers[link];
        let due = worker.sent.pop_front().filter(|_| header.xid.0 == worker.due_xid);
        let Some((sent, kind)) = due else {
            return Err(BenchError::OutOfOrder { number: link, expected: worker.due_xid, got: header.xid.0 });
        };
        worker.due_xid = worker.due_xid.wrapping_add(1) & i32::MAX;
        let error = match kind {
            Kind::Multi if header.error == 0 => ops::multi_error(body),
            _ => header.error,
        };
        self.tallies[kind as usize].count(now.saturating_sub(sent), error);
        self.done += 1;
        self.under_way -= 1;
        Ok(())
    }

    fn refill(&mut self, link: usize, now: u64, out: &mut Vec<u8>) {
        while !self.stopping && self.workers[link].sent.len() < self.outstanding {
            let (kind, numbers) = self.draw(link);
            let worker = &mut self.workers[link];
            self.templates[kind as usize].append(out, worker.next_xid, &numbers);
            worker.next_xid = worker.next_xid.wrapping_add(1) & i32::MAX;
            worker.sent.push_back((now, kind));
            self.under_way += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        options: Options,
    }

    fn mix(words: &[&str]) -> Mix {
        let options = Words::parse_from([&["mix"], words].concat()).options;
        Mix::new(&options, &Places { root: "/r".into() }, b"v")
    }

    #[test]
    fn a_session_deletes_only_what_it_has_created() {
        let mut mix = mix(&["--ops", "create=1,delete=9", "--outstanding", "200"]);
        mix.refill(3, 0, &mut Vec::new());
        let mut there = 0;
        for &(_, kind) in &mix.workers[3].sent {
            there += if kind == Kind::Create { 1 } else { -1 };
            assert!(there >= 0);
        }
    }

    #[test]
    fn replies_must_come_in_order() {
        let mut mix = mix(&[]);
        mix.refill(0, 5, &mut Vec::new());
        let header = |xid| ReplyHeader { xid: ostler_proto::id::Xid(xid), zxid: 1, error: 0 };
        mix.reply(0, 9, header(1), &[]).unwrap();
        assert!(matches!(
            mix.reply(0, 9, header(3), &[]),
            Err(BenchError::OutOfOrder { number: 0, expected: 2, got: 3 })
        ));
    }
}
