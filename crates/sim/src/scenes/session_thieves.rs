//! Tests of session thieves at every kind of member. Each step checks that no other client notices.

use crate::{
    scenes::{
        courses::{started, three_read_only},
        shape,
    },
    wire,
    world::{Shape, World},
};
use ostler_server_core::quorum::{LocalSessions, MemberMode, ObserverOptions};

/// Asks every member for every session, several times, because the wrong password is chosen at random.
fn session_thieves_come(world: &mut World) {
    let sessions: Vec<_> = world.clients.iter().filter_map(|client| client.session).collect();
    for _ in 0..5 {
        for member in world.ids() {
            for session in &sessions {
                world.session_thief_calls(member, *session);
            }
        }
        world.run(100);
    }
}

fn conns(world: &World) -> Vec<Option<ostler_server_core::ConnId>> {
    world.clients.iter().map(|client| client.conn.filter(|_| client.open)).collect()
}

#[test]
fn session_thieves_disturb_no_client_of_a_leader_a_follower_or_an_observer() {
    for local in [LocalSessions::Off, LocalSessions::Fixed, LocalSessions::Upgradeable] {
        for (masters, secret) in [(false, false), (true, false), (true, true)] {
            let observing = ObserverOptions { masters, ..ObserverOptions::default() };
            let mut world = started(3, Shape { observers: 1, local, observing, secret, ..shape(3) });
            for member in world.ids() {
                world.join(member);
            }
            let before = conns(&world);
            session_thieves_come(&mut world);
            assert_eq!(conns(&world), before);
            assert!(before.iter().all(Option::is_some));
            for client in 0..world.clients.len() {
                assert!(world.write(client, wire::set("/", b"1")).unwrap().result.is_ok());
            }
            world.must_come_back();
        }
    }
}

#[test]
fn session_thieves_disturb_no_client_of_a_server_without_a_leader() {
    for local in [LocalSessions::Off, LocalSessions::Fixed] {
        let mut world = three_read_only(4, local);
        let leader = world.leader().unwrap();
        world.join(leader);
        let ids = world.ids();
        let (left, gone): (Vec<i64>, Vec<i64>) = ids.iter().partition(|id| **id == leader || **id > 3);
        for id in gone {
            world.take_down(id);
        }
        let quiet = |world: &World| left.iter().all(|id| world.mode(*id) == Some(MemberMode::ReadOnly));
        assert!(world.run_until(4_000, quiet));
        if local == LocalSessions::Fixed {
            for member in &left {
                world.call(*member, true);
            }
            world.run(300);
        }
        let before = conns(&world);
        session_thieves_come(&mut world);
        assert_eq!(conns(&world), before);
        world.must_come_back();
    }
}
