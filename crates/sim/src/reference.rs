//! The reference history: every committed transaction, the tree that follows from it, and checks of what servers have.

use crate::{
    acl_checks::RequestedAcls,
    guarded::GuardedZnodes,
    history::History,
    marks::Marks,
    model::{Model, parent},
};
use ostler_proto::{
    acl::Acl,
    id::{Epoch, ServerId, SessionId, Zxid},
    membership::Membership,
    path,
    stat::{ExtendedTypes, Stat},
    txn::{Txn, TxnRecord},
};
use ostler_server_core::Record;
use ostler_tree::{Change, Tree};
use ostler_zab::Quorum;
use std::collections::{BTreeMap, BTreeSet};

/// A znode's state at one zxid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZnodeState {
    pub(crate) data: Vec<u8>,
    pub(crate) acl: Vec<Acl>,
    pub(crate) stat: Stat,
    pub(crate) children: Vec<String>,
}

/// A change of a znode that watchers are notified of.
#[derive(Debug)]
pub(crate) struct ZnodeChange {
    pub(crate) zxid: Zxid,
    pub(crate) path: String,
    pub(crate) change: Change,
}

/// The whole tree is compared with the model once in this many transactions.
const LOOK_EVERY: usize = 64;

type Sessions = Vec<(SessionId, i32)>;

/// The history as serving members have committed it, and the tree that follows from it.
pub(crate) struct ReferenceHistory {
    /// Every record that was ever proposed.
    proposed: BTreeMap<Zxid, Record>,
    history: History,
    committed: usize,
    /// The configuration in force.
    membership: Membership,
    /// The tree by the server's own code.
    tree: Tree,
    /// The tree by the model.
    pub(crate) model: Model,
    /// Digest and sessions of the tree after each transaction.
    trees: BTreeMap<Zxid, (u64, Sessions)>,
    leaders: BTreeMap<Epoch, (i64, u64)>,
    /// The committed history at the begin of each epoch.
    begun: BTreeMap<Epoch, History>,
    /// All states of every znode, with the zxids from which they hold; `None` while it does not exist.
    znodes: BTreeMap<String, Vec<(Zxid, Option<ZnodeState>)>>,
    /// All changes that watchers may be notified of, in order.
    changes: Vec<ZnodeChange>,
    requests: BTreeMap<Zxid, (SessionId, i32)>,
    pub(crate) asked: RequestedAcls,
    last_cxid: BTreeMap<SessionId, i32>,
    /// Sessions whose client begins its xids anew on each connection.
    restarting_xids: BTreeSet<SessionId>,
    pub(crate) marks: Marks,
    pub(crate) guarded: GuardedZnodes,
    /// Sessions that have ended; the value is true if a server ended them, not their client.
    pub(crate) ended: BTreeMap<SessionId, bool>,
}

impl ReferenceHistory {
    pub(crate) fn new(membership: Membership) -> ReferenceHistory {
        let tree = Tree::fresh(ExtendedTypes::default());
        let mut reference = ReferenceHistory {
            proposed: BTreeMap::new(),
            history: History::default(),
            committed: 0,
            membership,
            model: Model::new(),
            trees: BTreeMap::from([(Zxid::ZERO, (tree.digest(), Vec::new()))]),
            tree,
            leaders: BTreeMap::new(),
            begun: BTreeMap::new(),
            znodes: BTreeMap::new(),
            changes: Vec::new(),
            requests: BTreeMap::new(),
            asked: RequestedAcls::default(),
            last_cxid: BTreeMap::new(),
            restarting_xids: BTreeSet::new(),
            marks: Marks::default(),
            guarded: GuardedZnodes::default(),
            ended: BTreeMap::new(),
        };
        reference.look_at("/", Zxid::ZERO);
        reference
    }

