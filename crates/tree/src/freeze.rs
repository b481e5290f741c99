//! A view of the tree at one zxid, made in microseconds and read by another thread.

use crate::{acl_table::AclId, table::Shard, tree::Tree, znode::Znode};
use alloc::{sync::Arc, vec::Vec};
use core::iter;
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    planted::{self, Bug},
};

/// Everything that a snapshot holds, exact at one zxid.
#[derive(Debug)]
pub struct FrozenTree {
    /// The last transaction in it.
    pub zxid: Zxid,
    /// Digest of the tree at that zxid.
    pub digest: u64,
    /// Sessions and their timeouts in ms, in order of their ids.
    pub sessions: Vec<(SessionId, i32)>,
    /// The lists that the znodes refer to.
    pub acls: Vec<(AclId, Arc<[Acl]>)>,
    shards: Vec<Arc<Shard>>,
}

impl FrozenTree {
    pub(crate) fn of(tree: &Tree) -> FrozenTree {
        FrozenTree {
            zxid: tree.last_processed(),
            digest: tree.digest(),
            sessions: tree.sessions().collect(),
            acls: acl_entries(tree),
            shards: tree.table().share(),
        }
    }

    /// The znodes, parents before their children, as ZooKeeper's loader needs them. Within a depth they
    /// are ordered by shard, so equal trees give equal snapshots only up to insertion history.
    ///
    /// They are put in order when the first is asked for, by whoever asks.
    pub fn nodes(&self) -> impl Iterator<Item = &Znode> {
        iter::once_with(|| self.by_depth()).flatten().flatten()
    }

    fn by_depth(&self) -> Vec<Vec<&Znode>> {
        let all = || self.shards.iter().flat_map(|shard| shard.iter());
        let mut counts: Vec<usize> = Vec::new();
        for node in all() {
            let depth = depth(&node.path);
            if counts.len() <= depth {
                counts.resize(depth + 1, 0);
            }
            counts[depth] += 1;
        }
        let mut levels: Vec<Vec<&Znode>> = counts.iter().map(|count| Vec::with_capacity(*count)).collect();
        for node in all() {
            levels[depth(&node.path)].push(node);
        }
        levels
    }

    /// How many znodes.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// Whether there is none: never so, since every tree has a root.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn acl_entries(tree: &Tree) -> Vec<(AclId, Arc<[Acl]>)> {
    let mut entries = tree.acl_entries();
    if planted::is(Bug::AclMissingInSnapshot) && entries.len() > 2 {
        entries.pop();
    }
    entries
}

fn depth(path: &str) -> usize {
    if path == "/" { 0 } else { path.bytes().filter(|byte| *byte == b'/').count() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, string::String};
    use ostler_proto::{path, stat::ExtendedTypes};

    #[test]
    fn parents_come_before_children() {
        let tree = Tree::fresh(ExtendedTypes::default());
        let frozen = FrozenTree::of(&tree);
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for node in frozen.nodes() {
            if &*node.path != "/" {
                assert!(seen.contains(path::parent(&node.path).unwrap()));
            }
            seen.insert((*node.path).into());
        }
        assert_eq!(seen.len(), frozen.len());
        assert_eq!(seen.len(), 4);
    }
}
