//! The audit log: a record of each change that a client has asked for, and of each ephemeral znode that ended with its
//! session. The shell makes lines of the records.
//!
//! Only the server that a client is connected to records the client's writes. A record is made when the outcome is
//! known, before the client gets its answer. It does not depend on the connection: a client that hangs up right after
//! its request is recorded, too.

mod operator;
mod trail;

use crate::{
    connections::identities::Identities,
    context::Context,
    effect::Effect,
    input::{ConnId, Now},
    server::Server,
};
use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use arcstr::ArcStr;
use core::net::IpAddr;
pub use operator::Operator;
use ostler_proto::{
    acl::{Acl, Id},
    id::SessionId,
    txn::{Txn, TxnRecord},
};
use ostler_tree::{Change, TreeEvent};
pub(crate) use trail::AuditTrail;

/// One event for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// The wall clock when the outcome was known, in ms since 1970.
    pub wall_ms: i64,
    /// The caller.
    pub caller: AuditCaller,
    /// The operation.
    pub operation: AuditOperation,
    /// The path of the znode; `None` if the operation has none, or it is not known.
    pub znode: Option<ArcStr>,
    /// The kind of the znode that a create asks for; `None` for other operations, and for some creates in a multi.
    pub znode_type: Option<ZnodeType>,
    /// The entries of a setACL as the client has sent them; `None` for other operations.
    pub acl: Option<Box<[Acl]>>,
    /// The outcome.
    pub result: AuditResult,
}

/// The caller of an audited operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditCaller {
    /// A client of this server.
    Client {
        /// Its session.
        session: SessionId,
        /// The user names of its identities, as `whoAmI` shows them, without those of scheme `super`.
        users: Arc<[String]>,
        /// Its address.
        address: IpAddr,
    },
    /// The server itself.
    Server {
        /// The session that the operation is about; `None` for the server's start and stop.
        session: Option<SessionId>,
    },
}

/// An audited operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOperation {
    /// create, create2, createContainer or createTTL.
    Create,
    /// delete.
    Delete,
    /// setData.
    SetData,
    /// setACL.
    SetAcl,
    /// reconfig.
    Reconfig,
    /// A multi that failed as a whole. A successful one has a record for each of its changes.
    Multi,
    /// An operator ends a session. The caller is the operator, with that session. ZooKeeper cannot do this.
    ExpireSession,
    /// An operator has each request counted for a while. The caller is the operator, without a session.
    MeasureRequests,
    /// An ephemeral znode is deleted as its session ends. Every server records that.
    EphemeralDeletion,
    /// A client's authentication has failed. ZooKeeper does not record that.
    AuthFailed,
    /// The server starts.
    ServerStart,
    /// The server stops.
    ServerStop,
    /// An operator has a snapshot taken. ZooKeeper does not record this and what follows.
    TakeSnapshot,
    /// An operator gets a snapshot of all data.
    SendSnapshot,
    /// An operator has old snapshots and logs removed.
    Purge,
    /// An operator replaces all data of a standalone server by a snapshot.
    RestoreSnapshot,
    /// An operator has a share of the connections closed.
    ShedConnections,
}

impl AuditOperation {
    /// The name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            AuditOperation::Create => "create",
            AuditOperation::Delete => "delete",
            AuditOperation::SetData => "setData",
            AuditOperation::SetAcl => "setAcl",
            AuditOperation::Reconfig => "reconfig",
            AuditOperation::Multi => "multiOperation",
            AuditOperation::ExpireSession => "expireSession",
            AuditOperation::MeasureRequests => "measureRequests",
            AuditOperation::EphemeralDeletion => "ephemeralZNodeDeletionOnSessionCloseOrExpire",
            AuditOperation::AuthFailed => "authFailed",
            AuditOperation::ServerStart => "serverStart",
            AuditOperation::ServerStop => "serverStop",
            AuditOperation::TakeSnapshot => "takeSnapshot",
            AuditOperation::SendSnapshot => "sendSnapshot",
            AuditOperation::RestoreSnapshot => "restoreSnapshot",
            AuditOperation::ShedConnections => "shedConnections",
            AuditOperation::Purge => "purge",
        }
    }
}

/// The create mode of a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZnodeType {
    /// Mode 0.
    Persistent,
    /// Mode 1.
    Ephemeral,
    /// Mode 2.
    PersistentSequential,
    /// Mode 3.
    EphemeralSequential,
    /// Mode 4.
    Container,
    /// Mode 5.
    PersistentWithTtl,
    /// Mode 6.
    PersistentSequentialWithTtl,
}

impl ZnodeType {
    /// The type of a create mode's number; `None` for a number that is no mode.
    pub fn from_flags(flags: i32) -> Option<ZnodeType> {
        Some(match flags {
            0 => ZnodeType::Persistent,
            1 => ZnodeType::Ephemeral,
            2 => ZnodeType::PersistentSequential,
            3 => ZnodeType::EphemeralSequential,
            4 => ZnodeType::Container,
            5 => ZnodeType::PersistentWithTtl,
            6 => ZnodeType::PersistentSequentialWithTtl,
            _ => return None,
        })
    }

