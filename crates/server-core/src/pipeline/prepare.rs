//! Checks writes in upstream's order, quotas included, and makes a transaction of each.

use crate::{
    config::CoreConfig,
    connections::identities::Identities,
    requests::access::{self, Expanded},
    stats::Stats,
    work::{self, Work},
};
use alloc::{borrow::Cow, format, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::{Acl, Perms, RawAcl},
    error::ErrorCode,
    id::{SessionId, Zxid},
    op::Op,
    path,
    request::{Create, PathVersion, Request, SetData, is_ttl_flag},
    stat::{EphemeralOwner, NodeKind, StatPersisted, TTL_MAX_MS},
    txn::{CreateTxn, Txn, TxnCreateKind},
};
use ostler_tree::{AclRef, Overlay, PendingNode, Tree, acl_table};

/// The transaction of a request, or the error that the client gets.
pub(crate) type Prepared<'a> = Result<Txn<'a>, ErrorCode>;

/// Everything that is needed to prepare one request of one caller.
pub(crate) struct Preparer<'s> {
    pub(crate) config: &'s CoreConfig,
    pub(crate) tree: &'s Tree,
    pub(crate) overlay: &'s mut Overlay,
    pub(crate) stats: &'s mut Stats,
    pub(crate) zxid: Zxid,
    pub(crate) time_ms: i64,
    pub(crate) session: SessionId,
    pub(crate) ephemerals: Ephemerals,
    pub(crate) ids: &'s Identities,
    pub(crate) work: &'s Work,
    pub(crate) expanded: Expanded,
}

/// Whether a session may have ephemeral znodes: the end of the session has to delete them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ephemerals {
    /// It may: the session is global, and its end is a transaction.
    Allowed,
    /// It may not: the session is a local one. The client gets this error.
    Refused(ErrorCode),
}

/// A create mode (`CreateMode.fromFlag`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) ephemeral: bool,
    sequential: bool,
    container: bool,
    ttl: bool,
}

impl Mode {
    pub(crate) fn from_flags(flags: i32) -> Option<Mode> {
        (0..=6).contains(&flags).then(|| Mode {
            ephemeral: matches!(flags, 1 | 3),
            sequential: matches!(flags, 2 | 3 | 6),
            container: flags == 4,
            ttl: is_ttl_flag(flags),
        })
    }
}

/// A parent's counter of child names ends at twice this number. The operator gets a warning in time.
const HALF_OF_NUMBERS: i32 = 1 << 30;

