//! Which frame is which, and what is to become of it. No socket here.

use super::gate::Gate;
use ostler_proto::op::Op;
use std::{collections::HashMap, fmt};

/// A place in an exchange at which the connection can break. Numbers begin at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CutPoint {
    /// All requests before this one are answered; it never reaches the server.
    BeforeRequest(u64),
    /// The server has done this request and answered it; the client does not hear of it.
    BeforeReply(u64),
    /// The client has heard the answer to this request, and nothing after it.
    AfterReply(u64),
    /// The server has sent this watch event, and the client does not hear of it.
    BeforeEvent(u64),
}

impl CutPoint {
    /// Every place of an exchange with this number of requests and events.
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

/// A frame that has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The first frame of a connection.
    Handshake {
        /// Its number among the requests.
        number: u64,
        /// To which of the proxy's servers, the first being 0.
        server: usize,
    },
    /// A request.
    Request {
        /// Its number among the requests.
        number: u64,
        /// What it asks for; `None` for a code that nobody knows.
        op: Option<Op>,
    },
    /// A watch event.
    Event {
        /// Its number among the events.
        number: u64,
    },
}

/// What is to happen at a point.
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
    seen: Vec<Seen>,
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

    pub(super) fn seen(&self) -> &[Seen] {
        &self.seen
    }

    pub(super) fn cuts(&self) -> &[CutPoint] {
        &self.cuts
    }

    /// Numbers a handshake.
    pub(super) fn handshake(&mut self, server: usize) -> u64 {
        self.requests += 1;
        self.seen.push(Seen::Handshake { number: self.requests, server });
        self.requests
    }

    /// Numbers a request.
    pub(super) fn request(&mut self, code: i32) -> u64 {
        self.requests += 1;
        self.seen.push(Seen::Request { number: self.requests, op: Op::from_code(code) });
        self.requests
    }

    /// Numbers an event.
    pub(super) fn event(&mut self) -> u64 {
        self.events += 1;
        self.seen.push(Seen::Event { number: self.events });
        self.events
    }

    /// What is to happen here; a mark is used up.
    pub(super) fn at(&mut self, point: CutPoint) -> Option<Mark> {
        let mark = self.marks.remove(&point)?;
        if matches!(mark, Mark::Cut) {
            self.cuts.push(point);
        }
        Some(mark)
    }

    /// Who holds the frame that comes here; it is used up.
    pub(super) fn held_at(&mut self, point: CutPoint) -> Option<Gate> {
        match self.marks.remove(&point)? {
            Mark::Hold(gate) => Some(gate),
            cut @ Mark::Cut => {
                self.marks.insert(point, cut);
                None
            }
        }
    }

    /// The reply to this request never comes: who would hold it hears of that.
    pub(super) fn unanswered_for_good(&mut self, request: u64) {
        let _ = self.held_at(CutPoint::BeforeReply(request));
        let _ = self.held_at(CutPoint::AfterReply(request));
    }

    /// Whether something is to happen once this request is answered: then it must be the last one at the server.
    pub(super) fn ends_with(&self, request: u64) -> bool {
        self.marks.contains_key(&CutPoint::BeforeReply(request))
            || self.marks.contains_key(&CutPoint::AfterReply(request))
    }

    /// Whether something is to happen instead of this request: then all before it must be answered.
    pub(super) fn begins_with(&self, request: u64) -> bool {
        self.marks.contains_key(&CutPoint::BeforeRequest(request))
    }
}
