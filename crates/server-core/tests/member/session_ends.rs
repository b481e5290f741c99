//! Each cause of an end is recorded, and judged rightly. The clock, the disk and what TCP saw are the test's.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    wire::{auth, close_session, create, ping},
};
use ostler_proto::{id::SessionId, password::password_of};
use ostler_server_core::{
    CoreConfig, Input,
    sessions::ends::{
        ActingOperator, EndCause, EndedPart, EndsQuery, EndsReport, HostState, SessionEnd,
        verdict::{Verdict, VerdictKind, judge},
    },
};

const TICK_MS: u64 = 2000;
const TIMEOUT: u64 = TIMEOUT_MS as u64;

fn report(m: &Member, client: Client) -> EndsReport {
    let query = EndsQuery { session: Some(client.session), limit: 100, ..EndsQuery::default() };
    m.server.session_ends(m.now, &query)
}

fn ends(m: &Member, client: Client) -> Vec<SessionEnd> {
    report(m, client).ends
}

fn verdict(m: &Member, client: Client) -> Verdict {
    judge(client.session, &[report(m, client)], &|ms| ms.to_string())
}

/// The client sends nothing, while another one keeps the time going.
fn stay_silent(m: &mut Member, ms: u64) {
    for _ in 0..ms / 500 {
        m.pass(500);
        m.flush();
    }
}

fn lose(m: &mut Member, client: Client, cause: EndCause) {
    m.step(Input::ConnectionLost { conn: client.conn, cause, host: HostState::Unknown });
    m.hang_up(client);
}

#[test]
fn a_session_that_its_client_closes_is_recorded_once() {
    let mut m = Member::new();
    let client = m.join();
    m.pass(700);
    m.ask(client, close_session()).unwrap();
    m.hang_up(client);
    let [end] = ends(&m, client).try_into().unwrap();
    assert_eq!((end.cause, end.part, end.led), (EndCause::ClosedByClient, EndedPart::Session, true));
    let connection = end.connection.unwrap();
    assert_eq!(connection.gaps_ms, [700]);
    assert_eq!(connection.last_heard_ms - connection.established_ms, 700);
    assert_eq!(verdict(&m, client).kind, VerdictKind::ClosedByClient);
}

/// The acts of the client's host decide.
#[test]
fn a_silent_client_is_judged_by_what_its_host_did() {
    for (host, kind) in [
        (HostState::Acknowledged, VerdictKind::ClientPaused),
        (HostState::Closed, VerdictKind::ClientPaused),
        (HostState::Silent, VerdictKind::Network),
        (HostState::Unknown, VerdictKind::Unknown),
    ] {
        let mut m = Member::new();
        let client = m.join();
        for _ in 0..3 {
            m.pass(1000);
            m.ask(client, ping()).unwrap();
        }
        stay_silent(&mut m, TIMEOUT + 2 * TICK_MS);
        m.step(Input::ConnectionLost { conn: client.conn, cause: EndCause::Lost, host });
        m.hang_up(client);
        let [end] = ends(&m, client).try_into().unwrap();
        let EndCause::Expired { timeout_ms, silent_ms } = end.cause else { panic!("{end:?}") };
        assert_eq!(timeout_ms, TIMEOUT_MS);
        assert!((TIMEOUT..=TIMEOUT + TICK_MS).contains(&silent_ms), "{silent_ms}");
        let connection = end.connection.unwrap();
        assert_eq!((connection.gaps_ms, connection.longest_gap_ms), (vec![1000; 3], 1000));
        assert_eq!(verdict(&m, client).kind, kind, "{host:?}");
    }
}

#[test]
fn a_lost_connection_and_the_expiry_that_follows_are_linked() {
    for (cause, kind) in [
        (EndCause::ConnectionClosed, VerdictKind::ClientGone),
        (EndCause::ConnectionReset, VerdictKind::ClientGone),
        (EndCause::ConnectionTimedOut, VerdictKind::Network),
        (EndCause::FrameLength { length: 1 << 30, limit: 1 << 20 }, VerdictKind::ClientFault),
        (EndCause::BadFrame { problem: "no request header".into() }, VerdictKind::ClientFault),
        (EndCause::SlowReader { blocked_ms: 11_000 }, VerdictKind::ClientFault),
        (EndCause::TooManyUnread, VerdictKind::ClientFault),
        (EndCause::TlsFailed { error: "bad record".into() }, VerdictKind::ClientFault),
        (EndCause::Lost, VerdictKind::Unknown),
    ] {
        let mut m = Member::new();
        let client = m.join();
        m.pass(1000);
        m.ask(client, ping()).unwrap();
        lose(&mut m, client, cause.clone());
        assert_eq!(ends(&m, client).len(), 1);
        stay_silent(&mut m, TIMEOUT + 2 * TICK_MS);
        let [lost, expired] = ends(&m, client).try_into().unwrap();
        assert_eq!((&lost.cause, lost.part), (&cause, EndedPart::Connection));
        assert_eq!((expired.part, expired.earlier), (EndedPart::Session, Some(lost.number)));
        let verdict = verdict(&m, client);
        assert_eq!(verdict.kind, kind, "{cause:?}: {verdict:?}");
    }
}

