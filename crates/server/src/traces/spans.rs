//! Makes spans of a traced request: one for the request, and below it one for each stage.
//!
//! The ids are made of the session and the number of the request. So the spans of a follower and of the leader that the
//! follower has forwarded the request to belong to one trace, although nothing about it went over the wire.

use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use ostler_proto::id::{ServerId, SessionId};
use ostler_server_core::stats::{
    slow_requests::SlowRequest,
    traced::{TracedPart, TracedRequest},
};
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

/// The ids of a request's spans.
struct Ids {
    trace: TraceId,
    session: SessionId,
    xid: i32,
}

impl Ids {
    fn of(request: &SlowRequest) -> Ids {
        let hash = hash(request.session, request.xid, "trace");
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Ids { trace: TraceId::from_bytes(id), session: request.session, xid: request.xid }
    }

    /// The id of a span. The span of the request at the client's server is the parent of the leader's.
    fn span(&self, name: &str) -> SpanId {
        let mut id = [0; 8];
        id.copy_from_slice(&hash(self.session, self.xid, name)[..8]);
        SpanId::from_bytes(id)
    }
}

fn hash(session: SessionId, xid: i32, name: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(session.0.to_be_bytes());
    hash.update(xid.to_be_bytes());
    hash.update(name.as_bytes());
    hash.finalize().into()
}

/// The spans of a request at one server.
pub(super) fn spans(traced: &TracedRequest, server: ServerId) -> Vec<SpanData> {
    let request = &traced.request;
    let ids = Ids::of(request);
    let (name, parent) = match traced.part {
        TracedPart::Client => ("client", SpanId::INVALID),
        TracedPart::Leader => ("leader", ids.span("client")),
    };
    let answered = SystemTime::UNIX_EPOCH + Duration::from_millis(request.answered_ms.max(0) as u64);
    let began = answered - Duration::from_micros(request.total_us);
    let written = answered + Duration::from_micros(request.stages.write_us.unwrap_or(0));
    let kind = if traced.part == TracedPart::Client { SpanKind::Server } else { SpanKind::Internal };
    let own = ids.span(name);
    let mut all = vec![SpanData {
        span_kind: kind,
        attributes: attributes(traced, server),
        parent_span_is_remote: traced.part == TracedPart::Leader,
        ..span(&ids, (own, parent), request.operation.clone().into(), (began, written))
    }];
    for (stage, from, to) in stages(request, began, answered) {
        let id = ids.span(&format!("{name} {stage}"));
        all.push(span(&ids, (id, own), stage.into(), (from, to)));
    }
    all
}

/// The stages that were measured, with their times. They follow each other, but for the quorum, which works beside the
/// own disk.
fn stages(
    request: &SlowRequest,
    began: SystemTime,
    answered: SystemTime,
) -> Vec<(&'static str, SystemTime, SystemTime)> {
    let of = request.stages;
    let mut all = Vec::new();
    let mut at = began;
    let mut follow = |name, us: Option<u64>, all: &mut Vec<_>| {
        if let Some(us) = us {
            let to = at + Duration::from_micros(us);
            all.push((name, at, to));
            at = to;
        }
        at
    };
    follow("parse", of.parse_us, &mut all);
    follow("queue", of.queue_us, &mut all);
    let proposed = follow("propose", of.propose_us, &mut all);
    if let Some(us) = of.own_disk_us {
        all.push(("own disk", proposed, proposed + Duration::from_micros(us)));
    }
    follow("quorum", of.quorum_us, &mut all);
    follow("apply", of.apply_us, &mut all);
    if let Some(us) = of.write_us {
        all.push(("write out", answered, answered + Duration::from_micros(us)));
    }
    all
}

fn attributes(traced: &TracedRequest, server: ServerId) -> Vec<KeyValue> {
    let request = &traced.request;
    let mut all = vec![
        KeyValue::new("zookeeper.session", request.session.to_string()),
        KeyValue::new("zookeeper.xid", i64::from(request.xid)),
        KeyValue::new("zookeeper.server", server.0),
    ];
    if traced.part == TracedPart::Client {
        all.push(KeyValue::new("client.address", request.address.to_string()));
    }
    if let Some(path) = &request.path {
        all.push(KeyValue::new("zookeeper.path", path.clone()));
    }
    if let Some(zxid) = request.zxid {
        all.push(KeyValue::new("zookeeper.zxid", format!("0x{zxid:x}")));
    }
    all
}

fn span(
    ids: &Ids,
    (own, parent): (SpanId, SpanId),
    name: Cow<'static, str>,
    (start_time, end_time): (SystemTime, SystemTime),
) -> SpanData {
    SpanData {
        span_context: SpanContext::new(ids.trace, own, TraceFlags::SAMPLED, false, TraceState::default()),
        parent_span_id: parent,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name,
        start_time,
        end_time,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("ostler").build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_server_core::stats::stages::Stages;

    fn traced(part: TracedPart) -> TracedRequest {
        let stages = Stages {
            queue_us: Some(10),
            propose_us: Some(20),
            own_disk_us: Some(500),
            quorum_us: Some(300),
            apply_us: Some(5),
            write_us: Some(7),
            parse_us: None,
        };
        let request = SlowRequest {
            number: 0,
            answered_ms: 1_000_000,
            session: SessionId(5),
            address: "10.0.0.1:4000".parse().unwrap(),
            xid: 3,
            operation: "setData".into(),
            path: Some("/a".into()),
            zxid: Some(0x10),
            total_us: 335,
            stages,
        };
        TracedRequest { part, request }
    }

    #[test]
    fn the_leaders_spans_are_below_those_of_the_clients_server() {
        let client = spans(&traced(TracedPart::Client), ServerId(1));
        let leader = spans(&traced(TracedPart::Leader), ServerId(2));
        let root = &client[0];
        assert_eq!(root.parent_span_id, SpanId::INVALID);
        assert_eq!(leader[0].parent_span_id, root.span_context.span_id());
        let all: Vec<&SpanData> = client.iter().chain(&leader).collect();
        assert!(all.iter().all(|span| span.span_context.trace_id() == root.span_context.trace_id()));
        let mut ids: Vec<SpanId> = all.iter().map(|span| span.span_context.span_id()).collect();
        ids.sort_by_key(|id| id.to_bytes());
        ids.dedup();
        assert_eq!(ids.len(), all.len(), "each span has an id of its own");
    }

    #[test]
    fn stages_follow_each_other_and_the_disk_works_beside_the_quorum() {
        let all = spans(&traced(TracedPart::Client), ServerId(1));
        let root = &all[0];
        let us = |time: SystemTime| time.duration_since(root.start_time).unwrap().as_micros();
        let shown: Vec<_> =
            all.iter().map(|span| (&*span.name, us(span.start_time), us(span.end_time))).collect();
        let expected = [
            ("setData", 0, 342),
            ("queue", 0, 10),
            ("propose", 10, 30),
            ("own disk", 30, 530),
            ("quorum", 30, 330),
            ("apply", 330, 335),
            ("write out", 335, 342),
        ];
        assert_eq!(shown, expected);
    }
}
