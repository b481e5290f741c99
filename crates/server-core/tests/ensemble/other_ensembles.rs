//! Votes from servers of another ensemble that have ids of this one.

use crate::member::{ME, Member, at, config};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
    membership::Membership,
    stat::ExtendedTypes,
};
use ostler_server_core::{Effect, quorum::MemberMode};
use ostler_tree::Tree;
use ostler_zab::election::{ElectionEvent, IgnoreReason, Verdict};

/// The same ids elsewhere.
fn elsewhere(voters: &[i64], version: Zxid) -> Membership {
    let lines = voters.iter().map(|id| format!("server.{id}=k{id}:1:2:participant\n"));
    Membership { version: version.0, ..Membership::parse(&lines.collect::<String>()).unwrap() }
}

fn better(id: i64) -> Candidate {
    Candidate { epoch: Epoch(9), zxid: at(9, 9), id: ServerId(id) }
}

fn refused(member: &Member) -> Vec<i64> {
    let refused = member.effects.iter().filter_map(|effect| match effect {
        Effect::RefuseVotes { of, .. } => Some(of.0),
        _ => None,
    });
    refused.collect()
}

fn sent(member: &Member) -> usize {
    member.effects.iter().filter(|effect| matches!(effect, Effect::SendVote { .. })).count()
}

fn start(own: &Membership, refuse: bool) -> Member {
    Member::start_with(own, None, Tree::fresh(ExtendedTypes::default()), 1, |config| {
        config.refuse_others = refuse;
    })
}

#[test]
fn they_have_no_effect_on_an_election() {
    let (own, other) = (config(&[1, 2, 3], Zxid::ZERO), elsewhere(&[1, 2, 3], at(7, 7)));
    let mut member = start(&own, true);
    let (before, said) = (member.vote(), sent(&member));
    for state in [PeerState::Looking, PeerState::Leading, PeerState::Following] {
        member.hears_vote(2, state, better(2), &other);
        member.hears_vote(3, state, better(2), &other);
    }
    assert_eq!(refused(&member), [2, 3, 2, 3, 2, 3]);
    assert_eq!(sent(&member), said, "nobody is answered");
    assert_eq!(member.server.mode(), Some(MemberMode::Looking));
    assert_eq!(member.saved, None, "nor is their configuration taken for a newer one");
    member.passes(10_000);
    assert_eq!(member.vote(), before);
    let elections = member.server.elections().unwrap();
    let noted = elections.searches[0].votes.entries.iter().filter(|entry| {
        let verdict = Verdict::Ignored { why: IgnoreReason::AnotherEnsemble };
        matches!(entry.event, ElectionEvent::Received { verdict: of, .. } if of == verdict)
    });
    assert_eq!(noted.count(), 6);
    // One voice of its own is enough still.
    let own_vote = before.candidate.unwrap();
    member.hears_vote(2, PeerState::Looking, own_vote, &other);
    assert!(!member.get_elected_by(&[], &own));
    assert!(member.get_elected_by(&[3], &own));
}

#[test]
fn they_get_no_answer_from_who_has_decided() {
    let (own, other) = (config(&[1, 2, 3], Zxid::ZERO), elsewhere(&[1, 2, 3], Zxid::ZERO));
    let mut member = start(&own, true);
    assert!(member.get_elected_by(&[2], &own));
    let said = sent(&member);
    member.hears_vote(3, PeerState::Looking, better(3), &other);
    member.hears_vote(2, PeerState::Leading, better(2), &other);
    assert_eq!((refused(&member), sent(&member)), (vec![3, 2], said));
    assert_eq!(member.vote().state, PeerState::Leading, "nor do they make it doubt");
    member.hears_vote(3, PeerState::Looking, better(3), &own);
    assert_eq!(sent(&member), said + 1);
}

/// An operator that moves all servers at once can do so.
#[test]
fn they_count_where_they_are_let_in() {
    let (own, other) = (config(&[1, 2, 3], Zxid::ZERO), elsewhere(&[1, 2, 3], Zxid::ZERO));
    let mut member = start(&own, false);
    assert!(member.get_elected_by(&[2], &other));
    assert_eq!(refused(&member), [0; 0]);
    assert_eq!(member.vote().candidate.map(|own| own.id), Some(ServerId(ME)));
}

/// One of three servers stays: so an ensemble moves, server by server. And what is proposed may bring new names.
#[test]
fn an_ensemble_that_moves_step_by_step_stays_the_same_ensemble() {
    let own = config(&[1, 2, 3], Zxid::ZERO);
    let moved = Membership::parse("server.1=h1:1:2\nserver.2=k2:1:2\nserver.3=k3:1:2").unwrap();
    let mut member = start(&own, true);
    assert!(member.get_elected_by(&[2], &moved));
    let all_new = Membership { version: at(1, 1).0, ..elsewhere(&[1, 2, 3], Zxid::ZERO) };
    let tree = crate::configurations::tree_with(&[&own, &all_new]);
    let mut member = Member::start(&own, Some(&all_new), tree, 1);
    member.hears_vote(2, PeerState::Looking, better(2), &all_new);
    assert_eq!((refused(&member), &member.saved), (vec![], &Some(all_new)));
}
