//! Each word against what a Java 3.9.5 standalone server printed (folder `golden`): two sessions with watches
//! and ephemerals, a connection without a session, a quota on /app, 311 writes.

use std::collections::HashMap;

use super::*;
use ostler_server_core::stats::Buckets;

const A: i64 = 0x100000e4dd00000;
const B: i64 = 0x100000e4dd00001;

macro_rules! golden {
    ($name:literal) => {
        include_str!(concat!("golden/", $name, ".txt"))
    };
}

fn local(port: u16) -> std::net::SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// A connection without a session: `interest_ops` and packets received.
fn bare(port: u16, interest_ops: u8, received: u64) -> Connection {
    Connection {
        remote: local(port),
        has_tls: false,
        interest_ops,
        queued: 0,
        received,
        sent: 0,
        session: None,
    }
}

fn connection_of_a() -> Connection {
    let session = ConnectionSession {
        session_id: A,
        last_operation: "GETD",
        established_ms: 1795304148294,
        timeout_ms: 10000,
        last_cxid: 0x138,
        last_zxid: 0x137,
        last_response_ms: 939665,
        last_latency_ms: 1,
        min_latency_ms: 0,
        avg_latency_ms: 1,
        max_latency_ms: 23,
    };
    Connection { received: 313, sent: 314, session: Some(session), ..bare(33172, 1, 0) }
}

fn connection_of_b() -> Connection {
    let session = ConnectionSession {
        session_id: B,
        last_operation: "GETD",
        established_ms: 1795304148335,
        timeout_ms: 30000,
        last_cxid: 5,
        last_zxid: 0x137,
        last_response_ms: 939666,
        last_latency_ms: 0,
        min_latency_ms: 0,
        avg_latency_ms: 1,
        max_latency_ms: 3,
    };
    Connection { received: 6, sent: 7, session: Some(session), ..bare(33176, 1, 0) }
}

fn served() -> ServerView {
    ServerView {
        serving: true,
        version: "3.9.5-293c895a8d966a3ecb92872be4a1daf87d725da2, built on 2026-02-11 20:18 UTC".into(),
        latency: Latency { min_ms: 0, max_ms: 23, sum_ms: 392, count: 319 },
        packets_received: 337,
        packets_sent: 339,
        connections_alive: 4,
        zxid_last: 0x137,
        znode_count: 313,
        dirs: Dirs { data_dir_bytes: 67109358, log_dir_bytes: 67109358 },
        trace_mask: DEFAULT_TRACE_MASK,
        ..ServerView::default()
    }
}

#[track_caller]
fn check(word: Word, view: &ServerView, expected: &str) {
    assert_eq!(render(word, view), expected);
}

#[test]
fn words_of_one_line() {
    let view = served();
    check(Word::Ruok, &view, golden!("ruok"));
    check(Word::Isro, &view, golden!("isro"));
    check(Word::Gtmk, &view, golden!("gtmk"));
    check(Word::Crst, &view, golden!("crst"));
    check(Word::Srst, &view, golden!("srst"));
    check(Word::Dirs, &view, golden!("dirs"));
    check(Word::Stmk, &ServerView { trace_mask: 1234, ..view }, golden!("stmk"));
}

#[test]
fn srvr() {
    check(Word::Srvr, &served(), golden!("srvr"));
}

#[test]
fn stat() {
    let connections = vec![connection_of_b(), connection_of_a(), bare(33308, 0, 1), bare(33190, 1, 0)];
    let view = ServerView { packets_received: 338, packets_sent: 340, connections, ..served() };
    check(Word::Stat, &view, golden!("stat"));
}

#[test]
fn cons() {
    let connections = vec![connection_of_b(), connection_of_a(), bare(33190, 1, 0), bare(33216, 0, 1)];
    check(Word::Cons, &ServerView { connections, ..served() }, golden!("cons"));
}

#[test]
fn cons_after_crst() {
    let reset = |mut connection: Connection| {
        connection.received = 0;
        connection.sent = 0;
        if let Some(session) = &mut connection.session {
            session.last_operation = "NA";
            session.last_cxid = -1;
            session.last_zxid = -1;
            session.last_response_ms = 0;
            session.last_latency_ms = 0;
            session.avg_latency_ms = 0;
            session.max_latency_ms = 0;
        }
        connection
    };
    let connections =
        vec![bare(33346, 0, 1), reset(connection_of_b()), reset(connection_of_a()), bare(33190, 1, 0)];
    check(Word::Cons, &ServerView { connections, ..served() }, golden!("cons_after_crst"));
}

