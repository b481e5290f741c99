//! Connections of servers that come at another moment, or by another way, than they should.

use crate::{
    follower::Follower,
    member::{ME, Member, SESSION, at, config},
};
use ostler_proto::{
    election::{Candidate, NOTIFICATION_VERSION, Notification, PeerState},
    id::{Epoch, ServerId, Zxid},
    op::Op,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
};
use ostler_server_core::{
    DialTarget, Effect, Input, PeerMessage,
    quorum::{MemberMode, election_history::SearchReason},
};
use ostler_tree::Tree;
use ostler_zab::leading::{AddressMatch, LinkId};

/// Learners that a server keeps waiting while it looks for a leader.
const EARLY_MAX: u64 = 100;

/// A leader waits no longer for a quorum.
const PATIENCE_MS: u64 = 5_000;

fn looking() -> Member {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1)
}

fn info(server: i64) -> LearnerInfo {
    let config_version = config(&[1, 2, 3], at(1, 0)).version;
    LearnerInfo {
        server: Some(ServerId(server)),
        protocol: PROTOCOL_VERSION,
        config_version,
        knows_secrets: false,
        moves_in_place: false,
    }
}

fn calls(member: &mut Member, server: i64, link: u64) {
    member.hears(LinkId(link), Packet::FollowerInfo { accepted: Epoch(1), info: info(server) });
}

#[test]
fn some_learners_may_come_before_this_server_leads_and_no_more() {
    let mut member = looking();
    for link in 1..=EARLY_MAX {
        calls(&mut member, 10 + link as i64, link);
        assert!(!member.has_hung_up(LinkId(link)), "{link}");
    }
    calls(&mut member, 999, EARLY_MAX + 1);
    assert!(member.has_hung_up(LinkId(EARLY_MAX + 1)));
}

/// Anybody can come with a voter's id. Where it comes from says more than when, and whether it is heard at the election
/// port too says more than nothing.
#[test]
fn of_two_callers_with_one_id_the_one_stays_for_which_more_speaks() {
    let mut member = looking();
    let mut comes = |link: u64, place: AddressMatch| {
        member.step(Input::LearnerFrom { link: LinkId(link), place });
        calls(&mut member, 2, link);
    };
    comes(10, AddressMatch::Elsewhere);
    comes(11, AddressMatch::AtHome);
    comes(12, AddressMatch::Elsewhere);
    let gone = |member: &Member, links: &[u64]| -> Vec<bool> {
        links.iter().map(|link| member.has_hung_up(LinkId(*link))).collect()
    };
    assert_eq!(gone(&member, &[10, 11, 12]), [true, false, true]);

    let mut member = looking();
    calls(&mut member, 2, 10);
    member.step(Input::ElectionLink { peer: ServerId(2), up: true });
    calls(&mut member, 2, 11);
    member.step(Input::ElectionLink { peer: ServerId(2), up: false });
    calls(&mut member, 2, 12);
    assert_eq!(gone(&member, &[10, 11, 12]), [true, false, true]);
}

/// It has elected this server in a round before the present one: it will hear that it has to look again.
#[test]
fn a_learner_from_an_earlier_round_is_refused_whether_its_vote_or_its_connection_comes_first() {
    for calls_first in [true, false] {
        let mut member = looking();
        let own = member.vote();
        let following = Notification {
            state: PeerState::Following,
            candidate: own.candidate,
            round: own.round - 1,
            version: NOTIFICATION_VERSION,
            config: config(&[1, 2, 3], at(1, 0)).to_string(),
        };
        calls(&mut member, 3, 13);
        if calls_first {
            calls(&mut member, 2, 12);
            assert!(!member.has_hung_up(LinkId(12)));
        }
        member.step(Input::Vote { from: ServerId(2), notification: following });
        if !calls_first {
            calls(&mut member, 2, 12);
        }
        assert!(member.has_hung_up(LinkId(12)), "calls first: {calls_first}");
        assert!(!member.has_hung_up(LinkId(13)), "3 has said nothing of that kind");
        calls(&mut member, 3, 14);
        assert!(!member.has_hung_up(LinkId(14)));
    }
}

/// Only who came in at the port for observers is one.
#[test]
fn a_follower_takes_nothing_from_a_connection_that_it_does_not_know() {
    for masters in [true, false] {
        let mut follower = Follower::start_with(|config| config.observing.masters = masters);
        let (member, caller) = (&mut follower.member, LinkId(99));
        member.hears(caller, Packet::ObserverInfo { accepted: Epoch(2), info: info(4) });
        assert!(member.has_hung_up(caller));
        assert_eq!(member.server.quorum().unwrap().learners.all, 0);
        let (session, cxid, code, body, ids) =
            (SESSION, 1, Op::CloseSession.code(), vec![].into(), Vec::new());
        let asked = Packet::Request { session, cxid, code, body, ids };
        member.hears(LinkId(98), asked.clone());
        assert!(member.has_hung_up(LinkId(98)));
        assert!(!member.has_told(follower.leader.0 as i64, &asked));
    }
}

