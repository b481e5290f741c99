//! The kinds of znodes.

use ostler_client_core::Chroot;
use ostler_proto::{
    acl::{Acl, RawAcl},
    op::Op,
    request,
};
use std::{borrow::Cow, time::Duration};

/// The kind of a znode to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CreateMode {
    /// Stays until it is deleted.
    #[default]
    Persistent,
    /// Stays until it is deleted; ten digits of the parent's counter are appended to its name.
    PersistentSequential,
    /// Is deleted with its session.
    Ephemeral,
    /// Is deleted with its session; ten digits of the parent's counter are appended to its name.
    EphemeralSequential,
    /// Is deleted by the server some time after its last child.
    Container,
    /// Is deleted by the server when it has not been changed and has had no children for this time, 1 ms to about 34
    /// years. Servers do so only with `extendedTypesEnabled`.
    PersistentWithTtl(Duration),
    /// As [`PersistentWithTtl`](CreateMode::PersistentWithTtl), with ten digits of the parent's counter appended to its
    /// name.
    PersistentSequentialWithTtl(Duration),
}

impl CreateMode {
    /// Whether digits are appended to the name.
    pub fn is_sequential(self) -> bool {
        use CreateMode::{EphemeralSequential, PersistentSequential, PersistentSequentialWithTtl};
        matches!(self, PersistentSequential | EphemeralSequential | PersistentSequentialWithTtl(_))
    }

    /// Whether the znode is deleted with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, CreateMode::Ephemeral | CreateMode::EphemeralSequential)
    }

    /// The path for the request. A sequential znode directly below the root needs a slash before the digits, or it
    /// would be a sibling of the root.
    pub(crate) fn absolute<'a>(self, path: &'a str, chroot: &Chroot) -> Cow<'a, str> {
        match path {
            "/" if self.is_sequential() && !chroot.is_none() => Cow::Owned(format!("{}/", chroot.root())),
            _ => chroot.absolute(path),
        }
    }

    fn flags(self) -> i32 {
        match self {
            CreateMode::Persistent => 0,
            CreateMode::Ephemeral => 1,
            CreateMode::PersistentSequential => 2,
            CreateMode::EphemeralSequential => 3,
            CreateMode::Container => 4,
            CreateMode::PersistentWithTtl(_) => 5,
            CreateMode::PersistentSequentialWithTtl(_) => 6,
        }
    }

    fn ttl_ms(self) -> i64 {
        match self {
            CreateMode::PersistentWithTtl(ttl) | CreateMode::PersistentSequentialWithTtl(ttl) => {
                i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
            }
            _ => -1,
        }
    }

    /// The operation that creates the znode and returns its Stat.
    pub(crate) fn op(self) -> Op {
        match self {
            CreateMode::Container => Op::CreateContainer,
            CreateMode::PersistentWithTtl(_) | CreateMode::PersistentSequentialWithTtl(_) => Op::CreateTtl,
            _ => Op::Create2,
        }
    }

    /// The request for an absolute path. `op` replaces [`op`](CreateMode::op).
    pub(crate) fn request<'a>(
        self,
        op: Option<Op>,
        path: Cow<'a, str>,
        data: Option<&'a [u8]>,
        acl: &'a [Acl],
    ) -> request::Create<'a> {
        let acl = acl.iter().map(|entry| RawAcl {
            perms: entry.perms,
            scheme: Some(entry.id.scheme.as_str().into()),
            id: Some(entry.id.id.as_str().into()),
        });
        let op = op.unwrap_or(self.op());
        request::Create {
            op,
            path,
            data,
            acl: Some(acl.collect()),
            flags: self.flags(),
            ttl_ms: self.ttl_ms(),
        }
    }
}
