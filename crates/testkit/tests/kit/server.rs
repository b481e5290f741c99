//! One server and its faults.

use crate::client::{Client, Frame};
use ostler_testkit::{Durability, SessionId, TestOptions, TestServer, TestkitError};
use std::{io::ErrorKind, net::TcpStream, time::Duration};

#[tokio::test]
async fn a_server_starts_and_removes_its_folder_when_dropped() {
    let server = TestServer::start().await.unwrap();
    let (address, dir) = (server.address(), server.data_dir().to_path_buf());
    let mut client = Client::open(address).await.unwrap();
    assert_eq!(client.create("/a").await.unwrap(), 0);
    assert!(dir.join("version-2").exists());
    drop(server);
    assert!(client.read_end().await);
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(!dir.parent().unwrap().exists());
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    let mut server = TestServer::start().await.unwrap();
    let address = server.address();
    for round in 0..5 {
        let mut client = Client::open(address).await.unwrap();
        for at in 0..round * 20 {
            assert!(client.exists(&format!("/znode-{at}"), false).await.unwrap(), "round {round}, {at}");
        }
        for at in round * 20..(round + 1) * 20 {
            client.send_create(&format!("/znode-{at}"), false).await.unwrap();
        }
        for at in 0..20 {
            assert!(matches!(client.next().await.unwrap(), Frame::Reply { error: 0, .. }), "{at}");
        }
        server.kill().await;
        assert!(!server.is_up() && client.read_end().await);
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert!(matches!(server.counts(), Err(TestkitError::Down)));
        server.restart().await.unwrap();
        assert_eq!(server.address(), address);
    }
}

#[tokio::test]
async fn a_killed_server_neither_answers_nor_writes() {
    let mut server = TestServer::start().await.unwrap();
    let mut client = Client::open(server.address()).await.unwrap();
    for at in 0..300 {
        client.send_create(&format!("/znode-{at}"), false).await.unwrap();
    }
    server.kill().await;
    let files = || {
        let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(server.data_dir().join("version-2"))
            .unwrap()
            .map(|file| file.unwrap())
            .map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap()))
            .collect();
        all.sort();
        all
    };
    let before = files();
    let mut answered = 0;
    while let Ok(Frame::Reply { error: 0, .. }) = client.next().await {
        answered += 1;
    }
    assert!(files() == before);
    server.restart().await.unwrap();
    let mut client = Client::open(server.address()).await.unwrap();
    let mut there = 0;
    while client.exists(&format!("/znode-{there}"), false).await.unwrap() {
        there += 1;
    }
    assert!(there >= answered, "{answered} answered, {there} there");
    for at in there..300 {
        assert!(!client.exists(&format!("/znode-{at}"), false).await.unwrap(), "a hole at {there}");
    }
}

#[tokio::test]
async fn a_session_outlives_a_kill_and_a_stop() {
    let mut server = TestServer::start().await.unwrap();
    let mut client = Client::open(server.address()).await.unwrap();
    assert_eq!(client.create_ephemeral("/here").await.unwrap(), 0);
    for kill in [true, false] {
        if kill {
            server.kill().await;
        } else {
            server.stop().await.unwrap();
        }
        server.restart().await.unwrap();
        let session = client.session;
        client = Client::reopen(server.address(), &client).await.unwrap();
        assert_eq!(client.session, session);
        assert!(client.exists("/here", false).await.unwrap());
    }
}

#[tokio::test]
async fn an_expired_session_is_reported_to_its_client_at_the_reconnect() {
    let server = TestServer::start().await.unwrap();
    let mut client = Client::open(server.address()).await.unwrap();
    let mut other = Client::open(server.address()).await.unwrap();
    assert_eq!(client.create_ephemeral("/mine").await.unwrap(), 0);
    assert!(other.exists("/mine", true).await.unwrap());
    assert!(server.sessions().unwrap().contains(&client.session));

    server.expire(client.session).await.unwrap();
    assert_eq!(other.next().await.unwrap(), Frame::Event { path: "/mine".into() });
    assert!(!other.exists("/mine", false).await.unwrap());
    assert!(client.read_end().await);
    assert_eq!(server.sessions().unwrap(), [other.session]);
    let again = Client::reopen(server.address(), &client).await.unwrap();
    assert_eq!((again.timeout_ms, again.session.0), (0, 0), "the handshake says that its session is gone");
    let gone = server.expire(client.session).await;
    assert!(matches!(gone, Err(TestkitError::NoSession(id)) if id == client.session));
}

#[tokio::test]
async fn connections_are_cut_and_sessions_live_on() {
    let server = TestServer::start().await.unwrap();
    let mut a = Client::open(server.address()).await.unwrap();
    let mut b = Client::open(server.address()).await.unwrap();
    assert_eq!(a.create_ephemeral("/a").await.unwrap(), 0);
    assert_eq!(server.cut_session(a.session).unwrap(), 1);
    assert!(a.read_end().await);
    assert!(b.exists("/a", false).await.unwrap(), "the other one goes on");
    let session = a.session;
    a = Client::reopen(server.address(), &a).await.unwrap();
    assert_eq!(a.session, session);
    assert!(a.exists("/a", true).await.unwrap());
    server.until(|counts| counts.connections == 2).await.unwrap();
    assert_eq!(server.cut_connections().unwrap(), 2);
    assert!(a.read_end().await && b.read_end().await);
    server.until(|counts| counts.connections == 0).await.unwrap();
    let counts = server.counts().unwrap();
    assert_eq!((counts.sessions, counts.ephemerals, counts.watches), (2, 1, 0));
}

