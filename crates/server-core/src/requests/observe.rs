//! Notes slow requests with their stages, and which paths and clients requests are of.

use crate::{
    connections::request_queue::Waiting,
    context::Context,
    input::{ClientRequest, ConnId, Mono, Now, RequestHead},
    pipeline::Outstanding,
    server::Server,
    sessions::ends::Stretch,
    stats::{
        hot::{HotReport, MeasuredReport, beginning},
        slow_requests::{PATH_MAX, SlowLine, SlowPart, SlowReport, SlowRequest},
        stages::Stages,
        traced::{TracedPart, TracedRequest},
    },
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::net::SocketAddr;
use ostler_proto::{
    id::{SessionId, Zxid},
    op::Op,
    request::Request,
    txn::{Txn, TxnRecord},
};

/// A write to the log that takes this time counts as a stall of the disk, ms.
const DISK_STALL_MS: u64 = 1000;

impl Server {
    /// Notes a request that was drawn for the counts of hot paths.
    #[cold]
    pub(super) fn note_hot(&mut self, now: Now, conn: ConnId, session: SessionId, request: &Request<'_>) {
        let Some(state) = self.connections.get(conn) else { return };
        let address = state.peer.ip().to_canonical();
        self.hot.note(now.mono, (address, session), path_of(request));
    }

    /// A read, or another request that this server answers by itself, has its turn after it waited for long.
    #[cold]
    pub(super) fn note_slow_read(
        &mut self,
        cx: &Context<'_>,
        conn: ConnId,
        request: &ClientRequest<'_>,
        arrived: Mono,
    ) {
        let waited_us = cx.now.mono.0.saturating_sub(arrived.0) * 1000 + u64::from(request.waited_us);
        let part = SlowPart {
            xid: request.xid.0,
            code: request.code(),
            path: path_of(&request.request).map(|(path, _)| path),
            zxid: None,
            total_us: waited_us,
            stages: Stages { queue_us: Some(waited_us), ..Stages::default() },
        };
        self.note_slow(cx, conn, part);
    }

    /// A sync is answered.
    pub(crate) fn note_slow_sync(
        &mut self,
        cx: &Context<'_>,
        conn: ConnId,
        head: &RequestHead,
        path: Option<&str>,
    ) {
        let age_ms = head.age_ms(cx.now.mono);
        let is_slow = self.slow.is_slow(age_ms + u64::from(head.waited_us) / 1000);
        if !is_slow && !self.is_traced(conn, head.xid.0) {
            return;
        }
        let stages = Stages {
            queue_us: Some(head.waited_us.into()),
            quorum_us: Some(age_ms * 1000),
            ..Stages::default()
        };
        let total_us = age_ms * 1000 + u64::from(head.waited_us);
        let part = SlowPart { xid: head.xid.0, code: head.code, path, zxid: None, total_us, stages };
        self.note_slow(cx, conn, part);
    }

    /// A write of a client of this server is applied, and answered next.
    pub(crate) fn note_slow_write(
        &mut self,
        cx: &Context<'_>,
        conn: ConnId,
        proposal: &Outstanding,
        record: &TxnRecord<'_>,
    ) {
        let Some(Waiting::Write { head, .. }) =
            self.connections.get(conn).and_then(|state| state.queue.front())
        else {
            return;
        };
        let head = *head;
        let is_slow = self.slow.is_slow(head.age_ms(cx.now.mono) + u64::from(head.waited_us) / 1000);
        if !is_slow && !self.is_traced(conn, head.xid.0) {
            return;
        }
        // A leader proposes a write when it takes it. A follower's clock of the arrival has only milliseconds.
        let arrived_us = if self.leads() { proposal.came_us } else { head.arrived.0 * 1000 };
        let now_us = cx.now.mono_us();
        let of_proposal = self.pipeline.marks.stages(proposal.zxid, proposal.came_us, now_us);
        let stages = Stages {
            queue_us: Some(head.waited_us.into()),
            propose_us: Some(proposal.came_us.saturating_sub(arrived_us)),
            ..of_proposal
        };
        let total_us = now_us.saturating_sub(arrived_us) + u64::from(head.waited_us);
        let path = path_of_txn(&record.txn);
        let part =
            SlowPart { xid: head.xid.0, code: head.code, path, zxid: Some(proposal.zxid), total_us, stages };
        self.note_slow(cx, conn, part);
    }

    #[cold]
    fn note_slow(&mut self, cx: &Context<'_>, conn: ConnId, part: SlowPart<'_>) {
        let Some(state) = self.connections.get(conn) else { return };
        let SlowPart { xid, code, path, zxid, total_us, stages } = part;
        let request = SlowRequest {
            number: 0,
            answered_ms: cx.now.wall_ms,
            session: state.session().unwrap_or(SessionId::NONE),
            address: state.peer,
            xid,
            operation: operation(code),
            path: path.map(|path| beginning(path, PATH_MAX).to_string()),
            zxid: zxid.map(|zxid| zxid.0),
            total_us,
            stages,
        };
        if self.traces.tracing.picks(request.session, xid) {
            let traced = TracedRequest { part: TracedPart::Client, request: request.clone() };
            self.traces.add(Some(conn), traced);
        }
        // As the caller has asked: its figures are in milliseconds.
        if !self.slow.is_slow(total_us / 1000) {
            return;
        }
        let ending = match self.slow.take_line(cx.now.mono) {
            SlowLine::Line => Some(""),
            SlowLine::LastLine => Some("; for a minute the next ones have no line"),
            SlowLine::None => None,
        };
        if let Some(ending) = ending {
            let SlowRequest { session, address, operation, path, .. } = &request;
            tracing::warn!(
                %session, %address, %operation, path, total_us, queue_us = stages.queue_us,
                propose_us = stages.propose_us, own_disk_us = stages.own_disk_us, quorum_us = stages.quorum_us,
                apply_us = stages.apply_us, "a request took long{ending}"
            );
        }
        self.slow.add(request, conn, cx.now.mono_us());
    }

    /// Whether a request of this connection is traced.
    pub(super) fn is_traced(&self, conn: ConnId, xid: i32) -> bool {
        let tracing = self.traces.tracing;
        tracing.is_on() && self.connections.session(conn).is_some_and(|session| tracing.picks(session, xid))
    }

    /// A write that this leader has proposed for a client of another server is applied.
    pub(crate) fn note_forwarded(
        &mut self,
        cx: &Context<'_>,
        proposal: &Outstanding,
        record: &TxnRecord<'_>,
    ) {
        let (session, xid) = (record.header.session, record.header.cxid);
        if !self.traces.tracing.picks(session, xid) || !self.leads() {
            return;
        }
        let now_us = cx.now.mono_us();
        let request = SlowRequest {
            number: 0,
            answered_ms: cx.now.wall_ms,
            session,
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            xid,
            operation: operation(record.header.code),
            path: path_of_txn(&record.txn).map(|path| beginning(path, PATH_MAX).to_string()),
            zxid: Some(proposal.zxid.0),
            total_us: now_us.saturating_sub(proposal.came_us),
            stages: self.pipeline.marks.stages(proposal.zxid, proposal.came_us, now_us),
        };
        self.traces.add(None, TracedRequest { part: TracedPart::Leader, request });
    }

    /// Takes the traced requests that are done, each with the connection that gets its answer. The shell calls this
    /// before it carries out the effects of a step.
    pub fn take_traced(&mut self) -> Vec<(Option<ConnId>, TracedRequest)> {
        self.traces.take()
    }

    /// The disk has everything up to this transaction.
    pub(crate) fn note_logged(&mut self, now: Now, zxid: Zxid) {
        let before = self.pipeline.marks.last_on_own_disk();
        self.pipeline.marks.on_own_disk(zxid, now.mono_us());
        // The first one that the disk did not have waited longest. One that has committed held nobody up.
        let outstanding = &self.pipeline.outstanding;
        let at = outstanding.partition_point(|proposal| proposal.zxid <= before);
        let first = outstanding.get(at).filter(|first| first.zxid <= zxid);
        let ms = first.map_or(0, |first| now.mono_us().saturating_sub(first.came_us) / 1000);
        if ms >= DISK_STALL_MS {
            let from_ms = now.wall_ms.saturating_sub(i64::try_from(ms).unwrap_or(0));
            self.ends.note_disk_stall(Stretch { from_ms, to_ms: now.wall_ms });
        }
    }

    /// Takes the connections that get answers to slow requests, each with the number of the record. The shell may call
    /// this before it carries out the effects of a step, and [`Server::slow_request_written`] when an answer is
    /// written out.
    pub fn take_slow_replies(&mut self) -> Vec<(ConnId, u64)> {
        self.slow.take_replies()
    }

    /// The answer to the slow request with this number has been written out.
    pub fn slow_request_written(&mut self, now: Now, number: u64) {
        self.slow.written(number, now.mono_us());
    }

    /// At most `limit` slow requests after the one with the number `after`.
    pub fn slow_requests(&self, after: u64, limit: usize) -> SlowReport {
        let (requests, next) = self.slow.select(after, limit);
        SlowReport { threshold_ms: self.slow.threshold_ms(), count: self.slow.count(), requests, next }
    }

    /// The hottest paths and clients, at most `limit` of each kind.
    pub fn hot_paths(&self, now: Now, limit: usize) -> HotReport {
        self.hot.report(now.mono, limit)
    }

    /// Counts each request by path and client for this time, in ms, and not only a sample.
    pub fn measure_hot_paths(&mut self, now: Now, ms: u64) {
        self.hot.measure(now.mono, ms);
    }

    /// The exact counts that [`Server::measure_hot_paths`] has asked for, at most `limit` of each kind. `None` if nobody has
    /// asked, or if it was long ago.
    pub fn measured_hot_paths(&self, now: Now, limit: usize) -> Option<MeasuredReport> {
        self.hot.measured(now.mono, limit)
    }
}

/// The name of an operation, as in `getData`.
fn operation(code: i32) -> String {
    let Some(op) = Op::from_code(code) else { return code.to_string() };
    let name = format!("{op:?}");
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The path of a request, if it has one, and whether the request writes.
fn path_of<'r>(request: &'r Request<'_>) -> Option<(&'r str, bool)> {
    Some(match request {
        Request::Create(create) => (&create.path, true),
        Request::Delete(delete) => (&delete.path, true),
        Request::SetData(set) => (&set.path, true),
        Request::SetAcl { path, .. } => (path, true),
        Request::Exists(read)
        | Request::GetData(read)
        | Request::GetChildren(read)
        | Request::GetChildren2(read) => (&read.path, false),
        Request::GetAcl(path)
        | Request::GetAllChildrenNumber(path)
        | Request::CheckWatches { path, .. }
        | Request::RemoveWatches { path, .. }
        | Request::AddWatch { path, .. } => (path, false),
        Request::Sync(path) => (path.as_ref()?, false),
        Request::GetEphemerals { prefix } => (prefix.as_ref()?, false),
        _ => return None,
    })
}

/// The path that a transaction changes.
fn path_of_txn<'r>(txn: &'r Txn<'_>) -> Option<&'r str> {
    match txn {
        Txn::Create(create) => Some(&create.path),
        Txn::Delete { path, .. } | Txn::SetData { path, .. } | Txn::SetAcl { path, .. } => Some(path),
        _ => None,
    }
}
