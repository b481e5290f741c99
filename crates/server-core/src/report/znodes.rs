//! Znodes as a caller of the admin server sees them: by the checks that a client with the same identities meets, and
//! without a session. Each look takes a bounded number of steps, however many znodes and children there are.

use crate::{connections::identities::Identities, requests::access, server::Server, sessions::Scope};
use alloc::{string::String, vec::Vec};
use core::net::SocketAddr;
use ostler_proto::{
    acl::{Acl, Id, Perms, RawAcl},
    error::ErrorCode,
    id::{SessionId, Zxid},
    path,
    reply::Data,
    stat::{NodeKind, Stat},
    strings::SharedStrings,
};
use ostler_tree::{
    AclRef, Znode,
    quota::{self, QuotaNumbers},
    watch::WatchCounts,
};

/// The identities of a caller who looks at znodes.
#[derive(Debug)]
pub struct ZnodeReader {
    pub(super) ids: Identities,
}

impl ZnodeReader {
    /// A caller with these identities.
    pub fn new(ids: &[Id]) -> ZnodeReader {
        ZnodeReader { ids: Identities::new(ids.iter().cloned()) }
    }
}

/// Why a caller sees nothing of a znode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZnodeRefusal {
    /// There is no such znode.
    NoNode {
        /// The nearest znode above it that exists.
        nearest: String,
    },
    /// Its ACL does not allow it.
    NoAuth {
        /// The permissions that the caller has.
        granted: Perms,
    },
    /// The server takes requests only from clients that have logged in by one of its schemes.
    NotLoggedIn,
}

/// A znode, as far as a caller with READ or ADMIN sees it.
#[derive(Debug)]
pub struct ZnodeReport {
    /// The Stat.
    pub stat: Stat,
    /// The kind.
    pub kind: NodeKind,
    /// The ACL. Without ADMIN the hashes of digest ids are hidden.
    pub acl: Vec<Acl>,
    /// The permissions that the caller has.
    pub granted: Perms,
    /// Whether the caller has DELETE at the parent.
    pub may_be_deleted: bool,
    /// The session of an ephemeral.
    pub owner: Option<OwnerReport>,
    /// The nearest quota at or above, if the caller may read its znodes.
    pub quota: Option<QuotaReport>,
    /// The watches at this server.
    pub watches: WatchCounts,
    /// The last transaction applied.
    pub zxid: Zxid,
}

/// The session of an ephemeral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerReport {
    /// The session.
    pub session: SessionId,
    /// The address of its client, if it is connected to this server.
    pub address: Option<SocketAddr>,
    /// Whether the session lives.
    pub is_alive: bool,
}

/// A quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaReport {
    /// The limited path.
    pub path: String,
    /// Its limits.
    pub limits: QuotaNumbers,
    /// Its usage.
    pub usage: QuotaNumbers,
}

/// The beginning of a list of children.
#[derive(Debug, Clone, Copy)]
pub enum NamesFrom<'a> {
    /// The names at or after this one.
    At(&'a str),
    /// The names after this one.
    After(&'a str),
}

/// The znode whose children are listed, at the moment of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParentReport {
    /// Its Stat.
    pub stat: Stat,
    /// The last transaction applied.
    pub zxid: Zxid,
}

/// A child in the list of its parent.
#[derive(Debug)]
pub struct ChildReport {
    /// The name.
    pub name: String,
    /// The child itself, for a caller with READ or ADMIN there.
    pub seen: Option<SeenChild>,
    /// Whether the caller may read it.
    pub may_read: bool,
}

/// A child that the caller sees.
#[derive(Debug)]
pub struct SeenChild {
    /// The Stat.
    pub stat: Stat,
    /// The kind.
    pub kind: NodeKind,
    /// Whether it has a quota whose limits the caller may read.
    pub has_quota: bool,
    /// Whether anybody watches it at this server.
    pub is_watched: bool,
}

/// Something that a caller sees, or the reason why it does not.
pub type Seen<T> = Result<T, ZnodeRefusal>;

const READ_OR_ADMIN: Perms = Perms(Perms::READ.0 | Perms::ADMIN.0);
const EACH: [Perms; 5] = [Perms::READ, Perms::WRITE, Perms::CREATE, Perms::DELETE, Perms::ADMIN];

impl Server {
    /// A znode for a caller with READ or ADMIN.
    pub fn znode(&self, reader: &ZnodeReader, path: &str) -> Seen<ZnodeReport> {
        let node = self.seen(reader, path, READ_OR_ADMIN)?;
        let acl = self.tree.acl(node);
        let granted = self.granted(reader, &acl);
        Ok(ZnodeReport {
            stat: self.tree.stat(node),
            kind: node.stat.ephemeral_owner.kind(self.tree.types()),
            acl: shown_acl(&acl, granted.any_of(Perms::ADMIN)),
            granted,
            may_be_deleted: self.may_be_deleted(reader, path),
            owner: self.owner(node),
            quota: self.readable_quota(reader, path),
            watches: self.watches.counts_at(path),
            zxid: self.tree.last_processed(),
        })
    }