#[tokio::test]
async fn counts_show_leaked_watches_sessions_and_ephemerals() {
    let server = TestServer::start().await.unwrap();
    let empty = server.counts().unwrap();
    assert_eq!((empty.connections, empty.sessions, empty.watches, empty.ephemerals), (0, 0, 0, 0));
    let mut client = Client::open(server.address()).await.unwrap();
    client.create_ephemeral("/a").await.unwrap();
    client.exists("/a", true).await.unwrap();
    client.exists("/b", true).await.unwrap();
    let counts = server.counts().unwrap();
    assert_eq!((counts.connections, counts.sessions, counts.watches, counts.ephemerals), (1, 1, 2, 1));
    assert_eq!(counts.requests - empty.requests, 4, "the handshake, create, and exists twice");
    client.create("/b").await.unwrap();
    assert_eq!(server.counts().unwrap().events, 1);
    assert_eq!(server.connections().unwrap()[0].session, Some(client.session));
    drop(client);
    server.until(|counts| counts.connections == 0 && counts.watches == 0).await.unwrap();
}

#[tokio::test]
async fn a_wait_on_a_server_that_ends_fails() {
    let mut server = TestServer::start().await.unwrap();
    let never = async { server.until(|counts| counts.znodes > 1_000_000).await };
    assert!(tokio::time::timeout(Duration::from_millis(20), never).await.is_err());
    server.kill().await;
    assert!(matches!(server.until(|_| true).await, Err(TestkitError::Down)));
}

#[tokio::test]
async fn a_paused_server_does_nothing_until_resumed() {
    let mut server = TestServer::start().await.unwrap();
    let mut client = Client::open(server.address()).await.unwrap();
    server.pause().await.unwrap();
    assert!(server.is_up() && server.is_paused());
    let before = server.counts().unwrap();
    let xid = client.send_create("/a", false).await.unwrap();
    // The system accepts the connection, but the server sends nothing.
    let address = server.address();
    let waiting = tokio::spawn(async move { Client::open(address).await });
    let answer = tokio::time::timeout(Duration::from_millis(100), client.reply_to(xid)).await;
    assert!(answer.is_err() && !waiting.is_finished());
    assert_eq!(server.counts().unwrap(), before);
    server.resume();
    assert_eq!(client.reply_to(xid).await.unwrap(), 0);
    assert!(waiting.await.unwrap().unwrap().exists("/a", false).await.unwrap());
}

#[tokio::test]
async fn a_session_expires_by_its_timeout_but_not_while_its_server_is_paused() {
    let options = TestOptions::new().tick(Duration::from_millis(50));
    let mut server = TestServer::start_with(options).await.unwrap();
    let client = Client::connect(server.address(), SessionId(0), [0; 16], 1).await.unwrap();
    assert_eq!(client.timeout_ms, 50, "the shortest is a tick");
    server.until(|counts| counts.sessions == 0).await.unwrap();
    // On a busy machine a session may expire before the pause.
    let mut tries = 0;
    let client = loop {
        let client = Client::connect(server.address(), SessionId(0), [0; 16], 600).await.unwrap();
        server.pause().await.unwrap();
        if server.sessions().unwrap() == [client.session] {
            break client;
        }
        tries += 1;
        assert!(tries < 10, "no session lives until the pause");
        server.resume();
    };
    let slept = tokio::time::timeout(Duration::from_millis(800), server.until(|counts| counts.sessions == 0));
    assert!(slept.await.is_err());
    assert_eq!(server.sessions().unwrap(), [client.session]);
    server.resume();
    server.until(|counts| counts.sessions == 0).await.unwrap();
    assert_eq!(server.sessions().unwrap(), []);
}

#[tokio::test]
async fn settings_are_lines_of_a_zoo_cfg() {
    let options = TestOptions::new()
        .durability(Durability::Machine)
        .session_timeouts(Duration::from_secs(7), Duration::from_secs(8))
        .setting("maxClientCnxns", "1");
    let server = TestServer::start_with(options).await.unwrap();
    let mut client = Client::connect(server.address(), SessionId(0), [0; 16], 1).await.unwrap();
    assert_eq!(client.timeout_ms, 7000);
    assert_eq!(client.create("/a").await.unwrap(), 0);
    assert!(Client::open(server.address()).await.is_err(), "a second one");
    let wrong = TestServer::start_with(TestOptions::new().setting("tickTime", "soon")).await;
    let said = wrong.unwrap_err().to_string();
    assert!(said.contains("tickTime") && said.contains("zoo.cfg"), "{said}");
}

#[tokio::test]
async fn sequential_children_start_at_the_set_number_and_end_at_the_largest() {
    let mut server = TestServer::start().await.unwrap();
    let mut client = Client::open(server.address()).await.unwrap();
    client.create("/a").await.unwrap();
    server.restart_with_next_sequence("/a", i32::MAX - 1).await.unwrap();
    let mut client = Client::open(server.address()).await.unwrap();
    assert!(!client.exists("/a/counted", false).await.unwrap());
    for (name, number) in [("/a/x-", "2147483646"), ("/a/x-", "2147483647"), ("/a/y-", "2147483647")] {
        client.create_sequential(name).await.unwrap();
        assert!(client.exists(&format!("{name}{number}"), false).await.unwrap(), "{name}{number}");
    }
    let taken = client.create_sequential("/a/x-").await.unwrap();
    assert_eq!(taken, -110, "it stays there");
}
