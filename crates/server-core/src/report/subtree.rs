//! A walk through a znode and everything below it, in steps: the caller takes some znodes under the lock, lets others go on,
//! and continues behind them. Changes in between may or may not be seen; a znode that exists throughout is seen once. A
//! queue may grow faster than the walk goes on, so of each parent the walk goes no further than to the last name that was
//! there when it came.

use super::znodes::{Seen, ZnodeReader, ZnodeRefusal};
use crate::{requests::access, server::Server};
use alloc::{string::String, vec::Vec};
use core::cmp::Ordering;
use ostler_proto::{
    acl::Perms,
    id::{SessionId, Zxid},
    path,
    stat::NodeKind,
};
use ostler_tree::{AclList, Znode, sorted_strings::order};

/// Names that are taken from a parent at once.
const NAMES_AT_ONCE: usize = 128;
/// The bytes of a path whose look-up costs a step.
const PATH_BYTES: usize = 256;
/// Entries of an ACL that are looked at.
const ENTRIES_MAX: usize = 16;
/// The steps that the names of a short list cost, which is put in order each time.
const LIST_STEPS: usize = 64;

/// Whether a parent comes before its children, or after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkOrder {
    /// Parents first, to create.
    ParentsFirst,
    /// Children first, to delete.
    ChildrenFirst,
}

/// A znode of a walk.
#[derive(Debug, Clone)]
pub struct Visited {
    /// The path.
    pub path: String,
    /// The zxid of its create.
    pub czxid: Zxid,
    /// The zxid of the last change of its data.
    pub mzxid: Zxid,
    /// The version of its data.
    pub version: i32,
    /// The version of its ACL.
    pub aversion: i32,
    /// The bytes of its data.
    pub data_length: usize,
    /// The kind.
    pub kind: NodeKind,
    /// The permissions of the caller.
    pub granted: Perms,
    /// Whether the caller has DELETE at the parent.
    pub may_be_deleted: bool,
    /// Whether its children are not visited, because the caller may not read it.
    pub hides_children: bool,
    /// Whether its ACL has digests that the caller does not see, or is long and may have some.
    pub hides_digests: bool,
    /// The watchers of this path.
    pub watchers: usize,
}

impl Visited {
    /// The session of an ephemeral.
    pub fn owner(&self) -> Option<SessionId> {
        match self.kind {
            NodeKind::Ephemeral(session) => Some(session),
            _ => None,
        }
    }
}

/// A parent on the way down.
#[derive(Debug)]
struct Level {
    /// The length of its path in [`SubtreeWalk::path`].
    length: usize,
    /// The next names, the last one first.
    names: Vec<String>,
    /// The last name that was taken.
    last: String,
    /// The last name of all when there was more than could be taken at once.
    end: Option<String>,
    is_begun: bool,
    has_more: bool,
    may_delete_children: bool,
    /// Whether the caller has DELETE at the parent of this one.
    may_be_deleted: bool,
}

impl Level {
    /// Leaves out the names behind the end, which have come after the walk.
    fn end_at_last(&mut self) {
        let Some(end) = &self.end else { return };
        let kept = self.names.partition_point(|name| order(name, end) != Ordering::Greater);
        self.has_more &= kept == self.names.len();
        self.names.truncate(kept);
    }
}

/// The place of a walk. There is one path for all levels: paths may be long, and levels many.
#[derive(Debug)]
pub struct SubtreeWalk {
    order: WalkOrder,
    path: String,
    levels: Vec<Level>,
}

impl SubtreeWalk {
    /// Whether all znodes were visited.
    pub fn is_over(&self) -> bool {
        self.levels.is_empty()
    }
}

impl Server {
    /// Begins a walk at a znode, for a caller with READ there. With parents first the znode itself is the first.
    pub fn begin_walk(
        &self,
        reader: &ZnodeReader,
        top: &str,
        order: WalkOrder,
    ) -> Seen<(SubtreeWalk, Vec<Visited>)> {
        let node = self.seen(reader, top, Perms::READ)?;
        let may_be_deleted = self.may_be_deleted(reader, top);
        let mut walk = SubtreeWalk { order, path: top.into(), levels: Vec::new() };
        let mut visited = Vec::new();
        if order == WalkOrder::ParentsFirst {
            visited.push(self.visit(reader, node, may_be_deleted));
        }
        walk.levels.push(self.level(reader, node, may_be_deleted));
        Ok((walk, visited))
    }

    /// The number of znodes below a znode at any depth, for a caller with READ there, and the last transaction applied.
    pub fn count_below(&self, reader: &ZnodeReader, top: &str) -> Seen<(usize, Zxid)> {
        let node = self.seen(reader, top, Perms::READ)?;
        Ok((self.tree.count_below(&node.path), self.tree.last_processed()))
    }

