//! What a client is shown, held against the history.

use crate::{
    client::{Client, Intent, Sent, Watch},
    truth::{Truth, sorted},
    words,
    world::World,
};
use ostler_proto::{
    error::ErrorCode,
    event::EventType,
    id::{Xid, Zxid},
    jute::Reader,
    reply::{Body, OpResult, Reply},
    txn::{Txn, TxnRecord},
};
use ostler_server_core::ensemble::LocalSessions;
use std::collections::BTreeSet;

const FAILURES: [ErrorCode; 13] = [
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
        let sent = of.sent.pop_front().expect("only what was asked is answered");
        let session = of.session.expect("only a session gets answers");
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
            self.truth.marks.refuse(mark);
        }
        let asked = Some((session, reply.xid.0));
        let (truth, of) = (&self.truth, &mut self.clients[client]);
        watches_are_told_first(truth, of, zxid);
        if let Err(error) = &reply.result {
            assert!(FAILURES.contains(error), "[answers] {sent:?} gives {error:?}");
        }
        match &sent.intent {
            Intent::Close if self.shape.local != LocalSessions::Off && truth.request_at(zxid) != asked => {
                assert!(!truth.has_session(session, zxid), "{session:?} is closed without a transaction");
                assert_eq!(reply.result, Ok(Body::None));
                self.count("local close");
            }
            Intent::Write(_) | Intent::MarkedWrite(..) | Intent::Close => {
                assert_eq!(
                    truth.request_at(zxid),
                    asked,
                    "[linearizable] {sent:?} of {session:?} is acknowledged at {zxid}"
                );
                if let Intent::MarkedWrite(_, mark) = sent.intent {
                    let happened = truth.marks.happened(mark);
                    let told = (!is_refusal(reply)).then_some(zxid);
                    assert_eq!(happened, told, "[linearizable] {sent:?} of {session:?}, answered at {zxid}");
                }
                assert!(
                    zxid > sent.floor,
                    "[linearizable] {sent:?} comes before what was known when it was sent"
                );
                check_write(truth, zxid, &sent.intent, reply);
                self.acknowledged = self.acknowledged.max(zxid);
                self.count(if reply.result.is_ok() { "write" } else { "failed write" });
            }
            Intent::Get(path, watch) | Intent::Exists(path, watch) | Intent::Children(path, watch) => {
                check_read(truth, path, zxid, reply);
                let gets_watch = reply.result.is_ok() || matches!(sent.intent, Intent::Exists(..));
                if *watch && gets_watch {
                    of.watches.push(Watch {
                        path: path.clone(),
                        of_children: matches!(sent.intent, Intent::Children(..)),
                        for_creation: reply.result.is_err(),
                        since: zxid,
                    });
                }
                self.count("read");
            }
            Intent::Acl(path) => {
                check_read(truth, path, zxid, reply);
                self.count("read");
            }
            Intent::Sync => {
                // Whoever goes along with a leader that is none any more does not learn of what came after it.
                let deposed = !self.calm && zxid.epoch() < sent.floor.epoch();
                assert!(zxid >= sent.floor || deposed, "[sync] {sent:?} was answered at {zxid}");
                self.count("sync");
            }
            Intent::Ping => assert_eq!(reply.xid, Xid::PING),
            Intent::SetWatches => {}
        }
        let of = &mut self.clients[client];
        if sent.intent == Intent::Close {
            of.session = None;
        }
        if reply.xid != Xid::PING {
            of.outcome = Some(reply.clone());
        }
    }

    /// What a server without a leader answers: reads, of a tree that is whole and not older than what was seen.
    fn read_only_answered(&mut self, client: usize, sent: &Sent, reply: &Reply, proven: bool) {
        let of = &mut self.clients[client];
        match &sent.intent {
            Intent::Write(_) | Intent::MarkedWrite(..) | Intent::Sync => {
                assert_eq!(reply.result, Err(ErrorCode::NotReadOnly), "{sent:?}");
                self.count("read-only refusal");
            }
            Intent::Close if std::mem::take(&mut of.borrowed) => {
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
                    check_read(&self.truth, path, zxid, reply);
                }
                self.count("read-only read");
            }
            Intent::Ping => assert_eq!(reply.xid, Xid::PING),
            // It is not known what of this tree is committed.
            Intent::SetWatches => of.watches.clear(),
        }
        if reply.xid != Xid::PING {
            self.clients[client].outcome = Some(reply.clone());
        }
    }

    pub(crate) fn client_notified(&mut self, client: usize, zxid: Option<Zxid>, kind: EventType, path: &str) {
        self.trace(|| format!("client {client} is told that {path} changed: {kind:?} at {zxid:?}"));
        let (truth, of) = (&self.truth, &mut self.clients[client]);
        let again = of.sent.front().is_some_and(|sent| sent.intent == Intent::SetWatches);
        let Some(zxid) = zxid else {
            assert!(again, "[watch] {path} changed, and nobody knows when");
            of.caught_up.push((path.to_owned(), kind));
            return;
        };
        assert!(!again, "[watch late] {path} changed at {zxid} before what was missed was told");
        assert!(
            zxid > of.seen,
            "[watch late] {path} changed at {zxid}, and the client was at {} before",
            of.seen
        );
        assert!(
            zxid >= of.told,
            "[watch order] {path} changed at {zxid}, and client {client} was told of {} before",
            of.told
        );
        of.told = zxid;
        assert!(truth.changed_at(path, zxid), "[watch] {path} did not change at {zxid}");
        let watched = of.watches.len();
        of.watches.retain(|watch| {
            let told = match kind {
                EventType::NodeChildrenChanged => watch.of_children,
                EventType::NodeDeleted => true,
                EventType::NodeCreated | EventType::NodeDataChanged => !watch.of_children,
            };
            let over = watch.path == path && told;
            if over {
                let due = truth.first_change(path, watch.of_children, watch.since);
                assert_eq!(due, Some(zxid), "[watch] {watch:?} is told of the first change");
            }
            !over
        });
        assert!(
            of.watches.len() < watched,
            "[watch twice] client {client} did not watch {path} for {kind:?}"
        );
        self.count("event");
    }
}

