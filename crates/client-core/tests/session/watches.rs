//! Watches: which of them get an event, which are removed at the server, and which are set again.

use crate::rig::{NO_NODE, Rig, RigEvent, SESSION, TIMEOUT, add_watch, children, config, exists, get};
use ostler_client_core::{Config, ConnectionState, EventKind, Failure, Input, WatchId};
use ostler_proto::{
    error::ErrorCode,
    event::EventType::{self, NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted},
    id::{Xid, Zxid},
    request::{Request, SetWatches},
};

const SET_WATCHES: i32 = Xid::SET_WATCHES.0;
const THROTTLED: i32 = ErrorCode::ThrottledOp as i32;

/// Every kind of registration on `/p` (and a recursive one above it) against every event there.
#[test]
fn each_kind_of_watch_gets_its_events() {
    let cases: [(&str, Request<'_>, i32, [bool; 4]); 7] = [
        ("getData", get("/p", true), 0, [true, true, true, false]),
        ("exists, there", exists("/p"), 0, [true, true, true, false]),
        ("exists, not there", exists("/p"), NO_NODE, [true, true, true, false]),
        ("getChildren", children("/p"), 0, [false, true, false, true]),
        ("persistent", add_watch("/p", false), 0, [true, true, true, true]),
        ("recursive", add_watch("/p", true), 0, [true, true, true, false]),
        ("recursive above", add_watch("/", true), 0, [true, true, true, false]),
    ];
    let events = [NodeCreated, NodeDeleted, NodeDataChanged, NodeChildrenChanged];
    for (name, request, error, hears) in cases {
        for (event, hears) in events.into_iter().zip(hears) {
            let mut rig = Rig::online();
            rig.watch(7, &request, error);
            rig.event(event, "/px");
            rig.event(event, "/p");
            let events: Vec<RigEvent> = rig
                .take_events()
                .into_iter()
                .filter(|heard| !matches!(heard, RigEvent::Event(_, _, path) if path == "/px"))
                .collect();
            let expected = RigEvent::Event(vec![7], event.into(), "/p".into());
            assert_eq!(events, if hears { vec![expected] } else { vec![] }, "{name} {event:?}");
            rig.event(event, "/p");
            let stays = matches!(request, Request::AddWatch { .. }) && hears;
            assert_eq!(rig.take_events().len(), usize::from(stays), "{name} {event:?} again");
        }
    }
}

#[test]
fn a_read_that_fails_leaves_no_watch() {
    for (request, error) in [(get("/p", true), NO_NODE), (exists("/p"), -102), (children("/p"), NO_NODE)] {
        let mut rig = Rig::online();
        rig.watch(7, &request, error);
        assert_eq!(rig.session.watchers(), 0);
        rig.step(Input::Unwatch(WatchId(7)));
        assert!(rig.sent().is_empty());
    }
}

fn removal(path: &'static str, kind: i32) -> Request<'static> {
    Request::RemoveWatches { path: path.into(), kind }
}

#[test]
fn the_last_watcher_dropped_removes_the_entry() {
    for (request, error, kind) in [
        (get("/p", true), 0, 2),
        (exists("/p"), NO_NODE, 2),
        (children("/p"), 0, 1),
        (add_watch("/p", false), 0, 4),
        (add_watch("/p", true), 0, 5),
    ] {
        let mut rig = Rig::online();
        rig.watch(1, &request, error);
        rig.watch(2, &request, error);
        rig.step(Input::Unwatch(WatchId(1)));
        assert!(rig.sent().is_empty(), "{request:?}: another needs it");
        rig.step(Input::Unwatch(WatchId(2)));
        assert_eq!(rig.sent(), [(3, removal("/p", kind))]);
        rig.reply(3, 1, 0);
        assert!(rig.take_events().is_empty());
    }
}

#[test]
fn data_and_exist_watches_share_an_entry() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/p", true), 0);
    rig.watch(2, &exists("/p"), 0);
    rig.step(Input::Unwatch(WatchId(1)));
    assert!(rig.sent().is_empty());
    rig.step(Input::Unwatch(WatchId(2)));
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn an_entry_stays_while_another_registration_is_under_way() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/p", true), 0);
    rig.ask_as(&exists("/p"), None, Some(2));
    rig.step(Input::Unwatch(WatchId(1)));
    assert_eq!(rig.sent().len(), 1, "only the registration; a removal after it would take its entry");
    rig.reply(2, 1, 0);
    rig.take_events();
    rig.event(NodeDataChanged, "/p");
    assert_eq!(rig.take_events(), [RigEvent::Event(vec![2], EventKind::NodeDataChanged, "/p".into())]);
}

#[test]
fn a_watch_dropped_under_way_is_removed_once_it_is_set() {
    let mut rig = Rig::online();
    rig.ask_as(&get("/p", true), None, Some(1));
    rig.step(Input::Unwatch(WatchId(1)));
    assert_eq!(rig.sent().len(), 1);
    rig.reply(1, 1, 0);
    assert_eq!(rig.sent(), [(2, removal("/p", 2))]);
    assert_eq!(rig.session.watchers(), 0);
    // If no watch was set, there is nothing to remove.
    rig.ask_as(&get("/q", true), None, Some(2));
    rig.step(Input::Unwatch(WatchId(2)));
    rig.sent();
    rig.reply(2, 1, 0);
    rig.reply(3, 1, NO_NODE);
    assert!(rig.sent().is_empty());
}

#[test]
fn a_fired_watch_needs_no_removal() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/p", true), 0);
    rig.event(NodeDeleted, "/p");
    rig.step(Input::Unwatch(WatchId(1)));
    assert!(rig.sent().is_empty());
}

