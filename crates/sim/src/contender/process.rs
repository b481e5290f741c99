//! A process with a real client and real recipes, on a clock that the world moves.
//!
//! tokio's clock stands still while anything can run, and goes on to the next timer when nothing can. So "run until it is
//! this time" does all that a process does until then and no more, in an order that depends on nothing else.

use super::{
    Thing,
    desk::{Desk, Holder},
    jobs,
    pipe::{Board, Far, Near},
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

/// How often the tasks that something has woken have their turn: each time all that are ready, and those that they wake.
/// What needs more goes on at the next step.
const TURNS: u32 = 3;

/// How a process is to be.
#[derive(Debug, Clone)]
pub(super) struct Make {
    pub(super) hosts: i64,
    pub(super) things: Vec<Thing>,
    pub(super) timeout_ms: u64,
    /// The longest that a holder writes nothing.
    pub(super) rest_ms: u64,
    pub(super) seed: u64,
}

/// A connection that is open.
pub(super) struct Line {
    pub(super) far: Far,
    /// The first frame is sent.
    pub(super) greeted: bool,
    /// The beginning of a frame.
    pub(super) rest: Vec<u8>,
}

/// What a process learns when it runs again.
pub(super) type Missed = Box<dyn FnOnce(&Process)>;

pub(super) struct Process {
    runtime: Runtime,
    /// Its clock at its birth, and the world's.
    born: (Instant, u64),
    pub(super) board: Board,
    pub(super) desk: Arc<Desk>,
    pub(super) calls: BTreeMap<u64, oneshot::Sender<io::Result<Near>>>,
    pub(super) lines: BTreeMap<ConnId, Line>,
    pub(super) done: bool,
    pub(super) closed: bool,
}

impl Process {
    pub(super) fn start(make: Make, now: u64) -> Process {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime that has only a clock asks nothing of the system");
        let (board, desk) = (Board::default(), Arc::new(Desk::new(make.seed, make.rest_ms)));
        let born = {
            let _within = runtime.enter();
            (Instant::now(), now)
        };
        let servers: Vec<String> = (1..=make.hosts).map(|id| format!("h{id}:1")).collect();
        let calling = board.clone();
        let builder = Client::builder(&servers.join(","))
            .connector(move |host, _| calling.connect(&host))
            .seed(make.seed)
            .seed_of_ids(make.seed)
            .session_timeout(Duration::from_millis(make.timeout_ms))
            .tick_time(Duration::from_millis(TICK_MS))
            .connection_timeout(Duration::from_secs(5));
        runtime.spawn(jobs::live(desk.clone(), builder, make.things));
        let (calls, lines) = (BTreeMap::new(), BTreeMap::new());
        Process { runtime, born, board, desk, calls, lines, done: false, closed: false }
    }

    fn at(&self, now: u64) -> Instant {
        self.born.0 + Duration::from_millis(now - self.born.1)
    }

    /// Lives until it is `now`, learns of something then, and does what comes of it at once.
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

    /// It did not run: its clock has gone on, and it finds all that has come, with `late` after all that its timers do.
    pub(super) fn resume(&self, now: u64, missed: Vec<Missed>, late: bool) {
        let due = self.at(now);
        let find = |missed: Vec<Missed>| missed.into_iter().for_each(|learns| learns(self));
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

    /// What its recipes say that it holds, at this moment.
    pub(super) fn believed(&self) -> Vec<Holder> {
        let _within = self.runtime.enter();
        self.desk.believed()
    }
}

impl Drop for Process {
    /// What its tasks do on their way out nobody hears of.
    fn drop(&mut self) {
        let _within = self.runtime.enter();
        self.desk.forget();
    }
}
