//! Four-letter words at the client port.

use crate::{
    client::{Client, create_as, op, path_watch, read_to_end, socket, write_if_open},
    neighbour::Neighbour,
    server::TestServer,
};
use ostler_server::admin::four_letter::{Whitelist, Word};
use std::{io::Write, net::SocketAddr, thread, time::Duration};

fn send_word(server: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut stream = socket(server);
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            // With the pause the pieces arrive in separate segments.
            thread::sleep(Duration::from_millis(50));
        }
        stream.write_all(piece).unwrap();
    }
    String::from_utf8(read_to_end(&mut stream)).unwrap()
}

#[test]
fn the_default_list_has_srvr_only_and_others_are_refused_by_name() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for word in Word::ALL.map(Word::name) {
        let text = send_word(server.address, &[word.as_bytes()]);
        if word == "srvr" {
            assert!(text.starts_with("Zookeeper version: ") && text.contains("Mode: standalone"), "{text}");
        } else {
            assert_eq!(text, format!("{word} is not executed because it is not in the whitelist.\n"));
        }
    }
    neighbour.content();
}

#[test]
fn every_word_answers_and_closes() {
    let all = |config: &mut ostler_server::config::ServerConfig| {
        config.four_letter_whitelist = Whitelist::new(Some("*"), false);
    };
    let server = TestServer::start_with(all);
    let neighbour = Neighbour::of(server.address);
    for word in Word::ALL {
        let argument = vec![0; word.argument_bytes()];
        let text = send_word(server.address, &[&[word.name().as_bytes(), &argument].concat()]);
        // A new server has no digests and no watches to show.
        let may_be_empty = matches!(word, Word::Hash | Word::Wchc | Word::Wchp);
        assert!(!text.is_empty() || may_be_empty, "{}", word.name());
    }
    assert_eq!(send_word(server.address, &[b"ruok"]), "imok");
    assert_eq!(
        send_word(server.address, &[b"stmk"]),
        send_word(server.address, &[b"gtmk"]),
        "without a new mask"
    );
    neighbour.content();
}

#[test]
fn a_word_is_answered_in_two_segments_and_with_bytes_behind_it() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for cut in 1..4 {
        let (head, tail) = b"srvr".split_at(cut);
        assert!(send_word(server.address, &[head, tail]).contains("Mode: standalone"), "cut at {cut}");
    }
    for more in [&b"srvr\n"[..], b"srvr\r\n", b"srvrsrvrsrvr", &[b"srvr", &[7; 9000][..]].concat()] {
        assert!(send_word(server.address, &[more]).contains("Mode: standalone"));
    }
    neighbour.content();
}

#[test]
fn text_that_is_no_word_closes_the_connection() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for text in ["SRVR", "abcd", "GET / HTTP/1.1\r\n\r\n", "ruo\0", "\u{16}\u{3}\u{1}\u{2}"] {
        let mut stream = socket(server.address);
        write_if_open(&mut stream, text.as_bytes());
        assert_eq!(read_to_end(&mut stream), b"", "{text:?}");
    }
    let mut stream = socket(server.address);
    stream.write_all(&[0xff, 0xf4, 0xff, 0xfd]).unwrap();
    assert_eq!(read_to_end(&mut stream), b"", "a telnet client's interrupt");
    neighbour.content();
}

#[test]
fn a_word_within_a_session_is_read_as_a_length() {
    let server = TestServer::start();
    let mut client = Client::open(server.address);
    client.stream.write_all(b"srvr").unwrap();
    assert_eq!(client.reply(), None);
}

fn start_with_all_words() -> TestServer {
    TestServer::start_with(|config| config.four_letter_whitelist = Whitelist::new(Some("*"), false))
}

/// The reports have more entries than are gathered at a time.
#[test]
fn long_reports_are_complete() {
    let server = start_with_all_words();
    let mut clients: Vec<Client> = (0..3).map(|_| Client::open(server.address)).collect();
    let counts = [1300, 500, 3];
    for (of, (client, count)) in clients.iter_mut().zip(counts).enumerate() {
        for at in 0..count {
            client.ask(op::EXISTS, &path_watch(&format!("/watched/{of}-{at:04}"), true));
        }
    }
    let sessions: Vec<String> =
        clients.iter().map(|client| format!("0x{:x}", client.granted.session.0)).collect();
    let by_path = send_word(server.address, &[b"wchp"]);
    let expected: String = counts
        .iter()
        .zip(&sessions)
        .enumerate()
        .flat_map(|(of, (count, session))| {
            (0..*count).map(move |at| format!("/watched/{of}-{at:04}\n\t{session}\n"))
        })
        .collect();
    assert!(by_path == expected + "\n", "{} bytes", by_path.len());
    let by_session = send_word(server.address, &[b"wchc"]);
    for (session, count) in sessions.iter().zip(counts) {
        let own = by_session.split(&format!("{session}\n")).nth(1).unwrap();
        assert_eq!(own.lines().take_while(|line| line.starts_with("\t/watched/")).count(), count);
    }
    assert_eq!(
        send_word(server.address, &[b"wchs"]),
        "3 connections watching 1803 paths\nTotal watches:1803\n"
    );
    for at in 0..1100 {
        assert_eq!(clients[0].ask(op::CREATE, &create_as(&format!("/ephemeral-{at}"), b"", 1)).error, 0);
    }
    let dump = send_word(server.address, &[b"dump"]);
    assert_eq!(dump.lines().filter(|line| line.starts_with("\t/ephemeral-")).count(), 1100);
    assert!(dump.contains("Sessions with Ephemerals (1):\n"), "{dump}");
}

