//! Counts and sizes of the znodes below a path, by prefix.

use crate::view::Printable;
use ostler_proto::path;
use ostler_tree::Tree;
use serde::Serialize;
use std::{cmp::Reverse, collections::BTreeMap, fmt};

/// The znodes at and below one path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PrefixSize {
    /// The path.
    pub path: String,
    /// The number of znodes, with the one at the path.
    pub znodes: u64,
    /// The number of ephemerals among them.
    pub ephemerals: u64,
    /// The size of their data in bytes.
    pub data_bytes: u64,
    /// The length of their paths in bytes.
    pub path_bytes: u64,
    /// The size of the largest data in bytes.
    pub largest_bytes: u64,
    /// The path of the znode with the largest data.
    pub largest_path: String,
}

impl PrefixSize {
    fn add(&mut self, path: &str, data_bytes: usize, is_ephemeral: bool) {
        let data_bytes = data_bytes as u64;
        self.znodes += 1;
        self.ephemerals += u64::from(is_ephemeral);
        self.data_bytes += data_bytes;
        self.path_bytes += path.len() as u64;
        if data_bytes > self.largest_bytes {
            self.largest_bytes = data_bytes;
            path.clone_into(&mut self.largest_path);
        }
    }
}

impl fmt::Display for PrefixSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>10} {:>14} {:>10} {:>12}  {}",
            self.znodes,
            self.data_bytes,
            self.ephemerals,
            self.largest_bytes,
            Printable(&self.path)
        )
    }
}

/// The heading of the columns of [`PrefixSize`] as text.
pub const HEADING: &str = "    znodes     data bytes ephemerals      largest  path";

/// Sizes of everything at and below `prefix`, for the prefix and for each path at most `depth` names below it, largest
/// data first. `None` if there is no znode at `prefix`.
pub fn sizes(tree: &Tree, prefix: &str, depth: usize) -> Option<Vec<PrefixSize>> {
    tree.get(prefix)?;
    let mut found: BTreeMap<&str, PrefixSize> = BTreeMap::new();
    let frozen = tree.freeze();
    for node in frozen.nodes().filter(|node| path::is_within(&node.path, prefix)) {
        let is_ephemeral = node.client_stat(tree.types()).ephemeral_owner != 0;
        for group in groups(&node.path, prefix, depth) {
            let size = found.entry(group).or_insert_with(|| PrefixSize {
                path: group.to_owned(),
                largest_path: group.to_owned(),
                ..PrefixSize::default()
            });
            size.add(&node.path, node.data_len(), is_ephemeral);
        }
    }
    let mut sizes: Vec<PrefixSize> = found.into_values().collect();
    sizes.sort_by(|a, b| {
        (Reverse(a.data_bytes), Reverse(a.znodes), &a.path).cmp(&(
            Reverse(b.data_bytes),
            Reverse(b.znodes),
            &b.path,
        ))
    });
    Some(sizes)
}

/// The paths that a znode counts for: the prefix, and those above or at the znode that are at most `depth` names below
/// the prefix.
fn groups<'a>(whole: &'a str, prefix: &'a str, depth: usize) -> impl Iterator<Item = &'a str> {
    let base = if prefix == "/" { 0 } else { prefix.len() };
    let rest = &whole[base.min(whole.len())..];
    let ends = rest.match_indices('/').map(|(at, _)| at).skip(1).chain([rest.len()]);
    let below = ends.take(depth).filter(move |end| *end > 1).map(move |end| &whole[..base + end]);
    std::iter::once(prefix).chain(below.filter(move |group| *group != prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::stat::{EphemeralOwner, StatPersisted};

    fn tree(nodes: &[(&str, usize, i64)]) -> Tree {
        let mut tree = Tree::empty(crate::view::TYPES);
        for (path, size, owner) in nodes {
            let stat = StatPersisted { ephemeral_owner: EphemeralOwner(*owner), ..StatPersisted::default() };
            tree.restore_node(path, Some(&vec![7; *size]), stat, (-1, None)).unwrap();
        }
        tree
    }

    #[test]
    fn a_znode_counts_for_each_prefix_up_to_the_depth() {
        let all = |path, prefix, depth| groups(path, prefix, depth).collect::<Vec<_>>();
        assert_eq!(all("/", "/", 2), ["/"]);
        assert_eq!(all("/a/b/c", "/", 2), ["/", "/a", "/a/b"]);
        assert_eq!(all("/a/b", "/", 2), ["/", "/a", "/a/b"]);
        assert_eq!(all("/a/b", "/", 0), ["/"]);
        assert_eq!(all("/a", "/a", 2), ["/a"]);
        assert_eq!(all("/a/b/c", "/a", 1), ["/a", "/a/b"]);
    }

    #[test]
    fn sizes_are_sums_with_the_largest_prefix_first() {
        let tree = tree(&[("/", 0, 0), ("/a", 1, 0), ("/a/x", 5, 7), ("/b", 9, 0), ("/ab", 1, 0)]);
        let found = sizes(&tree, "/", 1).unwrap();
        let short: Vec<_> = found.iter().map(|size| (&*size.path, size.znodes, size.data_bytes)).collect();
        assert_eq!(short, [("/", 5, 16), ("/b", 1, 9), ("/a", 2, 6), ("/ab", 1, 1)]);
        assert_eq!((found[2].ephemerals, found[2].largest_bytes, &*found[2].largest_path), (1, 5, "/a/x"));
        assert_eq!(sizes(&tree, "/a", 1).unwrap()[0].znodes, 2);
        assert_eq!(sizes(&tree, "/none", 1), None);
    }
}
