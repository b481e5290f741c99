//! Reports in parts: whatever the size of the parts, they are the same whole, and no part is larger than asked for.

use crate::{
    member::{Client, Member},
    wire::{auth, children_and_watch, create, exists_and_watch, get, get_and_watch, set_acl, watch_always},
};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    error::ErrorCode,
    id::SessionId,
    op::Op,
};
use ostler_server_core::{
    auth::digest_id,
    report::{
        clients::Habits,
        sight::PathReader,
        watch_walk::{WatchWalk, Watched},
    },
};
use std::collections::BTreeMap;

/// Clients with all kinds of watches, and one without.
fn watched(m: &mut Member) -> Vec<Client> {
    let all: Vec<Client> = (0..4).map(|_| m.join()).collect();
    m.ask(all[0], create("/a")).unwrap();
    for number in 0..40 {
        m.send(all[0], exists_and_watch(&format!("/n{number}")));
    }
    m.ask(all[1], get_and_watch("/a")).unwrap();
    m.ask(all[1], children_and_watch("/a")).unwrap();
    m.ask(all[1], children_and_watch("/")).unwrap();
    m.ask(all[1], watch_always("/a", false)).unwrap();
    m.ask(all[3], watch_always("/a", true)).unwrap();
    all
}

type Walked = BTreeMap<(String, [bool; 4]), usize>;

fn walk(m: &Member, mut walk: WatchWalk, max: usize) -> (Walked, Vec<(SessionId, usize)>) {
    let (mut watches, mut sessions) = (Walked::new(), Vec::new());
    for looks in 0.. {
        let part = m.server.walk_watches(&mut walk, max);
        assert!(part.watches.len() + part.connections.len() <= max, "at most as many as asked for");
        assert!(looks < 400, "it ends");
        for (path, Watched { data, children, persistent, recursive }) in part.watches {
            *watches.entry((path.to_string(), [data, children, persistent, recursive])).or_default() += 1;
        }
        sessions.extend(part.connections.iter().map(|of| (of.session, of.count)));
        if part.is_last {
            break;
        }
    }
    (watches, sessions)
}

#[test]
fn a_walk_over_watches_sees_each_once_in_parts_of_any_size() {
    let mut m = Member::new();
    let all = watched(&mut m);
    let (watches, sessions) = walk(&m, WatchWalk::default(), 1000);
    assert_eq!(watches.len(), 43);
    assert_eq!(watches[&("/a".to_owned(), [true, true, true, false])], 1);
    assert_eq!(watches[&("/a".to_owned(), [false, false, false, true])], 1);
    assert_eq!(watches[&("/".to_owned(), [false, true, false, false])], 1);
    assert_eq!(sessions, [(all[0].session, 40), (all[1].session, 3), (all[3].session, 1)]);
    for max in [1, 2, 3, 7, 40, 41, 42] {
        assert_eq!(walk(&m, WatchWalk::default(), max), (watches.clone(), sessions.clone()), "{max}");
    }
    let of_one = m.server.walk_of_session(all[1].session).unwrap();
    let (own, others) = walk(&m, of_one, 2);
    assert_eq!((own.len(), others), (2, Vec::new()));
    m.hang_up(all[1]);
    assert!(m.server.walk_of_session(all[1].session).is_none());
}

#[test]
fn sessions_are_listed_in_parts_of_any_size() {
    let mut m = Member::new();
    let all: Vec<Client> = (0..9).map(|_| m.join()).collect();
    m.ask(all[4], create("/e").ephemeral()).unwrap();
    m.ask(all[4], exists_and_watch("/none")).unwrap_err();
    m.hang_up(all[7]);
    let listed = |max| {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let part = m.server.live_sessions_after(m.now, after, max);
            assert!(part.sessions.len() <= max);
            all.extend(part.sessions);
            after = part.next;
            if after.is_none() {
                return all;
            }
        }
    };
    let whole = listed(100);
    assert_eq!(whole.len(), 9);
    assert!(whole.is_sorted_by_key(|of| of.session));
    (1..11).for_each(|max| assert_eq!(listed(max), whole, "{max}"));
    let of = |client: Client| whole.iter().find(|of| of.session == client.session).unwrap();
    let busy = of(all[4]);
    assert_eq!((busy.ephemerals, busy.conn.as_ref().unwrap().watches), (1, 1));
    let gone = of(all[7]);
    assert_eq!((gone.conn.is_none(), gone.server, gone.silent_ms), (true, Some(m.config.server), Some(0)));
}

