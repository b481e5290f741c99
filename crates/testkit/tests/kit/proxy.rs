//! Cuts and holds at a chosen frame.

use crate::client::{Client, Frame};
use ostler_proto::op::Op;
use ostler_testkit::{CutPoint, Direction, FrameProxy, SeenFrame, TestServer};
use std::{io, net::SocketAddr, time::Duration};

/// The replies and events that a client has received before its connection was cut.
struct Received {
    answers: usize,
    events: usize,
}

/// Opens a session, watches /2, and creates /1 to /3, one after the other or all at once.
async fn exchange(address: SocketAddr, pipelined: bool) -> (Received, io::Result<()>) {
    let mut heard = Received { answers: 0, events: 0 };
    let done = attempt(address, pipelined, &mut heard).await;
    (heard, done)
}

async fn attempt(address: SocketAddr, pipelined: bool, heard: &mut Received) -> io::Result<()> {
    let mut client = Client::open(address).await?;
    client.exists("/2", true).await?;
    for at in 1..=3 {
        client.send_create(&format!("/{at}"), false).await?;
        if !pipelined {
            hear(&mut client, heard, at).await?;
        }
    }
    hear(&mut client, heard, 3).await?;
    client.ping().await
}

async fn hear(client: &mut Client, heard: &mut Received, wanted: usize) -> io::Result<()> {
    while heard.answers < wanted {
        match client.next().await? {
            Frame::Reply { error, .. } => {
                assert_eq!(error, 0);
                heard.answers += 1;
            }
            Frame::Event { path } => {
                assert_eq!(path, "/2");
                heard.events += 1;
            }
        }
    }
    Ok(())
}

async fn created(server: &TestServer) -> usize {
    let mut client = Client::open(server.address()).await.unwrap();
    let mut there = Vec::new();
    for at in 1..=3 {
        there.push(client.exists(&format!("/{at}"), false).await.unwrap());
    }
    assert!(there.is_sorted_by(|a, b| a >= b), "{there:?}");
    there.iter().filter(|there| **there).count()
}

#[tokio::test]
async fn an_exchange_is_seen_frame_by_frame() {
    let server = TestServer::start().await.unwrap();
    let proxy = FrameProxy::start(server.address()).await.unwrap();
    let (heard, done) = exchange(proxy.address(), false).await;
    done.unwrap();
    assert_eq!((heard.answers, heard.events), (3, 1));
    assert_eq!((proxy.requests(), proxy.events()), (5, 1), "the ping has no number");
    let request = |number, op| SeenFrame::Request { number, op: Some(op) };
    let expected = [
        SeenFrame::Handshake { number: 1, server: 0 },
        request(2, Op::Exists),
        request(3, Op::Create),
        request(4, Op::Create),
        SeenFrame::Event { number: 1 },
        request(5, Op::Create),
    ];
    assert_eq!(proxy.seen(), expected);
}

/// At each cut exactly the messages before it have arrived, and exactly the requests before it are done.
#[tokio::test]
async fn every_cut_splits_the_exchange_at_its_point() {
    for pipelined in [false, true] {
        for point in CutPoint::all(5, 1) {
            let server = TestServer::start().await.unwrap();
            let proxy = FrameProxy::start(server.address()).await.unwrap();
            proxy.cut_at(point);
            let (heard, done) = exchange(proxy.address(), pipelined).await;
            assert_eq!(proxy.cuts(), [point]);
            assert!(done.is_err(), "{point}: the connection broke");
            // Requests 3, 4 and 5 are the creates.
            let (is_done, is_heard) = match point {
                CutPoint::BeforeRequest(n) => (n.saturating_sub(3), n.saturating_sub(3)),
                CutPoint::BeforeReply(n) => (n.saturating_sub(2), n.saturating_sub(3)),
                CutPoint::AfterReply(n) => (n.saturating_sub(2), n.saturating_sub(2)),
                // The event comes before the reply to the second create. By then the third create may be at the server.
                CutPoint::BeforeEvent(_) => (if pipelined { 3 } else { 2 }, 1),
            };
            let counted = created(&server).await as u64;
            if matches!(point, CutPoint::BeforeEvent(_)) && pipelined {
                assert!((2..=3).contains(&counted), "{point}: {counted}");
            } else {
                assert_eq!(counted, is_done, "{point}, pipelined: {pipelined}");
            }
            assert_eq!(heard.answers as u64, is_heard, "{point}, pipelined: {pipelined}");
        }
    }
}

#[tokio::test]
async fn a_handshake_with_a_lost_reply_leaves_a_session() {
    let server = TestServer::start().await.unwrap();
    let proxy = FrameProxy::start(server.address()).await.unwrap();
    proxy.cut_at(CutPoint::BeforeReply(1));
    assert!(Client::open(proxy.address()).await.is_err());
    assert_eq!(server.counts().unwrap().sessions, 1);
    let mut second = Client::open(proxy.address()).await.unwrap();
    assert_eq!(second.create("/a").await.unwrap(), 0);
}

