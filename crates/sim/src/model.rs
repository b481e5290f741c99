//! A model of the tree: applies transactions as simply as possible, without the server's code.

use crate::reference::ZnodeState;
use ostler_proto::{
    acl::{Acl, Perms},
    id::{SessionId, Zxid},
    stat::Stat,
    txn::{CreateTxn, Txn, TxnHeader, TxnRecord},
};
use ostler_tree::{Change, Tree};
use std::{borrow::Cow, collections::BTreeMap};

/// The server's own znodes are below this path.
const OWN: &str = "/zookeeper";

/// A znode of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    data: Vec<u8>,
    acl: Vec<Acl>,
    czxid: Zxid,
    mzxid: Zxid,
    pzxid: Zxid,
    ctime: i64,
    mtime: i64,
    version: i32,
    aversion: i32,
    /// The number of children ever created.
    births: i32,
    owner: SessionId,
    children: i32,
}

/// All znodes that clients have made, and the sessions.
#[derive(Debug, Default)]
pub(crate) struct Model {
    nodes: BTreeMap<String, Node>,
    pub(crate) sessions: BTreeMap<SessionId, i32>,
}

/// A path whose znode has changed, and the change that watchers are notified of: `None` for an ACL.
pub(crate) type ModelChange = (String, Option<Change>);

pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

