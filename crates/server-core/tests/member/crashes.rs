//! T3: what was acknowledged is not lost, wherever the process dies.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    wire::{WireRequest, close_session, create, delete, get, multi, set, set_at},
};
use std::collections::BTreeMap;

/// The next event; clients by number.
enum Step {
    Send(usize, WireRequest),
    Disk(usize),
}

/// Two clients, many outstanding writes, a disk that lags behind by changing amounts.
fn script() -> Vec<Step> {
    use Step::{Disk, Send};
    let mut steps = Vec::new();
    for n in 0..6 {
        let (a, b) = (format!("/a{n}"), format!("/b{n}"));
        steps.push(Send(0, create(&a).data(b"0").into()));
        steps.push(Send(
            1,
            multi(&[create(&b).into(), create(&format!("{b}/x")).into(), set_at(&b, Some(b"1"), 0)]),
        ));
        steps.push(Disk(n % 3));
        steps.push(Send(0, set(&a, b"1")));
        steps.push(Send(1, create(&a).into()));
        steps.push(Send(1, multi(&[create(&format!("{b}/y")).into(), delete("/missing")])));
        steps.push(Send(1, delete(&format!("{b}/x"))));
        steps.push(Disk(2));
        steps.push(Send(0, set(&a, b"2")));
        steps.push(Send(1, create(&format!("/e{n}")).ephemeral().into()));
        steps.push(Disk(n));
    }
    steps.push(Send(1, close_session()));
    steps.push(Disk(3));
    steps.push(Disk(usize::MAX));
    steps
}

/// The answers that the clients got, by path: the version that was acknowledged, or that the znode is gone.
fn acknowledged(
    m: &mut Member,
    clients: &[Client],
    sent: &BTreeMap<(usize, i32), String>,
) -> BTreeMap<String, Option<i32>> {
    let mut told = BTreeMap::new();
    for (n, client) in clients.iter().enumerate() {
        for line in m.seen(*client) {
            let Some((xid, answer)) = line.split_once(": ") else { continue };
            let Some(path) = xid.parse().ok().and_then(|xid: i32| sent.get(&(n, xid))) else { continue };
            match (answer, answer.strip_prefix('v').map(str::parse)) {
                ("ok", _) => told.insert(path.clone(), None),
                (_, Some(Ok(version))) => told.insert(path.clone(), Some(version)),
                _ if answer.starts_with('/') => told.insert(path.clone(), Some(0)),
                _ if answer.starts_with("(/") => told.insert(path.clone(), Some(1)),
                _ => continue,
            };
        }
    }
    told
}

/// The path that a step of the script is about.
fn path_of(ask: &WireRequest) -> String {
    let body = if ask.code == 14 { &ask.body[9..] } else { &ask.body[..] };
    if body.is_empty() {
        return "session".into();
    }
    let len = u32::from_be_bytes(body[..4].try_into().unwrap()) as usize;
    String::from_utf8(body[4..4 + len].into()).unwrap()
}

#[test]
fn t3_acknowledged_writes_survive_a_crash_at_every_step() {
    let steps = script().len();
    for crash_after in 0..=steps {
        for unreported in [0, 1, 2, usize::MAX] {
            let mut m = Member::new();
            let clients = [m.join(), m.join()];
            let mut sent = BTreeMap::new();
            for step in script().into_iter().take(crash_after) {
                match step {
                    Step::Send(n, ask) => {
                        let path = path_of(&ask);
                        let xid = m.send(clients[n], ask);
                        sent.insert((n, xid.0), path);
                    }
                    Step::Disk(acts) => m.disk_does(acts),
                }
            }
            let applied = m.applied();
            m.crash(unreported);
            assert!(m.applied() >= applied);
            let told = acknowledged(&mut m, &clients, &sent);
            let closed = told.contains_key("session");
            for (path, version) in told.into_iter().filter(|(path, _)| path != "session") {
                let version_now = m.server.tree().get(&path).map(|node| node.stat.version);
                let ephemeral = path.starts_with("/e");
                let kept = match version {
                    _ if ephemeral && version_now.is_none() => m.server.tree().sessions().count() < 2,
                    Some(version) => version_now >= Some(version),
                    None => version_now.is_none(),
                };
                assert!(kept, "crash after {crash_after}: {path} was {version:?} and is {version_now:?}");
                assert!(!(ephemeral && closed && version_now.is_some()), "{path} outlived its session");
            }
            assert!((0..6).all(|n| !m.has(&format!("/b{n}/y"))), "of a failed multi nothing happened");
            // The next life takes up where the log ends.
            let c = m.join();
            m.ask(c, create("/afterwards")).unwrap();
        }
    }
}

#[test]
fn t3_the_tree_after_a_crash_is_the_tree_of_the_log() {
    let mut m = Member::new();
    let clients = [m.join(), m.join()];
    for step in script() {
        match step {
            Step::Send(n, ask) => drop(m.send(clients[n], ask)),
            Step::Disk(acts) => m.disk_does(acts),
        }
    }
    let before = m.contents();
    m.crash(0);
    assert_eq!(m.contents(), before);
    m.crash(0);
    assert_eq!(m.contents(), before);
}

#[test]
fn t3_writes_that_were_not_on_disk_are_gone_after_a_crash() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/a").data(b"old")).unwrap();
    let applied = m.applied();
    m.send(a, set("/a", b"new"));
    m.send(a, create("/b"));
    m.crash(0);
    assert_eq!((m.data("/a").as_deref(), m.has("/b")), (Some("old"), false));
    assert_eq!(m.applied(), applied);
    let a = m.rejoin(a, TIMEOUT_MS);
    m.send(a, get("/a"));
    assert_eq!(m.seen(a), ["1: old v0"]);
    // The zxid of the lost write is given out again.
    let xid = m.send(a, set("/a", b"newer"));
    m.flush();
    assert_eq!(m.reply(a, xid).zxid, Some(applied.next()));
}

#[test]
fn t3_a_session_that_was_granted_survives_a_crash() {
    let mut m = Member::new();
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, ostler_proto::id::SessionId::NONE, &[0; 16]);
    assert_eq!(m.seen(conn), [""; 0], "it is not granted before it is on disk");
    m.flush();
    let session = m.connected(conn).unwrap().session;
    m.crash(0);
    m.rejoin(Client { conn, session }, TIMEOUT_MS);
}
