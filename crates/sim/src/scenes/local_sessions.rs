//! Tests of local sessions, which only one server knows.

use crate::{
    client::Intent,
    scenes::{
        courses::three_local,
        steering::{hold_up, others},
    },
    wire,
    world::World,
};
use ostler_proto::{
    error::ErrorCode,
    id::SessionId,
    reply::{Body, OpResult, Reply},
    txn::{Txn, TxnRecord},
};
use ostler_server_core::{
    Input,
    quorum::LocalSessions::{Fixed, Upgradeable},
};

/// The leader and a follower: the tests run at both.
fn leader_and_follower(world: &World) -> [i64; 2] {
    let leader = world.leader().unwrap();
    [leader, others(world, leader)[0]]
}

fn session_of(world: &World, client: usize) -> SessionId {
    world.clients[client].session.unwrap()
}

fn is_global(world: &World, client: usize) -> bool {
    world.reference.has_session(session_of(world, client), world.reference.last())
}

fn close(world: &mut World, client: usize) -> Reply {
    world.answer(client, Intent::Close, wire::close_session()).unwrap()
}

#[test]
fn a_local_session_costs_no_transaction() {
    let mut world = three_local(1, Upgradeable);
    for member in leader_and_follower(&world) {
        let before = world.reference.last();
        let client = world.join(member);
        let read = world.answer(client, Intent::Get("/".into(), true), wire::get_and_watch("/")).unwrap();
        assert!(read.result.is_ok());
        assert_eq!(close(&mut world, client).result, Ok(Body::None));
        assert!(world.clients[client].session.is_none());
        assert_eq!(world.reference.last(), before);
    }
    world.must_come_back();
}

#[test]
fn a_local_session_is_ended_by_its_own_server_and_no_other() {
    let mut world = three_local(11, Upgradeable);
    let [leader, follower] = leader_and_follower(&world);
    for (own, other) in [(leader, follower), (follower, leader)] {
        let client = world.join(own);
        let (session, before) = (session_of(&world, client), world.reference.last());
        let has = |world: &World| {
            let all = world.nodes[&own].server.as_ref().unwrap().local_session_buckets().unwrap();
            all.iter().any(|(_, ids)| ids.contains(&session))
        };
        world.step(other, Input::ExpireSession(session));
        assert!(has(&world));
        world.step(own, Input::ExpireSession(session));
        assert!(!has(&world));
        world.run(100);
        assert_eq!(world.reference.last(), before, "no transaction");
    }
    world.must_come_back();
}

#[test]
fn a_local_session_writes_and_its_writes_are_in_order_before_its_end() {
    let mut world = three_local(2, Fixed);
    for member in leader_and_follower(&world) {
        let client = world.join(member);
        let path = format!("/of{member}");
        world.ask(client, Intent::Write(String::new()), wire::create(&path).into());
        world.ask(client, Intent::Write(String::new()), wire::set(&path, b"2"));
        world.ask(client, Intent::Get(path.clone(), false), wire::get(&path));
        let closed = close(&mut world, client);
        assert_eq!((closed.result, closed.zxid), (Ok(Body::None), Some(world.reference.last())));
        assert_eq!(world.reference.at(&path, world.reference.last()).unwrap().data, b"2");
    }
    world.must_come_back();
}

#[test]
fn an_ephemeral_upgrades_its_session_to_a_global_one() {
    let mut world = three_local(3, Upgradeable);
    for member in leader_and_follower(&world) {
        let client = world.join(member);
        assert!(world.write(client, wire::create(&format!("/plain{member}"))).is_some());
        assert!(!is_global(&world, client));
        world.clients[client].asked_for_ephemeral = true;
        let path = format!("/e{member}");
        let reply = world.write(client, wire::create(&path).ephemeral()).unwrap();
        assert!(reply.result.is_ok(), "{reply:?}");
        let created = world.reference.record(reply.zxid.unwrap()).unwrap();
        let created = TxnRecord::read(&created.0).unwrap().header.zxid;
        let before = ostler_proto::id::Zxid(created.0 - 1);
        let record = world.reference.record(before).unwrap();
        let record = TxnRecord::read(&record.0).unwrap();
        assert!(matches!(record.txn, Txn::CreateSession { .. }), "{record:?} comes before the ephemeral");
        assert_eq!((record.header.session, record.header.cxid), (session_of(&world, client), 0));

        let elsewhere = world.ids().into_iter().find(|id| *id != member).unwrap();
        assert!(world.come_back(client, elsewhere), "a global session moves");
        assert!(world.write(client, wire::set(&path, b"there")).unwrap().result.is_ok());
        assert_eq!(close(&mut world, client).result, Ok(Body::None));
        assert!(world.reference.at(&path, world.reference.last()).is_none(), "it ends with its session");
    }
    world.must_come_back();
}

