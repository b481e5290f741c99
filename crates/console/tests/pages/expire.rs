//! An operator ends a session: by whom, of which server, and what is recorded.

use crate::{
    raw::Raw,
    site::{Site, ensemble},
};
use serde_json::json;
use std::fs;

#[test]
fn a_session_is_ended_and_the_operator_is_named_in_the_record_and_in_the_audit_log() {
    let site = Site::start_with("audit.enable=true");
    let (raw, other) = (Raw::connect(site.clients), Raw::connect(site.clients));
    let path = format!("sessions/{}/expire", raw.session);
    let (status, answer) = site.post_as("super:secret", &path, "{}");
    assert_eq!((status, &answer["done"]), (200, &json!(true)), "{answer}");
    assert_eq!(
        answer["sentence"],
        format!("The session {} has ended, and its ephemerals are gone.", raw.session)
    );
    let live = site.get("sessions");
    assert_eq!(live["items"].as_array().unwrap().len(), 1);
    assert_eq!(live["items"][0]["id"], other.session.to_string());
    let ended = site.get("sessions?state=ended");
    let item = &ended["items"][0];
    assert_eq!((&item["id"], &item["cause"]), (&json!(raw.session.to_string()), &json!("by_operator")));
    let sentence = item["sentence"].as_str().unwrap();
    assert!(sentence.contains("(super, digest:super from 127.0.0.1)"), "{sentence}");
    let (status, answer) = site.post_as("super:secret", &path, "{}");
    assert_eq!((status, &answer["code"]), (404, &json!("NOT_FOUND")), "{answer}");
    let log = until_logged(&site, "operation=expireSession\tresult=failure");
    let line = log.lines().find(|line| line.contains("expireSession")).unwrap();
    let fields: Vec<&str> = line.split('\t').collect();
    let id = format!("session={}", raw.session);
    assert!(fields[0].ends_with(&id), "{line}");
    assert_eq!(
        fields[1..],
        ["user=127.0.0.1,super", "ip=127.0.0.1", "operation=expireSession", "result=success"],
        "{line}"
    );
}

fn until_logged(site: &Site, text: &str) -> String {
    for _ in 0..500 {
        let log = fs::read_to_string(site.home.join("data/zookeeper_audit.log")).unwrap_or_default();
        if log.contains(text) {
            return log;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{text:?} is not logged");
}

/// Whichever server is asked, and whichever the client is connected to.
#[test]
fn a_session_of_any_server_of_an_ensemble_is_ended() {
    let (_dir, sites) = ensemble("");
    for client_at in 0..3 {
        for asked in 0..3 {
            let raw = Raw::connect(sites[client_at].clients);
            let id = raw.session.to_string();
            sites[asked].until("sessions", |page| page.to_string().contains(&id));
            let (status, answer) =
                sites[asked].post_as("super:secret", &format!("sessions/{id}/expire"), "{}");
            assert_eq!((status, &answer["done"]), (200, &json!(true)), "{client_at} {asked}: {answer}");
            let named = |site: &Site| {
                let (_, one) = site.get_as("", &format!("sessions/{id}"));
                one["ended"]["cause"] == "by_operator"
                    && one["ended"]["sentence"].as_str().unwrap().contains("digest:super from 127.0.0.1")
            };
            assert!(sites.iter().any(named), "the leader knows who it was");
            for site in &sites {
                site.until("sessions", |page| !page.to_string().contains(&id));
            }
        }
    }
}

/// A server that is not up to date may show a holder that holds no more.
#[test]
fn nothing_is_handed_over_by_the_end_of_a_session_where_a_server_is_not_up_to_date() {
    let (_dir, mut sites) = ensemble("");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(sites[0].client(""));
    let name = "/lock/_c_970e5c47-4962-4e75-8c04-568be4164a0a-lock-";
    runtime.block_on(async {
        client.create("/lock", b"").await.unwrap();
        client.create(name, b"me").ephemeral_sequential().await.unwrap();
    });
    sites[0].until("recipes/group?path=/lock", |page| page["holder"].is_object());
    sites.truncate(1);
    let body = json!({ "path": "/lock", "holder": format!("{name}0000000000"), "way": "expire" });
    let (status, answer) = sites[0].post_as("super:secret", "recipes/hand-over", &body.to_string());
    assert_eq!((status, &answer["code"]), (503, &json!("BUSY")), "{answer}");
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(sentence.contains("Is there a quorum?"), "{sentence}");
}
