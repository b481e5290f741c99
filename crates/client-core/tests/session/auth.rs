//! Identities and SASL.

use crate::rig::{Rig, RigEvent, SESSION, TIMEOUT, config, get};
use ostler_client_core::{
    AttemptId, AuthInfo, Config, ConnectionState, Failure, Input, RequestId, SaslCredentials, SaslLogin,
    SaslStep,
};
use ostler_proto::{id::Xid, jute::Writer, request::Request};

const AUTH: i32 = Xid::AUTH.0;
const REFUSED: i32 = -115;

fn info(name: &str) -> AuthInfo {
    AuthInfo { scheme: "digest".into(), auth: name.as_bytes().to_vec() }
}

fn packet(name: &'static str) -> (i32, Request<'static>) {
    (AUTH, Request::Auth { scheme: Some("digest".into()), auth: Some(name.as_bytes()) })
}

#[test]
fn identities_are_sent_first_on_every_connection() {
    let mut rig = Rig::new(Config { auth: vec![info("a")], ..config() });
    rig.get("/x");
    rig.deadline();
    rig.attach();
    assert_eq!(rig.sent(), [packet("a"), (1, get("/x", false))]);
    rig.reply(AUTH, 0, 0);
    rig.take_events();
    rig.step(Input::AddAuth { id: RequestId(50), auth: info("b") });
    assert_eq!(rig.sent(), [packet("b")]);
    // It is answered before earlier requests.
    rig.reply(AUTH, 0, 0);
    assert_eq!(rig.take_events(), [RigEvent::Reply(50, 0)]);
    assert_eq!(rig.reattach(), [packet("a"), packet("b")]);
}

#[test]
fn an_identity_waits_for_a_connection_and_is_then_answered() {
    let mut rig = Rig::online();
    rig.step(Input::AddAuth { id: RequestId(50), auth: info("b") });
    assert_eq!(rig.reattach(), [packet("b")]);
    rig.reply(AUTH, 0, 0);
    assert_eq!(rig.take_events().last(), Some(&RigEvent::Reply(50, 0)));
}

/// Lets every attempt to connect fail until the condition holds.
fn fail_all_attempts(rig: &mut Rig, until: impl Fn(&Rig) -> bool) {
    while !until(rig) {
        rig.deadline();
        if rig.wanted.is_some() {
            rig.lose();
        }
    }
}

#[test]
fn an_identity_waits_for_a_connection_no_longer_than_a_request() {
    let limit = config().connection_timeout;
    for sent in [false, true] {
        let mut rig = Rig::online();
        let add = Input::AddAuth { id: RequestId(50), auth: info("b") };
        match sent {
            true => {
                rig.step(add);
                rig.wait(limit / 2);
                rig.lose();
            }
            false => {
                rig.lose();
                rig.step(add);
            }
        }
        let (asked, request) = (rig.now, rig.get("/x"));
        rig.take_events();
        fail_all_attempts(&mut rig, |rig| !rig.heard.is_empty());
        assert_eq!(rig.now.since(asked), limit);
        let mut heard = rig.take_events();
        heard.sort_by_key(|heard| *heard == RigEvent::Failed(50, Failure::NotConnected));
        assert_eq!(heard, [request, 50].map(|id| RigEvent::Failed(id, Failure::NotConnected)));
        // A second request for the same identity does not send it twice.
        rig.deadline();
        rig.attach();
        assert_eq!(rig.sent(), []);
    }
}

#[test]
fn a_waiting_identity_fails_when_the_session_is_lost() {
    let mut rig = Rig::online_with(Config { connection_timeout: 3 * TIMEOUT, ..config() });
    rig.lose();
    rig.take_events();
    rig.step(Input::AddAuth { id: RequestId(50), auth: info("b") });
    fail_all_attempts(&mut rig, |rig| rig.session.session_at(rig.now).is_none());
    let lost = RigEvent::State(ConnectionState::Lost, Some(SESSION));
    assert_eq!(rig.take_events(), [lost, RigEvent::Failed(50, Failure::SessionExpired)]);
    rig.deadline();
    rig.attach();
    assert_eq!(rig.sent(), []);
}

