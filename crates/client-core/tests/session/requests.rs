//! Requests and replies.

use crate::rig::{NO_NODE, Rig, RigEvent, SESSION, config, get};
use ostler_client_core::{Config, ConnectionState, Failure, Input, RequestId};
use ostler_proto::{
    id::SessionId,
    request::{Request, SetData},
};
use std::time::Duration;

#[test]
fn replies_match_requests_in_their_order() {
    let mut rig = Rig::online();
    let ids: Vec<u64> = ["/a", "/b", "/c"].map(|path| rig.get(path)).into();
    let sent = rig.sent();
    assert_eq!(sent.iter().map(|(xid, _)| *xid).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(sent[1].1, get("/b", false));
    rig.reply(1, 5, 0);
    rig.reply(2, 5, NO_NODE);
    rig.reply(3, 5, 0);
    assert_eq!(
        rig.take_events(),
        [RigEvent::Reply(ids[0], 0), RigEvent::Reply(ids[1], NO_NODE), RigEvent::Reply(ids[2], 0)]
    );
}

#[test]
fn a_reply_out_of_order_closes_the_connection() {
    let mut rig = Rig::online();
    let ids: Vec<u64> = ["/a", "/b"].map(|path| rig.get(path)).into();
    rig.reply(2, 5, 0);
    let lost = |id| RigEvent::Failed(id, Failure::ConnectionLoss);
    assert_eq!(
        rig.take_events(),
        [lost(ids[0]), lost(ids[1]), RigEvent::State(ConnectionState::Suspended, Some(SESSION))]
    );
    assert!(rig.wanted.is_none());
}

#[test]
fn an_unreadable_frame_closes_only_the_connection() {
    for payload in
        [&b""[..], &[0; 15], &[0xff; 16], &[0xff; 20], &[0; 16], b"\xff\xff\xff\xfe\0\0\0\0\0\0\0\0\0\0\0\0"]
    {
        let mut rig = Rig::online();
        rig.frame(payload);
        assert_eq!(
            rig.take_events(),
            [RigEvent::State(ConnectionState::Suspended, Some(SESSION))],
            "{payload:?}"
        );
    }
}

#[test]
fn waiting_requests_are_sent_first_and_in_order() {
    let mut rig = Rig::new(config());
    let first = rig.get("/a");
    let second = rig.get("/b");
    rig.deadline();
    rig.attach();
    let sent = rig.sent();
    assert_eq!(sent, [(1, get("/a", false)), (2, get("/b", false))]);
    rig.get("/c");
    assert_eq!(rig.sent(), [(3, get("/c", false))]);
    rig.reply(1, 1, 0);
    rig.reply(2, 1, 0);
    let state = RigEvent::State(ConnectionState::Connected, Some(SESSION));
    assert_eq!(rig.take_events(), [state, RigEvent::Reply(first, 0), RigEvent::Reply(second, 0)]);
}

#[test]
fn requests_that_wait_too_long_fail_unsent() {
    let mut rig = Rig::new(Config { connection_timeout: Duration::from_secs(5), ..config() });
    let early = rig.get("/a");
    rig.wait(Duration::from_secs(3));
    let late = rig.get("/b");
    rig.wait(Duration::from_secs(2));
    rig.step(Input::Deadline);
    assert_eq!(rig.take_events(), [RigEvent::Failed(early, Failure::NotConnected)]);
    rig.attach();
    assert_eq!(rig.sent(), [(1, get("/b", false))]);
    rig.reply(1, 1, 0);
    assert_eq!(rig.take_events()[1], RigEvent::Reply(late, 0));
}

#[test]
fn a_request_that_is_too_large_is_not_sent() {
    let mut rig = Rig::online_with(Config { packet_max: 100, ..config() });
    let data = [0; 101];
    let set = |data| Request::SetData(SetData { path: "/a".into(), data: Some(data), version: -1 });
    let id = rig.ask(&set(&data));
    assert!(
        matches!(rig.take_events()[..], [RigEvent::Failed(failed, Failure::TooLarge { limit: 100, .. })] if failed == id)
    );
    rig.ask(&set(&data[..50]));
    assert_eq!(rig.sent().len(), 1);
    rig.lose();
    rig.take_events();
    let id = rig.ask(&set(&data));
    assert!(
        matches!(rig.take_events()[..], [RigEvent::Failed(failed, Failure::TooLarge { .. })] if failed == id)
    );
}

#[test]
fn a_bound_request_goes_to_its_session_only() {
    let mut rig = Rig::online();
    rig.ask_as(&get("/a", false), Some(SESSION), None);
    assert_eq!(rig.sent().len(), 1);
    let id = rig.ask_as(&get("/a", false), Some(SessionId(9)), None);
    assert_eq!(rig.take_events(), [RigEvent::Failed(id, Failure::SessionChanged)]);
    assert!(rig.sent().is_empty());
    // Also before the first session.
    let mut rig = Rig::new(config());
    let id = rig.ask_as(&get("/a", false), Some(SESSION), None);
    assert_eq!(rig.take_events(), [RigEvent::Failed(id, Failure::SessionChanged)]);
}

#[test]
fn closing_answers_what_came_before_and_refuses_what_comes_after() {
    let mut rig = Rig::online();
    let before = rig.get("/a");
    let close = rig.next_id();
    rig.step(Input::Close(RequestId(close)));
    let after = rig.get("/b");
    assert_eq!(rig.sent().last().unwrap(), &(2, Request::CloseSession));
    rig.reply(1, 1, 0);
    rig.reply(2, 2, 0);
    assert_eq!(
        rig.take_events(),
        [
            RigEvent::Failed(after, Failure::Closed),
            RigEvent::Reply(before, 0),
            RigEvent::Reply(close, 0),
            RigEvent::State(ConnectionState::Closed, Some(SESSION)),
            RigEvent::Ended
        ]
    );
    assert_eq!(rig.session.next_deadline(), None);
    let late = rig.get("/c");
    assert_eq!(rig.take_events(), [RigEvent::Failed(late, Failure::Closed)]);
    rig.step(Input::Deadline);
    assert!(rig.take_events().is_empty());
}

#[test]
fn closing_without_a_connection_ends_at_once() {
    let mut rig = Rig::online();
    rig.lose();
    let waiting = rig.get("/a");
    rig.take_events();
    rig.step(Input::Close(RequestId(99)));
    let heard = rig.take_events();
    assert_eq!(heard[0], RigEvent::Failed(waiting, Failure::Closed));
    assert_eq!(
        heard[1..3],
        [RigEvent::Reply(99, 0), RigEvent::State(ConnectionState::Closed, Some(SESSION))]
    );
}

#[test]
fn a_connection_lost_while_closing_closes() {
    let mut rig = Rig::online();
    rig.step(Input::Close(RequestId(99)));
    rig.lose();
    assert!(rig.take_events().contains(&RigEvent::Ended));
    assert_eq!(rig.session.next_deadline(), None);
}
