//! The effects of each kind of record on a tree.
#![allow(clippy::unwrap_used)]

use ostler_proto::{
    acl::{Acl, Perms},
    error::ErrorCode,
    id::{SessionId, Zxid},
    stat::{EphemeralOwner, ExtendedTypes, Stat, StatPersisted},
    txn::{CreateTxn, DIGEST_VERSION, Txn, TxnCreateKind, TxnDigest, TxnHeader, TxnRecord},
};
use ostler_tree::{Change, Outcome, RestoreError, Tree, TreeEvent};

const ME: SessionId = SessionId(0x0100_0000_0000_0001);
const TYPES: ExtendedTypes = ExtendedTypes { enabled: true, emulate_353: false };

/// A tree with the events of its last transaction.
struct Applied {
    tree: Tree,
    zxid: u64,
    events: Vec<TreeEvent>,
}

fn create(path: &str) -> CreateTxn<'_> {
    let kind = TxnCreateKind::Create;
    let acl = Acl::world(Perms::ALL);
    CreateTxn {
        kind,
        path: path.into(),
        data: Some(b"four"),
        acl: vec![acl].into(),
        ephemeral: false,
        parent_cversion: -1,
    }
}

fn set_data(path: &str, data: &'static [u8], version: i32) -> Txn<'static> {
    Txn::SetData { reconfig: false, path: path.to_owned().into(), data: Some(data), version }
}

fn delete(path: &str) -> Txn<'static> {
    Txn::Delete { reaped: false, path: path.to_owned().into() }
}

fn failed(code: ErrorCode) -> Outcome {
    Outcome::Failed(code.code())
}

impl Applied {
    fn fresh() -> Applied {
        Applied { tree: Tree::fresh(TYPES), zxid: 0, events: Vec::new() }
    }

    fn with_digest(&mut self, txn: Txn<'_>, digest: Option<TxnDigest>) -> Outcome {
        self.zxid += 1;
        let (zxid, time_ms) = (Zxid(self.zxid), 1_000 + self.zxid as i64);
        let header = TxnHeader { session: ME, cxid: 1, zxid, time_ms, code: txn.code() };
        self.events.clear();
        self.tree.apply(&TxnRecord { header, txn, digest }, &mut self.events)
    }

    fn apply(&mut self, txn: Txn<'_>) -> Outcome {
        self.with_digest(txn, None)
    }

    fn create(&mut self, path: &str) -> Outcome {
        self.apply(Txn::Create(create(path)))
    }

    fn stat(&self, path: &str) -> Stat {
        self.tree.stat(self.tree.get(path).unwrap())
    }

    fn changes(&self) -> Vec<(&str, Change)> {
        self.events.iter().map(|event| (&*event.path, event.change)).collect()
    }

    fn children(&self, path: &str) -> Vec<String> {
        let mut children: Vec<String> = self.tree.children(path).map(Into::into).collect();
        children.sort_unstable();
        children
    }

    /// The digest is the sum over all znodes, whatever changes have led to them.
    fn check_digest(&self) {
        let mut again = Tree::empty(TYPES);
        let frozen = self.tree.freeze();
        let mut paths = vec!["/".to_owned()];
        while let Some(path) = paths.pop() {
            let node = self.tree.get(&path).unwrap();
            again.restore_node(&path, node.data.as_deref(), node.stat, (-1, None)).unwrap();
            let above = path.trim_end_matches('/').to_owned();
            let below = self.tree.children(&path).map(|name| format!("{above}/{name}"));
            paths.extend(below);
        }
        assert_eq!((again.digest(), again.data_size()), (self.tree.digest(), self.tree.data_size()));
        assert_eq!((again.node_count(), frozen.digest), (self.tree.node_count(), self.tree.digest()));
    }
}

