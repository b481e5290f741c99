//! Requests of clients. Each is answered at once, put into its connection's queue, proposed, or forwarded to the leader.

pub(crate) mod access;
pub mod auth;
pub(crate) mod multi_read;
mod observe;
pub(crate) mod operator;
pub(crate) mod read;
pub(crate) mod sasl;
pub(crate) mod watches;

use crate::{
    connections::{
        Phase,
        forwarded::WriteTarget,
        habits::FIRST_REQUESTS,
        request_queue::{AnswerForm, Waiting, WriteTxn},
    },
    context::Context,
    effect::CloseReason,
    input::{ClientRequest, ConnId},
    pipeline::{
        WriteRoute,
        syncs::{SyncWaiter, UNANSWERED},
    },
    server::Server,
    work,
};
use alloc::boxed::Box;
use multi_read::ReadsLeft;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::Perms,
    error::ErrorCode,
    id::{SessionId, Xid},
    op::Op,
    reply::Body,
    request::Request,
};
use ostler_tree::AclRef;

/// The most identities that a connection may have, and about the most bytes of them. A client has a few; each is looked
/// up in each ACL that is checked for the first time.
const IDS_MAX: usize = 128;
const IDS_SIZE_MAX: usize = 512 << 10;

impl Server {
    /// Takes a request: auth is answered at once, a write is proposed or forwarded, and a read waits behind the
    /// connection's own writes, if there are any.
    pub(crate) fn request(&mut self, cx: &mut Context<'_>, conn: ConnId, request: &ClientRequest<'_>) {
        let Some(state) = self.connections.get_mut(conn) else { return };
        let session = match state.phase {
            Phase::Open { session } => session,
            Phase::Opening { .. } => {
                state.held.push(request.payload.into());
                return;
            }
            // The shell passes the first frame as a handshake, so `Fresh` here would be the shell's bug.
            Phase::Fresh | Phase::Closing { .. } | Phase::Closed { .. } => return,
        };
        state.stats.received += 1;
        state.gaps.note(cx.now.mono);
        state.habits.ask(request.xid.0, request.code());
        if state.stats.received <= FIRST_REQUESTS {
            state.habits.begin(&request.request);
        }
        if request.payload.len() >= self.config.large_request_bytes {
            self.client_notes.large(state.peer.ip().to_canonical(), request.payload.len());
        }
        self.stats.packets_received += 1;
        self.work.add(work::REQUEST + request.payload.len() / work::BYTES);
        if let Request::Auth { scheme, auth } = &request.request {
            return self.authenticate(cx, conn, request.xid, scheme.as_deref(), *auth);
        }
        if matches!(request.request, Request::Malformed(Op::Auth | Op::Sasl)) {
            // Upstream reads these packets outside the pipeline, and gives the connection up.
            return self.close(cx, conn, CloseReason::Protocol);
        }
        if let Request::Sasl(token) = request.request {
            return self.sasl_token(cx, conn, request.xid, token);
        }
        if !self.has_enforced_auth(conn) {
            let refused = Err(ErrorCode::SessionClosedRequireSaslAuth);
            self.reply_at_once(cx, conn, request.xid, refused);
            return self.close(cx, conn, CloseReason::AuthFailed);
        }
        // A session that is unknown or ending gets no answer; its connection is closed with it.
        if !self.sessions.touch(cx.now.mono, session) {
            return;
        }
        self.report_touch(session);
        self.stats.writes.to_prepare += u64::from(self.leads());
        if self.hot.draws() {
            self.note_hot(cx.now, conn, session, &request.request);
        }
        self.enqueue(cx, conn, session, request);
    }

