//! Compares every reply to a client with the history.

use crate::{
    acl_checks,
    client::{Intent, SentRequest},
    reference::{ReferenceHistory, sorted},
    words,
    world::World,
};
use ostler_proto::{
    acl::read_acls,
    error::ErrorCode,
    id::{Xid, Zxid},
    jute::Reader,
    reply::{Body, OpResult, Reply},
    txn::{Txn, TxnRecord},
};
use ostler_server_core::quorum::LocalSessions;

const FAILURES: [ErrorCode; 15] = [
    ErrorCode::NoWatcher,
    ErrorCode::InvalidAcl,
    ErrorCode::BadArguments,
    ErrorCode::NewConfigNoQuorum,
    ErrorCode::ReconfigDisabled,
    ErrorCode::ReconfigInProgress,
    ErrorCode::Unimplemented,
    ErrorCode::NoNode,
    ErrorCode::NodeExists,
    ErrorCode::NotEmpty,
    ErrorCode::BadVersion,
    ErrorCode::NoChildrenForEphemerals,
    ErrorCode::SessionMoved,
    ErrorCode::SessionExpired,
    ErrorCode::EphemeralOnLocalSession,
];

impl World {
    pub(crate) fn client_answered(&mut self, client: usize, reply: &Reply) {
        self.trace(|| format!("client {client} gets {}", words::reply(reply)));
        let of = &mut self.clients[client];
        if reply.xid == Xid::AUTH {
            // Answered out of order, as upstream does.
            assert_eq!((reply.zxid, &reply.result), (Some(Zxid::ZERO), &Ok(Body::None)), "[answers]");
            return of.sent.retain(|sent| sent.intent != Intent::Auth);
        }
        let sent = of.sent.pop_front().expect("a reply answers a request");
        let session = of.session.expect("a connection with replies has a session");
        assert_eq!(reply.xid, sent.xid, "[session order] replies come in the order of the requests");
        let zxid = reply.zxid.expect("every known request has a zxid");
        assert!(zxid >= of.seen, "[zxid back] client {client} was at {} and is at {zxid}", of.seen);
        let before = std::mem::replace(&mut of.seen, zxid);
        if let Some(proven) = of.conn.and_then(|conn| self.net.conns[&conn].shown) {
            return self.read_only_answered(client, &sent, reply, proven);
        }
        if sent.intent == Intent::SetWatches {
            return self.watches_again(client, before, zxid);
        }
        if let Intent::MarkedWrite(_, mark) = sent.intent
            && is_refusal(reply)
        {
            self.reference.marks.refuse(mark);
        }
        let asked = Some((session, reply.xid.0));
        self.check_told_first(client, zxid);
        self.watch_answered(client, &sent, reply);
        let reference = &self.reference;
        if let Err(error) = &reply.result {
            assert!(FAILURES.contains(error), "[answers] {sent:?} gives {error:?}");
            let refused = *error == ErrorCode::InvalidAcl;
            assert!(!refused || sent.has_invalid_acl(), "[acl] {sent:?} is refused for its list");
        }
        // A local session's xids begin anew on each connection: an earlier write may have had the same xid.
        let has_transaction = reference.request_at(zxid) == asked && zxid > sent.floor;
        match &sent.intent {
            Intent::Close if self.shape.local != LocalSessions::Off && !has_transaction => {
                assert!(!reference.has_session(session, zxid), "{session:?} is closed without a transaction");
                assert_eq!(reply.result, Ok(Body::None));
                self.count("local close");
            }
            Intent::Write(_) | Intent::MarkedWrite(..) | Intent::Close => {
                assert_eq!(
                    reference.request_at(zxid),
                    asked,
                    "[linearizable] {sent:?} of {session:?} is acknowledged at {zxid}"
                );
                if let Intent::MarkedWrite(_, mark) = sent.intent {
                    let happened = reference.marks.happened(mark);
                    let told = (!is_refusal(reply)).then_some(zxid);
                    assert_eq!(happened, told, "[linearizable] {sent:?} of {session:?}, answered at {zxid}");
                }
                assert!(
                    zxid > sent.floor,
                    "[linearizable] {sent:?} comes before a write that was acknowledged when it was sent"
                );
                check_write(reference, zxid, &sent, reply);
                self.acknowledged = self.acknowledged.max(zxid);
                self.count(if reply.result.is_ok() { "write" } else { "failed write" });
            }
            Intent::Get(path, _)
            | Intent::Exists(path, _)
            | Intent::Children(path, _)
            | Intent::Acl(path) => {
                check_read(reference, path, zxid, reply);
                self.count("read");
                self.own_writes_come_first(client, zxid);
            }
            Intent::Sync => {
                // A follower of a deposed leader does not learn of later commits.
                let deposed = !self.calm && zxid.epoch() < sent.floor.epoch();
                assert!(zxid >= sent.floor || deposed, "[sync] {sent:?} was answered at {zxid}");
                self.count("sync");
            }
            Intent::Ping => assert_eq!(reply.xid, Xid::PING),
            // `watch_answered` has checked these.
            Intent::SetWatches | Intent::AddWatch(..) | Intent::RemoveWatches { .. } => {}
            Intent::CheckWatches(..) | Intent::Auth | Intent::Sasl => {}
        }
        let of = &mut self.clients[client];
        if sent.intent == Intent::Close {
            of.session = None;
        }
        if reply.xid != Xid::PING {
            of.outcome = Some(reply.clone());
        }
    }

