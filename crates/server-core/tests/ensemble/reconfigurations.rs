//! Which changes of the ensemble a leader takes.

use crate::{
    configurations::tree_with,
    member::{ME, Member, at, config},
};
use ostler_proto::{
    error::ErrorCode,
    id::ServerId,
    jute::Writer,
    membership::Membership,
    op::Op,
    quorum_packet::Packet,
    txn::{Txn, TxnRecord},
};
use ostler_server_core::{Effect, PersistOp, quorum::MemberMode};
use ostler_zab::leading::LinkId;

/// A request: the servers that join, those that leave, or all, and the version for which it is meant.
#[derive(Default, Clone, Copy)]
struct Change<'a> {
    joining: Option<&'a str>,
    leaving: Option<&'a str>,
    members: Option<&'a str>,
    from: Option<i64>,
}

fn leader(of: &Membership) -> Member {
    let mut member = Member::start(of, None, tree_with(&[of]), 1);
    member.leads_with(&[2, 3], of, 2);
    member.request(2, Op::CreateSession, &10_000_i32.to_be_bytes());
    for link in [2, 3] {
        member.hears(LinkId(link), Packet::Ack(at(2, 1)));
    }
    member
}

/// The servers that are to be, or why not.
fn asked(member: &mut Member, change: Change<'_>) -> Result<Vec<i64>, ErrorCode> {
    let mut body = Vec::new();
    for part in [change.joining, change.leaving, change.members] {
        match part {
            Some(text) => body.string(text),
            None => body.buffer(None),
        }
    }
    body.i64(change.from.unwrap_or(-1));
    member.request(2, Op::Reconfig, &body);
    let logged = member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist { op: PersistOp::Append { record, .. }, .. } => Some(record.0.clone()),
        _ => None,
    });
    match TxnRecord::read(&logged.unwrap()).unwrap().txn {
        Txn::Error(code) => Err(ErrorCode::from_code(code).unwrap()),
        Txn::SetData { reconfig: true, data: Some(data), .. } => {
            let membership = Membership::parse(std::str::from_utf8(data).unwrap()).unwrap();
            Ok(membership.servers.keys().map(|id| id.0).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn three() -> Membership {
    config(&[1, 2, 3], at(1, 1))
}

/// The figures of `mntr`.
#[test]
fn a_change_of_the_ensemble_is_noted_before_it_is_made() {
    let mut member = leader(&three());
    let counts = |member: &Member| {
        let writes = member.server.summary().stats.writes;
        (writes.changes_noted, writes.changes_made)
    };
    let before = counts(&member);
    let four = Change { joining: Some("server.4=h4:1:2:observer;h4:3"), ..Change::default() };
    asked(&mut member, four).unwrap();
    assert_eq!(counts(&member), (before.0 + 1, before.1));
}

#[test]
fn a_change_is_taken_or_refused_for_its_reason() {
    let join = |joining| Change { joining: Some(joining), ..Change::default() };
    let leave = |leaving| Change { leaving: Some(leaving), ..Change::default() };
    let (four, same_address) = ("server.4=h4:1:2;h4:3", "server.4=h2:1:2;h4:3");
    let many = "server.4=h4:1:2;3,server.5=h5:1:2;3,server.6=h6:1:2;3,server.7=h7:1:2;3";
    let observers = many.replace(";3", ":observer;3");
    let version = at(1, 1).0 as i64;
    for (change, expected) in [
        (join(four), Ok(vec![1, 2, 3, 4])),
        (Change { from: Some(version), ..join(four) }, Ok(vec![1, 2, 3, 4])),
        (Change { from: Some(version + 1), ..join(four) }, Err(ErrorCode::BadVersion)),
        (join(same_address), Err(ErrorCode::BadArguments)),
        (join("server.2=h2:1:2;h2:4"), Ok(vec![1, 2, 3])),
        (join(many), Err(ErrorCode::NewConfigNoQuorum)),
        (join(&observers), Ok(vec![1, 2, 3, 4, 5, 6, 7])),
        (leave("3"), Ok(vec![1, 2])),
        (leave("9"), Ok(vec![1, 2, 3])),
        (leave("x"), Err(ErrorCode::BadArguments)),
        (Change { joining: Some(four), ..leave("3, 2") }, Err(ErrorCode::NewConfigNoQuorum)),
        (Change { members: Some("nonsense"), ..Change::default() }, Err(ErrorCode::BadArguments)),
    ] {
        let text = format!("{:?} {:?} {:?}", change.joining, change.leaving, change.members);
        assert_eq!(asked(&mut leader(&three()), change), expected, "{text}");
    }
}

#[test]
fn one_change_at_a_time() {
    let mut member = leader(&three());
    let leave = |leaving| Change { leaving: Some(leaving), ..Change::default() };
    assert_eq!(asked(&mut member, leave("3")), Ok(vec![1, 2]));
    assert_eq!(asked(&mut member, leave("2")), Err(ErrorCode::ReconfigInProgress));
    member.hears(LinkId(2), Packet::Ack(at(2, 3)));
    assert_eq!(member.voters(), [1, 2]);
    let join = Change { joining: Some("server.3=h3:1:2;h3:3"), ..Change::default() };
    assert_eq!(asked(&mut member, join), Ok(vec![1, 2, 3]));
}

/// Upstream's rule: what joins or leaves has no group.
#[test]
fn an_ensemble_in_groups_is_changed_as_a_whole() {
    let text = "group.1=1:2:3\n";
    let servers = three().to_string();
    let lines: String =
        servers.lines().filter(|line| line.starts_with("server.")).map(|line| format!("{line}\n")).collect();
    let grouped = Membership { version: at(1, 1).0, ..Membership::parse(&(lines.clone() + text)).unwrap() };
    let mut member = leader(&grouped);
    let leave = Change { leaving: Some("3"), ..Change::default() };
    assert_eq!(asked(&mut member, leave), Err(ErrorCode::BadArguments));
    let whole = lines.trim_end().replace('\n', ",");
    let all = Change { members: Some(&whole), ..Change::default() };
    assert_eq!(asked(&mut member, all), Ok(vec![1, 2, 3]));
}

/// It names who has most of its log, and looks for a leader like the others.
#[test]
fn a_leader_that_is_taken_out_goes_when_that_is_decided() {
    let mut member = leader(&three());
    let leave = Change { leaving: Some("1"), ..Change::default() };
    assert_eq!(asked(&mut member, leave), Ok(vec![2, 3]));
    assert_eq!(member.server.mode(), Some(MemberMode::Leader));
    member.hears(LinkId(3), Packet::Ack(at(2, 2)));
    assert_eq!(member.server.mode(), Some(MemberMode::Leader), "3 alone is no quorum of 2 and 3");
    member.hears(LinkId(2), Packet::Ack(at(2, 2)));
    let leaves = |leader: i64| Packet::CommitAndActivate { zxid: at(2, 2), leader: ServerId(leader) };
    assert!(member.has_told(2, &leaves(3)), "of two that have as much of its log the last");
    assert!(!member.has_told(2, &leaves(ME)));
    assert_ne!(member.server.mode(), Some(MemberMode::Leader));
    assert_eq!(member.voters(), [2, 3]);
}
