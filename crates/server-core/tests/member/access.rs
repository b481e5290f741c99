//! ACLs and identities: the requests that are allowed, and the events that are sent.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    wire::{
        WatchedPaths, auth, children, children_and_watch, create, delete, exists_and_watch, get,
        get_and_watch, multi, set, set_acl, set_watches, watch_always,
    },
};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    error::ErrorCode,
};
use ostler_server_core::{CoreConfig, auth::digest_id};

fn bobs(perms: Perms) -> Acl {
    Acl { perms, id: Id::new("digest", digest_id("bob:pw")) }
}

/// Bob, and somebody else.
fn two(m: &mut Member) -> (Client, Client) {
    let (bob, eve) = (m.join(), m.join());
    m.send(bob, auth("digest", b"bob:pw"));
    assert_eq!(m.seen(bob), ["-4: ok"]);
    (bob, eve)
}

#[test]
fn a_list_binds_those_it_does_not_name() {
    let mut m = Member::new();
    let (bob, eve) = two(&mut m);
    m.ask(bob, create("/b").acl(&[bobs(Perms::ALL)])).unwrap();
    for ask in
        [get("/b"), set("/b", b""), create("/b/x").into(), set_acl("/b", &[Acl::world(Perms::ALL)], -1)]
    {
        assert_eq!(m.ask(eve, ask.clone()), Err(ErrorCode::NoAuth));
        assert!(m.ask(bob, ask).is_ok());
        m.ask(bob, set_acl("/b", &[bobs(Perms::ALL)], -1)).unwrap();
    }
    assert_eq!(m.ask(eve, delete("/b/x")), Err(ErrorCode::NoAuth));
    m.ask(bob, delete("/b/x")).unwrap();
    m.ask(eve, delete("/b")).unwrap();
}

#[test]
fn the_list_that_counts_is_the_one_at_the_writes_place_in_the_order() {
    let mut m = Member::new();
    let (bob, eve) = two(&mut m);
    m.send(bob, create("/b"));
    m.send(eve, set("/b", b"1"));
    m.send(bob, set_acl("/b", &[bobs(Perms::ALL)], 0));
    m.send(eve, set("/b", b"2"));
    m.send(eve, multi(&[create("/x").into(), set("/b", b"3")]));
    m.send(bob, set_acl("/b", &[Acl::world(Perms::ALL)], 1));
    m.send(eve, set("/b", b"4"));
    m.flush();
    assert_eq!(m.seen(eve), ["1: v1", "2: NoAuth", "3: (undone, NoAuth)", "4: v2"]);
}

#[test]
fn auth_stands_for_those_who_proved_who_they_are() {
    let mut m = Member::new();
    let (bob, eve) = two(&mut m);
    let auth_acl = Acl { perms: Perms::ALL, id: Id::new("auth", "") };
    assert_eq!(m.ask(eve, create("/b").acl(std::slice::from_ref(&auth_acl))), Err(ErrorCode::InvalidAcl));
    m.ask(bob, create("/b").acl(&[auth_acl])).unwrap();
    assert_eq!(m.ask(eve, get("/b")), Err(ErrorCode::NoAuth));
    // Ids belong to the connection, not to the session.
    let bob = m.rejoin(bob, 10_000);
    assert_eq!(m.ask(bob, get("/b")), Err(ErrorCode::NoAuth));
    m.send(bob, auth("digest", b"bob:pw"));
    m.ask(bob, get("/b")).unwrap();
    m.crash(0);
    let eve = m.join();
    assert_eq!(m.ask(eve, get("/b")), Err(ErrorCode::NoAuth), "lists survive");
}

#[test]
fn super_may_do_everything() {
    let config = CoreConfig { super_digest: Some(digest_id("super:admin")), ..CoreConfig::default() };
    let mut m = Member::with(config);
    let (bob, root) = two(&mut m);
    m.ask(bob, create("/b").acl(&[bobs(Perms::READ)])).unwrap();
    assert_eq!(m.ask(bob, set("/b", b"")), Err(ErrorCode::NoAuth));
    assert_eq!(m.ask(root, set("/zookeeper/config", b"")), Err(ErrorCode::NoAuth));
    m.send(root, auth("digest", b"super:admin"));
    m.ask(root, set("/b", b"")).unwrap();
    m.ask(root, set("/zookeeper/config", b"")).unwrap();
}

#[test]
fn a_proof_that_fails_ends_the_connection() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, auth("nonsense", b"x"));
    assert_eq!(m.seen(a), ["-4: AuthFailed", "closed: AuthFailed"]);
    assert!(!m.server.is_open(a.conn));
    let a = m.rejoin(a, 10_000);
    m.ask(a, create("/a")).unwrap();
}

