//! Logins that somebody makes up, one after the other: as many writers, and as many guesses.

use crate::site::{NOBODY, OPERATOR, SUPER, Site};
use serde_json::json;

/// Each has a session of its own for a while.
#[test]
fn many_made_up_writers_shut_nobody_out() {
    let site = Site::start();
    let create =
        |login: &str, path: String| site.post_as(login, "tree/create", json!({ "path": path, "data": "" }));
    for number in 0..64 {
        let (status, answer) = create(&format!("user{number}:pw"), format!("/made-up-{number}"));
        assert_eq!(status, 200, "{number}: {answer}");
    }
    let (status, answer) = create(NOBODY, "/one-more".into());
    assert_eq!(status, 200, "{answer}");
}

/// The answers say who is a super user, an operator or a viewer, so guesses are counted as at the sign-in.
#[test]
fn guesses_of_a_password_by_the_header_are_limited() {
    let site = Site::start();
    assert_eq!(site.get_as(OPERATOR, "me").0, 200, "proven before");
    let guesses: Vec<u16> = (0..50).map(|number| site.get_as(&format!("super:{number}"), "me").0).collect();
    assert_eq!(guesses[..5], [200; 5]);
    assert!(guesses[5..].iter().all(|status| *status == 429), "{guesses:?}");
    // The right one is not told from the others, and those guesses that were counted are not counted again.
    assert_eq!(site.get_as(SUPER, "me").0, 429);
    assert_eq!(site.get_as("super:0", "me").0, 200);
    for login in ["oli:1", "oli:2", "oli:3", "oli:4", "oli:5"] {
        assert_eq!(site.get_as(login, "me").0, 200);
    }
    assert_eq!(site.get_as("oli:6", "me").0, 429);
    assert_eq!(site.get_as(OPERATOR, "me").1["operator"], true);
    for _ in 0..20 {
        assert_eq!(site.get_as(NOBODY, "me").0, 200, "a program asks again and again");
    }
}