    /// Whether the znode gets a number.
    pub fn is_sequential(self) -> bool {
        matches!(
            self,
            ZnodeType::PersistentSequential
                | ZnodeType::EphemeralSequential
                | ZnodeType::PersistentSequentialWithTtl
        )
    }

    /// The name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            ZnodeType::Persistent => "persistent",
            ZnodeType::Ephemeral => "ephemeral",
            ZnodeType::PersistentSequential => "persistent_sequential",
            ZnodeType::EphemeralSequential => "ephemeral_sequential",
            ZnodeType::Container => "container",
            ZnodeType::PersistentWithTtl => "persistent_with_ttl",
            ZnodeType::PersistentSequentialWithTtl => "persistent_sequential_with_ttl",
        }
    }
}

/// The outcome of an audited operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditResult {
    /// It was done.
    Success,
    /// It was refused.
    Failure,
    /// It was begun, and its outcome is not known here: the server stops, or has lost its leader while a client's write
    /// was under way.
    Invoked,
}

impl AuditResult {
    /// The name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            AuditResult::Success => "success",
            AuditResult::Failure => "failure",
            AuditResult::Invoked => "invoked",
        }
    }
}

impl AuditRecord {
    /// A record of the server itself, without a znode.
    pub fn of_server(wall_ms: i64, operation: AuditOperation, result: AuditResult) -> AuditRecord {
        let caller = AuditCaller::Server { session: None };
        AuditRecord { wall_ms, caller, operation, znode: None, znode_type: None, acl: None, result }
    }

    /// A record of an operator who ends a session.
    pub fn of_expired_session(
        now: Now,
        session: SessionId,
        (ids, address): (&[Id], IpAddr),
        result: AuditResult,
    ) -> AuditRecord {
        let users = Identities::new(ids.iter().cloned()).users();
        let caller = AuditCaller::Client { session, users, address: address.to_canonical() };
        let operation = AuditOperation::ExpireSession;
        let wall_ms = now.wall_ms;
        AuditRecord { wall_ms, caller, operation, znode: None, znode_type: None, acl: None, result }
    }

    /// A record of an operator who has each request counted for a while.
    pub fn of_measurement(now: Now, (ids, address): (&[Id], IpAddr)) -> AuditRecord {
        let session = SessionId::NONE;
        let record = AuditRecord::of_expired_session(now, session, (ids, address), AuditResult::Success);
        AuditRecord { operation: AuditOperation::MeasureRequests, ..record }
    }

    /// About how many bytes of memory the record takes. The user names are shared, and not counted.
    pub fn size(&self) -> usize {
        let acl: usize = self.acl.iter().flatten().map(Acl::size).sum();
        size_of::<AuditRecord>() + self.znode.as_ref().map_or(0, ArcStr::len) + acl
    }
}

impl Server {
    /// The caller behind a connection; `None` if it has no session.
    fn audit_caller(&self, conn: ConnId, session: SessionId) -> Option<AuditCaller> {
        let state = self.connections.get(conn)?;
        Some(AuditCaller::Client {
            session,
            users: state.ids.users(),
            address: state.peer.ip().to_canonical(),
        })
    }

    /// Records that a client's authentication has failed, if that is to be recorded.
    pub(crate) fn audit_failed_auth(&self, cx: &mut Context<'_>, conn: ConnId) {
        if !self.config.audit || !self.config.audit_auth_failures {
            return;
        }
        let session = self.connections.session(conn).unwrap_or(SessionId::NONE);
        let Some(caller) = self.audit_caller(conn, session) else { return };
        cx.effects.push(Effect::Audit(Box::new(AuditRecord {
            wall_ms: cx.now.wall_ms,
            caller,
            operation: AuditOperation::AuthFailed,
            znode: None,
            znode_type: None,
            acl: None,
            result: AuditResult::Failure,
        })));
    }

    /// Records the ephemerals that have gone with a session: those that the transaction lists, then the others that
    /// were deleted. One that is listed and was gone already is a failure, as in upstream.
    pub(crate) fn audit_ephemerals(
        &self,
        cx: &mut Context<'_>,
        record: &TxnRecord<'_>,
        events: &[TreeEvent],
    ) {
        let Txn::CloseSession(listed) = &record.txn else { return };
        let mut deleted = events.iter().filter(|event| event.change == Change::Deleted).peekable();
        let mut note = |znode: ArcStr, result| {
            cx.effects.push(Effect::Audit(Box::new(AuditRecord {
                wall_ms: cx.now.wall_ms,
                caller: AuditCaller::Server { session: Some(record.header.session) },
                operation: AuditOperation::EphemeralDeletion,
                znode: Some(znode),
                znode_type: None,
                acl: None,
                result,
            })));
        };
        for path in listed.iter().flatten() {
            match deleted.next_if(|event| *event.path == **path) {
                Some(event) => note(event.path.clone(), AuditResult::Success),
                None => note((&**path).into(), AuditResult::Failure),
            }
        }
        deleted.for_each(|event| note(event.path.clone(), AuditResult::Success));
    }

    /// Takes records of the writes whose outcome is not known yet, for a server that stops.
    pub fn undecided_audits(&mut self, now: Now) -> Vec<AuditRecord> {
        self.audit_trail.give_up(now)
    }
}
