//! A limit to the memory for incomplete packets of all learners together.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

/// Bytes that each connection may buffer outside the common limit.
const OWN_SHARE: usize = 1 << 20;
/// The time between two attempts to get room.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// The bytes that all connections buffer beyond [`OWN_SHARE`], and their limit.
#[derive(Debug)]
pub(super) struct LargePackets {
    held: AtomicUsize,
    max: usize,
}

/// One connection's share of [`LargePackets`]. It is given back on drop.
#[derive(Debug)]
pub(super) struct BufferShare {
    all: Arc<LargePackets>,
    bytes: usize,
}

impl LargePackets {
    pub(super) fn with_limit(max: usize) -> Arc<LargePackets> {
        Arc::new(LargePackets { held: AtomicUsize::new(0), max })
    }

    /// A share without bytes.
    pub(super) fn new_share(self: &Arc<Self>) -> BufferShare {
        BufferShare { all: self.clone(), bytes: 0 }
    }
}

impl BufferShare {
    /// Changes the share to that of a buffer of this size. Returns false if there is no room.
    fn try_fit(&mut self, buffer: usize) -> bool {
        let wanted = buffer.saturating_sub(OWN_SHARE);
        if wanted <= self.bytes {
            self.all.held.fetch_sub(self.bytes - wanted, Ordering::Relaxed);
            self.bytes = wanted;
            return true;
        }
        let more = wanted - self.bytes;
        let before = self.all.held.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > self.all.max {
            self.all.held.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes = wanted;
        true
    }

    /// Waits until there is room for a buffer of this size. There will be: a learner whose packet stays incomplete is
    /// silent for the leader, which closes its connection.
    pub(super) async fn fit(&mut self, buffer: usize) {
        while !self.try_fit(buffer) {
            sleep(TRY_AGAIN_AFTER).await;
        }
    }
}

impl Drop for BufferShare {
    fn drop(&mut self) {
        self.all.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_one_limit_beyond_their_own_share() {
        let all = LargePackets::with_limit(10 << 20);
        let (mut one, mut other) = (all.new_share(), all.new_share());
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
