//! The limit of the bytes of large requests that are read or under way (`largeRequestThreshold`,
//! `largeRequestMaxBytes`).

use crate::config::LargeRequestSettings;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// The bytes of the large requests of all connections.
#[derive(Debug)]
pub(crate) struct LargeRequests {
    settings: LargeRequestSettings,
    bytes: AtomicUsize,
    rejected: AtomicU64,
}

impl LargeRequests {
    pub(crate) fn new(settings: LargeRequestSettings) -> LargeRequests {
        LargeRequests { settings, bytes: AtomicUsize::new(0), rejected: AtomicU64::new(0) }
    }

    /// Large requests that were refused; each has ended its connection.
    pub(crate) fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    pub(crate) fn reset(&self) {
        self.rejected.store(0, Ordering::Relaxed);
    }

    fn reserve(&self, size: usize) -> bool {
        let max = self.settings.max_bytes as usize;
        let more = |bytes: usize| bytes.checked_add(size).filter(|sum| *sum <= max);
        let reserved = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if !reserved {
            self.rejected.fetch_add(1, Ordering::Relaxed);
        }
        reserved
    }
}

/// The large requests of one connection. Its requests are numbered in the order in which they come, from 0.
#[derive(Debug)]
pub(crate) struct LargeOfConnection {
    all: Arc<LargeRequests>,
    /// The number of each large request that is not answered, and its bytes.
    held: VecDeque<(u64, usize)>,
    /// The number of the next request.
    next: u64,
}

impl LargeOfConnection {
    pub(crate) fn new(all: Arc<LargeRequests>) -> LargeOfConnection {
        LargeOfConnection { all, held: VecDeque::new(), next: 0 }
    }

    /// The length of a request is known, though not all of it may have come; `ahead` requests before it are not handed
    /// over yet. Returns false if it is one large request too many. A call for a request that was looked at before has no
    /// effect.
    pub(crate) fn admits(&mut self, ahead: usize, size: usize) -> bool {
        let is_large = size > self.all.settings.threshold as usize;
        let number = self.next + ahead as u64;
        if !is_large || self.held.back().is_some_and(|(last, _)| *last >= number) {
            return true;
        }
        let admitted = self.all.reserve(size);
        if admitted {
            self.held.push_back((number, size));
        }
        admitted
    }

    /// Requests were handed over, and this number of all that were is not answered.
    pub(crate) fn handed_over(&mut self, count: usize, unanswered: usize) {
        self.next += count as u64;
        self.answered(unanswered);
    }

    /// Frees the bytes of the requests that are answered.
    pub(crate) fn answered(&mut self, unanswered: usize) {
        let first = self.next.saturating_sub(unanswered as u64);
        while let Some((_, size)) = self.held.pop_front_if(|(number, _)| *number < first) {
            self.all.bytes.fetch_sub(size, Ordering::Relaxed);
        }
    }
}

impl Drop for LargeOfConnection {
    fn drop(&mut self) {
        let held: usize = self.held.iter().map(|(_, size)| size).sum();
        self.all.bytes.fetch_sub(held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(max_bytes: u32) -> Arc<LargeRequests> {
        Arc::new(LargeRequests::new(LargeRequestSettings { threshold: 100, max_bytes }))
    }

    #[test]
    fn large_requests_of_all_connections_share_the_bytes() {
        let all = all(1000);
        let mut one = LargeOfConnection::new(all.clone());
        let mut other = LargeOfConnection::new(all.clone());
        assert!(one.admits(0, 600) && one.admits(0, 600), "the same request, looked at twice");
        assert!(!other.admits(0, 401) && other.admits(0, 400));
        assert!(other.admits(0, 100), "small ones are not counted");
        assert_eq!(all.rejected(), 1);
        one.handed_over(1, 1);
        assert!(!one.admits(0, 101));
        one.answered(0);
        assert!(one.admits(0, 101));
        drop((one, other));
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn bytes_are_free_once_their_own_request_is_answered() {
        let all = all(1000);
        let mut one = LargeOfConnection::new(all.clone());
        for _ in 0..3 {
            assert!(one.admits(0, 300));
            one.handed_over(1, 1);
        }
        assert!(one.admits(0, 300), "all but the last are answered");
        one.handed_over(1, 2);
        assert_eq!(all.bytes.load(Ordering::Relaxed), 600);
        one.handed_over(5, 0);
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_size_that_overflows_is_refused() {
        let all = all(u32::MAX);
        let mut one = LargeOfConnection::new(all.clone());
        assert!(one.admits(0, 1000));
        one.handed_over(1, 1);
        assert!(!one.admits(1, usize::MAX));
    }
}