#[test]
fn a_create_sets_the_stat_of_the_znode_and_changes_its_parent() {
    let mut applied = Applied::fresh();
    let Outcome::Created { path, kind, stat } = applied.create("/a") else { panic!("it is new") };
    assert_eq!((&*path, kind), ("/a", TxnCreateKind::Create));
    assert_eq!(stat, applied.stat("/a"));
    assert_eq!((stat.czxid, stat.mzxid, stat.pzxid), (Zxid(1), Zxid(1), Zxid(1)));
    assert_eq!((stat.ctime, stat.mtime, stat.version, stat.aversion), (1_001, 1_001, 0, 0));
    assert_eq!((stat.ephemeral_owner, stat.data_length, stat.num_children), (0, 4, 0));
    assert_eq!(applied.changes(), [("/a", Change::Created)]);
    let root = applied.stat("/");
    assert_eq!((root.cversion, root.pzxid, root.num_children), (0, Zxid(1), 2));
    assert_eq!(applied.children("/"), ["a", "zookeeper"]);
    assert_eq!(applied.tree.last_processed(), Zxid(1));
    applied.check_digest();
}

#[test]
fn a_create_without_a_parent_or_a_path_fails() {
    let mut applied = Applied::fresh();
    assert_eq!(applied.create("/a/b"), failed(ErrorCode::NoNode));
    assert_eq!(applied.create("a"), failed(ErrorCode::BadArguments));
    assert_eq!((applied.changes(), applied.tree.node_count()), (vec![], 4));
    assert_eq!(applied.tree.last_processed(), Zxid(2), "they have their places all the same");
}

/// Otherwise the root would be its own child, without end.
#[test]
fn a_znode_without_a_name_is_not_created_and_not_restored() {
    let mut applied = Applied::fresh();
    for path in ["//", "//a", "/zookeeper/"] {
        assert_eq!(applied.create(path), failed(ErrorCode::BadArguments));
        let stat = StatPersisted::default();
        let restored = applied.tree.restore_node(path, None, stat, (-1, None));
        assert_eq!(restored, Err(RestoreError::NoName { path: path.into() }));
    }
    assert_eq!(applied.tree.children("/").collect::<Vec<_>>(), ["zookeeper"]);
    applied.apply(delete("/"));
    assert!(applied.tree.get("/").is_none());
}

/// Such a record is in the range of a fuzzy snapshot. The parent's counters never go back.
#[test]
fn a_create_of_an_existing_znode_changes_its_acl_only() {
    let mut applied = Applied::fresh();
    let at = |cversion| CreateTxn { parent_cversion: cversion, ..create("/a") };
    applied.apply(Txn::Create(at(7)));
    let root = |applied: &Applied| {
        let stat = applied.tree.get("/").unwrap().stat;
        ({ stat.cversion }, { stat.pzxid })
    };
    assert_eq!(root(&applied), (7, Zxid(1)));
    let read = vec![Acl::world(Perms::READ)];
    let again = CreateTxn { acl: read.clone().into(), data: Some(b"other"), ..at(7) };
    assert_eq!(applied.apply(Txn::Create(again)), failed(ErrorCode::NodeExists));
    assert_eq!(root(&applied), (7, Zxid(1)), "it is no later than what is there");
    let node = applied.tree.get("/a").unwrap();
    assert_eq!(node.data.as_deref(), Some(&b"four"[..]));
    assert_eq!(applied.tree.acl(node).as_deref().map(|list| &**list), Some(&read[..]));
    assert_eq!((applied.changes(), applied.stat("/").num_children), (vec![], 2));
    assert_eq!(applied.apply(Txn::Create(at(9))), failed(ErrorCode::NodeExists));
    assert_eq!(root(&applied), (9, Zxid(3)));
    applied.check_digest();
}

#[test]
fn each_kind_of_znode_is_in_its_own_list_until_it_is_deleted() {
    let mut applied = Applied::fresh();
    for (path, kind, ephemeral) in [
        ("/e", TxnCreateKind::Create, true),
        ("/e2", TxnCreateKind::Create2, true),
        ("/c", TxnCreateKind::Container, false),
        ("/t", TxnCreateKind::Ttl(500), false),
        ("/p", TxnCreateKind::Create2, false),
    ] {
        applied.apply(Txn::Create(CreateTxn { kind, ephemeral, ..create(path) }));
    }
    let lists = |applied: &Applied| {
        let tree = &applied.tree;
        let text = |path: &arcstr::ArcStr| path.to_string();
        let ephemerals: Vec<String> = tree.ephemerals(ME).iter().map(Into::into).collect();
        let containers: Vec<String> = tree.containers_after("").map(text).collect();
        let ttls: Vec<String> = tree.ttls_after("").map(text).collect();
        assert_eq!(tree.ephemeral_count(), ephemerals.len());
        assert_eq!(tree.ephemerals_by_session().count(), usize::from(!ephemerals.is_empty()));
        (ephemerals.join(" "), containers.join(" "), ttls.join(" "))
    };
    assert_eq!(lists(&applied), ("/e /e2".into(), "/c".into(), "/t".into()));
    let owners = ["/e", "/c", "/t", "/p"].map(|path| applied.stat(path).ephemeral_owner);
    assert_eq!(owners, [ME.0, 0, 0, 0]);
    for path in ["/e", "/c", "/t", "/p"] {
        assert_eq!(applied.apply(delete(path)), Outcome::Deleted);
        assert_eq!(applied.changes(), [(path, Change::Deleted)]);
    }
    assert_eq!(lists(&applied), ("/e2".into(), "".into(), "".into()));
    applied.apply(delete("/e2"));
    assert_eq!(lists(&applied), ("".into(), "".into(), "".into()));
    applied.check_digest();
}