/// A learner whose connection ends before this server leads is forgotten.
#[test]
fn a_learner_that_came_early_and_is_gone_is_none() {
    let mut member = looking();
    calls(&mut member, 2, 12);
    calls(&mut member, 3, 13);
    member.loses(LinkId(12));
    assert!(member.get_elected_by(&[2, 3], &config(&[1, 2, 3], at(1, 0))));
    let epoch = Packet::LeaderInfo { epoch: Epoch(2), protocol: PROTOCOL_VERSION };
    assert_eq!([12, 13].map(|link| member.has_told(link, &epoch)), [false, true]);
    assert_eq!(member.server.quorum().unwrap().learners.all, 1);
}

fn last_dial(member: &Member) -> Option<(u64, DialTarget)> {
    member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Dial { search_id, to } => Some((*search_id, *to)),
        _ => None,
    })
}

fn dials(member: &Member) -> usize {
    member.effects.iter().filter(|effect| matches!(effect, Effect::Dial { .. })).count()
}

fn votes_for_three(member: &mut Member) {
    let epoch = Epoch(member.server.tree().last_processed().epoch().0.max(1));
    let candidate = Candidate { epoch, zxid: member.server.tree().last_processed(), id: ServerId(3) };
    member.hears_vote(3, PeerState::Looking, candidate, &config(&[1, 2, 3], at(1, 0)));
    member.hears_vote(2, PeerState::Looking, candidate, &config(&[1, 2, 3], at(1, 0)));
}

fn elects_three(member: &mut Member) -> u64 {
    let before = last_dial(member);
    votes_for_three(member);
    assert_ne!(last_dial(member), before, "it is not elected");
    let (search_id, to) = last_dial(member).unwrap();
    assert_eq!(to, DialTarget::Leader(ServerId(3)));
    search_id
}

#[test]
fn a_connection_to_a_leader_of_another_search_is_closed() {
    let mut member = looking();
    let search_id = elects_three(&mut member);
    member.step(Input::LeaderLink { search_id: search_id + 1, link: LinkId(1) });
    assert!(member.has_hung_up(LinkId(1)), "of another search");
    member.step(Input::LeaderLink { search_id, link: LinkId(2) });
    assert!(!member.has_hung_up(LinkId(2)));
    member.step(Input::LeaderLink { search_id, link: LinkId(3) });
    assert!(member.has_hung_up(LinkId(3)), "it has one");
    assert!(!member.has_hung_up(LinkId(2)));
}

#[test]
fn that_a_leader_cannot_be_reached_counts_while_it_is_dialled() {
    let searches = |member: &Member| member.server.elections().unwrap().searches.len();
    let mut member = looking();
    let search_id = elects_three(&mut member);
    member.step(Input::LeaderUnreachable { search_id: search_id + 1 });
    assert_eq!(searches(&member), 1, "of another search");
    member.step(Input::LeaderLink { search_id, link: LinkId(2) });
    member.step(Input::LeaderUnreachable { search_id });
    assert_eq!(searches(&member), 1, "it is connected");
    let mut member = looking();
    let search_id = elects_three(&mut member);
    member.step(Input::LeaderUnreachable { search_id });
    assert_eq!(searches(&member), 2);
}

/// A Java server counts votes for 200 ms more, and 200 after each that comes meanwhile.
#[test]
fn a_leader_with_a_connected_election_port_may_open_its_quorum_port_late() {
    let searches = |member: &Member| member.server.elections().unwrap().searches.len();
    let mut member = looking();
    member.step(Input::ElectionLink { peer: ServerId(3), up: true });
    let search_id = elects_three(&mut member);
    for _ in 0..2 {
        member.passes(1_000);
        let before = dials(&member);
        member.step(Input::LeaderUnreachable { search_id });
        assert_eq!((dials(&member), searches(&member)), (before + 1, 1));
    }
    member.step(Input::ElectionLink { peer: ServerId(3), up: false });
    member.step(Input::LeaderUnreachable { search_id });
    assert_eq!(searches(&member), 2, "it is gone");

    let mut member = looking();
    member.step(Input::ElectionLink { peer: ServerId(3), up: true });
    let search_id = elects_three(&mut member);
    // The step itself takes one more.
    member.passes(4_999);
    member.step(Input::LeaderUnreachable { search_id });
    assert_eq!(searches(&member), 2, "it has had its time");
}

/// A leader may end just when it is elected, but not again and again.
#[test]
fn a_leader_that_was_not_there_twice_is_not_elected_at_once() {
    let mut member = looking();
    for _ in 0..2 {
        let search_id = elects_three(&mut member);
        member.step(Input::LeaderUnreachable { search_id });
    }
    let before = last_dial(&member);
    votes_for_three(&mut member);
    assert_eq!(last_dial(&member), before);
}

