//! Makes a proposal of a write: prepares it with the pending changes, numbers it, encodes it once, and sends it to the
//! disk and the followers.

use crate::{
    connections::identities::Identities,
    context::Context,
    effect::{Effect, PeerMessage, PersistOp, Record},
    input::{ClientRequest, ConnId, Now},
    pipeline::{
        Outstanding,
        prepare::{Ephemerals, Preparer},
    },
    quorum::AfterPersist,
    requests::access::Expanded,
    server::Server,
    sessions::{Owner, Scope, local::may_have_ephemerals},
};
use alloc::{string::ToString, sync::Arc};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::{Acl, RawAcl},
    error::ErrorCode,
    id::{SessionId, Zxid},
    request::Request,
    txn::{DIGEST_VERSION, Txn, TxnDigest, TxnHeader, TxnRecord},
};

/// The caller on whose behalf a write is prepared.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Requester<'a> {
    /// A client of this server.
    Client(ConnId),
    /// A client of a learner, with these identities.
    Ids(&'a Identities),
    /// The server itself.
    Server,
}

/// The origin of a write: its session, the xid that its client gave it, and the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOrigin<'a> {
    pub(crate) session: SessionId,
    pub(crate) cxid: i32,
    pub(crate) requester: Requester<'a>,
}

impl WriteOrigin<'_> {
    /// A write of a client of this server.
    pub(crate) fn client(session: SessionId, cxid: i32, conn: ConnId) -> WriteOrigin<'static> {
        WriteOrigin { session, cxid, requester: Requester::Client(conn) }
    }

    /// A write that the server makes by itself, about this session.
    pub(crate) fn server(session: SessionId) -> WriteOrigin<'static> {
        WriteOrigin { session, cxid: 0, requester: Requester::Server }
    }

    /// The connection of this server that waits for the write, if there is one.
    fn conn(&self) -> Option<ConnId> {
        match self.requester {
            Requester::Client(conn) => Some(conn),
            Requester::Ids(_) | Requester::Server => None,
        }
    }
}

impl Server {
    pub(crate) fn preparer<'s>(&'s mut self, zxid: Zxid, now: Now, origin: WriteOrigin<'s>) -> Preparer<'s> {
        let ids = match origin.requester {
            Requester::Client(conn) => self.connections.identities(conn),
            Requester::Ids(ids) => ids,
            Requester::Server => self.connections.nobody(),
        };
        Preparer {
            config: &self.config,
            tree: &self.tree,
            overlay: &mut self.pipeline.overlay,
            stats: &mut self.stats,
            work: &self.work,
            zxid,
            time_ms: now.wall_ms,
            session: origin.session,
            ephemerals: Ephemerals::Allowed,
            ids,
            expanded: Expanded::default(),
        }
    }

    /// Before the first transaction of a new ensemble: proposes the ACL of the root, if it is not to stay open. An ensemble
    /// is new while the root never had a znode of a client, nor another ACL.
    pub(crate) fn close_new_root(&mut self, cx: &mut Context<'_>) {
        let Some(acl) = &self.config.first_root_acl else { return };
        let root = self.tree.get("/").map(|root| (root.stat.pzxid, root.stat.aversion));
        // While a transaction is outstanding, the root's ACL is among those before it.
        if root != Some((Zxid::ZERO, 0)) || !self.pipeline.outstanding.is_empty() {
            return;
        }
        let raw = |of: &Acl| RawAcl {
            perms: of.perms,
            scheme: Some(of.id.scheme.to_string().into()),
            id: Some(of.id.id.to_string().into()),
        };
        let acl = Some(acl.iter().map(raw).collect());
        let request = Request::SetAcl { path: "/".into(), acl, version: -1 };
        let origin = WriteOrigin::server(SessionId::NONE);
        let zxid = self.next_zxid();
        match self.preparer(zxid, cx.now, origin).prepare(&request) {
            Ok(txn) => drop(self.append(cx, origin, txn)),
            Err(error) => tracing::error!(?error, "the root stays open: its ACL cannot be set"),
        }
    }

