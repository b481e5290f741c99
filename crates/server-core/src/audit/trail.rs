//! Audited writes of this server's clients whose outcome is not known yet.

use super::{AuditCaller, AuditOperation, AuditRecord, AuditResult, ZnodeType};
use crate::{
    connections::{
        forwarded::is_numbered,
        request_queue::{AnswerForm, Waiting, WriteTxn},
    },
    context::Context,
    effect::Effect,
    input::{ClientRequest, ConnId, Now},
    server::Server,
};
use alloc::{
    borrow::Cow,
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    vec::Vec,
};
use arcstr::ArcStr;
use ostler_proto::{
    acl::{Acl, Id, RawAcl},
    id::SessionId,
    op::Op,
    request::{MultiOp, Request},
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_tree::Outcome;

/// An audited write that is proposed or forwarded.
#[derive(Debug)]
struct UndecidedWrite {
    /// The connection that the request came on, which may be gone.
    conn: ConnId,
    cxid: i32,
    txn: WriteTxn,
    caller: AuditCaller,
    asked: Asked,
}

/// The part of a request that its record needs.
#[derive(Debug)]
enum Asked {
    /// A write of one znode.
    One {
        operation: AuditOperation,
        path: ArcStr,
        znode_type: Option<ZnodeType>,
        acl: Option<Box<[Acl]>>,
    },
    Reconfig,
    /// The type for each of its operations, if that is a create whose type is recorded.
    Multi(Box<[Option<ZnodeType>]>),
}

/// The undecided writes of each session, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct AuditTrail {
    /// In the order of the sessions, so that equal runs give equal effects.
    sessions: BTreeMap<SessionId, VecDeque<UndecidedWrite>>,
}

impl AuditTrail {
    /// Takes the write that a transaction decides, and in front of it those of the session that no transaction has
    /// come of.
    fn take(
        &mut self,
        record: &TxnRecord<'_>,
        answered: Option<ConnId>,
        current: Option<ConnId>,
    ) -> Option<(Vec<UndecidedWrite>, UndecidedWrite)> {
        let (session, cxid) = (record.header.session, record.header.cxid);
        let writes = self.sessions.get_mut(&session)?;
        let place = writes.iter().position(|write| match (answered, write.txn) {
            (Some(conn), _) => write.conn == conn && write.cxid == cxid,
            // A write of the session's present connection would be answered.
            (None, WriteTxn::Forwarded { .. }) if current == Some(write.conn) => false,
            (None, _) => write.is_decided_by(&record.header, &record.txn),
        })?;
        let stopped = writes.drain(..place).collect();
        let decided = writes.pop_front()?;
        if writes.is_empty() {
            self.sessions.remove(&session);
        }
        Some((stopped, decided))
    }

    /// The last write of a session was stopped on its way to the leader. It is refused before a transaction, so it has
    /// no record.
    pub(crate) fn forget_stopped(&mut self, session: SessionId) {
        if let Some(writes) = self.sessions.get_mut(&session) {
            writes.pop_back();
            if writes.is_empty() {
                self.sessions.remove(&session);
            }
        }
    }

    /// Ends the waiting for all outcomes.
    pub(super) fn give_up(&mut self, now: Now) -> Vec<AuditRecord> {
        let all = core::mem::take(&mut self.sessions);
        all.into_values().flatten().map(|write| write.invoked(now)).collect()
    }
}

impl UndecidedWrite {
    /// Whether this is the write that a transaction has come of. A client that comes back on another connection may
    /// number its requests from 1 again, so the transaction has to fit, too.
    fn is_decided_by(&self, header: &TxnHeader, txn: &Txn<'_>) -> bool {
        match self.txn {
            WriteTxn::Proposed(zxid) => zxid == header.zxid,
            WriteTxn::Forwarded { after } => {
                self.cxid == header.cxid && after < header.zxid && self.asked.fits(txn)
            }
        }
    }

    fn invoked(self, now: Now) -> AuditRecord {
        self.asked.into_record(now, self.caller, AuditResult::Invoked)
    }
}