    /// A write that the session requested on an earlier connection has happened by now, or never does.
    fn own_writes_come_first(&mut self, client: usize, zxid: Zxid) {
        let marks = &mut self.reference.marks;
        for mark in std::mem::take(&mut self.clients[client].unsettled) {
            marks.pass(mark, zxid);
        }
    }

    /// Checks a reply of a server without a leader. It answers reads only, from a complete tree that is not older than
    /// what the client has seen.
    fn read_only_answered(&mut self, client: usize, sent: &SentRequest, reply: &Reply, proven: bool) {
        let of = &mut self.clients[client];
        match &sent.intent {
            Intent::Write(_) | Intent::MarkedWrite(..) | Intent::Sync => {
                assert_eq!(reply.result, Err(ErrorCode::NotReadOnly), "{sent:?}");
                self.count("read-only refusal");
            }
            Intent::Close if std::mem::take(&mut of.has_read_only_session) => {
                assert_eq!(reply.result, Ok(Body::None));
                of.session = None;
            }
            Intent::Close => assert_eq!(reply.result, Err(ErrorCode::NotReadOnly)),
            Intent::Get(path, _)
            | Intent::Exists(path, _)
            | Intent::Children(path, _)
            | Intent::Acl(path) => {
                if proven {
                    let zxid = reply.zxid.unwrap();
                    check_read(&self.reference, path, zxid, reply);
                }
                self.count("read-only read");
            }
            Intent::Ping => assert_eq!(reply.xid, Xid::PING),
            Intent::SetWatches | Intent::AddWatch(..) | Intent::RemoveWatches { .. } => {
                self.watch_answered_read_only(client, sent, reply);
            }
            Intent::CheckWatches(..) | Intent::Auth | Intent::Sasl => {}
        }
        if reply.xid != Xid::PING {
            self.clients[client].outcome = Some(reply.clone());
        }
    }
}

/// Whether a write was refused, and so changes nothing.
fn is_refusal(reply: &Reply) -> bool {
    match &reply.result {
        Ok(Body::Multi(parts)) => parts.iter().any(|part| matches!(part, OpResult::Error(_))),
        result => result.is_err(),
    }
}

fn check_write(reference: &ReferenceHistory, zxid: Zxid, sent: &SentRequest, reply: &Reply) {
    let record = reference.record(zxid).expect("an acknowledged write is in the history");
    let record = TxnRecord::read(&record.0).unwrap();
    if reply.result.is_ok() {
        acl_checks::assert_logged(&sent.given, &record.txn);
    }
    match (&record.txn, &reply.result) {
        (Txn::Error(code), Err(ErrorCode::EphemeralOnLocalSession)) => {
            // A leader does not know that a learner's session is local.
            let codes = [ErrorCode::EphemeralOnLocalSession, ErrorCode::SessionExpired];
            assert!(codes.iter().any(|of| of.code() == *code), "{code}");
        }
        (Txn::Error(code), Err(error)) => assert_eq!(*code, error.code()),
        (Txn::Create(create), Ok(Body::Path(path) | Body::PathStat(path, _))) => {
            assert_eq!(*create.path, **path);
        }
        (Txn::SetData { reconfig: true, data, .. }, Ok(Body::Data(shown, _))) => {
            assert_eq!(shown.as_ref().map(|shown| shown.to_vec()).as_deref(), *data, "[answers]");
        }
        (Txn::SetData { version, .. }, Ok(Body::Stat(stat))) => assert_eq!(*version, stat.version),
        (Txn::SetAcl { version, .. }, Ok(Body::Stat(stat))) => assert_eq!(*version, stat.aversion),
        (Txn::Delete { .. } | Txn::CloseSession(_), Ok(Body::None)) => {}
        (Txn::Multi(logged), Ok(Body::Multi(parts))) => check_parts(logged, parts),
        // The session has ended or has moved to another server; the connection is closed all the same.
        (Txn::Error(_), Ok(Body::None)) if sent.intent == Intent::Close => {}
        (txn, result) => panic!("[answers] {txn:?} is answered with {result:?}"),
    }
}

