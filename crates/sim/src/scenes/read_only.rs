//! Tests of servers without a leader that serve read-only clients.

use crate::{
    client::Intent,
    scenes::{courses::three_read_only, steering::others},
    wire,
    world::World,
};
use ostler_proto::{error::ErrorCode, reply::Body};
use ostler_server_core::quorum::{LocalSessions, MemberMode};

const OBSERVER: i64 = 4;

/// Ends the leader and a follower. Returns the follower that is left.
fn lose_the_quorum(world: &mut World) -> i64 {
    let leader = world.leader().unwrap();
    let other = *others(world, leader).iter().find(|id| **id != OBSERVER).unwrap();
    let left = (1..=3).find(|id| *id != leader && *id != other).unwrap();
    world.take_down(leader);
    world.take_down(other);
    for member in [left, OBSERVER] {
        assert!(world.run_until(500, |world| world.mode(member) == Some(MemberMode::Looking)));
    }
    let since = world.now;
    for member in [left, OBSERVER] {
        assert!(world.run_until(3_000, |world| world.mode(member) == Some(MemberMode::ReadOnly)));
    }
    assert!(world.now >= since + 250, "a server that has just lost its leader is read-only too early");
    left
}

fn reader_at(world: &mut World, member: i64) -> usize {
    let client = world.call(member, true);
    assert!(world.run_until(1_000, |world| world.clients[client].open), "{member} takes no reader");
    client
}

#[test]
fn without_a_quorum_clients_read_and_no_client_writes() {
    let mut world = three_read_only(1, LocalSessions::Upgradeable);
    let leader = world.leader().unwrap();
    let writer = world.join(leader);
    world.write(writer, wire::create("/a").data(b"1"));
    world.run(200);
    let left = lose_the_quorum(&mut world);
    for member in [left, OBSERVER] {
        let client = reader_at(&mut world, member);
        let read = world.answer(client, Intent::Get("/a".into(), true), wire::get_and_watch("/a")).unwrap();
        assert!(matches!(read.result, Ok(Body::Data(Some(data), _)) if data.to_vec() == b"1"));
        let refused =
            [wire::set("/a", b"2"), wire::create("/b").ephemeral().into(), wire::multi(&[]), wire::sync("/")];
        for ask in refused {
            let reply = world.write(client, ask).unwrap();
            assert_eq!(reply.result, Err(ErrorCode::NotReadOnly));
            assert_eq!(reply.zxid, read.zxid, "with the zxid of what it shows");
        }
        assert!(world.come_back(client, member) || world.clients[client].open, "it gets another session");
        let closed = world.answer(client, Intent::Close, wire::close_session()).unwrap();
        assert_eq!(closed.result, Ok(Body::None));
        let writer = world.call(member, false);
        world.run(200);
        assert!(
            !world.clients[writer].open && world.clients[writer].conn.is_none(),
            "{member} took a writer"
        );
    }
    world.must_come_back();
}

#[test]
fn a_global_session_waits_for_a_leader() {
    for local in [LocalSessions::Off, LocalSessions::Upgradeable] {
        let mut world = three_read_only(2, local);
        let leader = world.leader().unwrap();
        let client = world.call(leader, true);
        world.run_until(1_000, |world| world.clients[client].open);
        world.clients[client].asked_for_ephemeral = true;
        assert!(world.write(client, wire::create("/e").ephemeral()).unwrap().result.is_ok());
        let session = world.clients[client].session;
        let left = lose_the_quorum(&mut world);
        assert!(!world.come_back(client, left));
        assert_eq!(world.clients[client].session, session, "the client keeps its session");
        let reader = world.call(left, true);
        world.run(200);
        assert_eq!(world.clients[reader].open, local != LocalSessions::Off, "new ones are local ones");
        let told = world.tally.get("no session without a leader");
        assert_eq!(told.is_some(), local == LocalSessions::Off);
        world.heal();
        assert!(world.run_until(8_000, World::all_serve));
        assert!(world.clients[reader].conn.is_none(), "with a leader all begins anew");
        assert!(world.come_back(client, left));
        assert!(world.reference.at("/e", world.reference.last()).is_some());
        world.must_come_back();
    }
}

/// Without local sessions a server without a leader knows only the sessions in its tree.
#[test]
fn without_local_sessions_a_password_is_enough() {
    let mut world = three_read_only(4, LocalSessions::Off);
    let left = lose_the_quorum(&mut world);
    let client = world.call(left, true);
    world.run(100);
    let session = ostler_proto::id::SessionId(0x0700_0000_0000_0001);
    let of = &mut world.clients[client];
    (of.session, of.password) = (Some(session), ostler_proto::password::password_of(session));
    world.connect(client, left);
    assert!(world.run_until(1_000, |world| world.clients[client].open));
    let read = world.answer(client, Intent::Get("/".into(), false), wire::get("/")).unwrap();
    assert!(read.result.is_ok());
    let closed = world.answer(client, Intent::Close, wire::close_session()).unwrap();
    assert_eq!(closed.result, Err(ErrorCode::NotReadOnly));
    assert!(world.clients[client].open);
    world.must_come_back();
}

#[test]
fn a_reader_that_does_not_speak_loses_its_session() {
    let mut world = three_read_only(3, LocalSessions::Fixed);
    let left = lose_the_quorum(&mut world);
    let client = reader_at(&mut world, left);
    let timeout_ms = world.clients[client].timeout_ms;
    world.clients[client].away_until = world.now + 4 * timeout_ms;
    assert!(world.run_until(timeout_ms + 300, |world| world.clients[client].conn.is_none()));
    world.must_come_back();
}
