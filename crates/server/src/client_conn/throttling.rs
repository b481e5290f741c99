//! A connection under the limits that hold for all connections together: of requests under way, and of the bytes of large
//! requests.

use super::ClientConn;
use crate::{
    driver::{Driver, Waits},
    throttle::large_requests::LargeOfConnection,
};
use ostler_server_core::input::Mono;
use std::{collections::VecDeque, time::Duration};

/// The memory of a connection for the limits.
pub(super) struct ConnThrottle {
    large: Option<LargeOfConnection>,
    /// Milliseconds after which a request that waits for its turn looks again; `None` if requests are not limited.
    stall_ms: Option<u32>,
    /// The next request waits for its turn.
    waits: bool,
    /// When the bytes that wait came: up to where, counted from the first one that waits, and when. Empty if no request
    /// has waited.
    came: VecDeque<(usize, Mono)>,
}

impl ConnThrottle {
    /// `None` if no limit is set.
    pub(super) fn of(driver: &Driver) -> Option<Box<ConnThrottle>> {
        let large = driver.throttles.large_requests.clone().map(LargeOfConnection::new);
        let stall_ms = driver.throttles.stall_ms;
        (large.is_some() || stall_ms.is_some())
            .then(|| Box::new(ConnThrottle { large, stall_ms, waits: false, came: VecDeque::new() }))
    }

    /// More bytes wait: up to `end` from the first.
    fn note(&mut self, end: usize, now: Mono) {
        match self.came.back_mut() {
            Some((last, _)) if *last >= end => {}
            Some((last, at)) if *at == now => *last = end,
            _ => self.came.push_back((end, now)),
        }
    }

    /// The first `used` bytes do not wait any more.
    fn forget(&mut self, used: usize) {
        while self.came.pop_front_if(|(end, _)| *end <= used).is_some() {}
        self.came.iter_mut().for_each(|(end, _)| *end -= used);
    }

    fn since(&self, offset: usize) -> Option<Mono> {
        let place = self.came.partition_point(|(end, _)| *end <= offset);
        self.came.get(place).map(|(_, at)| *at)
    }
}

impl ClientConn {
    /// The next request waits for others.
    pub(super) fn is_held(&self) -> bool {
        self.waiter.is_some() || self.waits_to_open || self.throttle.as_ref().is_some_and(|of| of.waits)
    }

    /// How long a request that waits for its turn waits until it looks again.
    pub(super) fn stall(&self) -> Option<Duration> {
        let of = self.throttle.as_ref().filter(|of| of.waits)?;
        of.stall_ms.map(|ms| Duration::from_millis(ms.into()))
    }

    /// The request or handshake that waits for its turn is tried again.
    pub(super) fn try_turn(&mut self) {
        self.waits_to_open = false;
        if let Some(of) = &mut self.throttle {
            of.waits = false;
        }
    }

    /// The next request waits for its turn.
    pub(super) fn wait_for_turn(&mut self) {
        if let Some(of) = &mut self.throttle {
            of.waits = true;
        }
    }

    /// More bytes wait in `partial`.
    pub(super) fn note_waiting(&mut self) {
        let end = self.partial.len();
        if let Some(of) = &mut self.throttle
            && of.stall_ms.is_some()
            && end > 0
            && (of.waits || !of.came.is_empty())
        {
            of.note(end, self.driver.clock.mono());
        }
    }

    /// The first bytes of `partial` are used.
    pub(super) fn note_used(&mut self, used: usize) {
        if let Some(of) = &mut self.throttle {
            of.forget(used);
        }
    }

    /// Since when the requests wait that begin at these places of `partial`.
    pub(super) fn waits(&self, starts: impl Iterator<Item = usize>) -> Waits {
        let is_closed = self.over.is_some();
        match self.throttle.as_ref().filter(|of| !of.came.is_empty()) {
            Some(of) => Waits { since: starts.map_while(|start| of.since(start)).collect(), is_closed },
            None => Waits { since: Vec::new(), is_closed },
        }
    }

    /// Whether a request of this size may come, `ahead` others before it.
    pub(super) fn admits_size(&mut self, ahead: usize, size: usize) -> bool {
        let large = self.throttle.as_mut().and_then(|of| of.large.as_mut());
        large.is_none_or(|large| large.admits(ahead, size))
    }

    pub(super) fn note_handed_over(&mut self, count: usize) {
        if let Some(large) = self.throttle.as_mut().and_then(|of| of.large.as_mut()) {
            large.handed_over(count, self.outbox.unanswered());
        }
    }

    pub(super) fn free_answered(&mut self) {
        if let Some(large) = self.throttle.as_mut().and_then(|of| of.large.as_mut()) {
            large.answered(self.outbox.unanswered());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_that_waits_has_the_time_when_it_came() {
        let mut of = ConnThrottle { large: None, stall_ms: Some(1), waits: true, came: VecDeque::new() };
        assert_eq!(of.since(0), None);
        of.note(10, Mono(5));
        of.note(20, Mono(5));
        of.note(30, Mono(7));
        assert_eq!(
            [of.since(0), of.since(19), of.since(20), of.since(30)],
            [Some(Mono(5)), Some(Mono(5)), Some(Mono(7)), None]
        );
        of.forget(15);
        assert_eq!([of.since(4), of.since(5), of.since(15)], [Some(Mono(5)), Some(Mono(7)), None]);
        of.forget(15);
        assert!(of.came.is_empty());
    }
}
