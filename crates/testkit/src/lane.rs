//! One direction of a connection or of a link.

use std::time::Duration;
use tokio::{sync::watch, time::Instant};

/// How things pass.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lane {
    /// Nothing passes, and nothing is lost.
    pub(crate) silent: bool,
    /// On the way for so long.
    pub(crate) delay: Duration,
}

/// Waits as long as something has to that came then, under rules that may change meanwhile.
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
            // Nobody can lift the rules any more: the test is over.
            return std::future::pending().await;
        }
    }
}
