//! Moves to other servers, and lists of servers that change.

use crate::{
    cuts::set,
    rig::{Rig, RigEvent, SESSION, TIMEOUT, config, get},
    world::{Outcome, World},
};
use ostler_client_core::{Config, ConnectionState, Failure, Input, Mono, OnChange, RankedHost};
use ostler_proto::request::Request;

fn alike(hosts: &[usize]) -> Vec<RankedHost> {
    hosts.iter().map(|host| RankedHost { host: *host, rank: 0 }).collect()
}

fn servers(rig: &mut Rig, hosts: &[usize], on_change: OnChange) {
    rig.step(Input::Servers { servers: &alike(hosts), on_change });
}

#[test]
fn a_move_waits_for_the_answers_and_later_requests_go_to_the_next_server() {
    let mut rig = Rig::online();
    let from = rig.session.server().unwrap();
    rig.get("/asked");
    let (xid, _) = rig.sent()[0];
    rig.step(Input::MoveOff);
    let later = rig.get("/later");
    assert_eq!(rig.sent(), [], "a request after the call waits");
    assert!(rig.wanted.is_some() && rig.take_events().is_empty(), "the connection stays until the answer");
    rig.reply(xid, 0, 0);
    let suspended = RigEvent::State(ConnectionState::Suspended, Some(SESSION));
    assert_eq!(rig.take_events(), [RigEvent::Reply(1, 0), suspended]);
    let moved_at = rig.now;
    rig.deadline();
    assert_eq!(rig.now, moved_at, "without a wait");
    assert_ne!(rig.wanted.unwrap().1, from);
    assert_eq!(rig.connect().0, SESSION);
    rig.grant(SESSION, TIMEOUT, false);
    let sent = rig.sent();
    assert_eq!(sent.iter().map(|(_, request)| request).collect::<Vec<_>>(), [&get("/later", false)]);
    rig.reply(sent[0].0, 0, 0);
    assert!(rig.take_events().contains(&RigEvent::Reply(later, 0)));
}

#[test]
fn a_server_that_does_not_answer_is_left_after_a_quarter_of_the_timeout() {
    let mut rig = Rig::online();
    let asked = rig.get("/asked");
    rig.sent();
    let start = rig.now;
    rig.step(Input::MoveOff);
    while rig.session.server().is_some() {
        rig.deadline();
        rig.clear_bytes();
    }
    assert_eq!(rig.now.since(start), TIMEOUT / 4);
    assert!(rig.take_events().contains(&RigEvent::Failed(asked, Failure::ConnectionLoss)));
}

#[test]
fn with_one_server_or_without_a_connection_there_is_no_move() {
    let mut rig = Rig::online_with(Config { hosts: 1, ..config() });
    rig.step(Input::MoveOff);
    assert_eq!(rig.session.server(), Some(0));
    let mut rig = Rig::online();
    rig.lose();
    rig.take_events();
    rig.step(Input::MoveOff);
    rig.deadline();
    rig.attach();
    assert!(rig.session.server().is_some(), "the wish does not outlast the connection");
}

/// A request and the end of the session wait for their answers, and so does the move.
fn closed_during_a_move() -> Rig {
    let mut rig = Rig::online();
    rig.get("/asked");
    rig.step(Input::MoveOff);
    let id = rig.next_id();
    rig.step(Input::Close(ostler_client_core::RequestId(id)));
    rig
}

#[test]
fn a_session_that_is_closed_during_a_move_ends() {
    let mut rig = closed_during_a_move();
    let sent = rig.sent();
    assert!(matches!(sent.last(), Some((_, Request::CloseSession))), "{sent:?}");
    for (xid, _) in sent {
        rig.reply(xid, 0, 0);
    }
    assert_eq!(rig.take_events().last(), Some(&RigEvent::Ended));
    assert_eq!(rig.session.next_deadline(), None);
}

#[test]
fn a_session_that_is_closed_during_a_move_waits_for_its_end() {
    let mut rig = closed_during_a_move();
    rig.wait(TIMEOUT / 4);
    rig.step(Input::Deadline);
    assert!(rig.session.server().is_some(), "the move is given up, and not the connection");
}

#[test]
fn a_followed_list_leaves_the_connection_alone_and_counts_from_the_next_attempt_on() {
    let mut rig = Rig::online();
    let from = rig.session.server().unwrap();
    servers(&mut rig, &[7, 8], OnChange::Stay);
    assert_eq!((rig.session.server(), rig.take_events()), (Some(from), vec![]));
    rig.lose();
    let mut tried = Vec::new();
    for _ in 0..4 {
        rig.deadline();
        tried.push(rig.wanted.unwrap().1);
        rig.lose();
    }
    tried.sort_unstable();
    assert_eq!(tried, [7, 7, 8, 8]);
}