#[test]
fn a_refused_identity_is_not_sent_again() {
    let mut rig = Rig::online();
    rig.step(Input::AddAuth { id: RequestId(50), auth: info("a") });
    rig.step(Input::AddAuth { id: RequestId(51), auth: info("b") });
    rig.sent();
    rig.reply(AUTH, 0, REFUSED);
    assert_eq!(rig.take_events(), [RigEvent::Failed(50, Failure::AuthFailed)]);
    assert_eq!(rig.reattach(), [packet("b")]);
}

#[test]
fn answers_lost_with_a_connection_are_not_confused_with_later_ones() {
    let mut rig = Rig::online();
    rig.step(Input::AddAuth { id: RequestId(50), auth: info("a") });
    rig.sent();
    assert_eq!(rig.reattach(), [packet("a")]);
    rig.take_events();
    rig.reply(AUTH, 0, REFUSED);
    rig.step(Input::AddAuth { id: RequestId(51), auth: info("b") });
    rig.reply(AUTH, 0, 0);
    assert_eq!(rig.take_events(), [RigEvent::Failed(50, Failure::AuthFailed), RigEvent::Reply(51, 0)]);
}

#[test]
fn a_refused_first_identity_ends_the_client() {
    let mut rig = Rig::new(Config { auth: vec![info("a")], ..config() });
    let id = rig.get("/x");
    rig.deadline();
    rig.attach();
    rig.take_events();
    rig.reply(AUTH, 0, REFUSED);
    let heard = rig.take_events();
    assert_eq!(heard[0], RigEvent::Failed(id, Failure::ConnectionLoss), "it was sent");
    assert_eq!(heard[1], RigEvent::State(ConnectionState::Closed, Some(SESSION)));
    let late = rig.get("/x");
    assert_eq!(rig.take_events(), [RigEvent::Failed(late, Failure::AuthFailed)]);
}

fn sasl() -> Config {
    let sasl = SaslCredentials { user: "bob".into(), password: "pw".into() };
    Config { sasl: Some(SaslLogin::DigestMd5(sasl)), ..config() }
}

fn token(rig: &mut Rig, xid: i32, error: i32, token: Option<&[u8]>) {
    let mut payload = Vec::new();
    payload.i32(xid);
    payload.i64(0);
    payload.i32(error);
    payload.buffer(token);
    rig.frame(&payload);
}

const CHALLENGE: &[u8] = br#"realm="zk-sasl-md5",nonce="abc",charset=utf-8,algorithm=md5-sess,qop="auth""#;