/// The number at the end of a sequential znode's path. No other path in the simulator ends with ten digits.
fn number_of(path: &str) -> Option<i32> {
    let digits = path.get(path.len().checked_sub(10)?..)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

impl Model {
    pub(crate) fn new() -> Model {
        let root = Node { children: 1, acl: vec![Acl::world(Perms::ALL)], ..Node::default() };
        Model { nodes: [("/".to_owned(), root)].into(), sessions: BTreeMap::new() }
    }

    /// Applies a committed transaction.
    pub(crate) fn apply(&mut self, record: &TxnRecord<'_>) -> Vec<ModelChange> {
        let mut happened = Vec::new();
        self.apply_txn(&record.header, &record.txn, &mut happened);
        happened
    }

    fn apply_txn(&mut self, header: &TxnHeader, txn: &Txn<'_>, happened: &mut Vec<ModelChange>) {
        match txn {
            Txn::CreateSession { timeout_ms } => {
                self.sessions.insert(header.session, *timeout_ms);
            }
            Txn::CloseSession(listed) => self.close_session(header, listed.as_deref(), happened),
            Txn::Create(create) => self.create(header, create, happened),
            Txn::Delete { path, .. } => self.delete(path, header.zxid, happened),
            Txn::SetData { path, data, version, .. } => {
                let Some(node) = self.nodes.get_mut(&**path) else { return };
                assert_eq!(*version, node.version + 1, "[versions] {path} at {}", header.zxid);
                node.data = data.unwrap_or_default().to_vec();
                (node.version, node.mzxid, node.mtime) = (*version, header.zxid, header.time_ms);
                happened.push((path.to_string(), Some(Change::DataChanged)));
            }
            Txn::SetAcl { path, acl, version } => {
                let Some(node) = self.nodes.get_mut(&**path) else { return };
                assert_eq!(*version, node.aversion + 1, "[versions] {path}'s ACL at {}", header.zxid);
                (node.acl, node.aversion) = (acl.to_vec(), *version);
                happened.push((path.to_string(), None));
            }
            Txn::Multi(txns) => {
                // A failed multi changes nothing.
                if !txns.iter().any(|txn| matches!(txn, Txn::Error(_))) {
                    txns.iter().for_each(|txn| self.apply_txn(header, txn, happened));
                }
            }
            Txn::Check { .. } | Txn::Error(_) => {}
        }
    }

    fn create(&mut self, header: &TxnHeader, create: &CreateTxn<'_>, happened: &mut Vec<ModelChange>) {
        let path = create.path.to_string();
        let above = self.nodes.get_mut(parent(&path));
        let above = above.unwrap_or_else(|| panic!("[history] {path} is created without a parent"));
        if let Some(number) = number_of(&path) {
            // As upstream: no number comes twice, and later ones are higher, even after deletions.
            assert_eq!(number, above.births, "[sequence] {path} does not count all children before it");
        }
        above.births += 1;
        above.children += 1;
        above.pzxid = header.zxid;
        assert_eq!(above.births, create.parent_cversion, "[versions] children of {path}'s parent");
        let node = Node {
            data: create.data.unwrap_or_default().to_vec(),
            acl: create.acl.to_vec(),
            czxid: header.zxid,
            mzxid: header.zxid,
            pzxid: header.zxid,
            ctime: header.time_ms,
            mtime: header.time_ms,
            owner: if create.ephemeral { header.session } else { SessionId::NONE },
            ..Node::default()
        };
        if create.ephemeral {
            assert!(
                self.sessions.contains_key(&header.session),
                "[ephemerals] {path} is created by a session that has ended"
            );
        }
        let before = self.nodes.insert(path.clone(), node);
        assert!(before.is_none(), "[history] {path} is created twice");
        happened.push((path, Some(Change::Created)));
    }

    fn delete(&mut self, path: &str, zxid: Zxid, happened: &mut Vec<ModelChange>) {
        let gone = self.nodes.remove(path).unwrap_or_else(|| panic!("[history] {path} is deleted twice"));
        assert_eq!(gone.children, 0, "[history] {path} is deleted, and has children");
        let above = self.nodes.get_mut(parent(path)).unwrap();
        above.children -= 1;
        above.pzxid = zxid;
        happened.push((path.to_owned(), Some(Change::Deleted)));
    }

    /// Deletes the session's ephemerals in the listed order, so that watchers get the events in the same order
    /// everywhere.
    fn close_session(
        &mut self,
        header: &TxnHeader,
        listed: Option<&[Cow<'_, str>]>,
        happened: &mut Vec<ModelChange>,
    ) {
        let own = self.nodes.iter().filter(|(_, node)| node.owner == header.session);
        let mut own: Vec<String> = own.map(|(path, _)| path.clone()).collect();
        let listed = listed.unwrap_or_default();
        own.sort_by_key(|path| listed.iter().position(|of| of == path).unwrap_or(listed.len()));
        for path in own {
            self.delete(&path, header.zxid, happened);
        }
        self.sessions.remove(&header.session);
    }

    /// The state of a znode that clients must see, if it exists.
    pub(crate) fn get(&self, path: &str) -> Option<ZnodeState> {
        let node = self.nodes.get(path)?;
        let stat = Stat {
            czxid: node.czxid,
            mzxid: node.mzxid,
            ctime: node.ctime,
            mtime: node.mtime,
            version: node.version,
            cversion: node.births * 2 - node.children,
            aversion: node.aversion,
            ephemeral_owner: node.owner.0,
            data_length: node.data.len() as i32,
            num_children: node.children,
            pzxid: node.pzxid,
        };
        Some(ZnodeState {
            data: node.data.clone(),
            acl: node.acl.clone(),
            stat,
            children: self.children(path),
        })
    }

    fn children(&self, path: &str) -> Vec<String> {
        let start = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let below = self.nodes.range(start.clone()..).map(|(path, _)| path);
        let below = below.take_while(|child| child.starts_with(&start)).map(|child| &child[start.len()..]);
        let mut names: Vec<String> =
            below.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect();
        if path == "/" {
            names.push(OWN[1..].to_owned());
            names.sort_unstable();
        }
        names
    }

    /// Asserts that a server's tree equals the model.
    pub(crate) fn assert_is(&self, who: i64, tree: &Tree) {
        for (path, node) in &self.nodes {
            let found = tree.get(path).unwrap_or_else(|| panic!("[tree] {who} has no {path}"));
            let seen = self.get(path).unwrap();
            assert_eq!(tree.stat(found), seen.stat, "[tree] {path} at {who}");
            assert_eq!(found.data.as_deref().unwrap_or_default(), seen.data, "[tree] {path} at {who}");
            let acl = tree.acl(found).map_or_else(|| vec![Acl::world(Perms::ALL)], |acl| acl.to_vec());
            assert_eq!(acl, seen.acl, "[acl] {path} at {who}");
            let owned = tree.ephemerals(node.owner).contains(path);
            assert_eq!(owned, node.owner != SessionId::NONE, "[ephemerals] {path} at {who}");
        }
        let own = 1 + tree.count_below(OWN);
        assert_eq!(
            tree.node_count(),
            self.nodes.len() + own,
            "[tree] {who} has znodes that no transaction created"
        );
        assert!(tree.sessions().eq(self.sessions.iter().map(|(id, ms)| (*id, *ms))), "[sessions] at {who}");
    }
}
