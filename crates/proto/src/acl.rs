//! Access control lists: permissions, identities and the entries that connect them.

use crate::jute::{Reader, Result, Writer};
use alloc::{borrow::Cow, string::String, vec::Vec};
use core::ops::{BitOr, BitOrAssign};

/// A set of permissions, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Perms(pub i32);

impl Perms {
    /// To read data and the list of children.
    pub const READ: Perms = Perms(1);
    /// To set the data.
    pub const WRITE: Perms = Perms(2);
    /// To create children.
    pub const CREATE: Perms = Perms(4);
    /// To delete children.
    pub const DELETE: Perms = Perms(8);
    /// To set the ACL.
    pub const ADMIN: Perms = Perms(16);
    /// All five permissions.
    pub const ALL: Perms = Perms(31);

    /// The union of both sets.
    #[must_use]
    pub fn with(self, others: Perms) -> Perms {
        Perms(self.0 | others.0)
    }

    /// Whether any of `wanted` is granted.
    pub fn any_of(self, wanted: Perms) -> bool {
        self.0 & wanted.0 != 0
    }
}

/// The union of both sets: `Perms::READ | Perms::WRITE`.
impl BitOr for Perms {
    type Output = Perms;

    fn bitor(self, others: Perms) -> Perms {
        self.with(others)
    }
}

impl BitOrAssign for Perms {
    fn bitor_assign(&mut self, others: Perms) {
        *self = *self | others;
    }
}

/// An identity of a client, as an authentication scheme names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Id {
    /// `world`, `auth`, `digest`, `ip`, `super`, ...
    pub scheme: String,
    /// The name of the identity within the scheme.
    pub id: String,
}

impl Id {
    /// The identity `id` of `scheme`.
    pub fn new(scheme: impl Into<String>, id: impl Into<String>) -> Id {
        Id { scheme: scheme.into(), id: id.into() }
    }

    /// About how many bytes of memory the identity takes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        self.scheme.len() + self.id.len() + size_of::<Id>()
    }
}

/// One entry of a znode's access control list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Acl {
    /// The permissions that the entry grants.
    pub perms: Perms,
    /// The identity that gets them.
    pub id: Id,
}

impl Acl {
    /// An entry that grants `perms` to `id`.
    pub fn new(perms: Perms, id: Id) -> Acl {
        Acl { perms, id }
    }

    /// Everything to everybody: ZooKeeper's `OPEN_ACL_UNSAFE`.
    pub fn open_unsafe() -> Acl {
        Acl::world(Perms::ALL)
    }

    /// Everything to the identities that the creating connection has: ZooKeeper's `CREATOR_ALL_ACL`. A client without
    /// an identity gets `InvalidAcl`.
    pub fn creator_all() -> Acl {
        Acl::new(Perms::ALL, Id::new("auth", ""))
    }

    /// Reading to everybody: ZooKeeper's `READ_ACL_UNSAFE`.
    pub fn read_unsafe() -> Acl {
        Acl::world(Perms::READ)
    }

    /// About how many bytes of memory the entry takes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        size_of::<Acl>() + self.id.scheme.len() + self.id.id.len()
    }

    /// `world:anyone` with the given permissions.
    pub fn world(perms: Perms) -> Acl {
        Acl { perms, id: Id::new("world", "anyone") }
    }

    /// Appends the entry.
    #[doc(hidden)]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.i32(self.perms.0);
        out.string(&self.id.scheme);
        out.string(&self.id.id);
    }
}

/// An entry as a client sends it. Nothing is checked yet, and both strings may be null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAcl<'a> {
    /// Permission bits; any value is legal.
    pub perms: Perms,
    /// The scheme; `None` for null.
    pub scheme: Option<Cow<'a, str>>,
    /// The id within the scheme; `None` for null.
    pub id: Option<Cow<'a, str>>,
}

impl<'a> RawAcl<'a> {
    /// Reads an entry.
    pub fn read(r: &mut Reader<'a>) -> Result<Self> {
        Ok(RawAcl { perms: Perms(r.i32()?), scheme: r.string()?, id: r.string()? })
    }
}

/// Appends a list of entries.
pub fn write_acls(out: &mut Vec<u8>, acls: &[Acl]) {
    out.length(acls.len());
    for acl in acls {
        acl.write(out);
    }
}

/// Reads a list from disk or from a reply. A null list, scheme or id reads as empty.
pub fn read_acls(r: &mut Reader<'_>) -> Result<Vec<Acl>> {
    let list = r.vector(|r| {
        let perms = Perms(r.i32()?);
        let scheme = r.stored_string()?.unwrap_or_default().into_owned();
        Ok(Acl { perms, id: Id { scheme, id: r.stored_string()?.unwrap_or_default().into_owned() } })
    })?;
    Ok(list.unwrap_or_default())
}