#[test]
fn an_ephemeral_in_a_failed_multi_upgrades_its_session_to_a_global_one() {
    let mut world = three_local(4, Upgradeable);
    for member in leader_and_follower(&world) {
        let client = world.join(member);
        world.clients[client].asked_for_ephemeral = true;
        let failing = [wire::create(&format!("/m{member}")).ephemeral().into(), wire::set("/nowhere", b"")];
        let reply = world.write(client, wire::multi(&failing)).unwrap();
        let errors = [OpResult::Error(0), OpResult::Error(ErrorCode::NoNode.code())];
        assert_eq!(reply.result, Ok(Body::Multi(errors.into())));
        assert!(is_global(&world, client));
    }
    world.must_come_back();
}

#[test]
fn an_ephemeral_is_refused_where_local_sessions_stay_local() {
    let mut world = three_local(5, Fixed);
    let [leader, follower] = leader_and_follower(&world);
    for member in [leader, follower] {
        let client = world.join(member);
        let reply = world.write(client, wire::create("/e").ephemeral()).unwrap();
        assert_eq!(reply.result, Err(ErrorCode::EphemeralOnLocalSession));
        // A follower reports the exact error only if the whole request fails, as upstream.
        let why =
            if member == leader { ErrorCode::EphemeralOnLocalSession } else { ErrorCode::SessionExpired };
        let ops = [wire::create("/e").ephemeral().into(), wire::create("/f").into()];
        let reply = world.write(client, wire::multi(&ops)).unwrap();
        let errors = [why.code(), ErrorCode::RuntimeInconsistency.code()].map(OpResult::Error);
        assert_eq!(reply.result, Ok(Body::Multi(errors.into())));
        assert!(world.write(client, wire::create("/plain").sequential()).unwrap().result.is_ok());
        assert!(!is_global(&world, client));
    }
    world.must_come_back();
}

#[test]
fn a_local_session_comes_back_where_it_is_and_nowhere_else() {
    let mut world = three_local(6, Upgradeable);
    for member in leader_and_follower(&world) {
        let client = world.join(member);
        assert!(world.come_back(client, member));
        let elsewhere = world.ids().into_iter().find(|id| *id != member).unwrap();
        assert!(!world.come_back(client, elsewhere), "a local session moves");
        assert_eq!(world.clients[client].session, None, "the server reports that the session has ended");
    }
    world.must_come_back();
}

#[test]
fn a_local_session_expires_at_its_server() {
    let mut world = three_local(7, Upgradeable);
    for member in leader_and_follower(&world) {
        let client = world.join(member);
        let before = world.reference.last();
        let timeout_ms = world.clients[client].timeout_ms;
        world.clients[client].away_until = world.now + 4 * timeout_ms;
        assert!(world.run_until(timeout_ms + 300, |world| world.clients[client].conn.is_none()));
        assert!(!world.come_back(client, member));
        assert_eq!(world.clients[client].session, None);
        assert_eq!(world.reference.last(), before);
    }
    world.must_come_back();
}

/// A session is closed at another server while a write of it is delayed at its former one. The leader does not know the
/// session any more.
#[test]
fn a_late_write_of_a_session_that_is_over_does_not_happen() {
    for seed in 0..10 {
        let mut world = three_local(seed, Upgradeable);
        let [leader, follower] = leader_and_follower(&world);
        let client = world.join(follower);
        world.clients[client].asked_for_ephemeral = true;
        assert!(world.write(client, wire::create("/a").ephemeral()).unwrap().result.is_ok());
        world.net.cut.insert((follower, leader));
        world.ask(client, Intent::Write(String::new()), wire::create("/late").into());
        world.run(30);
        world.forget_connection(client);
        world.connect(client, leader);
        assert!(world.run_until(300, |world| world.clients[client].open));
        assert_eq!(close(&mut world, client).result, Ok(Body::None));
        world.net.cut.clear();
        world.run(400);
        assert!(world.reference.at("/late", world.reference.last()).is_none());
        world.must_come_back();
    }
}

/// A write is on its way to the leader when its client reconnects to its server. If the write happens, a read on the
/// new connection must see it.
#[test]
fn a_local_session_that_comes_back_to_its_server_sees_what_it_has_asked_for() {
    for (seed, local) in (0..10).flat_map(|seed| [(seed, Fixed), (seed, Upgradeable)]) {
        let mut world = three_local(seed, local);
        let [_, follower] = leader_and_follower(&world);
        let client = world.join(follower);
        hold_up(&mut world, follower, 250);
        world.ask(client, Intent::Write(String::new()), wire::create("/own").into());
        world.run(30);
        assert!(world.come_back(client, follower));
        let read = world.answer(client, Intent::Get("/own".into(), false), wire::get("/own")).unwrap();
        world.run(500);
        let happened = world.reference.at("/own", world.reference.last()).map(|seen| seen.stat.czxid);
        assert!(
            happened.is_none() || read.result.is_ok(),
            "[own writes] seed {seed}: {:?} at {:?} is shown without an earlier write of the session, which happens at \
             {happened:?}",
            read.result,
            read.zxid
        );
        world.must_come_back();
    }
}
