//! The list of sessions that live.
//!
//! Each server lists all sessions that it knows, in the order of their ids: a leader knows all global ones, and the server
//! of a client also knows the connection. So the lists of several servers are merged by id, and what comes after an id can
//! be asked of each of them.

use crate::{
    error::ApiError,
    list::{self, Parameters},
};
use ostler_proto::id::SessionId;
use ostler_server::admin::{AdminHandle, ShownSession};
use ostler_server_core::sessions::ends::session_of;
use serde::{Deserialize, Serialize};

/// Sessions in one look at the core.
const IN_ONE_LOOK: usize = 100;
/// Sessions that are looked at for one answer. If few of them are wanted, the answer has few, and says where to go on.
const LOOKED_AT_MAX: usize = 50_000;

/// The sessions that are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveQuery {
    /// Those after this one.
    after: Option<SessionId>,
    limit: usize,
    /// Those whose client's address has this text in it.
    address: Option<String>,
    /// Those whose client is connected to this server.
    server: Option<i64>,
}

impl LiveQuery {
    pub(crate) fn of(parameters: &Parameters) -> Result<LiveQuery, ApiError> {
        let after = list::text(parameters, "cursor").map(|cursor| {
            session_of(cursor)
                .ok_or_else(|| ApiError::bad("The cursor is none of this list. Leave it out to begin anew."))
        });
        Ok(LiveQuery {
            after: after.transpose()?,
            limit: list::limit(parameters)?,
            address: list::text(parameters, "address").map(str::to_owned),
            server: list::parsed(parameters, "server", "the number of a server")?,
        })
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    fn wants(&self, item: &LiveItem) -> bool {
        let is_there = |address: &String| item.address.as_ref().is_some_and(|has| has.contains(&**address));
        self.address.as_ref().is_none_or(is_there)
            && self.server.is_none_or(|wanted| item.server == Some(wanted))
    }
}

/// A session, as the answer has it. Other servers than that of its connection leave out what they do not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LiveItem {
    pub(crate) id: String,
    pub(crate) server: Option<i64>,
    pub(crate) address: Option<String>,
    pub(crate) ids: Vec<String>,
    pub(crate) is_local: bool,
    pub(crate) timeout_ms: i32,
    pub(crate) last_heard_ago_ms: Option<u64>,
    pub(crate) longest_silence_ms: Option<u64>,
    pub(crate) ephemerals: usize,
    pub(crate) watches: Option<usize>,
    pub(crate) outstanding: Option<usize>,
    pub(crate) requests: Option<u64>,
    pub(crate) has_tls: Option<bool>,
    pub(crate) since_ms: Option<i64>,
}

impl LiveItem {
    pub(crate) fn of(handle: &AdminHandle, shown: ShownSession) -> LiveItem {
        let ShownSession { session, has_tls } = shown;
        let conn = session.conn.as_ref();
        LiveItem {
            id: session.session.to_string(),
            server: session.server.map(|server| list::shown_id(handle, server)),
            address: conn.map(|of| of.peer.to_string()),
            ids: conn.map(|of| of.ids.clone()).unwrap_or_default(),
            is_local: session.is_local,
            timeout_ms: session.timeout_ms,
            last_heard_ago_ms: session.silent_ms,
            longest_silence_ms: conn.map(|of| of.longest_silence_ms),
            ephemerals: session.ephemerals,
            watches: conn.map(|of| of.watches),
            outstanding: conn.map(|of| of.outstanding),
            requests: conn.map(|of| of.requests),
            has_tls: conn.map(|_| has_tls),
            since_ms: conn.map(|of| of.since_ms),
        }
    }

    /// The item of the server that knows the session best.
    pub(crate) fn best(all: impl Iterator<Item = LiveItem>) -> Option<LiveItem> {
        all.max_by_key(LiveItem::weight)
    }

    /// The order of the list. An id that is none comes first.
    fn key(&self) -> i64 {
        session_of(&self.id).map_or(i64::MIN, |id| id.0)
    }

    /// How much the server that told this knows of the session: the connection most of all, and of two connections the
    /// one that was heard of last.
    fn weight(&self) -> (bool, std::cmp::Reverse<u64>, bool) {
        let silent = self.last_heard_ago_ms.unwrap_or(u64::MAX);
        (self.address.is_some(), std::cmp::Reverse(silent), self.server.is_some())
    }
}

/// One server's part of the list, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LivePart {
    pub(crate) items: Vec<LiveItem>,
    /// The id after which the list goes on.
    pub(crate) next: Option<String>,
}

