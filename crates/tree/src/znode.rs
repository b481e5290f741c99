//! A znode: path, data, Stat and ACL, with its part of the tree's digest.

use crate::{acl_table::AclId, digest, table::SharedZnode};
use arcstr::ArcStr;
use ostler_proto::{
    reply::Data,
    shared::SharedBytes,
    stat::{ExtendedTypes, Stat, StatPersisted},
};

/// A znode. The names of its children are in [`crate::children::ChildIndex`], so that a change of a long list does not
/// copy it for a frozen view.
#[derive(Debug, Clone)]
pub struct Znode {
    /// The whole path; the root's is "/". Shared with the parent's list of children.
    pub path: ArcStr,
    /// The data; `None` for null.
    pub data: Data,
    /// The stored part of the Stat.
    pub stat: StatPersisted,
    /// The number of the ACL in the tree's table.
    pub acl: AclId,
    /// The number of direct children.
    pub num_children: u32,
    digest: u32,
}

impl Znode {
    /// A znode without children.
    pub fn new(path: ArcStr, data: Data, stat: StatPersisted, acl: AclId) -> Znode {
        let digest = digest::of_znode(&path, data.as_deref(), &stat);
        Znode { path, data, stat, acl, num_children: 0, digest }
    }

    /// The znode's part of the tree's digest, as the last [`Znode::hash`] or [`Znode::change_stat`] has computed it.
    pub(crate) fn digest(&self) -> u32 {
        self.digest
    }

    /// Computes the digest again, after a change of data or Stat.
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

    /// The Stat as clients see it.
    pub fn client_stat(&self, types: ExtendedTypes) -> Stat {
        Stat::of(&self.stat, self.data_len(), self.num_children, types)
    }

    /// The length of the data in bytes; 0 for null.
    pub fn data_len(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.len())
    }
}

/// A znode of a snapshot that is in no tree yet, so any thread can make it.
#[derive(Debug)]
pub struct DetachedZnode(pub(crate) SharedZnode);

impl DetachedZnode {
    /// A znode without children. Its ACL is set when it gets into a tree.
    pub fn new(path: &str, data: Option<&[u8]>, stat: StatPersisted) -> DetachedZnode {
        let data = data.map(SharedBytes::from);
        DetachedZnode(SharedZnode::new(Znode::new(path.into(), data, stat, AclId::OPEN)))
    }

    /// The path of the znode.
    pub fn path(&self) -> &str {
        &self.0.path
    }
}

/// A large tree has millions of znodes, each behind a count of eight bytes. The allocator's next size is sixteen bytes
/// larger.
const _: () = assert!(size_of::<Znode>() <= 88);