impl Preparer<'_> {
    pub(crate) fn prepare<'a>(&mut self, request: &Request<'a>) -> Prepared<'a> {
        self.work.add(work::WRITE);
        match request {
            Request::Create(create) => self.create(create),
            Request::Delete(delete) => self.delete(delete),
            Request::SetData(set) => self.set_data(set),
            Request::SetAcl { path, acl, version } => self.set_acl(path, acl.as_deref(), *version),
            Request::Multi(ops) => Ok(self.multi(ops)),
            _ => Err(ErrorCode::MarshallingError),
        }
    }

    fn node(&self, path: &str) -> Result<PendingNode, ErrorCode> {
        self.overlay.get(self.tree, path).ok_or(ErrorCode::NoNode)
    }

    fn put(&mut self, path: &str, node: Option<PendingNode>) {
        self.stats.writes.changes_noted += 1;
        self.overlay.put(self.tree, self.zxid, path, node);
    }

    fn check(&self, node: &PendingNode, needed: Perms) -> Result<(), ErrorCode> {
        access::check(self.config, &node.acl, needed, self.ids, self.work)
    }

    fn fix_up(&mut self, sent: Option<&[RawAcl<'_>]>) -> Result<Vec<Acl>, ErrorCode> {
        let fixed = access::fix_up(self.config, sent, self.ids.all(), &mut self.expanded)?;
        // Each entry is compared, checked, copied and sorted.
        self.work.add(fixed.len() * 2);
        Ok(fixed)
    }

    /// An ACL that is not in the tree yet.
    fn pending_list(&mut self, acl: &[Acl]) -> AclRef {
        acl_table::to_ref(acl, self.overlay.next_serial())
    }

    pub(crate) fn create<'a>(&mut self, create: &Create<'a>) -> Prepared<'a> {
        let mode = self.create_mode(create)?;
        if let (true, Ephemerals::Refused(error)) = (mode.ephemeral, self.ephemerals) {
            return Err(error);
        }
        let parent_path = path::parent(&create.path).ok_or(ErrorCode::BadArguments)?;
        let acl = self.fix_up(create.acl.as_deref())?;
        let mut parent = self.node(parent_path)?;
        self.check(&parent, Perms::CREATE)?;
        let path: Cow<'a, str> = if mode.sequential {
            let mut number = parent.stat().cversion;
            if planted::is(Bug::SequenceRepeats) {
                number = self.tree.children(parent_path).count() as i32;
            }
            if number == HALF_OF_NUMBERS {
                tracing::warn!(
                    parent = parent_path,
                    "half of the numbers for children are used. When the last is given out names repeat, and create fails: \
                     when no child is left in this znode, delete it and create it again"
                );
            }
            format!("{}{number:010}", create.path).into()
        } else {
            create.path.clone()
        };
        if !path::is_valid(&path) {
            return Err(ErrorCode::BadArguments);
        }
        if self.overlay.get(self.tree, &path).is_some() {
            return Err(ErrorCode::NodeExists);
        }
        if let NodeKind::Ephemeral(_) = parent.stat().ephemeral_owner.kind(self.config.types) {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        self.check_quota(&path, 1, create.data.map_or(0, <[u8]>::len) as i64)?;

        let parent_cversion = parent.stat().cversion.wrapping_add(1);
        parent.child_created(parent_cversion, self.zxid);
        let parent_path = path::parent(&path).unwrap_or("/");
        self.put(parent_path, Some(parent));
        let (kind, owner) = match mode {
            Mode { ttl: true, .. } => (TxnCreateKind::Ttl(create.ttl_ms), EphemeralOwner::ttl(create.ttl_ms)),
            Mode { container: true, .. } => (TxnCreateKind::Container, EphemeralOwner::CONTAINER),
            _ if create.op == Op::CreateContainer => (TxnCreateKind::Container, EphemeralOwner::CONTAINER),
            _ => {
                let create2 = create.op == Op::Create2;
                let kind = if create2 { TxnCreateKind::Create2 } else { TxnCreateKind::Create };
                let owner = if mode.ephemeral { self.session.0 } else { 0 };
                (kind, EphemeralOwner(owner))
            }
        };
        let stat = StatPersisted::created(self.zxid, self.time_ms, owner);
        let node = PendingNode::new(&path, create.data, stat, self.pending_list(&acl));
        self.put(&path, Some(node));
        let ephemeral = mode.ephemeral;
        Ok(Txn::Create(CreateTxn {
            kind,
            path,
            data: create.data,
            acl: acl.into(),
            ephemeral,
            parent_cversion,
        }))
    }

    /// Flag, then TTL support, then the TTL itself. Upstream takes createTTL with a mode that has no TTL
    /// and logs a transaction that no server survives; here it is refused.
    fn create_mode(&self, create: &Create<'_>) -> Result<Mode, ErrorCode> {
        let mode = Mode::from_flags(create.flags).ok_or(ErrorCode::BadArguments)?;
        if mode.ttl && !self.config.types.enabled {
            return Err(ErrorCode::Unimplemented);
        }
        let ttl_fits = if mode.ttl {
            (1..=TTL_MAX_MS).contains(&create.ttl_ms)
        } else {
            create.ttl_ms < 0 && create.op != Op::CreateTtl
        };
        if ttl_fits { Ok(mode) } else { Err(ErrorCode::BadArguments) }
    }

    pub(crate) fn delete<'a>(&mut self, delete: &PathVersion<'a>) -> Prepared<'a> {
        let path = &*delete.path;
        let parent_path = path::parent(path).ok_or(ErrorCode::BadArguments)?;
        if path::is_special(path) {
            return Err(ErrorCode::BadArguments);
        }
        let parent = self.node(parent_path)?;
        self.check(&parent, Perms::DELETE)?;
        let node = self.node(path)?;
        check_version(node.stat().version, delete.version)?;
        if node.num_children > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        self.note_deleted(path);
        Ok(Txn::Delete { reaped: false, path: delete.path.clone() })
    }

    /// Notes in the pending changes that a znode will be deleted.
    pub(crate) fn note_deleted(&mut self, path: &str) {
        self.work.add(work::CHANGE);
        if let Some(parent_path) = path::parent(path)
            && let Some(mut parent) = self.overlay.get(self.tree, parent_path)
        {
            parent.child_deleted(self.zxid);
            self.put(parent_path, Some(parent));
        }
        self.put(path, None);
    }

    pub(crate) fn set_data<'a>(&mut self, set: &SetData<'a>) -> Prepared<'a> {
        let path = &*set.path;
        let mut node = self.valid_node(path)?;
        self.check(&node, Perms::WRITE)?;
        let grown = set.data.map_or(0, <[u8]>::len) as i64 - node.data_len as i64;
        self.check_quota(path, 0, grown)?;
        let version = check_version(node.stat().version, set.version)?;
        node.set_data(path, set.data, version, self.zxid, self.time_ms);
        self.put(path, Some(node));
        Ok(Txn::SetData { reconfig: false, path: set.path.clone(), data: set.data, version })
    }

    fn set_acl<'a>(&mut self, path: &Cow<'a, str>, acl: Option<&[RawAcl<'a>]>, version: i32) -> Prepared<'a> {
        if !path::is_valid(path) {
            return Err(ErrorCode::BadArguments);
        }
        let mut acl = self.fix_up(acl)?;
        let mut node = self.node(path)?;
        if planted::is(Bug::AclOfBefore)
            && let Some(before) = &node.acl
        {
            acl = before.to_vec();
        }
        self.check(&node, Perms::ADMIN)?;
        let version = check_version(node.stat().aversion, version)?;
        node.set_acl(self.pending_list(&acl), version);
        self.put(path, Some(node));
        Ok(Txn::SetAcl { path: path.clone(), acl: acl.into(), version })
    }

    pub(crate) fn check_op<'a>(&mut self, check: &PathVersion<'a>) -> Prepared<'a> {
        let node = self.valid_node(&check.path)?;
        self.check(&node, Perms::READ)?;
        let version = check_version(node.stat().version, check.version)?;
        Ok(Txn::Check { path: check.path.clone(), version })
    }

    fn valid_node(&self, path: &str) -> Result<PendingNode, ErrorCode> {
        if path::is_valid(path) { self.node(path) } else { Err(ErrorCode::BadArguments) }
    }

    /// Checks the quota of a path: beyond a hard limit the write is refused, beyond a soft one it is logged. The usage
    /// is that of the applied tree, as in upstream.
    fn check_quota(&mut self, path: &str, count: i64, bytes: i64) -> Result<(), ErrorCode> {
        if !self.config.enforce_quota {
            return Ok(());
        }
        let Some((limited, limits, usage)) = self.tree.quota(path) else { return Ok(()) };
        let (count, bytes) = (
            QuotaUse { growth: count, used: usage.count, hard: limits.count_hard, soft: limits.count },
            QuotaUse { growth: bytes, used: usage.bytes, hard: limits.bytes_hard, soft: limits.bytes },
        );
        let counted = self.check_limit(limited, "znodes", count);
        let sized = self.check_limit(limited, "bytes", bytes);
        let allowed = counted.and(sized);
        if allowed.is_err() {
            self.stats.namespaces.count_refusal(path);
        }
        allowed
    }

    /// The soft limit counts only if no hard one is set.
    fn check_limit(
        &mut self,
        limited: &str,
        what: &str,
        QuotaUse { growth, used, hard, soft }: QuotaUse,
    ) -> Result<(), ErrorCode> {
        let limit = if hard > -1 { hard } else { soft };
        if growth == 0 || limit < 0 || used.wrapping_add(growth) <= limit {
            return Ok(());
        }
        self.stats.quota_exceeded += 1;
        // A client in a loop must not fill the log.
        if self.stats.quota_exceeded.is_power_of_two() {
            let (times, refused) = (self.stats.quota_exceeded, hard > -1);
            tracing::warn!(
                limited,
                what,
                limit,
                wanted = used.wrapping_add(growth),
                refused,
                times,
                "quota exceeded"
            );
        }
        if hard > -1 { Err(ErrorCode::QuotaExceeded) } else { Ok(()) }
    }
}

/// One number that a quota limits, and its growth by a write. A limit of -1 is none.
#[derive(Debug, Clone, Copy)]
struct QuotaUse {
    growth: i64,
    used: i64,
    hard: i64,
    soft: i64,
}

/// The version after the write, if the expected version is -1 or the current one; else BADVERSION.
fn check_version(current: i32, expected: i32) -> Result<i32, ErrorCode> {
    if expected != -1 && expected != current {
        return Err(ErrorCode::BadVersion);
    }
    Ok(current.wrapping_add(1))
}
