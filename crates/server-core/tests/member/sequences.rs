//! T2: who gets which name.

use crate::{
    member::Member,
    said,
    wire::{create, delete, multi},
};
use ostler_proto::{
    acl::{Acl, Perms},
    error::ErrorCode,
    id::{SessionId, Zxid},
    reply::Body,
    stat::ExtendedTypes,
    txn::{CreateTxn, Txn, TxnCreateKind, TxnHeader, TxnRecord},
};
use ostler_server_core::CoreConfig;
use ostler_tree::Tree;
use std::collections::BTreeSet;

#[test]
fn t2_every_sequential_creator_gets_its_own_number() {
    let mut m = Member::new();
    let clients: Vec<_> = (0..20).map(|_| m.join()).collect();
    m.ask(clients[0], create("/q")).unwrap();
    for _ in 0..5 {
        for client in &clients {
            m.send(*client, create("/q/n-").sequential());
        }
    }
    m.flush();
    let mut names = BTreeSet::new();
    for client in &clients {
        let mine = m.seen(*client);
        assert_eq!(mine.len(), 5);
        let mine: Vec<String> =
            mine.into_iter().map(|line| line.split_once(": ").unwrap().1.into()).collect();
        assert!(mine.is_sorted(), "a later request has a larger number");
        names.extend(mine);
    }
    let expected: BTreeSet<String> = (0..100).map(|n| format!("/q/n-{n:010}")).collect();
    assert_eq!(names, expected);
}

#[test]
fn t2_numbers_count_all_creates_and_no_failures_or_deletes() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/q")).unwrap();
    let next = |m: &mut Member| match m.ask(a, create("/q/n-").sequential()) {
        Ok(Body::Path(path)) => path,
        other => panic!("{other:?}"),
    };
    assert_eq!(next(&mut m), "/q/n-0000000000");
    m.ask(a, create("/q/other")).unwrap();
    assert_eq!(next(&mut m), "/q/n-0000000002");
    assert_eq!(m.ask(a, create("/q/other")), Err(ErrorCode::NodeExists));
    m.ask(a, delete("/q/n-0000000002")).unwrap();
    assert_eq!(next(&mut m), "/q/n-0000000003");
    m.ask(a, multi(&[create("/q/n-").sequential().into(), delete("/missing")])).unwrap();
    assert_eq!(next(&mut m), "/q/n-0000000004", "a multi that failed has taken no number");
    m.crash(0);
    let b = m.join();
    assert_eq!(m.ask(b, create("/q/n-").sequential()), Ok(Body::Path("/q/n-0000000005".into())));
}

#[test]
fn t2_a_sequential_create_that_did_not_reach_the_disk_leaves_its_number_free() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/q")).unwrap();
    m.send(a, create("/q/").sequential());
    m.crash(0);
    let b = m.join();
    assert_eq!(m.ask(b, create("/q/").sequential()), Ok(Body::Path("/q/0000000000".into())));
}

#[test]
fn t2_one_of_many_creators_succeeds() {
    let mut m = Member::new();
    let clients: Vec<_> = (0..20).map(|_| m.join()).collect();
    for client in &clients {
        m.send(*client, create("/leader").ephemeral());
    }
    m.flush();
    let answers: Vec<_> = clients.iter().map(|client| m.seen(*client)).collect();
    assert_eq!(answers[0], ["1: /leader"]);
    assert!(answers[1..].iter().all(|seen| *seen == ["1: NodeExists"]));
    m.ask(clients[7], create("/leader").ephemeral()).unwrap_err();
    m.ask(clients[7], delete("/leader")).unwrap();
    m.ask(clients[7], create("/leader").ephemeral()).unwrap();
}

/// A znode `/q` whose next child gets this number.
fn numbering_from(number: i32) -> Member {
    let mut tree = Tree::fresh(ExtendedTypes::default());
    let acl = || vec![Acl::world(Perms::ALL)].into();
    for (zxid, path, parent_cversion) in [(1, "/q", 1), (2, "/q/counted", number)] {
        let kind = TxnCreateKind::Create;
        let create =
            CreateTxn { kind, path: path.into(), data: None, acl: acl(), ephemeral: false, parent_cversion };
        apply(&mut tree, zxid, Txn::Create(create));
    }
    apply(&mut tree, 3, Txn::Delete { reaped: false, path: "/q/counted".into() });
    Member::over(CoreConfig::default(), tree)
}

fn apply(tree: &mut Tree, zxid: u64, txn: Txn<'_>) {
    let header =
        TxnHeader { session: SessionId::NONE, cxid: 0, zxid: Zxid(zxid), time_ms: 0, code: txn.code() };
    let mut bytes = Vec::new();
    TxnRecord { header, txn, digest: None }.write(&mut bytes);
    tree.apply(&TxnRecord::read(&bytes).unwrap(), &mut Vec::new());
}

/// As the message about it says: there is no other way to have more of them.
#[test]
fn a_znode_that_is_made_anew_has_all_numbers_again() {
    let mut m = numbering_from(1 << 30);
    let a = m.join();
    let mut asked = None;
    let said = said::during(|| asked = Some(m.ask(a, create("/q/n-").sequential())));
    assert_eq!(asked, Some(Ok(Body::Path("/q/n-1073741824".into()))));
    assert!(said.has(&["parent=\"/q\"", "delete it and create it again"]), "{said:?}");

    m.ask(a, delete("/q/n-1073741824")).unwrap();
    m.ask(a, delete("/q")).unwrap();
    m.ask(a, create("/q")).unwrap();
    assert_eq!(m.ask(a, create("/q/n-").sequential()), Ok(Body::Path("/q/n-0000000000".into())));
}

/// Its warnings.
#[test]
fn a_znode_that_has_given_out_its_last_number_gives_no_other() {
    let mut m = numbering_from(i32::MAX);
    let a = m.join();
    assert_eq!(m.ask(a, create("/q/n-").sequential()), Ok(Body::Path("/q/n-2147483647".into())));
    assert_eq!(m.ask(a, create("/q/n-").sequential()), Err(ErrorCode::NodeExists));
}
