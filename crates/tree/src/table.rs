//! The flat map from path to znode, split into shards that a frozen view shares.
//!
//! `freeze` copies 4,096 pointers. The first later change in a shard copies that shard's pointers
//! (`Arc::make_mut`), and the changed znode; everything else stays shared until the view is dropped.

use crate::znode::Znode;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use hashbrown::{HashTable, hash_table::Entry};
use rustc_hash::FxBuildHasher;
use triomphe::Arc;

const SHARDS: usize = 4096;

/// A znode that a frozen view may share. Its count takes eight bytes where std's takes sixteen.
pub type SharedZnode = Arc<Znode>;

type Shard = HashTable<SharedZnode>;
pub(crate) type SharedShard = Arc<Shard>;

/// Path to znode.
#[derive(Debug)]
pub struct ZnodeTable {
    shards: Vec<SharedShard>,
    len: usize,
}

pub(crate) fn hash(path: &str) -> u64 {
    FxBuildHasher.hash_one(path)
}

fn shard_of(hash: u64) -> usize {
    // The table inside a shard uses the lowest and the seven highest bits.
    (hash >> 40) as usize % SHARDS
}

impl Default for ZnodeTable {
    fn default() -> Self {
        let empty = Arc::new(Shard::new());
        ZnodeTable { shards: (0..SHARDS).map(|_| empty.clone()).collect(), len: 0 }
    }
}

impl ZnodeTable {
    /// Znodes in the table.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The znode at `path`.
    pub fn get(&self, path: &str) -> Option<&Znode> {
        let hash = hash(path);
        self.shards[shard_of(hash)].find(hash, |node| *node.path == *path).map(|node| &**node)
    }

    /// The znode at `path`, to be changed. A view that shares it keeps the old one.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Znode> {
        let hash = hash(path);
        let shard = &mut self.shards[shard_of(hash)];
        if !shard.is_unique() {
            // Looking first keeps a miss from copying a shared shard.
            shard.find(hash, |node| *node.path == *path)?;
        }
        let node = Arc::make_mut(shard).find_mut(hash, |node| *node.path == *path)?;
        Some(SharedZnode::make_mut(node))
    }

    /// Puts a znode in; returns what was at its path.
    pub fn insert(&mut self, node: SharedZnode) -> Option<SharedZnode> {
        let hash_value = hash(&node.path);
        let shard = Arc::make_mut(&mut self.shards[shard_of(hash_value)]);
        let entry = shard.entry(hash_value, |other| other.path == node.path, |other| hash(&other.path));
        match entry {
            Entry::Occupied(mut slot) => Some(core::mem::replace(slot.get_mut(), node)),
            Entry::Vacant(slot) => {
                slot.insert(node);
                self.len += 1;
                None
            }
        }
    }

    /// Takes the znode at `path` out.
    pub fn remove(&mut self, path: &str) -> Option<SharedZnode> {
        let hash = hash(path);
        let shard = &mut self.shards[shard_of(hash)];
        shard.find(hash, |node| *node.path == *path)?;
        let slot = Arc::make_mut(shard).find_entry(hash, |node| *node.path == *path).ok()?;
        self.len -= 1;
        Some(slot.remove().0)
    }

    /// The shards as they are now, shared.
    pub(crate) fn share(&self) -> Vec<SharedShard> {
        self.shards.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl_table::AclId;
    use alloc::format;
    use ostler_proto::stat::StatPersisted;

    fn node(path: &str) -> SharedZnode {
        SharedZnode::new(Znode::new(path.into(), None, StatPersisted::default(), AclId::OPEN))
    }

    #[test]
    fn a_shared_view_keeps_what_changes_afterwards() {
        let mut table = ZnodeTable::default();
        for n in 0..5000 {
            assert!(table.insert(node(&format!("/{n}"))).is_none());
        }
        let view = table.share();
        table.get_mut("/7").unwrap().stat.version = 9;
        table.remove("/8").unwrap();
        assert!(table.get_mut("/none").is_none() && table.remove("/none").is_none());
        let old = |path: &str| {
            let hash = hash(path);
            view[shard_of(hash)].find(hash, |node| *node.path == *path).unwrap().stat.version
        };
        assert_eq!((old("/7"), old("/8")), (0, 0));
        assert_eq!(
            (table.get("/7").unwrap().stat.version, table.get("/8").is_none(), table.len()),
            (9, true, 4999)
        );
    }
}
