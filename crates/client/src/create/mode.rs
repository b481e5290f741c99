//! Kinds of znodes.

use ostler_client_core::Chroot;
use ostler_proto::{
    acl::{Acl, RawAcl},
    op::Op,
    request,
};
use std::{borrow::Cow, time::Duration};

/// What kind of znode to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CreateMode {
    /// Stays until it is deleted.
    #[default]
    Persistent,
    /// Stays until it is deleted; ten digits of the parent's counter are appended to its name.
    PersistentSequential,
    /// Goes with its session.
    Ephemeral,
    /// Goes with its session; ten digits of the parent's counter are appended to its name.
    EphemeralSequential,
    /// Is deleted some time after its last child.
    Container,
    /// Is deleted when it has been unchanged and childless for so long, which is 1 ms to about 34 years. Servers
    /// do so only where `extendedTypesEnabled` is set.
    PersistentWithTtl(Duration),
    /// Likewise, with ten digits appended to its name.
    PersistentSequentialWithTtl(Duration),
}

impl CreateMode {
    /// Whether digits are appended to the name.
    pub fn is_sequential(self) -> bool {
        use CreateMode::{EphemeralSequential, PersistentSequential, PersistentSequentialWithTtl};
        matches!(self, PersistentSequential | EphemeralSequential | PersistentSequentialWithTtl(_))
    }

    /// Whether it goes with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, CreateMode::Ephemeral | CreateMode::EphemeralSequential)
    }

    /// The path to ask the server for. Digits after a root's own path would be those of its sibling.
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

    /// The operation that makes it and gives its Stat.
    pub(crate) fn op(self) -> Op {
        match self {
            CreateMode::Container => Op::CreateContainer,
            CreateMode::PersistentWithTtl(_) | CreateMode::PersistentSequentialWithTtl(_) => Op::CreateTtl,
            _ => Op::Create2,
        }
    }

    /// Its request, with an absolute path.
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