impl World {
    /// A client that came back has been told of all that it had missed, and watches the rest.
    fn watches_again(&mut self, client: usize, before: Zxid, zxid: Zxid) {
        let (truth, of) = (&self.truth, &mut self.clients[client]);
        let missed = |watch: &Watch| {
            let there = truth.at(&watch.path, zxid);
            match there {
                Some(_) if watch.for_creation => Some(EventType::NodeCreated),
                None => (!watch.for_creation).then_some(EventType::NodeDeleted),
                Some(seen) if watch.of_children => {
                    (seen.stat.pzxid > before).then_some(EventType::NodeChildrenChanged)
                }
                Some(seen) => (seen.stat.mzxid > before).then_some(EventType::NodeDataChanged),
            }
        };
        // It names a path once for each sort of watch, and is told once for each.
        let lists: BTreeSet<(&str, bool, bool, EventType)> = of
            .watches
            .iter()
            .filter_map(|watch| Some((&*watch.path, watch.of_children, watch.for_creation, missed(watch)?)))
            .collect();
        let mut due: Vec<_> = lists.into_iter().map(|(path, .., kind)| (path.to_owned(), kind)).collect();
        let mut told = std::mem::take(&mut of.caught_up);
        due.sort_unstable();
        told.sort_unstable();
        let twice = told.windows(2).any(|two| two[0] == two[1]) && told.len() > due.len();
        assert!(!twice, "[watch twice] client {client} was away, and is told of {told:?} instead of {due:?}");
        assert_eq!(told, due, "[watch lost] client {client} was away from {before} to {zxid}");
        of.watches.retain(|watch| missed(watch).is_none());
        of.watches.iter_mut().for_each(|watch| watch.since = zxid);
        self.count("watches set again");
    }
}

fn watches_are_told_first(truth: &Truth, of: &Client, zxid: Zxid) {
    for watch in &of.watches {
        let due = truth.first_change(&watch.path, watch.of_children, watch.since);
        assert!(
            due.is_none_or(|due| due > zxid),
            "[watch lost] {watch:?} was not told of {due:?}, but {zxid} is shown"
        );
    }
}

/// Whether nothing comes of a write.
fn is_refusal(reply: &Reply) -> bool {
    match &reply.result {
        Ok(Body::Multi(parts)) => parts.iter().any(|part| matches!(part, OpResult::Error(_))),
        result => result.is_err(),
    }
}

fn check_write(truth: &Truth, zxid: Zxid, intent: &Intent, reply: &Reply) {
    let record = truth.record(zxid).expect("what is acknowledged is in the history");
    let record = TxnRecord::read(&record.0).unwrap();
    match (&record.txn, &reply.result) {
        (Txn::Error(code), Err(ErrorCode::EphemeralOnLocalSession)) => {
            // A leader does not know that a learner's session is a local one.
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
        (Txn::Delete { .. } | Txn::CloseSession(_), Ok(Body::None)) | (Txn::Multi(_), Ok(Body::Multi(_))) => {
        }
        // The session is over already, or lives elsewhere; the connection is closed all the same.
        (Txn::Error(_), Ok(Body::None)) if *intent == Intent::Close => {}
        (txn, result) => panic!("[answers] {txn:?} is answered with {result:?}"),
    }
}

fn check_read(truth: &Truth, path: &str, zxid: Zxid, reply: &Reply) {
    let there = truth.at(path, zxid);
    match (&reply.result, there) {
        (Err(ErrorCode::NoNode), None) => {}
        (Ok(Body::Data(data, stat)), Some(seen)) => {
            let data = data.as_ref().map_or(Vec::new(), |data| data.to_vec());
            assert_eq!((&data, stat), (&seen.data, &seen.stat), "[reads] {path} at {zxid}");
        }
        (Ok(Body::Acl(acl, stat)), Some(seen)) => {
            assert_eq!((acl, stat), (&seen.acl, &seen.stat), "[acl] {path} at {zxid}");
        }
        (Ok(Body::Stat(stat)), Some(seen)) => assert_eq!(*stat, seen.stat, "[reads] {path} at {zxid}"),
        (Ok(Body::Children(names)), Some(seen)) => {
            let names = Reader::new(names).vector(|r| r.text().map(|name| name.into_owned())).unwrap();
            assert_eq!(sorted(names.unwrap()), seen.children, "[reads] children of {path} at {zxid}");
        }
        (result, there) => panic!("[reads] {path} is {there:?} at {zxid}, and is shown as {result:?}"),
    }
}
