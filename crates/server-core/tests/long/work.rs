//! Nothing that a client asks for, and nothing that many ask for together, takes the member for long: what grows with what
//! clients have made is paid for in steps, and done in parts where it can be.

use crate::{
    disk,
    member::{Client, Member, TIMEOUT_MS},
    sight::Sight,
    wire::{
        WatchedPaths, WireRequest, auth, check, check_watches, children, children2, close_session, create,
        delete, exists, get, get_acl, get_and_watch, multi, ping, reconfig, remove_watches, set, set_acl,
        set_one_shot_watches, set_watches, sync, watch_always,
    },
};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    error::ErrorCode,
    id::{SessionId, Zxid},
    jute::Writer,
    op::Op,
    reply::{Body, OpResult, Reply},
    stat::{EphemeralOwner, ExtendedTypes, StatPersisted},
};
use ostler_server_core::{CoreConfig, auth::digest_id, work::WORK_PER_HOLD};
use ostler_tree::Tree;

/// The most work of one input: a hold, and the last piece in it.
pub(crate) const A_HOLD: u64 = WORK_PER_HOLD + 256;
/// The work of an ordinary request, whatever the tree has become.
const LITTLE: u64 = 24;

/// Of getData and getChildren.
pub(crate) fn multi_read(asks: &[WireRequest]) -> WireRequest {
    WireRequest { code: Op::MultiRead.code(), ..multi(asks) }
}

fn ephemerals(prefix: &str) -> WireRequest {
    WireRequest::new(Op::GetEphemerals, |out| out.string(prefix))
}

fn count_below(path: &str) -> WireRequest {
    WireRequest::new(Op::GetAllChildrenNumber, |out| out.string(path))
}

fn who_am_i() -> WireRequest {
    WireRequest::new(Op::WhoAmI, |_| ())
}

fn user(n: usize) -> Acl {
    Acl { perms: Perms::ALL, id: Id::new("digest", digest_id(&format!("u{n}:pw"))) }
}

/// A list of other users, which is nearly as long as a frame.
fn others(entries: usize) -> Vec<Acl> {
    (0..entries).map(|n| Acl { perms: Perms::ALL, id: Id::new("digest", format!("{n}:x")) }).collect()
}

fn proven(m: &mut Member, identities: usize) -> Client {
    let client = m.join();
    for n in 0..identities {
        m.send(client, auth("digest", format!("u{n}:pw").as_bytes()));
    }
    assert_eq!(m.seen(client).len(), identities, "all of them are taken");
    m.take_costliest();
    client
}

/// A member over `count` znodes below `/p`, with this owner.
fn with_children(count: usize, owner: EphemeralOwner, config: CoreConfig) -> Member {
    let mut tree = Tree::fresh(config.types);
    let stat = |owner| StatPersisted { ephemeral_owner: owner, cversion: 1, ..StatPersisted::default() };
    tree.restore_node("/p", Some(b""), stat(EphemeralOwner::NONE), (-1, None)).unwrap();
    for n in 0..count {
        tree.restore_node(&format!("/p/{n:07}"), Some(b""), stat(owner), (-1, None)).unwrap();
    }
    let session = (owner.0 > 0).then_some((SessionId(owner.0), TIMEOUT_MS));
    tree.finish_restore(Zxid(1), session, None);
    Member::over(config, tree)
}