#[test]
fn a_one_shot_watch_stays_while_a_lasting_one_on_its_path_does() {
    for recursive in [false, true] {
        let mut rig = Rig::online();
        rig.watch(1, &add_watch("/p", recursive), 0);
        rig.watch(2, &get("/p", true), 0);
        rig.step(Input::Unwatch(WatchId(2)));
        assert!(rig.sent().is_empty(), "a server before 3.9 would remove the other with it");
        rig.step(Input::Unwatch(WatchId(1)));
        assert_eq!(rig.sent(), [(4, removal("/p", 3))], "now all of them");
        rig.reply(4, 1, 0);
        // The registration of the lasting watch is refused.
        rig.watch(3, &get("/q", true), 0);
        rig.ask_as(&add_watch("/q", recursive), None, Some(4));
        rig.sent();
        rig.step(Input::Unwatch(WatchId(3)));
        assert!(rig.sent().is_empty());
        rig.reply(6, 1, -6);
        assert_eq!(rig.sent(), [(7, removal("/q", 3))]);
    }
}

#[test]
fn servers_before_3_9_lose_all_entries_of_a_path_with_the_last_watcher() {
    let mut rig = Rig::online();
    rig.watch(1, &add_watch("/p", false), 0);
    rig.watch(2, &get("/p", true), 0);
    rig.step(Input::Unwatch(WatchId(1)));
    assert_eq!(rig.sent(), [(4, removal("/p", 4))]);
    rig.reply(4, 1, -5);
    assert!(rig.sent().is_empty(), "the other watcher needs its entry");
    rig.step(Input::Unwatch(WatchId(2)));
    assert_eq!(rig.sent(), [(5, removal("/p", 3))], "all of them");
    rig.reply(5, 1, 0);
    rig.watch(3, &add_watch("/q", true), 0);
    rig.step(Input::Unwatch(WatchId(3)));
    assert_eq!(rig.sent(), [(7, removal("/q", 5))]);
    rig.reply(7, 1, -5);
    assert_eq!(rig.sent(), [(8, removal("/q", 3))]);
    rig.reply(8, 1, 0);
    assert!(rig.take_events().is_empty());
}

#[test]
fn servers_before_3_9_lose_all_entries_of_a_path_with_the_last_watch_that_fires() {
    let mut rig = Rig::online();
    rig.watch(1, &add_watch("/p", false), 0);
    rig.watch(2, &get("/p", true), 0);
    rig.watch(3, &children("/p"), 0);
    rig.step(Input::Unwatch(WatchId(1)));
    let (xid, _) = rig.sent()[0];
    rig.reply(xid, 1, -5);
    rig.event(NodeDataChanged, "/p");
    assert!(rig.sent().is_empty(), "one needs its entry");
    rig.event(NodeChildrenChanged, "/p");
    assert_eq!(rig.sent(), [(xid + 1, removal("/p", 3))]);
    rig.reply(xid + 1, 1, 0);
    rig.event(NodeDataChanged, "/p");
    assert!(rig.sent().is_empty());
}

