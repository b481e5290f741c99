//! The map from path to znode, split into shards that a frozen view shares.
//!
//! `freeze` copies a pointer for each shard, at most 4,096. The first later change in a shard copies that shard's
//! pointers and the changed znode (`Arc::make_mut`). Everything else stays shared until the view is dropped.

use crate::znode::Znode;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use hashbrown::{HashTable, hash_table::Entry};
use rustc_hash::FxBuildHasher;
use triomphe::Arc;

/// The lowest number of shards. Every number of shards is a power of two.
const SHARDS_MIN: usize = 16;
pub(crate) const SHARDS_MAX: usize = 4096;
/// The average number of znodes in a shard above which the number of shards doubles. That moves all znodes: at most
/// 65,536 pointers, in about a millisecond.
const SPLIT_ABOVE: usize = 32;

/// A znode that a frozen view can share. This `Arc` has a count of eight bytes, the one of std has sixteen.
pub type SharedZnode = Arc<Znode>;

type Shard = HashTable<SharedZnode>;
pub(crate) type SharedShard = Arc<Shard>;

/// The map from path to znode.
#[derive(Debug)]
pub struct ZnodeTable {
    shards: Vec<SharedShard>,
    len: usize,
}

pub(crate) fn hash(path: &str) -> u64 {
    FxBuildHasher.hash_one(path)
}

/// The index of a path's shard. `shards`, their number, must be a power of two.
fn shard_of(hash: u64, shards: usize) -> usize {
    // The table inside a shard uses the lowest and the seven highest bits.
    (hash >> 40) as usize & (shards - 1)
}

impl Default for ZnodeTable {
    fn default() -> Self {
        let empty = Arc::new(Shard::new());
        ZnodeTable { shards: alloc::vec![empty; SHARDS_MIN], len: 0 }
    }
}

impl ZnodeTable {
    /// The number of znodes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no znodes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The znode at `path`.
    pub fn get(&self, path: &str) -> Option<&Znode> {
        let hash = hash(path);
        self.shards[self.shard_of(hash)].find(hash, |node| *node.path == *path).map(|node| &**node)
    }

    /// The znode at `path` for a change. A view that shares it keeps the old one.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Znode> {
        let hash = hash(path);
        let at = self.shard_of(hash);
        let shard = &mut self.shards[at];
        if !shard.is_unique() {
            // If there is no such znode, the shared shard is not copied.
            shard.find(hash, |node| *node.path == *path)?;
        }
        let node = Arc::make_mut(shard).find_mut(hash, |node| *node.path == *path)?;
        Some(SharedZnode::make_mut(node))
    }

    /// Adds a znode. Returns the znode that was at its path before.
    pub fn insert(&mut self, node: SharedZnode) -> Option<SharedZnode> {
        if self.len == self.shards.len() * SPLIT_ABOVE && self.shards.len() < SHARDS_MAX {
            self.double();
        }
        let hash_value = hash(&node.path);
        let at = self.shard_of(hash_value);
        let shard = Arc::make_mut(&mut self.shards[at]);
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

    /// Removes and returns the znode at `path`.
    pub fn remove(&mut self, path: &str) -> Option<SharedZnode> {
        let hash = hash(path);
        let at = self.shard_of(hash);
        let shard = &mut self.shards[at];
        shard.find(hash, |node| *node.path == *path)?;
        let slot = Arc::make_mut(shard).find_entry(hash, |node| *node.path == *path).ok()?;
        self.len -= 1;
        Some(slot.remove().0)
    }

    fn shard_of(&self, hash: u64) -> usize {
        shard_of(hash, self.shards.len())
    }

    /// Doubles the number of shards. Views keep the old ones.
    fn double(&mut self) {
        let old = core::mem::take(&mut self.shards);
        let shards = old.len() * 2;
        let mut new = alloc::vec![Shard::new(); shards];
        let mut put = |node: SharedZnode| {
            let hash_value = hash(&node.path);
            new[shard_of(hash_value, shards)].insert_unique(hash_value, node, |other| hash(&other.path));
        };
        for shard in old {
            match Arc::try_unwrap(shard) {
                Ok(own) => own.into_iter().for_each(&mut put),
                Err(shared) => shared.iter().cloned().for_each(&mut put),
            }
        }
        self.shards = new.into_iter().map(Arc::new).collect();
    }

    /// The shards as they are now, shared with a view.
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

    /// A write copies a shared shard, so no shard may be much larger than the others.
    #[test]
    fn znodes_are_spread_over_all_shards() {
        let mut table = ZnodeTable::default();
        for n in 0..5000 {
            table.insert(node(&format!("/{n}")));
        }
        let view = table.share();
        let (most, even) = (view.iter().map(|shard| shard.len()).max().unwrap(), 5000 / view.len());
        assert!(most < 3 * even.max(10), "{most} of 5000 in one of {}", view.len());
    }

    #[test]
    fn a_view_keeps_the_old_znodes_when_the_table_changes() {
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
            view[shard_of(hash, view.len())].find(hash, |node| *node.path == *path).unwrap().stat.version
        };
        assert_eq!((old("/7"), old("/8")), (0, 0));
        assert_eq!(
            (table.get("/7").unwrap().stat.version, table.get("/8").is_none(), table.len()),
            (9, true, 4999)
        );
    }

    #[test]
    fn shards_double_up_to_the_limit_and_keep_all_znodes() {
        let mut table = ZnodeTable::default();
        let mut views = Vec::new();
        let count = SHARDS_MAX * SPLIT_ABOVE + 1;
        for n in 0..count {
            if n == table.shards.len() * SPLIT_ABOVE {
                views.push((n, table.share()));
            }
            table.insert(node(&format!("/{n}")));
        }
        assert_eq!((table.shards.len(), table.len()), (SHARDS_MAX, count));
        assert!((0..count).all(|n| table.get(&format!("/{n}")).is_some()));
        assert_eq!(views.len(), (SHARDS_MAX / SHARDS_MIN).ilog2() as usize + 1);
        for (len, view) in views {
            assert_eq!(view.iter().map(|shard| shard.len()).sum::<usize>(), len);
        }
    }
}
