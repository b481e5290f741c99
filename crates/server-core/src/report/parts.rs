//! Long reports in parts: the caller takes a number of entries under the lock, lets others go on, and continues behind the
//! last entry that it has. A change in between may or may not be in the report.

use crate::{input::ConnId, report::ConnReport, server::Server, sessions::Scope};
use alloc::{string::String, vec::Vec};
use core::ops::Bound::{Excluded, Unbounded};
use ostler_proto::id::SessionId;

impl Server {
    /// The numbers of all connections that are not closed, in order.
    pub fn connection_numbers(&self) -> Vec<ConnId> {
        self.connections.open_after(None).collect()
    }

    /// The numbers of connections that are not closed, those after this one, in order.
    pub fn connection_numbers_after(&self, after: Option<ConnId>, max: usize) -> Vec<ConnId> {
        self.connections.open_after(after).take(max).collect()
    }

    /// One connection.
    pub fn connection(&self, conn: ConnId) -> Option<ConnReport> {
        let state = self.connections.get(conn)?;
        Some(ConnReport {
            conn,
            peer: state.peer,
            session: state
                .session()
                .map(|id| (id, self.sessions.get(id).map_or(0, |session| session.timeout_ms))),
            stats: state.stats.clone(),
            outstanding: state.queue.len(),
        })
    }

    /// Connections that watch znodes' data, with their sessions.
    pub fn watchers(&self) -> Vec<(ConnId, SessionId)> {
        let all = self.watches.data_watchers().map(ConnId::from);
        all.filter_map(|conn| Some((conn, self.connections.session(conn)?))).collect()
    }

    /// Paths whose data a connection watches, those after this one, in order.
    pub fn watched_after(&self, conn: ConnId, after: Option<&str>, max: usize) -> Vec<String> {
        let paths = self.watches.data_paths_after(conn.watcher(), after);
        paths.take(max).map(|path| String::from(&**path)).collect()
    }

    /// Ephemerals with their sessions, those after this one, in order.
    pub fn ephemerals_after(&self, after: Option<(SessionId, &str)>, max: usize) -> Vec<(SessionId, String)> {
        let all = self.tree.ephemerals_after(after);
        all.take(max).map(|(id, path)| (id, path.into_owned())).collect()
    }

    /// Sessions and when they expire (in monotonic ms), those after this one, in order.
    pub fn session_ends_after(
        &self,
        scope: Scope,
        after: Option<(u64, SessionId)>,
        max: usize,
    ) -> Vec<(u64, SessionId)> {
        self.sessions.ends_after(scope, after).take(max).collect()
    }

    /// At a server that keeps no global session alive: those that it knows, and their timeouts in ms, those after this one.
    pub fn learnt_sessions_after(&self, after: Option<SessionId>, max: usize) -> Vec<(SessionId, i32)> {
        self.tree.sessions_after(after.map_or(Unbounded, Excluded)).take(max).collect()
    }
}
