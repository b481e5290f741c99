//! The slow-request log: the last requests that took longer than a threshold, with their stages.

use super::stages::Stages;
use crate::input::{ConnId, Mono};
use alloc::{collections::VecDeque, string::String, vec::Vec};
use core::net::SocketAddr;
use ostler_proto::id::{SessionId, Zxid};

/// The most requests that are kept.
const REQUESTS_MAX: usize = 1024;
/// The most bytes of a path that are kept.
pub(crate) const PATH_MAX: usize = 512;
/// The most log lines in [`LINES_MS`].
const LINES_MAX: u32 = 20;
const LINES_MS: u64 = 60_000;
/// The most requests in an answer.
pub const ANSWER_MAX: usize = 1000;

/// A request that took long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SlowRequest {
    /// The number of the record; each is greater than the one before.
    pub number: u64,
    /// When the request was answered, in ms since 1970.
    pub answered_ms: i64,
    /// The client's session.
    #[cfg_attr(feature = "serde", serde(with = "crate::sessions::ends::hex"))]
    pub session: SessionId,
    /// The client's address.
    pub address: SocketAddr,
    /// The client's number of the request.
    pub xid: i32,
    /// The operation, as `create` or `getData`; a number if it has no name.
    pub operation: String,
    /// The path, cut after 512 bytes. `None` for a request without one path.
    pub path: Option<String>,
    /// The transaction of a write.
    pub zxid: Option<u64>,
    /// From the arrival of its bytes to its answer, in microseconds. It is exact to a millisecond if a stage was not
    /// measured.
    pub total_us: u64,
    /// The stages.
    pub stages: Stages,
}

/// The parts of a slow request that its place in the code knows.
pub(crate) struct SlowPart<'a> {
    pub(crate) xid: i32,
    pub(crate) code: i32,
    pub(crate) path: Option<&'a str>,
    pub(crate) zxid: Option<Zxid>,
    pub(crate) total_us: u64,
    pub(crate) stages: Stages,
}

/// Whether a slow request has a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlowLine {
    /// It has one.
    Line,
    /// It has the last one for a while.
    LastLine,
    /// It has none, as there were too many.
    None,
}

#[derive(Debug)]
struct KeptRequest {
    request: SlowRequest,
    /// When it was answered, on the monotonic clock.
    answered_us: u64,
}

/// The last slow requests, the oldest first.
#[derive(Debug)]
pub(crate) struct SlowRequests {
    /// Requests from this time on are slow, ms; `u64::MAX` if none are.
    threshold_ms: u64,
    requests: VecDeque<KeptRequest>,
    noted: u64,
    /// Connections whose next answers are those of slow requests, until the shell takes them.
    replies: Vec<(ConnId, u64)>,
    lines_began: Mono,
    lines: u32,
}

impl SlowRequests {
    /// Requests of `threshold_ms` and more are kept; none without a threshold.
    pub(crate) fn new(threshold_ms: Option<u64>) -> SlowRequests {
        SlowRequests {
            threshold_ms: threshold_ms.unwrap_or(u64::MAX),
            requests: VecDeque::new(),
            noted: 0,
            replies: Vec::new(),
            lines_began: Mono(0),
            lines: 0,
        }
    }

    pub(crate) fn is_slow(&self, ms: u64) -> bool {
        ms >= self.threshold_ms
    }

    /// Adds a request that is answered now.
    pub(crate) fn add(&mut self, mut request: SlowRequest, conn: ConnId, now_us: u64) {
        self.noted += 1;
        request.number = self.noted;
        if self.requests.len() == REQUESTS_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back(KeptRequest { request, answered_us: now_us });
        if self.replies.len() < REQUESTS_MAX {
            self.replies.push((conn, self.noted));
        }
    }

    /// Takes the connections whose next answers are those of slow requests.
    pub(crate) fn take_replies(&mut self) -> Vec<(ConnId, u64)> {
        core::mem::take(&mut self.replies)
    }

