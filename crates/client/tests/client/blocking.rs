//! The client for programs without tokio.

use crate::server::TestServer;
use ostler_client::{
    AddWatchMode, ConnectionState, Error, EventKind, Id, Version, WatcherType,
    blocking::{Client, NoItem},
};
use std::{thread, time::Duration};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(20);

#[test]
fn a_program_without_a_runtime_has_the_same_operations() {
    let server = TestServer::start();
    let client = Client::connect(&server.address.to_string()).unwrap();
    let made = client.create("/a/b", b"1").creating_parents().wait().unwrap();
    assert_eq!(made.path, "/a/b");
    let (first, second) = (client.set_data("/a/b", b"2").send(), client.get_data("/a/b").send());
    assert_eq!((first.wait().unwrap().version, &second.wait().unwrap().0[..]), (1, &b"2"[..]));
    let refused = client.delete("/a/b").version(Version::Exactly(0)).wait();
    assert!(refused.unwrap_err().is_bad_version());
    assert_eq!(client.get_children("/a").wait().unwrap(), ["b"]);
    let multi =
        client.multi().create("/e", b"").ephemeral().set_data("/a/b", b"3").version(Version::Exactly(1));
    assert_eq!(multi.wait().unwrap().len(), 2);
    assert!(client.exists("/e").wait().unwrap().is_some());
    let below = client.using_namespace("a").unwrap();
    assert_eq!(below.get_data("/b").wait().unwrap().0, "3");
    client.close();
    assert!(matches!(client.get_data("/a").wait(), Err(Error::Closed)));
    assert_eq!(client.states().map(|state| state.state).collect::<Vec<_>>(), [ConnectionState::Closed]);
}

#[test]
fn watches_are_waited_for_and_iterated() {
    let server = TestServer::start();
    let client = Client::connect(&server.address.to_string()).unwrap();
    let (none, mut created) = client.exists("/w").watch().wait().unwrap();
    assert_eq!(none, None);
    assert_eq!(created.wait_within(SHORT).unwrap(), None);
    let mut events = client.add_watch("/w", AddWatchMode::PersistentRecursive).wait().unwrap();
    assert_eq!(events.next_within(SHORT), Err(NoItem::NotYet));
    let writer = client.clone();
    let writing = thread::spawn(move || {
        writer.create("/w", b"").wait().unwrap();
        writer.create("/w/x", b"").wait().unwrap();
    });
    assert_eq!(created.wait().unwrap().kind, EventKind::NodeCreated);
    let seen: Vec<String> = events.by_ref().take(2).map(|event| event.path).collect();
    assert_eq!(seen, ["/w", "/w/x"]);
    writing.join().unwrap();
    client.close();
    assert_eq!(events.next_within(SHORT), Err(NoItem::Ended));
    assert_eq!(events.next(), None);
}

/// The thread of the last clone ends, and the session with it.
#[test]
fn the_last_clone_that_is_dropped_closes_the_session() {
    let server = TestServer::start();
    let observer = Client::connect(&server.address.to_string()).unwrap();
    let client = Client::connect(&server.address.to_string()).unwrap();
    client.create("/mine", b"").ephemeral().wait().unwrap();
    let (there, mut deleted) = observer.exists("/mine").watch().wait().unwrap();
    assert!(there.is_some());
    drop(client.clone());
    assert_eq!(deleted.wait_within(SHORT).unwrap(), None, "a clone is left");
    drop(client);
    assert_eq!(deleted.wait_within(LONG).unwrap().unwrap().kind, EventKind::NodeDeleted);
    assert_eq!(deleted.wait_within(SHORT).unwrap().unwrap().kind, EventKind::NodeDeleted);
    assert_eq!(deleted.wait().unwrap().kind, EventKind::NodeDeleted, "a watch has one event");
    // A watch keeps no session.
    let (_, changed) = observer.exists("/mine").watch().wait().unwrap();
    drop(observer);
    assert!(matches!(changed.wait(), Err(Error::Closed)));
}

#[test]
fn what_the_async_client_can_do_the_blocking_one_can_do_too() {
    let server = TestServer::start();
    let client = Client::connect(&server.address.to_string()).unwrap();
    assert_eq!(client.wait_connected().unwrap().session, client.session_id());
    assert!(client.is_connected() && client.wait_connected_within(SHORT).unwrap());
    client.add_auth("digest", "bob:pw").wait().unwrap();
    assert!(client.who_am_i().wait().unwrap().contains(&Id::new("digest", "bob")));
    let multi = client.multi().create("/a", b"1").container().create("/e-", b"").ephemeral_sequential();
    let sent = multi.create("/n", b"").without_data().send();
    assert_eq!(sent.wait().unwrap()[1].path(), Some("/e-0000000001"));
    let conflict = client.multi().create("/x", b"").container().ephemeral().wait();
    assert!(matches!(conflict, Err(Error::ModeConflict { .. })));
    assert_eq!(client.get_ephemerals("/").wait().unwrap(), ["/e-0000000001"]);
    client.create("/a/b", b"").data(String::from("long")).compressed().wait().unwrap();
    assert_ne!(client.get_data("/a/b").wait().unwrap().0, "long");
    assert_eq!(client.get_data("/a/b").decompressed().wait().unwrap().0, "long");
    let (names, stat) = client.get_children_and_stat("/a").wait().unwrap();
    assert_eq!((names, stat.num_children), (vec!["b".to_owned()], 1));
    assert_eq!(client.get_all_children_number("/a").wait().unwrap(), 1);
    let (_, changed) = client.get_data("/a").watch().wait().unwrap();
    assert!(client.check_watches("/a", WatcherType::Any).wait().unwrap());
    client.remove_watches("/a", WatcherType::Any).wait().unwrap();
    assert!(matches!(changed.wait(), Err(Error::WatchRemoved { .. })));
    client.delete("/a").deleting_children().wait().unwrap();
    client.delete("/n").in_background();
    assert_eq!(client.exists("/n").wait().unwrap(), None);
}
