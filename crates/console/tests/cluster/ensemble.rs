//! `/api/v1/ensemble`.

use crate::{
    made_up::{MadeUp, Manner},
    members::{Ensemble, get, get_as, row},
};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn three_members_are_one_page_whomever_one_asks() {
    let ensemble = Ensemble::start(3).await;
    let leader = ensemble.until_led(3).await;
    let epoch = ensemble.epoch_of(leader).await;
    for id in 1..=3 {
        let (_, page) = ensemble
            .until(id, "ensemble", |page| {
                let links = page["links"].as_array().unwrap();
                let are_up =
                    links.iter().all(|link| link["election"]["up"] == true && link["quorum"]["up"] != false);
                let all_answer = (1..=3).all(|id| row(page, id)["state"] == "answered");
                page["verdict"]["level"] == "ok" && page["quorum"]["present"] == 3 && are_up && all_answer
            })
            .await;
        assert_eq!(
            page["verdict"],
            json!({ "level": "ok", "sentence": "Serving. 3 of 3 voters; one may fail.", "way_out": null })
        );
        assert_eq!(page["quorum"], json!({ "voters": 3, "needed": 2, "present": 3, "may_fail": 1 }));
        assert_eq!(page["findings"], json!([]), "{page:#}");
        assert_eq!(
            (page["served_by"].as_u64(), page["leader"]["id"].as_u64()),
            (Some(id as u64), Some(leader as u64))
        );
        assert!(page["leader"]["since_ms"].as_i64().unwrap() > 1_700_000_000_000, "{page:#}");
        for other in 1..=3 {
            let row = row(&page, other);
            let role = if other == leader { "leading" } else { "following" };
            assert_eq!(
                (row["state"].as_str(), row["role"].as_str()),
                (Some("answered"), Some(role)),
                "{row:#}"
            );
            assert_eq!((row["kind"].as_str(), row["is_voter"].as_bool()), (Some("ostler"), Some(true)));
            assert_eq!(row["address"], format!("127.0.0.1:{}", ensemble.ports[other - 1].clients));
            assert_eq!(row["admin"], format!("http://{}", ensemble.admin(other)));
            assert_eq!((row["epoch"].as_u64(), row["reason"].is_null()), (Some(epoch), true));
            assert!(
                row["disk"]["total_bytes"].as_u64().unwrap() > 0 && row["znodes"].as_u64().unwrap() > 0,
                "{row:#}"
            );
        }
        let links = page["links"].as_array().unwrap();
        assert_eq!(links.len(), 6, "{page:#}");
        for link in links {
            let is_leaders = link["from"] == leader || link["to"] == leader;
            assert_eq!(
                (link["election"]["up"].as_bool(), link["quorum"].is_null()),
                (Some(true), !is_leaders),
                "{link:#}"
            );
            assert!(!is_leaders || link["quorum"]["up"] == true, "{link:#}");
        }
        let last = page["epochs"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (last["leader"].as_u64(), last["to_ms"].is_null()),
            (Some(leader as u64), true),
            "{page:#}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_down_is_a_row_with_the_reason_and_a_way_out() {
    let mut ensemble = Ensemble::start(3).await;
    let leader = ensemble.until_led(3).await;
    let down = (1..=3).find(|id| *id != leader).unwrap();
    ensemble.stop(down).await;
    let port = ensemble.ports[down - 1].admin;
    let refused = format!("Server {down} (127.0.0.1:{port}) did not answer: Connection refused");
    let (_, page) = ensemble
        .until(leader, "ensemble", |page| {
            let reason = row(page, down)["reason"].as_str();
            page["quorum"]["present"] == 2 && reason.is_some_and(|text| text.starts_with(&refused))
        })
        .await;
    let silent = row(&page, down);
    assert_eq!(silent["state"], "silent");
    assert_eq!((silent["role"].is_null(), silent["is_voter"].as_bool()), (true, Some(true)));
    let links = page["links"].as_array().unwrap();
    let to_down = links.iter().find(|link| link["from"] == leader && link["to"] == down).unwrap();
    assert_eq!(
        (to_down["election"]["up"].as_bool(), to_down["quorum"]["up"].as_bool()),
        (Some(false), Some(false))
    );
    assert!(to_down["election"]["since_ms"].is_i64(), "{to_down:#}");
    let other = 6 - leader - down;
    let (_, page) = ensemble
        .until(leader, "ensemble", |page| {
            let links = page["links"].as_array().unwrap();
            let live = links.iter().find(|link| link["from"] == leader && link["to"] == other);
            live.is_some_and(|link| link["quorum"]["round_trip_ms"].is_f64())
        })
        .await;
    assert_eq!(page["verdict"]["level"], "warning");
    assert_eq!(page["verdict"]["sentence"], "Serving. 2 of 3 voters; if one fails, nobody can write.");
    assert_eq!(
        page["verdict"]["way_out"],
        format!("Start server {down}, or find out why it does not follow the leader.")
    );
    let (_, local) = get(ensemble.admin(leader), "ensemble?local=1").await;
    assert_eq!(local["servers"].as_array().unwrap().len(), 1, "{local:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_the_page_says_who_is_missing() {
    let mut ensemble = Ensemble::prepare(3, "");
    ensemble.start_member(2).await;
    let (_, page) =
        ensemble.until(2, "ensemble", |page| page["servers"].as_array().unwrap().len() == 3).await;
    assert_eq!(page["verdict"]["level"], "critical");
    let sentence = page["verdict"]["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("Not serving: no server leads. 0 of 3 voters work together, and 2 are needed."),
        "{sentence}"
    );
    assert_eq!((row(&page, 2)["role"].as_str(), page["leader"].is_null()), (Some("looking"), true));
    assert!(page["findings"][0]["sentence"].as_str().unwrap().starts_with("No server leads"), "{page:#}");
}

/// A real member 1, and members 2 and 3 that are not what they should be.
async fn among(two: (Manner, Option<Manner>), three: (Manner, Option<Manner>)) -> (Ensemble, Vec<MadeUp>) {
    let mut ensemble = Ensemble::prepare(3, "");
    let mut made_up = Vec::new();
    for (at, (admin, clients)) in [(1, two), (2, three)] {
        made_up.push(MadeUp::at(ensemble.ports[at].admin, admin).await);
        if let Some(clients) = clients {
            made_up.push(MadeUp::at(ensemble.ports[at].clients, clients).await);
        }
    }
    ensemble.start_member(1).await;
    (ensemble, made_up)
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_and_slow_members_cost_a_second_together() {
    let (ensemble, made_up) = among((Manner::Silent, None), (Manner::Slow, None)).await;
    // Answers are kept for two seconds from the question on. The machine may need longer for the two pages.
    for _ in 0..10 {
        let (before, begun) = (made_up[0].connections(), Instant::now());
        let (_, page) = get(ensemble.admin(1), "ensemble").await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        for id in [2, 3] {
            let row = row(&page, id);
            assert_eq!(row["state"], "silent");
            assert!(row["reason"].as_str().unwrap().ends_with("did not answer within 1 s."), "{row:#}");
        }
        let asked = made_up[0].connections();
        get(ensemble.admin(1), "ensemble").await;
        if asked > before && begun.elapsed() < Duration::from_secs(2) {
            assert_eq!(made_up[0].connections(), asked, "the answers are kept");
            return;
        }
    }
    panic!("the machine is too slow");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_answers_are_rows_with_a_reason() {
    let state = json!({ "id": 2, "mode": "leader", "serves": true, "figures": { "znode_count": 1e300 },
        "zxid": "0xffffffffffffffff", "clock_off_ms": i64::MIN, "voters": { "2": "\u{202e}<img>" } });
    let body =
        json!({ "servers": [{ "id": 2 }], "as_of_ms": 5, "states": [state], "epochs": [], "links": [] });
    let endless = |id: u64| json!({ "servers": [{ "id": id }], "more": "x".repeat(3 << 20) }).to_string();
    let http = |body: &str| Manner::http("200 OK", body);
    for (manner, expected) in [
        (Manner::Endless, "answered with more than a mebibyte, which is not read."),
        (http(&endless(2)), "answered with more than a mebibyte, which is not read."),
        (http("<html>"), "answered something that cannot be read."),
        (http(&"[".repeat(100_000)), "answered something that cannot be read."),
        (
            http(r#"{"servers":[{"id":2}],"states":[{"id":"\u0000"}]}"#),
            "answered something that cannot be read.",
        ),
        (
            http(r#"{"servers":[{"id":2}],"as_of_ms":1,"states":[],"links":[],"epochs":[]}"#),
            "answered what no server answers.",
        ),
        (Manner::Says(vec![0xff; 100_000]), "did not answer: "),
        (Manner::Says(Vec::new()), "did not answer: "),
        (Manner::http("401 Unauthorized", "{}"), "needs an identity: "),
        (Manner::http("302 Found", "{}"), "answered with status 302."),
        (http(&body.to_string().replace("\"id\":2", "\"id\":3")), "is server 3: "),
    ] {
        let (ensemble, _made_up) = among((manner.clone(), None), (Manner::Silent, None)).await;
        println!("{expected:?} for {manner:.200?}");
        // A machine that stalls makes it late, which is another reason.
        let (_, page) = ensemble
            .until(1, "ensemble", |page| {
                row(page, 2)["reason"].as_str().is_some_and(|reason| reason.contains(expected))
            })
            .await;
        let row = row(&page, 2);
        let state = if expected.starts_with("is server") { "foreign" } else { "silent" };
        assert_eq!(row["state"], state, "{row:#}");
        assert!(row.to_string().len() < 2_000, "{row:#}");
    }
    // One that keeps the form may lie about itself, and the page comes all the same.
    let (ensemble, _made_up) = among((http(&body.to_string()), None), (Manner::Silent, None)).await;
    let (_, page) = ensemble.until(1, "ensemble", |page| row(page, 2)["state"] == "answered").await;
    assert_eq!(row(&page, 2)["role"], "leading");
}

fn java(word: &str) -> String {
    match word {
        "srvr" => "Zookeeper version: 3.9.4-7246445ec281f3dbf53dc54e970c914f39713903, built on 2025-08-19 19:53 UTC\n\
                   Connections: 4\nZxid: 0x10000000a\nMode: follower\nNode count: 5\n"
            .into(),
        "mntr" => "zk_version\t3.9.4\nzk_num_alive_connections\t4\nzk_global_sessions\t9\n".into(),
        "conf" => "clientPort=2181\nserverId=2\nmembership: \nserver.2=127.0.0.1:2888:3888:participant\nversion=0\n".into(),
        _ => String::new(),
    }
}

fn another(word: &str) -> String {
    java(word).replace("serverId=2", "serverId=7")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_java_is_shown_by_its_words() {
    // Jetty answers unknown paths like this.
    let jetty = Manner::http("404 Not Found", "<html><title>Error 404 Not Found</title></html>");
    let three = (Manner::Silent, Some(Manner::Words(another)));
    let (ensemble, _made_up) = among((jetty, Some(Manner::Words(java))), three).await;
    let (_, page) = ensemble.until(1, "ensemble", |page| row(page, 2)["state"] == "java").await;
    let two = row(&page, 2);
    assert_eq!(two["kind"], "java", "{two:#}");
    assert_eq!((two["role"].as_str(), two["zxid"].as_str()), (Some("following"), Some("0x10000000a")));
    assert_eq!((two["clients"].as_u64(), two["sessions"].as_u64()), (Some(4), Some(9)));
    assert!(two["reason"].as_str().unwrap().starts_with("It is a server of Java"), "{two:#}");
    let (_, elections) = ensemble.until(1, "elections", |page| row(page, 2)["state"] == "java").await;
    let of_java = row(&elections, 2);
    assert!(
        of_java["reason"].as_str().unwrap().ends_with("which keeps no record of its elections."),
        "{of_java:#}"
    );
    assert_eq!(row(&page, 3)["state"], "silent", "another server answers at its port for clients: {page:#}");
    let findings: Vec<&str> =
        page["findings"].as_array().unwrap().iter().filter_map(|one| one["sentence"].as_str()).collect();
    assert!(
        findings.iter().any(|text| text.starts_with("Ostler and ZooKeeper in Java work together")),
        "{findings:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_a_closed_admin_port_is_shown_by_its_words() {
    let mut ensemble = Ensemble::prepare(2, "");
    ensemble.start_member(1).await;
    ensemble.start_member_with(2, "admin.enableServer=false").await;
    let (_, page) = ensemble
        .until(1, "ensemble", |page| page["quorum"]["present"] == 2 && row(page, 2)["state"] == "answered")
        .await;
    let two = row(&page, 2);
    assert_eq!((two["state"].as_str(), two["kind"].as_str()), (Some("answered"), Some("ostler")), "{two:#}");
    assert!(two["role"] == "leading" || two["role"] == "following", "{two:#}");
    let reason = two["reason"].as_str().unwrap();
    assert!(reason.ends_with("This is what its four-letter words tell."), "{reason}");
    assert_eq!(page["verdict"]["sentence"], "Serving. 2 of 2 voters; if one fails, nobody can write.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_is_a_page_of_its_own() {
    let server = Ensemble::start_standalone().await;
    let (status, page) = get(server.admin(1), "ensemble").await;
    assert_eq!(status, 200);
    assert_eq!(page["verdict"]["level"], "ok", "{page:#}");
    assert!(
        page["verdict"]["sentence"].as_str().unwrap().starts_with("Serving. One server without an ensemble")
    );
    assert_eq!((page["servers"].as_array().unwrap().len(), page["leader"].is_null()), (1, true));
    let own = row(&page, 0);
    assert_eq!((own["role"].as_str(), own["epoch"].is_null()), (Some("standalone"), true), "{own:#}");
    assert_eq!(page["quorum"]["voters"], 0);
}

/// The status for each exposure of the port, list of viewers, and identity.
#[tokio::test(flavor = "multi_thread")]
async fn only_viewers_see_the_page() {
    // digest of ann:secret
    let viewers = "admin.viewers=digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=";
    let guarded = "admin.serverAddress=0.0.0.0";
    let both = format!("{viewers}\n{guarded}");
    for (lines, identity, expected) in [
        ("", None, 200),
        (viewers, None, 401),
        (viewers, Some("digest bob:other"), 403),
        (viewers, Some("digest ann:secret"), 200),
        (guarded, None, 401),
        (guarded, Some("digest bob:other"), 403),
        (&both, None, 401),
        (&both, Some("digest bob:other"), 403),
        (&both, Some("digest ann:secret"), 200),
    ] {
        let mut ensemble = Ensemble::prepare(1, lines);
        ensemble.start_member(1).await;
        let admin = (std::net::Ipv4Addr::LOCALHOST, ensemble.admin(1).port()).into();
        for path in ["ensemble", "ensemble?local=1"] {
            let (status, _) = get_as(admin, path, identity).await;
            assert_eq!(status, expected, "{lines:?} {identity:?} {path}");
        }
    }
}