#[test]
fn dump_shows_when_connections_expire() {
    let server = start_with_all_words();
    let client = Client::open(server.address);
    let text = send_word(server.address, &[b"dump"]);
    let (_, connections) = text.split_once("Connections Sets (2)/(2):\n1 expire at ").expect(&text);
    let (address, session) = (client.stream.local_addr().unwrap(), client.granted.session.0);
    assert!(connections.ends_with(&format!(":\n\tip: /{address} sessionId: 0x{session:x}\n")), "{text}");
    assert!(connections.contains(" sessionId: 0x0\n1 expire at "), "the one that asks: {text}");
}

#[test]
fn mntr_shows_the_quotas_of_each_namespace() {
    let server = start_with_all_words();
    let mut client = Client::open(server.address);
    for (path, data) in [
        ("/a", ""),
        ("/a/b", "12345"),
        ("/c", ""),
        ("/zookeeper/quota/a", ""),
        ("/zookeeper/quota/a/zookeeper_limits", "count=5,bytes=100=;byteHardLimit=70"),
        ("/zookeeper/quota/a/zookeeper_stats", "count=2,bytes=5"),
        ("/zookeeper/quota/a/b", ""),
        ("/zookeeper/quota/a/b/zookeeper_limits", "count=3,bytes=-1"),
        ("/zookeeper/quota/c", ""),
    ] {
        client.create(path, data.as_bytes());
    }
    // More znodes than are visited at a time, none of which has a quota.
    (0..700).for_each(|at| client.create(&format!("/zookeeper/quota/c/{at}"), b"count=1,bytes=1"));
    let text = send_word(server.address, &[b"mntr"]);
    let quotas: Vec<&str> = text.lines().filter(|line| line.contains("_quota_")).collect();
    assert_eq!(
        quotas,
        [
            "zk_a_quota_bytes_limit_per_namespace\t69",
            "zk_a_quota_count_usage_per_namespace\t2",
            "zk_a_quota_count_limit_per_namespace\t8",
            "zk_a_quota_bytes_usage_per_namespace\t5",
        ]
    );
}

fn value(text: &str, key: &str) -> u64 {
    let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('\t'));
    found.unwrap_or_else(|| panic!("no {key} in {text}")).parse().unwrap()
}

/// As in Java: the word itself counts, and `srst` also resets the counts of the start.
#[test]
fn mntr_counts_packets_and_srst_resets_the_counts() {
    let server = start_with_all_words();
    let mut client = Client::open(server.address);
    let before = send_word(server.address, &[b"mntr"]);
    client.create("/a", b"12345");
    let text = send_word(server.address, &[b"mntr"]);
    let more = |key: &str| value(&text, key) - value(&before, key);
    // The first answer is sent after its own counts were taken, in parts of 8192 bytes.
    let parts = before.len().div_ceil(8192) as u64;
    assert_eq!((more("zk_packets_received"), more("zk_packets_sent")), (2, 1 + parts));
    assert_eq!(more("zk_response_bytes"), 16 + 4 + 2);
    assert_eq!(
        (value(&text, "zk_last_client_response_size"), value(&text, "zk_cnt_a_write_per_namespace")),
        (22, 1)
    );
    for key in ["sync_processor_queue_time_ms", "sync_process_time", "sync_processor_queue_and_flush_time_ms"]
    {
        assert_eq!(more(&format!("zk_cnt_{key}")), 1, "{key}");
    }
    for key in ["dbinittime", "startup_snap_load_time"] {
        assert_eq!(value(&text, &format!("zk_cnt_{key}")), 1, "{key}");
    }
    send_word(server.address, &[b"srst"]);
    let text = send_word(server.address, &[b"mntr"]);
    for key in ["zk_cnt_dbinittime", "zk_response_bytes", "zk_cnt_sync_process_time"] {
        assert_eq!(value(&text, key), 0, "{key}");
    }
    assert_eq!((value(&text, "zk_packets_received"), value(&text, "zk_packets_sent")), (1, 1));
    assert!(!text.contains("a_write_per_namespace"), "{text}");
}
