//! Audit records of a follower: of the writes that its own clients have asked for, and of ephemerals.

use crate::{
    follower::{Follower, TIMEOUT_MS, XID},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    acl::{Acl, Perms},
    error::ErrorCode,
    jute::Writer,
    op::Op,
    path,
    quorum_packet::Packet,
    stat::ExtendedTypes,
    txn::{CreateTxn, Txn, TxnCreateKind},
};
use ostler_server_core::{CoreConfig, Effect, Input};
use ostler_tree::Tree;

/// A follower that audits, and knows a session.
fn follower() -> Follower {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let fresh = Tree::fresh(ExtendedTypes::default());
    let core = CoreConfig { audit: true, ..CoreConfig::default() };
    let mut member = Member::start_as(core, &ensemble, None, fresh, 1, |_| {});
    let leader = member.follows(&[2, 3], &ensemble, 2);
    member.hears(leader, Packet::Diff(at(0, 0)));
    member.hears_new_leader(leader, 2, &ensemble);
    member.hears(leader, Packet::UpToDate);
    let mut follower = Follower { member, leader, session: SESSION };
    follower.hears_of(at(2, 1), 0, Txn::CreateSession { timeout_ms: TIMEOUT_MS });
    follower.commits(at(2, 1));
    follower
}

/// All records so far.
fn records(follower: &Follower) -> Vec<String> {
    let text = |effect: &Effect| match effect {
        Effect::Audit(record) => {
            let znode = record.znode.as_deref().unwrap_or("-");
            Some(format!("{} {znode} {}", record.operation.name(), record.result.name()))
        }
        _ => None,
    };
    follower.member.effects.iter().filter_map(text).collect()
}

fn create_ephemeral(path: &str) -> Txn<'_> {
    Txn::Create(CreateTxn {
        kind: TxnCreateKind::Create,
        path: path.into(),
        data: None,
        acl: vec![Acl::world(Perms::ALL)].into(),
        ephemeral: true,
        parent_cversion: 1,
    })
}

#[test]
fn a_follower_records_its_own_clients_write_when_it_commits() {
    for error in [None, Some(ErrorCode::BadVersion)] {
        let mut follower = follower();
        let conn = follower.reconnect(1);
        follower.request_write(conn);
        match error {
            None => follower.hears_of_write(at(2, 2), 1),
            Some(error) => follower.hears_of(at(2, 2), XID, Txn::Error(error.code())),
        }
        assert_eq!(records(&follower), [""; 0], "no quorum has it");
        follower.commits(at(2, 2));
        let result = if error.is_none() { "success" } else { "failure" };
        assert_eq!(records(&follower), [format!("setData / {result}")]);
    }
}

#[test]
fn a_change_of_the_ensemble_is_recorded_with_the_path_of_its_znode() {
    let mut follower = follower();
    let conn = follower.reconnect(1);
    let mut body = Vec::new();
    (0..3).for_each(|_| body.string(""));
    body.i64(-1);
    follower.request(conn, Op::Reconfig, &body);
    let text = config(&[1, 2, 3], at(2, 2)).to_string();
    let data = Some(text.as_bytes());
    let txn = Txn::SetData { reconfig: true, path: path::CONFIG.into(), data, version: -1 };
    follower.hears_of(at(2, 2), XID, txn);
    follower.commits(at(2, 2));
    assert_eq!(records(&follower), ["reconfig /zookeeper/config success"]);
}

#[test]
fn a_follower_records_no_write_of_another_servers_client() {
    let mut follower = follower();
    follower.hears_of_write(at(2, 2), 1);
    follower.commits(at(2, 2));
    assert_eq!(records(&follower), [""; 0]);
}

#[test]
fn a_follower_records_a_write_whose_client_has_hung_up() {
    let mut follower = follower();
    let conn = follower.reconnect(1);
    follower.request_write(conn);
    follower.member.step(Input::Disconnected { conn });
    follower.hears_of_write(at(2, 2), 1);
    follower.commits(at(2, 2));
    assert_eq!(records(&follower), ["setData / success"]);
}

#[test]
fn the_number_of_a_request_alone_does_not_make_a_record() {
    let mut follower = follower();
    let conn = follower.reconnect(1);
    follower.request_write(conn);
    follower.member.step(Input::Disconnected { conn });
    // The session's client has numbered another request alike, at another server.
    follower.hears_of(at(2, 2), XID, create_ephemeral("/e"));
    follower.commits(at(2, 2));
    assert_eq!(records(&follower), [""; 0]);
}

#[test]
fn writes_under_way_are_recorded_as_invoked_when_the_leader_is_lost() {
    let mut follower = follower();
    let conn = follower.reconnect(1);
    follower.request_write(conn);
    let leader = follower.leader;
    follower.member.loses(leader);
    assert_eq!(records(&follower), ["setData / invoked"]);
}

#[test]
fn every_server_records_ephemerals_and_one_that_was_gone_as_a_failure() {
    let mut follower = follower();
    for (counter, path) in [(2, "/e1"), (3, "/e2")] {
        follower.hears_of(at(2, counter), 0, create_ephemeral(path));
        follower.commits(at(2, counter));
    }
    let listed = ["/gone", "/e1"].map(Into::into).to_vec();
    follower.hears_of(at(2, 4), 0, Txn::CloseSession(Some(listed)));
    follower.commits(at(2, 4));
    let deletion = "ephemeralZNodeDeletionOnSessionCloseOrExpire";
    assert_eq!(
        records(&follower),
        [
            format!("{deletion} /gone failure"),
            format!("{deletion} /e1 success"),
            format!("{deletion} /e2 success")
        ]
    );
}