#[tokio::test]
async fn a_frame_is_held_until_the_test_decides() {
    let server = TestServer::start().await.unwrap();
    let proxy = FrameProxy::start(server.address()).await.unwrap();
    let mut client = Client::open(proxy.address()).await.unwrap();
    let mut other = Client::open(server.address()).await.unwrap();

    let mut held = proxy.hold_at(CutPoint::BeforeRequest(2));
    let xid = client.send_create("/a", false).await.unwrap();
    held.reached().await.unwrap();
    assert!(!other.exists("/a", false).await.unwrap());
    held.pass();
    assert_eq!(client.reply_to(xid).await.unwrap(), 0);

    let mut held = proxy.hold_at(CutPoint::BeforeReply(3));
    client.send_create("/b", false).await.unwrap();
    held.reached().await.unwrap();
    assert!(other.exists("/b", false).await.unwrap());
    held.cut();
    assert!(client.read_end().await);

    // If the `HeldFrame` is dropped, the frame passes.
    drop(proxy.hold_at(CutPoint::BeforeRequest(5)));
    let mut client = Client::reopen(proxy.address(), &client).await.unwrap();
    assert_eq!(client.create("/c").await.unwrap(), 0);
    assert_eq!(proxy.requests(), 5);
}

/// The frame waits for the replies to requests before it, and its connection ends meanwhile.
#[tokio::test]
async fn a_hold_of_a_frame_fails_if_its_connection_ends_first() {
    let server = TestServer::start().await.unwrap();
    let proxy = FrameProxy::start(server.address()).await.unwrap();
    let mut client = Client::open(proxy.address()).await.unwrap();
    let mut held = proxy.hold_at(CutPoint::BeforeRequest(3));
    proxy.silence(Direction::ToClient);
    client.send_create("/a", false).await.unwrap();
    client.send_create("/b", false).await.unwrap();
    while proxy.requests() < 3 {
        tokio::task::yield_now().await;
    }
    proxy.cut_now();
    held.reached().await.unwrap_err();
}

/// The server has the request, and the connection ends before the reply has come.
#[tokio::test]
async fn a_hold_of_a_reply_fails_if_the_reply_never_comes() {
    let server = TestServer::start().await.unwrap();
    let proxy = FrameProxy::start(server.address()).await.unwrap();
    let mut client = Client::open(proxy.address()).await.unwrap();
    let (mut before, mut after) =
        (proxy.hold_at(CutPoint::BeforeReply(2)), proxy.hold_at(CutPoint::AfterReply(2)));
    let mut next = proxy.hold_at(CutPoint::BeforeReply(4));
    proxy.silence(Direction::ToClient);
    client.send_create("/a", false).await.unwrap();
    while proxy.requests() < 2 {
        tokio::task::yield_now().await;
    }
    proxy.cut_now();
    before.reached().await.unwrap_err();
    after.reached().await.unwrap_err();

    // Plans for later connections stay.
    proxy.heal();
    let mut client = Client::reopen(proxy.address(), &client).await.unwrap();
    client.send_create("/b", false).await.unwrap();
    next.reached().await.unwrap();
}

#[tokio::test]
async fn a_proxy_cuts_blocks_and_heals() {
    let mut server = TestServer::start().await.unwrap();
    let proxy = FrameProxy::start(server.address()).await.unwrap();
    let mut client = Client::open(proxy.address()).await.unwrap();
    proxy.cut_now();
    assert!(client.read_end().await);
    let mut client = Client::reopen(proxy.address(), &client).await.unwrap();
    proxy.block();
    assert!(client.read_end().await);
    assert!(Client::reopen(proxy.address(), &client).await.is_err());
    proxy.heal();
    let mut client = Client::reopen(proxy.address(), &client).await.unwrap();
    assert_eq!(client.create("/a").await.unwrap(), 0);
    // The proxy passes on the end of the server, and connects again after its restart.
    server.kill().await;
    assert!(client.read_end().await);
    assert!(Client::reopen(proxy.address(), &client).await.is_err());
    server.restart().await.unwrap();
    let mut client = Client::reopen(proxy.address(), &client).await.unwrap();
    assert!(client.exists("/a", false).await.unwrap());
}

#[tokio::test]
async fn a_silent_network_loses_nothing_and_closes_nothing() {
    let server = TestServer::start().await.unwrap();
    let proxy = FrameProxy::start(server.address()).await.unwrap();
    let mut client = Client::open(proxy.address()).await.unwrap();
    let mut other = Client::open(server.address()).await.unwrap();
    proxy.silence(Direction::ToClient);
    let xid = client.send_create("/a", false).await.unwrap();
    server.until(|counts| counts.znodes == 5).await.unwrap();
    assert!(other.exists("/a", false).await.unwrap(), "requests still pass");
    let answer = tokio::time::timeout(Duration::from_millis(50), client.reply_to(xid));
    assert!(answer.await.is_err(), "answers do not");
    proxy.heal();
    assert_eq!(client.reply_to(xid).await.unwrap(), 0);

    proxy.delay(Direction::ToServer, Duration::from_millis(60));
    let begun = std::time::Instant::now();
    assert!(client.exists("/a", false).await.unwrap());
    assert!(begun.elapsed() >= Duration::from_millis(60));
}
