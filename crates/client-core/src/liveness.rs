//! How long the session can be taken to live, and when to give signs of life.
//!
//! A server expires a session when it has heard nothing for the session's timeout T. It cannot have heard the
//! last request that it answered before that was sent. But it is the leader that expires, and it hears of the
//! requests that a follower answers with the follower's next report, half a tick later; if the follower dies
//! before, not at all. A tick is at most half of T, so the session lives at least until three quarters of T
//! after the sending of the last request that was answered. From then on it must be taken for lost.
//!
//! So that there is time for another server before that, a connection is given up when it was silent for half of
//! T; and pinged after a fifth of T, which leaves a stalled server as much time to answer as upstream's client
//! gives it.

use crate::time::Mono;
use core::time::Duration;

/// Moments of the current connection and session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Liveness {
    /// Granted by the server.
    timeout: Duration,
    /// When the latest request was sent that a server has answered.
    proven: Mono,
    /// When the last request was sent.
    sent: Mono,
    /// When the last bytes came.
    heard: Mono,
    /// When the ping was sent that has no answer yet.
    ping: Option<Mono>,
}

impl Liveness {
    /// A handshake asked for at `asked` is answered at `now`.
    pub(crate) fn new(timeout: Duration, asked: Mono, now: Mono) -> Liveness {
        Liveness { timeout, proven: asked, sent: now, heard: now, ping: None }
    }

    /// From this moment on the session may have been expired.
    pub(crate) fn lost_at(&self) -> Mono {
        self.proven + self.timeout * 3 / 4
    }

    /// From this moment on the connection is given up: the rest of the session's time is for another one.
    pub(crate) fn silent_at(&self) -> Mono {
        self.heard + self.timeout / 2
    }

    /// When to send a ping.
    pub(crate) fn ping_at(&self) -> Mono {
        match self.ping {
            Some(_) => self.silent_at(),
            // A request that goes out just now is a sign of life, too; but only its answer proves it.
            None => (self.sent + self.timeout / 5).min(self.proven + self.timeout * 2 / 5),
        }
    }

    pub(crate) fn on_sent(&mut self, now: Mono) {
        self.sent = now;
    }

    pub(crate) fn on_ping(&mut self, now: Mono) {
        self.sent = now;
        self.ping = Some(now);
    }

    /// A ping on a connection that is lost has no answer.
    pub(crate) fn on_disconnected(&mut self) {
        self.ping = None;
    }

    pub(crate) fn on_heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// A request sent at `asked` is answered.
    pub(crate) fn on_answer(&mut self, asked: Mono) {
        self.proven = self.proven.max(asked);
    }

    /// False if no ping was sent.
    pub(crate) fn on_pong(&mut self) -> bool {
        match self.ping.take() {
            Some(asked) => {
                self.on_answer(asked);
                true
            }
            None => false,
        }
    }
}
