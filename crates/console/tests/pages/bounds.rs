//! However much there is, each look at the core has a bounded size. The times depend on the machine, so they are only
//! printed (`cargo test -p ostler-console --test pages -- --nocapture bounds`).

use crate::{raw::Raw, site::Site};
use ostler_proto::op::Op;
use ostler_server_core::report::watch_walk::WatchWalk;
use std::time::{Duration, Instant};

const WATCHES: usize = 100_000;

fn percent(times: &mut [Duration], share: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * share / 100]
}

fn print(what: &str, mut times: Vec<Duration>) {
    let (half, most) = (percent(&mut times, 50), percent(&mut times, 100));
    println!("{what}: {} looks, median {half:?}, longest {most:?}", times.len());
}

#[test]
fn each_look_is_bounded_with_a_hundred_thousand_watches() {
    let site = Site::start();
    let mut all: Vec<Raw> = (0..100).map(|_| Raw::connect(site.clients)).collect();
    for (at, raw) in all.iter_mut().enumerate() {
        let own: Vec<String> = (0..WATCHES / 200).map(|number| format!("/own/{at}/{number}")).collect();
        let common: Vec<String> = (0..WATCHES / 200).map(|number| format!("/common/{number}")).collect();
        raw.watch(Op::Exists, &own);
        raw.watch(Op::Exists, &common);
    }
    let mut times = Vec::new();
    for _ in 0..5 {
        let mut walk = WatchWalk::default();
        loop {
            let (took, is_last, count) = site.handle.inspect(|server| {
                let began = Instant::now();
                let part = server.walk_watches(&mut walk, 500);
                (began.elapsed(), part.is_last, part.watches.len() + part.connections.len())
            });
            assert!(count <= 1000, "{count} in one look");
            times.push(took);
            if is_last {
                break;
            }
        }
    }
    print("walk of 100,000 watches, 500 in one look", times);
    let mut times = Vec::new();
    for _ in 0..50 {
        times.push(site.handle.inspect(|server| {
            let began = Instant::now();
            assert_eq!(server.watchers_after("/common/7", None, 500).len(), 100);
            began.elapsed()
        }));
    }
    print("watchers of a path", times);
    site.post_as("super:secret", "hot/measure", r#"{"seconds": 60}"#);
    let read: Vec<String> = (0..4000).map(|number| format!("/read/{number}")).collect();
    all[0].watch(Op::Exists, &read);
    let mut times = Vec::new();
    for _ in 0..50 {
        times.push(site.handle.inspect(|server| {
            let began = Instant::now();
            let measured = server.measured_hot_paths(Default::default(), 512).unwrap();
            assert!(measured.hot.reads.len() <= 512);
            began.elapsed()
        }));
    }
    print("exact counts of more paths than are kept", times);
    let mut times = Vec::new();
    for _ in 0..50 {
        times.push(site.handle.inspect(|server| {
            let began = Instant::now();
            assert_eq!(server.clients_after(None, 200).0.len(), 100);
            began.elapsed()
        }));
    }
    print("100 clients of the census", times);
    let mut times = Vec::new();
    for _ in 0..50 {
        times.push(site.handle.inspect(|server| {
            let began = Instant::now();
            assert_eq!(server.live_sessions_after(Default::default(), None, 100).sessions.len(), 100);
            began.elapsed()
        }));
    }
    print("100 sessions", times);
    let began = Instant::now();
    let page = site.get("watches?by=path&limit=1000");
    println!("the whole page: {:?}, {} bytes", began.elapsed(), page.to_string().len());
}
