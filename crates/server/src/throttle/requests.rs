//! The limit of requests under way (`request_throttle_*`): with too many, connections wait in a line before their next
//! request is carried out.

use crate::config::RequestThrottleSettings;
use ostler_server_core::{ConnId, input::Mono};
use std::collections::{HashSet, VecDeque};

/// Counts since the start or `srst`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestThrottleCounts {
    /// How often a connection had to wait, or to wait on.
    pub(crate) waits: u64,
    /// Requests that were refused.
    pub(crate) refused: u64,
    /// Requests that were stale and carried out nevertheless.
    pub(crate) stale: u64,
    /// Requests that were stale and dropped.
    pub(crate) stale_dropped: u64,
}

/// What happens to a request that is the next one of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    CarryOut,
    /// It is answered with an error.
    Refuse,
    /// Its connection has a place in the line.
    Wait,
    /// Its connection is to be closed.
    Drop,
}

/// A request that is the next one of its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextRequest {
    pub(crate) conn: ConnId,
    /// Pings and ends of sessions do not wait.
    pub(crate) waits: bool,
    /// The time since it came; 0 if it has not waited.
    pub(crate) waited_ms: u64,
    pub(crate) session_timeout_ms: u64,
    /// The client has closed the connection.
    pub(crate) is_closed: bool,
}

/// The line of the connections whose next request has to wait.
#[derive(Debug)]
pub(crate) struct RequestThrottle {
    settings: RequestThrottleSettings,
    under_way: usize,
    line: VecDeque<ConnId>,
    /// Those in `line`.
    in_line: HashSet<ConnId>,
    /// Connections whose turn it is, and until when their place is kept for them.
    turns: VecDeque<(ConnId, Mono)>,
    pub(crate) counts: RequestThrottleCounts,
}

impl RequestThrottle {
    pub(crate) fn new(settings: RequestThrottleSettings) -> RequestThrottle {
        RequestThrottle {
            settings,
            under_way: 0,
            line: VecDeque::new(),
            in_line: HashSet::new(),
            turns: VecDeque::new(),
            counts: RequestThrottleCounts::default(),
        }
    }

    /// Begins a request, unless it has to wait or is stale.
    pub(crate) fn begin(&mut self, now: Mono, next: &NextRequest) -> Begin {
        if !next.waits {
            self.under_way += 1;
            return Begin::CarryOut;
        }
        let is_stale = self.is_stale(next);
        if is_stale && self.settings.drop_stale {
            self.counts.stale_dropped += 1;
            return Begin::Drop;
        }
        if !self.has_turn(now, next.conn) {
            return Begin::Wait;
        }
        self.counts.stale += u64::from(is_stale);
        if self.settings.refused_after_ms.is_some_and(|limit| next.waited_ms > u64::from(limit)) {
            self.counts.refused += 1;
            return Begin::Refuse;
        }
        Begin::CarryOut
    }

    fn is_stale(&self, next: &NextRequest) -> bool {
        let settings = &self.settings;
        (settings.stale_connection_check && next.is_closed)
            || (settings.stale_latency_check && next.waited_ms > next.session_timeout_ms)
    }

    /// Whether a connection may begin a request now, which then counts. Otherwise it gets a place in the line.
    fn has_turn(&mut self, now: Mono, conn: ConnId) -> bool {
        self.turns.retain(|(_, until)| *until > now);
        let turn = self.turns.iter().position(|(of, _)| *of == conn);
        let is_free = self.line.is_empty() && self.has_room();
        if turn.and_then(|turn| self.turns.remove(turn)).is_some() || is_free {
            self.under_way += 1;
            return true;
        }
        self.counts.waits += 1;
        if self.in_line.insert(conn) {
            self.line.push_back(conn);
        }
        false
    }

    /// Requests are answered, or given up with their connection.
    pub(crate) fn ended(&mut self, count: usize) {
        self.under_way = self.under_way.saturating_sub(count);
    }

    /// A connection is gone.
    pub(crate) fn gone(&mut self, conn: ConnId) {
        if self.in_line.remove(&conn) {
            self.line.retain(|of| *of != conn);
        }
        self.turns.retain(|(of, _)| *of != conn);
    }

    /// The next connection whose turn it is, if there is room. Its place is kept for a while.
    pub(crate) fn next_turn(&mut self, now: Mono) -> Option<ConnId> {
        if self.line.is_empty() || !self.has_room() {
            return None;
        }
        let conn = self.line.pop_front()?;
        self.in_line.remove(&conn);
        self.turns.push_back((conn, now.after(self.settings.stall_ms.max(1).into())));
        Some(conn)
    }

