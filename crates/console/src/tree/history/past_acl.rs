//! The ACL and the kind that a znode had at a change in the logs.
//!
//! A log file does not repeat the ACLs of znodes that were created in an older one. So the ACL of a change is the one of
//! the last create or setACL before it, which an older file may have. If no log tells it, the value is hidden. The kind is
//! that of the last create.

use super::failed;
use crate::{error::ApiError, state::Console, tree::look};
use ostler_inspect::view::{AclView, OpView};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    id::{SessionId, Zxid},
    stat::NodeKind,
};
use ostler_server_core::report::znodes::{ZnodeReader, ZnodeReport};
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

/// The kind of a znode at a moment, as far as the logs tell it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PastKind {
    /// The file does not tell it. An older one may.
    #[default]
    Older,
    /// No log tells it.
    Lost,
    /// The znode was of this kind.
    Was(NodeKind),
}

/// A znode at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Past {
    pub(super) acl: PastAcl,
    pub(super) kind: PastKind,
}

impl Past {
    /// The state after a gap or damage.
    pub(super) fn lost() -> Past {
        Past { acl: PastAcl::Lost, kind: PastKind::Lost }
    }

    /// Follows a part of a session's transaction that touched the znode.
    pub(super) fn follow(&mut self, kind: &str, part: &mut OpView, session: SessionId) {
        match kind {
            "delete" => *self = Past::lost(),
            "create" => {
                let acl = PastAcl::Was(Arc::new(part.acl.take().unwrap_or_default()));
                *self = Past { acl, kind: PastKind::Was(kind_of(part, session)) };
            }
            "set_acl" => self.acl = PastAcl::Was(Arc::new(part.acl.take().unwrap_or_default())),
            _ => {}
        }
    }

    /// Takes over what an older file tells, where this one does not.
    pub(super) fn resolve(&mut self, older: &Past) {
        if self.acl == PastAcl::Older {
            self.acl = older.acl.clone();
        }
        if self.kind == PastKind::Older {
            self.kind = older.kind;
        }
    }

    /// Takes over what the znode tells that exists now, where a change at `zxid` was one of this znode.
    pub(super) fn resolve_by(&mut self, present: &Present, zxid: Zxid) {
        // The transaction of its create may have changed, and deleted, another znode before.
        if zxid <= present.czxid {
            return;
        }
        if self.acl == PastAcl::Older && present.aversion == 0 {
            self.acl = PastAcl::Today;
        }
        if self.kind == PastKind::Older {
            self.kind = PastKind::Was(present.kind);
        }
    }

    /// Whether an older file may tell more.
    pub(super) fn is_open(&self) -> bool {
        self.acl == PastAcl::Older || self.kind == PastKind::Older
    }
}

/// The kind of a znode that a part of a session's transaction creates.
fn kind_of(create: &OpView, session: SessionId) -> NodeKind {
    match (create.ttl_ms, create.ephemeral) {
        (Some(ttl_ms), _) => NodeKind::Ttl(ttl_ms),
        (None, Some(true)) => NodeKind::Ephemeral(session),
        _ if create.op == "createContainer" => NodeKind::Container,
        _ => NodeKind::Persistent,
    }
}

/// The znode as it exists now, for a caller who may read it.
#[derive(Debug, Clone)]
pub(super) struct Present {
    czxid: Zxid,
    aversion: i32,
    kind: NodeKind,
    acl: Arc<SeenAcl>,
}

impl Present {
    pub(super) fn of(report: &ZnodeReport) -> Present {
        let hides = |entry: &Acl| entry.id.scheme == "digest";
        let is_masked = !report.granted.any_of(Perms::ADMIN) && report.acl.iter().any(hides);
        let acl = Arc::new(SeenAcl { may_read: true, entries: Some(report.acl.clone()), is_masked });
        Present { czxid: report.stat.czxid, aversion: report.stat.aversion, kind: report.kind, acl }
    }
}

/// An ACL of the past, for a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SeenAcl {
    /// Whether it lets the caller read the znode.
    pub(super) may_read: bool,
    /// Its entries, for a caller with READ or ADMIN by it.
    pub(super) entries: Option<Vec<Acl>>,
    /// Whether the hashes of digests in it are hidden.
    pub(super) is_masked: bool,
}

/// The ACLs of a history, each looked at once for a caller.
pub(super) struct SeenAcls<'a> {
    pub(super) console: &'a Console,
    pub(super) reader: ZnodeReader,
    pub(super) present: Option<&'a Present>,
    pub(super) last: Option<(PastAcl, Arc<SeenAcl>)>,
}

impl SeenAcls<'_> {
    pub(super) fn of(&mut self, acl: &PastAcl) -> Arc<SeenAcl> {
        if let Some((_, seen)) = self.last.as_ref().filter(|(known, _)| known == acl) {
            return seen.clone();
        }
        let seen = match (acl, self.present) {
            (PastAcl::Today, Some(present)) => present.acl.clone(),
            _ => Arc::new(self.look_at(acl)),
        };
        self.last = Some((acl.clone(), seen.clone()));
        seen
    }

    fn look_at(&self, acl: &PastAcl) -> SeenAcl {
        let entries = entries(acl);
        let (granted, shown) = look(self.console, |server| server.acl_as_seen(&self.reader, &entries));
        let is_known = matches!(acl, PastAcl::Was(_));
        SeenAcl {
            may_read: granted.any_of(Perms::READ),
            is_masked: is_known && shown.as_ref().is_some_and(|shown| *shown != entries),
            entries: shown.filter(|_| is_known),
        }
    }
}

/// Whether no transaction is missing between a file whose last one is `last` and the next file.
pub(super) fn is_next(console: &Console, last: Zxid, next: &LogFile) -> Result<bool, ApiError> {
    let (disk, _) = console.handle.logs();
    let before = zxid_before(&*disk, &next.path).map_err(|error| failed(&error))?.unwrap_or(Zxid::ZERO);
    Ok(follows(last, next.first) && before <= last)
}

/// The entries of an ACL in a log. The one that no log tells gives nothing to anybody, as for a check of `super`.
fn entries(acl: &PastAcl) -> Vec<Acl> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A transaction may delete a znode and create it anew: its earlier parts are about the old one.
    #[test]
    fn what_exists_now_tells_of_changes_after_its_create_only() {
        let acl = Arc::new(SeenAcl::default());
        let present =
            |aversion| Present { czxid: Zxid(6), aversion, kind: NodeKind::Container, acl: acl.clone() };
        let resolved = |aversion, zxid| {
            let mut past = Past::default();
            past.resolve_by(&present(aversion), Zxid(zxid));
            (past.acl, past.kind)
        };
        let container = PastKind::Was(NodeKind::Container);
        assert_eq!(resolved(0, 7), (PastAcl::Today, container));
        assert_eq!(resolved(1, 7), (PastAcl::Older, container), "another ACL was set since");
        assert_eq!(resolved(0, 6), (PastAcl::Older, PastKind::Older));
    }
}
