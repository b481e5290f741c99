//! `/api/v1/elections`.

use crate::{
    made_up::{MadeUp, Manner},
    members::{Ensemble, get, get_as, row},
};
use serde_json::{Value, json};

fn sentences(election: &Value) -> Vec<&str> {
    election["moments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|moment| moment["sentence"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_election_after_a_leaders_end_is_told_by_those_who_held_it() {
    let mut ensemble = Ensemble::start(3).await;
    let old = ensemble.until_led(3).await;
    let before = ensemble.epoch_of(old).await;
    let epoch = before + 1;
    ensemble.stop(old).await;
    let new = ensemble.until_led(2).await;
    let other = (1..=3).find(|id| *id != old && *id != new).unwrap();
    let (_, page) = ensemble
        .until(other, "elections?last=2", |page| {
            let newest = &page["elections"][0];
            let is_over = newest["epoch"] == epoch && newest["under_way"] == false;
            is_over && row(page, new)["knows_since_ms"].is_i64()
        })
        .await;
    assert_eq!((page["format"].as_str(), &page["voters"]), (Some("ostler-elections-1"), &json!([1, 2, 3])));
    let election = &page["elections"][0];
    assert_eq!((election["winner"].as_u64(), election["kind"].as_str()), (Some(new as u64), Some("formed")));
    assert!(
        election["cause"].as_str().unwrap().starts_with(&format!("The connection to server {old} is gone")),
        "{election:#}"
    );
    let summary = election["summary"][0].as_str().unwrap();
    assert!(summary.starts_with(&format!("Server {new} leads epoch {epoch} since ")), "{summary}");
    assert!(summary.contains("2 of 3 voters backed it"), "{summary}");
    let told = sentences(election);
    // On a busy machine the other one elects it before it has counted the votes itself.
    let ends = ["Elects itself: 2 of 3 voters back it", "Leads, because a quorum follows it already"];
    assert!(told.iter().any(|text| ends.iter().any(|end| text.starts_with(end))), "{told:#?}");
    for lane in election["lanes"].as_array().unwrap() {
        assert_eq!(lane["known"], lane["server"] != old, "{lane:#}");
    }
    let boxes = election["ballots"].as_array().unwrap();
    let last = boxes.iter().rfind(|of| of["server"] == new).unwrap();
    let backing: Vec<u64> =
        last["votes"].as_array().unwrap().iter().map(|vote| vote["candidate"].as_u64().unwrap()).collect();
    assert_eq!(backing, [new as u64; 2], "{last:#}");
    let gone = row(&page, old);
    assert_eq!(
        (gone["state"].as_str(), gone["knows_since_ms"].is_null()),
        (Some("silent"), true),
        "{gone:#}"
    );
    let first = &page["elections"][1];
    assert_eq!(
        (first["epoch"].as_u64(), page["elections"].as_array().unwrap().len()),
        (Some(before), 2),
        "{first:#}"
    );

    let (_, local) = get(ensemble.admin(other), "elections?local=1").await;
    assert_eq!(local["servers"].as_array().unwrap().len(), 1);
    let known: Vec<&Value> = local["elections"][0]["lanes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|lane| lane["known"] == true)
        .collect();
    assert_eq!(known.len(), 1, "{local:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_goes_on_has_no_totals() {
    let mut ensemble = Ensemble::prepare(3, "");
    let foreign = json!({ "servers": [{ "id": 2 }], "record": { "server": 3, "now_ms": 1, "voters": [], "settle_ms": 1, "searches": [] } });
    let _two = MadeUp::at(ensemble.ports[1].admin, Manner::http("200 OK", &foreign.to_string())).await;
    let absurd = json!({ "servers": [{ "id": 3 }], "record": { "server": 3, "now_ms": i64::MIN, "voters": [], "settle_ms": 1, "searches": [] } });
    let _three = MadeUp::at(ensemble.ports[2].admin, Manner::http("200 OK", &absurd.to_string())).await;
    ensemble.start_member(1).await;
    let (_, page) = ensemble
        .until(1, "elections", |page| {
            let has_begun = page["elections"].as_array().is_some_and(|all| !all.is_empty());
            let reason = row(page, 3)["reason"].as_str();
            let is_out_of_bounds =
                reason.is_some_and(|text| text.ends_with("the record has a time that is out of bounds."));
            has_begun && row(page, 2)["state"] == "foreign" && is_out_of_bounds
        })
        .await;
    let election = &page["elections"][0];
    assert_eq!((election["under_way"].as_bool(), election["kind"].as_str()), (Some(true), Some("open")));
    assert_eq!((election["winner"].is_null(), election["total_for_ms"].is_null()), (true, true));
    assert!(
        election["summary"][0].as_str().unwrap().starts_with("Server 1 has looked for a leader since "),
        "{election:#}"
    );
    assert_eq!(row(&page, 3)["state"], "silent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_has_nobody_to_elect_and_viewers_are_asked_for() {
    let server = Ensemble::start_standalone().await;
    let (status, page) = get(server.admin(1), "elections").await;
    assert_eq!((status, page["elections"].as_array().unwrap().len(), &page["voters"]), (200, 0, &json!([])));
    assert_eq!(row(&page, 0)["name"], "this server");

    let mut ensemble = Ensemble::prepare(1, "admin.viewers=sasl:ann");
    ensemble.start_member(1).await;
    for (identity, expected) in [(None, 401), (Some("digest bob:secret"), 403)] {
        for path in ["elections", "elections?local=1&record=1"] {
            assert_eq!(get_as(ensemble.admin(1), path, identity).await.0, expected, "{path} {identity:?}");
        }
    }
}