    /// Goes on with a walk, and visits more znodes, until they are `max` or this has taken a number of steps. There may be
    /// none although the walk is not over.
    pub fn walk_on(&self, reader: &ZnodeReader, walk: &mut SubtreeWalk, max: usize) -> Vec<Visited> {
        let (mut visited, mut steps) = (Vec::new(), 0);
        while visited.len() < max && steps < max {
            steps += 1 + walk.path.len() / PATH_BYTES;
            let Some(level) = walk.levels.last_mut() else { break };
            walk.path.truncate(level.length);
            if level.names.is_empty() && level.has_more {
                steps += LIST_STEPS;
                let from = (&*level.last, level.is_begun);
                level.names = self.tree.children_from(&walk.path, from, NAMES_AT_ONCE);
                level.has_more = level.names.len() == NAMES_AT_ONCE;
                if level.has_more && level.end.is_none() {
                    level.end = self.tree.last_child(&walk.path);
                }
                level.end_at_last();
                level.names.reverse();
            }
            let Some(name) = level.names.pop() else {
                let may_be_deleted = level.may_be_deleted;
                walk.levels.pop();
                if walk.order == WalkOrder::ChildrenFirst
                    && let Some(node) = self.tree.get(&walk.path)
                {
                    visited.push(self.visit(reader, node, may_be_deleted));
                }
                continue;
            };
            if walk.path != "/" {
                walk.path.push('/');
            }
            walk.path.push_str(&name);
            (level.last, level.is_begun) = (name, true);
            let may_be_deleted = level.may_delete_children;
            let Some(node) = self.tree.get(&walk.path) else { continue };
            let goes_down = node.num_children > 0 && self.allows(reader, node, Perms::READ);
            if walk.order == WalkOrder::ParentsFirst || !goes_down {
                visited.push(self.visit(reader, node, may_be_deleted));
            }
            if goes_down {
                walk.levels.push(self.level(reader, node, may_be_deleted));
            }
        }
        visited
    }

    fn level(&self, reader: &ZnodeReader, node: &Znode, may_be_deleted: bool) -> Level {
        Level {
            length: node.path.len(),
            names: Vec::new(),
            last: String::new(),
            end: None,
            is_begun: false,
            has_more: true,
            may_delete_children: self.allows(reader, node, Perms::DELETE),
            may_be_deleted,
        }
    }

    fn visit(&self, reader: &ZnodeReader, node: &Znode, may_be_deleted: bool) -> Visited {
        let acl = self.tree.acl(node);
        let granted = self.granted(reader, &acl);
        let has_digests =
            |list: &AclList| list.len() > ENTRIES_MAX || list.iter().any(|entry| entry.id.scheme == "digest");
        Visited {
            path: (*node.path).into(),
            czxid: node.stat.czxid,
            mzxid: node.stat.mzxid,
            version: node.stat.version,
            aversion: node.stat.aversion,
            data_length: node.data_len(),
            kind: node.stat.ephemeral_owner.kind(self.tree.types()),
            granted,
            may_be_deleted: may_be_deleted && !path::is_special(&node.path),
            hides_children: node.num_children > 0 && !granted.any_of(Perms::READ),
            hides_digests: !granted.any_of(Perms::ADMIN) && acl.as_deref().is_some_and(has_digests),
            watchers: self.watches.watchers_at(&node.path),
        }
    }

    fn allows(&self, reader: &ZnodeReader, node: &Znode, needed: Perms) -> bool {
        access::allows(&self.config, &self.tree.acl(node), needed, &reader.ids, &self.work)
    }

    /// Of these paths the znodes that the caller may read now, if it could also find them from `top` on: it may read each
    /// parent between. For others `None`.
    pub fn readable_below(
        &self,
        reader: &ZnodeReader,
        top: &str,
        paths: &[&str],
    ) -> Seen<Vec<Option<Visited>>> {
        self.admits(reader)?;
        let mut last: Option<(&str, bool)> = None;
        let mut seen = Vec::with_capacity(paths.len());
        for wanted in paths {
            let parent = path::parent(wanted).filter(|_| *wanted != top);
            let can_be_found = match (parent, last) {
                (None, _) => true,
                (Some(parent), Some((known, is_open))) if parent == known => is_open,
                (Some(parent), _) => self.may_read_down(reader, top, parent),
            };
            last = parent.map(|parent| (parent, can_be_found)).or(last);
            let node = self.tree.get(wanted).filter(|_| can_be_found);
            let node = node.filter(|node| self.allows(reader, node, Perms::READ));
            seen.push(node.map(|node| self.visit(reader, node, false)));
        }
        Ok(seen)
    }

    /// Whether the caller may read a znode, and all above it up to `top`.
    fn may_read_down(&self, reader: &ZnodeReader, top: &str, path: &str) -> bool {
        let above = path::ancestors(path).take_while(|above| path::is_within(above, top));
        let mut all = core::iter::once(path).chain(above);
        all.all(|path| self.tree.get(path).is_some_and(|node| self.allows(reader, node, Perms::READ)))
    }

