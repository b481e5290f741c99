//! `/api/v1/config`.

use crate::site::{Site, members};
use ostler_server::config::keys::{self, Key};
use serde_json::{Value, json};

fn row<'a>(config: &'a Value, key: &str) -> &'a Value {
    config["keys"].as_array().unwrap().iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key}"))
}

/// The value, its origin and the standing of a key.
fn shown<'a>(config: &'a Value, key: &str) -> (Option<&'a str>, &'a str, &'a str) {
    let row = row(config, key);
    let value = &row["values"][0];
    (value["value"].as_str(), value["from"].as_str().unwrap(), row["standing"].as_str().unwrap())
}

#[test]
fn each_key_is_there_with_its_value_and_origin() {
    let lines =
        "snapCount=1\nflushDelay=5\nadmin.readOnly=false\ntickTme=9\nsuperUser.a=ann\nssl.ocsp=false\n";
    let site =
        Site::start_with_flags(lines, &[("JVMFLAGS", "-Dzookeeper.maxCnxns=77 -Dzookeeper.snapCount=9")]);
    let (status, config) = site.get("config");
    assert_eq!((status, members(&config)), (200, vec!["keys", "dynamic", "unknown", "servers"]));
    assert_eq!(config["dynamic"], Value::Null, "it is a standalone server");
    let file = site.zoo_cfg().display().to_string();
    let at = |text: &str| {
        let all = std::fs::read_to_string(&file).unwrap();
        let line = all.lines().position(|line| line == text).unwrap() + 1;
        format!("{file}:{line}")
    };
    assert_eq!(shown(&config, "snapCount"), (Some("1"), &*at("snapCount=1"), "obeyed"));
    assert_eq!(shown(&config, "flushDelay"), (Some("5"), &*at("flushDelay=5"), "replaced"));
    assert_eq!(shown(&config, "maxCnxns"), (Some("77"), "-D", "obeyed"));
    assert_eq!(shown(&config, "tickTime"), (Some("3000"), "default", "obeyed"));
    assert_eq!(shown(&config, "dataLogDir"), (None, "default", "obeyed"));
    assert_eq!(shown(&config, "superUser.a"), (Some("ann"), &*at("superUser.a=ann"), "obeyed"));
    assert_eq!(shown(&config, "ssl.ocsp").2, "refused");
    assert_eq!(shown(&config, "tickTme"), (Some("9"), &*at("tickTme=9"), "unknown"));
    assert_eq!(config["unknown"], json!([{"server": 0, "key": "tickTme", "near": "tickTime"}]));
    assert_eq!(
        row(&config, "snapCount"),
        &json!({
            "key": "snapCount",
            "standing": "obeyed",
            "values": [{"server": 0, "value": "1", "from": at("snapCount=1")}],
            "differs": false,
            "note": "Transactions after which a snapshot is taken; 2 at least. snapCount=1 counts as 2, the least possible."
        })
    );
    let single = keys::all().filter(|key| !key.is_family()).count();
    assert_eq!(config["keys"].as_array().unwrap().len(), single + 2, "superUser.a and tickTme are more");
}

/// A key with a secret, by its name.
fn has_secret(key: &&Key) -> bool {
    let name = key.name.to_ascii_lowercase();
    // The value of this one is the name of a rule.
    ["password", "secret", "superdigest"].iter().any(|part| name.contains(part))
        && key.name != "sessionPasswords"
}

/// No answer of the console or of a command has the value of a key with a secret, whether the key is known or misspelled.
#[test]
fn no_answer_has_a_secret() {
    const SECRET: &str = "hunter2hunter2";
    let mut lines = String::from("admin.readOnly=false\n");
    let known: Vec<&Key> = keys::all().filter(has_secret).collect();
    assert!(known.len() >= 10, "{known:?}");
    for key in &known {
        // The server reads this file, and the value of this line is the super user's.
        if !["sessionSecrets", "DigestAuthenticationProvider.superDigest"].contains(&key.name) {
            lines += &format!("{}={SECRET}\n", key.name);
        }
    }
    for unknown in [
        "my.db.passwd",
        "ssl.keyStore.pasword",
        "a.secret.b",
        "API_TOKEN",
        "x.pwd",
        "metricsProvider.password",
    ] {
        lines += &format!("{unknown} {SECRET}\n");
    }
    let site = Site::start_with_flags(
        &lines,
        &[("JVMFLAGS", "-Dzookeeper.ssl.quorum.keyStore.password=hunter2hunter2x")],
    );
    let paths = ["/api/v1/config", "/api/v1/config?local=1", "/api/v1/disk", "/api/v1/metrics", "/api/v1/me"];
    let commands = ["configuration", "initial_configuration", "system_properties", "environment", "monitor"];
    let all = paths.into_iter().map(str::to_owned).chain(commands.map(|name| format!("/commands/{name}")));
    for path in all {
        let text = site.text(&path);
        assert!(!text.contains(SECRET) && !text.contains("D/InIHSb7yEEbrWz8b9l71RjZJU="), "{path}");
    }
    let config = site.get("config").1;
    for name in [
        "ssl.keyStore.password",
        "DigestAuthenticationProvider.superDigest",
        "x.pwd",
        "metricsProvider.password",
    ] {
        assert_eq!(shown(&config, name).0, Some("set"), "{name}");
    }
}
