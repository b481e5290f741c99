//! `/api/v1/metrics`.

use crate::site::{Site, members};
use serde_json::{Value, json};

fn line<'a>(charts: &'a Value, name: &str) -> &'a Value {
    charts["series"].as_array().unwrap().iter().find(|line| line["name"] == name).unwrap()
}

/// The sum of a line's values, in steps.
fn sum(charts: &Value, name: &str) -> f64 {
    line(charts, name)["values"].as_array().unwrap().iter().filter_map(Value::as_f64).sum()
}

/// It takes the two samples that a server takes in its first 20 s.
#[tokio::test(flavor = "multi_thread")]
async fn what_clients_do_is_in_the_charts() {
    let site = Site::start();
    let empty = site.get("metrics").1;
    assert_eq!(members(&empty), ["step_ms", "since_ms", "series", "marks", "servers"]);
    assert_eq!(
        empty["servers"],
        json!([{"id": 0, "name": "this server", "state": "answered", "reason": null}])
    );
    let names: Vec<&str> =
        empty["series"].as_array().unwrap().iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "operations",
            "latency_p50",
            "latency_p99",
            "latency_max",
            "outstanding",
            "sync_time",
            "connections",
            "sessions",
            "znodes",
            "bytes",
            "watches",
            "memory",
            "descriptors"
        ]
    );
    let client = site.client().await;
    client.create("/a", b"").await.unwrap();
    for _ in 0..200 {
        client.set_data("/a", b"x").await.unwrap();
    }
    let charts =
        site.until("metrics", |charts| !line(charts, "znodes")["values"].as_array().unwrap().is_empty());
    assert_eq!(charts["step_ms"], 10_000);
    let requests = sum(&charts, "operations") * 10.0;
    assert!((201.0..300.0).contains(&requests), "{charts:#}");
    for name in ["latency_p50", "latency_p99", "latency_max"] {
        assert!(line(&charts, name)["values"][0].is_number(), "{name}: {charts:#}");
    }
    // The root counts twice, as in mntr.
    let expected =
        site.text("/metrics").lines().find_map(|line| line.strip_prefix("znode_count ")?.parse::<f64>().ok());
    assert_eq!(line(&charts, "znodes")["values"][0].as_f64(), expected);
    assert_eq!(
        (sum(&charts, "connections"), sum(&charts, "sessions"), sum(&charts, "watches")),
        (1.0, 1.0, 0.0)
    );
    assert!(sum(&charts, "memory") > 1e6 && sum(&charts, "descriptors") > 5.0, "{charts:#}");
    assert_eq!(charts["marks"][0]["kind"], "start");
    let one = site.get("metrics?server=7").1;
    assert_eq!(one["series"], json!([]));
    client.close().await;
}

#[test]
fn impossible_windows_are_refused_with_a_sentence() {
    let site = Site::start();
    for wrong in ["since_ms=yesterday", "step_ms=1", "server=x"] {
        let (status, answer) = site.get(&format!("metrics?{wrong}"));
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")), "{wrong}");
        assert!(answer["sentence"].as_str().unwrap().ends_with('.'), "{answer}");
    }
}
