//! States of made-up servers, and what is said of them.

use super::{findings::transactions_behind, *};
use ostler_proto::id::Zxid;
use std::collections::BTreeMap;

fn voters() -> BTreeMap<i64, String> {
    (1..=3).map(|id| (id, format!("h{id}:2888"))).collect()
}

fn server(id: i64, mode: &str) -> ServerState {
    ServerState {
        id,
        mode: mode.into(),
        serves: mode != "looking",
        stage: if mode == "looking" { "election" } else { "broadcast" }.into(),
        voters: voters(),
        ..ServerState::default()
    }
}

fn of(servers: Vec<ServerState>) -> Vec<Finding> {
    let observed = |state: ServerState| Observed {
        url: format!("http://h{}:8080", state.id),
        id: None,
        answer: Ok(state),
    };
    findings(&servers.into_iter().map(observed).collect::<Vec<_>>())
}

fn all_well() -> Vec<ServerState> {
    vec![server(1, "follower"), server(2, "leader"), server(3, "follower")]
}

#[track_caller]
fn only(servers: Vec<ServerState>, gravity: Gravity, part: &str) {
    let found = of(servers);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].gravity, gravity);
    assert!(found[0].text().contains(part), "{}", found[0].text());
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(of(all_well()), []);
    assert_eq!(
        of(vec![ServerState { serves: true, mode: "standalone".into(), ..ServerState::default() }]),
        []
    );
}

#[test]
fn a_lost_quorum_is_named_with_the_missing_voters() {
    let found = of(vec![server(1, "looking")]);
    assert!(
        found[0].text().contains("2 of 3 voters have to work together")
            && found[0].text().contains("2 (h2:2888), 3 (h3:2888)"),
        "{found:?}"
    );
    assert!(found.iter().any(|finding| finding.text().contains("looks for a leader")), "{found:?}");
}

#[test]
fn a_missing_voter_is_a_warning_as_long_as_there_is_a_quorum() {
    only(
        vec![server(1, "follower"), server(2, "leader")],
        Gravity::Warning,
        "if one more fails, nobody can write",
    );
}

#[test]
fn each_figure_out_of_bounds_is_a_finding() {
    for (figure, value, gravity, part) in [
        ("digest_mismatches_count", 1.0, Gravity::Grave, "tree to differ"),
        ("p99_sync_processor_queue_flush_time_ms", 500.0, Gravity::Warning, "disk of server 1 is slow"),
        ("snapshot_error_count", 2.0, Gravity::Warning, "could not write 2 snapshots"),
        ("connection_rejected", 3.0, Gravity::Warning, "refused 3 connections"),
        ("outstanding_requests", 5000.0, Gravity::Warning, "5000 requests under way"),
        ("max_client_response_size", 1_000_000.0, Gravity::Warning, "too long to be read"),
        ("open_file_descriptor_count", 100.0, Gravity::Warning, "files that it may open"),
    ] {
        let mut servers = all_well();
        servers[0].figures =
            BTreeMap::from([(figure.into(), value), ("max_file_descriptor_count".into(), 110.0)]);
        only(servers, gravity, part);
    }
}

#[test]
fn what_differs_between_servers_is_a_finding() {
    let changed = |change: fn(&mut ServerState)| {
        let mut servers = all_well();
        change(&mut servers[0]);
        servers
    };
    only(
        changed(|server| server.clock_off_ms = -60_000),
        Gravity::Warning,
        "differs from this machine's by -60.0 s",
    );
    let mut servers = all_well();
    (servers[0].version, servers[1].version) = ("x".into(), "y".into());
    only(servers, Gravity::Note, "different versions: x, y");
    only(
        changed(|server| server.paused_before_ms = Some(5000)),
        Gravity::Warning,
        "did not run for a while, last 5 s ago",
    );
    only(changed(|server| server.disk_stalled_before_ms = Some(5000)), Gravity::Warning, "stood still");
    only(changed(|server| server.expired = 4), Gravity::Note, "4 sessions expired");
    let mut servers = all_well();
    servers[1].zxid = Zxid(20_000);
    (servers[0].zxid, servers[2].zxid) = (Zxid(1), Zxid(20_000));
    only(servers, Gravity::Warning, "19999 transactions behind");
}