#[test]
fn a_connection_that_the_server_closes_before_its_session_is_open_has_no_record() {
    let mut m = Member::new();
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, SessionId::NONE, &[0; 16]);
    m.step(Input::CloseConnection(conn));
    m.step(Input::ConnectionLost { conn, cause: EndCause::TooManyUnread, host: HostState::Unknown });
    m.step(Input::Disconnected { conn });
    let all = m.server.session_ends(m.now, &EndsQuery { limit: 100, ..EndsQuery::default() });
    assert!(all.ends.is_empty(), "{:?}", all.ends);
}

/// The server cannot know of a client that comes back after its end whether the network or the client was slow to
/// notice; but the client's side has dropped the connection, and reached no server for the rest of the timeout.
#[test]
fn a_client_that_comes_back_too_late_was_cut_off() {
    let mut m = Member::new();
    let client = m.join();
    lose(&mut m, client, EndCause::ConnectionReset);
    stay_silent(&mut m, TIMEOUT + 2 * TICK_MS);
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, client.session, &password_of(client.session));
    assert!(m.connected(conn).is_none());
    let [_, expired] = ends(&m, client).try_into().unwrap();
    assert_eq!(expired.returns.len(), 1);
    assert_eq!(expired.returns[0].refused, Some(EndCause::SessionGone));
    assert_eq!(verdict(&m, client).kind, VerdictKind::Network);
}

#[test]
fn a_client_that_comes_back_in_time_has_lost_nothing() {
    let mut m = Member::new();
    let client = m.join();
    lose(&mut m, client, EndCause::ConnectionReset);
    m.pass(1000);
    let again = m.rejoin(client, TIMEOUT_MS);
    let report = report(&m, client);
    assert_eq!(report.living.len(), 1);
    let [lost] = report.ends.try_into().unwrap();
    assert!(lost.returns[0].refused.is_none());
    assert_eq!(verdict(&m, client).kind, VerdictKind::Moved);
    // While the first connection hangs, a second one takes the session.
    m.rejoin(again, TIMEOUT_MS);
    let [_, moved] = ends(&m, client).try_into().unwrap();
    assert!(matches!(moved.cause, EndCause::Moved { to: Some(_) }));
    assert_eq!(verdict(&m, client).kind, VerdictKind::Moved);
}

#[test]
fn operators_are_named() {
    let mut m = Member::new();
    let (ended, closed) = (m.join(), m.join());
    m.step(Input::ExpireSession(ended.session));
    m.flush();
    m.step(Input::CloseConnection(closed.conn));
    assert_eq!(ends(&m, ended)[0].cause, EndCause::ByOperator { by: None });
    assert_eq!(verdict(&m, ended).kind, VerdictKind::Operator);
    assert_eq!(verdict(&m, closed).kind, VerdictKind::Operator);
    assert_eq!(ends(&m, closed)[0].part, EndedPart::Connection);
    // The client of the closed connection does not come back.
    m.hang_up(closed);
    stay_silent(&mut m, TIMEOUT + 2 * TICK_MS);
    assert_eq!(verdict(&m, closed).kind, VerdictKind::Operator);
}

#[test]
fn the_record_says_which_operator_it_was() {
    let mut m = Member::new();
    let (ended, other) = (m.join(), m.join());
    let by = ActingOperator { name: "digest:ann".into(), address: [10, 0, 0, 9].into() };
    m.step(Input::EndSession { session: ended.session, by: by.clone() });
    m.step(Input::EndSession { session: SessionId(77), by: by.clone() });
    m.flush();
    assert!(!m.server.has_session(ended.session) && m.server.has_session(other.session));
    assert_eq!(ends(&m, ended)[0].cause, EndCause::ByOperator { by: Some(by) });
    let reason = verdict(&m, ended).reason;
    assert_eq!(reason, "an operator (digest:ann from 10.0.0.9) ended the session; it did not expire");
    let report = report(&m, ended);
    let keys = m.server.end_keys();
    assert_eq!(keys.len(), 1);
    assert_eq!(m.server.ends_numbered(m.now, &[keys[0].number, 99]).ends, report.ends);
}

