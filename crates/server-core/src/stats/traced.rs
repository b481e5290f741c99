//! Picks the requests that are traced, and describes them.

use super::slow_requests::SlowRequest;
use crate::input::ConnId;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use ostler_proto::id::SessionId;

/// Picks requests, and keeps what is known of them until the shell takes it.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub(crate) tracing: Tracing,
    /// Each with the connection that gets its answer, at the server that the client is connected to.
    done: Vec<(Option<ConnId>, TracedRequest)>,
}

impl Traces {
    pub(crate) fn new(one_in: Option<NonZeroU64>) -> Traces {
        Traces { tracing: Tracing::new(one_in), done: Vec::new() }
    }

    pub(crate) fn add(&mut self, conn: Option<ConnId>, traced: TracedRequest) {
        self.done.push((conn, traced));
    }

    pub(crate) fn take(&mut self) -> Vec<(Option<ConnId>, TracedRequest)> {
        core::mem::take(&mut self.done)
    }
}

/// Picks requests by their session and number, so that every server that works on a request picks the same ones: nothing
/// about it has to be sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tracing {
    one_in: Option<NonZeroU64>,
}

impl Tracing {
    /// One request in this number is traced; none without one.
    pub(crate) fn new(one_in: Option<NonZeroU64>) -> Tracing {
        Tracing { one_in }
    }

    /// Whether anything is traced.
    pub(crate) fn is_on(self) -> bool {
        self.one_in.is_some()
    }

    /// Whether this request is traced. Pings and the like have negative numbers, and are not.
    pub(crate) fn picks(self, session: SessionId, xid: i32) -> bool {
        self.one_in.is_some_and(|one_in| xid > 0 && mix(session, xid) % one_in == 0)
    }
}

/// The finalizer of splitmix64.
fn mix(session: SessionId, xid: i32) -> u64 {
    let mut mixed = (session.0 as u64) ^ (u64::from(xid as u32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A server's part in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedPart {
    /// The server that the client is connected to.
    Client,
    /// The leader, for a client of another server.
    Leader,
}

/// A traced request, as one server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRequest {
    /// The server's part.
    pub part: TracedPart,
    /// The request. At the leader, for a client of another server, its address is not known.
    pub request: SlowRequest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_one_in_the_number_is_picked() {
        let one_in = |count| Tracing::new(NonZeroU64::new(count));
        let picked = |tracing: Tracing| {
            (1..=100_000).filter(|xid| tracing.picks(SessionId(0x1234_5678), *xid)).count()
        };
        assert_eq!(picked(one_in(1)), 100_000);
        assert!((900..1100).contains(&picked(one_in(100))), "{}", picked(one_in(100)));
        assert_eq!(picked(one_in(0)), 0);
        assert!(!one_in(1).picks(SessionId(1), -2) && !one_in(0).is_on());
    }
}
