//! An epoch in which nothing has been proposed: its leader has come to its beginning, and its followers stay at the end
//! of the one before.

use crate::{
    follower::Follower,
    member::{Member, at, config},
};
use ostler_proto::{
    id::{Epoch, ServerId, SessionId, Zxid},
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
};
use ostler_server_core::{ConnId, Effect, Input, PeerMessage};
use ostler_zab::leading::LinkId;

const OBSERVER: LinkId = LinkId(50);

/// An observer that has been at another follower comes here with what it has.
fn observer_comes(follower: &mut Follower, has: Zxid) {
    let info = LearnerInfo {
        server: Some(ServerId(4)),
        protocol: PROTOCOL_VERSION,
        config_version: config(&[1, 2, 3], at(1, 0)).version,
        knows_secrets: false,
        moves_in_place: false,
    };
    let member = &mut follower.member;
    member.step(Input::ObserverCalls { link: OBSERVER });
    member.hears(OBSERVER, Packet::ObserverInfo { accepted: Epoch(2), info });
    member.hears(OBSERVER, Packet::AckEpoch { last: has, current: None });
}

/// Whether the observer has been told all up to the end of the history.
fn is_brought_up(member: &Member) -> bool {
    member.effects.iter().any(|effect| {
        matches!(
            effect,
            Effect::ToPeer { link: OBSERVER, message: PeerMessage::Packet(Packet::NewLeader { .. }) }
        )
    })
}

fn with_observers() -> Follower {
    Follower::start_with(|config| config.observing.masters = true)
}

/// It got that from a follower to which an idle leader had brought its whole tree. Nothing that it lacks may ever come.
#[test]
fn an_observer_that_has_only_the_epoch_is_served_at_once() {
    let mut follower = with_observers();
    observer_comes(&mut follower, at(2, 0));
    assert!(is_brought_up(&follower.member));
    follower.member.hears(OBSERVER, Packet::Ack(at(2, 0)));
    assert!(follower.member.has_told(OBSERVER.0 as i64, &Packet::UpToDate));
}

/// A server that serves in an epoch has all that came before it.
#[test]
fn a_client_that_has_seen_the_beginning_of_an_epoch_is_served_by_who_follows_in_it() {
    for seen in [at(1, 0), at(2, 0)] {
        let mut follower = Follower::start_with(|_| {});
        let conn = ConnId(1);
        follower.member.step(Input::Accepted { conn, peer: ([127, 0, 0, 1], 5_000).into() });
        follower.connects(conn, SessionId::NONE, seen);
        assert!(!follower.has_closed(conn), "it has seen {seen}");
    }
}

/// The observer has commits that are still on their way here. They are not taken back, so it waits for them.
#[test]
fn an_observer_that_has_more_than_is_committed_here_waits_for_that() {
    let mut follower = with_observers();
    observer_comes(&mut follower, at(2, 2));
    for counter in [1, 2] {
        assert!(!is_brought_up(&follower.member), "before {counter}");
        follower.hears_of_write(at(2, counter), counter as i32);
        follower.commits(at(2, counter));
    }
    assert!(is_brought_up(&follower.member));
    assert!(follower.member.has_told(OBSERVER.0 as i64, &Packet::Diff(at(2, 2))));
}

/// It may have that of a leader whose epoch never began, and nothing that comes here shows it.
#[test]
fn an_observer_that_has_more_of_another_epoch_does_not_wait() {
    let mut follower = with_observers();
    observer_comes(&mut follower, at(1, 7));
    assert!(is_brought_up(&follower.member));
}

#[test]
fn a_client_that_has_seen_more_than_a_beginning_goes_elsewhere() {
    for seen in [at(1, 7), at(2, 1), at(3, 0)] {
        let mut follower = Follower::start_with(|_| {});
        let conn = ConnId(1);
        follower.member.step(Input::Accepted { conn, peer: ([127, 0, 0, 1], 5_000).into() });
        follower.connects(conn, SessionId::NONE, seen);
        assert!(follower.has_closed(conn), "it has seen {seen}");
    }
}
