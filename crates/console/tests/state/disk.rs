//! `/api/v1/disk`, snapshots and purges.

use crate::site::{OPERATOR, SUPER, Site, members};
use ostler_storage::{names::log_name, snapshot::SnapshotFile};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, io::Read};

const KEEPS_ALL: &str = "admin.readOnly=false\nautopurge.purgeInterval=0\naudit.enable=true\n";

fn disk(site: &Site) -> Value {
    site.get("disk").1["disks"][0].clone()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect()
}

fn files(site: &Site) -> BTreeSet<String> {
    fs::read_dir(site.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_shown_with_what_is_in_them() {
    let site = Site::start_with(KEEPS_ALL);
    site.take_snapshots(5).await;
    site.write("/a", 1).await;
    let (status, answer) = site.get("disk");
    assert_eq!((status, members(&answer)), (200, vec!["disks", "servers"]));
    let disk = &answer["disks"][0];
    assert_eq!(
        members(disk),
        [
            "server",
            "data",
            "log",
            "snapshots",
            "logs",
            "last_snapshot",
            "grows_bytes_per_hour",
            "full_in_ms",
            "restart_ms",
            "purge",
            "findings"
        ]
    );
    assert_eq!(members(&disk["snapshots"][0]), ["name", "zxid", "bytes", "age_ms", "problem"]);
    assert_eq!(members(&disk["logs"][0]), ["name", "from_zxid", "to_zxid", "bytes", "problem"]);
    assert_eq!(members(&disk["last_snapshot"]), ["zxid", "at_ms", "took_ms", "bytes"]);
    assert_eq!(disk["data"]["path"], site.folder().display().to_string());
    let free = disk["data"]["free_bytes"].as_u64().unwrap();
    assert!(free > 0 && free <= disk["data"]["total_bytes"].as_u64().unwrap());
    // All names are there, the newest first, and each log ends where the next one begins.
    let shown: BTreeSet<String> =
        names(&disk["snapshots"]).into_iter().chain(names(&disk["logs"])).map(str::to_owned).collect();
    let real: BTreeSet<String> = files(&site).into_iter().filter(|name| *name != "log-synced").collect();
    assert_eq!(shown, real);
    let zxid =
        |text: &Value| u64::from_str_radix(text.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap();
    let logs = disk["logs"].as_array().unwrap();
    assert!(logs.len() > 4, "{logs:?}");
    for pair in logs.windows(2) {
        assert_eq!(zxid(&pair[0]["from_zxid"]), zxid(&pair[1]["to_zxid"]) + 1, "{pair:?}");
    }
    // Each time a session, its znodes, and its end.
    assert_eq!(zxid(&logs[0]["to_zxid"]), 5 * 12 + 4);
    assert_eq!(log_name(ostler_proto::id::Zxid(zxid(&logs[0]["from_zxid"]))), names(&disk["logs"])[0]);
    let last = &disk["last_snapshot"];
    assert_eq!(
        (&last["zxid"], &last["bytes"]),
        (&disk["snapshots"][0]["zxid"], &disk["snapshots"][0]["bytes"])
    );
    assert!(last["took_ms"].is_u64() && last["at_ms"].as_u64().unwrap() > 1_700_000_000_000, "{last}");
    let nothing_purges = disk["findings"].as_array().unwrap();
    let says =
        |finding: &Value| finding["sentence"].as_str().unwrap().starts_with("Old files are never removed");
    assert!(nothing_purges.iter().any(says), "{disk:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_removes_what_its_plan_says_and_nothing_else() {
    let mut site = Site::start_with(KEEPS_ALL);
    site.take_snapshots(6).await;
    let plan = disk(&site)["purge"].clone();
    let planned: Vec<&str> =
        plan["removes"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    // Seven snapshots, the one of the start included, and six logs.
    assert_eq!(
        planned,
        ["log.1", "log.d", "log.19", "snapshot.0", "snapshot.c", "snapshot.18", "snapshot.24"]
    );
    let before = files(&site);
    let stale = json!({ "keep": 3, "plan": &planned[1..] });
    let (status, refused) = site.post_as(OPERATOR, "disk/purge", stale);
    assert_eq!((status, &refused["code"]), (409, &json!("PLAN")));
    assert_eq!((&refused["purge"]["removes"], files(&site)), (&plan["removes"], before.clone()));
    let (status, more_kept) = site.post_as(OPERATOR, "disk/purge", json!({ "keep": 5, "plan": planned }));
    assert_eq!((status, &more_kept["purge"]["keep"]), (409, &json!(5)));
    for wrong in [json!({ "keep": 2, "plan": planned }), json!({ "keep": 3 }), json!([])] {
        assert_eq!(site.post_as(OPERATOR, "disk/purge", wrong).0, 400);
    }
    let (status, purged) = site.post_as(OPERATOR, "disk/purge", json!({ "keep": 3, "plan": planned }));
    assert_eq!(
        (status, &purged["removed"], &purged["bytes"]),
        (200, &plan["removes"], &plan["bytes"]),
        "{purged}"
    );
    let gone: BTreeSet<String> = before.difference(&files(&site)).cloned().collect();
    assert_eq!(gone, planned.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(disk(&site)["purge"]["removes"], json!([]));
    let lines = site.audited("operation=purge", 3);
    assert!(lines[0].ends_with("result=failure") && lines[2].ends_with("result=success"), "{lines:?}");
    assert!(lines[2].contains("user=127.0.0.1,oli\tip=127.0.0.1\t"), "{lines:?}");
    site.restart();
    let client = site.client().await;
    for number in 0..6 {
        let children = client.get_children(&format!("/{number}")).await.unwrap();
        assert_eq!(children.len(), 9, "nothing that is needed was removed");
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_takes_and_gets_snapshots() {
    let site = Site::start_with("admin.readOnly=false\naudit.enable=true\n");
    site.write("/a", 10).await;
    let (status, taken) = site.post_as(OPERATOR, "disk/snapshot", json!({}));
    assert_eq!((status, &taken["done"]), (200, &json!(true)), "{taken}");
    let last = disk(&site)["last_snapshot"].clone();
    assert_eq!((&last["zxid"], &last["zxid"]), (&taken["snapshot"]["zxid"], &json!("0xd")));
    assert!(files(&site).contains("snapshot.d"));
    // The next transaction begins a new log, so that the old one can go one day.
    site.write("/b", 1).await;
    assert!(files(&site).contains("log.e"));

    let mut response = site.raw(SUPER, "disk/snapshot");
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-disposition"), "attachment; filename=\"snapshot.11\"");
    assert_eq!(
        (header("content-type"), header("last_zxid")),
        ("application/octet-stream".into(), "0x11".into())
    );
    let mut bytes = Vec::new();
    response.body_mut().as_reader().read_to_end(&mut bytes).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("snapshot.11");
    fs::write(&path, bytes).unwrap();
    let file = SnapshotFile {
        zxid: ostler_proto::id::Zxid(0x11),
        compression: ostler_storage::names::Compression::None,
        path,
        problem: None,
    };
    let (tree, zxid) =
        ostler_data_dir::recovery::read_file(&ostler_storage::disk::OsDisk, &file, Default::default())
            .unwrap();
    assert_eq!((zxid, tree.node_count()), (Some(file.zxid), 3 + 1 + 11 + 2));
    assert!(!files(&site).contains("snapshot.11"), "it is sent, and not kept");
    for operation in ["takeSnapshot", "sendSnapshot"] {
        site.audited(&format!("operation={operation}\tresult=success"), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_found() {
    let site = Site::start();
    site.write("/a", 5).await;
    fs::write(site.folder().join("snapshot.ff"), b"never completed").unwrap();
    fs::write(site.folder().join("log.fe"), b"no log").unwrap();
    // The snapshot cannot be written: a folder has the name of its file.
    fs::create_dir(site.folder().join("unfinished.snapshot.8")).unwrap();
    let (status, failed) = site.post_as(OPERATOR, "disk/snapshot", json!({}));
    assert_eq!((status, &failed["code"]), (500, &json!("SERVER")), "{failed}");
    let disk = disk(&site);
    let found: Vec<(&str, &str)> = disk["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| (of["level"].as_str().unwrap(), of["sentence"].as_str().unwrap()))
        .collect();
    let has = |level: &str, text: &str| found.iter().any(|of| of.0 == level && of.1.contains(text));
    assert!(has("critical", "The snapshot at 0x8 was not written: "), "{found:?}");
    assert!(has("warning", "snapshot.ff cannot be read: "), "{found:?}");
    assert!(has("critical", "log.fe cannot be read: "), "{found:?}");
    assert_eq!(disk["last_snapshot"]["zxid"], "0x0", "the damaged one does not count");
    fs::remove_dir(site.folder().join("unfinished.snapshot.8")).unwrap();
    assert_eq!(site.post_as(OPERATOR, "disk/snapshot", json!({})).0, 200);
    let (_, healed) = site.get("disk");
    assert!(!healed.to_string().contains("was not written"), "{healed:#}");
    fs::remove_file(site.folder().join("log.fe")).unwrap();
}
