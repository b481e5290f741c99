//! A client of a follower, and its session at the leader.

use crate::member::{Member, SESSION, at, config};
use ostler_proto::{jute::Writer, op::Op, quorum_packet::Packet, stat::ExtendedTypes};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

const TIMEOUT_MS: i32 = 10_000;
const TICK_MS: u64 = 2_000;

/// Its client was told that it lives longer than it was made for, and says nothing for as long as that allows.
#[test]
fn a_session_that_comes_back_with_more_time_has_it_at_once() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.reigns_with(&[2], &ensemble, 2);
    member.is_asked(2, Op::CreateSession, &4_000_i32.to_be_bytes());
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    member.hears(LinkId(2), Packet::Revalidate { session: SESSION, timeout_ms: 40_000 });
    for _ in 0..6 {
        member.hears(LinkId(2), Packet::Ping { zxid: at(2, 1), touched: Some(Vec::new()) });
        member.passes(TICK_MS);
    }
    assert!(!member.has_given_up_the_session());
}

/// Nothing comes of a sync that is logged, and the follower tells of its clients when it is asked the next time. But the
/// leader has heard of this one.
#[test]
fn a_session_that_only_syncs_lives() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.reigns_with(&[2], &ensemble, 2);
    member.is_asked(2, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    let mut sync = Vec::new();
    sync.string("/");
    for _ in 0..10 {
        member.is_asked(2, Op::Sync, &sync);
        member.passes(TICK_MS);
        assert!(!member.has_given_up_the_session());
    }
    for _ in 0..10 {
        member.hears(LinkId(2), Packet::Ping { zxid: at(2, 1), touched: Some(Vec::new()) });
        member.passes(TICK_MS);
    }
    assert!(member.has_given_up_the_session());
}