    /// Refuses a request in its place. It is a sign of life, as any other.
    pub(crate) fn throttled(&mut self, cx: &mut Context<'_>, conn: ConnId, request: &ClientRequest<'_>) {
        let is_quick = matches!(
            request.request,
            Request::Auth { .. } | Request::Sasl(_) | Request::CloseSession | Request::Malformed(_)
        );
        let Some(state) = self.connections.get_mut(conn) else { return };
        let Phase::Open { session } = state.phase else { return self.request(cx, conn, request) };
        if is_quick || !self.has_enforced_auth(conn) {
            return self.request(cx, conn, request);
        }
        let Some(state) = self.connections.get_mut(conn) else { return };
        state.stats.received += 1;
        self.stats.packets_received += 1;
        self.work.add(work::REQUEST);
        if !self.sessions.touch(cx.now.mono, session) {
            return;
        }
        self.report_touch(session);
        let head = request.head(cx.now.mono);
        match self.connections.get_mut(conn) {
            Some(state) if !state.queue.is_empty() => state.queue.push_back(Waiting::Throttled { head }),
            _ => self.reply(cx, conn, head, Err(ErrorCode::ThrottledOp)),
        }
    }

    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        session: SessionId,
        request: &ClientRequest<'_>,
    ) {
        if self.write_route() == Some(WriteRoute::ReadOnly) && self.needs_quorum(session, request) {
            let head = request.head(cx.now.mono);
            self.catch_up_with(cx, conn);
            return self.reply(cx, conn, head, Err(ErrorCode::NotReadOnly));
        }
        let refused = self.upgrade_if_needed(cx, conn, session, &request.request);
        let form = match &request.request {
            _ if let Some(error) = refused => AnswerForm::Refused(error),
            Request::CloseSession if self.sessions.is_local(session) => {
                self.connections.set_phase(conn, Phase::Closing { session });
                return self.enqueue_read(cx, conn, request);
            }
            Request::Create(create) if create.op == Op::Create => AnswerForm::Path,
            Request::Create(_) => AnswerForm::PathStat,
            Request::Delete(_) | Request::SetData(_) | Request::SetAcl { .. } | Request::Multi(_) => {
                AnswerForm::ByOutcome
            }
            Request::Reconfig(_) => AnswerForm::Reconfig,
            // Any other write that does not decode is answered in its place, but no transaction comes of it:
            // upstream logs an error with a zxid that is taken already.
            Request::Malformed(Op::Multi) => AnswerForm::ByOutcome,
            Request::CloseSession => AnswerForm::Close,
            _ => return self.enqueue_read(cx, conn, request),
        };
        let txn = match self.write_route() {
            Some(WriteRoute::Propose) => {
                let Some(zxid) = self.propose_request(cx, conn, session, request) else {
                    return self.enqueue_read(cx, conn, request);
                };
                WriteTxn::Proposed(zxid)
            }
            Some(WriteRoute::Forward) => {
                self.forward(cx, conn, session, request);
                self.forwarded_txn()
            }
            Some(WriteRoute::ReadOnly) | None => return,
        };
        if form == AnswerForm::Close {
            self.connections.set_phase(conn, Phase::Closing { session });
        }
        if self.config.audit {
            self.note_for_audit(conn, session, request, txn);
        }
        let target = match txn {
            WriteTxn::Proposed(_) => WriteTarget::None,
            WriteTxn::Forwarded { .. } => WriteTarget::of(&request.request),
        };
        self.connections.enqueue(conn, Waiting::Write { head: request.head(cx.now.mono), txn, form, target });
    }

    fn enqueue_read(&mut self, cx: &mut Context<'_>, conn: ConnId, request: &ClientRequest<'_>) {
        let proposed = self.proposed();
        let overtakes = planted::is(Bug::ReadsOvertakeWrites);
        let idle = overtakes || self.connections.get(conn).is_some_and(|state| state.queue.is_empty());
        match &request.request {
            Request::Sync(_) if planted::is(Bug::SyncAtOnce) => self.serve(cx, conn, request, cx.now.mono),
            Request::Sync(path) if let Some(WriteRoute::Forward) = self.write_route() => {
                let path = path.as_deref().map(Box::from);
                let after = UNANSWERED;
                self.connections
                    .enqueue(conn, Waiting::Sync { head: request.head(cx.now.mono), after, path });
                self.pipeline.syncs.push_back((after, SyncWaiter::Client(conn)));
                let session = self.connections.session(conn).unwrap_or(SessionId::NONE);
                self.forward(cx, conn, session, request);
            }
            Request::Sync(path) if !idle || proposed > self.tree.last_processed() => {
                let path = path.as_deref().map(Box::from);
                self.connections
                    .enqueue(conn, Waiting::Sync { head: request.head(cx.now.mono), after: proposed, path });
                self.pipeline.syncs.push_back((proposed, SyncWaiter::Client(conn)));
            }
            _ if idle => self.serve(cx, conn, request, cx.now.mono),
            _ => {
                let reserved = self.answer_size(conn, &request.request);
                self.connections.reserve(conn, reserved);
                let waiting = match ReadsLeft::of(request, cx.now.mono, reserved) {
                    Some(reads) => Waiting::Reading(Box::new(reads)),
                    None => {
                        Waiting::Parked { payload: request.payload.into(), arrived: cx.now.mono, reserved }
                    }
                };
                self.connections.enqueue(conn, waiting);
            }
        }
    }

    fn authenticate(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        xid: Xid,
        scheme: Option<&str>,
        auth: Option<&[u8]>,
    ) {
        if let Some(names) = self.config.ensemble_names.as_ref().filter(|_| scheme == Some("ensemble")) {
            let is_right = auth::is_this_ensemble(names, auth);
            return self.note_ensemble(cx, conn, xid, is_right);
        }
        let Some(state) = self.connections.get_mut(conn) else { return };
        let Some(ids) = auth::authenticate(&self.config, state.peer.ip(), scheme, auth) else {
            self.stats.auth_failed += 1;
            self.audit_failed_auth(cx, conn);
            self.reply_at_once(cx, conn, xid, Err(ErrorCode::AuthFailed));
            return self.close(cx, conn, CloseReason::AuthFailed);
        };
        for id in ids {
            state.ids.add(id);
        }
        // Identities go along with each forwarded request, and into each ACL that says `auth`.
        if state.ids.all().len() > IDS_MAX || state.ids.size() > IDS_SIZE_MAX {
            self.audit_failed_auth(cx, conn);
            self.reply_at_once(cx, conn, xid, Err(ErrorCode::AuthFailed));
            return self.close(cx, conn, CloseReason::AuthFailed);
        }
        self.reply_at_once(cx, conn, xid, Ok(Body::None));
    }

    /// A client has named the ensemble that it wants. It gets no identity by that, and no answer at a wrong one, as
    /// upstream.
    fn note_ensemble(&mut self, cx: &mut Context<'_>, conn: ConnId, xid: Xid, is_right: Option<bool>) {
        let counts = &mut self.stats.ensemble_auth;
        let count = match is_right {
            Some(true) => &mut counts.right,
            Some(false) => &mut counts.wrong,
            None => &mut counts.skipped,
        };
        *count += 1;
        match is_right {
            Some(false) => self.close(cx, conn, CloseReason::OtherEnsemble),
            _ => self.reply_at_once(cx, conn, xid, Ok(Body::None)),
        }
    }

    fn has_enforced_auth(&self, conn: ConnId) -> bool {
        let schemes = &self.config.enforced_auth_schemes;
        schemes.is_empty()
            || self
                .connections
                .get(conn)
                .is_some_and(|state| state.ids.all().iter().any(|id| schemes.contains(&id.scheme)))
    }

    /// Checks whether a connection has one of these permissions; NOAUTH otherwise.
    pub(crate) fn check_access(&self, conn: ConnId, acl: &AclRef, needed: Perms) -> Result<(), ErrorCode> {
        if acl.is_none() {
            return Ok(());
        }
        let ids = self.connections.identities(conn);
        access::check(&self.config, acl, needed, ids, &self.work)
    }

    pub(crate) fn may_read(&self, conn: ConnId, acl: &AclRef) -> bool {
        if acl.is_none() {
            return true;
        }
        let ids = self.connections.identities(conn);
        access::allows(&self.config, acl, Perms::READ, ids, &self.work)
    }
}
