//! `/api/v1/events`.

use crate::members::{Ensemble, PATIENCE, get, get_as};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{TcpSocket, tcp::OwnedReadHalf},
    time::timeout,
};

/// An event with its number.
#[derive(Debug)]
struct Event {
    id: u64,
    name: String,
    data: Value,
}

struct Stream {
    lines: Lines<BufReader<OwnedReadHalf>>,
    _write: tokio::net::tcp::OwnedWriteHalf,
    head: Vec<String>,
}

impl Stream {
    async fn open(admin: SocketAddr, topics: &str) -> Stream {
        Stream::open_from(1, admin, topics).await
    }

    /// The same from an address of this machine: 127.0.0.`host`.
    async fn open_from(host: u8, admin: SocketAddr, topics: &str) -> Stream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, host), 0).into()).unwrap();
        let (read, mut write) = socket.connect(admin).await.unwrap().into_split();
        let request = format!("GET /api/v1/events?topics={topics} HTTP/1.1\r\nHost: {admin}\r\n\r\n");
        write.write_all(request.as_bytes()).await.unwrap();
        let mut stream = Stream { lines: BufReader::new(read).lines(), _write: write, head: Vec::new() };
        loop {
            let line = stream.line().await;
            if line.is_empty() {
                return stream;
            }
            stream.head.push(line.to_ascii_lowercase());
        }
    }

    async fn line(&mut self) -> String {
        timeout(PATIENCE, self.lines.next_line()).await.unwrap().unwrap().unwrap()
    }

    /// The next event. The lengths of chunks between the lines are skipped.
    async fn next(&mut self) -> Event {
        let (mut id, mut name) = (None, None);
        loop {
            let line = self.line().await;
            match line.split_once(": ") {
                Some(("id", number)) => id = Some(number.parse().unwrap()),
                Some(("event", text)) => name = Some(text.to_owned()),
                Some(("data", json)) => {
                    let data = serde_json::from_str(json).unwrap();
                    return Event { id: id.unwrap(), name: name.unwrap(), data };
                }
                Some(("retry", ms)) => assert_eq!(ms, "2000"),
                _ => assert!(u64::from_str_radix(&line, 16).is_ok() || line.is_empty(), "{line}"),
            }
        }
    }

    async fn until(&mut self, name: &str, wanted: impl Fn(&Value) -> bool) -> Event {
        let begun = Instant::now();
        loop {
            let event = self.next().await;
            if event.name == name && wanted(&event.data) {
                return event;
            }
            assert!(begun.elapsed() < PATIENCE, "{event:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_come_at_the_start_and_when_something_happens() {
    let mut ensemble = Ensemble::start(3).await;
    let leader = ensemble.until_led(3).await;
    let epoch = ensemble.epoch_of(leader).await + 1;
    let follower = (1..=3).find(|id| *id != leader).unwrap();
    let mut stream = Stream::open(ensemble.admin(follower), "ensemble,elections").await;
    assert_eq!(stream.head[0], "http/1.1 200 ok");
    assert!(stream.head.contains(&"content-type: text/event-stream".into()), "{:?}", stream.head);
    // The full state of both, in any order.
    let mut first: BTreeMap<String, Event> = BTreeMap::new();
    while !(first.contains_key("ensemble") && first.contains_key("elections")) {
        let event = stream.next().await;
        first.entry(event.name.clone()).or_insert(event);
    }
    assert_eq!(first["ensemble"].data["leader"]["id"], leader);
    assert_eq!(first["elections"].data["elections"][0]["winner"], leader);
    // A second listener has the state at once, from the same maker.
    let mut second = Stream::open(ensemble.admin(follower), "elections").await;
    assert_eq!(second.until("elections", |_| true).await.data["elections"][0]["winner"], leader);

    ensemble.stop(leader).await;
    let election = stream.until("elections", |page| page["elections"][0]["epoch"] == epoch).await;
    assert_ne!(election.data["elections"][0]["winner"], leader);
    let after = stream
        .until("ensemble", |page| page["leader"]["id"].is_u64() && page["leader"]["id"] != leader)
        .await;
    assert!(after.id > first["ensemble"].id);
    let beat = stream.until("beat", |_| true).await;
    assert!(
        beat.data["now_ms"].is_i64() && beat.data["zxid"].as_str().unwrap().starts_with("0x"),
        "{beat:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_servers_send_beats_and_busy_ones_no_more_than_two_events_in_a_second() {
    let ensemble = Ensemble::start(1).await;
    let mut stream = Stream::open(ensemble.admin(1), "ensemble").await;
    let begun = Instant::now();
    let mut pages = 0;
    while begun.elapsed() < Duration::from_secs(6) {
        let event = stream.next().await;
        pages += u64::from(event.name == "ensemble");
    }
    // The first one, and a few for figures that settle after the start.
    assert!((1..=12).contains(&pages), "{pages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_topics_and_others_than_viewers_are_refused() {
    let mut ensemble = Ensemble::prepare(1, "admin.viewers=sasl:ann");
    ensemble.start_member(1).await;
    let admin = ensemble.admin(1);
    assert_eq!(get(admin, "events?topics=ensemble").await.0, 401);
    assert_eq!(get_as(admin, "events?topics=ensemble", Some("digest bob:secret")).await.0, 403);
    let server = Ensemble::start_standalone().await;
    for topics in ["", "nothing", "ensemble,nothing"] {
        let (status, error) = get(server.admin(1), &format!("events?topics={topics}")).await;
        assert_eq!((status, error["code"].as_str()), (400, Some("BAD_REQUEST")), "{topics}");
        assert!(error["sentence"].as_str().unwrap().contains("ensemble, elections"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_too_many_is_refused_while_all_are_read() {
    let server = Ensemble::start_standalone().await;
    let admin = server.admin(1);
    let mut streams = Vec::new();
    for host in 1..=4 {
        for _ in 0..16 {
            streams.push(Stream::open_from(host, admin, "ensemble").await);
        }
        // One address has its share, whoever else is there.
        let refused = Stream::open_from(host, admin, "ensemble").await;
        assert_eq!(refused.head[0], "http/1.1 429 too many requests", "{host}");
    }
    assert!(streams.iter().all(|stream| stream.head[0] == "http/1.1 200 ok"));
    let refused = Stream::open_from(9, admin, "ensemble").await;
    assert_eq!(refused.head[0], "http/1.1 429 too many requests");
    streams.pop();
    let begun = Instant::now();
    // The server notices that one is gone when it sends the next beat.
    while Stream::open_from(9, admin, "ensemble").await.head[0] != "http/1.1 200 ok" {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
