//! A connection's unanswered requests, counted over all connections.

use super::request_queue::Waiting;
use alloc::{
    collections::{VecDeque, vec_deque},
    sync::Arc,
};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The number of unanswered requests of all connections: reports need it without a look at each of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitingCount(Arc<AtomicUsize>);

impl WaitingCount {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, count: usize) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn take(&self, count: usize) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }
}

/// A connection's unanswered requests.
#[derive(Debug, Default)]
pub(crate) struct RequestQueue {
    waiting: VecDeque<Waiting>,
    of_all: WaitingCount,
}

impl RequestQueue {
    /// An empty queue whose requests count here.
    pub(crate) fn counted_in(of_all: &WaitingCount) -> RequestQueue {
        RequestQueue { waiting: VecDeque::new(), of_all: of_all.clone() }
    }

    pub(crate) fn push_back(&mut self, waiting: Waiting) {
        self.of_all.add(1);
        self.waiting.push_back(waiting);
    }

    pub(crate) fn push_front(&mut self, waiting: Waiting) {
        self.of_all.add(1);
        self.waiting.push_front(waiting);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Waiting> {
        self.waiting.pop_front().inspect(|_| self.of_all.take(1))
    }

    pub(crate) fn pop_front_if(&mut self, predicate: impl FnOnce(&mut Waiting) -> bool) -> Option<Waiting> {
        self.waiting.pop_front_if(predicate).inspect(|_| self.of_all.take(1))
    }

    pub(crate) fn clear(&mut self) {
        self.of_all.take(self.waiting.len());
        self.waiting.clear();
    }

    pub(crate) fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn iter(&self) -> vec_deque::Iter<'_, Waiting> {
        self.waiting.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> vec_deque::IterMut<'_, Waiting> {
        self.waiting.iter_mut()
    }
}

impl<'a> IntoIterator for &'a RequestQueue {
    type Item = &'a Waiting;
    type IntoIter = vec_deque::Iter<'a, Waiting>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut RequestQueue {
    type Item = &'a mut Waiting;
    type IntoIter = vec_deque::IterMut<'a, Waiting>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl Drop for RequestQueue {
    fn drop(&mut self) {
        self.clear();
    }
}