fn named(names: &[&str]) -> Member {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Member::with(CoreConfig { ensemble_names: Some(names), ..CoreConfig::default() })
}

#[test]
fn a_client_that_wants_another_ensemble_is_closed_without_an_answer() {
    let mut m = named(&["left", "right"]);
    let (a, b) = (m.join(), m.join());
    m.send(a, auth("ensemble", b"right"));
    assert_eq!(m.seen(a), ["-4: ok"]);
    assert!(
        m.ask(a, create("/a").acl(&[Acl { perms: Perms::ALL, id: Id::new("ensemble", "right") }])).is_err()
    );
    m.send(b, auth("ensemble", b"middle"));
    assert_eq!(m.seen(b), ["closed: OtherEnsemble"]);
    let counts = m.server.summary().stats.ensemble_auth;
    assert_eq!((counts.right, counts.wrong, counts.skipped), (1, 1, 0));
}

#[test]
fn without_a_name_on_one_side_every_ensemble_is_right() {
    for (names, asked) in [(&["left"][..], &b""[..]), (&[], b"middle")] {
        let mut m = named(names);
        let a = m.join();
        m.send(a, auth("ensemble", asked));
        assert_eq!(m.seen(a), ["-4: ok"]);
        assert_eq!(m.server.summary().stats.ensemble_auth.skipped, 1);
    }
}

#[test]
fn the_scheme_ensemble_does_not_exist_without_its_provider() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, auth("ensemble", b"left"));
    assert_eq!(m.seen(a), ["-4: AuthFailed", "closed: AuthFailed"]);
}

#[test]
fn the_number_of_a_connections_identities_is_limited() {
    for (names, long) in [(2000, 1), (20, 100_000)] {
        let mut m = Member::new();
        let a = m.join();
        for name in 0..names {
            if !m.server.is_open(a.conn) {
                break;
            }
            m.send(a, auth("digest", format!("{name}{}:x", "y".repeat(long)).as_bytes()));
        }
        assert_eq!(m.seen(a).last().map(String::as_str), Some("closed: AuthFailed"));
    }
}

/// Somebody with a long name, and a list that stands for it.
fn with_a_long_name(m: &mut Member) -> (Client, Acl) {
    let long = m.join();
    m.send(long, auth("digest", format!("{}:x", "y".repeat(500_000)).as_bytes()));
    assert_eq!(m.seen(long), ["-4: ok"]);
    (long, Acl { perms: Perms::ALL, id: Id::new("auth", "") })
}

/// A few bytes each in the request, the whole name each in the transaction: its record would be more than others take.
#[test]
fn lists_of_one_multi_do_not_grow_without_end() {
    let mut m = Member::new();
    let (long, acl) = with_a_long_name(&mut m);
    let create = |number| create(&format!("/{number}")).acl(std::slice::from_ref(&acl)).into();
    let few: Vec<_> = (0..10).map(create).collect();
    m.ask(long, multi(&few)).unwrap();
    let many: Vec<_> = (10..160).map(create).collect();
    m.send(long, multi(&many));
    m.flush();
    assert!(m.seen(long).last().unwrap().contains("InvalidAcl"));
    assert!(!m.has("/10"));
    m.ask(long, multi(&[create(10)])).unwrap();
}

/// Each request that goes to the leader has all identities with it.
#[test]
fn long_identities_count_towards_the_reserved_bytes() {
    let mut m = Member::new();
    let (long, _) = with_a_long_name(&mut m);
    for _ in 0..20 {
        m.send(long, set("/zookeeper", b""));
    }
    assert!(m.server.reserved_bytes(long.conn) > 20 * 500_000);
    m.flush();
    assert_eq!(m.server.reserved_bytes(long.conn), 0);
}

#[test]
fn where_proof_is_demanded_nothing_else_is_served() {
    let config = CoreConfig { enforced_auth_schemes: vec!["digest".into()], ..CoreConfig::default() };
    let mut m = Member::with(config);
    let (bob, eve) = two(&mut m);
    m.ask(bob, create("/b")).unwrap();
    m.send(eve, get("/b"));
    assert_eq!(m.seen(eve), ["1: SessionClosedRequireSaslAuth", "closed: AuthFailed"]);
}