#[test]
fn conf() {
    let conf = Conf {
        client_port: 24100,
        secure_client_port: None,
        data_dir: "/var/lib/zookeeper/version-2".into(),
        data_log_dir: "/var/lib/zookeeper/version-2".into(),
        tick_time_ms: 2000,
        max_client_cnxns: 60,
        min_session_timeout_ms: 4000,
        max_session_timeout_ms: 40000,
        client_port_listen_backlog: -1,
        server_id: 0,
        ensemble: None,
    };
    check(Word::Conf, &ServerView { conf: conf.clone(), ..served() }, golden!("conf"));
    let of = ConfOfMember {
        init_limit: 10,
        sync_limit: 5,
        election_ports: vec![3888, 3889],
        quorum_ports: vec![2888],
        observer: true,
        membership: Some("server.1=zk1:2888:3888:observer\nversion=0".into()),
    };
    let alone = render(Word::Conf, &ServerView { conf: conf.clone(), ..served() });
    let member = render(Word::Conf, &ServerView { conf: Conf { ensemble: Some(of), ..conf }, ..served() });
    assert_eq!(
        member.strip_prefix(&alone).unwrap(),
        "initLimit=10\nsyncLimit=5\nelectionAlg=3\nelectionPort=3888|3889\nquorumPort=2888\npeerType=1\n\
         membership: \nserver.1=zk1:2888:3888:observer\nversion=0"
    );
}

#[test]
fn dump() {
    let (first, second) = (1_795_304_159_000, 1_795_304_179_000);
    let connection = |port, session_id| ConnectionId { remote: local(port), session_id };
    let view = ServerView {
        session_expiry: vec![
            TimeBucket { expires_at_wall_ms: first, members: vec![A] },
            TimeBucket { expires_at_wall_ms: second, members: vec![B] },
        ],
        ephemerals: vec![
            EphemeralsOfSession { session_id: A, paths: vec!["/app/f".into(), "/app/e".into()] },
            EphemeralsOfSession { session_id: B, paths: vec!["/app/b".into()] },
        ],
        connection_expiry: vec![
            TimeBucket {
                expires_at_wall_ms: first,
                members: vec![connection(33172, A), connection(33230, 0), connection(33190, 0)],
            },
            TimeBucket { expires_at_wall_ms: second, members: vec![connection(33176, B)] },
        ],
        ..served()
    };
    check(Word::Dump, &view, golden!("dump"));
}

#[test]
fn dump_of_an_idle_server() {
    let asking = ConnectionId { remote: local(33150), session_id: 0 };
    let bucket = TimeBucket { expires_at_wall_ms: 1_795_304_159_000, members: vec![asking] };
    check(Word::Dump, &ServerView { connection_expiry: vec![bucket], ..served() }, golden!("empty_dump"));
}

#[test]
fn watches() {
    let of = |session_id, paths: [&str; 2]| WatchesOfSession {
        session_id,
        paths: paths.map(String::from).to_vec(),
    };
    let watches = vec![of(B, ["/app", "/load/n001"]), of(A, ["/app", "/nope"])];
    let view = ServerView { watches, watch_summary: (2, 3, 4), ..served() };
    check(Word::Wchc, &view, golden!("wchc"));
    check(Word::Wchp, &view, golden!("wchp"));
    check(Word::Wchs, &view, golden!("wchs"));
    check(Word::Wchc, &served(), golden!("empty_wchc"));
    check(Word::Wchs, &served(), golden!("empty_wchs"));
}

#[test]
fn hash() {
    let digests = vec![
        ZxidDigest { zxid: 0x80, digest: 283422268538 },
        ZxidDigest { zxid: 0x100, digest: 564554175032 },
    ];
    check(Word::Hash, &ServerView { digests, ..served() }, golden!("hash"));
    let negative = vec![ZxidDigest { zxid: 0x180, digest: u64::MAX }];
    check(Word::Hash, &ServerView { digests: negative, ..served() }, "180: -1\n");
}

#[test]
fn envi() {
    let values: HashMap<&str, &str> =
        golden!("envi").lines().filter_map(|line| line.split_once('=')).collect();
    let environment = ENVIRONMENT_KEYS.map(|key| (key, values[key].to_string())).to_vec();
    check(Word::Envi, &ServerView { environment, ..served() }, golden!("envi"));
}

