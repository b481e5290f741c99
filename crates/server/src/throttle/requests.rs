//! The limit of requests under way (`request_throttle_*`): with too many, connections wait in a line before their next
//! request is carried out.

use super::line::Line;
use crate::config::RequestThrottleSettings;
use ostler_server_core::{ConnId, input::Mono};

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

/// The fate of a request that is the next one of its connection.
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

/// The requests under way, and the line of the connections whose next request has to wait.
#[derive(Debug)]
pub(crate) struct RequestThrottle {
    settings: RequestThrottleSettings,
    pub(crate) line: Line,
    pub(crate) counts: RequestThrottleCounts,
}

impl RequestThrottle {
    pub(crate) fn new(settings: RequestThrottleSettings) -> RequestThrottle {
        let line = Line::new(settings.max_requests as usize, settings.stall_ms.into());
        RequestThrottle { settings, line, counts: RequestThrottleCounts::default() }
    }

    /// Begins a request, unless it has to wait or is stale.
    pub(crate) fn begin(&mut self, now: Mono, next: &NextRequest) -> Begin {
        if !next.waits {
            self.line.pass();
            return Begin::CarryOut;
        }
        let is_stale = self.is_stale(next);
        if is_stale && self.settings.drop_stale {
            self.counts.stale_dropped += 1;
            return Begin::Drop;
        }
        if !self.line.take_turn_of(now, next.conn) {
            self.counts.waits += 1;
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
        assert_eq!((dropping.counts.stale_dropped, dropping.line.under_way()), (1, 0));
        let mut counting = RequestThrottle::new(RequestThrottleSettings { drop_stale: false, ..settings(1) });
        assert_eq!(counting.begin(Mono(0), &next(0, true)), Begin::CarryOut);
        assert_eq!((counting.counts.stale, counting.line.under_way()), (1, 1));
    }

    #[test]
    fn a_ping_passes_a_full_server() {
        let mut throttle = RequestThrottle::new(settings(1));
        assert_eq!(throttle.begin(Mono(0), &next(0, false)), Begin::CarryOut);
        assert_eq!(throttle.begin(Mono(0), &next(0, false)), Begin::Wait);
        assert_eq!(throttle.counts.waits, 1);
        assert_eq!(throttle.begin(Mono(0), &NextRequest { waits: false, ..next(0, false) }), Begin::CarryOut);
        throttle.line.ended(1);
        assert_eq!(throttle.line.next_turn(Mono(0)), None, "the ping is not answered");
    }
}