#[test]
fn a_path_is_seen_as_far_as_all_above_may_be_read() {
    let mut m = Member::new();
    let client = m.join();
    m.send(client, auth("digest", b"bob:pw"));
    let bobs = Acl { perms: Perms::ALL, id: Id::new("digest", digest_id("bob:pw")) };
    for path in ["/open", "/open/hidden", "/open/hidden/open", "/open/hidden/open/x"] {
        m.ask(client, create(path)).unwrap();
    }
    m.ask(client, set_acl("/open/hidden", &[bobs], -1)).unwrap();
    let seen = |ids: &[Id], path: &str| m.server.seen_path(&PathReader::new(ids), path).into_owned();
    let (eve, bob) = ([Id::new("ip", "10.0.0.1")], [Id::new("digest", digest_id("bob:pw"))]);
    for (path, expected) in [
        ("/", "/"),
        ("/open", "/open"),
        ("/none", "/none"),
        ("/open/hidden", "/open/hidden"),
        ("/open/hidden/open", "/open/hidden/..."),
        // The list of children of /open/hidden/open may be read by everybody, but its name may not.
        ("/open/hidden/open/x", "/open/hidden/..."),
        ("/open/hidden/gone/x", "/open/hidden/..."),
        ("/open/gone/x/y", "/open/gone/..."),
        ("/gone/x", "/gone/..."),
        ("", ""),
        ("no path", "no path"),
    ] {
        assert_eq!(seen(&eve, path), expected, "{path:?}");
    }
    assert_eq!(seen(&bob, "/open/hidden/open"), "/open/hidden/open");
    assert_eq!(seen(&bob, "/open/hidden/gone/x"), "/open/hidden/gone/...");
    for path in ["/open/hidden/open", "/open/hidden/gone/x"] {
        assert_eq!(seen(&[Id::new("super", "")], path), path);
    }
    // A path that was cut once is not cut again.
    assert_eq!(seen(&eve, "/open/hidden/..."), "/open/hidden/...");
    let long = format!("/gone{}", "/x".repeat(100_000));
    assert_eq!(seen(&eve, &long), "/gone/...");
    // A deep path is seen as far as it is looked at.
    let deep = "/d".repeat(70);
    for end in 1..=70 {
        m.ask(client, create(&deep[..2 * end])).unwrap();
    }
    let seen = m.server.seen_path(&PathReader::new(&eve), &deep).into_owned();
    assert_eq!(seen, format!("{}/...", "/d".repeat(64)));
}

#[test]
fn a_connection_shows_what_its_client_asks_for() {
    let mut m = Member::new();
    let (one, two) = (m.join(), m.join());
    let secret = Acl { perms: Perms::ALL, id: Id::new("digest", digest_id("bob:pw")) };
    m.send(one, auth("digest", b"bob:pw"));
    m.ask(one, create("/secret").acl(&[secret])).unwrap();
    m.ask(one, create("/c").container()).unwrap();
    m.ask(one, get("/zookeeper/config")).unwrap();
    assert_eq!(m.ask(two, get("/secret")), Err(ErrorCode::NoAuth));
    assert_eq!(m.ask(two, get("/none")), Err(ErrorCode::NoNode));
    let (clients, next) = m.server.clients_after(None, 10);
    assert_eq!((clients.len(), next), (2, None));
    let habits: Vec<&Habits> = clients.iter().map(|of| &of.habits).collect();
    assert!(habits[0].has_asked(Op::CreateContainer) && habits[0].reads_config);
    assert!(!habits[1].has_asked(Op::CreateContainer) && !habits[1].reads_config);
    assert_eq!((habits[0].read_only(), habits[0].came_back), (Some(false), false));
    let digests: Vec<Option<&str>> = clients.iter().map(|of| of.digest_only.as_deref()).collect();
    assert_eq!(digests, [Some("digest:bob"), None]);
    let (first, next) = m.server.clients_after(None, 1);
    assert_eq!((first[0].conn, next), (one.conn, Some(one.conn)));
    let refused = m.server.client_notes(10).refused;
    let named: Vec<(i32, i32, u64)> =
        refused.iter().map(|((op, error, _), count)| (*op, *error, *count)).collect();
    assert!(named.contains(&(Op::GetData.code(), ErrorCode::NoAuth.code(), 1)), "{named:?}");
    assert!(named.iter().all(|(_, error, _)| *error != ErrorCode::NoNode.code()), "{named:?}");
}
