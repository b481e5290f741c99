//! A walk over all watches, or those of one session, in parts. A watch that is set or fires meanwhile may or may not be
//! seen.

use crate::{input::ConnId, server::Server};
use alloc::{string::String, vec::Vec};
use arcstr::ArcStr;
use core::net::SocketAddr;
use ostler_proto::id::SessionId;
use ostler_tree::watch::WatchTarget;
pub use ostler_tree::watch::Watched;

/// How far a walk has come.
#[derive(Debug, Default)]
pub struct WatchWalk {
    /// The last connection that was begun.
    conn: Option<ConnId>,
    /// It goes on with the watches of that connection: in this table, after this path.
    inside: Option<(WatchTarget, Option<ArcStr>)>,
    /// There is one connection to visit.
    is_of_one: bool,
}

/// A connection that watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchingConn {
    /// Its number.
    pub conn: ConnId,
    /// Its session.
    pub session: SessionId,
    /// The client's address.
    pub peer: SocketAddr,
    /// The number of its watched paths; a path whose data and whose children it watches counts twice.
    pub count: usize,
}

/// A part of a walk.
#[derive(Debug, Default)]
pub struct WatchPart {
    /// The connections whose watches begin in this part.
    pub connections: Vec<WatchingConn>,
    /// Watched paths, each once for each connection, with all modes.
    pub watches: Vec<(ArcStr, Watched)>,
    /// Whether the walk is at its end.
    pub is_last: bool,
}

impl Server {
    /// A walk over the watches of one session; `None` if its client is not connected here.
    pub fn walk_of_session(&self, session: SessionId) -> Option<WatchWalk> {
        let conn = self.sessions.get(session)?.conn?;
        Some(WatchWalk { conn: Some(conn), inside: Some((WatchTarget::Data, None)), is_of_one: true })
    }

    /// Goes on with a walk by `max` watches or connections.
    pub fn walk_watches(&self, walk: &mut WatchWalk, max: usize) -> WatchPart {
        let (mut part, mut left) = (WatchPart::default(), max);
        while left > 0 {
            let is_begun = walk.inside.is_some();
            let Some((conn, target, after)) = self.next_watches(walk, &mut part) else {
                part.is_last = true;
                break;
            };
            // A connection counts, also one without watches: looking it up takes time.
            left -= usize::from(!is_begun);
            let mut last = None;
            for (path, watched) in
                self.watches.paths_after(conn.watcher(), target, after.as_deref()).take(left)
            {
                left -= 1;
                last = Some(path);
                if watched.count() > 0 {
                    part.watches.push((path.clone(), watched));
                }
            }
            walk.inside = match target {
                target if left == 0 => Some((target, last.cloned().or(after))),
                WatchTarget::Data => Some((WatchTarget::Children, None)),
                WatchTarget::Children => None,
            };
        }
        part
    }

    /// The table in which a walk goes on: of the last connection, or of the next one that watches something.
    fn next_watches(
        &self,
        walk: &mut WatchWalk,
        part: &mut WatchPart,
    ) -> Option<(ConnId, WatchTarget, Option<ArcStr>)> {
        if let (Some(conn), Some((target, after))) = (walk.conn, walk.inside.take()) {
            return Some((conn, target, after));
        }
        if walk.is_of_one {
            return None;
        }
        let conn = self.connections.open_after(walk.conn).next()?;
        walk.conn = Some(conn);
        let count = self.watches.count_of(conn.watcher());
        if count > 0
            && let Some(state) = self.connections.get(conn)
        {
            let session = state.session().unwrap_or(SessionId::NONE);
            part.connections.push(WatchingConn { conn, session, peer: state.peer, count });
        }
        Some((conn, WatchTarget::Data, None))
    }

    /// The connections that watch this path itself, those after this one, in order; at most `max`.
    pub fn watchers_after(&self, path: &str, after: Option<ConnId>, max: usize) -> Vec<(ConnId, Watched)> {
        let all = self.watches.watchers_after(path, after.map(ConnId::watcher), max);
        all.into_iter().map(|(watcher, watched)| (watcher.into(), watched)).collect()
    }

    /// The paths above this one that have recursive watches.
    pub fn watched_above(&self, path: &str) -> Vec<String> {
        self.watches.watched_above(path).into_iter().map(String::from).collect()
    }

    /// The sessions and addresses of these connections, of those that are still there.
    pub fn names_of(&self, connections: &[ConnId]) -> Vec<(ConnId, SessionId, SocketAddr)> {
        let named = |conn: &ConnId| {
            let state = self.connections.get(*conn).filter(|state| !state.is_closed())?;
            Some((*conn, state.session()?, state.peer))
        };
        connections.iter().filter_map(named).collect()
    }
}
