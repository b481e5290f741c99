//! A simple model of the tree: a sorted map that writes change one after another.

use super::stream::{Mode, Read, Write};
use ostler_proto::{
    error::ErrorCode,
    event::EventType,
    id::{SessionId, Zxid},
    reply::{Body, OpResult},
    shared::SharedBytes,
    stat::Stat,
    strings::SharedStrings,
};
use ostler_tree::Tree;
use std::{collections::BTreeMap, rc::Rc};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    data: Option<Vec<u8>>,
    czxid: Zxid,
    mzxid: Zxid,
    pzxid: Zxid,
    ctime: i64,
    mtime: i64,
    version: i32,
    aversion: i32,
    /// Children ever created.
    births: i32,
    owner: SessionId,
}

/// A change that watchers may hear of.
pub(super) type Event = (EventType, String);

/// The tree after one transaction.
#[derive(Debug, Clone)]
pub(super) struct Model {
    nodes: BTreeMap<Rc<str>, Rc<Node>>,
    /// Sessions and the timeouts that they were created with.
    pub(super) sessions: BTreeMap<SessionId, i32>,
}

/// The writer of a write, and its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp {
    pub(super) zxid: Zxid,
    pub(super) time_ms: i64,
    pub(super) session: SessionId,
}

pub(super) type Answer = Result<Body, ErrorCode>;

