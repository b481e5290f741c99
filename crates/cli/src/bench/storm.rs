//! Sessions that lose their connections all at once, and come back by the rules of ZooKeeper's clients.

mod client;
mod crowd;

use super::{
    counted,
    error::{BenchError, Result, While},
    meter::Metered,
    report::Report,
    session::{Target, raise_descriptor_limit},
    tally::Tally,
};
use clap::Args;
use crowd::Crowd;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Measure how an ensemble takes all its clients back after its leader's death.
///
/// Opens sessions at all servers, kills a server with SIGKILL or waits until a connection is lost, and lets each client
/// come back by the rules of ZooKeeper's Java client: it waits a random time of up to a second, and tries the next
/// server; it gives a server up that has not answered its connect request within its share of the session timeout, or
/// has sent nothing for two thirds of it; it pings once in a third of it. An operation is a ping. The run ends some time
/// after the last session is attached again, so that sessions show that expired meanwhile.
#[derive(Args)]
#[command(
    after_help = "Example: ostler bench storm --sessions 10000 --kill 4711 --server 127.0.0.1:2181,127.0.0.1:2182"
)]
pub(crate) struct Options {
    /// Number of clients, each with its own connection and session. On loopback 10,000 share one address 127.0.0.N.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    sessions: usize,
    /// The number of the first client, for several programs at once: it decides the addresses on loopback, and the server
    /// at which each client begins.
    #[arg(long, default_value_t = 0, value_name = "N")]
    first: usize,
    /// Process id of the server to kill once all sessions are open [default: wait until a connection is lost].
    #[arg(long, value_name = "PID")]
    kill: Option<u32>,
    /// Handshakes under way at once while the sessions are opened.
    #[arg(long, default_value_t = 256, value_name = "N")]
    at_once: usize,
    /// How long to keep the sessions after the last one is attached again, in seconds.
    #[arg(long, default_value_t = 15.0, value_name = "SECONDS")]
    settle: f64,
    /// The longest time to wait until all sessions are attached again or lost, in seconds.
    #[arg(long, default_value_t = 120.0, value_name = "SECONDS")]
    longest: f64,
}

/// The time for which the sessions are held before the storm.
const CALM: Duration = Duration::from_secs(4);
/// The time between two looks whether the storm is over.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(options: &Options, target: Target) -> Result<Report> {
    if options.sessions == 0 || options.at_once == 0 {
        return Err(BenchError::Usage("--sessions and --at-once must be at least 1".into()));
    }
    if target.tls.is_some() {
        return Err(BenchError::Usage("a storm is plain text; leave --tls-ca out".into()));
    }
    raise_descriptor_limit(options.sessions + 64)?;
    let servers: Vec<SocketAddr> =
        std::iter::once(target.server).chain(target.others.iter().copied()).collect();
    let mut crowd = Crowd::new(options.first..options.first + options.sessions, servers, target.timeout)?;

    let opening = Instant::now();
    crowd.open_all(options.at_once, target.patience)?;
    let opened_in = opening.elapsed().as_secs_f64();
    eprintln!("{} sessions are open after {opened_in:.1} s", options.sessions);
    crowd.run_for(CALM)?;
    let calm = crowd.take_pings();

    if let Some(pid) = options.kill {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| BenchError::Usage("--kill is no process id".into()))?;
        kill_process(pid, Signal::KILL).map_err(std::io::Error::from).during("cannot kill the server")?;
    } else {
        let until = Instant::now() + Duration::from_secs_f64(options.longest);
        while crowd.attached() + crowd.lost() == options.sessions {
            if Instant::now() > until {
                return Err(BenchError::Usage("no connection was lost; was a server killed?".into()));
            }
            crowd.run_for(Duration::from_millis(20))?;
        }
    }
    crowd.storm_begins();
    let storm = Instant::now();
    let until = storm + Duration::from_secs_f64(options.longest);
    while !crowd.is_over() && Instant::now() < until {
        crowd.run_for(LOOK)?;
    }
    let seconds = storm.elapsed().as_secs_f64();
    let pings = crowd.take_pings();
    crowd.run_for(Duration::from_secs_f64(options.settle))?;
    let after = crowd.take_pings();

    let settings =
        format!("{}, timeout {} ms", counted(options.sessions, "session"), target.timeout.as_millis());
    let metered = Metered { seconds, server: None, client_cpu_us_per_op: None };
    let mut report = Report::new("storm", target.server, settings, &pings, metered);
    for (name, tally) in
        [("calm", &calm), ("storm", &pings), ("after", &after), ("re-attached", crowd.attached_after())]
    {
        report.row(name, tally);
    }
    report.figure("sessions_opened", "per_second", options.sessions as f64 / opened_in);
    report.figure("last_attached_after", "ms", last_ms(crowd.attached_after()));
    report.figure("sessions_lost", "", crowd.lost() as f64);
    report.figure("sessions_away", "", (options.sessions - crowd.attached() - crowd.lost()) as f64);
    report.figure("connections_tried", "", crowd.tried() as f64);
    report.figure("connections_given_up", "", crowd.given_up() as f64);
    Ok(report)
}

fn last_ms(attached: &Tally) -> f64 {
    attached.latency().map_or(0.0, |latency| latency.max / 1000.0)
}
