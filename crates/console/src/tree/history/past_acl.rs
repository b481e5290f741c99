//! The ACL that a znode had at a change in the logs.
//!
//! A log file does not repeat the ACLs of znodes that were created in an older one. So the ACL of a change is the one of
//! the last create or setACL before it, which an older file may have. If no log tells it, the value is hidden.

use super::failed;
use crate::{error::ApiError, state::Console};
use ostler_inspect::view::{AclView, OpView};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    id::Zxid,
    stat::Stat,
};
use ostler_storage::{
    names::LogFile,
    txnlog::{follows, zxid_before},
};
use std::sync::Arc;

/// The ACL of a znode at a moment, as far as the logs tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum PastAcl {
    /// The file does not tell it. An older one may.
    #[default]
    Older,
    /// No log tells it: transactions are missing, or unreadable.
    Lost,
    /// The znode had it.
    Was(Arc<Vec<AclView>>),
    /// The znode has had the same ACL since its create.
    Today,
}

/// A znode at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Past {
    pub(super) acl: PastAcl,
}

impl Past {
    /// The state after a gap or damage.
    pub(super) fn lost() -> Past {
        Past { acl: PastAcl::Lost }
    }

    /// Follows a part of a transaction that touched the znode.
    pub(super) fn follow(&mut self, kind: &str, part: &mut OpView) {
        match kind {
            "delete" => *self = Past::lost(),
            "create" => *self = Past { acl: PastAcl::Was(Arc::new(part.acl.take().unwrap_or_default())) },
            "set_acl" => self.acl = PastAcl::Was(Arc::new(part.acl.take().unwrap_or_default())),
            _ => {}
        }
    }

    /// Takes over what an older file tells, where this one does not.
    pub(super) fn resolve(&mut self, older: &Past) {
        if self.acl == PastAcl::Older {
            *self = older.clone();
        }
    }
}

/// The znode as it exists now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present {
    czxid: Zxid,
    aversion: i32,
}

impl Present {
    pub(super) fn of(stat: &Stat) -> Present {
        Present { czxid: stat.czxid, aversion: stat.aversion }
    }

    /// Whether today's ACL is that of a change: no other was ever set since the create before it.
    pub(super) fn has_acl_of(self, zxid: Zxid) -> bool {
        self.aversion == 0 && zxid >= self.czxid
    }
}

/// Whether no transaction is missing between a file whose last one is `last` and the next file.
pub(super) fn is_next(console: &Console, last: Zxid, next: &LogFile) -> Result<bool, ApiError> {
    let (disk, _) = console.handle.logs();
    let before = zxid_before(&*disk, &next.path).map_err(|error| failed(&error))?.unwrap_or(Zxid::ZERO);
    Ok(follows(last, next.first) && before <= last)
}

/// The entries of an ACL in a log. The one that no log tells gives nothing to anybody, as for a check of `super`.
pub(super) fn entries(acl: &PastAcl) -> Vec<Acl> {
    match acl {
        PastAcl::Was(list) => list.iter().map(entry).collect(),
        _ => Vec::from([Acl { perms: Perms(0), id: Id::new("world", "anyone") }]),
    }
}

fn entry(view: &AclView) -> Acl {
    let of = crate::tree::shown::LETTERS.iter().filter(|(letter, _)| view.perms.contains(*letter));
    let perms = of.fold(Perms(0), |perms, (_, perm)| perms.with(*perm));
    Acl { perms, id: Id::new(view.scheme.clone(), view.id.clone()) }
}