fn parent_of(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

impl Model {
    /// A fresh tree. Znodes below /zookeeper are not compared.
    pub(super) fn new() -> Model {
        let node = |births| Node {
            data: Some(Vec::new()),
            czxid: Zxid::ZERO,
            mzxid: Zxid::ZERO,
            pzxid: Zxid::ZERO,
            ctime: 0,
            mtime: 0,
            version: 0,
            aversion: 0,
            births,
            owner: SessionId::NONE,
        };
        let nodes = [("/".into(), Rc::new(node(0))), ("/zookeeper".into(), Rc::new(node(0)))];
        Model { nodes: nodes.into(), sessions: BTreeMap::new() }
    }

    pub(super) fn paths(&self) -> impl ExactSizeIterator<Item = &Rc<str>> {
        self.nodes.keys()
    }

    pub(super) fn version(&self, path: &str) -> Option<i32> {
        self.nodes.get(path).map(|node| node.version)
    }

    fn node(&self, path: &str) -> Result<&Node, ErrorCode> {
        self.nodes.get(path).map(|node| &**node).ok_or(ErrorCode::NoNode)
    }

    fn change(&mut self, path: &str, change: impl FnOnce(&mut Node)) {
        change(Rc::make_mut(self.nodes.get_mut(path).unwrap()));
    }

    fn names(&self, path: &str) -> Vec<&str> {
        let start = if path == "/" { "/".to_string() } else { format!("{path}/") };
        let below = self.nodes.range(Rc::from(&*start)..).map(|(path, _)| &**path);
        let below = below.take_while(|child| child.starts_with(&start)).map(|child| &child[start.len()..]);
        let mut names: Vec<&str> = below.filter(|name| !name.is_empty() && !name.contains('/')).collect();
        if path == "/zookeeper" {
            names.extend(["config", "quota"]);
            names.sort_unstable();
        }
        names
    }

    fn child_count(&self, path: &str) -> i32 {
        self.names(path).len() as i32
    }

    pub(super) fn stat(&self, path: &str) -> Option<Stat> {
        let node = self.nodes.get(path)?;
        let children = self.child_count(path);
        Some(Stat {
            czxid: node.czxid,
            mzxid: node.mzxid,
            ctime: node.ctime,
            mtime: node.mtime,
            version: node.version,
            cversion: node.births * 2 - children,
            aversion: node.aversion,
            ephemeral_owner: node.owner.0,
            data_length: node.data.as_ref().map_or(0, Vec::len) as i32,
            num_children: children,
            pzxid: node.pzxid,
        })
    }

    fn stat_of(&self, path: &str) -> Stat {
        self.stat(path).unwrap()
    }

    /// Applies a write, or finds out why it must fail; then nothing has changed.
    pub(super) fn write(&mut self, at: Stamp, write: &Write, events: &mut Vec<Event>) -> Answer {
        if let Write::Multi(writes) = write {
            return Ok(Body::Multi(self.multi(at, writes, events)));
        }
        self.single(at, write, events)
    }

    fn multi(&mut self, at: Stamp, writes: &[Write], events: &mut Vec<Event>) -> Vec<OpResult> {
        let (mut after, mut happened, mut results) = (self.clone(), Vec::new(), Vec::new());
        for (n, write) in writes.iter().enumerate() {
            match after.single(at, write, &mut happened) {
                Ok(body) => results.push(match (body, write) {
                    (Body::Path(path), _) => OpResult::Create(path),
                    (Body::PathStat(path, stat), _) => OpResult::Create2(path, stat),
                    (Body::Stat(stat), _) => OpResult::SetData(stat),
                    (_, Write::Delete { .. }) => OpResult::Delete,
                    _ => OpResult::Check,
                }),
                Err(error) => {
                    let rest = writes.len() - n - 1;
                    let undone = std::iter::repeat_n(OpResult::Error(0), n);
                    let failed = [OpResult::Error(error.code())];
                    let untried = OpResult::Error(ErrorCode::RuntimeInconsistency.code());
                    return undone.chain(failed).chain(std::iter::repeat_n(untried, rest)).collect();
                }
            }
        }
        *self = after;
        events.append(&mut happened);
        results
    }

    fn single(&mut self, at: Stamp, write: &Write, events: &mut Vec<Event>) -> Answer {
        match write {
            Write::Create { path, data, mode, with_stat } => {
                let path = self.create(at, path, data.as_deref(), *mode)?;
                events.push((EventType::NodeCreated, path.clone()));
                let stat = self.stat_of(&path);
                Ok(if *with_stat { Body::PathStat(path, stat) } else { Body::Path(path) })
            }
            Write::Delete { path, version } => {
                if path == "/" || path == "/zookeeper" {
                    return Err(ErrorCode::BadArguments);
                }
                self.node(parent_of(path))?;
                fits(self.node(path)?.version, *version)?;
                if self.child_count(path) > 0 {
                    return Err(ErrorCode::NotEmpty);
                }
                self.remove(at.zxid, path, events);
                Ok(Body::None)
            }
            Write::Set { path, data, version } => {
                fits(self.node(path)?.version, *version)?;
                self.change(path, |node| {
                    node.data = data.clone();
                    node.version += 1;
                    (node.mzxid, node.mtime) = (at.zxid, at.time_ms);
                });
                events.push((EventType::NodeDataChanged, path.clone()));
                Ok(Body::Stat(self.stat_of(path)))
            }
            Write::SetAcl { path, version } => {
                fits(self.node(path)?.aversion, *version)?;
                self.change(path, |node| node.aversion += 1);
                Ok(Body::Stat(self.stat_of(path)))
            }
            Write::Check { path, version } => {
                fits(self.node(path)?.version, *version)?;
                Ok(Body::None)
            }
            Write::Multi(_) => unreachable!("streams hold no multi inside a multi"),
        }
    }

    fn create(
        &mut self,
        at: Stamp,
        path: &str,
        data: Option<&[u8]>,
        mode: Mode,
    ) -> Result<String, ErrorCode> {
        let parent = self.node(parent_of(path))?;
        let path = if mode.sequential { format!("{path}{:010}", parent.births) } else { path.to_string() };
        if self.nodes.contains_key(&*path) {
            return Err(ErrorCode::NodeExists);
        }
        if parent.owner != SessionId::NONE {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        self.change(parent_of(&path), |parent| {
            parent.births += 1;
            parent.pzxid = at.zxid;
        });
        let node = Node {
            data: data.map(<[u8]>::to_vec),
            czxid: at.zxid,
            mzxid: at.zxid,
            pzxid: at.zxid,
            ctime: at.time_ms,
            mtime: at.time_ms,
            version: 0,
            aversion: 0,
            births: 0,
            owner: if mode.ephemeral { at.session } else { SessionId::NONE },
        };
        self.nodes.insert(path.as_str().into(), Rc::new(node));
        Ok(path)
    }

    fn remove(&mut self, zxid: Zxid, path: &str, events: &mut Vec<Event>) {
        self.nodes.remove(path);
        self.change(parent_of(path), |parent| parent.pzxid = zxid);
        events.push((EventType::NodeDeleted, path.into()));
    }

    pub(super) fn open_session(&mut self, session: SessionId, timeout_ms: i32) {
        let before = self.sessions.insert(session, timeout_ms);
        assert_eq!(before, None, "a session's id was given out twice");
    }

    /// The session's ephemerals go with it.
    pub(super) fn close_session(&mut self, zxid: Zxid, session: SessionId, events: &mut Vec<Event>) {
        let own = self.nodes.iter().filter(|(_, node)| node.owner == session);
        for path in own.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            self.remove(zxid, &path, events);
        }
        self.sessions.remove(&session).expect("a session ends once");
    }

    pub(super) fn read(&self, read: Read, path: &str) -> Answer {
        let stat = self.stat(path).ok_or(ErrorCode::NoNode)?;
        let names = || {
            let names = self.names(path);
            SharedStrings::encode(names.iter().map(|name| &**name))
        };
        Ok(match read {
            Read::Exists => Body::Stat(stat),
            Read::Data => Body::Data(self.nodes[path].data.as_deref().map(SharedBytes::from), stat),
            Read::Children => Body::Children(names()),
            Read::Children2 => Body::ChildrenStat(names(), stat),
        })
    }

    /// The event of a path that a client has missed when it comes back, if there is one.
    pub(super) fn missed(&self, path: &str, children: bool, seen: i64) -> Option<EventType> {
        let Some(node) = self.nodes.get(path) else { return Some(EventType::NodeDeleted) };
        match children {
            false => (node.mzxid.to_wire() > seen).then_some(EventType::NodeDataChanged),
            true => (node.pzxid.to_wire() > seen).then_some(EventType::NodeChildrenChanged),
        }
    }

    /// The whole tree is this one.
    pub(super) fn assert_is(&self, tree: &Tree) {
        for (path, node) in &self.nodes {
            let found = tree.get(path).unwrap_or_else(|| panic!("{path} is missing"));
            assert_eq!(Some(tree.stat(found)), self.stat(path), "{path}");
            assert_eq!(found.data.as_deref(), node.data.as_deref(), "{path}");
        }
        assert_eq!(tree.node_count(), self.nodes.len() + 2);
        assert_eq!(tree.sessions().collect::<BTreeMap<_, _>>(), self.sessions);
        let owned = self.nodes.values().filter(|node| node.owner != SessionId::NONE).count();
        assert_eq!(tree.ephemeral_count(), owned);
    }
}

fn fits(version: i32, expected: i32) -> Result<(), ErrorCode> {
    if expected == -1 || expected == version { Ok(()) } else { Err(ErrorCode::BadVersion) }
}
