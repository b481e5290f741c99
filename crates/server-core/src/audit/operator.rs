//! Records of the acts of operators on the server as a whole.

use super::{AuditCaller, AuditOperation, AuditRecord, AuditResult};
use crate::connections::identities::Identities;
use core::net::IpAddr;
use ostler_proto::{acl::Id, id::SessionId};

/// An operator who asks at the admin server.
#[derive(Debug, Clone, Copy)]
pub struct Operator<'a> {
    /// The identities that they have proven.
    pub ids: &'a [Id],
    /// Their address.
    pub address: IpAddr,
}

impl AuditRecord {
    /// A record of an operator's act. There is no session.
    pub fn of_operator(
        wall_ms: i64,
        operator: Operator<'_>,
        operation: AuditOperation,
        result: AuditResult,
    ) -> AuditRecord {
        let users = Identities::new(operator.ids.iter().cloned()).users();
        let address = operator.address.to_canonical();
        let caller = AuditCaller::Client { session: SessionId::NONE, users, address };
        AuditRecord { wall_ms, caller, operation, znode: None, znode_type: None, acl: None, result }
    }
}