    /// The answer to a request has been written out.
    pub(crate) fn written(&mut self, number: u64, now_us: u64) {
        let at = number.checked_sub(self.first()).and_then(|at| usize::try_from(at).ok());
        if let Some(kept) = at.and_then(|at| self.requests.get_mut(at)) {
            kept.request.stages.write_us = Some(now_us.saturating_sub(kept.answered_us));
        }
    }

    /// The number of the first request that is kept, or of the next one.
    fn first(&self) -> u64 {
        self.requests.front().map_or(self.noted + 1, |first| first.request.number)
    }

    /// Takes a log line, if there is one left.
    pub(crate) fn take_line(&mut self, now: Mono) -> SlowLine {
        if now.0.saturating_sub(self.lines_began.0) >= LINES_MS {
            (self.lines_began, self.lines) = (now, 0);
        }
        self.lines = self.lines.saturating_add(1);
        match self.lines {
            ..LINES_MAX => SlowLine::Line,
            LINES_MAX => SlowLine::LastLine,
            _ => SlowLine::None,
        }
    }

    /// At most `limit` requests after the one with the number `after`, and the value of `after` for the rest.
    pub(crate) fn select(&self, after: u64, limit: usize) -> (Vec<SlowRequest>, Option<u64>) {
        let limit = limit.clamp(1, ANSWER_MAX);
        let skipped = after.saturating_add(1).saturating_sub(self.first());
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let mut rest = self.requests.iter().skip(skipped).map(|kept| &kept.request);
        let found: Vec<SlowRequest> = rest.by_ref().take(limit).cloned().collect();
        let next = rest.next().and_then(|_| found.last()).map(|last| last.number);
        (found, next)
    }

    pub(crate) fn threshold_ms(&self) -> Option<u64> {
        (self.threshold_ms != u64::MAX).then_some(self.threshold_ms)
    }

    pub(crate) fn count(&self) -> u64 {
        self.noted
    }
}

/// A server's slow requests, as `slow_requests` gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SlowReport {
    /// Requests from this time on are slow, ms. `None` if none are recorded.
    pub threshold_ms: Option<u64>,
    /// All slow requests since the start, also those that are not kept any more.
    pub count: u64,
    /// The requests, the oldest first.
    pub requests: Vec<SlowRequest>,
    /// The value of `after` that asks for the rest; `None` if this is all.
    pub next: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> SlowRequest {
        SlowRequest {
            number: 0,
            answered_ms: 0,
            session: SessionId(1),
            address: ([127, 0, 0, 1], 1).into(),
            xid: 1,
            operation: "getData".into(),
            path: None,
            zxid: None,
            total_us: 0,
            stages: Stages::default(),
        }
    }

    #[test]
    fn the_ring_is_bounded_and_paged() {
        let mut slow = SlowRequests::new(Some(100));
        assert!(slow.is_slow(100) && !slow.is_slow(99) && !SlowRequests::new(None).is_slow(u64::MAX - 1));
        for _ in 0..REQUESTS_MAX + 10 {
            slow.add(request(), ConnId(1), 100);
        }
        let (mut all, mut next) = slow.select(0, 300);
        while let Some(after) = next {
            let (page, more) = slow.select(after, 300);
            all.extend(page);
            next = more;
        }
        let numbers: Vec<u64> = all.iter().map(|one| one.number).collect();
        assert_eq!(numbers, (11..=REQUESTS_MAX as u64 + 10).collect::<Vec<_>>());
        assert_eq!(slow.take_replies().len(), REQUESTS_MAX);
        assert!(slow.take_replies().is_empty());
        slow.written(11, 107);
        slow.written(1, 107);
        assert_eq!(slow.select(0, 1).0[0].stages.write_us, Some(7));
        assert_eq!(slow.select(u64::MAX, 1), (Vec::new(), None));
    }

    #[test]
    fn a_flood_has_few_lines() {
        let mut slow = SlowRequests::new(Some(0));
        let lines = |slow: &mut SlowRequests, now| {
            (0..1000).filter(|_| slow.take_line(now) != SlowLine::None).count()
        };
        assert_eq!(lines(&mut slow, Mono(60_000)), 20);
        assert_eq!(lines(&mut slow, Mono(60_001)), 0);
        assert_eq!(lines(&mut slow, Mono(120_000)), 20);
    }
}
