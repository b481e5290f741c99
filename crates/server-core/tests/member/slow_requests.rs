//! Slow requests are kept with the times of their stages, and hot paths are counted.

use crate::{
    member::Member,
    wire::{create, get, set, sync},
};
use ostler_server_core::{CoreConfig, sessions::ends::EndsQuery, stats::slow_requests::SlowReport};

fn slow(threshold_ms: Option<u64>) -> Member {
    Member::with(CoreConfig { slow_request_ms: threshold_ms, ..CoreConfig::default() })
}

fn report(m: &Member) -> SlowReport {
    m.server.slow_requests(0, 100)
}

#[test]
fn a_write_that_waits_for_the_disk_shows_that_stage() {
    let mut m = slow(Some(1000));
    let client = m.join();
    m.ask(client, create("/fast")).unwrap();
    m.send(client, create("/slow"));
    m.send(client, get("/fast"));
    m.send(client, sync("/fast"));
    m.pass(2500);
    m.flush();
    let report = report(&m);
    assert_eq!((report.threshold_ms, report.count, report.next), (Some(1000), 3, None));
    let [write, read, sync] = &report.requests[..] else { panic!("{report:?}") };
    assert_eq!((&*write.operation, write.path.as_deref()), ("create", Some("/slow")));
    assert_eq!((write.total_us, write.session), (2_500_000, client.session));
    assert_eq!((write.stages.own_disk_us, write.stages.quorum_us), (Some(2_500_000), Some(2_500_000)));
    assert_eq!((write.stages.propose_us, write.stages.apply_us), (Some(0), Some(0)));
    assert!(write.zxid.is_some());
    assert_eq!((&*read.operation, read.stages.queue_us), ("getData", Some(2_500_000)));
    assert_eq!((&*sync.operation, sync.path.as_deref()), ("sync", Some("/fast")));
    let ends = m.server.session_ends(m.now, &EndsQuery::default());
    let [stall] = ends.disk_stalls[..] else { panic!("{:?}", ends.disk_stalls) };
    assert_eq!(stall.to_ms - stall.from_ms, 2500);
}

#[test]
fn the_time_until_the_answer_is_written_is_added() {
    let mut m = slow(Some(0));
    let client = m.join();
    m.ask(client, create("/a")).unwrap();
    let number = report(&m).requests.last().unwrap().number;
    m.pass(3);
    m.server.slow_request_written(m.now, number);
    assert_eq!(report(&m).requests.last().unwrap().stages.write_us, Some(3000));
}

#[test]
fn without_a_threshold_nothing_is_kept() {
    let mut m = slow(None);
    let client = m.join();
    m.send(client, create("/slow"));
    m.pass(3000);
    m.flush();
    assert_eq!(report(&m), SlowReport::default());
}

#[test]
fn hot_paths_and_clients_are_found() {
    let mut m = Member::new();
    let (busy, idle) = (m.join(), m.join());
    m.ask(busy, create("/hot")).unwrap();
    m.ask(busy, create("/cold")).unwrap();
    for at in 0..4000 {
        m.send(busy, get("/hot"));
        if at % 10 == 0 {
            m.send(busy, set("/hot", b"x"));
            m.send(idle, get("/cold"));
        }
        m.flush();
        m.forget();
    }
    let report = m.server.hot_paths(m.now, 5);
    assert_eq!(report.reads[0].name, "/hot");
    assert!((3000..5000).contains(&report.reads[0].requests), "{report:?}");
    assert_eq!(report.writes[0].name, "/hot");
    assert_eq!(report.sessions[0].name, busy.session.to_string());
    assert_eq!(report.addresses.len(), 1);
}
