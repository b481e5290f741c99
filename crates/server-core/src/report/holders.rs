//! Znodes of locks, elections and semaphores, and the sessions that own them. Each look takes a bounded number of steps;
//! callers make many of them, and let others go on between two.

use crate::{
    connections::identities::Identities, input::Now, requests::access, server::Server, sessions::Scope,
};
use alloc::{string::String, sync::Arc, vec::Vec};
use core::net::SocketAddr;
use ostler_proto::{
    acl::{Id, Perms},
    id::{SessionId, Zxid},
    stat::NodeKind,
};
use ostler_tree::{AclRef, Znode, watch::WatcherKind};

/// The most bytes of a znode's data in a report.
const DATA_MAX: usize = 256;

/// A znode's ACL at the moment of a look, to find out later who may read it.
#[derive(Debug, Clone)]
pub struct ReadAcl(AclRef);

impl ReadAcl {
    /// A number that is the same for znodes with one ACL, as long as both values are kept.
    pub fn key(&self) -> usize {
        self.0.as_ref().map_or(0, |list| Arc::as_ptr(list).addr())
    }
}

/// A znode of a recipe.
#[derive(Debug, Clone)]
pub struct RecipeZnode {
    /// The transaction that has created it: its owner's fencing token.
    pub czxid: Zxid,
    /// The last transaction that has set its data.
    pub mzxid: Zxid,
    /// When it was created, by the leader's clock, in ms since 1970.
    pub ctime_ms: i64,
    /// The number of setData.
    pub version: i32,
    /// The beginning of its data.
    pub data: Vec<u8>,
    /// The number of its children.
    pub num_children: u32,
    /// The session of an ephemeral.
    pub owner: Option<SessionId>,
    /// Whether its owner's client watches its data, by a standard watch. `None` if that client is not connected to this
    /// server, which therefore does not know.
    pub owner_watches: Option<bool>,
    /// Its ACL.
    pub acl: ReadAcl,
}

/// The session of a holder or of a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerSession {
    /// Whether it lives.
    pub is_alive: bool,
    /// Its timeout, ms.
    pub timeout_ms: Option<i32>,
    /// The client's address, if it is connected to this server.
    pub address: Option<SocketAddr>,
    /// For how long nothing was heard of it, ms. A lower limit at a leader whose client is connected elsewhere; `None`
    /// at other servers.
    pub silent_for_ms: Option<u64>,
}

impl Server {
    /// A znode of a recipe.
    pub fn recipe_znode(&self, path: &str) -> Option<RecipeZnode> {
        let node = self.tree.get(path)?;
        let owner = match node.stat.ephemeral_owner.kind(self.tree.types()) {
            NodeKind::Ephemeral(session) => Some(session),
            _ => None,
        };
        let data = node.data.as_deref().unwrap_or_default();
        Some(RecipeZnode {
            czxid: node.stat.czxid,
            mzxid: node.stat.mzxid,
            ctime_ms: node.stat.ctime,
            version: node.stat.version,
            data: data[..data.len().min(DATA_MAX)].to_vec(),
            num_children: node.num_children,
            owner,
            owner_watches: owner.and_then(|session| self.watches_itself(session, node)),
            acl: ReadAcl(self.tree.acl(node)),
        })
    }

    fn watches_itself(&self, owner: SessionId, node: &Znode) -> Option<bool> {
        let conn = self.sessions.get(owner)?.conn?;
        Some(self.watches.contains(&node.path, conn.watcher(), WatcherKind::Data))
    }

    /// The session of a holder or of a contender.
    pub fn owner_session(&self, now: Now, id: SessionId) -> OwnerSession {
        let known = self.sessions.get(id).filter(|known| !known.closing);
        let conn = known.and_then(|known| self.connections.get(known.conn?));
        let is_local = known.is_some_and(|known| known.scope == Scope::Local);
        let heard_by_leader = known.filter(|_| self.leads()).map(|known| known.silent_at_least_ms(now.mono));
        OwnerSession {
            is_alive: self.tree.has_session(id) || is_local,
            timeout_ms: known.map(|known| known.timeout_ms),
            address: conn.map(|conn| conn.peer),
            silent_for_ms: conn.map(|conn| conn.gaps.silent_ms(now.mono)).or(heard_by_leader),
        }
    }

    /// The names of the first children of a znode, at most `max`.
    pub fn first_children(&self, path: &str, max: usize) -> Vec<String> {
        self.tree.children(path).take(max).map(|name| name.into_owned()).collect()
    }

    /// For each of these ACLs, whether a caller with these identities may read.
    pub fn each_readable(&self, ids: &[Id], acls: &[ReadAcl]) -> Vec<bool> {
        let schemes = &self.config.enforced_auth_schemes;
        let is_admitted = schemes.is_empty() || ids.iter().any(|id| schemes.contains(&id.scheme));
        let ids = Identities::new(ids.iter().cloned());
        let may = |acl: &ReadAcl| {
            is_admitted && access::allows(&self.config, &acl.0, Perms::READ, &ids, &self.work)
        };
        acls.iter().map(may).collect()
    }
}