impl Asked {
    fn of(request: &Request<'_>) -> Option<Asked> {
        let one =
            |operation, path: &str| Asked::One { operation, path: path.into(), znode_type: None, acl: None };
        Some(match request {
            Request::Create(create) => Asked::One {
                operation: AuditOperation::Create,
                path: (&*create.path).into(),
                znode_type: ZnodeType::from_flags(create.flags),
                acl: None,
            },
            Request::Delete(delete) => one(AuditOperation::Delete, &delete.path),
            Request::SetData(set) => one(AuditOperation::SetData, &set.path),
            Request::SetAcl { path, acl, .. } => Asked::One {
                operation: AuditOperation::SetAcl,
                path: (&**path).into(),
                znode_type: None,
                acl: acl.as_ref().map(|acl| acl.iter().map(entry).collect()),
            },
            Request::Reconfig(_) => Asked::Reconfig,
            Request::Multi(ops) => Asked::Multi(ops.iter().map(type_in_multi).collect()),
            Request::Malformed(Op::Multi) => Asked::Multi(Box::default()),
            _ => return None,
        })
    }

    /// Whether a transaction can have come of this request.
    fn fits(&self, txn: &Txn<'_>) -> bool {
        match (self, txn) {
            (_, Txn::Error(_)) | (Asked::Multi(_), Txn::Multi(_)) => true,
            (Asked::Reconfig, Txn::SetData { reconfig, .. }) => *reconfig,
            (Asked::One { operation, path: asked, znode_type, .. }, _) => match (operation, txn) {
                (AuditOperation::Create, Txn::Create(create)) => match znode_type {
                    Some(znode_type) if znode_type.is_sequential() => is_numbered(&create.path, asked),
                    _ => *create.path == **asked,
                },
                (AuditOperation::Delete, Txn::Delete { path, .. })
                | (AuditOperation::SetData, Txn::SetData { path, .. })
                | (AuditOperation::SetAcl, Txn::SetAcl { path, .. }) => **path == **asked,
                _ => false,
            },
            _ => false,
        }
    }

    /// The record of a write that was not done, or whose outcome is not known.
    fn into_record(self, now: Now, caller: AuditCaller, result: AuditResult) -> AuditRecord {
        let (operation, znode, znode_type, acl) = match self {
            Asked::One { operation, path, znode_type, acl } => (operation, Some(path), znode_type, acl),
            Asked::Reconfig => (AuditOperation::Reconfig, None, None, None),
            Asked::Multi(_) => (AuditOperation::Multi, None, None, None),
        };
        AuditRecord { wall_ms: now.wall_ms, caller, operation, znode, znode_type, acl, result }
    }
}

fn entry(sent: &RawAcl<'_>) -> Acl {
    let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().into();
    Acl { perms: sent.perms, id: Id { scheme: text(&sent.scheme), id: text(&sent.id) } }
}

fn type_in_multi(op: &MultiOp<'_>) -> Option<ZnodeType> {
    match op {
        // As in upstream: in a multi a createTTL has no type, nor has a sequential znode, whose type is searched by the
        // path with its number.
        MultiOp::Create(create) if create.op != Op::CreateTtl => {
            ZnodeType::from_flags(create.flags).filter(|znode_type| !znode_type.is_sequential())
        }
        _ => None,
    }
}

/// Whether a write was refused. A multi is refused as a whole.
fn is_refused(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(_) => true,
        Outcome::Multi(outcomes) => outcomes.iter().any(is_refused),
        _ => false,
    }
}

/// The operation and the path of a change that was done; `None` for one that is not audited.
fn change_of<'a>(txn: &'a Txn<'_>) -> Option<(AuditOperation, &'a str)> {
    Some(match txn {
        Txn::Create(create) => (AuditOperation::Create, &create.path),
        Txn::Delete { path, .. } => (AuditOperation::Delete, path),
        Txn::SetData { path, reconfig: true, .. } => (AuditOperation::Reconfig, path),
        Txn::SetData { path, .. } => (AuditOperation::SetData, path),
        Txn::SetAcl { path, .. } => (AuditOperation::SetAcl, path),
        _ => return None,
    })
}

