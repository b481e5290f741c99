//! A contender process: the real client and the real recipes in a runtime whose clock the world moves.
//!
//! tokio's paused clock stands still while a task can run, and jumps to the next timer when none can. So running until
//! a time does exactly what the process does until then, always in the same order.

use super::{
    Resource,
    control::{Holding, JobControl},
    jobs,
    pipe::{ClientEnd, NetworkEnd, PendingCalls},
};
use crate::world::TICK_MS;
use ostler_client::Client;
use ostler_server_core::ConnId;
use std::{collections::BTreeMap, io, sync::Arc, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::yield_now,
    time::{Instant, advance, sleep_until},
};

/// The number of rounds in which woken tasks run after a delivery. Tasks that need more rounds go on at the next step.
const TURNS: u32 = 3;

/// Parameters of a process.
#[derive(Debug, Clone)]
pub(super) struct ProcessConfig {
    pub(super) hosts: i64,
    pub(super) resources: Vec<Resource>,
    pub(super) timeout_ms: u64,
    /// The longest time without a write of a holder, ms.
    pub(super) rest_ms: u64,
    pub(super) seed: u64,
}

/// An open connection of the client.
pub(super) struct OpenConnection {
    pub(super) network_end: NetworkEnd,
    /// The first frame (the handshake) was sent.
    pub(super) greeted: bool,
    /// Bytes of a frame that is not complete yet.
    pub(super) rest: Vec<u8>,
}

/// An event for a process, kept while the process is paused.
pub(super) type Delivery = Box<dyn FnOnce(&Process)>;

pub(super) struct Process {
    runtime: Runtime,
    /// The process's clock and the world's clock at the start.
    born: (Instant, u64),
    pub(super) pending_calls: PendingCalls,
    pub(super) control: Arc<JobControl>,
    pub(super) calls: BTreeMap<u64, oneshot::Sender<io::Result<ClientEnd>>>,
    pub(super) connections: BTreeMap<ConnId, OpenConnection>,
    pub(super) done: bool,
    pub(super) closed: bool,
}

impl Process {
    pub(super) fn start(config: ProcessConfig, now: u64) -> Process {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime that has only a clock asks nothing of the system");
        let (pending_calls, control) =
            (PendingCalls::default(), Arc::new(JobControl::new(config.seed, config.rest_ms)));
        let born = {
            let _within = runtime.enter();
            (Instant::now(), now)
        };
        let servers: Vec<String> = (1..=config.hosts).map(|id| format!("h{id}:1")).collect();
        let calling = pending_calls.clone();
        let builder = Client::builder(&servers.join(","))
            .connector(move |server| calling.connect(&server.host))
            .seed(config.seed)
            .seed_of_ids(config.seed)
            .session_timeout(Duration::from_millis(config.timeout_ms))
            .tick_time(Duration::from_millis(TICK_MS))
            .connection_timeout(Duration::from_secs(5));
        runtime.spawn(jobs::live(control.clone(), builder, config.resources));
        let (calls, connections) = (BTreeMap::new(), BTreeMap::new());
        Process { runtime, born, pending_calls, control, calls, connections, done: false, closed: false }
    }

    fn at(&self, now: u64) -> Instant {
        self.born.0 + Duration::from_millis(now - self.born.1)
    }

    /// Runs until `now`, passes a delivery to the process, and lets the woken tasks run.
    pub(super) fn run(&self, now: u64, learns: impl FnOnce(&Process)) {
        let due = self.at(now);
        self.runtime.block_on(async {
            if Instant::now() < due {
                sleep_until(due).await;
            }
            learns(self);
            for _ in 0..TURNS {
                yield_now().await;
            }
        });
    }

    /// Ends a pause: the clock jumps to `now`, and the process gets all deliveries. With `late` its timers run first.
    pub(super) fn resume(&self, now: u64, missed: Vec<Delivery>, late: bool) {
        let due = self.at(now);
        let find = |missed: Vec<Delivery>| missed.into_iter().for_each(|learns| learns(self));
        self.runtime.block_on(async {
            let mut missed = Some(missed);
            if let Some(missed) = missed.take_if(|_| !late) {
                find(missed);
            }
            advance(due.saturating_duration_since(Instant::now())).await;
            if let Some(missed) = missed {
                yield_now().await;
                find(missed);
            }
            for _ in 0..TURNS {
                yield_now().await;
            }
        });
    }

    /// Everything that its recipes report as held now.
    pub(super) fn held_now(&self) -> Vec<Holding> {
        let _within = self.runtime.enter();
        self.control.held_now()
    }
}

impl Drop for Process {
    /// The world must not ask recipes whose runtime is gone.
    fn drop(&mut self) {
        let _within = self.runtime.enter();
        self.control.forget();
    }
}