/// Also for watches that are set again after a reconnect (CVE-2026-59739).
#[test]
fn t4_a_client_that_may_not_read_a_znode_gets_no_event_of_it() {
    let mut m = Member::new();
    let (bob, eve) = two(&mut m);
    m.ask(bob, create("/open")).unwrap();
    m.ask(bob, create("/turned")).unwrap();
    for client in [bob, eve] {
        m.send(client, exists_and_watch("/secret"));
        m.send(client, get_and_watch("/turned"));
        m.send(client, children_and_watch("/turned"));
        m.send(client, watch_always("/open", true));
    }
    m.forget();
    m.ask(bob, create("/secret").acl(&[bobs(Perms::ALL)])).unwrap();
    m.ask(bob, set_acl("/turned", &[bobs(Perms::ALL)], -1)).unwrap();
    m.ask(bob, set("/turned", b"")).unwrap();
    // The parent's list decides over news of its children.
    m.ask(bob, create("/turned/child")).unwrap();
    m.ask(bob, create("/open/secret").acl(&[bobs(Perms::ALL)])).unwrap();
    m.ask(bob, create("/open/plain")).unwrap();
    m.ask(bob, delete("/open/secret")).unwrap();
    let all = [
        "created /secret",
        "changed /turned",
        "children of /turned",
        "created /open/secret",
        "created /open/plain",
        "deleted /open/secret",
    ];
    assert_eq!(m.seen(bob), all);
    assert_eq!(m.seen(eve), ["created /open/plain"]);
    // The watch is used up all the same.
    m.ask(bob, set_acl("/turned", &[Acl::world(Perms::ALL)], -1)).unwrap();
    m.ask(bob, set("/turned", b"")).unwrap();
    assert_eq!(m.seen(eve), [""; 0]);
}

#[test]
fn t4_the_catch_up_after_a_reconnect_tells_who_may_read() {
    let mut m = Member::new();
    let (bob, eve) = two(&mut m);
    m.ask(bob, create("/secret").acl(&[bobs(Perms::ALL)])).unwrap();
    m.ask(bob, create("/secret/child")).unwrap();
    m.ask(bob, create("/open")).unwrap();
    m.ask(bob, create("/writable").acl(&[bobs(Perms::ALL), Acl::world(Perms::WRITE)])).unwrap();
    let watched = WatchedPaths {
        data: &["/secret", "/writable", "/open", "/gone"],
        exist: &["/secret", "/writable", "/open"],
        child: &["/secret", "/writable", "/open", "/gone"],
        ..WatchedPaths::default()
    };
    m.send(bob, set_watches(-1, &watched));
    m.send(eve, set_watches(-1, &watched));
    let all = [
        "changed /secret",
        "changed /writable",
        "changed /open",
        "deleted /gone",
        "created /secret",
        "created /writable",
        "created /open",
        "children of /secret",
        "children of /writable",
        "children of /open",
        "deleted /gone",
        "-8: ok",
    ];
    assert_eq!(m.seen(bob), all);
    // That there is none she could be told by any answer.
    let open =
        ["changed /open", "deleted /gone", "created /open", "children of /open", "deleted /gone", "-8: ok"];
    assert_eq!(m.seen(eve), open);
    // The watch of an event that she did not get is used up, as when it fires.
    m.ask(bob, set_acl("/secret", &[Acl::world(Perms::ALL)], -1)).unwrap();
    m.ask(bob, set("/secret", b"")).unwrap();
    m.ask(bob, create("/secret/other")).unwrap();
    assert_eq!(m.seen(eve), [""; 0]);
}

/// One who proves on the new connection that it may read is told, in the order of what it sends.
#[test]
fn t4_the_catch_up_counts_who_it_is_now() {
    let mut m = Member::new();
    let (bob, _) = two(&mut m);
    m.ask(bob, create("/secret").acl(&[bobs(Perms::ALL)])).unwrap();
    m.ask(bob, set("/secret", b"")).unwrap();
    let back = m.rejoin(bob, TIMEOUT_MS);
    let watched = WatchedPaths { data: &["/secret"], ..WatchedPaths::default() };
    m.send(back, set_watches(-1, &watched));
    m.send(back, auth("digest", b"bob:pw"));
    m.send(back, set_watches(-1, &watched));
    assert_eq!(m.seen(back), ["-8: ok", "-4: ok", "changed /secret", "-8: ok"]);
}

#[test]
fn the_root_of_a_new_server_has_the_acl_of_the_configuration() {
    let acl = vec![
        Acl { perms: Perms::READ, id: Id::new("world", "anyone") },
        Acl { perms: Perms::ALL, id: Id::new("digest", "admin:h") },
    ];
    let config = CoreConfig { first_root_acl: Some(acl), ..CoreConfig::default() };
    let mut m = Member::with(config);
    let a = m.join();
    assert_eq!(m.ask(a, create("/a")), Err(ErrorCode::NoAuth));
    m.ask(a, children("/")).unwrap();
    let before = m.applied();
    m.join();
    assert_eq!(m.applied().0, before.0 + 1, "once");
    m.crash(0);
    let b = m.join();
    assert_eq!(m.ask(b, create("/a")), Err(ErrorCode::NoAuth));
}
