//! A whole exchange, with the connection cut after each single message, and with a network with random faults.

use crate::{
    rig::{add_watch, children, exists, get},
    world::{Outcome, TIMEOUT_MS, World},
};
use ostler_client_core::{ConnectionState, EventKind, Failure};
use ostler_proto::{
    acl::{Perms, RawAcl},
    op::Op,
    request::{Create, PathVersion, Request, SetData},
};
use std::collections::BTreeMap;

pub(crate) fn create(path: &str, flags: i32) -> Request<'_> {
    let acl = RawAcl { perms: Perms::ALL, scheme: Some("world".into()), id: Some("anyone".into()) };
    let acl = Some(vec![acl]);
    Request::Create(Create { op: Op::Create2, path: path.into(), data: None, acl, flags, ttl_ms: -1 })
}

pub(crate) fn set(path: &str) -> Request<'_> {
    Request::SetData(SetData { path: path.into(), data: Some(b"x"), version: -1 })
}

fn delete(path: &str) -> Request<'_> {
    Request::Delete(PathVersion { path: path.into(), version: -1 })
}

/// Creates that succeed and fail, all kinds of watches, and watches that are dropped at once.
fn exchange(world: &mut World) {
    world.ask(1, &create("/a", 0), None);
    world.ask(2, &get("/a", true), Some(1));
    world.ask(3, &exists("/none"), Some(2));
    world.ask(4, &children("/a"), Some(3));
    world.ask(5, &create("/a/e", 1), None);
    world.ask(6, &add_watch("/a", false), Some(4));
    world.ask(7, &add_watch("/", true), Some(5));
    world.ask(8, &get("/a", true), Some(6));
    world.unwatch(6);
    world.ask(9, &create("/a", 0), None);
    world.run(world.now + 100);
}

#[test]
fn after_a_cut_anywhere_every_request_has_one_outcome_and_every_watch_works() {
    let mut whole = World::new(1);
    exchange(&mut whole);
    let messages = whole.delivered;
    assert!(messages > 20, "{messages}");
    for cut in 1..=messages {
        let mut world = World::new(1);
        world.cut_after = Some(cut);
        exchange(&mut world);
        world.run(world.now + 2000);
        check_outcomes(&world, cut);
        check_watches(&mut world, cut);
    }
}

fn check_outcomes(world: &World, cut: usize) {
    for id in 1..=9 {
        let outcomes = world.outcomes.get(&id).map_or(&[][..], Vec::as_slice);
        assert_eq!(outcomes.len(), 1, "request {id} after cut {cut}: {outcomes:?}");
    }
    let there = |path| world.server.tree().get(path).is_some();
    if world.outcomes[&1][0] == Outcome::Reply(0) {
        assert!(there("/a"));
    }
    if world.outcomes[&5][0] == Outcome::Reply(0) {
        assert!(there("/a/e"), "the session lives on with its ephemeral znode");
    }
    assert!(world.expired.is_empty());
    let allowed = |outcome| matches!(outcome, Outcome::Reply(_) | Outcome::Failed(Failure::ConnectionLoss));
    assert!(world.outcomes.values().all(|outcomes| allowed(outcomes[0])), "cut {cut}: {:?}", world.outcomes);
}

/// Each watch whose registration was answered gets its event once; the others get none.
fn check_watches(world: &mut World, cut: usize) {
    let set_by = |world: &World, id: u64, codes: &[i32]| matches!(world.outcomes[&id][0], Outcome::Reply(code) if codes.contains(&code));
    let before = std::mem::take(&mut world.events);
    let fired = |watch: u64| before.iter().any(|(id, kind, _)| *id == watch && *kind != EventKind::Gap);
    world.other(&create("/a", 0));
    world.other(&set("/a"));
    world.other(&create("/none", 0));
    world.other(&create("/a/c", 0));
    world.run(world.now + 100);
    let heard = |watch: u64| world.events.iter().filter(|(id, ..)| *id == watch).count();
    let expected: BTreeMap<u64, usize> = BTreeMap::from([
        (1, usize::from(set_by(world, 2, &[0]) && !fired(1))),
        (2, usize::from(set_by(world, 3, &[-101]) && !fired(2))),
        (3, usize::from(set_by(world, 4, &[0]) && !fired(3))),
        (6, 0),
    ]);
    for (watch, expected) in expected {
        assert_eq!(heard(watch), expected, "watch {watch} after cut {cut}: {:?}", world.events);
    }
    if set_by(world, 6, &[0]) {
        assert!(heard(4) >= 2, "cut {cut}: {:?}", world.events);
    }
    if set_by(world, 7, &[0]) {
        assert!(heard(5) >= 3, "cut {cut}: {:?}", world.events);
    }
}

