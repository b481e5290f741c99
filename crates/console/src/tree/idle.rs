//! Long work on a thread that has the processor only in idle moments, one at a time.
//!
//! Such a thread never locks the core: an ordinary thread of any program could take the processor from it, and all clients
//! would wait until it gets the processor again. So looks are taken by the threads that wait for it.

use crate::error::{ApiError, Code};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tokio::{
    sync::{Mutex, OwnedMutexGuard, oneshot},
    time::timeout,
};

/// The time for which a caller waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(4);

/// A thread works so long without a rest.
const WORK: Duration = Duration::from_millis(1);
/// A rest is this number of times as long as the work before it, but not longer than [`REST_MAX`]: also a thread that has the
/// processor only in idle moments takes caches and memory from the threads that serve clients.
const REST_TIMES: u32 = 3;
const REST_MAX: Duration = Duration::from_millis(20);

/// The rests of a thread that works for long.
pub(super) struct Pace {
    begun: Instant,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace { begun: Instant::now() }
    }

    /// Rests if the thread has worked for some time.
    pub(super) fn rest_if_due(&mut self) {
        let worked = self.begun.elapsed();
        if worked >= WORK {
            thread::sleep((worked * REST_TIMES).min(REST_MAX));
            self.begun = Instant::now();
        }
    }
}

/// Whether nobody waits for the result any more.
#[derive(Clone)]
pub(super) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the mark when it is dropped, as with the request of a caller who has gone away.
pub(super) struct Waiter(Arc<AtomicBool>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody who waits, and the mark for the one who works.
pub(super) fn waiter() -> (Waiter, Cancelled) {
    let mark = Arc::new(AtomicBool::new(false));
    (Waiter(mark.clone()), Cancelled(mark))
}

/// The turn of the one that works.
#[derive(Default)]
pub(super) struct Turn(Arc<Mutex<()>>);

impl Turn {
    /// Waits for the turn. `name` says what the others do, for those who wait in vain.
    pub(super) async fn take(&self, name: &str) -> Result<OwnedMutexGuard<()>, ApiError> {
        timeout(TURN_WITHIN, self.0.clone().lock_owned()).await.map_err(|_| {
            ApiError::new(
                Code::Busy,
                format!("The {name} of somebody else is under way. Try again in a moment."),
            )
        })
    }

    /// Does some work that needs no look at the core.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        (name, within): (&'static str, Duration),
        work: impl FnOnce(Cancelled) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = self.take(name).await?;
        let (_waiter, cancelled) = waiter();
        let (done, result) = oneshot::channel();
        in_idle_moments(name, move || {
            let worked = work(cancelled);
            drop(turn);
            let _ = done.send(worked);
        })?;
        match timeout(within, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => {
                Err(ApiError::new(Code::Server, "The server has failed to make the answer. See its log."))
            }
            Err(_) => Err(no_idle_moment(name)),
        }
    }
}

/// Begins some work on a thread of its own.
pub(super) fn in_idle_moments(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), ApiError> {
    let spawned = thread::Builder::new().name(format!("console-{name}")).spawn(move || {
        // If the system refuses it, the work is done at normal priority.
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
        work();
    });
    spawned
        .map(drop)
        .map_err(|_| ApiError::new(Code::Busy, "The system gives the server no thread now. Try again later."))
}

/// The error of work for which there was no time.
pub(super) fn no_idle_moment(name: &str) -> ApiError {
    ApiError::new(Code::Busy, format!("The machine has had no idle moment for the {name}. Try again later."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_and_nobody_works_for_a_caller_who_is_gone() {
        let turn = Arc::new(Turn::default());
        let (began, has_begun) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let first = turn.clone();
        let caller = tokio::spawn(async move {
            let work = move |cancelled: Cancelled| {
                let _ = began.send(());
                while !cancelled.is_set() {
                    thread::sleep(Duration::from_millis(1));
                }
                let _ = ended.send(());
                Ok(())
            };
            first.work(("test", Duration::from_secs(60)), work).await
        });
        has_begun.await.unwrap();
        assert!(turn.0.try_lock().is_err());
        caller.abort();
        has_ended.await.unwrap();
        assert_eq!(turn.work(("test", Duration::from_secs(60)), |_| Ok(7)).await.unwrap(), 7);
    }
}