/// This server's part. It is gathered in several looks at the core.
pub(crate) fn part(handle: &AdminHandle, query: &LiveQuery) -> LivePart {
    let (mut items, mut after, mut looked_at) = (Vec::new(), query.after, 0);
    loop {
        let part = handle.live_sessions_after(after, IN_ONE_LOOK);
        let wanted =
            part.sessions.into_iter().map(|of| LiveItem::of(handle, of)).filter(|item| query.wants(item));
        items.extend(wanted);
        looked_at += IN_ONE_LOOK;
        if items.len() > query.limit {
            items.truncate(query.limit);
            let next = items.last().map(|last| last.id.clone());
            return LivePart { items, next };
        }
        after = part.next;
        if after.is_none() || looked_at >= LOOKED_AT_MAX {
            return LivePart { items, next: after.map(|id| id.to_string()) };
        }
        list::let_others();
    }
}

/// The parts of several servers as one, with at most `limit` sessions.
pub(crate) fn merge(parts: Vec<LivePart>, limit: usize) -> LivePart {
    let id = |text: &String| session_of(text).map(|id| id.0);
    // A part that goes on says nothing about the sessions behind its end.
    let horizon = parts.iter().filter_map(|part| part.next.as_ref().and_then(id)).min();
    let mut all: Vec<LiveItem> = parts.into_iter().flat_map(|part| part.items).collect();
    all.retain(|item| horizon.is_none_or(|horizon| item.key() <= horizon));
    all.sort_by_key(|item| (item.key(), std::cmp::Reverse(item.weight())));
    all.dedup_by(|later, first| later.id == first.id);
    let goes_on = all.len() > limit;
    all.truncate(limit);
    let next = match all.last() {
        Some(last) if goes_on => Some(last.id.clone()),
        _ => horizon.map(|horizon| SessionId(horizon).to_string()),
    };
    LivePart { items: all, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: i64, address: Option<&str>) -> LiveItem {
        LiveItem {
            id: SessionId(id).to_string(),
            server: Some(1),
            address: address.map(str::to_owned),
            ids: Vec::new(),
            is_local: false,
            timeout_ms: 10_000,
            last_heard_ago_ms: Some(5),
            longest_silence_ms: None,
            ephemerals: 0,
            watches: None,
            outstanding: None,
            requests: None,
            has_tls: None,
            since_ms: None,
        }
    }

    fn part(ids: &[i64], next: Option<i64>) -> LivePart {
        let items = ids.iter().map(|id| item(*id, None)).collect();
        LivePart { items, next: next.map(|id| SessionId(id).to_string()) }
    }

    fn ids(part: &LivePart) -> Vec<i64> {
        part.items.iter().map(LiveItem::key).collect()
    }

    #[test]
    fn the_server_of_the_connection_is_believed() {
        let here = LivePart { items: vec![item(-7, Some("10.0.0.1:1"))], next: None };
        for parts in [vec![here.clone(), part(&[-7], None)], vec![part(&[-7], None), here]] {
            let merged = merge(parts, 10);
            assert_eq!(merged.items, [item(-7, Some("10.0.0.1:1"))]);
        }
        let stale = LiveItem { last_heard_ago_ms: Some(900), ..item(1, Some("10.0.0.2:2")) };
        let parts = vec![
            LivePart { items: vec![stale], next: None },
            LivePart { items: vec![item(1, Some("10.0.0.1:1"))], next: None },
        ];
        assert_eq!(merge(parts, 10).items[0].address.as_deref(), Some("10.0.0.1:1"));
    }

    #[test]
    fn nothing_is_listed_behind_the_end_of_a_part() {
        let merged = merge(vec![part(&[1, 2], Some(2)), part(&[1, 5, 9], None)], 10);
        assert_eq!((ids(&merged), merged.next.as_deref()), (vec![1, 2], Some("0x2")));
        let merged = merge(vec![part(&[-3, 2], None), part(&[1, 5], None)], 3);
        assert_eq!((ids(&merged), merged.next.as_deref()), (vec![-3, 1, 2], Some("0x2")));
        let merged = merge(vec![part(&[1, 2], None), part(&[1, 2], None)], 2);
        assert_eq!((ids(&merged), merged.next), (vec![1, 2], None));
        assert_eq!(merge(Vec::new(), 2), LivePart::default());
        let few = merge(vec![part(&[], Some(50)), part(&[7, 60], None)], 10);
        assert_eq!(
            (ids(&few), few.next.as_deref()),
            (vec![7], Some("0x32")),
            "a filter has left out the rest"
        );
    }
}