/// Random cuts, silences and long delays. `Lost` is reported before the server expires the session, and a session that
/// was not reported lost is alive at the server.
#[test]
fn lost_is_reported_before_the_server_expires_the_session() {
    let mut lost = 0;
    for seed in 0..300 {
        let mut world = World::new(seed);
        world.delay_max = 1 + world.below(1500);
        let mut id = 0;
        for _ in 0..60 {
            id += 1;
            let until = world.now + 1 + world.below(2 * TIMEOUT_MS / 3);
            match world.below(6) {
                0 => world.partitioned = true,
                1 | 2 => world.partitioned = false,
                3 => world.cut(),
                _ => world.ask(id, &set("/"), None),
            }
            world.run(until);
        }
        lost += check_lost_reports(&world, seed);
    }
    assert!(lost > 100, "the runs must be rough enough to lose sessions: {lost}");
}

fn check_lost_reports(world: &World, seed: u64) -> usize {
    let reported_at = |wanted, session| {
        let found = world.states.iter().find(|(_, state, about)| *state == wanted && *about == Some(session));
        found.map(|(at, ..)| *at)
    };
    let known = |session| world.states.iter().any(|(_, _, about)| *about == Some(session));
    for (session, expired_at) in world.expired.iter().filter(|(session, _)| known(**session)) {
        let lost_at = reported_at(ConnectionState::Lost, *session);
        assert!(
            lost_at.is_some_and(|lost_at| lost_at <= *expired_at),
            "seed {seed}: {session} expired at {expired_at}, reported lost at {lost_at:?}"
        );
    }
    world.states.iter().filter(|(_, state, _)| *state == ConnectionState::Lost).count()
}

/// Watches are set and dropped at random while the connection is cut at random.
#[test]
fn dropped_watches_are_removed_at_the_server() {
    const PATHS: [&str; 4] = ["/p", "/q", "/p/c", "/r"];
    for seed in 0..200 {
        let mut world = World::new(seed);
        world.delay_max = 20;
        world.other(&create("/p", 0));
        let mut held: Vec<u64> = Vec::new();
        for watch in 1..80 {
            let path = PATHS[world.below(4) as usize];
            match world.below(9) {
                0 => world.ask(watch, &get(path, true), Some(watch)),
                1 => world.ask(watch, &exists(path), Some(watch)),
                2 => world.ask(watch, &children(path), Some(watch)),
                3 => world.ask(watch, &add_watch(path, false), Some(watch)),
                4 => world.ask(watch, &add_watch(path, true), Some(watch)),
                5 => world.cut(),
                6 => world.other(&create(path, 0)),
                7 => world.other(&delete(path)),
                _ => {}
            }
            held.push(watch);
            if world.below(2) == 0 {
                let gone = held.swap_remove(world.below(held.len() as u64) as usize);
                world.unwatch(gone);
            }
            let until = world.now + world.below(60);
            world.run(until);
        }
        for watch in held {
            world.unwatch(watch);
        }
        world.run(world.now + 3000);
        assert_eq!(world.client.watchers(), 0, "seed {seed}");
        let before = world.notified;
        for path in PATHS {
            world.other(&create(path, 0));
            world.other(&set(path));
            world.other(&delete(path));
        }
        world.run(world.now + 500);
        assert_eq!(world.notified, before, "seed {seed}: the server sends no event without a watch");
    }
}
