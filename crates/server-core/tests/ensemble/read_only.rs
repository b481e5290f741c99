//! Read-only mode: a server without a leader, and read-only clients.

use crate::member::{Member, at, config};
use ostler_proto::{
    connect::ConnectRequest, error::ErrorCode, id::SessionId, jute::Writer, op::Op, password::password_of,
    stat::ExtendedTypes,
};
use ostler_server_core::{
    ClientRequest, CloseReason, ConnId, Effect, Input,
    quorum::{LocalSessions, MemberMode},
};
use ostler_tree::Tree;

const AFTER_MS: u64 = 1_000;
const CONN: ConnId = ConnId(1);

fn alone(local_sessions: LocalSessions) -> Member {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    Member::start_with(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1, |config| {
        config.read_only_after_ms = Some(AFTER_MS);
        config.local_sessions = local_sessions;
    })
}

fn calls(member: &mut Member, read_only: Option<bool>) {
    calls_with(member, SessionId::NONE, read_only);
}

fn calls_with(member: &mut Member, session: SessionId, read_only: Option<bool>) {
    let password = password_of(session);
    member.step(Input::Accepted { conn: CONN, peer: ([127, 0, 0, 1], 5_000).into() });
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: 10_000,
        session,
        password: Some(&password),
        read_only,
    };
    member.step(Input::Connect { conn: CONN, request, chance: 7 });
}

fn closed(member: &Member) -> Option<CloseReason> {
    member.effects.iter().find_map(|effect| match effect {
        Effect::Close { conn: CONN, reason } => Some(*reason),
        _ => None,
    })
}

/// The error of the last request.
fn refusal(member: &Member) -> Option<ErrorCode> {
    member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Reply { conn: CONN, reply } => Some(reply.result.as_ref().err().copied()),
        _ => None,
    })?
}

fn request(member: &mut Member, op: Op, body: &[u8]) {
    let mut payload = Vec::new();
    payload.i32(1);
    payload.i32(op.code());
    payload.extend_from_slice(body);
    let request = ClientRequest::decode(&payload).unwrap();
    member.step(Input::Request { conn: CONN, request });
}

/// Nothing else wakes the server at that time.
#[test]
fn the_beginning_of_read_only_mode_is_a_deadline() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let tree = Tree::fresh(ExtendedTypes::default());
    let mut member =
        Member::start_with(&ensemble, None, tree, 1, |config| config.read_only_after_ms = Some(777));
    // The step of the start has taken one millisecond.
    member.passes(777);
    assert_eq!(member.server.mode(), Some(MemberMode::ReadOnly));
}

#[test]
fn a_read_only_client_is_served_after_a_while_without_a_leader() {
    let mut member = alone(LocalSessions::Fixed);
    member.passes(AFTER_MS - 10);
    assert_eq!(member.server.mode(), Some(MemberMode::Looking));
    member.passes(20);
    assert_eq!(member.server.mode(), Some(MemberMode::ReadOnly));
    calls(&mut member, Some(true));
    let answered = member.effects.iter().find_map(|effect| match effect {
        Effect::Connected { response, .. } => Some(response.read_only),
        _ => None,
    });
    assert_eq!((answered, closed(&member)), (Some(Some(true)), None));
    let mut root = Vec::new();
    root.string("/");
    request(&mut member, Op::Sync, &root);
    assert_eq!(refusal(&member), Some(ErrorCode::NotReadOnly));
    root.bool(false);
    request(&mut member, Op::GetData, &root);
    assert_eq!(refusal(&member), None);
    let mut write = Vec::new();
    write.string("/");
    write.buffer(None);
    write.i32(-1);
    request(&mut member, Op::SetData, &write);
    assert_eq!(refusal(&member), Some(ErrorCode::NotReadOnly));
    request(&mut member, Op::CloseSession, &[]);
    assert_eq!(closed(&member), Some(CloseReason::ClosedByClient), "its session is this server's own");
}

#[test]
fn without_local_sessions_there_is_no_session_for_who_reads() {
    let mut member = alone(LocalSessions::Off);
    member.passes(AFTER_MS + 10);
    calls(&mut member, Some(true));
    assert_eq!(refusal(&member), Some(ErrorCode::NotReadOnly));
    assert_eq!(closed(&member), Some(CloseReason::ReadOnly));
}

#[test]
fn a_client_without_the_read_only_flag_is_not_served_without_a_leader() {
    for (read_only, after) in [(Some(false), AFTER_MS + 10), (None, AFTER_MS + 10), (Some(true), 10)] {
        let mut member = alone(LocalSessions::Fixed);
        member.passes(after);
        calls(&mut member, read_only);
        let reason = if after > AFTER_MS { CloseReason::ReadOnly } else { CloseReason::NotServing };
        assert_eq!(closed(&member), Some(reason));
    }
}

#[test]
fn a_search_for_a_leader_ends_with_it() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = alone(LocalSessions::Fixed);
    member.passes(AFTER_MS + 10);
    calls(&mut member, Some(true));
    member.leads_with(&[2, 3], &ensemble, 2);
    assert_eq!(closed(&member), Some(CloseReason::NotServing), "it finds one that can write");
    assert_eq!(member.server.mode(), Some(MemberMode::Leader));
}

/// Which sessions there are only a leader knows. One that no server but its own knows is another matter.
#[test]
fn a_read_only_server_without_local_sessions_believes_a_sessions_password() {
    for (local_sessions, lives) in [(LocalSessions::Off, true), (LocalSessions::Fixed, false)] {
        let mut member = alone(local_sessions);
        member.passes(AFTER_MS + 10);
        calls_with(&mut member, SessionId(0x0200_0000_0000_0007), Some(true));
        assert_eq!(closed(&member), (!lives).then_some(CloseReason::SessionExpired), "{local_sessions:?}");
    }
}

/// Nobody here can end a session that all know, whatever is asked: nor say of what does not decode that it came of it.
#[test]
fn a_request_that_needs_a_leader_is_refused_in_read_only_mode_even_if_it_does_not_decode() {
    let known = SessionId(0x0200_0000_0000_0007);
    for (op, refused) in [
        (Op::CloseSession, ErrorCode::NotReadOnly),
        (Op::SetData, ErrorCode::NotReadOnly),
        (Op::Multi, ErrorCode::NotReadOnly),
        (Op::Sync, ErrorCode::NotReadOnly),
        (Op::GetData, ErrorCode::MarshallingError),
    ] {
        let mut member = alone(LocalSessions::Off);
        member.passes(AFTER_MS + 10);
        calls_with(&mut member, known, Some(true));
        request(&mut member, op, &[]);
        assert_eq!(refusal(&member), Some(refused), "{op:?}");
        assert_eq!(closed(&member), None, "{op:?}");
    }
}

#[test]
fn the_refusal_of_a_session_is_counted_as_an_answer() {
    let mut member = alone(LocalSessions::Off);
    member.passes(AFTER_MS + 10);
    let sent = |member: &Member| member.server.summary().stats.packets_sent;
    assert_eq!(sent(&member), 0);
    calls(&mut member, Some(true));
    assert_eq!((sent(&member), refusal(&member)), (1, Some(ErrorCode::NotReadOnly)));
}
