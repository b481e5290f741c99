//! What the tasks of a process and the world that watches them tell each other.

use super::Thing;
use crate::chance::Chance;
use ostler_client::SessionId;
use ostler_recipes::fencing::Fence;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::sleep;

/// What a task says, at the moment at which it is so.
#[derive(Debug)]
pub(super) enum Note {
    /// A recipe has given it something to hold, and says that it is held.
    Holds(Holder),
    /// It has asked a recipe again, and that says so.
    StillHolds(Holder),
    /// What is held was already over when it came.
    TooLate,
    /// A write that only the holder can do was acknowledged.
    Wrote(Holder),
    /// Something that must not be.
    Broken(String),
    /// All that it held is given back, and it wants no more.
    Done,
    /// Its client is closed.
    Closed,
}

/// Who holds what, as a recipe says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    pub(super) thing: Thing,
    pub(super) token: u64,
    pub(super) session: SessionId,
}

impl Holder {
    pub(super) fn of(thing: Thing, fence: &Fence) -> Holder {
        Holder { thing, token: fence.token().number(), session: fence.session().id() }
    }
}

/// Asks a recipe whether it still says so.
type Asks = Box<dyn Fn() -> bool + Send>;

#[derive(Default)]
struct Told {
    notes: Vec<Note>,
    beliefs: BTreeMap<u64, (Holder, Asks)>,
    count: u64,
}

/// One for each process.
pub(super) struct Desk {
    pub(super) rest_ms: u64,
    chance: Mutex<Chance>,
    told: Mutex<Told>,
    /// Nobody begins anything.
    quiet: AtomicBool,
    /// What is held is given back, and no more is wanted.
    stops: AtomicBool,
    /// The client is closed, too.
    closes: AtomicBool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    pub(super) fn new(seed: u64, rest_ms: u64) -> Desk {
        Desk {
            rest_ms,
            chance: Mutex::new(Chance::new(seed)),
            told: Mutex::default(),
            quiet: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            closes: AtomicBool::new(false),
        }
    }

    // What tasks use.

    pub(super) fn below(&self, limit: u64) -> u64 {
        lock(&self.chance).below(limit)
    }

    pub(super) async fn pause(&self, ms_max: u64) {
        let ms = 1 + self.below(ms_max);
        sleep(Duration::from_millis(ms)).await;
    }

    pub(super) fn note(&self, note: Note) {
        lock(&self.told).notes.push(note);
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.quiet.load(Relaxed)
    }

    pub(super) fn stops(&self) -> bool {
        self.stops.load(Relaxed)
    }

    pub(super) fn closes(&self) -> bool {
        self.closes.load(Relaxed)
    }

    /// From now on the world asks, after each step, whether the recipe still says that this is held.
    pub(super) fn believes(
        self: &Arc<Self>,
        holder: Holder,
        asks: impl Fn() -> bool + Send + 'static,
    ) -> Belief {
        let mut told = lock(&self.told);
        told.count += 1;
        let number = told.count;
        told.beliefs.insert(number, (holder, Box::new(asks)));
        Belief { desk: self.clone(), number }
    }

    // What the world uses.

    pub(super) fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut lock(&self.told).notes)
    }

    /// Who is said to hold what now. Within the process's runtime, whose clock it asks.
    pub(super) fn believed(&self) -> Vec<Holder> {
        let told = lock(&self.told);
        told.beliefs.values().filter(|(_, asks)| asks()).map(|(holder, _)| *holder).collect()
    }

    pub(super) fn hush(&self, quiet: bool) {
        self.quiet.store(quiet, Relaxed);
    }

    pub(super) fn stop(&self) {
        self.stops.store(true, Relaxed);
    }

    pub(super) fn close(&self) {
        self.closes.store(true, Relaxed);
    }

    /// Nothing of it is asked any more.
    pub(super) fn forget(&self) {
        let beliefs = std::mem::take(&mut lock(&self.told).beliefs);
        drop(beliefs);
    }
}

/// Dropped when the task gives up what it holds.
pub(super) struct Belief {
    desk: Arc<Desk>,
    number: u64,
}

impl Drop for Belief {
    fn drop(&mut self) {
        let belief = lock(&self.desk.told).beliefs.remove(&self.number);
        drop(belief);
    }
}
