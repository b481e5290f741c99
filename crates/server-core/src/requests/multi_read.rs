//! A multiRead of many operations is done in parts. All of it still shows the tree at one zxid: no transaction is
//! applied until it is done. Other reads go on meanwhile.
//!
//! Only one is under way at a time. When it is done, waiting transactions have their turn before the next one begins. A
//! learner cannot let its leader's commits wait, so it does the rest of the multiRead at once when a commit comes.

use crate::{
    connections::request_queue::Waiting,
    context::Context,
    input::{ClientRequest, ConnId, Mono, RequestHead},
    requests::read::{MULTI_READ_MAX, multi_read_answer},
    server::Server,
    work,
};
use alloc::{boxed::Box, vec::Vec};
use ostler_proto::{
    jute::Reader,
    reply::OpResult,
    request::{MultiReadOp, Request, read_multi_read_op},
};

/// The most operations of a multiRead that is done at once.
pub(crate) const SHORT_MAX: usize = 512;

/// A multiRead that is done in parts, and its position.
#[derive(Debug)]
pub(crate) struct ReadsLeft {
    head: RequestHead,
    payload: Box<[u8]>,
    /// The position of the next operation in the payload.
    at: usize,
    /// The number of operations that are left.
    count: usize,
    /// Whether the request breaks off after them.
    broken: bool,
    results: Vec<OpResult>,
    size: usize,
    /// Bytes reserved for the answer.
    reserved: usize,
}

/// The position after the request's header.
const BODY_AT: usize = 8;

impl ReadsLeft {
    /// The beginning of a request, if it is a multiRead of many operations.
    pub(crate) fn of(request: &ClientRequest<'_>, arrived: Mono, reserved: usize) -> Option<ReadsLeft> {
        let Request::MultiRead { ops, broken } = &request.request else { return None };
        (ops.len() > SHORT_MAX).then(|| ReadsLeft {
            head: request.head(arrived),
            payload: request.payload.into(),
            at: BODY_AT,
            count: ops.len(),
            broken: *broken,
            results: Vec::with_capacity(ops.len()),
            size: 0,
            reserved,
        })
    }

    fn has_begun(&self) -> bool {
        self.at > BODY_AT
    }

    /// The next operation; `None` at the end. The request was decoded before, so no operation fails to decode.
    fn next(&mut self) -> Option<MultiReadOp<'_>> {
        self.count = self.count.checked_sub(1)?;
        let mut reader = Reader::new(self.payload.get(self.at..)?);
        let op = read_multi_read_op(&mut reader).ok()??;
        self.at = self.payload.len() - reader.rest().len();
        Some(op)
    }
}

impl Server {
    /// The connection whose multiRead has begun and is not done.
    pub(crate) fn conn_in_multi_read(&self) -> Option<ConnId> {
        let conn = self.backlog.multi_read?;
        let first = self.connections.get(conn)?.queue.front();
        matches!(first, Some(Waiting::Reading(left)) if left.has_begun()).then_some(conn)
    }

    /// Goes on with a multiRead until the work budget is spent.
    pub(crate) fn read_many(&mut self, cx: &mut Context<'_>, conn: ConnId, mut left: Box<ReadsLeft>) {
        self.work.add(work::REQUEST);
        let is_turn = match self.conn_in_multi_read() {
            _ if left.has_begun() => true,
            Some(_) => false,
            None => !(self.backlog.commits && self.backlog.commits_are_next),
        };
        if is_turn {
            self.backlog.multi_read = Some(conn);
            while !self.work.is_spent() {
                if self.read_next(conn, &mut left) {
                    return self.answer_reads(cx, conn, *left);
                }
            }
        }
        if let Some(state) = self.connections.get_mut(conn) {
            state.queue.push_front(Waiting::Reading(left));
        }
        self.defer_requests(conn);
    }

    /// Does one more operation. Returns true if the multiRead is done.
    fn read_next(&mut self, conn: ConnId, left: &mut ReadsLeft) -> bool {
        if left.size > MULTI_READ_MAX {
            return true;
        }
        let Some(op) = left.next() else { return true };
        self.work.add(work::REQUEST);
        let result = self.multi_read_op(conn, &op);
        left.size += result.size();
        left.results.push(result);
        false
    }

    fn answer_reads(&mut self, cx: &mut Context<'_>, conn: ConnId, left: ReadsLeft) {
        self.backlog.multi_read = None;
        self.backlog.commits_are_next = true;
        self.connections.release(conn, left.reserved);
        let answer = multi_read_answer(left.results, left.size, left.broken);
        self.answer_read(cx, conn, left.head, answer);
    }

    /// Does the rest of the multiRead under way at once, as a transaction is applied now.
    pub(crate) fn finish_multi_read(&mut self, cx: &mut Context<'_>) {
        let Some(conn) = self.conn_in_multi_read() else { return };
        let first = self.connections.get_mut(conn).and_then(|state| state.queue.pop_front());
        if let Some(Waiting::Reading(mut left)) = first {
            while !self.read_next(conn, &mut left) {}
            self.answer_reads(cx, conn, *left);
        }
    }
}
