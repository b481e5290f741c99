//! Applies records to the tree, at leaders, followers and in recovery. Transactions change the tree in no other way.

use crate::{
    acl_table::AclRef,
    digest::DigestEntry,
    quota::{self, QuotaNode},
    table::SharedZnode,
    tree::{Tree, has_no_empty_name},
    znode::Znode,
};
use alloc::{borrow::Cow, string::String, vec::Vec};
use arcstr::ArcStr;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    error::ErrorCode,
    id::{SessionId, Zxid},
    path,
    shared::SharedBytes,
    stat::{EphemeralOwner, Stat, StatPersisted},
    txn::{CreateTxn, DIGEST_VERSION, Txn, TxnCreateKind, TxnHeader, TxnRecord},
};

/// The outcome of an applied transaction, from which the reply to the client is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A session began or ended.
    Session,
    /// A znode was created.
    Created {
        /// The path of the znode.
        path: ArcStr,
        /// The kind of the create, which decides the form of the result in a multi's reply.
        kind: TxnCreateKind,
        /// The Stat of the znode.
        stat: Stat,
    },
    /// A znode was deleted.
    Deleted,
    /// setData: the new Stat.
    DataSet(Stat),
    /// setACL: the new Stat.
    AclSet(Stat),
    /// A check inside a multi that was successful.
    Checked,
    /// Nothing was done: the error code. In a failed multi it is 0 for the operations before the failed one.
    Failed(i32),
    /// The outcome of each operation of a multi.
    Multi(Vec<Outcome>),
}

/// The change of a znode, by which watches fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The znode was created, and so the parent's children changed.
    Created,
    /// The znode was deleted, and so the parent's children changed.
    Deleted,
    /// The znode has new data.
    DataChanged,
}

/// A change of the tree, for watches.
#[derive(Debug, Clone)]
pub struct TreeEvent {
    /// The path of the znode.
    pub path: ArcStr,
    /// The change.
    pub change: Change,
    /// The znode's ACL: only clients that may read the znode get its events.
    pub acl: AclRef,
    /// The parent's ACL, for events of the parent's children.
    pub parent_acl: AclRef,
    /// The zxid of the transaction.
    pub zxid: Zxid,
    /// The length of the znode's new data in bytes; 0 for a deleted znode.
    pub data_len: usize,
}

/// The digest of each transaction whose zxid is a multiple of this is logged.
const DIGEST_LOG_INTERVAL: u64 = 128;
/// The number of digests that are kept.
const DIGEST_LOG_LENGTH: usize = 1024;

impl Tree {
    /// Applies a record and appends its events in order. A record that does not fit the tree changes as much as it can,
    /// and its outcome is an error: the replay over a fuzzy snapshot of Java depends on that.
    pub fn apply(&mut self, record: &TxnRecord<'_>, events: &mut Vec<TreeEvent>) -> Outcome {
        let header = &record.header;
        let outcome = self.apply_txn(header, &record.txn, events);
        self.last_processed = self.last_processed.max(header.zxid);
        self.compare_digest(record);
        outcome
    }

    fn apply_txn(&mut self, header: &TxnHeader, txn: &Txn<'_>, events: &mut Vec<TreeEvent>) -> Outcome {
        match txn {
            Txn::CreateSession { timeout_ms } => {
                self.sessions.insert(header.session, *timeout_ms);
                Outcome::Session
            }
            Txn::CloseSession(paths) => {
                let listed = paths.as_deref().unwrap_or_default();
                self.close_session(header.session, listed, header.zxid, events);
                Outcome::Session
            }
            Txn::Create(create) => self.create(header, create, events),
            Txn::Delete { path, .. } => self.delete(path, header.zxid, events),
            Txn::SetData { path, data, version, .. } => self.set_data(header, path, *data, *version, events),
            Txn::SetAcl { path, acl, version } => self.set_acl(path, acl, *version),
            Txn::Check { .. } => Outcome::Checked,
            Txn::Error(code) => Outcome::Failed(*code),
            Txn::Multi(txns) => self.apply_multi(header, txns, events),
        }
    }

