//! Compares the replies that a client gets in a random run with those that the model expects at that zxid.

use super::{
    model::Answer,
    stream::{self, Intent},
    watchers::Kind,
    world::{Sent, World},
};
use crate::sight::{Sight, decode_names};
use ostler_proto::strings::SharedStrings;
use ostler_proto::{
    error::ErrorCode,
    id::{SessionId, Zxid},
    reply::{Body, Reply},
};
use ostler_server_core::{CloseReason, ConnId};

impl World {
    pub(super) fn seen(&mut self, conn: ConnId, sight: &Sight, rest: &[(ConnId, Sight)]) {
        match sight {
            Sight::Connected(response) if response.timeout_ms == 0 => {}
            Sight::Connected(response) => self.connected(conn, response.session),
            Sight::Event { zxid, kind, path } => {
                match zxid {
                    Some(zxid) => self.advance(*zxid),
                    None => self.begin_catch_up(conn, rest),
                }
                self.watchers.seen(conn, (*zxid, *kind, path.clone()));
            }
            Sight::Reply(reply) => self.replied(conn, reply),
            Sight::Closed(reason) => self.closed(conn, *reason),
        }
    }

    fn connected(&mut self, conn: ConnId, session: SessionId) {
        let line = self.lines.get_mut(&conn).unwrap();
        line.session = Some(session);
        self.slots[line.client].session = Some(session);
        let life = self.lives.get_mut(&session).unwrap();
        life.conn = Some(conn);
        if life.expired {
            // It has expired before it was granted: what was held is dropped.
            line.sent.retain(|sent| sent.due.is_some());
        } else if !line.sent.is_empty() {
            self.touch(session);
        }
    }

    fn closed(&mut self, conn: ConnId, reason: CloseReason) {
        self.watchers.leave(conn);
        let line = self.lines.remove(&conn).unwrap();
        let slot = &mut self.slots[line.client];
        if slot.conn == Some(conn) {
            slot.conn = None;
        }
        let Some(session) = line.session else { panic!("{conn:?} is closed: {reason:?}") };
        let ended = !self.states[&self.m.disk.durable()].model.sessions.contains_key(&session);
        match reason {
            CloseReason::ClosedByClient => assert!(ended),
            CloseReason::SessionExpired => {}
            CloseReason::SessionMoved => {
                let life = self.lives.get_mut(&session).unwrap();
                if life.conn == Some(conn) {
                    life.conn = None;
                }
            }
            other => panic!("{conn:?} is closed: {other:?}"),
        }
    }

    /// The events of a setWatches come before its reply, which says at which zxid it was served.
    fn begin_catch_up(&mut self, conn: ConnId, rest: &[(ConnId, Sight)]) {
        if self.lines[&conn].sent.front().is_some_and(|sent| sent.begun) {
            return;
        }
        let reply = rest.iter().find_map(|(to, sight)| match sight {
            Sight::Reply(reply) if *to == conn => Some(reply),
            _ => None,
        });
        self.advance(reply.and_then(|reply| reply.zxid).expect("a reply follows the events"));
        self.set_watches(conn);
    }

    fn set_watches(&mut self, conn: ConnId) {
        let sent = self.lines.get_mut(&conn).unwrap().sent.front_mut().unwrap();
        let Intent::SetWatches { seen, data, exist, child } = &sent.intent else {
            panic!("{sent:?} has nothing to catch up")
        };
        sent.begun = true;
        self.watchers.set(conn, &self.states[&self.applied].model, *seen, [data, exist, child]);
    }

    fn replied(&mut self, conn: ConnId, reply: &Reply) {
        let zxid = reply.zxid.expect("only unknown operations are answered without a zxid");
        self.advance(zxid);
        let front = self.lines[&conn].sent.front().expect("somebody asked");
        if matches!(front.intent, Intent::SetWatches { .. }) && !front.begun {
            self.set_watches(conn);
        }
        self.watchers.assert_all_told(conn);
        let line = self.lines.get_mut(&conn).unwrap();
        let sent = line.sent.pop_front().unwrap();
        assert_eq!(reply.xid, sent.xid);
        let next_write = line.sent.iter().find_map(|later| later.due.as_ref()).map(|(zxid, _)| *zxid);
        assert!(
            next_write.is_none_or(|next| zxid < next),
            "{sent:?} was answered at {zxid}, after {next_write:?}"
        );
        assert!(zxid >= line.behind, "{sent:?} was answered at {zxid}, before what was under way");
        let life = self.lives.get_mut(&line.session.unwrap()).unwrap();
        assert!(zxid >= life.seen, "{sent:?} was answered at {zxid}, after {}", life.seen);
        life.seen = zxid;
        self.assert_answer(conn, zxid, sent, sorted(reply.result.clone()));
    }

    fn assert_answer(&mut self, conn: ConnId, zxid: Zxid, sent: Sent, answer: Answer) {
        let expected = match &sent.intent {
            Intent::Write(_) | Intent::Close => {
                let (due, expected) = sent.due.expect("a write is answered after its proposal");
                assert_eq!(zxid, due, "a write is answered with its own zxid");
                expected
            }
            Intent::Read { read, path, watch } => {
                let expected = self.states[&zxid].model.read(*read, path);
                let exists = *read == stream::Read::Exists;
                if *watch && (expected.is_ok() || exists) {
                    let data = exists || *read == stream::Read::Data;
                    self.watchers.add(conn, if data { Kind::Data } else { Kind::Child }, path);
                }
                expected
            }
            Intent::Sync(path) => {
                assert!(zxid >= sent.after, "a sync waits for all that was proposed before it");
                Ok(Body::Path(path.clone()))
            }
            Intent::Ping | Intent::SetWatches { .. } => Ok(Body::None),
            Intent::AddWatch { path, recursive } => {
                let kind = if *recursive { Kind::Recursive } else { Kind::Persistent };
                self.watchers.add(conn, kind, path);
                Ok(Body::WatchAdded)
            }
            Intent::RemoveWatches { path, kind } => {
                use Kind::{Child, Data, Persistent, Recursive};
                let kinds: &[Kind] = match kind {
                    1 => &[Child],
                    2 => &[Data],
                    3 => &[Data, Child, Persistent, Recursive],
                    4 => &[Persistent],
                    _ => &[Recursive],
                };
                let removed = self.watchers.remove(conn, kinds, path);
                if removed { Ok(Body::None) } else { Err(ErrorCode::NoWatcher) }
            }
        };
        assert_eq!(answer, expected, "the answer to {:?} at {zxid}", sent.intent);
    }
}

/// With names in order: servers send them in none.
fn sorted(answer: Answer) -> Answer {
    let sort = |names: SharedStrings| {
        let names = decode_names(&names.to_vec());
        SharedStrings::encode(names.iter().map(|name| &**name))
    };
    answer.map(|body| match body {
        Body::Children(names) => Body::Children(sort(names)),
        Body::ChildrenStat(names, stat) => Body::ChildrenStat(sort(names), stat),
        other => other,
    })
}
