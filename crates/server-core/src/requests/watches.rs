//! Requests about watches: setWatches, addWatch, checkWatches, removeWatches.

use crate::{
    connections::request_queue::Waiting,
    context::Context,
    effect::Effect,
    input::{ConnId, RequestHead},
    server::Server,
    work,
};
use alloc::{borrow::Cow, vec::Vec};
use arcstr::ArcStr;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    error::ErrorCode,
    event::EventType,
    jute::{self, Reader},
    op::Op,
    reply::Body,
};
use ostler_tree::{
    AclRef,
    watch::{WatchTarget, WatcherKind},
};

const PERSISTENT: i32 = 0;
const PERSISTENT_RECURSIVE: i32 = 1;

/// The position within a setWatches. It may have a hundred thousand paths, which are set in parts. Each path is
/// compared with the tree when its turn comes, as if the request had come only then.
#[derive(Debug)]
pub(crate) struct WatchesLeft {
    /// The last zxid that the client has seen.
    seen: i64,
    at: usize,
    list: usize,
    /// The paths that are left of the present list, once its length is read.
    in_list: Option<usize>,
}

/// One path of a setWatches.
struct WatchedPath<'a> {
    list: usize,
    path: Cow<'a, str>,
}

const LISTS: usize = 3;
/// The number of lists of setWatches2.
const LISTS_OF_2: usize = 5;

impl WatchesLeft {
    /// The beginning of a request.
    pub(crate) fn of(payload: &[u8]) -> WatchesLeft {
        let mut left = WatchesLeft { seen: -1, at: 8, list: 0, in_list: None };
        left.seen = left.read(payload, Reader::i64).unwrap_or(-1);
        left
    }

    fn read<'a, T>(
        &mut self,
        payload: &'a [u8],
        one: impl FnOnce(&mut Reader<'a>) -> jute::Result<T>,
    ) -> Option<T> {
        let mut reader = Reader::new(payload.get(self.at..)?);
        let read = one(&mut reader).ok()?;
        self.at = payload.len() - reader.rest().len();
        Some(read)
    }

    /// The next path; `None` at the end. The request was decoded before, so no path fails to decode.
    fn next<'a>(&mut self, payload: &'a [u8], lists: usize) -> Option<WatchedPath<'a>> {
        while self.list < lists {
            let in_list = match self.in_list {
                Some(left) => left,
                None => self.read(payload, Reader::length)?.unwrap_or(0),
            };
            if in_list > 0 {
                self.in_list = Some(in_list - 1);
                return Some(WatchedPath { list: self.list, path: self.read(payload, Reader::text)? });
            }
            (self.list, self.in_list) = (self.list + 1, None);
        }
        None
    }
}

impl Server {
    /// Sets the watches of a client that has reconnected. Changes since the last zxid that it has seen are notified at
    /// once; the other watches are set. As when a watch fires, a client that may not read a znode gets no event, and
    /// its watch is used up all the same. A missing znode is no secret: every answer shows it.
    pub(crate) fn set_watches(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        head: RequestHead,
        (payload, mut left): (Cow<'_, [u8]>, WatchesLeft),
    ) {
        let lists = if head.code == Op::SetWatches2.code() { LISTS_OF_2 } else { LISTS };
        let lists = if planted::is(Bug::PersistentNotSetAgain) { LISTS } else { lists };
        while !self.work.is_spent() {
            let Some(watched) = left.next(&payload, lists) else {
                self.stats.read_latency_ms.add(head.age_ms(cx.now.mono));
                return self.reply(cx, conn, head, Ok(Body::None));
            };
            self.work.add(work::WATCH);
            self.set_watch(cx, conn, &watched, left.seen);
        }
        let waiting = Waiting::Watching { head, payload: payload.into(), left };
        if let Some(state) = self.connections.get_mut(conn) {
            state.queue.push_front(waiting);
        }
        self.defer_requests(conn);
    }

    fn set_watch(&mut self, cx: &mut Context<'_>, conn: ConnId, watched: &WatchedPath<'_>, seen: i64) {
        let lost = planted::is(Bug::WatchesLostOnReconnect);
        let seen = if lost { i64::MAX } else { seen };
        let (path, watcher) = (&*watched.path, conn.watcher());
        match (watched.list, self.tree.get(path)) {
            (0 | 2, None) => self.catch_up(cx, conn, EventType::NodeDeleted, path, &None),
            (0, Some(node)) if node.stat.mzxid.to_wire() > seen => {
                let acl = self.tree.acl(node);
                self.catch_up(cx, conn, EventType::NodeDataChanged, path, &acl);
            }
            (1, Some(node)) => {
                let acl = self.tree.acl(node);
                self.catch_up(cx, conn, EventType::NodeCreated, path, &acl);
            }
            (0, Some(_)) | (1, None) => self.watches.add_standard(WatchTarget::Data, path, watcher),
            (2, Some(node)) if node.stat.pzxid.to_wire() > seen => {
                let acl = self.tree.acl(node);
                self.catch_up(cx, conn, EventType::NodeChildrenChanged, path, &acl);
            }
            (2, Some(_)) => self.watches.add_standard(WatchTarget::Children, path, watcher),
            (list, _) => self.watches.add_persistent(path, watcher, list > LISTS),
        }
    }

    fn catch_up(&mut self, cx: &mut Context<'_>, conn: ConnId, kind: EventType, path: &str, acl: &AclRef) {
        if !self.may_read(conn, acl) {
            return;
        }
        self.stats.packets_sent += 1;
        let mut conns = Vec::from([conn]);
        if planted::is(Bug::MissedToldTwice) {
            conns.push(conn);
        }
        cx.effects.push(Effect::Notify { conns, zxid: None, kind, path: ArcStr::from(path) });
    }

    /// Adds a persistent watch. The path need not exist or be readable.
    pub(crate) fn add_watch(&mut self, conn: ConnId, path: &str, mode: i32) -> Result<Body, ErrorCode> {
        let recursive = match mode {
            PERSISTENT => false,
            PERSISTENT_RECURSIVE => true,
            _ => return Err(ErrorCode::MarshallingError),
        };
        self.watches.add_persistent(path, conn.watcher(), recursive);
        Ok(Body::WatchAdded)
    }

    pub(crate) fn check_watches(&mut self, conn: ConnId, path: &str, kind: i32) -> Result<Body, ErrorCode> {
        let kind = WatcherKind::from_code(kind).ok_or(ErrorCode::MarshallingError)?;
        let found = self.watches.contains(path, conn.watcher(), kind);
        if found { Ok(Body::None) } else { Err(ErrorCode::NoWatcher) }
    }

    pub(crate) fn remove_watches(&mut self, conn: ConnId, path: &str, kind: i32) -> Result<Body, ErrorCode> {
        let kind = WatcherKind::from_code(kind).ok_or(ErrorCode::MarshallingError)?;
        let removed = self.watches.remove(path, conn.watcher(), kind);
        if removed { Ok(Body::None) } else { Err(ErrorCode::NoWatcher) }
    }
}
