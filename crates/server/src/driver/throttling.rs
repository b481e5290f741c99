//! The limit of requests under way, as it stands under the lock of the core.

use super::{Core, Driver};
use crate::{
    outbox::Outbox,
    throttle::requests::{Begin, NextRequest, RequestThrottleCounts},
};
use ostler_proto::{connect::ConnectRequest, id::SessionId, request::Request};
use ostler_server_core::{ClientRequest, ConnId, Input, input::Mono};

/// The result of handing a connection's requests to the core.
pub(crate) struct Taken {
    /// The requests that were taken. Fewer than all if their answers pile up, or will, or when they have taken their
    /// share of the core's time.
    pub(crate) count: usize,
    /// Why the next one was not taken, if its time was not the reason.
    pub(crate) held: Option<Held>,
}

/// Requests of one connection, in their order.
pub(crate) struct Batch<'a> {
    pub(crate) requests: Vec<ClientRequest<'a>>,
    /// When their bytes were at hand, on the monotonic clock.
    pub(crate) since_us: u64,
    pub(crate) waits: Waits,
}

/// Since when the requests of a batch have waited for others'.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// When each came; empty if none has waited.
    pub(crate) since: Vec<Mono>,
    /// The client has closed the connection.
    pub(crate) is_closed: bool,
}

/// How one request of a batch has waited.
pub(super) struct Wait {
    since: Option<Mono>,
    is_closed: bool,
}

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// It is a large read that waits until other connections' answers have gone.
    ForRoom,
    /// It waits for its turn: too many requests are under way. The outbox wakes its connection.
    ForTurn,
    /// It is stale. Its connection is to be closed.
    Dropped,
}

impl Waits {
    pub(super) fn of(&self, at: usize) -> Wait {
        Wait { since: self.since.get(at).copied(), is_closed: self.is_closed }
    }
}

impl Held {
    pub(super) fn by(begin: Begin) -> Option<Held> {
        match begin {
            Begin::CarryOut | Begin::Refuse => None,
            Begin::Wait => Some(Held::ForTurn),
            Begin::Drop => Some(Held::Dropped),
        }
    }
}

impl Core {
    pub(super) fn begin(&mut self, now: Mono, conn: ConnId, request: &Request<'_>, wait: &Wait) -> Begin {
        let Some(throttle) = &mut self.throttle else { return Begin::CarryOut };
        let waited_ms = wait.since.map_or(0, |since| now.0.saturating_sub(since.0));
        throttle.begin(
            now,
            &NextRequest {
                conn,
                waits: !matches!(request, Request::Ping | Request::CloseSession),
                waited_ms,
                session_timeout_ms: self.server.session_timeout_ms(conn),
                is_closed: wait.is_closed,
            },
        )
    }

    pub(super) fn note_answered(&mut self, count: usize) {
        if let Some(throttle) = &mut self.throttle {
            throttle.line.ended(count);
        }
    }

    /// A connection is gone, and nothing of it is answered any more.
    pub(super) fn forget_requests(&mut self, conn: ConnId, outbox: Option<&Outbox>) {
        self.new_sessions.gone(conn);
        self.leaderless.remove(&conn);
        if let Some(throttle) = &mut self.throttle {
            throttle.line.ended(outbox.map_or(0, Outbox::unanswered));
            throttle.line.gone(conn);
        }
    }

    pub(super) fn reset_throttle(&mut self) {
        if let Some(throttle) = &mut self.throttle {
            throttle.counts = RequestThrottleCounts::default();
        }
    }
}

impl Driver {
    /// Wakes the connections whose turn has come.
    pub(super) fn give_turns(&self, core: &mut Core) {
        let Core { server, throttle, new_sessions, leaderless, outboxes, .. } = core;
        let wake = |conn| outboxes.get(&conn).map(|outbox| outbox.wake());
        if !leaderless.is_empty() && server.takes_sessions() {
            for conn in std::mem::take(leaderless) {
                wake(conn);
            }
        }
        if new_sessions.has_waiting() {
            let now = self.clock.mono();
            while new_sessions.next_turn(now).map(wake).is_some() {}
        }
        if let Some(throttle) = throttle {
            let now = self.clock.mono();
            while throttle.line.next_turn(now).map(wake).is_some() {}
        }
    }

    /// Carries out a handshake. Returns false if it has to wait: for its turn, as many others open sessions, or, if it
    /// `may_wait`, until this server has a leader. The outbox wakes its connection.
    ///
    /// A server without a leader is back within milliseconds, and a client that it refuses comes back within a second or
    /// later. If very many do, they keep the machine from electing.
    pub(crate) fn connect(
        &self,
        conn: ConnId,
        request: ConnectRequest<'_>,
        (may_wait, chance): (bool, u64),
    ) -> bool {
        let core = &mut *self.lock();
        let now = self.clock.now();
        if may_wait && !core.server.takes_sessions() {
            core.leaderless.insert(conn);
            return false;
        }
        if request.session == SessionId::NONE && !core.new_sessions.take_opening(now.mono, conn) {
            self.give_turns(core);
            return false;
        }
        core.server.step(now, Input::Connect { conn, request, chance }, &mut core.effects);
        self.route(core);
        self.mind_timer(core);
        true
    }

    /// Zeros if requests are not limited.
    pub(crate) fn request_throttle_counts(&self) -> RequestThrottleCounts {
        self.lock().throttle.as_ref().map(|throttle| throttle.counts).unwrap_or_default()
    }
}