#[test]
fn a_failed_authentication_is_named() {
    let mut m = Member::new();
    let client = m.join();
    m.send(client, auth("no-such-scheme", b"x"));
    assert_eq!(ends(&m, client)[0].cause, EndCause::AuthFailed);
    assert_eq!(verdict(&m, client).kind, VerdictKind::AuthFailed);
}

#[test]
fn a_paused_server_is_named() {
    let mut m = Member::new();
    let client = m.join();
    m.pass(1000);
    m.ask(client, ping()).unwrap();
    lose(&mut m, client, EndCause::ConnectionReset);
    m.pause(TIMEOUT);
    stay_silent(&mut m, 4 * TICK_MS);
    let report = report(&m, client);
    let [pause] = report.pauses[..] else { panic!("{:?}", report.pauses) };
    assert!((TIMEOUT as i64 - 1000..=TIMEOUT as i64).contains(&(pause.to_ms - pause.from_ms)), "{pause:?}");
    assert_eq!(verdict(&m, client).kind, VerdictKind::Server);
}

/// A server without work is not taken for one that did not run.
#[test]
fn an_idle_time_is_no_pause() {
    let mut m = Member::new();
    m.pass(600_000);
    let client = m.join();
    stay_silent(&mut m, TIMEOUT + 2 * TICK_MS);
    assert_eq!(report(&m, client).pauses, []);
}

#[test]
fn a_restarted_server_is_named() {
    let mut m = Member::new();
    let client = m.join();
    m.crash(0);
    stay_silent(&mut m, TIMEOUT + 2 * TICK_MS);
    let [end] = ends(&m, client).try_into().unwrap();
    assert!(end.connection.is_none() && end.earlier.is_none());
    assert_eq!(verdict(&m, client).kind, VerdictKind::Server);
}

#[test]
fn ephemerals_and_the_next_in_line_are_listed() {
    let mut m = Member::new();
    let (first, second) = (m.join(), m.join());
    m.ask(first, create("/plain").ephemeral()).unwrap();
    m.ask(first, create("/lock-").ephemeral().sequential()).unwrap();
    m.ask(second, create("/lock-").ephemeral().sequential()).unwrap();
    m.ask(first, create("/lock-").ephemeral().sequential()).unwrap();
    m.ask(first, close_session()).unwrap();
    let [end] = ends(&m, first).try_into().unwrap();
    assert_eq!(end.ephemerals.count, 3);
    assert_eq!(end.ephemerals.paths.len(), 3);
    let [passed] = &end.ephemerals.passed[..] else { panic!("{:?}", end.ephemerals.passed) };
    assert_eq!(
        (passed.session, passed.from.ends_with("0000000001"), passed.to.ends_with("0000000002")),
        (second.session, true, true)
    );
    assert!(verdict(&m, first).facts.iter().any(|fact| fact.contains("first in line")));
}

#[test]
fn records_are_bounded_and_paged() {
    let mut m = Member::with(CoreConfig::default());
    for _ in 0..5000 {
        let client = m.join();
        m.ask(client, close_session()).unwrap();
        m.hang_up(client);
        m.forget();
    }
    let all = EndsQuery { limit: 700, ..EndsQuery::default() };
    let mut page = m.server.session_ends(m.now, &all);
    assert!(page.has_forgotten);
    let mut numbers: Vec<u64> = page.ends.iter().map(|end| end.number).collect();
    while let Some(after) = page.next {
        page = m.server.session_ends(m.now, &EndsQuery { after, ..all });
        numbers.extend(page.ends.iter().map(|end| end.number));
    }
    assert_eq!(numbers, (905..=5000).collect::<Vec<u64>>());
}

#[test]
fn clients_are_found_by_their_addresses() {
    let mut m = Member::new();
    let client = m.join();
    m.ask(client, close_session()).unwrap();
    let living = m.join();
    let address = ends(&m, client)[0].connection.as_ref().unwrap().address;
    for (subject, found) in
        [(address.to_string(), 1), (address.ip().to_string(), 1), ("9.9.9.9".to_owned(), 0)]
    {
        let query = EndsQuery::of(&subject).unwrap();
        let report = m.server.session_ends(m.now, &query);
        let conns = m.server.connection_numbers();
        let living = m.server.living_at(m.now, query.address.unwrap(), &conns);
        assert_eq!((report.ends.len(), living.len()), (found, found), "{subject}");
    }
    assert!(EndsQuery::of("0xzz").is_none() && EndsQuery::of("host").is_none());
    assert_eq!(
        EndsQuery::of("0xff00000000000001").unwrap().session.unwrap().0,
        0xff00_0000_0000_0001_u64 as i64
    );
    assert_eq!(verdict(&m, living).kind, VerdictKind::Lives);
}