#[test]
fn a_delete_advances_the_pzxid_of_the_parent_also_if_the_znode_is_gone() {
    let mut applied = Applied::fresh();
    applied.create("/a");
    applied.create("/a/b");
    assert_eq!(applied.stat("/a").num_children, 1);
    assert_eq!(applied.apply(delete("/a/b")), Outcome::Deleted);
    let parent = applied.stat("/a");
    assert_eq!((parent.pzxid, parent.num_children, parent.cversion), (Zxid(3), 0, 2));
    assert_eq!(applied.apply(delete("/a/b")), failed(ErrorCode::NoNode));
    assert_eq!((applied.stat("/a").pzxid, applied.changes()), (Zxid(4), vec![]));
    applied.check_digest();
}

/// This happens only in a replay over a fuzzy snapshot, or over damaged files.
#[test]
fn a_delete_removes_all_znodes_below() {
    let mut applied = Applied::fresh();
    for path in ["/a", "/a/b", "/a/b/c", "/a/d"] {
        applied.apply(Txn::Create(CreateTxn { ephemeral: path.len() > 4, ..create(path) }));
    }
    assert_eq!(applied.tree.count_below("/a"), 3);
    applied.apply(delete("/a"));
    assert_eq!(applied.changes(), [("/a", Change::Deleted)]);
    assert_eq!((applied.tree.node_count(), applied.tree.ephemeral_count()), (4, 0));
    applied.check_digest();
}

#[test]
fn set_data_changes_data_version_mzxid_and_mtime_only() {
    let mut applied = Applied::fresh();
    applied.create("/a");
    let Outcome::DataSet(stat) = applied.apply(set_data("/a", b"seven 7", 5)) else { panic!("it is there") };
    assert_eq!(stat, applied.stat("/a"));
    assert_eq!((stat.czxid, stat.mzxid, stat.pzxid), (Zxid(1), Zxid(2), Zxid(1)));
    assert_eq!((stat.ctime, stat.mtime, stat.version, stat.data_length), (1_001, 1_002, 5, 7));
    assert_eq!(applied.changes(), [("/a", Change::DataChanged)]);
    assert_eq!(applied.apply(set_data("/b", b"", 1)), failed(ErrorCode::NoNode));
    applied.check_digest();
}

#[test]
fn events_after_a_set_acl_have_the_new_acl() {
    let mut applied = Applied::fresh();
    applied.create("/a");
    let acl = vec![Acl::world(Perms::READ)];
    let set = |path: &str| Txn::SetAcl { path: path.to_owned().into(), acl: acl.clone().into(), version: 3 };
    let Outcome::AclSet(stat) = applied.apply(set("/a")) else { panic!("it is there") };
    assert_eq!((stat.aversion, stat.mzxid, stat), (3, Zxid(1), applied.stat("/a")));
    assert_eq!(applied.changes(), []);
    assert_eq!(applied.apply(set("/b")), failed(ErrorCode::NoNode));
    applied.create("/a/b");
    assert_eq!(applied.events[0].parent_acl.as_deref().map(|list| &**list), Some(&acl[..]));
    assert!(applied.events[0].acl.is_none() && applied.events[0].zxid == Zxid(4));
    applied.apply(set_data("/a", b"", 1));
    assert_eq!(applied.events[0].acl.as_deref().map(|list| &**list), Some(&acl[..]));
    applied.apply(delete("/a/b"));
    assert_eq!(applied.events[0].parent_acl.as_deref().map(|list| &**list), Some(&acl[..]));
    applied.apply(delete("/a"));
    assert_eq!(applied.events[0].acl.as_deref().map(|list| &**list), Some(&acl[..]));
    applied.check_digest();
}

