//! Quotas: counted always, enforced where hard limits are set and the configuration says so.

use crate::{
    member::{Client, Member},
    wire::{create, delete, multi, set},
};
use ostler_proto::error::ErrorCode;
use ostler_server_core::CoreConfig;

const USAGE: &str = "/zookeeper/quota/a/zookeeper_stats";

fn enforced() -> Member {
    Member::with(CoreConfig { enforce_quota: true, ..CoreConfig::default() })
}

/// Limits for /a, as the admin client writes them: parents, limits, usage.
fn limit(m: &mut Member, a: Client, limits: &str) {
    m.ask(a, create("/zookeeper/quota/a")).unwrap();
    m.ask(a, create("/zookeeper/quota/a/zookeeper_limits").data(limits.as_bytes())).unwrap();
    m.ask(a, create(USAGE).data(b"count=0,bytes=0")).unwrap();
}

#[test]
fn a_hard_limit_on_znodes_refuses_the_next() {
    let mut m = enforced();
    let a = m.join();
    m.ask(a, create("/a")).unwrap();
    limit(&mut m, a, "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3");
    m.ask(a, create("/a/1")).unwrap();
    m.ask(a, create("/a/2")).unwrap();
    assert_eq!(m.ask(a, create("/a/3")), Err(ErrorCode::QuotaExceeded));
    assert_eq!(m.ask(a, create("/a/2/x")), Err(ErrorCode::QuotaExceeded));
    m.ask(a, set("/a/1", b"data is not counted here")).unwrap();
    m.ask(a, delete("/a/1")).unwrap();
    m.ask(a, create("/a/3")).unwrap();
    assert_eq!(m.data(USAGE).as_deref(), Some("count=3,bytes=0"));
    assert_eq!(m.server.summary().stats.quota_exceeded, 2);
}

#[test]
fn a_hard_limit_on_bytes_refuses_growth() {
    let mut m = enforced();
    let a = m.join();
    m.ask(a, create("/a").data(b"12345")).unwrap();
    limit(&mut m, a, "count=-1,bytes=-1=;byteHardLimit=10");
    assert_eq!(m.ask(a, create("/a/1").data(b"123456")), Err(ErrorCode::QuotaExceeded));
    m.ask(a, create("/a/1").data(b"12345")).unwrap();
    assert_eq!(m.ask(a, set("/a", b"123456")), Err(ErrorCode::QuotaExceeded));
    m.ask(a, set("/a", b"54321")).unwrap();
    m.ask(a, set("/a", b"")).unwrap();
    m.ask(a, set("/a/1", b"1234567890")).unwrap();
    assert_eq!(m.data(USAGE).as_deref(), Some("count=2,bytes=10"));
}

#[test]
fn a_refusal_inside_a_multi_undoes_it() {
    let mut m = enforced();
    let a = m.join();
    m.ask(a, create("/a")).unwrap();
    limit(&mut m, a, "count=-1,bytes=-1=;byteHardLimit=4");
    m.send(a, multi(&[create("/x").into(), set("/a", b"12345")]));
    m.flush();
    assert!(m.seen(a)[0].ends_with("(undone, QuotaExceeded)"));
    assert!(!m.has("/x"));
}

#[test]
fn soft_limits_and_unenforced_ones_only_count() {
    for config in [CoreConfig { enforce_quota: true, ..CoreConfig::default() }, CoreConfig::default()] {
        let enforced = config.enforce_quota;
        let mut m = Member::with(config);
        let a = m.join();
        m.ask(a, create("/a")).unwrap();
        let limits = if enforced { "count=1,bytes=1" } else { "count=-1,bytes=-1=;countHardLimit=1" };
        limit(&mut m, a, limits);
        m.ask(a, create("/a/1").data(b"123")).unwrap();
        m.ask(a, create("/a/1/2").data(b"4")).unwrap();
        m.ask(a, set("/a/1", b"1")).unwrap();
        assert_eq!(m.data(USAGE).as_deref(), Some("count=3,bytes=2"));
    }
}

#[test]
fn usage_is_the_same_after_a_restart_and_ends_with_the_limits() {
    let mut m = enforced();
    let a = m.join();
    m.ask(a, create("/a")).unwrap();
    limit(&mut m, a, "count=-1,bytes=-1=;countHardLimit=2");
    m.ask(a, create("/a/1").data(b"123").ephemeral()).unwrap();
    let before = m.contents();
    m.crash(0);
    assert_eq!(m.contents(), before);
    m.crash_with_snapshot(0, &m.server.tree().freeze());
    assert_eq!(m.contents(), before);
    let b = m.join();
    assert_eq!(m.ask(b, create("/a/2")), Err(ErrorCode::QuotaExceeded));
    m.pass(20_000);
    m.flush();
    assert_eq!(
        m.data(USAGE).as_deref(),
        Some("count=1,bytes=0"),
        "an ephemeral that vanished is not counted"
    );
    let b = m.join();
    m.ask(b, create("/a/2")).unwrap();
    m.ask(b, delete("/zookeeper/quota/a/zookeeper_limits")).unwrap();
    m.ask(b, create("/a/3")).unwrap();
    assert_eq!(m.data(USAGE).as_deref(), Some("count=2,bytes=0"), "nobody counts any more");
}

#[test]
fn the_nearest_limit_counts() {
    let mut m = enforced();
    let a = m.join();
    m.ask(a, create("/a")).unwrap();
    m.ask(a, create("/a/b")).unwrap();
    limit(&mut m, a, "count=-1,bytes=-1=;countHardLimit=2");
    m.ask(a, create("/zookeeper/quota/a/b")).unwrap();
    m.ask(a, create("/zookeeper/quota/a/b/zookeeper_limits").data(b"countHardLimit=9")).unwrap();
    m.ask(a, create("/zookeeper/quota/a/b/zookeeper_stats")).unwrap();
    m.ask(a, create("/a/b/1")).unwrap();
    assert_eq!(m.ask(a, create("/a/1")), Err(ErrorCode::QuotaExceeded));
}

#[test]
fn usage_that_a_client_wrote_stops_no_server() {
    for usage in [format!("count={},bytes={}", i64::MAX, i64::MAX), format!("count={0},bytes={0}", i64::MIN)]
    {
        for enforce_quota in [false, true] {
            let mut m = Member::with(CoreConfig { enforce_quota, ..CoreConfig::default() });
            let a = m.join();
            m.ask(a, create("/a").data(b"1")).unwrap();
            limit(&mut m, a, "count=-1,bytes=-1=;byteHardLimit=9;countHardLimit=9");
            m.ask(a, set(USAGE, usage.as_bytes())).unwrap();
            // Refused or not: the server goes on.
            let _ = m.ask(a, create("/a/1").data(b"123"));
            let _ = m.ask(a, set("/a", b"12"));
            let _ = m.ask(a, delete("/a/1"));
            let _ = m.ask(a, delete("/a"));
            m.crash(0);
        }
    }
}