    fn has_room(&self) -> bool {
        self.under_way + self.turns.len() < self.settings.max_requests as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(max_requests: u32) -> RequestThrottleSettings {
        RequestThrottleSettings {
            max_requests,
            stall_ms: 100,
            drop_stale: true,
            stale_connection_check: true,
            stale_latency_check: false,
            refused_after_ms: None,
        }
    }

    #[test]
    fn connections_get_their_turns_in_the_order_in_which_they_came() {
        let mut throttle = RequestThrottle::new(settings(2));
        assert!(throttle.has_turn(Mono(0), ConnId(1)) && throttle.has_turn(Mono(0), ConnId(2)));
        for conn in 3..6 {
            assert!(!throttle.has_turn(Mono(0), ConnId(conn)));
        }
        assert!(!throttle.has_turn(Mono(0), ConnId(3)), "it keeps its place");
        assert_eq!(throttle.next_turn(Mono(1)), None);
        throttle.ended(1);
        assert_eq!(throttle.next_turn(Mono(1)), Some(ConnId(3)));
        assert_eq!(throttle.next_turn(Mono(1)), None, "its place is kept");
        assert!(!throttle.has_turn(Mono(2), ConnId(1)), "others stand in line before it");
        assert!(throttle.has_turn(Mono(2), ConnId(3)));
        throttle.ended(2);
        assert_eq!(throttle.next_turn(Mono(3)), Some(ConnId(4)));
        assert_eq!(throttle.next_turn(Mono(3)), Some(ConnId(5)));
        assert_eq!(throttle.counts.waits, 5);
    }

    #[test]
    fn a_turn_that_is_not_taken_goes_to_others() {
        let mut throttle = RequestThrottle::new(settings(1));
        assert!(throttle.has_turn(Mono(0), ConnId(1)));
        assert!(!throttle.has_turn(Mono(0), ConnId(2)) && !throttle.has_turn(Mono(0), ConnId(3)));
        throttle.ended(1);
        assert_eq!(throttle.next_turn(Mono(0)), Some(ConnId(2)));
        assert!(!throttle.has_turn(Mono(99), ConnId(3)));
        assert!(!throttle.has_turn(Mono(100), ConnId(3)), "it is in line");
        assert_eq!(throttle.next_turn(Mono(100)), Some(ConnId(3)));
        assert!(throttle.has_turn(Mono(101), ConnId(3)));
    }

    #[test]
    fn connections_that_are_gone_lose_their_places() {
        let mut throttle = RequestThrottle::new(settings(1));
        assert!(throttle.has_turn(Mono(0), ConnId(1)));
        for conn in 2..5 {
            assert!(!throttle.has_turn(Mono(0), ConnId(conn)));
        }
        throttle.gone(ConnId(2));
        throttle.ended(1);
        assert_eq!(throttle.next_turn(Mono(0)), Some(ConnId(3)));
        throttle.gone(ConnId(3));
        assert_eq!(throttle.next_turn(Mono(0)), Some(ConnId(4)));
        assert!(throttle.line.is_empty() && throttle.in_line.is_empty());
    }

    fn next(waited_ms: u64, is_closed: bool) -> NextRequest {
        NextRequest { conn: ConnId(1), waits: true, waited_ms, session_timeout_ms: 1000, is_closed }
    }

    #[test]
    fn requests_that_have_waited_too_long_are_refused_or_dropped() {
        let begin = |settings, next: NextRequest| RequestThrottle::new(settings).begin(Mono(0), &next);
        let refusing = RequestThrottleSettings { refused_after_ms: Some(50), ..settings(1) };
        assert_eq!(begin(settings(1), next(u64::MAX, false)), Begin::CarryOut);
        assert_eq!(begin(refusing, next(50, false)), Begin::CarryOut);
        assert_eq!(begin(refusing, next(51, false)), Begin::Refuse);
        assert_eq!(begin(refusing, NextRequest { waits: false, ..next(51, true) }), Begin::CarryOut);
        let checking = RequestThrottleSettings { stale_latency_check: true, ..refusing };
        assert_eq!(begin(checking, next(1001, false)), Begin::Drop);
    }

    #[test]
    fn requests_of_connections_that_their_clients_closed_are_dropped_or_counted() {
        let mut dropping = RequestThrottle::new(settings(1));
        assert_eq!(dropping.begin(Mono(0), &next(0, true)), Begin::Drop);
        assert_eq!((dropping.counts.stale_dropped, dropping.under_way), (1, 0));
        let mut counting = RequestThrottle::new(RequestThrottleSettings { drop_stale: false, ..settings(1) });
        assert_eq!(counting.begin(Mono(0), &next(0, true)), Begin::CarryOut);
        assert_eq!((counting.counts.stale, counting.under_way), (1, 1));
    }

    #[test]
    fn a_ping_passes_a_full_server() {
        let mut throttle = RequestThrottle::new(settings(1));
        assert_eq!(throttle.begin(Mono(0), &next(0, false)), Begin::CarryOut);
        assert_eq!(throttle.begin(Mono(0), &next(0, false)), Begin::Wait);
        assert_eq!(throttle.begin(Mono(0), &NextRequest { waits: false, ..next(0, false) }), Begin::CarryOut);
        throttle.ended(1);
        assert_eq!(throttle.next_turn(Mono(0)), None, "the ping is not answered");
    }
}