#[test]
fn a_check_does_not_go_through_a_long_list() {
    let mut m = Member::new();
    let a = proven(&mut m, 127);
    let networks =
        |n: usize| Id::new("ip", format!("{}.{}.{}.0/24", 11 + n / 65_536, n / 256 % 256, n % 256));
    let networks: Vec<Acl> = (0..24_000).map(|n| Acl { perms: Perms::ALL, id: networks(n) }).collect();
    let last = |n: usize| [others(40_000), vec![user(n)]].concat();
    for (path, acl) in [("/closed", others(40_000)), ("/mine", last(126)), ("/net", networks)] {
        m.ask(a, create(path).acl(&acl)).unwrap();
    }
    m.take_costliest();
    let hundred = |path: &str| multi_read(&vec![get(path); 100]);
    for (path, refused) in [("/closed", true), ("/mine", false), ("/net", true)] {
        let Ok(Body::Multi(results)) = m.ask(a, hundred(path)) else { panic!("it is answered") };
        let no_auth = OpResult::Error(ErrorCode::NoAuth.code());
        assert_eq!(
            results.iter().filter(|result| **result == no_auth).count(),
            if refused { 100 } else { 0 }
        );
        // Two for each operation, refused ones as well, and one look-up for each identity.
        assert!((200..400).contains(&m.take_costliest()), "{path}");
    }
    for ask in
        [get("/closed"), exists("/closed"), get_acl("/closed"), children("/closed"), set("/closed", b"")]
    {
        assert_eq!(m.ask(a, ask), Err(ErrorCode::NoAuth));
        assert!(m.take_costliest() <= LITTLE, "the verdict is known");
    }
    // Another identity changes it.
    m.ask(a, create("/next").acl(&last(127))).unwrap();
    assert_eq!(m.ask(a, get("/next")), Err(ErrorCode::NoAuth));
    m.send(a, auth("digest", b"u127:pw"));
    assert!(!m.server.is_open(a.conn), "one more than anybody has");
    let b = m.join();
    assert_eq!(m.ask(b, get("/next")), Err(ErrorCode::NoAuth));
    m.send(b, auth("digest", b"u127:pw"));
    m.ask(b, get("/next")).unwrap();
}

/// The verdict on a list that is gone does not hold for the list that takes its place.
#[test]
fn a_changed_list_has_another_verdict() {
    let mut m = Member::new();
    let a = proven(&mut m, 20);
    for n in 0..100 {
        let (mine, not) = ([others(20), vec![user(3)]].concat(), others(21 + n));
        m.ask(a, create("/a").acl(&mine)).unwrap();
        m.ask(a, get("/a")).unwrap();
        m.send(a, set_acl("/a", &not, -1));
        m.send(a, set("/a", b""));
        m.flush();
        assert!(m.seen(a).last().unwrap().ends_with("NoAuth"), "also before it is committed");
        assert_eq!(m.ask(a, get("/a")), Err(ErrorCode::NoAuth));
        m.ask(a, delete("/a")).unwrap();
    }
}

/// One request of each operation, in a tree where `/p` has many children.
fn request_of(op: Op) -> WireRequest {
    match op {
        Op::Create => create("/p/new").into(),
        Op::Create2 => create("/p/new2").with_stat().into(),
        Op::CreateContainer => create("/p/container").container().into(),
        Op::CreateTtl => create("/p/ttl").ttl(1000).into(),
        Op::Delete => delete("/p/0000000"),
        Op::DeleteContainer => WireRequest::new(op, |out| out.string("/p/0000001")),
        Op::SetData => set("/p", b"new"),
        Op::SetAcl => set_acl("/p", &[Acl::world(Perms::ALL)], -1),
        Op::Check => check("/p", -1),
        Op::Multi => multi(&[check("/p", -1)]),
        Op::Reconfig => reconfig(None, Some("7")),
        Op::Sync => sync("/p"),
        Op::CreateSession => WireRequest::new(op, |_| ()),
        Op::CloseSession => close_session(),
        Op::Exists => exists("/p"),
        Op::GetData => get("/p"),
        Op::GetAcl => get_acl("/p"),
        Op::GetChildren => children("/p"),
        Op::GetChildren2 => children2("/p", true),
        Op::GetAllChildrenNumber => count_below("/"),
        Op::GetEphemerals => ephemerals("/"),
        Op::MultiRead => multi_read(&[get("/p"), children("/p")]),
        Op::WhoAmI => who_am_i(),
        Op::Ping => ping(),
        Op::Auth => auth("digest", b"u0:pw"),
        Op::Sasl => WireRequest::new(op, |out| out.buffer(Some(b"token"))),
        Op::AddWatch => watch_always("/p", true),
        Op::CheckWatches => check_watches("/p", 3),
        Op::RemoveWatches => remove_watches("/p", 3),
        Op::SetWatches => set_one_shot_watches(0, &WatchedPaths { data: &["/p"], ..WatchedPaths::default() }),
        Op::SetWatches2 => set_watches(0, &WatchedPaths { recursive: &["/p"], ..WatchedPaths::default() }),
    }
}