    pub(crate) fn last(&self) -> Zxid {
        self.tree.last_processed()
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The configuration in force.
    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Whether the servers for which `of` is true are a quorum of the configuration in force.
    pub(crate) fn decides(&self, of: impl Fn(i64) -> bool) -> bool {
        Quorum::of(&self.membership).is_quorum(|ServerId(id)| of(id))
    }

    /// Whether these servers may commit a record. A reconfiguration also needs a quorum of the new configuration.
    pub(crate) fn decides_on(&self, record: &Record, of: impl Fn(i64) -> bool) -> bool {
        let next = new_membership(record);
        self.decides(&of) && next.is_none_or(|next| Quorum::of(&next).is_quorum(|ServerId(id)| of(id)))
    }

    /// The transactions of earlier epochs that were committed before this epoch, or the next known one, began. The
    /// begin of an epoch is noted late if its leader was paused, when later epochs have committed more.
    pub(crate) fn before(&self, epoch: Epoch) -> History {
        let then = self.begun.range(epoch..).next().map_or(&self.history, |(_, history)| history);
        then.upto(Zxid::new(epoch, 0))
    }

    pub(crate) fn len(&self) -> usize {
        self.committed
    }

    pub(crate) fn epochs(&self) -> usize {
        self.leaders.len()
    }

    pub(crate) fn record(&self, zxid: Zxid) -> Option<&Record> {
        self.proposed.get(&zxid).filter(|_| self.history.has(zxid))
    }

    /// Notes a logged record: no two transactions may have one zxid.
    pub(crate) fn propose(&mut self, zxid: Zxid, record: &Record) {
        let known = self.proposed.entry(zxid).or_insert_with(|| record.clone());
        assert_eq!(known, record, "[zxid order] two transactions have {zxid}");
    }

    pub(crate) fn proposal(&self, zxid: Zxid) -> Record {
        self.proposed[&zxid].clone()
    }

    /// Notes that a member leads an epoch. No other member may have led it. True if the epoch is new.
    pub(crate) fn note_leader(&mut self, epoch: Epoch, member: (i64, u64)) -> bool {
        let before = self.leaders.insert(epoch, member);
        assert!(before.is_none_or(|before| before == member), "[one leader] {epoch:?} has two leaders");
        if before.is_none() {
            self.begun.insert(epoch, self.history.clone());
        }
        before.is_none()
    }

    /// Adds a committed transaction to the history, and checks it.
    pub(crate) fn commit(&mut self, zxid: Zxid, record: &Record) {
        self.history.push(zxid);
        self.committed += 1;
        if let Some(membership) = new_membership(record) {
            self.membership = membership;
            let change = Change::DataChanged;
            self.changes.push(ZnodeChange { zxid, path: path::CONFIG.into(), change });
        }
        let read = TxnRecord::read(&record.0).unwrap();
        assert_eq!(read.header.zxid, zxid);
        self.tree.apply(&read, &mut Vec::new());
        assert_eq!(self.tree.digest_mismatches(), 0, "[digest] {zxid} does not give its leader's digest");
        let happened = self.model.apply(&read);
        let sessions = self.model.sessions.iter().map(|(id, ms)| (*id, *ms)).collect();
        self.trees.insert(zxid, (self.tree.digest(), sessions));
        for (path, change) in &happened {
            self.look_at(path, zxid);
            let Some(change) = change else { continue };
            self.changes.push(ZnodeChange { zxid, path: path.clone(), change: *change });
            if *change != Change::DataChanged {
                self.look_at(parent(path), zxid);
            }
        }
        if self.committed.is_multiple_of(LOOK_EVERY) {
            self.model.assert_is(0, &self.tree);
        }
        self.check_order(&read);
        self.asked.commit(&read);
        self.marks.commit(&read);
        self.guarded.commit(&read);
    }

    fn look_at(&mut self, path: &str, zxid: Zxid) {
        let seen = self.model.get(path);
        let times = self.znodes.entry(path.to_owned()).or_default();
        if times.last().is_some_and(|(at, _)| *at == zxid) {
            times.pop();
        }
        times.push((zxid, seen));
    }

    /// Checks that a session's writes happen in the order in which it sent them, each once, and none after its end.
    fn check_order(&mut self, record: &TxnRecord<'_>) {
        let (session, cxid) = (record.header.session, record.header.cxid);
        let failed = matches!(record.txn, Txn::Error(_));
        if session == SessionId::NONE {
            return;
        }
        if !failed {
            assert!(
                !self.ended.contains_key(&session),
                "[sessions] {} is of a session that has ended",
                record.header.zxid
            );
        }
        if matches!(record.txn, Txn::CloseSession(_)) {
            self.ended.insert(session, cxid == 0);
        }
        if cxid != 0 {
            let last = self.last_cxid.entry(session).or_default();
            assert!(
                failed || cxid > *last || self.restarting_xids.contains(&session),
                "[session order] request {cxid} of {session} happened after {last}"
            );
            *last = (*last).max(cxid);
            self.requests.insert(record.header.zxid, (session, cxid));
        }
    }

    /// Whether every transaction of a history is committed.
    pub(crate) fn has_all_of(&self, history: &History) -> bool {
        history.agrees(&self.history, history.last())
    }

    /// Whether a global session exists at a zxid.
    pub(crate) fn has_session(&self, session: SessionId, zxid: Zxid) -> bool {
        let sessions = self.trees.range(..=zxid).next_back().map(|(_, (_, sessions))| sessions);
        sessions.is_some_and(|sessions| sessions.iter().any(|(of, _)| *of == session))
    }

    /// Checks the tree of a member against the history.
    pub(crate) fn applied(&self, who: i64, tree: &Tree, history: &History) {
        let zxid = tree.last_processed();
        assert!(
            history.agrees(&self.history, zxid),
            "[zxid order] {who} has {history:?} at {zxid}, not {:?}",
            self.history
        );
        let (at, (digest, sessions)) = self.trees.range(..=zxid).next_back().unwrap();
        assert_eq!(tree.digest(), *digest, "[digest] {who} is at {zxid} with another tree than that of {at}");
        assert!(
            tree.sessions().eq(sessions.iter().copied()),
            "[sessions] {who} has other sessions at {zxid}"
        );
    }

    /// The session and the xid of a transaction's request.
    pub(crate) fn request_at(&self, zxid: Zxid) -> Option<(SessionId, i32)> {
        self.requests.get(&zxid).copied()
    }

    pub(crate) fn restarts_xids(&mut self, session: SessionId) {
        self.restarting_xids.insert(session);
    }

    pub(crate) fn at(&self, path: &str, zxid: Zxid) -> Option<&ZnodeState> {
        let times = self.znodes.get(path)?;
        let after = times.partition_point(|(at, _)| *at <= zxid);
        times[..after].last()?.1.as_ref()
    }

    /// The number of changes up to and including a transaction.
    pub(crate) fn changes_upto(&self, zxid: Zxid) -> usize {
        self.changes.partition_point(|changed| changed.zxid <= zxid)
    }

    pub(crate) fn changes(&self, from: usize, upto: usize) -> &[ZnodeChange] {
        self.changes.get(from..upto).unwrap_or_default()
    }

    pub(crate) fn changed_at(&self, path: &str, zxid: Zxid) -> bool {
        let from = self.changes.partition_point(|changed| changed.zxid < zxid);
        let mut here = self.changes[from..].iter().take_while(|changed| changed.zxid == zxid);
        here.any(|changed| changed.path == path || parent(&changed.path) == path)
    }
}

fn new_membership(record: &Record) -> Option<Membership> {
    match TxnRecord::read(&record.0).ok()?.txn {
        Txn::SetData { reconfig: true, data: Some(data), .. } => {
            Membership::parse(&String::from_utf8_lossy(data)).ok()
        }
        _ => None,
    }
}

pub(crate) fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}