#[test]
fn an_updated_list_moves_the_session_off_a_server_that_is_gone_and_keeps_it_otherwise() {
    let mut rig = Rig::online();
    let from = rig.session.server().unwrap();
    servers(&mut rig, &[0, 1, 2], OnChange::Rebalance);
    assert_eq!(rig.session.server(), Some(from));
    servers(&mut rig, &[from], OnChange::Rebalance);
    assert_eq!(rig.session.server(), Some(from));
    servers(&mut rig, &[5], OnChange::Rebalance);
    rig.deadline();
    assert_eq!(rig.wanted.unwrap().1, 5);
    assert_eq!(rig.connect().0, SESSION, "the session is the same");
}

#[test]
fn a_client_without_servers_waits_for_the_first_list() {
    let mut rig = Rig::new(Config { hosts: 0, ..config() });
    let asked = rig.get("/a");
    rig.deadline();
    assert_eq!((rig.wanted, rig.take_events()), (None, vec![RigEvent::Failed(asked, Failure::NotConnected)]));
    servers(&mut rig, &[], OnChange::Stay);
    assert!(rig.session.next_deadline().unwrap() > Mono(TIMEOUT * 1000));
    servers(&mut rig, &[3], OnChange::Stay);
    rig.deadline();
    assert_eq!(rig.wanted.unwrap().1, 3);
    rig.attach();
    assert_eq!(rig.session.server(), Some(3));
}

#[test]
fn a_later_list_does_not_end_the_wait_after_a_round() {
    let mut rig = Rig::online();
    rig.lose();
    while rig.session.next_deadline().unwrap() <= rig.now {
        rig.deadline();
        rig.lose();
    }
    let waits = rig.session.next_deadline().unwrap();
    servers(&mut rig, &[3], OnChange::Stay);
    assert_eq!(rig.session.next_deadline(), Some(waits));
    rig.deadline();
    assert_eq!(rig.wanted.unwrap().1, 3);
}

#[test]
fn the_end_of_each_round_of_failed_attempts_is_reported() {
    let mut rig = Rig::online();
    rig.wait(TIMEOUT / 10);
    rig.lose();
    let mut rounds = Vec::new();
    for _ in 0..8 {
        rounds.push(std::mem::take(&mut rig.rounds_failed) > 0);
        rig.deadline();
        rig.lose();
    }
    assert_eq!(rounds, [false, false, true, false, false, true, false, false]);
}

#[test]
fn a_read_only_server_is_left_for_a_server_of_a_later_list() {
    let mut rig = Rig::read_only(Config { hosts: 1, ..config() });
    servers(&mut rig, &[0, 1], OnChange::Stay);
    let mut probed = Vec::new();
    while !probed.contains(&RigEvent::Probe(1)) {
        rig.deadline();
        probed.extend(rig.take_events());
        assert!(rig.now.since(Mono::START) < TIMEOUT, "{probed:?}");
    }
    rig.step(Input::FoundReadWrite { host: 1 });
    rig.deadline();
    assert_eq!(rig.wanted.unwrap().1, 1);
}

/// With random delays, and moves at random times between writes.
#[test]
fn moves_alone_lose_no_request_and_no_order() {
    let mut moves = 0;
    for seed in 0..100 {
        let mut world = World::new(seed);
        world.delay_max = 1 + world.below(200);
        world.ask(1, &crate::cuts::create("/a", 0), None);
        world.run(world.now + 2000);
        let mut id = 1;
        for _ in 0..40 {
            for _ in 0..world.below(4) {
                id += 1;
                world.ask(id, &set("/a"), None);
            }
            if world.below(4) == 0 {
                world.move_off();
            }
            let until = world.now + world.below(150);
            world.run(until);
        }
        world.run(world.now + 5000);
        for request in 1..=id {
            assert_eq!(world.outcomes[&request], [Outcome::Reply(0)], "request {request} with seed {seed}");
        }
        let tree = world.server.tree();
        let version = tree.stat(tree.get("/a").unwrap()).version;
        assert_eq!(version as u64, id - 1, "each write was done once");
        moves += world.states.iter().filter(|(_, state, _)| *state == ConnectionState::Suspended).count();
        assert!(world.expired.is_empty());
    }
    assert!(moves > 300, "{moves}");
}
