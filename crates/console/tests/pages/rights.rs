//! The rights: each path for nobody, a viewer and an operator.

use crate::{raw::Raw, site::Site};
use serde_json::json;

const SHOWN: [&str; 8] =
    ["sessions", "sessions?state=ended", "slow", "hot", "pauses", "watches", "watches?by=session", "clients"];

fn viewers() -> String {
    let of = |login| ostler_server_core::auth::digest_id(login);
    format!("admin.viewers=digest:{}\nadmin.operators=digest:{}", of("vera:pw"), of("otto:pw"))
}

#[test]
fn pages_are_for_viewers() {
    let open = Site::start();
    let closed = Site::start_with(&viewers());
    for path in SHOWN {
        assert_eq!(open.get_as("", path).0, 200, "{path}");
        for (login, status, code) in [
            ("", 401, Some("SIGN_IN")),
            ("ann:pw", 403, Some("FORBIDDEN")),
            ("vera:pw", 200, None),
            ("otto:pw", 200, None),
            ("super:secret", 200, None),
        ] {
            let (got, page) = closed.get_as(login, path);
            assert_eq!((got, page["code"].as_str()), (status, code), "{path} {login:?}: {page}");
        }
    }
}

#[test]
fn acts_are_for_operators_and_need_a_token_or_a_login() {
    let site = Site::start_with(&viewers());
    let raw = Raw::connect(site.clients);
    let expire = format!("sessions/{}/expire", raw.session);
    for path in [&*expire, "hot/measure"] {
        for (login, status) in [("ann:pw", 403), ("vera:pw", 403)] {
            let (got, answer) = site.post_as(login, path, "{}");
            assert_eq!((got, &answer["code"]), (status, &json!("FORBIDDEN")), "{path} {login}: {answer}");
        }
        let json = ("Content-Type", "application/json".to_owned());
        let (got, answer) = site.post_with(std::slice::from_ref(&json), path, "{}");
        assert_eq!((got, &answer["code"]), (403, &json!("OTHER_SITE")), "{path}: {answer}");
        let login = ("Authorization", "digest otto:pw".to_owned());
        let (got, answer) = site.post_with(std::slice::from_ref(&login), path, "{}");
        assert_eq!((got, &answer["code"]), (400, &json!("BAD_REQUEST")), "{path}: {answer}");
        let (got, answer) =
            site.post_with(&[login, json, ("Origin", "http://evil.example".into())], path, "{}");
        assert_eq!((got, &answer["code"]), (403, &json!("OTHER_SITE")), "{path}: {answer}");
    }
    assert!(site.handle.inspect(|server| server.has_session(raw.session)));
    assert_eq!(site.post_as("otto:pw", &expire, "{}").0, 200);
    assert_eq!(site.post_as("otto:pw", "hot/measure", r#"{"seconds": 1}"#).0, 200);
}

/// A page of somebody who has not signed in has a token, and no right.
#[test]
fn a_token_alone_gives_no_right() {
    let site = Site::start();
    for path in ["sessions/0x1/expire", "hot/measure"] {
        let (status, answer) = site.post_as("", path, "{}");
        assert_eq!((status, &answer["code"]), (401, &json!("SIGN_IN")), "{path}: {answer}");
    }
}

#[test]
fn a_console_that_is_read_only_has_no_acts() {
    let site = Site::start_with("admin.readOnly=true");
    for path in ["sessions/0x1/expire", "hot/measure"] {
        let (status, answer) = site.post_as("super:secret", path, "{}");
        let refused = (status, answer["code"].as_str());
        assert!(refused == (404, Some("NOT_FOUND")), "{path}: {answer}");
    }
    assert_eq!(site.get_as("", "sessions/0x1").0, 404);
}
