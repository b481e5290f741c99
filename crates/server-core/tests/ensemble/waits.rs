//! How long an observer waits, to the millisecond, and for what.

use crate::member::{Member, at, config};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
    membership::Membership,
    stat::ExtendedTypes,
};
use ostler_server_core::{DialTarget, Effect, EnsembleConfig, Input};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

const DELAY_MS: u64 = 5_000;

/// The others vote; this one observes.
fn observing() -> Membership {
    let mut membership = config(&[2, 3, 4], at(1, 0));
    let mut me = membership.servers[&ServerId(2)].clone();
    me.observer = true;
    membership.servers.insert(ServerId(1), me);
    membership
}

fn started(adjust: impl FnOnce(&mut EnsembleConfig)) -> Member {
    Member::start_with(&observing(), None, Tree::fresh(ExtendedTypes::default()), 1, adjust)
}

/// 4 is elected.
fn elects(member: &mut Member) {
    let candidate = Candidate { epoch: Epoch(2), zxid: at(2, 0), id: ServerId(4) };
    for server in [2, 3, 4] {
        let state = if server == 4 { PeerState::Leading } else { PeerState::Following };
        member.hears_vote(server, state, candidate, &observing());
    }
}

fn dials(member: &Member) -> Vec<(u64, DialTarget)> {
    let dials = member.effects.iter().filter_map(|effect| match effect {
        Effect::Dial { search_id, to } => Some((*search_id, *to)),
        _ => None,
    });
    dials.collect()
}

/// Milliseconds until something is so.
fn waits(member: &mut Member, is_over: impl Fn(&Member) -> bool) -> u64 {
    let began = member.ms;
    while !is_over(member) {
        assert!(member.ms < began + 2 * DELAY_MS, "it waits for too long");
        member.passes(1);
    }
    member.ms - began
}

/// The same seed gives the same times: of xorshift64 the parts below five seconds, and a millisecond.
const TIMES: [u64; 4] = [4010, 2093, 2228, 3354];

#[test]
fn the_times_that_an_observer_waits_follow_from_its_seed() {
    let mut member = started(|config| config.observing.reconnect_delay = DELAY_MS);
    for (dialled, time) in TIMES.into_iter().enumerate() {
        elects(&mut member);
        assert_eq!(dials(&member).len(), dialled);
        assert_eq!(waits(&mut member, |member| dials(member).len() > dialled), time);
        let (search_id, to) = dials(&member)[dialled];
        assert_eq!(to, DialTarget::Leader(ServerId(4)));
        member.step(Input::LeaderUnreachable { search_id });
    }
}

#[test]
fn an_observer_waits_when_it_begins_again_with_the_first_of_the_followers() {
    let mut member = started(|config| {
        config.observing.masters = true;
        config.observing.reconnect_delay = DELAY_MS;
    });
    // Rotated by its own number.
    for (dialled, (server, time)) in
        [(3, 0), (2, 0), (3, TIMES[0]), (2, 0), (3, TIMES[1])].into_iter().enumerate()
    {
        elects(&mut member);
        assert_eq!(waits(&mut member, |member| dials(member).len() > dialled), time);
        let (search_id, to) = dials(&member)[dialled];
        assert_eq!(to, DialTarget::Follower(ServerId(server)));
        member.step(Input::LeaderUnreachable { search_id });
    }
}

/// It dials whom it elects the next time.
#[test]
fn a_delayed_dial_is_dropped_when_another_search_has_begun() {
    let mut member = started(|config| config.observing.reconnect_delay = DELAY_MS);
    elects(&mut member);
    let mut vote = member.vote();
    (vote.state, vote.round) = (PeerState::Looking, 2_000);
    vote.candidate = Some(Candidate { epoch: Epoch(2), zxid: Zxid::ZERO, id: ServerId(4) });
    vote.config = observing().to_string();
    member.step(Input::Vote { from: ServerId(4), notification: vote });
    assert_eq!(member.server.elections().unwrap().searches.len(), 2);
    member.passes(2 * DELAY_MS);
    assert_eq!(dials(&member), []);
}

/// It looks as soon as it may, whatever it hears meanwhile.
#[test]
fn an_observer_that_waits_to_look_is_not_hurried() {
    let mut member = started(|config| config.observing.election_delay = DELAY_MS);
    elects(&mut member);
    let (search_id, _) = dials(&member)[0];
    member.step(Input::LeaderUnreachable { search_id });
    let searches = |member: &Member| member.server.elections().unwrap().searches.len();
    assert_eq!(searches(&member), 2);
    let sent = |member: &Member| {
        member.effects.iter().filter(|effect| matches!(effect, Effect::SendVote { .. })).count()
    };
    let before = sent(&member);
    let mut vote = member.vote();
    (vote.state, vote.round) = (PeerState::Leading, 2_000);
    vote.candidate = Some(Candidate { epoch: Epoch(2), zxid: Zxid::ZERO, id: ServerId(4) });
    vote.config = observing().to_string();
    member.step(Input::Vote { from: ServerId(4), notification: vote });
    assert_eq!((searches(&member), sent(&member)), (2, before));
    assert_eq!(waits(&mut member, |member| sent(member) > before), TIMES[0] - 1, "a step has passed");
    assert_eq!(searches(&member), 2);
}

/// The wait began with a new configuration, while it was looking. Its election goes on, and ends before the wait.
#[test]
fn an_observer_that_has_a_leader_before_its_wait_is_over_does_not_look_again() {
    let mut member = started(|config| config.observing.election_delay = DELAY_MS);
    let mut newer = observing();
    newer.version = at(1, 7).0;
    newer.servers.remove(&ServerId(2));
    let mut vote = member.vote();
    (vote.state, vote.round) = (PeerState::Looking, 1);
    vote.candidate = Some(Candidate { epoch: Epoch(2), zxid: at(2, 0), id: ServerId(4) });
    vote.config = newer.to_string();
    member.step(Input::Vote { from: ServerId(4), notification: vote });
    assert_eq!(member.server.elections().unwrap().searches.len(), 2);
    let candidate = Candidate { epoch: Epoch(2), zxid: at(2, 0), id: ServerId(4) };
    for (server, state) in [(3, PeerState::Following), (4, PeerState::Leading)] {
        member.hears_vote(server, state, candidate, &newer);
    }
    let (search_id, _) = dials(&member)[0];
    member.step(Input::LeaderLink { search_id, link: LinkId(7) });
    member.effects.clear();
    member.passes(TIMES[0] + 100);
    let votes = member.effects.iter().filter(|effect| matches!(effect, Effect::SendVote { .. })).count();
    assert_eq!(votes, 0, "it has a leader");
    assert!(member.server.has_joined(LinkId(7)), "it keeps the connection to its leader");
}
