//! Measures a part of a run: time, and CPU and memory of server and client.

use super::process::{Process, Usage};
use serde::Serialize;
use std::time::Instant;

/// A measurement that goes on.
#[derive(Debug)]
pub(crate) struct Meter {
    server: Option<(Process, Usage)>,
    client: Option<Usage>,
    started: Instant,
}

/// A measurement that has ended.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) seconds: f64,
    pub(crate) server: Option<ServerUse>,
    pub(crate) client_cpu_us_per_op: Option<f64>,
}

/// The resources that the server's process has used.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct ServerUse {
    pub(crate) pid: u32,
    pub(crate) cpu_us_per_op: f64,
    /// 100 is one core.
    pub(crate) cpu_percent: f64,
    pub(crate) rss_before: u64,
    pub(crate) rss_after: u64,
}

impl Meter {
    pub(crate) fn start(server: Option<Process>) -> Meter {
        Meter {
            server: server.and_then(|process| Some((process, process.usage()?))),
            client: Process::current().usage(),
            started: Instant::now(),
        }
    }

    /// Ends the measurement, in which `ops` operations were done.
    pub(crate) fn stop(self, ops: u64) -> Metered {
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu_between = |before: Usage, after: Usage| after.cpu.saturating_sub(before.cpu).as_secs_f64();
        let per_op = |cpu: f64| if ops == 0 { 0.0 } else { cpu * 1e6 / ops as f64 };
        let server = self.server.and_then(|(process, before)| {
            let after = process.usage()?;
            let cpu = cpu_between(before, after);
            Some(ServerUse {
                pid: process.pid(),
                cpu_us_per_op: per_op(cpu),
                cpu_percent: cpu / seconds * 100.0,
                rss_before: before.rss,
                rss_after: after.rss,
            })
        });
        let client_now = Process::current().usage();
        let client = self.client.zip(client_now).map(|(before, after)| cpu_between(before, after));
        Metered { seconds, server, client_cpu_us_per_op: client.map(per_op) }
    }
}