#[test]
fn a_request_of_each_operation_takes_little_in_a_large_tree() {
    let config = CoreConfig::default();
    let types = ExtendedTypes { enabled: true, ..config.types };
    let mut m = with_children(50_000, EphemeralOwner::NONE, CoreConfig { types, ..config });
    let watcher = m.join();
    m.send(watcher, watch_always("/", true));
    let all: Vec<Op> = (-100..=200).filter_map(Op::from_code).collect();
    assert_eq!(all.len(), 31, "an operation that is not tried");
    for op in all {
        let client = m.join();
        m.ask(client, watch_always("/p", false)).unwrap();
        m.take_costliest();
        m.send(client, request_of(op));
        m.flush();
        let steps = m.take_costliest();
        let is_list = matches!(op, Op::GetChildren | Op::GetChildren2 | Op::MultiRead);
        let most = if is_list { 50_000 / 300 + LITTLE } else { LITTLE };
        assert!((1..=most).contains(&steps), "{steps} for {op:?}");
        m.hang_up(client);
        m.flush();
    }
    let client = m.join();
    assert_eq!(m.ask(client, count_below("/p")), Ok(Body::Count(50_000 + 4 - 1)));
}

/// One answer cannot be given in parts. It pays for its size, so that nothing else is done in the same hold.
#[test]
fn an_answer_in_one_piece_costs_work_by_its_size() {
    let mut m = with_children(50_000, EphemeralOwner(77), CoreConfig::default());
    let a = m.join();
    for ask in [children("/p"), children("/p"), children2("/p", false)] {
        m.take_costliest();
        m.ask(a, ask).unwrap();
        let took = m.take_costliest();
        assert!(
            took <= 50_000 / 300 + LITTLE,
            "{took}: names are not gone through, only what holds hundreds of them"
        );
    }
    let owner = m.rejoin(Client { session: SessionId(77), ..a }, TIMEOUT_MS);
    m.take_costliest();
    let Ok(Body::Paths(paths)) = m.ask(owner, ephemerals("/")) else { panic!("it is answered") };
    assert_eq!(paths.size(), 4 + 50_000 * 14);
    assert!(m.take_costliest() <= 50_000 / 300 + LITTLE);
    // Prepared in one hold, done in another.
    m.send(owner, close_session());
    let prepared = m.take_costliest();
    assert!((50_000 * 4..50_000 * 10).contains(&prepared), "{prepared}");
    m.flush();
    let done = m.take_costliest();
    assert!((50_000 * 4..50_000 * 10).contains(&done), "{done}");
    assert!(!m.has("/p/0000000"));
}

#[test]
fn lists_and_multis_pay_for_their_entries() {
    let mut m = Member::new();
    let a = m.join();
    m.take_costliest();
    m.send(a, create("/a").acl(&[others(10_000), vec![Acl::world(Perms::ALL)]].concat()));
    assert!((20_000..21_000).contains(&m.take_costliest()));
    m.flush();
    m.take_costliest();
    m.ask(a, get_acl("/a")).unwrap();
    assert!((2_500..2_600).contains(&m.take_costliest()));
    m.send(a, multi(&vec![check("/a", -1); 10_000]));
    assert!((60_000..61_000).contains(&m.take_costliest()));
    // Operations after the first that fails are not checked.
    m.send(a, multi(&vec![check("/none", -1); 10_000]));
    assert!(m.take_costliest() < 400);
    m.flush();
    m.take_costliest();
    m.ask(a, multi_read(&vec![get("/none"); 10_000])).unwrap();
    assert!(
        (4_096..A_HOLD).contains(&m.take_costliest()),
        "refused ones pay as well, and many have their turn in parts"
    );
}

