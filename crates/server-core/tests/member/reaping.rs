//! Containers without children and TTL nodes past their time go by themselves.

use crate::{
    member::{Client, Member},
    wire::{create, delete, exists_and_watch, multi, set},
};
use ostler_proto::error::ErrorCode;
use ostler_server_core::CoreConfig;

const MINUTE: u64 = 60_000;

/// Time passes, and a client that stays alive.
fn pass(m: &mut Member, a: Client, ms: u64) {
    for _ in 0..ms / 1000 {
        m.pass(1000);
        m.send(a, crate::wire::ping());
        m.flush();
    }
}

#[test]
fn a_container_goes_after_its_last_child() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/c").container()).unwrap();
    m.ask(a, create("/never-used").container()).unwrap();
    pass(&mut m, a, 2 * MINUTE);
    assert!(m.has("/c") && m.has("/never-used"), "one that never had a child stays");
    m.ask(a, create("/c/x")).unwrap();
    pass(&mut m, a, 2 * MINUTE);
    assert!(m.has("/c/x"));
    m.ask(a, delete("/c/x")).unwrap();
    m.send(a, exists_and_watch("/c"));
    m.forget();
    pass(&mut m, a, MINUTE);
    assert!(!m.has("/c") && m.has("/never-used"));
    assert!(m.seen(a).contains(&"deleted /c".to_string()));
    m.crash(0);
    assert!(!m.has("/c") && m.has("/never-used"));
}

#[test]
fn a_container_that_is_never_used_goes_where_a_limit_is_set() {
    let mut m = Member::with(CoreConfig { container_max_never_used_ms: 90_000, ..CoreConfig::default() });
    let a = m.join();
    m.ask(a, create("/c").container()).unwrap();
    pass(&mut m, a, MINUTE);
    assert!(m.has("/c"));
    pass(&mut m, a, MINUTE);
    assert!(!m.has("/c"));
}

#[test]
fn a_ttl_node_goes_when_it_is_unchanged_and_childless_for_long_enough() {
    let mut m = Member::with_ttls(CoreConfig::default());
    let a = m.join();
    m.ask(a, create("/t").ttl(90_000)).unwrap();
    m.ask(a, create("/t-seq-").ttl(90_000).sequential()).unwrap_err();
    m.ask(a, create("/renewed").ttl(90_000)).unwrap();
    m.ask(a, create("/parent").ttl(1)).unwrap();
    m.ask(a, create("/parent/x")).unwrap();
    pass(&mut m, a, MINUTE);
    assert!(m.has("/t") && m.has("/renewed"));
    m.ask(a, set("/renewed", b"")).unwrap();
    pass(&mut m, a, MINUTE);
    assert!(!m.has("/t") && m.has("/renewed") && m.has("/parent"));
    m.ask(a, delete("/parent/x")).unwrap();
    m.crash(0);
    let a = m.join();
    pass(&mut m, a, MINUTE + 1000);
    assert!(!m.has("/renewed") && !m.has("/parent"));
}

#[test]
fn ttls_are_refused_where_they_are_not_enabled() {
    let mut m = Member::new();
    let a = m.join();
    assert_eq!(m.ask(a, create("/t").ttl(1000)), Err(ErrorCode::Unimplemented));
}

#[test]
fn deletions_are_spread_over_time() {
    let config = CoreConfig { reaper_max_per_minute: 6, ..CoreConfig::default() };
    let mut m = Member::with_ttls(config);
    let a = m.join();
    for n in 0..4 {
        m.ask(a, create(&format!("/t{n}")).ttl(1)).unwrap();
    }
    pass(&mut m, a, MINUTE);
    let left = |m: &Member| (0..4).filter(|n| m.has(&format!("/t{n}"))).count();
    assert_eq!(left(&m), 3);
    pass(&mut m, a, 9000);
    assert_eq!(left(&m), 3);
    pass(&mut m, a, 1000);
    assert_eq!(left(&m), 2);
    pass(&mut m, a, 20_000);
    assert_eq!(left(&m), 0);
}

/// Two doomed znodes, of which the second has its turn ten seconds after the first.
fn doomed(kind: &str) -> (Member, Client) {
    let config = CoreConfig { reaper_max_per_minute: 6, ..CoreConfig::default() };
    let mut m = Member::with_ttls(config);
    let a = m.join();
    for path in ["/1", "/2"] {
        match kind {
            "container" => {
                let child = format!("{path}/x");
                let used = [create(path).container().into(), create(&child).into(), delete(&child)];
                m.ask(a, multi(&used)).unwrap();
            }
            _ => drop(m.ask(a, create(path).ttl(1)).unwrap()),
        }
    }
    pass(&mut m, a, MINUTE);
    assert!(!m.has("/1") && m.has("/2"));
    (m, a)
}

#[test]
fn a_doomed_znode_that_got_a_child_stays() {
    for kind in ["container", "ttl"] {
        let (mut m, a) = doomed(kind);
        m.ask(a, create("/2/y")).unwrap();
        pass(&mut m, a, 20_000);
        assert!(m.has("/2") && m.has("/2/y"));
    }
    // Also where the child is still on its way to the disk.
    for kind in ["container", "ttl"] {
        let (mut m, a) = doomed(kind);
        m.pass(9000);
        m.send(a, create("/2/y"));
        m.pass(5000);
        m.flush();
        assert!(m.has("/2") && m.has("/2/y"));
    }
}

#[test]
fn reaping_a_znode_that_is_gone_takes_no_zxid() {
    let (mut m, a) = doomed("ttl");
    m.ask(a, delete("/2")).unwrap();
    let zxid = m.disk.last();
    pass(&mut m, a, 20_000);
    assert_eq!(m.disk.last(), zxid);
}

#[test]
fn a_ttl_node_that_was_renewed_in_the_meantime_stays() {
    let (mut m, a) = doomed("ttl");
    let long = [delete("/2"), create("/2").ttl(1_000_000).into()];
    m.ask(a, multi(&long)).unwrap();
    pass(&mut m, a, 20_000);
    assert!(m.has("/2"));
}

#[test]
fn t1_a_persistent_znode_in_the_place_of_a_doomed_one_stays() {
    for kind in ["container", "ttl"] {
        let (mut m, a) = doomed(kind);
        m.ask(a, multi(&[delete("/2"), create("/2").data(b"precious").into()])).unwrap();
        pass(&mut m, a, 20_000);
        assert_eq!(m.data("/2").as_deref(), Some("precious"), "in the place of a {kind}");
    }
}
