//! Logins by SASL: the tokens go to the mechanism outside, and its answers decide.

use crate::{
    member::{Client, Member},
    wire::{create, get, sasl},
};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    error::ErrorCode,
};
use ostler_server_core::{CoreConfig, Input, SaslAnswer};

fn member(adjust: impl FnOnce(&mut CoreConfig)) -> Member {
    let mut config = CoreConfig { sasl: true, sasl_acls: true, ..CoreConfig::default() };
    adjust(&mut config);
    Member::with(config)
}

/// The mechanism answers the token that waits.
fn answer(m: &mut Member, answer: SaslAnswer) {
    let (conn, xid, _) = m.tokens.remove(0);
    m.step(Input::SaslAnswered { conn, xid, answer });
}

fn log_in(m: &mut Member, client: Client, user: &str) {
    m.send(client, sasl(b""));
    answer(m, SaslAnswer::Challenge(b"who?".to_vec()));
    m.send(client, sasl(b"me"));
    answer(m, SaslAnswer::Complete { token: None, user: user.to_owned() });
    assert_eq!(m.seen(client).len(), 2);
}

#[test]
fn a_user_may_do_what_the_lists_of_its_name_allow() {
    let mut m = member(|_| {});
    let (bob, eve) = (m.join(), m.join());
    log_in(&mut m, bob, "bob");
    log_in(&mut m, eve, "eve");
    m.ask(bob, create("/b").acl(&[Acl { perms: Perms::ALL, id: Id::new("sasl", "bob") }])).unwrap();
    assert!(m.ask(bob, get("/b")).is_ok());
    assert_eq!(m.ask(eve, get("/b")), Err(ErrorCode::NoAuth));
}

#[test]
fn a_super_user_may_do_everything() {
    let mut m = member(|config| config.sasl_super_users = vec!["root".into()]);
    let (bob, root) = (m.join(), m.join());
    log_in(&mut m, bob, "bob");
    log_in(&mut m, root, "root");
    m.ask(bob, create("/b").acl(&[Acl { perms: Perms::ALL, id: Id::new("sasl", "bob") }])).unwrap();
    assert!(m.ask(root, get("/b")).is_ok());
}

#[test]
fn tokens_are_answered_outside_the_order_of_requests() {
    let mut m = member(|_| {});
    let client = m.join();
    m.send(client, create("/a"));
    m.send(client, sasl(b""));
    answer(&mut m, SaslAnswer::Challenge(b"who?".to_vec()));
    assert_eq!(m.seen(client).len(), 1, "the write is not on disk yet");
    m.flush();
    assert_eq!(m.seen(client).len(), 1);
}

#[test]
fn a_second_token_before_the_answer_ends_the_connection() {
    let mut m = member(|_| {});
    let client = m.join();
    m.send(client, sasl(b""));
    m.send(client, sasl(b""));
    assert_eq!((m.seen(client).last().map(String::as_str), m.tokens.len()), (Some("closed: Protocol"), 1));
    // The mechanism's answer to the first one comes too late.
    answer(&mut m, SaslAnswer::Complete { token: None, user: "bob".into() });
    assert!(m.seen(client).is_empty());
}

#[test]
fn a_token_that_is_too_long_never_reaches_the_mechanism() {
    let mut m = member(|_| {});
    let client = m.join();
    m.send(client, sasl(&vec![0; 64 << 10]));
    assert_eq!(m.tokens.len(), 1);
    let other = m.join();
    m.send(other, sasl(&vec![0; (64 << 10) + 1]));
    assert_eq!(m.tokens.len(), 1);
    assert_eq!(m.seen(other).last().map(String::as_str), Some("closed: AuthFailed"));
}

#[test]
fn a_refused_client_stays_only_where_that_is_allowed() {
    for (may_stay, is_enforced, stays) in
        [(false, false, false), (true, false, true), (true, true, false), (false, true, false)]
    {
        let mut m = member(|config| {
            config.allow_sasl_failed_clients = may_stay;
            config.enforced_auth_schemes = is_enforced.then(|| "sasl".to_owned()).into_iter().collect();
        });
        let client = m.join();
        m.send(client, sasl(b"x"));
        answer(&mut m, SaslAnswer::Refused);
        assert_eq!(m.server.is_open(client.conn), stays, "{may_stay} {is_enforced}");
        let code = if is_enforced { "SessionClosedRequireSaslAuth" } else { "AuthFailed" };
        assert!(stays || m.seen(client)[0].contains(code));
    }
}

#[test]
fn without_a_mechanism_the_answer_is_empty_and_proves_nothing() {
    let mut m = member(|config| config.sasl = false);
    let client = m.join();
    m.send(client, sasl(b"x"));
    assert!(m.tokens.is_empty());
    let own = Acl { perms: Perms::ALL, id: Id::new("auth", "") };
    assert!(m.ask(client, create("/a").acl(&[own])).is_err());
}
