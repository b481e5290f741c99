//! The sessions that live, in the order of their ids, for lists in parts.

use crate::{
    connections::Conn,
    input::{ConnId, Now},
    server::Server,
    sessions::{Owner, Scope, Session},
};
use alloc::{format, string::String, vec::Vec};
use core::{
    net::SocketAddr,
    ops::Bound::{Excluded, Unbounded},
};
use ostler_proto::{
    acl::Id,
    id::{ServerId, SessionId},
};

/// The most identities that are shown of a connection, and the most characters of each.
const IDS_MAX: usize = 8;
const ID_CHARS_MAX: usize = 256;

/// A session that lives, as one server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    /// Its id.
    pub session: SessionId,
    /// Whether only this server knows it.
    pub is_local: bool,
    /// Its timeout, ms.
    pub timeout_ms: i32,
    /// The server that its client is or was last connected to, if this one knows.
    pub server: Option<ServerId>,
    /// The time since this server heard of it, ms; a lower limit if its client is not connected here. `None` if this server
    /// does not learn of its signs of life.
    pub silent_ms: Option<u64>,
    /// The number of its ephemerals.
    pub ephemerals: usize,
    /// The client's connection, if it is connected here.
    pub conn: Option<LiveConn>,
}

/// A part of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePart {
    /// The sessions.
    pub sessions: Vec<LiveSession>,
    /// The session after which the list goes on; `None` at its end.
    pub next: Option<SessionId>,
}

/// The connection of a session that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveConn {
    /// Its number.
    pub conn: ConnId,
    /// The client's address.
    pub peer: SocketAddr,
    /// The first of the client's identities, without the hashes of passwords and without those of its address.
    pub ids: Vec<String>,
    /// The longest time in which nothing came, ms.
    pub longest_silence_ms: u64,
    /// Its watches. A persistent watch counts for data and for children.
    pub watches: usize,
    /// Requests not answered yet.
    pub outstanding: usize,
    /// Requests that came.
    pub requests: u64,
    /// When it was made, in ms since 1970.
    pub since_ms: i64,
}

impl Server {
    /// The sessions that this server knows, those after this one, in the order of their ids. Looks at `max` of them, and
    /// leaves out those that are about to end.
    pub fn live_sessions_after(&self, now: Now, after: Option<SessionId>, max: usize) -> LivePart {
        let mut global =
            self.tree.sessions_after(after.map_or(Unbounded, Excluded)).map(|(id, _)| id).peekable();
        let mut local = self.sessions.local_after(after).peekable();
        let next = || match (global.peek(), local.peek()) {
            (Some(first), Some(other)) if other < first => local.next(),
            (None, _) => local.next(),
            _ => global.next(),
        };
        let ids: Vec<SessionId> = core::iter::from_fn(next).take(max).collect();
        LivePart {
            sessions: ids.iter().filter_map(|id| self.live_session(now, *id)).collect(),
            next: ids.last().copied().filter(|_| ids.len() == max),
        }
    }

    /// The session with this id, if it lives.
    pub fn live_session(&self, now: Now, id: SessionId) -> Option<LiveSession> {
        let session = self.sessions.get(id).filter(|session| !session.closing)?;
        let conn = session.conn.and_then(|conn| Some((conn, self.connections.get(conn)?)));
        let silent_ms = match conn {
            Some((_, state)) => Some(state.gaps.silent_ms(now.mono)),
            None if self.follows() => None,
            None => Some(session.silent_at_least_ms(now.mono)),
        };
        Some(LiveSession {
            session: id,
            is_local: session.scope == Scope::Local,
            timeout_ms: session.timeout_ms,
            server: self.server_of(session),
            silent_ms,
            ephemerals: self.tree.ephemerals(id).len(),
            conn: conn.map(|(conn, state)| self.live_conn(now, conn, state)),
        })
    }

    fn server_of(&self, session: &Session) -> Option<ServerId> {
        match session.owner {
            _ if session.conn.is_some() => Some(self.config.server),
            Owner::Here => Some(self.config.server),
            Owner::Learner(link) => self.role.ensemble()?.learner_of(link),
            Owner::Nobody => None,
        }
    }

    fn live_conn(&self, now: Now, conn: ConnId, state: &Conn) -> LiveConn {
        LiveConn {
            conn,
            peer: state.peer,
            ids: shown_ids(state.ids.all()),
            longest_silence_ms: state.gaps.silent_ms(now.mono).max(state.gaps.longest_ms().into()),
            watches: self.watches.count_of(conn.watcher()),
            outstanding: state.queue.len(),
            requests: state.stats.received,
            since_ms: state.stats.established_wall_ms,
        }
    }
}

/// Identities as `scheme:name`, those that a client has proven beside its address.
fn shown_ids(all: &[Id]) -> Vec<String> {
    let proven = all.iter().filter(|id| id.scheme != "ip");
    proven.take(IDS_MAX).map(shown_id).collect()
}

/// An identity as `scheme:name`, without the hash of a password. It is cut before it is copied, as clients choose its length.
pub(crate) fn shown_id(id: &Id) -> String {
    let name = match &*id.scheme {
        "digest" => id.id.split(':').next().unwrap_or_default(),
        "super" => return id.scheme.clone(),
        _ => &id.id,
    };
    match name.char_indices().nth(ID_CHARS_MAX) {
        Some((end, _)) => format!("{}:{}…", id.scheme, &name[..end]),
        None => format!("{}:{name}", id.scheme),
    }
}