impl Server {
    /// Notes a client's write that is proposed or forwarded, until its outcome is known.
    pub(crate) fn note_for_audit(
        &mut self,
        conn: ConnId,
        session: SessionId,
        request: &ClientRequest<'_>,
        txn: WriteTxn,
    ) {
        let Some(asked) = Asked::of(&request.request) else { return };
        let Some(caller) = self.audit_caller(conn, session) else { return };
        let write = UndecidedWrite { conn, cxid: request.xid.0, txn, caller, asked };
        self.audit_trail.sessions.entry(session).or_default().push_back(write);
    }

    /// Records the outcome of a transaction, if a client of this server has asked for it. `answered` is the connection
    /// whose write it answers.
    pub(crate) fn audit_outcome(
        &mut self,
        cx: &mut Context<'_>,
        record: &TxnRecord<'_>,
        answered: Option<ConnId>,
        outcome: &Outcome,
    ) {
        let current = self.sessions.get(record.header.session).and_then(|session| session.conn);
        let Some((stopped, write)) = self.audit_trail.take(record, answered, current) else { return };
        let now = cx.now;
        let mut push = |record| cx.effects.push(Effect::Audit(Box::new(record)));
        stopped.into_iter().for_each(|write| push(write.invoked(now)));
        // The session has moved, and its client has used the same number for another write at another server. The own
        // write is refused there.
        if !write.asked.fits(&record.txn) {
            return push(write.invoked(now));
        }
        let UndecidedWrite { caller, asked, .. } = write;
        if is_refused(outcome) {
            return push(asked.into_record(now, caller, AuditResult::Failure));
        }
        // A path that is as the client has sent it is not copied again.
        let done = |txn: &Txn<'_>, caller, sent: Option<ArcStr>, znode_type, acl| {
            let (operation, path) = change_of(txn)?;
            let znode = sent.filter(|sent| **sent == *path).unwrap_or_else(|| path.into());
            Some(AuditRecord {
                wall_ms: now.wall_ms,
                caller,
                operation,
                znode: Some(znode),
                znode_type,
                acl,
                result: AuditResult::Success,
            })
        };
        match (asked, &record.txn) {
            (Asked::Multi(types), Txn::Multi(txns)) => {
                for (at, txn) in txns.iter().enumerate() {
                    let znode_type = types.get(at).copied().flatten();
                    done(txn, caller.clone(), None, znode_type, None).into_iter().for_each(&mut push);
                }
            }
            (Asked::One { path, znode_type, acl, .. }, txn) => {
                done(txn, caller, Some(path), znode_type, acl).into_iter().for_each(push);
            }
            (_, txn) => done(txn, caller, None, None, None).into_iter().for_each(push),
        }
    }

    /// Each write that a connection waits for will be recorded, and no write is answered without its record.
    pub(crate) fn audit_invariants(&self) {
        if !self.config.audit {
            return;
        }
        let mut waited_for = BTreeSet::new();
        for (id, conn) in self.connections.iter() {
            for request in &conn.queue {
                if let Waiting::Write { head, txn, form, .. } = request
                    && !matches!(form, AnswerForm::Connected | AnswerForm::Upgraded | AnswerForm::Close)
                {
                    waited_for.insert((id, head.xid.0, txn.order()));
                }
            }
        }
        let undecided = self.audit_trail.sessions.values().flatten();
        let undecided: BTreeSet<_> = undecided
            .filter(|write| self.connections.is_connected(write.conn))
            .map(|write| (write.conn, write.cxid, write.txn.order()))
            .collect();
        assert_eq!(waited_for, undecided, "writes under way, and those that will be recorded");
    }

    /// This server has lost its leader, or leads no more: records the writes under way. They may still be done.
    pub(crate) fn give_up_audits(&mut self, cx: &mut Context<'_>) {
        let given_up = self.audit_trail.give_up(cx.now);
        cx.effects.extend(given_up.into_iter().map(|record| Effect::Audit(Box::new(record))));
    }
}