/// All that waits behind a write could be answered in the step in which the write commits.
#[test]
fn requests_behind_a_write_have_their_turn_in_parts_and_in_order() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    let mut lines = vec!["1: /a".to_string()];
    m.send(a, create("/a"));
    for n in 0..20 {
        for _ in 0..30 {
            m.send(a, multi_read(&vec![get("/a"); 100]));
            m.send(a, get("/none"));
            let at = lines.len();
            lines.push(format!("{}: ", at + 1));
            lines.push(format!("{}: NoNode", at + 2));
        }
        m.send(a, set("/a", n.to_string().as_bytes()));
        lines.push(format!("{}: v{}", lines.len() + 1, n + 1));
    }
    m.take_costliest();
    m.disk_does(usize::MAX);
    let in_one = m.sights.len();
    assert!(m.server.has_backlog() && in_one < 60, "{in_one} of them in one hold");
    // Others are served in between, and before a write that waits.
    let seen_by_b = m.send(b, get("/a"));
    assert!(m.reply(b, seen_by_b).result.is_ok());
    m.flush();
    assert!(m.take_costliest() <= A_HOLD);
    let seen = m.seen(a);
    assert_eq!(seen.len(), lines.len());
    for (seen, line) in seen.iter().zip(&lines) {
        assert!(seen.starts_with(line.as_str()), "{seen} where {line} is due");
    }
    // Each read saw the write before it, and none after.
    for n in 0..20 {
        let data = n.to_string();
        m.ask(a, set("/a", data.as_bytes())).unwrap();
        assert_eq!(m.data("/a"), Some(data));
    }
}

/// A read that came before a write of the same client does not see it, however long the read had to wait for its turn.
#[test]
fn a_read_that_has_its_turn_later_does_not_see_the_write_after_it() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/a").data(b"before")).unwrap();
    m.forget();
    m.send(a, set("/a", b"middle"));
    for _ in 0..100 {
        m.send(a, multi_read(&vec![get("/a"); 100]));
    }
    m.send(a, set("/a", b"after"));
    m.flush();
    let reads = m.sights.iter().filter_map(|(_, sight)| match sight {
        Sight::Reply(Reply { result: Ok(Body::Multi(results)), .. }) => Some(results),
        _ => None,
    });
    let mut count = 0;
    for results in reads {
        let middle =
            |result: &OpResult| matches!(result, OpResult::GetData(Some(data), _) if **data == *b"middle");
        assert!(results.iter().all(middle));
        count += 1;
    }
    assert_eq!(count, 100);
    assert_eq!(m.data("/a").as_deref(), Some("after"));
}

#[test]
fn many_commits_at_once_are_done_in_parts() {
    let mut m = Member::new();
    let clients: Vec<Client> = (0..20).map(|_| m.join()).collect();
    m.ask(clients[0], create("/a")).unwrap();
    m.take_costliest();
    m.forget();
    for _ in 0..100 {
        for client in &clients {
            m.send(*client, set("/a", b"x"));
        }
    }
    m.disk_does(usize::MAX);
    assert!(m.server.has_backlog());
    // Requests that come meanwhile keep their places.
    m.send(clients[0], set("/a", b"last"));
    m.send(clients[0], get("/a"));
    m.flush();
    assert!(m.take_costliest() <= A_HOLD);
    assert_eq!(m.sights.len(), 2002);
    assert_eq!(m.data("/a").as_deref(), Some("last"));
    assert!(m.seen(clients[0]).last().unwrap().contains("last"));
}

