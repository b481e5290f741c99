//! Idle sessions that only send pings, to measure what the server needs for each.

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
    template,
};
use clap::Args;
use ostler_proto::{id::Xid, reply::ReplyHeader};
use std::time::{Duration, Instant};

/// Measure the memory and CPU time that idle sessions cost; their clients send only pings.
///
/// An operation is a ping. Restart the server before the run, so that its memory at the beginning is that of a server
/// without sessions.
#[derive(Args)]
#[command(after_help = "Example: ostler bench idle --sessions 1000 --seconds 60")]
pub(crate) struct Options {
    /// Number of clients, each with its own connection and session.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    sessions: usize,
    /// How long to keep the sessions open, in seconds.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    seconds: f64,
}

pub(crate) fn run(options: &Options, target: Target, process: Option<Process>) -> Result<Report> {
    if options.sessions == 0 {
        return Err(BenchError::Usage("--sessions must be at least 1".into()));
    }
    let rss = || process.and_then(Process::usage).map(|usage| usage.rss as f64);
    let rss_empty = rss();
    let mut progress = Progress::new("idle");
    let opening = Instant::now();
    let sessions = target.open_many(options.sessions, |count| progress.show(count as u64, "sessions"))?;
    let opened_per_second = options.sessions as f64 / opening.elapsed().as_secs_f64();
    let rss_connected = rss();

    let period = sessions[0].timeout / 3;
    let mut fleet = Fleet::new(sessions)?;
    let mut pings = Pings::new(options.sessions);
    let meter = Meter::start(process);
    pings.keep_alive(&mut fleet, period, Duration::from_secs_f64(options.seconds), &mut progress)?;
    let metered = meter.stop(pings.tally.ops());
    let rss_held = rss();
    drop(progress);

    let settings = counted(options.sessions, "idle session");
    let mut report = Report::new("idle", target.server, settings, &pings.tally, metered);
    report.figure("sessions_opened", "per_second", opened_per_second);
    for (name, value) in [("rss_empty", rss_empty), ("rss_connected", rss_connected), ("rss_held", rss_held)]
    {
        if let Some(value) = value {
            report.figure(name, "bytes", value);
        }
    }
    if let (Some(before), Some(after)) = (rss_empty, rss_held) {
        report.figure("rss_per_session", "bytes", (after - before) / options.sessions as f64);
    }
    fleet.close()?;
    Ok(report)
}

/// The driver: one ping at a time on each session.
struct Pings {
    frame: Vec<u8>,
    /// When each session's last ping went out.
    sent: Vec<u64>,
    tally: Tally,
}

impl Pings {
    fn new(sessions: usize) -> Pings {
        Pings { frame: template::ping(), sent: vec![0; sessions], tally: Tally::new() }
    }

    /// Pings every session once per `period`, spread evenly.
    fn keep_alive(
        &mut self,
        fleet: &mut Fleet,
        period: Duration,
        duration: Duration,
        progress: &mut Progress,
    ) -> Result<()> {
        const TURN: Duration = Duration::from_millis(20);
        let count = fleet.len() as u64;
        let start = fleet.now();
        let end = start + duration.as_nanos() as u64;
        let mut pings = 0;
        loop {
            let now = fleet.now();
            if now >= end {
                return Ok(());
            }
            let due = u128::from(now - start) * u128::from(count) / period.as_nanos().max(1);
            while u128::from(pings) < due {
                let link = (pings % count) as usize;
                self.sent[link] = fleet.now();
                fleet.send(link, |out| out.extend_from_slice(&self.frame))?;
                pings += 1;
            }
            fleet.turn(self, TURN)?;
            progress.show(self.tally.ops(), "pings");
        }
    }
}

impl Driver for Pings {
    fn reply(&mut self, link: usize, now: u64, header: ReplyHeader, _body: &[u8]) -> Result<()> {
        if header.xid != Xid::PING {
            return Err(BenchError::OutOfOrder { number: link, expected: Xid::PING.0, got: header.xid.0 });
        }
        self.tally.count(now.saturating_sub(self.sent[link]), header.error);
        Ok(())
    }

    fn refill(&mut self, _link: usize, _now: u64, _out: &mut Vec<u8>) {}
}