/// The listed znodes are deleted first, then all other ephemerals of the session.
#[test]
fn the_end_of_a_session_deletes_its_ephemerals() {
    let listed = |paths: &[&'static str]| Some(paths.iter().map(|path| (*path).into()).collect());
    for (paths, order) in [
        (listed(&["/f", "/e"]), ["/f", "/e", "/g"]),
        (listed(&["/gone", "/g"]), ["/g", "/e", "/f"]),
        (None, ["/e", "/f", "/g"]),
    ] {
        let mut applied = Applied::fresh();
        assert_eq!(applied.apply(Txn::CreateSession { timeout_ms: 4_000 }), Outcome::Session);
        assert!(applied.tree.sessions().eq([(ME, 4_000)]));
        for path in ["/e", "/f", "/g", "/p"] {
            applied.apply(Txn::Create(CreateTxn { ephemeral: path != "/p", ..create(path) }));
        }
        assert_eq!(applied.apply(Txn::CloseSession(paths)), Outcome::Session);
        assert_eq!(applied.changes(), order.map(|path| (path, Change::Deleted)));
        assert_eq!((applied.tree.session_count(), applied.tree.has_session(ME)), (0, false));
        assert_eq!(applied.children("/"), ["p", "zookeeper"]);
        applied.check_digest();
    }
}

#[test]
fn a_multi_applies_all_of_its_operations_or_none() {
    let mut applied = Applied::fresh();
    let check = Txn::Check { path: "/".into(), version: 0 };
    let done = vec![Txn::Create(create("/a")), check.clone(), set_data("/a", b"", 1), delete("/a")];
    let Outcome::Multi(outcomes) = applied.apply(Txn::Multi(done)) else { panic!("a multi") };
    let created = |outcome: &Outcome| matches!(outcome, Outcome::Created { .. });
    assert!(created(&outcomes[0]) && matches!(outcomes[2], Outcome::DataSet(_)));
    assert_eq!((&outcomes[1], &outcomes[3]), (&Outcome::Checked, &Outcome::Deleted));
    let changes = [("/a", Change::Created), ("/a", Change::DataChanged), ("/a", Change::Deleted)];
    assert_eq!(applied.changes(), changes);
    let no_node = ErrorCode::NoNode.code();
    let refused = vec![Txn::Create(create("/b")), Txn::Error(no_node), delete("/zookeeper"), Txn::Error(-3)];
    let inconsistent = failed(ErrorCode::RuntimeInconsistency);
    let expected = vec![Outcome::Failed(0), Outcome::Failed(no_node), inconsistent, Outcome::Failed(-3)];
    assert_eq!(applied.apply(Txn::Multi(refused)), Outcome::Multi(expected));
    assert_eq!((applied.changes(), applied.tree.node_count()), (vec![], 4));
    assert_eq!(applied.apply(Txn::Error(no_node)), Outcome::Failed(no_node));
}

#[test]
fn the_usage_of_a_quota_follows_the_znodes_below_it() {
    let mut applied = Applied::fresh();
    applied.create("/q");
    applied.create("/q/a");
    for path in ["/zookeeper/quota/q", "/zookeeper/quota/q/zookeeper_limits"] {
        applied.create(path);
    }
    assert_eq!(applied.tree.quota("/q/x").map(|(path, ..)| path), None, "usage is not counted yet");
    applied.create("/zookeeper/quota/q/zookeeper_stats");
    let usage = |applied: &Applied, path: &str| {
        let (limited, _, usage) = applied.tree.quota(path).unwrap();
        assert_eq!(limited, "/q");
        (usage.count, usage.bytes)
    };
    assert_eq!(usage(&applied, "/q/a/b"), (2, 8));
    applied.create("/q/b");
    assert_eq!(usage(&applied, "/q"), (3, 12));
    applied.apply(set_data("/q/b", b"eleven left", 1));
    assert_eq!(usage(&applied, "/q"), (3, 19));
    applied.apply(delete("/q/b"));
    assert_eq!(usage(&applied, "/q"), (2, 8));
    applied.create("/other");
    assert_eq!((usage(&applied, "/q"), applied.tree.quota("/other")), ((2, 8), None));
    applied.apply(delete("/zookeeper/quota/q/zookeeper_limits"));
    assert_eq!(applied.tree.quota("/q"), None);
    applied.check_digest();
}

fn restored(nodes: &[(&str, i64)], sessions: &[i64]) -> Tree {
    let mut tree = Tree::fresh(TYPES);
    for (path, owner) in nodes {
        let stat = StatPersisted { ephemeral_owner: EphemeralOwner(*owner), ..StatPersisted::default() };
        tree.restore_node(path, Some(b"four"), stat, (-1, None)).unwrap();
    }
    tree.finish_restore(Zxid(9), sessions.iter().map(|id| (SessionId(*id), 4_000)), None);
    tree
}

/// Java writes the ACLs of a snapshot before the znodes, so a list of a later transaction can be missing.
#[test]
fn a_znode_without_its_acl_is_closed_to_all_until_a_transaction_sets_it() {
    let mut tree = Tree::fresh(TYPES);
    let known = [Acl::world(Perms::READ)];
    for (path, acl) in [
        ("/known", (5, Some(&known[..]))),
        ("/created", (6, None)),
        ("/set", (7, None)),
        ("/deleted", (8, None)),
        ("/never", (9, None)),
    ] {
        tree.restore_node(path, Some(b"four"), StatPersisted::default(), acl).unwrap();
    }
    tree.finish_restore(Zxid(9), [], None);
    let mut applied = Applied { tree, zxid: 9, events: Vec::new() };
    let perms = |applied: &Applied, path| {
        let list = applied.tree.acl(applied.tree.get(path).unwrap());
        list.map(|list| (list.perms_of_everybody(), list.len()))
    };
    let nobody = Some((Perms(0), 1));
    assert_eq!(perms(&applied, "/known"), Some((Perms::READ, 1)));
    assert_eq!(["/created", "/set", "/deleted", "/never"].map(|path| perms(&applied, path)), [nobody; 4]);

    applied.create("/created");
    let acl = known.to_vec().into();
    applied.apply(Txn::SetAcl { path: "/set".into(), acl, version: 3 });
    applied.apply(delete("/deleted"));
    assert_eq!(perms(&applied, "/created"), None, "it is open");
    assert_eq!(perms(&applied, "/set"), Some((Perms::READ, 1)));
    assert_eq!(perms(&applied, "/never"), nobody);
    assert_eq!(applied.tree.take_znodes_without_acl(), ["/never"]);
    assert_eq!(applied.tree.take_znodes_without_acl(), [""; 0], "they are reported once");
}

#[test]
fn the_usage_of_a_quota_is_counted_again_after_a_restoration() {
    let quota = "/zookeeper/quota/q";
    let (limits, stats) = (format!("{quota}/zookeeper_limits"), format!("{quota}/zookeeper_stats"));
    let tree = restored(&[("/q", 0), ("/q/a", 0), (quota, 0), (&limits, 0), (&stats, 0), ("/o", 0)], &[]);
    let (limited, _, usage) = tree.quota("/q/b").unwrap();
    assert_eq!((limited, usage.count, usage.bytes), ("/q", 2, 8));
    assert_eq!(tree.quota("/o"), None);
}

#[test]
fn ephemerals_of_a_snapshot_without_a_session_are_dropped() {
    let nodes = [("/a", 1), ("/b", 2), ("/b2", 2), ("/c", 0), ("/d", 3)];
    let mut tree = restored(&nodes, &[1, 3]);
    let all = |tree: &Tree, after| {
        tree.ephemerals_after(after).map(|(session, path)| (session.0, path.into_owned())).collect::<Vec<_>>()
    };
    let listed = |nodes: &[(&str, i64)]| -> Vec<(i64, String)> {
        nodes.iter().filter(|(_, owner)| *owner > 0).map(|(path, owner)| (*owner, (*path).into())).collect()
    };
    assert_eq!(all(&tree, None), listed(&nodes));
    assert_eq!(all(&tree, Some((SessionId(2), "/b"))), listed(&nodes[2..]));
    assert_eq!(all(&tree, Some((SessionId(2), "/x"))), listed(&nodes[4..]));
    assert_eq!(tree.drop_orphaned_ephemerals(), ["/b", "/b2"]);
    assert_eq!(all(&tree, None), listed(&[nodes[0], nodes[4]]));
}

#[test]
fn a_digest_that_differs_is_counted_if_it_can_be_compared() {
    let mut applied = Applied::fresh();
    let digest = |tree| Some(TxnDigest { version: DIGEST_VERSION, tree });
    let before = applied.tree.digest();
    applied.with_digest(Txn::Error(-101), digest(before));
    assert_eq!(applied.tree.digest_mismatches(), 0);
    applied.with_digest(Txn::Error(-101), digest(before + 1));
    assert_eq!(applied.tree.digest_mismatches(), 1);
    applied.with_digest(Txn::Error(-101), Some(TxnDigest { version: DIGEST_VERSION + 1, tree: before + 1 }));
    assert_eq!(applied.tree.digest_mismatches(), 1, "another format");
    applied.tree.distrust_digests();
    applied.tree.trust_digests_after(Zxid(5));
    applied.tree.trust_digests_after(Zxid(4));
    for (zxid, mismatches) in [(4, 1), (5, 1), (6, 2)] {
        assert_eq!(applied.zxid + 1, zxid);
        applied.with_digest(Txn::Error(-101), digest(before + 1));
        assert_eq!(applied.tree.digest_mismatches(), mismatches, "{zxid}");
    }
}

#[test]
fn a_digest_of_every_128th_transaction_is_kept_and_of_them_the_last_1024() {
    let mut applied = Applied::fresh();
    applied.tree.distrust_digests();
    applied.tree.trust_digests_after(Zxid(128));
    for _ in 0..128 * 1027 {
        applied.apply(Txn::Error(-101));
    }
    let kept: Vec<u64> = applied.tree.digest_log().map(|entry| entry.zxid.0).collect();
    assert_eq!(kept, (4..=1027).map(|at| at * 128).collect::<Vec<u64>>());
    assert!(applied.tree.digest_log().all(|entry| entry.digest == applied.tree.digest()));
}

#[test]
fn a_configuration_is_shown_without_a_transaction() {
    let mut applied = Applied::fresh();
    applied.tree.show_config("server.1=a:1:2", Zxid(9), 77);
    let stat = applied.stat("/zookeeper/config");
    assert_eq!((stat.mzxid, stat.mtime, stat.version, stat.data_length), (Zxid(9), 77, -1, 14));
    assert_eq!(applied.tree.last_processed(), Zxid::ZERO);
    applied.check_digest();
}

/// The tree of ZooKeeper 3.4.
#[test]
fn a_configuration_is_shown_also_if_the_snapshot_has_no_znode_for_it() {
    let mut tree = Tree::fresh(TYPES);
    tree.show_config("server.1=a:1:2", Zxid(9), 77);
    let mut applied = Applied { tree: Tree::empty(TYPES), zxid: 0, events: Vec::new() };
    applied.tree.show_config("server.1=a:1:2", Zxid(9), 77);
    assert!(applied.tree.get("/zookeeper/config").is_none(), "there is no parent");
    for path in ["/", "/zookeeper", "/zookeeper/quota"] {
        applied.tree.restore_node(path, Some(b""), StatPersisted::default(), (-1, None)).unwrap();
    }
    applied.tree.show_config("server.1=a:1:2", Zxid(9), 77);
    assert_eq!(applied.children("/zookeeper"), ["config", "quota"]);
    for path in ["/zookeeper", "/zookeeper/config"] {
        assert_eq!(applied.stat(path), tree.stat(tree.get(path).unwrap()), "{path}");
    }
    let acl = applied.tree.acl(applied.tree.get("/zookeeper/config").unwrap());
    assert_eq!(acl.as_deref().map(|acl| &**acl), Some(&[Acl::world(Perms::READ)][..]));
    applied.check_digest();
}

/// Upstream sets the ACL of this znode when it creates the tree.
#[test]
fn the_znode_of_the_configuration_starts_with_aversion_minus_one() {
    let tree = Tree::fresh(TYPES);
    let stat = |path: &str| tree.get(path).unwrap().stat;
    assert_eq!(stat("/zookeeper/config").aversion, -1);
    for path in ["/", "/zookeeper", "/zookeeper/quota"] {
        assert_eq!(stat(path).aversion, 0, "{path}");
    }
}
