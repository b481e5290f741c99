//! A view of all znodes for a search: no ACLs and sessions, and shard by shard, so that what was looked at is shared no
//! longer.
//!
//! The znodes have an order that depends on their paths alone, and not on the number of shards. So a search can go on in a
//! later view behind the znode at which it has stopped, and no znode that exists throughout is missed or found twice.

use crate::{
    table::{SHARDS_MAX, SharedShard, hash},
    tree::Tree,
    znode::Znode,
};
use alloc::vec::Vec;
use ostler_proto::id::Zxid;

const BITS: u32 = SHARDS_MAX.ilog2();

/// The place of a znode's shard in the order. Within a place, znodes are ordered by path.
pub fn place(path: &str) -> u16 {
    reversed((hash(path) >> 40) as usize & (SHARDS_MAX - 1), BITS) as u16
}

/// The number with its lowest `bits` in the other order. When the number of shards doubles, a shard becomes two, and in this
/// order they are neighbours.
fn reversed(number: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { number.reverse_bits() >> (usize::BITS - bits) }
}

/// A view of all znodes.
#[derive(Debug)]
pub struct Scan {
    /// The last transaction in the view.
    pub zxid: Zxid,
    /// In the order of the places; `None` for those that were taken.
    shards: Vec<Option<SharedShard>>,
    znodes: usize,
}

/// Some znodes of a view.
#[derive(Debug)]
pub struct ScanShard(SharedShard);

impl ScanShard {
    /// The znodes, in no order.
    pub fn znodes(&self) -> impl Iterator<Item = &Znode> {
        self.0.iter().map(|node| &**node)
    }
}

impl Scan {
    pub(crate) fn of(tree: &Tree) -> Scan {
        let table = tree.table().share();
        let bits = table.len().ilog2();
        let shards = (0..table.len()).map(|at| Some(table[reversed(at, bits)].clone())).collect();
        Scan { zxid: tree.last_processed(), shards, znodes: tree.node_count() }
    }

    /// Ends the view: nothing is shared any more.
    pub fn clear(&mut self) {
        self.shards.fill(None);
    }

    /// The number of znodes.
    pub fn znodes(&self) -> usize {
        self.znodes
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The shard with the znodes at a place.
    pub fn shard_of(&self, place: u16) -> usize {
        usize::from(place) * self.shards.len() / SHARDS_MAX
    }

    /// Takes a shard; `None` if it is taken already. The znodes of a later shard have later places.
    pub fn take(&mut self, shard: usize) -> Option<ScanShard> {
        self.shards.get_mut(shard)?.take().map(ScanShard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::String};
    use ostler_proto::stat::StatPersisted;

    fn tree(znodes: usize) -> Tree {
        let mut tree = Tree::fresh(Default::default());
        for n in 0..znodes {
            tree.restore_node(&format!("/{n}"), None, StatPersisted::default(), (-1, None)).unwrap();
        }
        tree
    }

    fn scanned(tree: &Tree) -> Vec<(u16, String)> {
        let (mut scan, mut all) = (tree.scan(), Vec::new());
        assert_eq!(scan.znodes(), tree.node_count());
        for at in 0..scan.shards() {
            let shard = scan.take(at).unwrap();
            let mut some: Vec<(u16, String)> =
                shard.znodes().map(|node| (place(&node.path), (*node.path).into())).collect();
            assert!(some.iter().all(|(place, _)| scan.shard_of(*place) == at));
            some.sort();
            all.extend(some);
            assert!(scan.take(at).is_none());
        }
        all
    }

    #[test]
    fn the_order_depends_on_the_paths_alone() {
        let (small, large) = (scanned(&tree(300)), scanned(&tree(200_000)));
        assert!(small.is_sorted() && large.is_sorted());
        assert_eq!((small.len(), large.len()), (304, 200_004));
        let mut both = large.clone();
        both.retain(|entry| small.contains(entry));
        assert_eq!(both, small);
    }

    #[test]
    fn a_view_does_not_change_with_the_tree() {
        let mut tree = tree(10);
        let mut scan = tree.scan();
        tree.restore_node("/new", None, StatPersisted::default(), (-1, None)).unwrap();
        let shard = scan.take(scan.shard_of(place("/new"))).unwrap();
        assert!(shard.znodes().all(|node| node.path != "/new"));
        scan.clear();
        assert!((0..scan.shards()).all(|at| scan.take(at).is_none()));
    }
}