#[test]
fn an_entry_is_removed_if_its_last_watch_is_dropped_during_a_failing_registration() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/p", true), 0);
    rig.ask_as(&get("/p", true), None, Some(2));
    rig.step(Input::Unwatch(WatchId(1)));
    rig.sent();
    rig.reply(2, 1, -102);
    assert_eq!(rig.sent(), [(3, removal("/p", 2))]);
}

#[test]
fn a_persistent_watch_is_set_again_behind_a_one_shot_one_on_its_path() {
    let mut rig = Rig::online();
    rig.watch(1, &add_watch("/p", true), 0);
    rig.ask_as(&get("/p", true), None, Some(2));
    rig.get("/p");
    rig.ask_as(&children("/q"), None, Some(3));
    assert_eq!(
        rig.sent(),
        [(2, get("/p", true)), (3, add_watch("/p", true)), (4, get("/p", false)), (5, children("/q"))]
    );
    for xid in 2..=5 {
        rig.reply(xid, 1, 0);
    }
    rig.take_events();
    rig.event(NodeDataChanged, "/p");
    assert_eq!(rig.take_events(), [RigEvent::Event(vec![1, 2], EventKind::NodeDataChanged, "/p".into())]);
}

#[test]
fn a_recursive_watch_is_set_again_behind_a_persistent_one_on_its_path() {
    for offline in [false, true] {
        let mut rig = Rig::online();
        rig.watch(1, &add_watch("/p", true), 0);
        if offline {
            rig.lose();
        }
        rig.ask_as(&add_watch("/p", false), None, Some(2));
        rig.ask_as(&add_watch("/q", false), None, Some(3));
        let mut sent = Vec::new();
        if offline {
            rig.deadline();
            rig.attach();
            sent = vec![(
                SET_WATCHES,
                Request::SetWatches(SetWatches { persistent_recursive: vec!["/p".into()], ..set(0) }),
            )];
        }
        sent.extend([(2, add_watch("/p", false)), (3, add_watch("/p", true)), (4, add_watch("/q", false))]);
        assert_eq!(rig.sent(), sent);
    }
}

#[test]
fn a_persistent_watch_without_an_answer_is_set_again_behind_a_one_shot_one() {
    for error in [0, THROTTLED] {
        let mut rig = Rig::online();
        rig.ask_as(&add_watch("/p", true), None, Some(1));
        rig.ask_as(&get("/p", true), None, Some(2));
        assert_eq!(
            rig.sent(),
            [(1, add_watch("/p", true)), (2, get("/p", true)), (3, add_watch("/p", true))]
        );
        rig.reply(1, 1, error);
        // If it was refused, the renewal behind it has set the watch.
        assert_eq!(rig.sent(), if error == 0 { vec![] } else { vec![(4, removal("/p", 5))] });
    }
}

#[test]
fn on_servers_before_3_9_the_remaining_watch_is_set_again_with_its_kind() {
    let mut rig = Rig::online();
    rig.watch(1, &add_watch("/p", false), 0);
    rig.watch(2, &add_watch("/p", true), 0);
    rig.step(Input::Unwatch(WatchId(2)));
    assert_eq!(rig.sent(), [(3, removal("/p", 5))]);
    rig.reply(3, 1, -5);
    assert_eq!(
        rig.sent(),
        [(4, add_watch("/p", false))],
        "changes of the list of children are reported again"
    );
    rig.reply(4, 1, 0);
    rig.step(Input::Unwatch(WatchId(1)));
    assert_eq!(rig.sent(), [(5, removal("/p", 3))]);
}

#[test]
fn removing_at_the_server_ends_the_watches_of_that_kind() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/p", true), 0);
    rig.watch(2, &children("/p"), 0);
    rig.watch(3, &add_watch("/p", false), 0);
    rig.ask(&removal("/p", 2));
    rig.ask_as(&get("/p", true), None, Some(4));
    rig.reply(4, 1, 0);
    assert_eq!(rig.take_events()[1], RigEvent::WatchesRemoved(vec![1]));
    rig.reply(5, 1, 0);
    rig.reply(6, 1, 0);
    rig.ask(&removal("/p", 3));
    rig.reply(7, 1, 0);
    assert_eq!(rig.take_events()[2], RigEvent::WatchesRemoved(vec![2, 3, 4]));
}

fn set(zxid: i64) -> SetWatches<'static> {
    SetWatches { relative_zxid: zxid, ..SetWatches::default() }
}

