//! The differences between two trees.

use crate::{
    error::Result,
    view::{AclView, Printable, StatView, acl_text},
};
use ostler_proto::path;
use ostler_tree::{AclRef, Tree, Znode};
use serde::Serialize;
use std::fmt;

/// A znode that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// How the second tree differs from the first.
    pub change: Change,
    /// The path of the znode.
    pub path: String,
    /// The size of the data in the first tree, in bytes; null if the znode is not there, or has null data.
    pub bytes_before: Option<usize>,
    /// The size of the data in the second tree.
    pub bytes_after: Option<usize>,
    /// Of a changed znode: each field that differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
}

/// How the second tree differs from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The znode is in the second tree only.
    Added,
    /// The znode is in the first tree only.
    Removed,
    /// The znode is in both, and differs.
    Changed,
}

/// A field of a znode with two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// The name: `data`, `acl`, or a field of the Stat.
    pub field: &'static str,
    /// The value in the first tree; of data only the size.
    pub before: String,
    /// The value in the second tree.
    pub after: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = Printable(&self.path);
        let bytes = |size: Option<usize>| size.map_or("null".to_owned(), |size| format!("{size} bytes"));
        match self.change {
            Change::Added => write!(f, "+ {path} {}", bytes(self.bytes_after)),
            Change::Removed => write!(f, "- {path} {}", bytes(self.bytes_before)),
            Change::Changed => {
                write!(f, "~ {path}")?;
                for (number, FieldChange { field, before, after }) in self.fields.iter().enumerate() {
                    let comma = if number == 0 { "" } else { "," };
                    write!(f, "{comma} {field} {} -> {}", Printable(before), Printable(after))?;
                }
                Ok(())
            }
        }
    }
}

/// The counts of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// The number of znodes that only the second tree has.
    pub added: u64,
    /// The number of znodes that only the first tree has.
    pub removed: u64,
    /// The number of znodes that differ.
    pub changed: u64,
    /// The number of znodes that are equal.
    pub equal: u64,
    /// The number of sessions that only one of the trees has, or with another timeout.
    pub sessions: u64,
}

impl Counts {
    /// Whether the trees are equal.
    pub fn is_equal(&self) -> bool {
        self.added + self.removed + self.changed + self.sessions == 0
    }
}

/// Compares two trees and passes on each znode that differs: those of the first tree, then those that only the second
/// one has, each by depth.
pub fn compare(
    before: &Tree,
    after: &Tree,
    prefix: &str,
    take: &mut dyn FnMut(Difference) -> Result<()>,
) -> Result<Counts> {
    let mut counts = Counts::default();
    let in_prefix = |node: &&Znode| path::is_within(&node.path, prefix);
    for node in before.freeze().nodes().filter(in_prefix) {
        match after.get(&node.path) {
            None => {
                counts.removed += 1;
                take(Difference::alone(Change::Removed, node))?;
            }
            Some(other) => {
                let fields = changes((before, node), (after, other));
                if fields.is_empty() {
                    counts.equal += 1;
                    continue;
                }
                counts.changed += 1;
                let bytes = |node: &Znode| node.data.as_ref().map(|data| data.len());
                take(Difference {
                    change: Change::Changed,
                    path: node.path.to_string(),
                    bytes_before: bytes(node),
                    bytes_after: bytes(other),
                    fields,
                })?;
            }
        }
    }
    for node in after.freeze().nodes().filter(in_prefix).filter(|node| before.get(&node.path).is_none()) {
        counts.added += 1;
        take(Difference::alone(Change::Added, node))?;
    }
    counts.sessions = other_sessions(before, after);
    Ok(counts)
}

impl Difference {
    fn alone(change: Change, node: &Znode) -> Difference {
        let bytes = node.data.as_ref().map(|data| data.len());
        let (bytes_before, bytes_after) = if change == Change::Added { (None, bytes) } else { (bytes, None) };
        Difference { change, path: node.path.to_string(), bytes_before, bytes_after, fields: Vec::new() }
    }
}

fn other_sessions(before: &Tree, after: &Tree) -> u64 {
    let lacking = |from: &Tree, to: &Tree| {
        let known: std::collections::HashMap<_, _> = to.sessions().collect();
        from.sessions().filter(|(id, _)| !known.contains_key(id)).count()
    };
    let known: std::collections::HashMap<_, _> = after.sessions().collect();
    let other = before.sessions().filter(|(id, timeout)| known.get(id).is_some_and(|found| found != timeout));
    (lacking(before, after) + lacking(after, before) + other.count()) as u64
}

