//! A znode.

use crate::{acl_table::AclId, digest};
use arcstr::ArcStr;
use ostler_proto::{
    reply::Data,
    stat::{ExtendedTypes, Stat, StatPersisted},
};

/// A znode. Its children's names live in [`crate::children::Families`], so that a frozen tree need not
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
    /// CRC-32 of path and data: the digest's first part, kept so that a change of the Stat alone need not
    /// read the data again.
    pub(crate) content_crc: u32,
    /// The znode's part of the tree's digest.
    pub(crate) digest: u32,
}

impl Znode {
    /// A znode whose digest is right.
    pub fn new(path: ArcStr, data: Data, stat: StatPersisted, acl: AclId) -> Znode {
        let content_crc = digest::content_crc(&path, data.as_deref());
        let digest = digest::node_digest(content_crc, &stat);
        Znode { path, data, stat, acl, num_children: 0, content_crc, digest }
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
