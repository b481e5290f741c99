//! The stream of the connection's states, and its subscribers.

use futures_core::Stream;
use ostler_client_core::SessionState;
use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// States that a subscriber may leave unread; after that it misses the oldest.
const UNREAD_MAX: usize = 1024;
/// The least `room` of [`Subscribers`].
const ROOM_MIN: usize = 16;

/// Every change of the connection's state, beginning with the state at the time of the subscription.
///
/// It ends when the client is closed. A reader that leaves more than 1,024 states unread misses the oldest of them, but
/// never the newest.
#[derive(Debug)]
pub struct StateStream {
    unread: Arc<Unread>,
}

impl StateStream {
    /// The next state; `None` once the client is closed.
    pub async fn next(&mut self) -> Option<SessionState> {
        poll_fn(|cx| self.unread.poll(cx)).await
    }
}

impl Stream for StateStream {
    type Item = SessionState;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionState>> {
        self.unread.poll(cx)
    }
}

/// The states that one subscriber has not read yet.
#[derive(Debug, Default)]
struct Unread(Mutex<UnreadStates>);

#[derive(Debug, Default)]
struct UnreadStates {
    states: VecDeque<SessionState>,
    ended: bool,
    /// Set while the reader waits.
    waker: Option<Waker>,
}

impl Unread {
    fn lock(&self) -> MutexGuard<'_, UnreadStates> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<SessionState>> {
        let mut unread = self.lock();
        match unread.states.pop_front() {
            None if !unread.ended => {
                unread.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            next => Poll::Ready(next),
        }
    }

    /// Changes the states, and wakes the reader.
    fn change(&self, change: impl FnOnce(&mut UnreadStates)) {
        let waker = {
            let mut unread = self.lock();
            change(&mut unread);
            unread.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    list: Vec<Arc<Unread>>,
    /// Before the list grows beyond this length, dropped subscribers are removed. Without this they would stay until the
    /// next change of the state.
    room: usize,
    ended: bool,
}

impl Subscribers {
    pub(crate) fn add(&mut self, current: SessionState) -> StateStream {
        let unread = Arc::new(Unread::default());
        unread.change(|unread| {
            unread.states.push_back(current);
            unread.ended = self.ended;
        });
        if !self.ended {
            if self.list.len() >= self.room {
                self.forget_dropped();
                self.room = (self.list.len() * 2).max(ROOM_MIN);
            }
            self.list.push(unread.clone());
        }
        StateStream { unread }
    }

    pub(crate) fn report(&mut self, state: SessionState) {
        self.forget_dropped();
        for unread in &self.list {
            unread.change(|unread| {
                if unread.states.len() >= UNREAD_MAX {
                    unread.states.pop_front();
                }
                unread.states.push_back(state);
            });
        }
    }

    pub(crate) fn end(&mut self) {
        for unread in self.list.drain(..) {
            unread.change(|unread| unread.ended = true);
        }
        self.ended = true;
    }

    /// Removes the subscribers whose stream is dropped.
    fn forget_dropped(&mut self) {
        self.list.retain(|unread| Arc::strong_count(unread) > 1);
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_client_core::ConnectionState;
    use ostler_proto::id::SessionId;

    #[test]
    fn dropped_subscribers_are_forgotten_without_a_state_change() {
        let mut subscribers = Subscribers::default();
        let state = SessionState::new(ConnectionState::Connected, None);
        let mut kept: Vec<StateStream> = (0..20).map(|_| subscribers.add(state)).collect();
        for _ in 0..10_000 {
            drop(subscribers.add(state));
        }
        assert!(subscribers.list.len() <= 2 * 20 + 1, "{}", subscribers.list.len());
        let changed = SessionState::new(ConnectionState::Suspended, None);
        subscribers.report(changed);
        for stream in &mut kept {
            assert_eq!(stream.unread.lock().states, [state, changed]);
        }
    }

    #[tokio::test]
    async fn a_slow_reader_misses_the_oldest_states_and_its_stream_goes_on() {
        let numbered = |number| SessionState::new(ConnectionState::Reconnected, Some(SessionId(number)));
        let mut subscribers = Subscribers::default();
        let mut stream = subscribers.add(numbered(0));
        let newest = 3 * UNREAD_MAX as i64;
        for number in 1..=newest {
            subscribers.report(numbered(number));
        }
        for number in newest - UNREAD_MAX as i64 + 1..=newest {
            assert_eq!(stream.next().await, Some(numbered(number)));
        }
        let reading = tokio::spawn(async move { (stream.next().await, stream.next().await) });
        tokio::task::yield_now().await;
        subscribers.report(numbered(-1));
        tokio::task::yield_now().await;
        drop(subscribers);
        assert_eq!(reading.await.unwrap(), (Some(numbered(-1)), None));
    }
}
