//! Traced requests that wait to be sent.

use ostler_server_core::stats::traced::TracedRequest;
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The most requests that wait. Later ones are dropped, and counted: a collector that is down costs nothing more.
const WAITING_MAX: usize = 4096;

#[derive(Debug, Default)]
struct Waiting {
    requests: Vec<TracedRequest>,
    dropped: u64,
    is_over: bool,
}

/// The queue between the server and the thread that sends.
#[derive(Debug, Default)]
pub(crate) struct TraceQueue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

/// The requests that have gathered.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) requests: Vec<TracedRequest>,
    /// Requests that found no room.
    pub(super) dropped: u64,
    /// The server ends: nothing comes after this.
    pub(super) is_over: bool,
}

impl TraceQueue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request, if there is room.
    pub(crate) fn push(&self, request: TracedRequest) {
        let mut waiting = self.lock();
        if waiting.requests.len() < WAITING_MAX {
            waiting.requests.push(request);
        } else {
            waiting.dropped += 1;
        }
    }

    /// No more requests come.
    pub(crate) fn stop(&self) {
        self.lock().is_over = true;
        self.wake.notify_all();
    }

    /// Waits for this time, or until the end, and takes what has gathered.
    pub(super) fn gather(&self, time: Duration) -> Gathered {
        let waiting = self.lock();
        let (mut waiting, _) = self
            .wake
            .wait_timeout_while(waiting, time, |waiting| !waiting.is_over)
            .unwrap_or_else(PoisonError::into_inner);
        Gathered {
            requests: std::mem::take(&mut waiting.requests),
            dropped: std::mem::take(&mut waiting.dropped),
            is_over: waiting.is_over,
        }
    }
}