    /// Proposes a client's write, and returns its zxid. A write that fails its checks is proposed as an error: it keeps
    /// its place in the order, and takes a zxid. `None` for a request on which upstream fails without a check: it is
    /// answered in its place, without a transaction.
    pub(crate) fn propose_request(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        session: SessionId,
        request: &ClientRequest<'_>,
    ) -> Option<Zxid> {
        self.close_new_root(cx);
        let origin = WriteOrigin::client(session, request.xid.0, conn);
        if matches!(request.request, Request::CloseSession) {
            return Some(self.propose_close(cx, origin));
        }
        let zxid = self.next_zxid();
        let state = self.sessions.get(session);
        let scope = state.map_or(Scope::Global, |state| state.scope);
        if state.is_some_and(|state| matches!(state.owner, Owner::Learner(_))) {
            // The client has moved to another server.
            let moved = Txn::Error(ErrorCode::SessionMoved.code());
            return Some(self.append(cx, origin, moved));
        }
        if let Request::Reconfig(change) = &request.request {
            return Some(self.propose_reconfig(cx, origin, change));
        }
        let mut preparer = self.preparer(zxid, cx.now, origin);
        preparer.ephemerals = may_have_ephemerals(scope, &request.request);
        let prepared = preparer.prepare(&request.request);
        let malformed_multi = matches!(request.request, Request::Malformed(_));
        let txn = match prepared {
            Ok(txn) => txn,
            Err(ErrorCode::MarshallingError) if !malformed_multi => return None,
            Err(error) => Txn::Error(error.code()),
        };
        Some(self.append(cx, origin, txn))
    }

    /// Numbers and encodes a transaction that is in the pending changes already, and sends it to the disk and the
    /// followers. Returns its zxid.
    pub(crate) fn append(&mut self, cx: &mut Context<'_>, origin: WriteOrigin<'_>, txn: Txn<'_>) -> Zxid {
        let WriteOrigin { session, cxid, .. } = origin;
        let proposals = self.role.proposals_mut().expect("only a server that leads proposes");
        let zxid = proposals.propose();
        assert!(self.role.is_standalone() || zxid.counter() > 0, "an epoch ends before {zxid} is counted");
        // An error transaction has no digest, nor has the empty form of closeSession: a Java
        // server would take the digest for its list.
        let has_digest = self.config.digest && !matches!(txn, Txn::Error(_) | Txn::CloseSession(None));
        let digest =
            has_digest.then(|| TxnDigest { version: DIGEST_VERSION, tree: self.pipeline.overlay.digest() });
        let header = TxnHeader { session, cxid, zxid, time_ms: cx.now.wall_ms, code: txn.code() };
        self.pipeline.scratch.clear();
        TxnRecord { header, txn, digest }.write(&mut self.pipeline.scratch);
        let record = Record(Arc::from(&self.pipeline.scratch[..]));
        let seq = self.pipeline.gate.issue();
        self.pipeline.gate.hold(AfterPersist::OwnAck {
            search_id: self.search_id(),
            zxid,
            made_ms: cx.now.wall_ms,
        });
        cx.effects.push(Effect::Persist { seq, op: PersistOp::Append { zxid, record: record.clone() } });
        self.send_proposal(cx, zxid, || PeerMessage::Proposal(zxid, record.clone()));
        if let Some(state) = self.sessions.get_mut(session) {
            state.last_proposal = zxid;
        }
        self.pipeline.outstanding.push_back(Outstanding {
            zxid,
            record,
            made_ms: cx.now.wall_ms,
            came_us: cx.now.mono_us(),
            conn: origin.conn(),
        });
        if planted::is(Bug::CommitOutOfTurn) {
            let me = self.config.server;
            self.acknowledged(cx, me, zxid);
        }
        self.stats.proposals += 1;
        self.stats.last_proposal_bytes = self.pipeline.scratch.len() as u64;
        self.stats.proposal_bytes.add(self.stats.last_proposal_bytes);
        zxid
    }
}
