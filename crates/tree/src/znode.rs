//! A znode.

use crate::{acl_table::AclId, digest, table::SharedZnode};
use arcstr::ArcStr;
use ostler_proto::{
    reply::Data,
    shared::SharedBytes,
    stat::{ExtendedTypes, Stat, StatPersisted},
};

/// A znode. Its children's names live in [`crate::children::ChildIndex`], so that a frozen tree need not
/// copy a long list of them when one changes.
#[derive(Debug, Clone)]
pub struct Znode {
    /// The whole path; the root's is "/". Shared with the parent's list of children.
    pub path: ArcStr,
    /// Its data.
    pub data: Data,
    /// What is stored of its Stat.
    pub stat: StatPersisted,
    /// Who may do what.
    pub acl: AclId,
    /// Direct children.
    pub num_children: u32,
    digest: u32,
}

impl Znode {
    /// A znode without children.
    pub fn new(path: ArcStr, data: Data, stat: StatPersisted, acl: AclId) -> Znode {
        let digest = digest::of_znode(&path, data.as_deref(), &stat);
        Znode { path, data, stat, acl, num_children: 0, digest }
    }

    /// The znode's part of the tree's digest, as of the last [`Znode::hash`] or [`Znode::change_stat`].
    pub(crate) fn digest(&self) -> u32 {
        self.digest
    }

    /// Brings the digest up to date after a change.
    pub(crate) fn hash(&mut self) {
        self.digest = digest::of_znode(&self.path, self.data.as_deref(), &self.stat);
    }

    /// Changes the Stat alone, and the digest with it.
    pub(crate) fn change_stat(&mut self, change: impl FnOnce(&mut StatPersisted)) {
        let old = self.stat;
        change(&mut self.stat);
        if digest::counts(&self.path) {
            self.digest = digest::with_stat(self.digest, &old, &self.stat);
        }
    }

    /// What a client sees.
    pub fn client_stat(&self, types: ExtendedTypes) -> Stat {
        Stat::of(&self.stat, self.data_len(), self.num_children, types)
    }

    /// Bytes of data; 0 for null.
    pub fn data_len(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.len())
    }
}

/// A znode of a snapshot that is in no tree yet: where it is made needs no tree.
#[derive(Debug)]
pub struct DetachedZnode(pub(crate) SharedZnode);

impl DetachedZnode {
    /// A znode without children, whose ACL its tree will know.
    pub fn new(path: &str, data: Option<&[u8]>, stat: StatPersisted) -> DetachedZnode {
        let data = data.map(SharedBytes::from);
        DetachedZnode(SharedZnode::new(Znode::new(path.into(), data, stat, AclId::OPEN)))
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.0.path
    }
}

/// A million of them are held, each behind a count of eight bytes: the next size up would cost sixteen more.
const _: () = assert!(size_of::<Znode>() <= 88);