#[test]
fn a_set_watches_of_many_paths_is_done_in_parts() {
    let mut m = with_children(30_000, EphemeralOwner::NONE, CoreConfig::default());
    let (a, b) = (m.join(), m.join());
    m.forget();
    let paths: Vec<String> = (0..30_000).map(|n| format!("/p/{n:07}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let none: Vec<String> = (0..1000).map(|n| format!("/none/{n}")).collect();
    let none: Vec<&str> = none.iter().map(String::as_str).collect();
    let watched = WatchedPaths {
        data: &paths,
        exist: &none,
        child: &paths[..100],
        persistent: &none,
        recursive: &["/r"],
    };
    m.take_costliest();
    m.send(a, set_watches(i64::MAX, &watched));
    m.send(a, get("/p"));
    assert!(m.server.has_backlog());
    assert_eq!(m.seen(a), [""; 0], "what comes after it waits");
    // One that is watched already changes, one whose turn has not come, and one that is watched after it has gone.
    for path in ["/p/0000000", "/p/0029998"] {
        let set = m.send(b, set(path, b"new"));
        m.disk_does(usize::MAX);
        assert!(m.reply(b, set).result.is_ok() || m.server.has_backlog());
    }
    m.flush();
    assert!(m.take_costliest() <= A_HOLD);
    let seen = m.seen(a);
    assert!(seen.contains(&"changed /p/0000000".to_string()), "{seen:?}");
    assert!(seen[seen.len() - 2].starts_with("-8: ok"), "{seen:?}");
    assert!(seen[seen.len() - 1].starts_with("1: "), "{seen:?}");
    let watches = m.server.summary().watch_count;
    assert_eq!(
        watches,
        30_000 - 1 + 1000 + 100 + 2 * 1000 + 1 - 1000,
        "an exist and a persistent one are one entry"
    );
    m.ask(b, set("/p/0029998", b"again")).unwrap();
    assert_eq!(m.seen(a), ["changed /p/0029998"]);
}

#[test]
fn the_watches_of_a_connection_that_is_gone_are_taken_out_in_parts() {
    let mut m = with_children(10_000, EphemeralOwner::NONE, CoreConfig::default());
    let (a, b) = (m.join(), m.join());
    for n in 0..10_000 {
        m.send(a, get_and_watch(&format!("/p/{n:07}")));
    }
    m.forget();
    m.take_costliest();
    m.hang_up(a);
    assert!(m.server.has_backlog());
    assert!(m.take_costliest() < 1024);
    // Its watches fire for no connection.
    m.send(b, set("/p/0009999", b""));
    m.disk_does(usize::MAX);
    m.flush();
    assert!(m.take_costliest() <= A_HOLD);
    assert_eq!(m.server.summary().watch_count, 0);
    assert_eq!(m.sights.len(), 1);
}

#[test]
fn many_sessions_that_end_together_end_in_parts() {
    let mut m = Member::new();
    for n in 0..200 {
        let client = m.join();
        for at in 0..10 {
            m.send(client, create(&format!("/{n}-{at}")).ephemeral());
        }
        m.flush();
        m.hang_up(client);
    }
    m.forget();
    m.take_costliest();
    m.pass(2 * TIMEOUT_MS as u64);
    m.flush();
    assert!(m.take_costliest() <= A_HOLD);
    assert_eq!(m.server.tree().session_count(), 0);
    assert_eq!(m.server.tree().ephemeral_count(), 0);
    assert!(m.server.tree().node_count() < 10);
}

#[test]
fn a_deep_path_is_not_looked_for_at_each_of_its_parts() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    let mut path = String::new();
    for _ in 0..500 {
        path.push_str("/d");
        m.send(a, create(&path));
    }
    m.flush();
    m.send(b, watch_always("/d", true));
    m.forget();
    m.take_costliest();
    m.ask(a, set(&path, b"")).unwrap();
    assert!(m.take_costliest() <= LITTLE);
    assert_eq!(m.seen(b).len(), 1);
}

#[test]
fn containers_to_delete_are_looked_for_in_parts() {
    let config =
        CoreConfig { reaper_interval_ms: 1000, reaper_max_per_minute: 60_000, ..CoreConfig::default() };
    let mut m = with_children(20_000, EphemeralOwner::CONTAINER, config);
    m.take_costliest();
    for _ in 0..30 {
        m.pass(1000);
        m.flush();
    }
    assert!(m.take_costliest() <= A_HOLD);
    let left = m.server.tree().count_below("/p");
    assert!(left < 1000, "{left} of them are left");
}

/// A snapshot of a tree whose lists of children have grown and gone counts as the tree does.
#[test]
fn counts_below_survive_a_restart() {
    let mut m = Member::new();
    let a = m.join();
    for path in ["/a", "/a/b", "/a/b/c", "/d"] {
        m.ask(a, create(path).data(b"1234")).unwrap();
    }
    m.ask(a, delete("/a/b/c")).unwrap();
    let again = disk::restore(&m.server.tree().freeze(), m.config.types);
    for path in ["/", "", "/a", "/a/b", "/d", "/none"] {
        assert_eq!(again.count_below(path), m.server.tree().count_below(path), "{path}");
    }
    assert_eq!(again.count_below("/a"), 1);
}
