//! Shared state of a contender's tasks and the world: the tasks report what they hold, the world asks them to stop.

use super::Resource;
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

/// A task's report, made at the moment at which it becomes true.
#[derive(Debug)]
pub(super) enum Note {
    /// A recipe has granted something, and reports it as held.
    Holds(Holding),
    /// The task has asked the recipe again, and the recipe still reports it as held.
    StillHolds(Holding),
    /// A recipe has granted something that it no longer reports as held.
    TooLate,
    /// A write that only the holder can do was acknowledged.
    Wrote(Holding),
    /// A broken promise, or a task that failed.
    Broken(String),
    /// Everything is released, and the tasks have ended.
    Done,
    /// The client is closed.
    Closed,
}

/// A resource that a recipe reports as held, with the fencing token and the session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holding {
    pub(super) resource: Resource,
    pub(super) token: u64,
    pub(super) session: SessionId,
}

impl Holding {
    pub(super) fn of(resource: Resource, fence: &Fence) -> Holding {
        Holding { resource, token: fence.token().number(), session: fence.session().id() }
    }
}

/// Asks a recipe whether it still reports something as held.
type StillHeld = Box<dyn Fn() -> bool + Send>;

#[derive(Default)]
struct ControlState {
    notes: Vec<Note>,
    held: BTreeMap<u64, (Holding, StillHeld)>,
    count: u64,
}

/// The control of one contender process.
pub(super) struct JobControl {
    pub(super) rest_ms: u64,
    chance: Mutex<Chance>,
    state: Mutex<ControlState>,
    /// The tasks acquire nothing for now.
    quiet: AtomicBool,
    /// The tasks release what they hold and end.
    stops: AtomicBool,
    /// The client is to be closed, too.
    closes: AtomicBool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JobControl {
    pub(super) fn new(seed: u64, rest_ms: u64) -> JobControl {
        JobControl {
            rest_ms,
            chance: Mutex::new(Chance::new(seed)),
            state: Mutex::default(),
            quiet: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            closes: AtomicBool::new(false),
        }
    }

    // Used by the tasks.

    pub(super) fn below(&self, limit: u64) -> u64 {
        lock(&self.chance).below(limit)
    }

    pub(super) async fn pause(&self, ms_max: u64) {
        let ms = 1 + self.below(ms_max);
        sleep(Duration::from_millis(ms)).await;
    }

    pub(super) fn note(&self, note: Note) {
        lock(&self.state).notes.push(note);
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

    /// From now on the world asks the recipe after each step whether this is still held.
    pub(super) fn report_held_while(
        self: &Arc<Self>,
        holder: Holding,
        asks: impl Fn() -> bool + Send + 'static,
    ) -> HeldReport {
        let mut state = lock(&self.state);
        state.count += 1;
        let number = state.count;
        state.held.insert(number, (holder, Box::new(asks)));
        HeldReport { control: self.clone(), number }
    }

    // Used by the world.

    pub(super) fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut lock(&self.state).notes)
    }

    /// Everything that the recipes report as held now. Call it within the process's runtime: recipes ask its clock.
    pub(super) fn held_now(&self) -> Vec<Holding> {
        let state = lock(&self.state);
        state.held.values().filter(|(_, asks)| asks()).map(|(holder, _)| *holder).collect()
    }

    pub(super) fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Relaxed);
    }

    pub(super) fn stop(&self) {
        self.stops.store(true, Relaxed);
    }

    pub(super) fn close(&self) {
        self.closes.store(true, Relaxed);
    }

    /// The world stops asking the recipes.
    pub(super) fn forget(&self) {
        let held = std::mem::take(&mut lock(&self.state).held);
        drop(held);
    }
}

/// While this lives, the world checks what is held. The task drops it when it releases the resource.
pub(super) struct HeldReport {
    control: Arc<JobControl>,
    number: u64,
}

impl Drop for HeldReport {
    fn drop(&mut self) {
        let held = lock(&self.control.state).held.remove(&self.number);
        drop(held);
    }
}