    /// Whether a caller may read the znode at a path or, if there is none, the nearest one above that exists.
    pub fn may_read_at_or_above(&self, reader: &ZnodeReader, path: &str) -> Seen<bool> {
        match self.seen(reader, path, Perms::READ) {
            Ok(_) => Ok(true),
            Err(ZnodeRefusal::NoNode { nearest }) => self.seen(reader, &nearest, Perms::READ).map(|_| false),
            Err(refused) => Err(refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::CoreConfig,
        input::{Mono, Now},
    };
    use alloc::{format, vec};
    use ostler_proto::{
        acl::{Acl, Id},
        stat::StatPersisted,
    };
    use ostler_tree::Tree;

    fn server(paths: &[&str], closed: &[&str]) -> Server {
        let mut tree = Tree::fresh(Default::default());
        for path in paths {
            let acl = [Acl { perms: Perms::ALL, id: Id::new("digest", "ann:h") }];
            let acl = if closed.contains(path) { (7, Some(&acl[..])) } else { (-1, None) };
            tree.restore_node(path, None, StatPersisted::default(), acl).unwrap();
        }
        Server::new(CoreConfig::default(), tree, 0, Now { mono: Mono(0), us: 0, wall_ms: 0 })
    }

    fn walked(server: &Server, ids: &[Id], order: WalkOrder, max: usize) -> Vec<(String, bool)> {
        let reader = ZnodeReader::new(ids);
        let (mut walk, mut all) = server.begin_walk(&reader, "/a", order).unwrap();
        while !walk.is_over() {
            all.extend(server.walk_on(&reader, &mut walk, max));
        }
        all.into_iter().map(|visited| (visited.path, visited.hides_children)).collect()
    }

    #[test]
    fn each_znode_is_visited_once_in_order_however_large_the_steps_are() {
        let many: Vec<String> = (0..1500).map(|n| format!("/a/m/{n:04}")).collect();
        let mut paths = vec!["/a", "/a/b", "/a/b/c", "/a/b/d", "/a/e", "/a/m", "/ab"];
        paths.extend(many.iter().map(|path| &**path));
        let server = server(&paths, &[]);
        for max in [1, 2, 7, 100, 10_000] {
            let down = walked(&server, &[], WalkOrder::ChildrenFirst, max);
            let up = walked(&server, &[], WalkOrder::ParentsFirst, max);
            assert_eq!((down.len(), up.len()), (1506, 1506));
            let begin: Vec<&str> = down.iter().take(4).map(|(path, _)| &**path).collect();
            assert_eq!(begin, ["/a/b/c", "/a/b/d", "/a/b", "/a/e"]);
            assert_eq!((&*down[1504].0, &*down[1505].0), ("/a/m", "/a"));
            let begin: Vec<&str> = up.iter().take(5).map(|(path, _)| &**path).collect();
            assert_eq!(begin, ["/a", "/a/b", "/a/b/c", "/a/b/d", "/a/e"]);
        }
    }

    /// Each step of the walk takes 200 names at most, and 500 come meanwhile.
    #[test]
    fn a_walk_through_a_queue_that_grows_ends() {
        let reader = ZnodeReader::new(&[]);
        for order in [WalkOrder::ParentsFirst, WalkOrder::ChildrenFirst] {
            let mut server = server(&["/a", "/a/q"], &[]);
            let mut length = 0;
            let mut grow = |server: &mut Server| {
                for _ in 0..500 {
                    length += 1;
                    let path = format!("/a/q/{length:010}");
                    server.tree.restore_node(&path, None, StatPersisted::default(), (-1, None)).unwrap();
                }
            };
            (0..6).for_each(|_| grow(&mut server));
            let (mut walk, mut all) = server.begin_walk(&reader, "/a", order).unwrap();
            let mut steps = 0;
            while !walk.is_over() {
                steps += 1;
                assert!(steps < 100, "the walk does not end: it has come to {:?}", all.last());
                all.extend(server.walk_on(&reader, &mut walk, 200));
                grow(&mut server);
            }
            let seen = |path: &str| all.iter().filter(|visited| visited.path == path).count();
            assert_eq!((seen("/a"), seen("/a/q"), seen("/a/q/0000003000")), (1, 1, 1));
        }
    }

    #[test]
    fn below_a_closed_znode_nothing_is_visited() {
        let server = server(&["/a", "/a/b", "/a/b/c", "/a/d"], &["/a/b"]);
        let seen = |ids: &[Id]| walked(&server, ids, WalkOrder::ChildrenFirst, 10);
        let path = |path: &str, hides| (String::from(path), hides);
        assert_eq!(seen(&[]), [path("/a/b", true), path("/a/d", false), path("/a", false)]);
        assert_eq!(seen(&[Id::new("digest", "ann:h")]).len(), 4);
    }

    #[test]
    fn what_cannot_be_found_from_the_top_is_not_readable_below_it() {
        let server = server(&["/a", "/a/b", "/a/b/c", "/a/d", "/a/d/e"], &["/a/b", "/a/d/e"]);
        let paths = ["/a", "/a/b", "/a/b/c", "/a/d", "/a/d/e", "/none"];
        let readable = |ids: &[Id], top: &str| -> Vec<bool> {
            let all = server.readable_below(&ZnodeReader::new(ids), top, &paths).unwrap();
            all.iter().map(Option::is_some).collect()
        };
        assert_eq!(readable(&[], "/"), [true, false, false, true, false, false]);
        assert_eq!(readable(&[Id::new("digest", "ann:h")], "/"), [true, true, true, true, true, false]);
    }
}
