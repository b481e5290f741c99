//! The stream of the connection's states, and its subscribers.

use futures_core::Stream;
use ostler_client_core::SessionState;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::mpsc;

/// States that a subscriber may leave unread before it is dropped.
const UNREAD_MAX: usize = 1024;
/// The least `room` of [`Subscribers`].
const ROOM_MIN: usize = 16;

/// Every change of the connection's state, beginning with the state at the time of the subscription.
///
/// It ends when the client is closed. It also ends for a reader that leaves 1,024 changes unread.
#[derive(Debug)]
pub struct StateStream {
    changes: mpsc::Receiver<SessionState>,
}

impl StateStream {
    /// The next state; `None` once the client is closed, and for a reader that has left 1,024 changes unread.
    pub async fn next(&mut self) -> Option<SessionState> {
        self.changes.recv().await
    }
}

impl Stream for StateStream {
    type Item = SessionState;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionState>> {
        self.changes.poll_recv(cx)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    list: Vec<mpsc::Sender<SessionState>>,
    /// Before the list grows beyond this length, dropped subscribers are removed. Without this they would stay until the
    /// next change of the state.
    room: usize,
    ended: bool,
}

impl Subscribers {
    pub(crate) fn add(&mut self, current: SessionState) -> StateStream {
        let (to, changes) = mpsc::channel(UNREAD_MAX);
        // The channel is new, so there is room.
        let _ = to.try_send(current);
        if !self.ended {
            if self.list.len() >= self.room {
                self.list.retain(|to| !to.is_closed());
                self.room = (self.list.len() * 2).max(ROOM_MIN);
            }
            self.list.push(to);
        }
        StateStream { changes }
    }

    pub(crate) fn report(&mut self, state: SessionState) {
        self.list.retain(|to| to.try_send(state).is_ok());
    }

    pub(crate) fn end(&mut self) {
        self.list.clear();
        self.ended = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_client_core::ConnectionState;

    #[test]
    fn dropped_subscribers_are_forgotten_without_a_state_change() {
        let mut subscribers = Subscribers::default();
        let state = SessionState { state: ConnectionState::Connected, session: None };
        let mut kept: Vec<StateStream> = (0..20).map(|_| subscribers.add(state)).collect();
        for _ in 0..10_000 {
            drop(subscribers.add(state));
        }
        assert!(subscribers.list.len() <= 2 * 20 + 1, "{}", subscribers.list.len());
        let changed = SessionState { state: ConnectionState::Suspended, session: None };
        subscribers.report(changed);
        for stream in &mut kept {
            assert_eq!(stream.changes.try_recv(), Ok(state));
            assert_eq!(stream.changes.try_recv(), Ok(changed));
        }
    }
}
