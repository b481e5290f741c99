//! Numbers the frames, and holds the plan of cuts and holds. It has no sockets.

use super::gate::Gate;
use ostler_proto::op::Op;
use std::{collections::HashMap, fmt};

/// A point in an exchange at which a proxy can cut the connection or hold a frame. Numbers begin at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CutPoint {
    /// All requests before this one are answered. This one does not reach the server.
    BeforeRequest(u64),
    /// The server has done this request and replied. The reply does not reach the client.
    BeforeReply(u64),
    /// The reply to this request has reached the client, and nothing after it.
    AfterReply(u64),
    /// The server has sent this watch event. The event does not reach the client.
    BeforeEvent(u64),
}

impl CutPoint {
    /// Every point of an exchange with this number of requests and events.
    pub fn all(requests: u64, events: u64) -> impl Iterator<Item = CutPoint> {
        let of_requests = (1..=requests)
            .flat_map(|n| [CutPoint::BeforeRequest(n), CutPoint::BeforeReply(n), CutPoint::AfterReply(n)]);
        of_requests.chain((1..=events).map(CutPoint::BeforeEvent))
    }
}

impl fmt::Display for CutPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CutPoint::BeforeRequest(n) => write!(f, "before request {n}"),
            CutPoint::BeforeReply(n) => write!(f, "before the reply to request {n}"),
            CutPoint::AfterReply(n) => write!(f, "after the reply to request {n}"),
            CutPoint::BeforeEvent(n) => write!(f, "before watch event {n}"),
        }
    }
}

/// A numbered frame that has passed through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeenFrame {
    /// The first frame of a connection.
    Handshake {
        /// Its number among the requests.
        number: u64,
        /// The index of the server among the proxy's servers, from 0 on.
        server: usize,
    },
    /// A request.
    Request {
        /// Its number among the requests.
        number: u64,
        /// The operation; `None` for an unknown code.
        op: Option<Op>,
    },
    /// A watch event.
    Event {
        /// Its number among the events.
        number: u64,
    },
}

/// The planned action at a point.
#[derive(Debug, Clone)]
pub(super) enum Mark {
    Cut,
    Hold(Gate),
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    requests: u64,
    events: u64,
    marks: HashMap<CutPoint, Mark>,
    seen: Vec<SeenFrame>,
    cuts: Vec<CutPoint>,
}

impl Plan {
    pub(super) fn cut_at(&mut self, point: CutPoint) {
        self.marks.insert(point, Mark::Cut);
    }

    pub(super) fn hold_at(&mut self, point: CutPoint, gate: Gate) {
        self.marks.insert(point, Mark::Hold(gate));
    }

    pub(super) fn reset(&mut self) {
        *self = Plan::default();
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn seen(&self) -> &[SeenFrame] {
        &self.seen
    }

    pub(super) fn cuts(&self) -> &[CutPoint] {
        &self.cuts
    }

    /// Numbers a handshake.
    pub(super) fn handshake(&mut self, server: usize) -> u64 {
        self.requests += 1;
        self.seen.push(SeenFrame::Handshake { number: self.requests, server });
        self.requests
    }

    /// Numbers a request.
    pub(super) fn request(&mut self, code: i32) -> u64 {
        self.requests += 1;
        self.seen.push(SeenFrame::Request { number: self.requests, op: Op::from_code(code) });
        self.requests
    }

    /// Numbers an event.
    pub(super) fn event(&mut self) -> u64 {
        self.events += 1;
        self.seen.push(SeenFrame::Event { number: self.events });
        self.events
    }

    /// Takes the planned action at this point, and records a cut.
    pub(super) fn at(&mut self, point: CutPoint) -> Option<Mark> {
        let mark = self.marks.remove(&point)?;
        if matches!(mark, Mark::Cut) {
            self.cuts.push(point);
        }
        Some(mark)
    }

    /// Takes the gate of a planned hold at this point.
    pub(super) fn held_at(&mut self, point: CutPoint) -> Option<Gate> {
        match self.marks.remove(&point)? {
            Mark::Hold(gate) => Some(gate),
            cut @ Mark::Cut => {
                self.marks.insert(point, cut);
                None
            }
        }
    }

    /// The reply to this request never comes. Drops the gates of planned holds there, which the test notices.
    pub(super) fn unanswered_for_good(&mut self, request: u64) {
        let _ = self.held_at(CutPoint::BeforeReply(request));
        let _ = self.held_at(CutPoint::AfterReply(request));
    }

    /// Whether an action is planned at the reply to this request. Then no later request may reach the server before.
    pub(super) fn ends_with(&self, request: u64) -> bool {
        self.marks.contains_key(&CutPoint::BeforeReply(request))
            || self.marks.contains_key(&CutPoint::AfterReply(request))
    }

    /// Whether an action is planned before this request. Then all requests before it must be answered first.
    pub(super) fn begins_with(&self, request: u64) -> bool {
        self.marks.contains_key(&CutPoint::BeforeRequest(request))
    }
}
