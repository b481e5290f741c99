//! Delay and silence of one direction of a connection.

use std::time::Duration;
use tokio::{sync::watch, time::Instant};

/// The faults of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lane {
    /// Frames and bytes wait until this is false again.
    pub(crate) silent: bool,
    /// The time that each frame takes.
    pub(crate) delay: Duration,
}

/// Waits until something that arrived at `came` may be passed on. The rules may change during the wait.
pub(crate) async fn pass<R>(rules: &mut watch::Receiver<R>, lane: impl Fn(&R) -> Lane, came: Instant) {
    loop {
        let now = lane(&rules.borrow_and_update());
        let due = came + now.delay;
        if !now.silent && due <= Instant::now() {
            return;
        }
        let changed = tokio::select! {
            () = tokio::time::sleep_until(due), if !now.silent => Ok(()),
            changed = rules.changed() => changed,
        };
        if changed.is_err() {
            // The rules can no longer change, so the test is over.
            return std::future::pending().await;
        }
    }
}
