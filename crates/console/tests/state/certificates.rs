//! Sign-ins by a certificate.

use crate::site::{CERTIFICATE, SUPER, Site};
use serde_json::{Value, json};

fn schemes(me: &Value) -> Vec<&str> {
    me["ids"].as_array().unwrap().iter().map(|id| id["scheme"].as_str().unwrap()).collect()
}

/// The certificate may have ended, or been revoked, since.
#[test]
fn a_cookie_does_not_stand_for_a_certificate() {
    let site = Site::start_with("admin.operators=x509:CN=ann\nadmin.readOnly=false\n");
    let shown = (CERTIFICATE, "CN=ann");
    let body = json!({ "scheme": "x509" });
    let ((status, answer), _) = site.sign_in_with(&[], &body);
    assert_eq!((status, &answer["code"]), (401, &json!("SIGN_IN")), "{answer}");
    let ((status, _), cookie) = site.sign_in_with(&[shown], &body);
    assert_eq!(status, 200);
    let (_, me) = site.get_with(&[shown, ("Cookie", &cookie)], "me");
    assert_eq!((schemes(&me), &me["operator"]), (vec!["ip", "x509"], &json!(true)), "{me}");
    let (_, me) = site.get_with_cookie(&cookie, "me");
    assert_eq!((schemes(&me), &me["operator"]), (vec!["ip"], &json!(false)), "{me}");
}

#[test]
fn the_next_sign_in_ends_the_one_before() {
    let site = Site::start();
    let (_, first) = site.sign_in(&site.asked.to_string(), SUPER);
    let body = json!({ "scheme": "digest", "user": "ned", "password": "pw" });
    let (_, second) = site.sign_in_with(&[("Cookie", &first)], &body);
    assert_eq!(site.get_with_cookie(&second, "me").1["name"], "ned");
    assert_eq!(site.get_with_cookie(&first, "me").1["name"], Value::Null);
}