#[test]
fn all_watches_are_set_again_before_anything_else_is_sent() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/d", true), 0);
    rig.watch(2, &exists("/e"), NO_NODE);
    rig.watch(3, &children("/c"), 0);
    rig.get("/x");
    rig.reply(4, 77, 0);
    // A zxid from an event does not count: further events of that change may have been lost.
    rig.event_at(Some(Zxid(99)), NodeDataChanged, "/other");
    rig.lose();
    rig.get("/y");
    rig.deadline();
    let (_, seen, _) = rig.connect();
    assert_eq!(seen, 99, "the client does not connect to an older state");
    rig.grant(SESSION, TIMEOUT, false);
    let sent = rig.sent();
    let expected =
        SetWatches { data: vec!["/d".into()], exist: vec!["/e".into()], child: vec!["/c".into()], ..set(77) };
    assert_eq!(sent[0], (SET_WATCHES, Request::SetWatches(expected)));
    assert_eq!(sent[1], (5, get("/y", false)));
    rig.take_events();
    // Events for missed changes come before the reply.
    rig.event(NodeDeleted, "/d");
    rig.reply(SET_WATCHES, 80, 0);
    assert_eq!(rig.take_events(), [RigEvent::Event(vec![1], EventKind::NodeDeleted, "/d".into())]);
}

/// A watch in a later chunk may not have reported an earlier change yet.
#[test]
fn events_have_a_zxid_only_once_all_watches_are_set_again() {
    let mut rig = Rig::online_with(Config { packet_max: 200, ..config() });
    let paths = ["a", "b"].map(|name| format!("/{}", name.repeat(100)));
    for (path, watch) in paths.iter().zip(1..) {
        rig.watch(watch, &get(path, true), 0);
    }
    rig.watch(3, &get("/c", true), 0);
    let chunks = rig.reattach().len();
    for answered in 1..=chunks {
        rig.event_at(Some(Zxid(80)), NodeDeleted, &paths[0]);
        assert_eq!(rig.event_zxid, None, "{answered} of {chunks}");
        rig.reply(SET_WATCHES, 80, 0);
    }
    rig.event_at(Some(Zxid(81)), NodeDeleted, &paths[1]);
    assert_eq!(rig.event_zxid, Some(Zxid(81)));
}

#[test]
fn persistent_watches_get_a_gap_once_they_are_set_again() {
    let mut rig = Rig::online();
    rig.watch(1, &add_watch("/p", false), 0);
    rig.watch(2, &add_watch("/r", true), 0);
    let sent = rig.reattach();
    let expected =
        SetWatches { persistent: vec!["/p".into()], persistent_recursive: vec!["/r".into()], ..set(0) };
    assert_eq!(sent, [(SET_WATCHES, Request::SetWatches(expected))]);
    rig.take_events();
    rig.reply(SET_WATCHES, 80, 0);
    assert_eq!(rig.take_events(), [RigEvent::Event(vec![1, 2], EventKind::Gap, String::new())]);
}

#[test]
fn watches_refused_by_an_overloaded_server_are_set_on_the_next_connection() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/d", true), 0);
    rig.watch(2, &add_watch("/p", false), 0);
    let sent = rig.reattach();
    rig.take_events();
    rig.reply(SET_WATCHES, 80, THROTTLED);
    assert_eq!(rig.take_events(), [RigEvent::State(ConnectionState::Suspended, Some(SESSION))]);
    rig.deadline();
    rig.attach();
    assert_eq!(rig.sent(), sent, "all of them, and since the same change");
    rig.take_events();
    rig.reply(SET_WATCHES, 80, 0);
    assert_eq!(rig.take_events(), [RigEvent::Event(vec![2], EventKind::Gap, String::new())]);
}

#[test]
fn a_renewal_refused_by_an_overloaded_server_leaves_no_silent_watch() {
    let mut rig = Rig::online();
    rig.watch(1, &add_watch("/p", true), 0);
    rig.ask_as(&get("/p", true), None, Some(2));
    rig.sent();
    rig.reply(2, 1, 0);
    rig.take_events();
    rig.reply(3, 1, THROTTLED);
    assert_eq!(rig.take_events(), [RigEvent::State(ConnectionState::Suspended, Some(SESSION))]);
}