/// The golden numbers of the metrics are read back from the golden text, so this checks names, order and
/// layout; the means are computed anew.
#[test]
fn mntr() {
    let numbers: HashMap<&str, &str> =
        golden!("mntr").lines().filter_map(|line| line.split_once('\t')).collect();
    let number = |prefix: &str, name: &str| numbers[format!("zk_{prefix}{name}").as_str()].parse().unwrap();
    let metric = |name: &str, kind| {
        let summary = || Summary {
            min: number("min_", name),
            max: number("max_", name),
            count: number("cnt_", name),
            sum: number("sum_", name),
            median: 0,
        };
        let percentiles = || Percentiles {
            p50: number("p50_", name),
            p90: 0,
            p95: number("p95_", name),
            p99: number("p99_", name),
            p999: number("p999_", name),
        };
        match kind {
            MetricKind::Counter => MetricValue::Counter(number("", name)),
            MetricKind::Summary => MetricValue::Summary(summary()),
            MetricKind::AdvancedSummary => {
                MetricValue::AdvancedSummary(summary(), percentiles(), Buckets::default())
            }
        }
    };
    let member = |set, key: &str| NamespacedMetric {
        set,
        key: key.into(),
        value: metric(&format!("{key}_{set}"), MetricKind::Summary),
    };
    let (reads, writes) = ("read_per_namespace", "write_per_namespace");
    let quota = NamespaceQuota {
        namespace: "app".into(),
        count_limit: Some(10),
        bytes_limit: Some(-1),
        count_usage: Some(4),
        bytes_usage: Some(5),
    };
    let gauges = Gauges {
        uptime_ms: 2577,
        watch_count: 5,
        ephemerals_count: 3,
        approximate_data_size: 48051,
        global_sessions: 2,
        open_file_descriptor_count: 67,
        max_file_descriptor_count: 20000,
        client_response_sizes: MessageSizes { last: 93, min: 16, max: 93 },
        quotas: vec![quota],
        ..Gauges::default()
    };
    let metrics = Metrics {
        // Those that are zero are left out: they print all the same.
        values: METRICS
            .iter()
            .map(|&(name, kind)| (name, metric(name, kind)))
            .filter(|(_, value)| *value != MetricValue::Counter(0))
            .collect(),
        namespaced: vec![
            member(writes, "app"),
            member(writes, "load"),
            member(writes, "zookeeper"),
            member(reads, "app"),
            member(reads, "load"),
        ],
    };
    let view = ServerView { packets_received: 335, packets_sent: 335, gauges, metrics, ..served() };
    check(Word::Mntr, &view, golden!("mntr"));
}

#[test]
fn the_version_begins_with_the_zookeeper_version() {
    let version = full_version("2026-02-11 20:18 UTC");
    assert_eq!(version, format!("3.9.5-ostler-{}, built on 2026-02-11 20:18 UTC", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_a_tree_most_words_answer_that_nothing_is_served() {
    let view = ServerView { trace_mask: DEFAULT_TRACE_MASK, ..ServerView::default() };
    for word in Word::ALL {
        let expected = match word {
            Word::Ruok => "imok".to_string(),
            Word::Envi => "Environment:\n".to_string(),
            Word::Gtmk | Word::Stmk => "306".to_string(),
            Word::Isro => "null".to_string(),
            Word::Hash => NOT_SERVING.to_string(),
            // This word reports on the search for a leader.
            Word::Elec => serde_json::to_string(&view.elections).unwrap() + "\n",
            _ => format!("{NOT_SERVING}\n"),
        };
        check(word, &view, &expected);
    }
}

#[test]
fn a_leader_and_a_readonly_server_print_one_line_more() {
    let sizes = MessageSizes { last: 32, min: 32, max: 36 };
    let leader = ServerView { mode: Mode::Leader, proposal_sizes: sizes, ..served() };
    assert!(
        render(Word::Srvr, &leader)
            .ends_with("Mode: leader\nNode count: 313\nProposal sizes last/min/max: 32/32/36\n")
    );
    let readonly = ServerView { mode: Mode::ReadOnly, ..served() };
    assert!(
        render(Word::Srvr, &readonly)
            .contains("UTC\nREAD-ONLY mode; serving only read-only clients\nLatency")
    );
    check(Word::Isro, &readonly, "ro");
}

#[test]
fn dump_lists_local_sessions_apart_from_global_ones() {
    let dumped = |view: ServerView| {
        let text = render(Word::Dump, &view);
        let sessions = text.split("ephemeral nodes").next().unwrap();
        sessions.lines().filter(|line| !line.contains(" expire at ")).map(String::from).collect::<Vec<_>>()
    };
    let bucket = |id| TimeBucket { expires_at_wall_ms: 0, members: vec![id] };
    let leader = ServerView {
        serving: true,
        session_expiry: vec![bucket(0x10)],
        local_session_expiry: Some(vec![bucket(0x20)]),
        ..ServerView::default()
    };
    assert_eq!(
        dumped(leader.clone()),
        [
            "SessionTracker dump:",
            "Local Session Sets (1)/(1):",
            "\t0x20",
            "Global Session Sets (1)/(1):",
            "\t0x10"
        ]
    );
    let learner = ServerView { learnt_sessions: Some(vec![(0x10, 4000)]), ..leader };
    let of_learner = ["Local Session Sets (1)/(1):", "\t0x20", "Global Sessions(1):", "0x10\t4000ms"];
    assert_eq!(dumped(learner.clone())[1..], of_learner);
    assert_eq!(dumped(ServerView { local_session_expiry: None, ..learner })[1..], of_learner[2..]);
}
