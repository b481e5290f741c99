//! Callers who go away before they have their answer.

use crate::server::Site;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

/// Sends a request, and goes away after some time without reading the answer.
fn drop_after(site: &Site, path: &str, wait: Duration) {
    let mut stream = TcpStream::connect(site.admin).unwrap();
    write!(stream, "GET /api/v1/{path} HTTP/1.1\r\nHost: {}\r\n\r\n", site.admin).unwrap();
    std::thread::sleep(wait);
    let _ = stream.shutdown(Shutdown::Both);
}

fn is_alive(site: &Site) -> bool {
    let mut stream = TcpStream::connect(site.admin).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write!(stream, "GET /livez HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", site.admin).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200 ")
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_nobody_waits_for_leave_the_server_alive() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/p", b"").await.unwrap();
    for n in 0..40 {
        let names = (0..500).map(|m| format!("/p/n{:010}", n * 500 + m));
        names.fold(client.multi(), |multi, path| multi.create(&path, b"").and()).await.unwrap();
    }
    let paths = [
        "tree/children?path=/p&sort=changed&limit=1000",
        "tree/children?path=/p&sort=sequence&order=desc&starts_with=n0",
        "tree/children?path=/p&from=9000&limit=1000",
        "tree/children?path=/p&order=desc",
        "tree/plan?path=/p",
        "tree/search?under=/p&name=none",
        "tree/history?path=/p",
    ];
    for round in 0..60_u64 {
        // A list is kept as long as its parent does not change.
        client.create(&format!("/p/x{round}"), b"").await.unwrap();
        tokio::task::block_in_place(|| {
            std::thread::scope(|scope| {
                for (at, path) in paths.iter().enumerate() {
                    let wait = Duration::from_micros((round * 7 + at as u64) * 137 % 9000);
                    let site = &site;
                    scope.spawn(move || drop_after(site, path, wait));
                }
            });
        });
    }
    assert!(is_alive(&site), "/livez does not answer");
    // The turns of those who have gone are over, too.
    let began = Instant::now();
    for path in paths {
        let (status, answer) = site.get(path);
        assert_eq!(status, 200, "{path}: {answer}");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(is_alive(&site), "/livez does not answer");
}