#[test]
fn trees_configurations_and_numbers_are_compared() {
    let digest = |value: &str| DigestAt { zxid: Zxid(128), value: value.into() };
    let mut servers = all_well();
    for (server, value) in servers.iter_mut().zip(["aa", "bb", "aa"]) {
        server.digests = vec![digest(value)];
    }
    only(servers, Gravity::Grave, "The trees of the servers differ: at zxid 0x80");
    let mut servers = all_well();
    for (server, version) in servers.iter_mut().zip(["0x0", "0x0", "0x100000003"]) {
        server.config_version = Some(version.into());
    }
    only(servers, Gravity::Warning, "different versions of the configuration: 0x0, 0x100000003");
    let mut servers = all_well();
    servers.push(server(1, "follower"));
    only(servers, Gravity::Grave, "Two servers say that they are server 1");
    let mut servers = all_well();
    servers[0].disk = Some(DiskSpace { free_bytes: 5, total_bytes: 100 });
    only(servers, Gravity::Warning, "The disk of server 1 is nearly full: 5% are free.");
    let mut servers = all_well();
    servers[0].disk = Some(DiskSpace { free_bytes: 50 << 30, total_bytes: 1_000 << 30 });
    assert_eq!(of(servers), [], "there is room for long");
    let mut servers = all_well();
    for (server, kind) in servers.iter_mut().zip([ServerKind::Java, ServerKind::Ostler, ServerKind::Ostler]) {
        (server.kind, server.version) = (kind, format!("{kind:?}"));
    }
    only(servers, Gravity::Note, "Ostler and ZooKeeper in Java work together");
}

fn verdict_of(servers: Vec<ServerState>) -> (Level, String, Option<String>) {
    let observed = |state: ServerState| Observed {
        url: format!("server {}", state.id),
        id: Some(state.id),
        answer: Ok(state),
    };
    let all: Vec<Observed> = servers.into_iter().map(observed).collect();
    let Verdict { level, sentence, way_out } = verdict(&all, &findings(&all));
    (level, sentence, way_out)
}

#[test]
fn the_verdict_is_one_sentence_with_a_way_out() {
    assert_eq!(verdict_of(all_well()), (Level::Ok, "Serving. 3 of 3 voters; one may fail.".into(), None));
    let (level, sentence, way_out) = verdict_of(vec![server(1, "follower"), server(2, "leader")]);
    assert_eq!(
        (level, &*sentence),
        (Level::Warning, "Serving. 2 of 3 voters; if one fails, nobody can write.")
    );
    assert!(way_out.unwrap().starts_with("Start server 3, or find out"));
    let (level, sentence, way_out) = verdict_of(vec![server(1, "looking")]);
    let expected = "Not serving: no server leads. 0 of 3 voters work together, and 2 are needed.";
    assert_eq!((level, &*sentence), (Level::Critical, expected));
    assert!(way_out.unwrap().starts_with("Start servers 1, 2 and 3; if they run"));
    let alone = ServerState { serves: true, mode: "standalone".into(), ..ServerState::default() };
    let (level, sentence, way_out) = verdict_of(vec![alone]);
    assert_eq!(level, Level::Ok);
    assert!(sentence.starts_with("Serving. One server without an ensemble") && way_out.is_some());
    assert_eq!(verdict_of(Vec::new()).0, Level::Critical);
    let mut servers = all_well();
    servers[0].figures = BTreeMap::from([("digest_mismatches_count".into(), 1.0)]);
    let (level, sentence, way_out) = verdict_of(servers);
    assert_eq!(level, Level::Critical);
    assert!(
        sentence.starts_with("Serving. 3 of 3 voters; one may fail. Server 1 has found its tree to differ")
    );
    assert!(way_out.unwrap().starts_with("Stop it"));
}

#[test]
fn a_server_in_a_new_epoch_is_behind_by_its_transactions() {
    let at = |epoch, zxid| ServerState { epoch: Some(epoch), zxid: Zxid(zxid), ..server(1, "follower") };
    let leader = at(2, 0x2_0000_0003);
    for (zxid, behind) in
        [(0x2_0000_0003, Some(0)), (0x2_0000_0001, Some(2)), (0x1_0000_0009, Some(3)), (0, Some(3))]
    {
        assert_eq!(transactions_behind(&at(2, zxid), &leader), behind, "{zxid:x}");
    }
    assert_eq!(transactions_behind(&at(1, 0x1_0000_0009), &leader), None, "it has not come to this epoch");
}

#[test]
fn the_voters_are_those_of_the_leaders_configuration() {
    let mut servers = all_well();
    servers[0].voters.insert(4, "h4:2888".into());
    let of = |servers: &[ServerState]| {
        let observed = |state: &ServerState| Observed {
            url: String::new(),
            id: Some(state.id),
            answer: Ok(state.clone()),
        };
        quorum_count(&servers.iter().map(observed).collect::<Vec<_>>()).voters
    };
    assert_eq!(of(&servers), 3);
    assert_eq!(of(&servers[..1]), 4, "nobody else is known");
}

#[test]
fn a_leader_vouches_for_a_follower_that_did_not_answer() {
    let leader = ServerState { synced: vec![1, 3], ..server(2, "leader") };
    let all = [
        Observed { url: "server 2".into(), id: Some(2), answer: Ok(leader) },
        Observed { url: "server 3".into(), id: Some(3), answer: Err("did not answer within 1 s".into()) },
    ];
    let count = quorum_count(&all);
    assert_eq!((count.present, count.may_fail, count.leader), (3, 1, Some(2)));
    let found = findings(&all);
    assert_eq!((found.len(), &found[0].servers[..]), (1, &[3][..]));
    assert_eq!(verdict(&all, &found).level, Level::Warning);
}
