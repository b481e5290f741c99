//! Pages about all members of an ensemble, whichever is asked.

use crate::{
    raw::{Handshake, Raw},
    site::{PATIENCE, Site, encoded, ensemble},
};
use ostler_proto::op::Op;
use ostler_server_core::quorum::MemberMode;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fmt::Debug,
    thread::sleep,
    time::{Duration, Instant},
};

/// For longer than answers of other members are kept.
const LONGER_THAN_KEPT: Duration = Duration::from_millis(2100);

fn leader(sites: &[Site]) -> usize {
    let leads =
        |site: &Site| site.handle.inspect(ostler_server_core::Server::mode) == Some(MemberMode::Leader);
    sites.iter().position(leads).unwrap()
}

/// Asks again until the answer is as wanted: a member that answers late is missing in it.
#[track_caller]
fn until<T: Debug>(ask: impl Fn() -> T, wanted: impl Fn(&T) -> bool) -> T {
    let began = Instant::now();
    loop {
        let answer = ask();
        if wanted(&answer) {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "{answer:#?}");
        sleep(Duration::from_millis(20));
    }
}

fn all_answer(page: &Value) -> bool {
    states(page).iter().all(|(_, state)| state == "answered")
}

fn items(page: &Value) -> &[Value] {
    page["items"].as_array().unwrap()
}

fn states(page: &Value) -> Vec<(i64, String)> {
    let row = |row: &Value| (row["id"].as_i64().unwrap(), row["state"].as_str().unwrap().to_owned());
    page["servers"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn sessions_of_all_members_are_one_list() {
    let (_dir, mut sites) = ensemble("");
    let all: Vec<Raw> = (0..12).map(|at| Raw::connect(sites[at % 3].clients)).collect();
    let answered = |id| (id, "answered".to_owned());
    for site in &sites {
        let page = site.until("sessions", |page| items(page).len() == 12 && all_answer(page));
        assert_eq!(states(&page), [answered(1), answered(2), answered(3)]);
        for (at, raw) in all.iter().enumerate() {
            let id = raw.session.to_string();
            let row = page["items"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap();
            let server = i64::try_from(at % 3 + 1).unwrap();
            assert_eq!((&row["server"], &row["address"]), (&json!(server), &json!(raw.address())), "{row:#}");
        }
        let paged = until(|| site.all("sessions?limit=5"), |all| all.len() == 12);
        let ids: BTreeSet<&str> = paged.iter().map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 12);
        site.until("sessions?server=2", |page| items(page).len() == 4);
        let local = site.get("sessions?local=1");
        assert_eq!(local["servers"].as_array().unwrap().len(), 1);
    }
    // The leader knows the sessions of a server that is gone, and where they were.
    let leads = leader(&sites);
    let gone = (leads + 1) % 3;
    let leader_id = format!("{}", leads + 1);
    drop(sites.remove(gone));
    let site = sites.iter().find(|site| site.home.ends_with(format!("server-{leader_id}"))).unwrap();
    let page = site.until("sessions", |page| {
        let mut silent = states(page).into_iter().filter(|(_, state)| state == "silent");
        silent.next().is_some_and(|(id, _)| id == gone as i64 + 1) && silent.next().is_none()
    });
    assert_eq!(items(&page).len(), 12, "{page:#}");
    let without = items(&page).iter().filter(|row| row["address"].is_null()).count();
    assert_eq!(without, 4);
}

/// The follower has seen the connection, and the leader has ended the session.
#[test]
fn an_end_is_judged_by_the_records_of_all_members() {
    let (_dir, sites) = ensemble("");
    let follower = (leader(&sites) + 1) % 3;
    let raw =
        Raw::shake_hands(sites[follower].clients, Handshake { timeout_ms: 1000, ..Handshake::default() });
    let (id, address) = (raw.session.to_string(), raw.address());
    drop(raw);
    for site in &sites {
        let page = site
            .until("sessions?state=ended", |page| page["items"][0]["cause"] == "expired" && all_answer(page));
        let item = &page["items"][0];
        assert_eq!((&item["id"], &item["part"]), (&json!(id), &json!("session")), "{item:#}");
        assert_eq!((&item["server"], &item["address"]), (&json!(follower + 1), &json!(address)), "{item:#}");
        assert_eq!(item["verdict"], "client", "{item:#}");
        sleep(LONGER_THAN_KEPT);
        let one = format!("sessions/{id}");
        until(|| site.get_as("", &one), |(status, one)| *status == 200 && one["ended"] == *item);
    }
}

#[test]
fn watches_of_all_members_are_one_list() {
    let (_dir, sites) = ensemble("");
    let mut all: Vec<Raw> = (0..3).map(|at| Raw::connect(sites[at].clients)).collect();
    for (at, raw) in all.iter_mut().enumerate() {
        let own: Vec<String> = (0..=at).map(|number| format!("/{at}-{number}")).collect();
        raw.watch(Op::Exists, &own);
        raw.watch(Op::Exists, &["/all".into()]);
    }
    for site in &sites {
        site.until("watches?by=path", |page| {
            (&page["totals"]["data"], &page["totals"]["connections"]) == (&json!(9), &json!(3))
        });
        let paged = until(|| site.all("watches?by=path&limit=2"), |all| all.len() == 9);
        let rows: BTreeSet<String> =
            paged.iter().map(|row| format!("{} {}", row["path"], row["server"])).collect();
        assert_eq!(rows.len(), 9, "{rows:?}");
        let of_all = |rows: &[Value], name: &str| rows.iter().map(|row| row[name].clone()).collect::<Value>();
        site.until("watches?by=session", |page| of_all(items(page), "count") == json!([4, 3, 2]));
        until(|| site.all("watches?path=/all&limit=1"), |all| of_all(all, "server") == json!([1, 2, 3]));
    }
    let hostile = encoded("/\u{202e}<img>&path=/x");
    assert_eq!(sites[0].get(&format!("watches?path={hostile}"))["items"], json!([]));
}

#[test]
fn clients_hot_paths_and_pauses_of_all_members_are_added() {
    let (_dir, sites) = ensemble("slowRequestThresholdMs=0");
    let mut all: Vec<Raw> = (0..3).map(|at| Raw::connect(sites[at].clients)).collect();
    for raw in &mut all {
        raw.watch(Op::Exists, &["/a".into()]);
    }
    for site in &sites {
        site.until("clients", |page| {
            (&page["plaintext"], &page["kinds"][0]["count"]) == (&json!(3), &json!(3))
        });
        site.until("slow", |page| {
            let servers: BTreeSet<i64> =
                items(page).iter().map(|row| row["server"].as_i64().unwrap()).collect();
            servers == BTreeSet::from([1, 2, 3])
        });
        for path in ["hot", "pauses"] {
            assert_eq!(states(&site.get(path)).len(), 3, "{path}");
        }
    }
}