#[test]
fn a_removal_refused_by_an_overloaded_server_is_sent_again() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/p", true), 0);
    rig.step(Input::Unwatch(WatchId(1)));
    assert_eq!(rig.sent(), [(2, removal("/p", 2))]);
    rig.reply(2, 1, THROTTLED);
    assert_eq!(rig.sent(), [(3, removal("/p", 2))]);
    // Meanwhile a new watch needs the entry.
    rig.ask_as(&get("/p", true), None, Some(2));
    rig.sent();
    rig.reply(3, 1, THROTTLED);
    assert!(rig.sent().is_empty());
    rig.reply(4, 1, 0);
    // A removal of all entries of a path.
    rig.watch(3, &add_watch("/p", false), 0);
    rig.step(Input::Unwatch(WatchId(2)));
    rig.step(Input::Unwatch(WatchId(3)));
    assert_eq!(rig.sent(), [(6, removal("/p", 3))]);
    rig.reply(6, 1, THROTTLED);
    assert_eq!(rig.sent(), [(7, removal("/p", 3))]);
    rig.reply(7, 1, 0);
    assert!(rig.sent().is_empty());
}

#[test]
fn a_gap_is_reported_only_once_the_watch_is_set_again() {
    let mut rig = Rig::online();
    rig.watch(1, &add_watch("/p", false), 0);
    // The connection is lost before the answer; meanwhile the watch goes, and another comes.
    rig.reattach();
    rig.lose();
    rig.step(Input::Unwatch(WatchId(1)));
    rig.deadline();
    rig.attach();
    assert!(rig.sent().is_empty());
    rig.watch(2, &add_watch("/q", false), 0);
    rig.reattach();
    rig.take_events();
    rig.reply(SET_WATCHES, 80, 0);
    assert_eq!(rig.take_events(), [RigEvent::Event(vec![2], EventKind::Gap, String::new())]);
}

#[test]
fn many_watches_are_set_in_chunks_below_the_servers_limit() {
    let mut rig = Rig::online();
    let long = "x".repeat(1000);
    let paths: Vec<String> = (0..1000).map(|n| format!("/{n:04}{long}")).collect();
    for (n, path) in paths.iter().enumerate() {
        rig.watch(n as u64 + 1, &get(path, true), 0);
    }
    let sent = rig.reattach();
    let mut again = Vec::new();
    for (xid, request) in &sent {
        let Request::SetWatches(part) = request else { panic!("{request:?}") };
        let size: usize = part.data.iter().map(|path| path.len() + 4).sum();
        assert!(*xid == SET_WATCHES && size <= 128 << 10, "{size}");
        again.extend(part.data.iter().map(|path| path.to_string()));
    }
    assert_eq!((again, sent.len()), (paths, 8));
    rig.take_events();
    for _ in &sent {
        rig.reply(SET_WATCHES, 1, 0);
    }
    assert!(rig.take_events().is_empty());
}

#[test]
fn unanswered_chunks_are_set_again_as_of_the_same_zxid() {
    let mut rig = Rig::online_with(Config { packet_max: 200, ..config() });
    let paths = ["a", "b", "c"].map(|name| format!("/{}", name.repeat(100)));
    for (path, watch) in paths.iter().zip(1..) {
        rig.watch(watch, &get(path, true), 0);
    }
    rig.get("/x");
    rig.reply(4, 77, 0);
    rig.reattach();
    let since = |sent: Vec<(i32, Request<'_>)>| -> Vec<i64> {
        let parts = sent.into_iter().map(|(_, request)| match request {
            Request::SetWatches(part) => part.relative_zxid,
            other => panic!("{other:?}"),
        });
        parts.collect()
    };
    // The second connection is lost after the first part of three, one event, and the second part.
    rig.reply(SET_WATCHES, 80, 0);
    rig.event_at(Some(Zxid(81)), NodeDataChanged, "/other");
    rig.reply(SET_WATCHES, 82, 0);
    rig.lose();
    rig.deadline();
    let (_, seen, _) = rig.connect();
    assert_eq!(seen, 82, "the client does not connect to an older state");
    rig.grant(SESSION, TIMEOUT, false);
    assert_eq!(since(rig.sent()), [77; 3], "the third chunk has missed the later changes");
    for zxid in 90..93 {
        rig.reply(SET_WATCHES, zxid, 0);
    }
    assert_eq!(since(rig.reattach()), [92; 3], "all of them have");
}

