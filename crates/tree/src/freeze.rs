//! The frozen view: the tree at one zxid. It is made in microseconds and can be read by another thread.

use crate::{acl_table::AclId, table::SharedShard, tree::Tree, znode::Znode};
use alloc::collections::BTreeMap;
use alloc::{sync::Arc, vec::Vec};
use core::iter;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
};

/// The contents of a snapshot, exactly at one zxid.
#[derive(Debug)]
pub struct FrozenTree {
    /// The last transaction in the view.
    pub zxid: Zxid,
    /// The digest of the tree at that zxid.
    pub digest: u64,
    /// The sessions and their timeouts in ms, in the order of their ids.
    pub sessions: Vec<(SessionId, i32)>,
    /// The ACLs of the znodes.
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

    /// The znodes, parents before their children, as ZooKeeper's loader needs them. Within a depth their order depends
    /// on the history of the table, so two equal trees can have different orders.
    ///
    /// They are put in order with the first call of `next`, by the thread that calls it.
    pub fn nodes(&self) -> impl Iterator<Item = &Znode> {
        iter::once_with(|| self.by_depth()).flatten()
    }

    /// For a large tree, a pointer to each znode would take much memory. So the few depths with most of the znodes are
    /// read from the table, in one pass each. Only the znodes at other depths are collected.
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

    /// The number of znodes.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// Whether there are no znodes. Always false, since every tree has a root.
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

/// A depth is read from the table if it has more than one znode in this number. So there are at most this many passes.
const DEPTHS_BY_TABLE: usize = 8;
/// Stands for this depth and all deeper ones.
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
