//! The rights: each path of these pages for each caller.

use crate::site::{NOBODY, OPERATOR, SUPER, Site};
use serde_json::json;

const READS: [&str; 3] = ["metrics", "config", "disk"];

#[test]
fn without_viewers_everybody_on_this_machine_sees_the_state() {
    let site = Site::start();
    for path in READS {
        for login in ["", NOBODY, OPERATOR, SUPER] {
            assert_eq!(site.get_as(login, path).0, 200, "{login:?} {path}");
        }
    }
}

#[test]
fn with_viewers_only_they_and_operators_see_it() {
    let viewer = ostler_server_core::auth::digest_id("vic:pw");
    let site = Site::start_with(&format!("admin.viewers=digest:{viewer}\nadmin.readOnly=false\n"));
    for path in READS {
        for (login, expected) in [("", 401), (NOBODY, 403), ("vic:pw", 200), (OPERATOR, 200), (SUPER, 200)] {
            assert_eq!(site.get_as(login, path).0, expected, "{login:?} {path}");
        }
    }
    assert_eq!(site.get_as("vic:pw", "disk/snapshot").0, 403);
}

#[test]
fn only_operators_act_and_only_those_with_all_rights_get_the_data() {
    let site = Site::start();
    let purge = json!({ "keep": 3, "plan": [] });
    for (login, expected) in [("", 401), (NOBODY, 403), (OPERATOR, 200), (SUPER, 200)] {
        let (status, answer) = site.post_as(login, "disk/purge", purge.clone());
        assert_eq!(status, expected, "{login:?}: {answer}");
        let (status, answer) = site.post_as(login, "disk/snapshot", json!({}));
        assert_eq!(status, expected, "{login:?}: {answer}");
    }
    for (login, expected) in [("", 401), (NOBODY, 403), (OPERATOR, 403), (SUPER, 200)] {
        assert_eq!(site.raw(login, "disk/snapshot").status().as_u16(), expected, "{login:?}");
    }
}

#[test]
fn a_read_only_console_has_no_path_that_acts() {
    let site = Site::start_with("");
    for login in ["", SUPER] {
        assert_eq!(site.post_as(login, "disk/purge", json!({ "keep": 3, "plan": [] })).0, 404);
        assert_eq!(site.post_as(login, "disk/snapshot", json!({})).0, 404);
        assert_eq!(site.raw(login, "disk/snapshot").status().as_u16(), 404);
        for path in READS {
            assert_eq!(site.get_as(login, path).0, 200, "{path}");
        }
    }
}

#[test]
fn a_snapshot_for_callers_can_be_switched_off() {
    let site = Site::start_with("admin.readOnly=false\nadmin.snapshot.enabled=false\n");
    assert_eq!(site.get_as(SUPER, "disk/snapshot").0, 403);
    // The server's own snapshots are another thing.
    assert_eq!(site.post_as(OPERATOR, "disk/snapshot", json!({})).0, 200);
}
