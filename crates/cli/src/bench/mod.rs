//! `ostler bench`: load for anything that speaks the ZooKeeper client protocol.
//!
//! One thread drives all sessions (`fleet`); each workload decides what they send and counts what comes
//! back. It shares the machine with the server it measures, so it spends as little as it can per request.

mod codes;
mod disk;
mod error;
mod fill;
mod first_request;
mod fleet;
mod handshakes;
mod idle;
mod meter;
mod mix;
mod ops;
pub(crate) mod process;
mod progress;
mod rate;
mod report;
mod session;
mod snapshots;
mod storm;
mod tally;
mod template;
mod tree;
mod watch;
mod wire;

use crate::tls_options::TlsOptions;
use clap::{Args, Subcommand};
use error::{BenchError, Result};
use process::Process;
use report::Report;
use rustls_pki_types::ServerName;
use session::{PATIENCE, Target};
use std::{net::ToSocketAddrs, process::ExitCode, time::Duration};
use wire::TlsDialer;

/// Measure the speed of a server, of Ostler or of ZooKeeper.
///
/// If the server runs on this machine, its CPU time and memory are reported too.
#[derive(Args)]
#[command(after_help = "Example: ostler bench mix --server 127.0.0.1:2181")]
pub(crate) struct Bench {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Args)]
struct Common {
    /// Addresses of the servers, joined by commas; the sessions are spread over them in turn.
    #[arg(long, global = true, default_value = "127.0.0.1:2181", value_name = "HOST:PORT,...")]
    server: String,
    /// Process id of the server, for its CPU time and memory [default: found by its port on a loopback address].
    #[arg(long, global = true, value_name = "PID")]
    pid: Option<u32>,
    /// Session timeout to ask the server for, in milliseconds.
    #[arg(long, global = true, default_value_t = 30_000, value_name = "MS")]
    session_timeout: u64,
    /// Print the result as one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    tls: TlsOptions,
}

#[derive(Subcommand)]
enum Workload {
    Mix(mix::Options),
    Watch(watch::Options),
    Idle(idle::Options),
    Handshakes(handshakes::Options),
    Fill(fill::Options),
    Rate(rate::Options),
    FirstRequest(first_request::Options),
    Storm(storm::Options),
    Disk(disk::Options),
}

impl Bench {
    /// Runs the workload and prints what came out.
    pub(crate) fn run(self) -> ExitCode {
        match self.measure() {
            Ok(report) => {
                match serde_json::to_string(&report) {
                    Ok(json) if self.common.json => println!("{json}"),
                    _ => print!("{}", report.table()),
                }
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("ostler bench: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn measure(&self) -> Result<Report> {
        let target = || self.common.target();
        let with_process = || {
            let target = target()?;
            Ok((target, self.common.process(target)?))
        };
        match &self.workload {
            Workload::Mix(options) => with_process().and_then(|(target, of)| mix::run(options, target, of)),
            Workload::Watch(options) => {
                with_process().and_then(|(target, of)| watch::run(options, target, of))
            }
            Workload::Idle(options) => with_process().and_then(|(target, of)| idle::run(options, target, of)),
            Workload::Handshakes(options) => {
                with_process().and_then(|(target, of)| handshakes::run(options, target, of))
            }
            Workload::Fill(options) => with_process().and_then(|(target, of)| fill::run(options, target, of)),
            Workload::Rate(options) => with_process().and_then(|(target, of)| rate::run(options, target, of)),
            Workload::FirstRequest(options) => first_request::run(options, target()?),
            Workload::Storm(options) => storm::run(options, target()?),
            Workload::Disk(options) => disk::run(options),
        }
    }
}

impl Common {
    fn target(&self) -> Result<Target> {
        let unusable = |what: String| {
            BenchError::Usage(format!("--server {}: {what}; HOST:PORT is needed", self.server))
        };
        let (mut servers, mut names) = (Vec::new(), Vec::new());
        for server in self.server.split(',') {
            let mut addresses = server.to_socket_addrs().map_err(|cause| unusable(cause.to_string()))?;
            servers.push(addresses.next().ok_or_else(|| unusable("the name has no address".into()))?);
            let host = server.rsplit_once(':').map_or(server, |(host, _)| host).trim_matches(['[', ']']);
            names.push(ServerName::try_from(host.to_owned()).map_err(|cause| unusable(cause.to_string()))?);
        }
        let config = match self.tls.read()? {
            None => None,
            Some(pem) => Some(pem.config().map_err(BenchError::TlsFiles)?),
        };
        let tls = config.map(|config| &*Box::leak(Box::new(TlsDialer::new(config, names))));
        // They are the target for as long as the program runs.
        let (server, others) = (servers[0], &*servers.leak());
        let timeout = Duration::from_millis(self.session_timeout);
        Ok(Target { server, others: &others[1..], timeout, patience: PATIENCE, tls })
    }

    fn process(&self, target: Target) -> Result<Option<Process>> {
        match self.pid {
            Some(pid) => Process::of_pid(pid).map(Some),
            None => Ok(Process::listening_on(target.server).map(|process| process.with(target.others))),
        }
    }
}

/// `1 session`, `2 sessions`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
