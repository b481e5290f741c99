//! The exact counts of a member of an ensemble.

use crate::{
    configurations::leaving,
    follower::{Follower, TIMEOUT_MS},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    id::{Epoch, ServerId, SessionId, Zxid},
    op::Op,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_server_core::{
    Effect, Input, PeerMessage,
    quorum::MemberMode,
    stats::{Stats, Summary},
};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

fn stats(member: &Member) -> Stats {
    member.server.summary().stats
}

fn summary(values: &[u64]) -> Summary {
    let mut summary = Summary::default();
    values.iter().for_each(|value| summary.add(*value));
    summary
}

/// A leader of five whose followers have these numbers, and the session of a client of the first one.
fn leader(followers: &[i64]) -> Member {
    let ensemble = config(&[1, 2, 3, 4, 5], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(followers, &ensemble, 2);
    member.request(followers[0], Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    all_acknowledge(&mut member, followers, 1);
    member
}

fn all_acknowledge(member: &mut Member, followers: &[i64], counter: u32) {
    for follower in followers {
        member.hears(LinkId(*follower as u64), Packet::Ack(at(2, counter)));
    }
}

fn comes(member: &mut Member, server: i64, link: LinkId, observes: bool, last: Zxid) {
    let config_version = config(&[1, 2, 3], at(1, 0)).version;
    let info = LearnerInfo {
        server: Some(ServerId(server)),
        protocol: PROTOCOL_VERSION,
        config_version,
        knows_secrets: false,
        moves_in_place: false,
    };
    let accepted = Epoch(1);
    let packet = if observes {
        Packet::ObserverInfo { accepted, info }
    } else {
        Packet::FollowerInfo { accepted, info }
    };
    member.hears(link, packet);
    member.hears(link, Packet::AckEpoch { last, current: Some(Epoch(1)) });
}

/// Upstream's numbers of a leader are about what went through its quorum of then: no change of the ensemble.
#[test]
fn a_leader_counts_what_it_proposes_and_commits() {
    let mut member = leader(&[2, 3]);
    member.request(2, Op::CloseSession, &[]);
    member.request(2, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    member.request(2, Op::Reconfig, &leaving("5"));
    all_acknowledge(&mut member, &[2, 3], 4);
    assert_eq!(member.voters(), [1, 2, 3, 4]);
    let of = stats(&member);
    assert_eq!((of.proposals, of.commits), (4, 4));
    assert_eq!((of.writes.led_commits, of.writes.commits_received, of.writes.proposals_received), (3, 0, 0));
    assert_eq!(of.writes.quorum_ms.summary.count, 3);
    assert_eq!(of.writes.propagation_ms.summary.count, 4);
    assert_eq!(of.writes.commit_propagation_ms.summary.count, 0);
}

#[test]
fn a_leader_counts_what_learners_ask() {
    let mut member = leader(&[2, 3]);
    assert_eq!(stats(&member).writes.to_prepare, 1);
    member.request(2, Op::CloseSession, &[]);
    assert_eq!((stats(&member).writes.to_prepare, stats(&member).syncs.revalidations), (2, 0));
    for asked in [1, 2] {
        member.hears(LinkId(3), Packet::Revalidate { session: SESSION, timeout_ms: TIMEOUT_MS });
        assert_eq!(stats(&member).syncs.revalidations, asked);
    }
}

/// A follower's record, made so long ago by the wall clock.
fn hears_of_old(follower: &mut Follower, counter: u32, age_ms: i64) {
    let (zxid, session) = (at(2, counter), SESSION);
    let txn = Txn::CreateSession { timeout_ms: TIMEOUT_MS };
    let header = TxnHeader { session, cxid: 0, zxid, time_ms: -age_ms, code: txn.code() };
    let mut bytes = Vec::new();
    TxnRecord { header, txn, digest: None }.write(&mut bytes);
    follower.member.hears_proposal(follower.leader, zxid, bytes);
}

#[test]
fn a_follower_counts_what_it_is_told_while_it_serves() {
    let mut follower = Follower::start_with(|_| {});
    for (counter, age_ms) in [(1, 3), (2, 8)] {
        hears_of_old(&mut follower, counter, age_ms);
        follower.commits(at(2, counter));
    }
    hears_of_old(&mut follower, 3, 1);
    let of = stats(&follower.member);
    assert_eq!((of.commits, of.proposals), (2, 0));
    assert_eq!((of.writes.proposals_received, of.writes.commits_received, of.writes.led_commits), (3, 2, 0));
    assert_eq!(of.writes.proposal_ms.summary, summary(&[3, 8, 1]));
    assert_eq!(of.writes.commit_propagation_ms.summary, summary(&[3, 8]));
    assert_eq!(of.writes.propagation_ms.summary, summary(&[3, 8]));
    assert_eq!(of.writes.quorum_ms.summary.count, 0);
}

/// Transactions that come with the history are not counted as proposals.
#[test]
fn a_follower_that_does_not_serve_yet_counts_no_proposals() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let leader = member.follows(&[2, 3], &ensemble, 2);
    member.hears(leader, Packet::Diff(at(0, 0)));
    let mut follower = Follower { member, leader, session: SESSION };
    hears_of_old(&mut follower, 1, 3);
    follower.commits(at(2, 1));
    let of = stats(&follower.member);
    assert_eq!((of.commits, of.writes.proposals_received, of.writes.commits_received), (1, 0, 0));
}

#[test]
fn a_leader_counts_how_its_learners_were_brought_to_its_history() {
    let mut member = leader(&[2, 3]);
    let of = stats(&member).syncs;
    assert_eq!((of.without_tree, of.trees), (2, 0));
    assert_eq!(of.without_tree_under_way, summary(&[1, 2, 1, 0]), "one began, two, one ended, both");
    assert_eq!(of.trees_under_way, summary(&[]));
    for (server, under_way) in [(4, &[1][..]), (5, &[1, 2])] {
        comes(&mut member, server, LinkId(server as u64), false, at(3, 0));
        assert_eq!(stats(&member).syncs.trees_under_way, summary(under_way));
    }
    member.hears(LinkId(4), Packet::Ack(at(2, 0)));
    let of = stats(&member).syncs;
    assert_eq!((of.without_tree, of.trees), (2, 2));
    assert_eq!(of.trees_under_way, summary(&[1, 2, 1]));
    assert_eq!(of.without_tree_under_way.count, 4);
}

#[test]
fn a_member_counts_its_searches_and_the_time_without_service() {
    let mut member = leader(&[2, 3]);
    let elections = stats(&member).elections;
    let searches = member.server.elections().unwrap().searches;
    let served = searches[0].synchronised.unwrap().0 - searches[0].began.mono.0;
    assert!(served > 2);
    assert_eq!((elections.searches, elections.unavailable_ms), (1, summary(&[served])));
    assert_eq!(elections.leader_unavailable_ms, summary(&[served]));
    member.loses(LinkId(2));
    member.loses(LinkId(3));
    member.passes(10_000);
    assert_eq!(stats(&member).elections.searches, 2);
    assert_eq!(stats(&member).elections.unavailable_ms, summary(&[served]), "it is not over");
}

#[test]
fn a_follower_counts_from_its_promise_to_its_service() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let leader = member.follows(&[2, 3], &ensemble, 2);
    let promised = member.ms;
    member.hears(leader, Packet::Diff(at(0, 0)));
    member.ms += 40;
    member.hears_new_leader(leader, 2, &ensemble);
    member.hears(leader, Packet::UpToDate);
    let elections = stats(&member).elections;
    assert_eq!(elections.follower_sync_ms, summary(&[member.ms - promised]));
    assert_eq!((elections.observer_sync_ms, elections.leader_unavailable_ms), (summary(&[]), summary(&[])));
    assert_eq!(elections.unavailable_ms, summary(&[member.ms - 1]));
    let since = member.server.quorum().unwrap().serves_since.unwrap();
    assert_eq!(since.0, member.ms);
}

/// A follower that is to become a voter does not vote yet; an observer never does.
#[test]
fn a_leader_reports_followers_without_a_vote() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2, 3], &ensemble, 2);
    let report = |member: &Member| {
        let of = member.server.quorum().unwrap();
        (of.voters, of.learners.followers, of.learners.observers, of.non_voting_followers)
    };
    assert_eq!(report(&member), (3, 2, 0, 0));
    for (server, observes) in [(7, false), (8, true), (9, false)] {
        let link = LinkId(server as u64);
        comes(&mut member, server, link, observes, Zxid::ZERO);
        member.hears(link, Packet::Ack(at(2, 0)));
    }
    assert_eq!(report(&member), (3, 4, 1, 2));
}