#[test]
fn sasl_precedes_all_other_requests() {
    let mut rig = Rig::new(sasl());
    rig.get("/x");
    rig.deadline();
    rig.attach();
    assert_eq!(rig.sent(), [(1, Request::Sasl(b""))]);
    token(&mut rig, 1, 0, Some(CHALLENGE));
    let sent = rig.sent();
    let [(2, Request::Sasl(answer))] = sent[..] else { panic!("{sent:?}") };
    let answer = String::from_utf8_lossy(answer);
    assert!(answer.contains(r#"username="bob",realm="zk-sasl-md5",nonce="abc",nc=00000001"#), "{answer}");
    assert!(rig.take_events().is_empty(), "no connection is reported before authentication");
    token(&mut rig, 2, 0, Some(proof(&answer).as_bytes()));
    assert_eq!(rig.sent(), [(3, get("/x", false))]);
    assert_eq!(rig.take_events(), [RigEvent::State(ConnectionState::Connected, Some(SESSION))]);
}

/// The proof of a server that knows the password. The computation has its own tests.
fn proof(answer: &str) -> String {
    use md5::{Digest, Md5};
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let cnonce = answer.split("cnonce=\"").nth(1).unwrap().split('"').next().unwrap();
    let mut first = Md5::digest("bob:zk-sasl-md5:pw").to_vec();
    first.extend(format!(":abc:{cnonce}").bytes());
    let first = hex(&Md5::digest(&first));
    let second = hex(&Md5::digest(":zookeeper/zk-sasl-md5"));
    format!("rspauth={}", hex(&Md5::digest(format!("{first}:abc:00000001:{cnonce}:auth:{second}"))))
}

#[test]
fn a_server_with_a_wrong_proof_or_a_refusal_ends_the_client() {
    for (error, first) in [(REFUSED, None), (0, None), (0, Some(&b"nonsense"[..]))] {
        let mut rig = Rig::new(sasl());
        rig.deadline();
        rig.attach();
        token(&mut rig, 1, error, first);
        assert!(rig.take_events().contains(&RigEvent::Ended));
        let id = rig.get("/x");
        assert_eq!(rig.take_events(), [RigEvent::Failed(id, Failure::AuthFailed)]);
    }
    let mut rig = Rig::new(sasl());
    rig.deadline();
    rig.attach();
    token(&mut rig, 1, 0, Some(CHALLENGE));
    token(&mut rig, 2, 0, Some(b"rspauth=00000000000000000000000000000000"));
    assert!(rig.take_events().contains(&RigEvent::Ended));
}

/// A rig whose caller speaks the mechanism, at the first token.
fn of_caller() -> Rig {
    let mut rig = Rig::new(Config { sasl: Some(SaslLogin::OfCaller), ..config() });
    rig.get("/x");
    rig.deadline();
    rig.attach();
    assert_eq!(rig.take_events(), [RigEvent::SaslToken(None)]);
    assert_eq!(rig.sent(), []);
    rig
}

fn say(rig: &mut Rig, step: SaslStep) {
    let attempt = rig.attempt();
    rig.step(Input::SaslStep { attempt, step });
}

#[test]
fn a_mechanism_of_the_caller_is_asked_for_each_token() {
    let mut rig = of_caller();
    say(&mut rig, SaslStep::Send(b"first".to_vec()));
    assert_eq!(rig.sent(), [(1, Request::Sasl(b"first"))]);
    token(&mut rig, 1, 0, Some(b"answer"));
    assert_eq!(rig.take_events(), [RigEvent::SaslToken(Some(b"answer".to_vec()))]);
    say(&mut rig, SaslStep::Send(vec![]));
    assert_eq!(rig.sent(), [(2, Request::Sasl(b""))]);
    token(&mut rig, 2, 0, None);
    assert_eq!(rig.take_events(), [RigEvent::SaslToken(None)]);
    say(&mut rig, SaslStep::Complete);
    assert_eq!(rig.sent(), [(3, get("/x", false))]);
    assert_eq!(rig.take_events(), [RigEvent::State(ConnectionState::Connected, Some(SESSION))]);
}

#[test]
fn a_step_of_an_earlier_connection_is_ignored() {
    let mut rig = of_caller();
    let earlier = rig.attempt();
    rig.lose();
    rig.deadline();
    rig.attach();
    rig.take_events();
    assert_ne!(earlier, AttemptId(rig.attempt().0));
    rig.step(Input::SaslStep { attempt: earlier, step: SaslStep::Complete });
    assert_eq!((rig.sent(), rig.take_events()), (vec![], vec![]));
}

#[test]
fn a_refused_login_ends_the_client_and_a_missing_ticket_does_not() {
    let mut refused = of_caller();
    say(&mut refused, SaslStep::Refused);
    assert_eq!(refused.session.failure(), Some(Failure::AuthFailed));
    let mut by_server = of_caller();
    say(&mut by_server, SaslStep::Send(b"first".to_vec()));
    token(&mut by_server, 1, REFUSED, None);
    assert_eq!(by_server.session.failure(), Some(Failure::AuthFailed));
    let mut unavailable = of_caller();
    say(&mut unavailable, SaslStep::Unavailable);
    assert_eq!(unavailable.session.failure(), None);
    unavailable.deadline();
    unavailable.attach();
    assert_eq!(unavailable.take_events(), [RigEvent::SaslToken(None)]);
}

#[test]
fn a_server_that_speaks_out_of_turn_loses_its_connection() {
    let mut rig = of_caller();
    token(&mut rig, 1, 0, None);
    assert_eq!(rig.wanted, None);
    assert_eq!(rig.session.failure(), None);
}

#[test]
fn a_reply_that_asks_for_sasl_ends_the_client() {
    let mut rig = Rig::online();
    rig.watch(1, &get("/x", true), 0);
    assert_eq!(rig.session.failure(), None);
    let id = rig.get("/x");
    rig.reply(2, 0, -124);
    let heard = rig.take_events();
    assert_eq!(heard[..2], [RigEvent::Reply(id, -124), RigEvent::WatchesEnded(vec![1])]);
    assert!(heard.contains(&RigEvent::Ended));
    assert_eq!(rig.session.failure(), Some(Failure::AuthFailed));
}

#[test]
fn debug_output_has_no_secrets() {
    let config = Config { auth: vec![info("user:secret")], ..sasl() };
    let text = format!("{config:?}");
    assert!(!text.contains("secret") && !text.contains("115, 101") && !text.contains("pw"), "{text}");
}