    /// The data and the Stat of a znode, for a caller with READ.
    pub fn znode_data(&self, reader: &ZnodeReader, path: &str) -> Seen<(Data, Stat)> {
        let node = self.seen(reader, path, Perms::READ)?;
        Ok((node.data.clone(), self.tree.stat(node)))
    }

    /// The permissions that a caller has, and those with another ACL. Fails with INVALIDACL.
    pub fn permissions_with(
        &self,
        reader: &ZnodeReader,
        path: &str,
        acl: &[RawAcl<'_>],
    ) -> Seen<Result<(Perms, Perms), ErrorCode>> {
        self.admits(reader)?;
        let node = self.tree.get(path).ok_or_else(|| self.no_node(path))?;
        let before = self.granted(reader, &self.tree.acl(node));
        let fixed = access::fix_up(&self.config, Some(acl), reader.ids.all(), &mut Default::default());
        Ok(fixed.map(|acl| {
            let after = self.granted(reader, &ostler_tree::acl_table::to_ref(&acl, 0));
            (before, after)
        }))
    }

    /// The permissions that the caller would have with this ACL, and the ACL as getACL would show it then.
    pub fn acl_as_seen(&self, reader: &ZnodeReader, acl: &[Acl]) -> (Perms, Option<Vec<Acl>>) {
        let list = ostler_tree::acl_table::to_ref(acl, 0);
        let granted = self.granted(reader, &list);
        let is_seen = granted.any_of(READ_OR_ADMIN);
        (granted, is_seen.then(|| shown_acl(&list, granted.any_of(Perms::ADMIN))))
    }

    /// A parent, and the names of its children from a place on, in the order of [`ostler_tree::sorted_strings::order`], at
    /// most `max`.
    pub fn child_names(
        &self,
        reader: &ZnodeReader,
        path: &str,
        (from, max): (NamesFrom<'_>, usize),
    ) -> Seen<(ParentReport, Vec<String>)> {
        let node = self.seen(reader, path, Perms::READ)?;
        let (name, is_after) = match from {
            NamesFrom::At(name) => (name, false),
            NamesFrom::After(name) => (name, true),
        };
        Ok((self.parent(node), self.tree.children_from(path, (name, is_after), max)))
    }

    /// A parent, of the names of its children that begin with a text those from a place on, counted from 0, in the order of
    /// [`ostler_tree::sorted_strings::order`] and at most `max`, and the number of all that begin with it.
    pub fn child_names_at(
        &self,
        reader: &ZnodeReader,
        path: &str,
        (place, max): ((&str, usize), usize),
    ) -> Seen<(ParentReport, Vec<String>, usize)> {
        let node = self.seen(reader, path, Perms::READ)?;
        let (names, matching) = self.tree.children_at(path, place, max);
        Ok((self.parent(node), names, matching))
    }

    /// A parent, and the whole list of its children's names, encoded as in a reply.
    pub fn child_list(&self, reader: &ZnodeReader, path: &str) -> Seen<(ParentReport, SharedStrings)> {
        let node = self.seen(reader, path, Perms::READ)?;
        Ok((self.parent(node), self.share_children(node)))
    }

    /// These children of a parent. Those that do not exist any more are left out.
    pub fn children_named(
        &self,
        reader: &ZnodeReader,
        parent: &str,
        names: &[impl AsRef<str>],
    ) -> Seen<(ParentReport, Vec<ChildReport>)> {
        let node = self.seen(reader, parent, Perms::READ)?;
        let mut path = below(parent);
        let above = path.len();
        let child = |name: &str| {
            path.truncate(above);
            path.push_str(name);
            self.child(reader, &path, name)
        };
        Ok((self.parent(node), names.iter().map(AsRef::as_ref).filter_map(child).collect()))
    }

    /// The zxids of the last changes of these children's data; `None` for those that the caller does not see.
    pub fn changes_of_children(
        &self,
        reader: &ZnodeReader,
        parent: &str,
        names: &[&str],
    ) -> Seen<Vec<Option<Zxid>>> {
        self.seen(reader, parent, Perms::READ)?;
        let mut path = below(parent);
        let above = path.len();
        let change = |name: &&str| {
            path.truncate(above);
            path.push_str(name);
            self.seen(reader, &path, READ_OR_ADMIN).ok().map(|node| node.stat.mzxid)
        };
        Ok(names.iter().map(change).collect())
    }

    fn child(&self, reader: &ZnodeReader, path: &str, name: &str) -> Option<ChildReport> {
        let node = self.tree.get(path)?;
        let acl = self.tree.acl(node);
        let is_allowed = |perms| access::allows(&self.config, &acl, perms, &reader.ids, &self.work);
        let may_read = is_allowed(Perms::READ);
        let seen = (may_read || is_allowed(Perms::ADMIN)).then(|| SeenChild {
            stat: self.tree.stat(node),
            kind: node.stat.ephemeral_owner.kind(self.tree.types()),
            has_quota: self.has_readable_quota(reader, path),
            is_watched: self.watches.is_watched(path),
        });
        Some(ChildReport { name: name.into(), seen, may_read })
    }

    fn parent(&self, node: &Znode) -> ParentReport {
        ParentReport { stat: self.tree.stat(node), zxid: self.tree.last_processed() }
    }

    pub(super) fn admits(&self, reader: &ZnodeReader) -> Seen<()> {
        let schemes = &self.config.enforced_auth_schemes;
        let is_proven = || reader.ids.all().iter().any(|id| schemes.contains(&id.scheme));
        if schemes.is_empty() || is_proven() { Ok(()) } else { Err(ZnodeRefusal::NotLoggedIn) }
    }

    /// The znode, if the caller has one of these permissions.
    pub(super) fn seen(&self, reader: &ZnodeReader, path: &str, needed: Perms) -> Seen<&Znode> {
        self.admits(reader)?;
        let node = self.tree.get(path).ok_or_else(|| self.no_node(path))?;
        let acl = self.tree.acl(node);
        if access::allows(&self.config, &acl, needed, &reader.ids, &self.work) {
            return Ok(node);
        }
        Err(ZnodeRefusal::NoAuth { granted: self.granted(reader, &acl) })
    }

    fn no_node(&self, path: &str) -> ZnodeRefusal {
        let nearest = path::ancestors(path).find(|above| self.tree.get(above).is_some());
        ZnodeRefusal::NoNode { nearest: nearest.unwrap_or("/").into() }
    }

    pub(super) fn granted(&self, reader: &ZnodeReader, acl: &AclRef) -> Perms {
        let has = |perm: &Perms| access::allows(&self.config, acl, *perm, &reader.ids, &self.work);
        EACH.into_iter().filter(has).fold(Perms(0), Perms::with)
    }

    fn may_read_at(&self, reader: &ZnodeReader, path: &str) -> bool {
        self.seen(reader, path, Perms::READ).is_ok()
    }

    pub(super) fn may_be_deleted(&self, reader: &ZnodeReader, path: &str) -> bool {
        let parent = path::parent(path).filter(|_| !path::is_special(path));
        parent.is_some_and(|parent| self.seen(reader, parent, Perms::DELETE).is_ok())
    }

    fn owner(&self, node: &Znode) -> Option<OwnerReport> {
        let NodeKind::Ephemeral(session) = node.stat.ephemeral_owner.kind(self.tree.types()) else {
            return None;
        };
        let is_local = self.sessions.get(session).is_some_and(|session| session.scope == Scope::Local);
        let is_alive = self.tree.has_session(session) || is_local;
        Some(OwnerReport { session, address: self.address_of(session), is_alive })
    }

    /// The address of a session's client, if it is connected to this server.
    pub fn address_of(&self, session: SessionId) -> Option<SocketAddr> {
        let conn = self.sessions.get(session)?.conn?;
        self.connections.get(conn).map(|conn| conn.peer)
    }

    fn readable_quota(&self, reader: &ZnodeReader, path: &str) -> Option<QuotaReport> {
        let (limited, limits, usage) = self.tree.quota(path)?;
        let may = |path: String| self.may_read_at(reader, &path);
        let is_readable = may(quota::limits_path(limited)) && may(quota::stats_path(limited));
        is_readable.then(|| QuotaReport { path: limited.into(), limits, usage })
    }

    fn has_readable_quota(&self, reader: &ZnodeReader, path: &str) -> bool {
        self.tree.is_limited(path) && self.may_read_at(reader, &quota::limits_path(path))
    }
}

/// The beginning of the paths of a znode's children.
fn below(parent: &str) -> String {
    let mut path = String::from(parent);
    if parent != "/" {
        path.push('/');
    }
    path
}

/// An ACL as getACL shows it.
fn shown_acl(acl: &AclRef, is_admin: bool) -> Vec<Acl> {
    match acl {
        None => Vec::from([Acl::world(Perms::ALL)]),
        Some(list) if is_admin => list.to_vec(),
        Some(list) => list.iter().map(access::masked).collect(),
    }
}
