//! The connection's states, told to everybody who wants to know.

use futures_core::Stream;
use ostler_client_core::SessionState;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::mpsc;

/// States that a subscriber may leave unread before it is dropped.
const UNREAD_MAX: usize = 1024;

/// Every change of the connection's state, beginning with the state at the time of the subscription.
///
/// It ends when the client is closed. It also ends for a reader who leaves 1,024 changes unread.
#[derive(Debug)]
pub struct StateStream {
    changes: mpsc::Receiver<SessionState>,
}

impl StateStream {
    /// The next state; `None` once the client is closed.
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
    ended: bool,
}

impl Subscribers {
    pub(crate) fn add(&mut self, current: SessionState) -> StateStream {
        let (to, changes) = mpsc::channel(UNREAD_MAX);
        // The channel is new, so there is room.
        let _ = to.try_send(current);
        if !self.ended {
            self.list.push(to);
        }
        StateStream { changes }
    }

    pub(crate) fn tell(&mut self, state: SessionState) {
        self.list.retain(|to| to.try_send(state).is_ok());
    }

    pub(crate) fn end(&mut self) {
        self.list.clear();
        self.ended = true;
    }
}
