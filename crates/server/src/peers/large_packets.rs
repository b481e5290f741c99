//! How much of packets that are not whole yet all learners together may have here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

/// So much each connection may hold without asking.
const OF_EACH: usize = 1 << 20;
/// Between two looks whether there is room.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// What all connections hold beyond their own share.
#[derive(Debug)]
pub(super) struct LargePackets {
    held: AtomicUsize,
    max: usize,
}

/// What one connection holds of it.
#[derive(Debug)]
pub(super) struct Held {
    of: Arc<LargePackets>,
    bytes: usize,
}

impl LargePackets {
    pub(super) fn of(max: usize) -> Arc<LargePackets> {
        Arc::new(LargePackets { held: AtomicUsize::new(0), max })
    }

    pub(super) fn nothing(self: &Arc<Self>) -> Held {
        Held { of: self.clone(), bytes: 0 }
    }
}

impl Held {
    /// Takes or gives back so that it fits a buffer of this size; false if there is no room.
    fn try_fit(&mut self, buffer: usize) -> bool {
        let wanted = buffer.saturating_sub(OF_EACH);
        if wanted <= self.bytes {
            self.of.held.fetch_sub(self.bytes - wanted, Ordering::Relaxed);
            self.bytes = wanted;
            return true;
        }
        let more = wanted - self.bytes;
        let before = self.of.held.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > self.of.max {
            self.of.held.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes = wanted;
        true
    }

    /// Waits until there is room for a buffer of this size. A learner whose packet does not become whole meanwhile is
    /// silent to the leader, which sends it away: so there is room at last.
    pub(super) async fn fit(&mut self, buffer: usize) {
        while !self.try_fit(buffer) {
            sleep(LOOK_AGAIN_AFTER).await;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_connections_share_what_is_beyond_their_own() {
        let all = LargePackets::of(10 << 20);
        let (mut one, mut other) = (all.nothing(), all.nothing());
        assert!(one.try_fit(9 << 20) && other.try_fit(1 << 20));
        assert!(other.try_fit(3 << 20), "8 and 2");
        assert!(!other.try_fit((3 << 20) + 1));
        assert!(one.try_fit(8 << 20) && other.try_fit(4 << 20));
        drop(one);
        assert!(other.try_fit(11 << 20));
        drop(other);
        assert_eq!(all.held.load(Ordering::Relaxed), 0);
    }
}
