//! The acknowledgements that a leader counts before it commits.

use crate::member::{Member, at, config};
use ostler_proto::{
    id::{Epoch, ServerId},
    op::Op,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
};
use ostler_server_core::{
    quorum::{MemberMode, election_history::SearchReason},
    stats::Summary,
};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

/// It is told to cut its log back, and the proposal comes again: until it has that on disk, two of five have it.
#[test]
fn a_follower_that_comes_back_ahead_of_the_commits_counts_when_it_has_them_again() {
    let (two, three) = (LinkId(2), LinkId(3));
    let ensemble = config(&[1, 2, 3, 4, 5], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2, 3, 4], &ensemble, 2);
    let (committed, proposed) = (at(2, 1), at(2, 2));
    for _ in [committed, proposed] {
        member.request(4, Op::CreateSession, &4_000_i32.to_be_bytes());
    }
    member.hears(three, Packet::Ack(committed));
    member.hears(two, Packet::Ack(proposed));
    assert!(member.has_told(3, &Packet::Commit(committed)));
    member.loses(two);
    let again = LinkId(9);
    let info = LearnerInfo {
        server: Some(ServerId(2)),
        protocol: PROTOCOL_VERSION,
        config_version: ensemble.version,
        knows_secrets: false,
        moves_in_place: false,
    };
    member.hears(again, Packet::FollowerInfo { accepted: Epoch(2), info });
    member.hears(again, Packet::AckEpoch { last: proposed, current: None });
    assert!(member.has_told(9, &Packet::Trunc(committed)));
    member.hears(three, Packet::Ack(proposed));
    assert!(!member.has_told(3, &Packet::Commit(proposed)), "1 and 3 have it");
    for zxid in [at(2, 0), proposed] {
        member.hears(again, Packet::Ack(zxid));
    }
    assert!(member.has_told(3, &Packet::Commit(proposed)));
}

/// Where zxids are numbers that a thousand divides, and the leader's own at each.
#[test]
fn the_time_until_each_server_acknowledges_is_noted_now_and_then() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2, 3], &ensemble, 2);
    let noted = (1..2000).map(|counter| at(2, counter)).find(|zxid| zxid.0 % 1000 == 0).unwrap();
    let last = at(2, noted.counter() + 1);
    for _ in 0..last.counter() {
        member.request(3, Op::CreateSession, &4_000_i32.to_be_bytes());
    }
    let acknowledged = |member: &Member| {
        let acks = member.server.summary().stats.writes.ack_ms;
        acks.into_iter().map(|(server, counts)| (server.0, counts.summary)).collect::<Vec<_>>()
    };
    let once = Summary::of(0);
    assert_eq!(acknowledged(&member), [(1, once)]);
    member.hears(LinkId(2), Packet::Ack(at(2, noted.counter() - 1)));
    assert_eq!(acknowledged(&member), [(1, once)]);
    // More at once than the one that is looked at.
    member.hears(LinkId(2), Packet::Ack(last));
    assert_eq!(acknowledged(&member), [(1, once), (2, once)]);
    member.hears(LinkId(3), Packet::Ack(last));
    assert_eq!(acknowledged(&member), [(1, once), (2, once)], "it is committed already");
    assert_eq!(member.server.summary().stats.writes.own_ack_ms.summary.count, u64::from(last.counter()));
}

/// Another one begins to count from 0.
#[test]
fn an_epoch_ends_when_it_has_counted_far_enough_and_nothing_is_under_way() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let fresh = Tree::fresh(ExtendedTypes::default());
    let mut member = Member::start_with(&ensemble, None, fresh, 1, |config| {
        (config.epoch.enough, config.epoch.most) = (2, 1_000);
    });
    member.leads_with(&[2, 3], &ensemble, 2);
    for _ in [1, 2] {
        member.request(2, Op::CreateSession, &4_000_i32.to_be_bytes());
    }
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    assert_eq!(member.server.mode(), Some(MemberMode::Leader));
    member.hears(LinkId(2), Packet::Ack(at(2, 2)));
    assert_eq!(member.server.mode(), Some(MemberMode::Looking));
    assert_eq!(member.server.tree().last_processed(), at(2, 2));
    let searches = member.server.elections().unwrap().searches;
    assert_eq!(searches.last().map(|search| search.why), Some(SearchReason::CounterFull));
}
