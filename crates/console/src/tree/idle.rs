//! Long work on a thread that has the processor only in idle moments, one at a time.

use crate::error::{ApiError, Code};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tokio::{
    sync::{Mutex, oneshot},
    time::timeout,
};

/// The time for which a caller waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(4);

/// Whether the caller has gone away, or waits no longer.
#[derive(Clone)]
pub(super) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the mark when the request is dropped.
struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The turn of the one that works.
#[derive(Default)]
pub(super) struct Turn(Arc<Mutex<()>>);

impl Turn {
    /// Does some work on a thread of the idle class. `name` says what it is, for those who wait in vain.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        (name, within): (&'static str, Duration),
        work: impl FnOnce(Cancelled) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Ok(turn) = timeout(TURN_WITHIN, self.0.clone().lock_owned()).await else {
            return Err(ApiError::new(
                Code::Busy,
                format!("The {name} of somebody else is under way. Try again in a moment."),
            ));
        };
        let mark = Arc::new(AtomicBool::new(false));
        let (_guard, cancelled) = (Guard(mark.clone()), Cancelled(mark));
        let (done, result) = oneshot::channel();
        let spawned = thread::Builder::new().name(format!("console-{name}")).spawn(move || {
            // If the system refuses it, the work is done at normal priority.
            let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
            let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
            let worked = work(cancelled);
            drop(turn);
            let _ = done.send(worked);
        });
        if spawned.is_err() {
            return Err(ApiError::new(
                Code::Busy,
                "The system gives the server no thread now. Try again later.",
            ));
        }
        match timeout(within, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => {
                Err(ApiError::new(Code::Server, "The server has failed to make the answer. See its log."))
            }
            Err(_) => Err(ApiError::new(
                Code::Busy,
                format!("The machine has had no idle moment for the {name}. Try again later."),
            )),
        }
    }
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