/// Checks the parts of a multi. A multi that fails in one part changes nothing: the parts before the failure are logged
/// as they were requested, and answered with error 0.
fn check_parts(logged: &[Txn<'_>], parts: &[OpResult]) {
    assert_eq!(logged.len(), parts.len(), "[answers] {logged:?} is answered with {parts:?}");
    let failed = logged.iter().any(|txn| matches!(txn, Txn::Error(_)));
    for (txn, part) in logged.iter().zip(parts) {
        match (txn, part) {
            (Txn::Error(code), OpResult::Error(told)) => assert_eq!(code, told, "[answers] {txn:?}"),
            (_, OpResult::Error(0)) if failed => {}
            (Txn::Create(create), OpResult::Create(path) | OpResult::Create2(path, _)) if !failed => {
                assert_eq!(*create.path, **path, "[answers]");
            }
            (Txn::SetData { version, .. }, OpResult::SetData(stat)) if !failed => {
                assert_eq!(*version, stat.version, "[answers] {txn:?}");
            }
            (Txn::Delete { .. }, OpResult::Delete) | (Txn::Check { .. }, OpResult::Check) if !failed => {}
            (txn, part) => panic!("[answers] {txn:?} in a multi is answered with {part:?}"),
        }
    }
}

fn check_read(reference: &ReferenceHistory, path: &str, zxid: Zxid, reply: &Reply) {
    let there = reference.at(path, zxid);
    match (&reply.result, there) {
        (Err(ErrorCode::NoNode), None) => {}
        (Ok(Body::Data(data, stat)), Some(seen)) => {
            let data = data.as_ref().map_or(Vec::new(), |data| data.to_vec());
            assert_eq!((&data, stat), (&seen.data, &seen.stat), "[reads] {path} at {zxid}");
        }
        (Ok(Body::Acl(acl, stat)), Some(seen)) => {
            let acl = read_acls(&mut Reader::new(acl)).unwrap();
            assert_eq!((&acl, stat), (&seen.acl, &seen.stat), "[acl] {path} at {zxid}");
        }
        (Ok(Body::Stat(stat)), Some(seen)) => assert_eq!(*stat, seen.stat, "[reads] {path} at {zxid}"),
        (Ok(Body::Children(names)), Some(seen)) => {
            let names =
                Reader::new(&names.to_vec()).vector(|r| r.text().map(|name| name.into_owned())).unwrap();
            assert_eq!(sorted(names.unwrap()), seen.children, "[reads] children of {path} at {zxid}");
        }
        (result, there) => panic!("[reads] {path} is {there:?} at {zxid}, and is shown as {result:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::error::ErrorCode::{NoNode, RuntimeInconsistency};

    #[test]
    #[should_panic(expected = "[answers]")]
    fn the_result_of_another_operation_in_a_multi_is_found() {
        let delete = Txn::Delete { reaped: false, path: "/a".into() };
        let error = |code: ErrorCode| Txn::Error(code.code());
        let told = |code: ErrorCode| OpResult::Error(code.code());
        check_parts(std::slice::from_ref(&delete), &[OpResult::Delete]);
        let failed = [delete.clone(), error(NoNode), error(RuntimeInconsistency)];
        check_parts(&failed, &[OpResult::Error(0), told(NoNode), told(RuntimeInconsistency)]);
        check_parts(&[delete], &[OpResult::Check]);
    }
}