/// It has been seen to be there.
#[test]
fn a_follower_of_this_server_was_not_away_before() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = looking();
    let search_id = elects_three(&mut member);
    member.step(Input::LeaderUnreachable { search_id });
    member.leads_with(&[2, 3], &ensemble, 2);
    for link in [2, 3] {
        member.loses(LinkId(link));
    }
    member.passes(PATIENCE_MS);
    assert_eq!(member.vote().state, PeerState::Looking);
    for _ in 0..2 {
        let search_id = elects_three(&mut member);
        member.step(Input::LeaderUnreachable { search_id });
    }
}

/// The election is void, so this server does not wait for `initLimit`.
#[test]
fn a_server_looks_again_when_its_leader_looks_for_a_leader() {
    let mut member = looking();
    elects_three(&mut member);
    let mut vote = member.vote();
    (vote.state, vote.round) = (PeerState::Looking, vote.round + 1);
    member.step(Input::Vote { from: ServerId(3), notification: vote });
    let searches = member.server.elections().unwrap().searches;
    assert_eq!(
        searches.iter().map(|search| search.why).collect::<Vec<_>>(),
        [SearchReason::Started, SearchReason::ElectionVoid]
    );
}

/// It had data in this election, and has none when it follows: its word says nothing about what may have been committed.
#[test]
fn a_learner_that_had_data_and_comes_without_does_not_count() {
    for (backed, last, had) in [(2, at(1, 2), true), (2, Zxid::ZERO, false), (3, at(1, 2), false)] {
        let ensemble = config(&[1, 2, 3], at(1, 0));
        let mut tree = Tree::fresh(ExtendedTypes::default());
        tree.begin_epoch(at(1, 5));
        let mut member = Member::start(&ensemble, None, tree, 1);
        // To back another that has data says nothing of its own.
        let candidate = Candidate { epoch: last.epoch(), zxid: last, id: ServerId(backed) };
        member.hears_vote(2, PeerState::Looking, candidate, &ensemble);
        assert!(member.get_elected_by(&[2], &ensemble));
        let link = LinkId(2);
        let info = info(2);
        member.hears(link, Packet::FollowerInfo { accepted: Epoch(1), info });
        member.hears(link, Packet::AckEpoch { last: Zxid::ZERO, current: Some(Epoch(0)) });
        member.hears(link, Packet::Ack(at(2, 0)));
        assert_eq!(member.server.mode() == Some(MemberMode::Leader), !had, "it had data: {had}");
        assert_eq!(member.vote().candidate.unwrap().id, ServerId(ME));
    }
}

/// Its observers are not asked any more, and hear of nothing.
#[test]
fn an_observer_that_is_gone_is_none_any_more() {
    let mut follower = Follower::start_with(|config| config.observing.masters = true);
    let (four, five) = (LinkId(54), LinkId(55));
    for link in [four, five] {
        let (member, server) = (&mut follower.member, link.0 as i64 - 50);
        member.step(Input::ObserverCalls { link });
        member.hears(link, Packet::ObserverInfo { accepted: Epoch(2), info: info(server) });
        member.hears(link, Packet::AckEpoch { last: at(0, 0), current: None });
        member.hears(link, Packet::Ack(at(2, 0)));
    }
    assert_eq!(follower.member.server.quorum().unwrap().learners.observers, 2);
    follower.member.loses(four);
    assert_eq!(follower.member.server.quorum().unwrap().learners.observers, 1);
    follower.hears_of_write(at(2, 1), 1);
    follower.commits(at(2, 1));
    let told = |to: LinkId| {
        let inform = |effect: &&Effect| matches!(effect, Effect::ToPeer { link, message: PeerMessage::Inform(..) } if *link == to);
        follower.member.effects.iter().filter(inform).count()
    };
    assert_eq!((told(four), told(five)), (0, 1));
}

/// It takes what it is sent, and has no time to say so.
#[test]
fn an_observer_that_takes_a_tree_lives() {
    let mut follower = Follower::start_with(|config| config.observing.masters = true);
    let (link, leader) = (LinkId(54), follower.leader);
    let member = &mut follower.member;
    member.step(Input::ObserverCalls { link });
    member.hears(link, Packet::ObserverInfo { accepted: Epoch(2), info: info(4) });
    member.hears(link, Packet::AckEpoch { last: at(0, 0), current: None });
    member.hears(link, Packet::Ack(at(2, 0)));
    for moves in [true, false] {
        for _ in 0..16 {
            member.hears(leader, Packet::Ping { zxid: at(2, 0), touched: None });
            if moves {
                member.step(Input::StreamMoves { link });
            }
            member.passes(1_000);
        }
        assert_eq!(member.has_hung_up(link), !moves);
    }
}