/// Bytes of a frame, as a server counts them.
fn size((xid, request): &(i32, Request<'_>)) -> usize {
    let mut frame = Vec::new();
    request.write_frame(Xid(*xid), &mut frame);
    frame.len() - 4
}

#[test]
fn many_watches_are_set_in_chunks_below_the_clients_limit() {
    let limit = 1000;
    let mut rig = Rig::online_with(Config { packet_max: limit, ..config() });
    let paths: Vec<String> = (0..100).map(|n| format!("/{n:0>190}")).collect();
    for (n, path) in paths.iter().enumerate() {
        let request = if n % 2 == 0 { get(path, true) } else { add_watch(path, false) };
        rig.watch(n as u64 + 1, &request, 0);
    }
    let sent = rig.reattach();
    assert!(sent.iter().all(|part| size(part) <= limit), "{:?}", sent.iter().map(size).max());
    let again = sent.iter().map(|(_, request)| match request {
        Request::SetWatches(part) => part.data.len() + part.persistent.len(),
        _ => 0,
    });
    assert_eq!((again.sum::<usize>(), sent.len()), (paths.len(), 25));
}

#[test]
fn a_watch_too_large_for_set_watches_is_refused_at_once() {
    for length in 40..=100 {
        for offline in [false, true] {
            let mut rig = Rig::online_with(Config { packet_max: 100, ..config() });
            if offline {
                rig.lose();
                rig.take_events();
            }
            let id = rig.ask_as(&get(&format!("/{}", "x".repeat(length - 1)), true), None, Some(1));
            let too_large = length + 40 > 100;
            let refused = RigEvent::Failed(id, Failure::TooLarge { size: length + 40, limit: 100 });
            assert_eq!(rig.take_events(), if too_large { vec![refused] } else { vec![] }, "{length}");
            if too_large {
                continue;
            }
            if offline {
                rig.deadline();
                rig.attach();
            }
            assert_eq!(rig.sent().len(), 1);
            rig.reply(1, 1, 0);
            let again = rig.reattach();
            assert!(again.len() == 1 && size(&again[0]) <= 100, "{again:?}");
        }
    }
}

#[test]
fn registrations_under_way_are_not_set_again() {
    let mut rig = Rig::online();
    let id = rig.ask_as(&get("/p", true), None, Some(1));
    let sent = rig.reattach();
    assert!(sent.is_empty());
    assert_eq!(rig.take_events()[0], RigEvent::Failed(id, Failure::ConnectionLoss));
    rig.event(NodeDataChanged, "/p");
    assert!(rig.take_events().is_empty());
}

#[test]
fn a_registration_made_while_offline_is_sent_once() {
    let mut rig = Rig::online();
    rig.lose();
    rig.ask_as(&get("/p", true), None, Some(1));
    rig.deadline();
    rig.attach();
    assert_eq!(rig.sent(), [(1, get("/p", true))]);
    rig.reply(1, 1, 0);
    assert_eq!(rig.session.watchers(), 1);
}

#[test]
fn watches_outlive_a_session_unless_they_are_bound_to_it() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/free", true), 0);
    rig.ask_as(&get("/bound", true), Some(SESSION), Some(2));
    rig.reply(2, 5, 0);
    rig.take_events();
    rig.wait(TIMEOUT);
    rig.step(Input::Deadline);
    let heard = rig.take_events();
    assert_eq!(heard.last(), Some(&RigEvent::WatchesEnded(vec![2])));
    rig.connect();
    rig.sent();
    rig.grant(ostler_proto::id::SessionId(5), TIMEOUT, false);
    let expected = SetWatches { data: vec!["/free".into()], ..set(5) };
    assert_eq!(rig.sent(), [(SET_WATCHES, Request::SetWatches(expected))]);
}

#[test]
fn all_watches_end_with_the_client() {
    let mut rig = Rig::online_with(Config { new_session_after_loss: false, ..config() });
    rig.watch(1, &get("/free", true), 0);
    rig.wait(TIMEOUT);
    rig.step(Input::Deadline);
    let heard = rig.take_events();
    assert!(heard.contains(&RigEvent::WatchesEnded(vec![1])));
    assert!(heard.contains(&RigEvent::State(ConnectionState::Closed, Some(SESSION))));
}

#[test]
fn unknown_events_are_ignored() {
    let mut rig = Rig::online();
    let mut frame = Vec::new();
    ostler_proto::event::write_frame(&mut frame, None, EventType::NodeCreated, "/a");
    frame[4 + 16 + 3] = 9;
    rig.frame(&frame[4..]);
    assert!(rig.take_events().is_empty() && rig.wanted.is_some());
}
