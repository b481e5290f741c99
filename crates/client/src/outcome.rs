//! The outcomes of requests, and their delivery to the callers.

use bytes::Bytes;
use ostler_client_core::Failure;
use std::task::Waker;
use tokio::sync::oneshot;

/// A server's reply to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    /// ZooKeeper's error code; 0 for success.
    pub(crate) error: i32,
    /// The bytes after the reply header.
    pub(crate) body: Bytes,
}

/// How a request ended: with a server's reply, or without one.
pub(crate) type Outcome = std::result::Result<Reply, Failure>;

/// The recipient of a request's outcome.
pub(crate) enum Recipient {
    /// A caller that waits for the outcome. It may have dropped the receiver.
    Caller(oneshot::Sender<Outcome>),
    /// A function that is called with the outcome of a request without a waiting caller.
    Callback(Box<dyn FnOnce(Outcome) + Send>),
}

impl std::fmt::Debug for Recipient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Recipient::Caller(_) => "Caller",
            Recipient::Callback(_) => "Callback",
        })
    }
}

impl Recipient {
    /// Must not be called under the session's lock, because a callback may take that lock.
    pub(crate) fn deliver(self, outcome: Outcome) {
        match self {
            // If the caller has dropped the receiver, nobody needs the outcome.
            Recipient::Caller(to) => drop(to.send(outcome)),
            Recipient::Callback(act) => act(outcome),
        }
    }
}

/// Outcomes that are delivered to their recipients after the lock is released.
pub(crate) type Deliveries = Vec<(Recipient, Outcome)>;

/// Delivers outcomes, and wakes the connection's task. Must not be called under the session's lock.
pub(crate) fn deliver(deliveries: Deliveries, waker: Option<Waker>) {
    for (recipient, outcome) in deliveries {
        recipient.deliver(outcome);
    }
    if let Some(waker) = waker {
        waker.wake();
    }
}