fn changes((before, a): (&Tree, &Znode), (after, b): (&Tree, &Znode)) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let mut add = |field, before: String, after: String| {
        if before != after {
            changes.push(FieldChange { field, before, after });
        }
    };
    if a.data.as_deref() != b.data.as_deref() {
        let text = |node: &Znode| match &node.data {
            Some(data) => format!("{} bytes", data.len()),
            None => "null".to_owned(),
        };
        // Different data can have the same size.
        let (from, to) = (text(a), text(b));
        let to = if from == to { format!("other {to}") } else { to };
        add("data", from, to);
    }
    if a.stat != b.stat {
        let (a, b) = (StatView::of(&a.stat), StatView::of(&b.stat));
        add("version", a.version.to_string(), b.version.to_string());
        add("cversion", a.cversion.to_string(), b.cversion.to_string());
        add("aversion", a.aversion.to_string(), b.aversion.to_string());
        add("czxid", a.czxid.to_string(), b.czxid.to_string());
        add("mzxid", a.mzxid.to_string(), b.mzxid.to_string());
        add("pzxid", a.pzxid.to_string(), b.pzxid.to_string());
        add("ctime", a.ctime_ms.to_string(), b.ctime_ms.to_string());
        add("mtime", a.mtime_ms.to_string(), b.mtime_ms.to_string());
        add("owner", a.owner, b.owner);
    }
    let (a, b) = (before.acl(a), after.acl(b));
    if a.as_deref().map(|acl| &**acl) != b.as_deref().map(|acl| &**acl) {
        add("acl", acl_of(&a), acl_of(&b));
    }
    changes
}

fn acl_of(acl: &AclRef) -> String {
    match acl {
        None => "world:anyone:cdrwa".to_owned(),
        Some(acl) => acl_text(&AclView::list(acl)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::{
        acl::{Acl, Perms},
        id::SessionId,
        stat::StatPersisted,
    };

    fn tree(nodes: &[(&str, Option<&str>, i32)], sessions: &[(i64, i32)]) -> Tree {
        let mut tree = Tree::empty(crate::view::TYPES);
        for (path, data, version) in nodes {
            let stat = StatPersisted { version: *version, ..StatPersisted::default() };
            tree.restore_node(path, data.map(str::as_bytes), stat, (-1, None)).unwrap();
        }
        let sessions = sessions.iter().map(|(id, timeout)| (SessionId(*id), *timeout));
        tree.finish_restore(ostler_proto::id::Zxid(1), sessions, None);
        tree
    }

    fn lines(before: &Tree, after: &Tree, prefix: &str) -> (Vec<String>, Counts) {
        let mut lines = Vec::new();
        let counts = compare(before, after, prefix, &mut |difference| {
            lines.push(difference.to_string());
            Ok(())
        });
        (lines, counts.unwrap())
    }

    #[test]
    fn added_removed_and_changed_znodes_are_told_with_their_fields() {
        let before = tree(&[("/", None, 0), ("/a", Some("x"), 1), ("/b", Some("yy"), 0)], &[(1, 9), (2, 9)]);
        let after = tree(&[("/", None, 0), ("/a", Some("z"), 2), ("/c", None, 0)], &[(1, 8), (3, 9)]);
        let (found, counts) = lines(&before, &after, "/");
        assert_eq!(found.len(), 3);
        for expected in ["~ /a data 1 bytes -> other 1 bytes, version 1 -> 2", "- /b 2 bytes", "+ /c null"] {
            assert!(found.iter().any(|line| line == expected), "{expected}: {found:?}");
        }
        assert_eq!(counts, Counts { added: 1, removed: 1, changed: 1, equal: 1, sessions: 3 });
        assert_eq!(lines(&before, &after, "/b").0, ["- /b 2 bytes"]);
    }

    #[test]
    fn null_data_differ_from_empty_data_and_equal_trees_have_no_difference() {
        let (null, empty) = (tree(&[("/", None, 0)], &[]), tree(&[("/", Some(""), 0)], &[]));
        assert_eq!(lines(&null, &empty, "/").0, ["~ / data null -> 0 bytes"]);
        assert!(lines(&null, &null, "/").1.is_equal());
    }

    #[test]
    fn another_acl_is_a_difference() {
        let with = |acl: &[Acl]| {
            let mut tree = tree(&[("/", None, 0)], &[]);
            tree.restore_node("/a", None, StatPersisted::default(), (1, Some(acl))).unwrap();
            tree
        };
        let (before, after) = (with(&[Acl::world(Perms::ALL)]), with(&[Acl::world(Perms::READ)]));
        assert_eq!(lines(&before, &after, "/").0, ["~ /a acl world:anyone:cdrwa -> world:anyone:r"]);
    }
}
