//! A view of the tree at one zxid, made in microseconds and read by another thread.

use crate::{acl_table::AclId, table::SharedShard, tree::Tree, znode::Znode};
use alloc::collections::BTreeMap;
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
    shards: Vec<SharedShard>,
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
        iter::once_with(|| self.by_depth()).flatten()
    }

    /// A pointer to each znode would be much for a large tree. So the few depths where most znodes are go by the order
    /// of the table, once each; only what is at other depths is collected.
    fn by_depth(&self) -> impl Iterator<Item = &Znode> + use<'_> {
        let depths: Arc<[u16]> = self.all().map(short_depth).collect();
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        depths.iter().for_each(|depth| *counts.entry(*depth).or_default() += 1);
        let many = depths.len() / DEPTHS_BY_TABLE;
        let is_by_table = move |depth: u16, count: usize| depth < DEEP && count > many;
        let mut collected: BTreeMap<usize, Vec<&Znode>> = BTreeMap::new();
        for (node, short) in self.all().zip(&*depths) {
            if !is_by_table(*short, counts[short]) {
                collected.entry(depth(&node.path)).or_default().push(node);
            }
        }
        for (short, _) in counts.iter().filter(|(short, count)| is_by_table(**short, **count)) {
            collected.insert((*short).into(), Vec::new());
        }
        collected.into_iter().flat_map(move |(depth, nodes)| {
            let depths = depths.clone();
            let by_table = nodes.is_empty().then(|| {
                let here = move |at: &usize| usize::from(depths[*at]) == depth;
                self.all().enumerate().filter(move |(at, _)| here(at)).map(|(_, node)| node)
            });
            nodes.into_iter().chain(by_table.into_iter().flatten())
        })
    }

    fn all(&self) -> impl Iterator<Item = &Znode> + use<'_> {
        self.shards.iter().flat_map(|shard| shard.iter()).map(|node| &**node)
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
    if planted::is(Bug::AclsMixedUpInSnapshot)
        && let [.., (_, last), (_, before)] = &mut entries[..]
    {
        core::mem::swap(last, before);
    }
    entries
}

/// The number of depths at most that are found by going through the table.
const DEPTHS_BY_TABLE: usize = 8;
/// Stands for itself and all that is deeper.
const DEEP: u16 = u16::MAX;

fn short_depth(node: &Znode) -> u16 {
    u16::try_from(depth(&node.path)).unwrap_or(DEEP)
}

fn depth(path: &str) -> usize {
    if path == "/" { 0 } else { path.bytes().filter(|byte| *byte == b'/').count() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, format, string::String};
    use ostler_proto::{
        path,
        stat::{ExtendedTypes, StatPersisted},
    };

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

    #[test]
    fn depths_with_many_znodes_and_with_few_come_in_order() {
        let mut tree = Tree::fresh(ExtendedTypes::default());
        let mut put = |path: &str| {
            let stat = StatPersisted::default();
            tree.restore_node(path, None, stat, (-1, None)).unwrap();
        };
        put("/many");
        (0..100).for_each(|n| put(&format!("/many/{n}")));
        let mut deep = String::from("/many/7");
        for _ in 0..20 {
            deep.push_str("/x");
            put(&deep);
        }
        let frozen = tree.freeze();
        let depths: Vec<usize> = frozen.nodes().map(|node| depth(&node.path)).collect();
        assert!(depths.is_sorted(), "{depths:?}");
        let paths: BTreeSet<&str> = frozen.nodes().map(|node| &*node.path).collect();
        assert_eq!((paths.len(), depths.len()), (frozen.len(), frozen.len()));
    }
}
