//! Sessions whose passwords are made with a secret.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    wire::{close_session, create},
};
use ostler_proto::{
    connect::{ConnectRequest, Password},
    id::SessionId,
    password::password_of,
};
use ostler_server_core::{
    CoreConfig,
    passwords::{NewPasswords, Passwords, Secret},
};

fn of(new: NewPasswords, secrets: &[&[u8]]) -> CoreConfig {
    let secrets = secrets.iter().map(|bytes| Secret::new(bytes).unwrap()).collect();
    CoreConfig { passwords: Passwords { new, secrets }, ..CoreConfig::default() }
}

const ONE: &[u8] = b"the first of two secrets";
const TWO: &[u8] = b"the second of two secrets";

/// A new session, and its password.
fn joins(m: &mut Member) -> (Client, Password) {
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, SessionId::NONE, &[0; 16]);
    m.flush();
    let response = m.connected(conn).unwrap();
    (Client { conn, session: response.session }, response.password)
}

/// The result for a caller that names a session: the password that it gets, or the end of its connection.
fn names(m: &mut Member, session: SessionId, password: Option<&[u8]>) -> Result<Password, Vec<String>> {
    let conn = m.dial();
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: TIMEOUT_MS,
        session,
        password,
        read_only: Some(false),
    };
    m.shake_hands_as(conn, request);
    m.connected(conn).map(|response| response.password).ok_or_else(|| m.seen(conn))
}

#[test]
fn a_session_id_without_the_password_does_not_take_the_session() {
    let mut m = Member::with(of(NewPasswords::Secret, &[ONE]));
    let (owner, password) = joins(&mut m);
    assert!(owner.session.has_secret());
    assert_ne!(password, password_of(owner.session));
    let derived = password_of(owner.session);
    for wrong in [None, Some(&derived[..]), Some(&[0; 16]), Some(&password[..15])] {
        // No word of an expired session: whoever asks may be its owner, who is at the wrong server.
        assert_eq!(names(&mut m, owner.session, wrong), Err(vec!["closed: PasswordUnknown".into()]));
    }
    m.ask(owner, create("/a")).unwrap();
    assert_eq!(m.seen(owner), [""; 0], "its owner does not notice");
    assert_eq!(names(&mut m, owner.session, Some(&password)), Ok(password));
    assert_eq!(m.seen(owner), ["closed: SessionMoved"]);
}

#[test]
fn a_session_that_is_gone_is_gone_whatever_its_password() {
    let mut m = Member::with(of(NewPasswords::Secret, &[ONE]));
    let (owner, password) = joins(&mut m);
    m.ask(owner, close_session()).unwrap();
    for given in [Some(&password[..]), Some(&[0; 16]), None] {
        let told = names(&mut m, owner.session, given);
        assert_eq!(told, Err(vec!["closed: SessionExpired".into()]));
    }
}

/// A server is restarted for each step, and all its clients come back.
#[test]
fn sessions_survive_the_way_to_secrets_and_back() {
    let mut m = Member::with(of(NewPasswords::Derived, &[ONE]));
    let mut all = vec![joins(&mut m)];
    for (config, is_secret) in [
        (of(NewPasswords::Secret, &[ONE]), true),
        (of(NewPasswords::Secret, &[TWO, ONE]), true),
        (of(NewPasswords::Secret, &[TWO]), true),
        (of(NewPasswords::Leaving, &[TWO]), false),
        (CoreConfig::default(), false),
    ] {
        m.config = config;
        m.crash(0);
        for (client, password) in &mut all {
            *password = names(&mut m, client.session, Some(password)).unwrap();
        }
        let (client, password) = joins(&mut m);
        assert_eq!(client.session.has_secret(), is_secret);
        all.push((client, password));
    }
    assert_eq!(m.server.tree().sessions().count(), all.len());
    for (client, password) in all {
        assert_eq!(password, password_of(client.session), "what a Java server takes");
    }
}