    /// Applies a multi. A failed multi is logged with the operations before the failure as if they were done. So if any
    /// of its operations is an error, none is applied.
    fn apply_multi(&mut self, header: &TxnHeader, txns: &[Txn<'_>], events: &mut Vec<TreeEvent>) -> Outcome {
        if planted::is(Bug::FailedMultiHalfDone)
            && let Some(first @ (Txn::Create(_) | Txn::SetData { .. })) = txns.first()
            && txns.len() > 1
            && txns.iter().any(|txn| matches!(txn, Txn::Error(_)))
        {
            self.apply_txn(header, first, events);
        }
        if !txns.iter().any(|txn| matches!(txn, Txn::Error(_))) {
            return Outcome::Multi(txns.iter().map(|txn| self.apply_txn(header, txn, events)).collect());
        }
        let mut failed = false;
        let outcomes = txns.iter().map(|txn| match txn {
            Txn::Error(code) => {
                failed = true;
                Outcome::Failed(*code)
            }
            _ if failed => Outcome::Failed(ErrorCode::RuntimeInconsistency.code()),
            _ => Outcome::Failed(0),
        });
        Outcome::Multi(outcomes.collect())
    }

    fn create(&mut self, header: &TxnHeader, create: &CreateTxn<'_>, events: &mut Vec<TreeEvent>) -> Outcome {
        let Some(parent_path) = path::parent(&create.path) else {
            return Outcome::Failed(ErrorCode::BadArguments.code());
        };
        if !has_no_empty_name(&create.path) {
            return Outcome::Failed(ErrorCode::BadArguments.code());
        }
        let is_new = self.table.get(&create.path).is_none();
        let Some(parent) = self.table.get_mut(parent_path) else {
            return Outcome::Failed(ErrorCode::NoNode.code());
        };
        let parent_acl = self.acls.get(parent.acl);
        let cversion = match create.parent_cversion {
            -1 => parent.stat.cversion.wrapping_add(1),
            given => given,
        };
        let before = parent.digest();
        parent.change_stat(|stat| advance_children(stat, cversion, header.zxid));
        self.digest = self.digest.wrapping_sub(before.into()).wrapping_add(parent.digest().into());
        let path: ArcStr = (&*create.path).into();
        if is_new {
            parent.num_children += 1;
            let bytes = create.data.map_or(0, <[u8]>::len);
            self.child_index.insert(&parent.path, path.clone(), bytes);
        }
        let acl = self.acls.acquire(&create.acl);
        if !is_new {
            // Replay over a fuzzy snapshot: the znode stays, but gets the ACL of the transaction. So it never refers to
            // a list that the snapshot does not have (ZOOKEEPER-4846).
            let old = self.change(&create.path, |node| core::mem::replace(&mut node.acl, acl));
            old.into_iter().for_each(|old| self.acls.release(old));
            return Outcome::Failed(ErrorCode::NodeExists.code());
        }
        let owner = match create.kind {
            TxnCreateKind::Container => EphemeralOwner::CONTAINER,
            TxnCreateKind::Ttl(ttl_ms) => EphemeralOwner::ttl(ttl_ms),
            _ if create.ephemeral => EphemeralOwner(header.session.0),
            _ => EphemeralOwner::NONE,
        };
        let stat = StatPersisted::created(header.zxid, header.time_ms, owner);
        let node = Znode::new(path.clone(), create.data.map(SharedBytes::from), stat, acl);
        let client_stat = node.client_stat(self.types);
        let data_len = node.data_len();
        self.put_attached(SharedZnode::new(node));
        match quota::classify(&path) {
            Some(QuotaNode::Limits(limited)) => self.quotas.insert(limited),
            Some(QuotaNode::Stats(limited)) => self.recount_usage(limited),
            None => {}
        }
        self.count_usage(&path, 1, data_len as i64);
        let acl = self.acls.get(acl);
        events.push(TreeEvent {
            path: path.clone(),
            change: Change::Created,
            acl,
            parent_acl,
            zxid: header.zxid,
            data_len,
        });
        Outcome::Created { path, kind: create.kind, stat: client_stat }
    }

    pub(crate) fn delete(&mut self, path: &str, zxid: Zxid, events: &mut Vec<TreeEvent>) -> Outcome {
        // The parent's pzxid advances even if the child is deleted already.
        if let Some(parent) = path::parent(path) {
            self.change_stat(parent, |parent| parent.pzxid = parent.pzxid.max(zxid));
        }
        let Some(node) = self.remove_subtree(path) else {
            return Outcome::Failed(ErrorCode::NoNode.code());
        };
        let parent = path::parent(path).and_then(|parent| self.table.get(parent));
        let parent_acl = parent.and_then(|parent| self.acls.get(parent.acl));
        let acl = self.acls.get(node.acl);
        self.acls.release(node.acl);
        events.push(TreeEvent {
            path: node.path.clone(),
            change: Change::Deleted,
            acl,
            parent_acl,
            zxid,
            data_len: 0,
        });
        Outcome::Deleted
    }

    /// Removes a znode with everything below it. A deleted znode has children only in a replay over a fuzzy snapshot of
    /// Java, or over damaged files.
    fn remove_subtree(&mut self, path: &str) -> Option<SharedZnode> {
        let mut below: Vec<String> = self.paths_of_children(path).collect();
        let mut at = 0;
        while at < below.len() {
            let children: Vec<String> = self.paths_of_children(&below[at]).collect();
            below.extend(children);
            at += 1;
        }
        for path in below.iter().rev() {
            if let Some(node) = self.remove_one(path) {
                self.acls.release(node.acl);
            }
        }
        self.remove_one(path)
    }

    /// Removes a znode from the table and from every index. The caller releases its ACL.
    fn remove_one(&mut self, path: &str) -> Option<SharedZnode> {
        let node = self.table.remove(path)?;
        self.digest = self.digest.wrapping_sub(u64::from(node.digest()));
        self.data_size -= (node.path.len() + node.data_len()) as i64;
        if let Some(parent) = path::parent(path) {
            self.child_index.remove(parent, path, node.data_len());
            if let Some(parent) = self.table.get_mut(parent) {
                parent.num_children -= 1;
            }
        }
        self.forget_owner(&node);
        if let Some(QuotaNode::Limits(limited)) = quota::classify(path) {
            self.quotas.remove(limited);
        }
        self.count_usage(path, -1, -(node.data_len() as i64));
        Some(node)
    }

    fn forget_owner(&mut self, node: &Znode) {
        use ostler_proto::stat::NodeKind;
        match node.stat.ephemeral_owner.kind(self.types) {
            NodeKind::Persistent => {}
            NodeKind::Container => {
                self.containers.remove(&node.path);
            }
            NodeKind::Ttl(_) => {
                self.ttls.remove(&node.path);
            }
            NodeKind::Ephemeral(session) => {
                if let Some(paths) = self.ephemerals.get_mut(&session) {
                    paths.remove(&node.path);
                    if paths.is_empty() {
                        self.ephemerals.remove(&session);
                    }
                }
            }
        }
    }

    fn set_data(
        &mut self,
        header: &TxnHeader,
        path: &str,
        data: Option<&[u8]>,
        version: i32,
        events: &mut Vec<TreeEvent>,
    ) -> Outcome {
        let types = self.types;
        let changed = self.change(path, |node| {
            let old_len = node.data_len() as i64;
            node.set_data(data);
            node.stat.mtime = header.time_ms;
            node.stat.mzxid = header.zxid;
            node.stat.version = version;
            (node.path.clone(), node.acl, node.client_stat(types), node.data_len() as i64 - old_len)
        });
        let Some((path, acl, stat, grown)) = changed else {
            return Outcome::Failed(ErrorCode::NoNode.code());
        };
        self.count_usage(&path, 0, grown);
        let acl = self.acls.get(acl);
        events.push(TreeEvent {
            path,
            change: Change::DataChanged,
            acl,
            parent_acl: None,
            zxid: header.zxid,
            data_len: data.map_or(0, <[u8]>::len),
        });
        Outcome::DataSet(stat)
    }

    /// Shows a configuration in `/zookeeper/config`, without a transaction: each server does so on its own. Data of
    /// ZooKeeper 3.4 do not have that znode. It is made then, as Java does.
    pub fn show_config(&mut self, text: &str, version: Zxid, time_ms: i64) {
        self.add_missing_config();
        self.change(path::CONFIG, |node| {
            node.set_data(Some(text.as_bytes()));
            node.stat.mtime = time_ms;
            node.stat.mzxid = version;
            node.stat.version = -1;
        });
    }

    fn set_acl(&mut self, path: &str, acl: &[ostler_proto::acl::Acl], version: i32) -> Outcome {
        if self.table.get(path).is_none() {
            return Outcome::Failed(ErrorCode::NoNode.code());
        }
        let (types, acl) = (self.types, self.acls.acquire(acl));
        let changed = self.change(path, |node| {
            node.stat.aversion = version;
            (core::mem::replace(&mut node.acl, acl), node.client_stat(types))
        });
        let (old, stat) = changed.expect("the znode was found above");
        self.acls.release(old);
        Outcome::AclSet(stat)
    }

    /// Deletes the listed znodes, then all other ephemerals of the session.
    fn close_session(
        &mut self,
        session: SessionId,
        listed: &[Cow<'_, str>],
        zxid: Zxid,
        events: &mut Vec<TreeEvent>,
    ) {
        // Removed as a whole, since otherwise each path would be searched in it.
        let own = self.ephemerals.remove(&session).unwrap_or_default();
        let spared = planted::is(Bug::EphemeralsLeft).then(|| own.iter().last()).flatten();
        if let Some(path) = &spared {
            self.ephemerals.entry(session).or_default().insert(path);
        }
        let is_spared = |path: &str| spared.as_deref() == Some(path);
        for path in listed.iter().filter(|path| !is_spared(path)) {
            self.delete(path, zxid, events);
        }
        if !own.iter().eq(listed.iter().map(|path| &**path)) {
            for path in own.iter().filter(|path| !is_spared(path)) {
                let node = self.table.get(&path);
                if node.is_some_and(|node| { node.stat.ephemeral_owner } == EphemeralOwner(session.0)) {
                    self.delete(&path, zxid, events);
                }
            }
        }
        self.sessions.remove(&session);
    }

    fn compare_digest(&mut self, record: &TxnRecord<'_>) {
        let zxid = record.header.zxid;
        // Within the range of a fuzzy snapshot the tree is in a state that never existed.
        if zxid.0.is_multiple_of(DIGEST_LOG_INTERVAL) && zxid > self.digest_trusted_after {
            if self.digest_log.len() == DIGEST_LOG_LENGTH {
                self.digest_log.pop_front();
            }
            self.digest_log.push_back(DigestEntry { zxid, digest: self.digest });
        }
        if let Some(digest) = record.digest
            && digest.version == DIGEST_VERSION
            && zxid > self.digest_trusted_after
            && digest.tree != self.digest
        {
            self.digest_mismatches += 1;
        }
    }
}

/// Updates a parent's Stat after a create: cversion and pzxid advance together, and never go back.
pub(crate) fn advance_children(stat: &mut StatPersisted, cversion: i32, zxid: Zxid) {
    if cversion > stat.cversion {
        stat.cversion = cversion;
        stat.pzxid = zxid;
    }
}