#[test]
fn a_leader_is_heard_every_half_tick() {
    let mut member = leader(&[2, 3]);
    let pings = |member: &Member| {
        let ping = |effect: &&Effect| {
            matches!(
                effect,
                Effect::ToPeer { link: LinkId(2), message: PeerMessage::Packet(Packet::Ping { .. }) }
            )
        };
        member.effects.iter().filter(ping).count()
    };
    let before = pings(&member);
    member.passes(4_000);
    assert_eq!(pings(&member) - before, 4);
}

/// It has nothing to do with what other servers know.
#[test]
fn a_server_counts_local_sessions_alone() {
    let mut follower = Follower::start_with(|config| {
        config.local_sessions = ostler_server_core::quorum::LocalSessions::Fixed;
    });
    let count = |follower: &Follower| follower.member.server.summary().local_sessions;
    assert_eq!(count(&follower), 0);
    for conn in [1, 2] {
        follower.connect_for_new_session(conn);
        assert_eq!(count(&follower), conn as usize);
    }
}

/// A follower with an observer, whose client comes back.
#[test]
fn a_follower_counts_the_sessions_that_its_observers_ask_for() {
    let mut follower = Follower::start_with(|config| config.observing.masters = true);
    let link = LinkId(54);
    follower.member.step(Input::ObserverCalls { link });
    comes(&mut follower.member, 4, link, true, Zxid::ZERO);
    follower.member.hears(link, Packet::Ack(at(2, 0)));
    for asked in [1, 2] {
        let session = SessionId(8);
        follower.member.hears(link, Packet::Revalidate { session, timeout_ms: TIMEOUT_MS });
        assert_eq!(stats(&follower.member).syncs.revalidations, asked);
    }
    assert_eq!(follower.member.server.mode(), Some(MemberMode::Follower));
}
