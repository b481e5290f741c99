//! The sessions that this server knows, in buckets by the time at which they expire.

pub mod ends;
mod expiry;
pub(crate) mod gaps;
pub(crate) mod local;
pub mod passwords;
pub(crate) mod pause_detector;

use crate::input::{ConnId, Mono};
use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Bound::{Excluded, Included, Unbounded};
use hashbrown::HashMap;
use ostler_proto::id::{SessionId, Zxid};
use ostler_zab::leading::LinkId;
use rustc_hash::FxBuildHasher;

/// The server that a session's client is connected to, as known by a leader or by a follower with observers. Requests
/// of the session that come from another server are late, and fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Not known: the first server from which a write comes.
    Nobody,
    /// This server, also after the client's connection is gone.
    Here,
    /// The learner on this connection.
    Learner(LinkId),
}

/// Which servers know a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All servers know it. Its beginning and end are transactions, and the leader decides when it expires.
    Global,
    /// Only the server that its client is connected to knows it. It has no ephemerals.
    Local,
}

/// A live session.
#[derive(Debug)]
pub struct Session {
    /// Which servers know it.
    pub scope: Scope,
    /// Negotiated timeout, ms.
    pub timeout_ms: i32,
    /// The client's connection to this server, if there is one.
    pub conn: Option<ConnId>,
    /// Whether its end has been proposed.
    pub closing: bool,
    /// The server that its client is connected to.
    pub owner: Owner,
    /// At a leader: the last proposal for it since it was added.
    pub(crate) last_proposal: Zxid,
    bucket: Mono,
}

impl Session {
    /// The shortest time for which this server can have heard nothing of the session, ms.
    pub(crate) fn silent_at_least_ms(&self, now: Mono) -> u64 {
        let timeout_ms = u64::try_from(self.timeout_ms).unwrap_or(0);
        now.0.saturating_sub(self.bucket.0.saturating_sub(timeout_ms))
    }
}

/// Sessions of one scope by the time at which they expire.
type Buckets = BTreeMap<Mono, BTreeSet<SessionId>>;

/// All live sessions. A session lives between its timeout and one tick more after its last touch.
#[derive(Debug)]
pub struct Sessions {
    tick_ms: u64,
    by_id: HashMap<SessionId, Session, FxBuildHasher>,
    global: Buckets,
    local: Buckets,
    /// The local ones, in order.
    local_ids: BTreeSet<SessionId>,
    /// Until this time no session expires.
    spared_until: Option<Mono>,
}

impl Sessions {
    /// No sessions yet. They expire in steps of `tick_ms`.
    pub fn new(tick_ms: u64) -> Self {
        Sessions {
            tick_ms,
            by_id: HashMap::default(),
            global: Buckets::new(),
            local: Buckets::new(),
            local_ids: BTreeSet::new(),
            spared_until: None,
        }
    }

    fn bucket(&self, now: Mono, timeout_ms: i32) -> Mono {
        let expires = now.0 + u64::try_from(timeout_ms).unwrap_or(0);
        Mono((expires / self.tick_ms + 1) * self.tick_ms)
    }

    fn buckets_of(&mut self, scope: Scope) -> &mut Buckets {
        match scope {
            Scope::Global => &mut self.global,
            Scope::Local => &mut self.local,
        }
    }

    /// Adds a global session. If it was a local one, it becomes global.
    pub fn insert(&mut self, now: Mono, id: SessionId, timeout_ms: i32, conn: Option<ConnId>) {
        self.keep(now, id, Scope::Global, timeout_ms, conn);
    }

    /// Adds a local session.
    pub fn insert_local(&mut self, now: Mono, id: SessionId, timeout_ms: i32, conn: ConnId) {
        self.keep(now, id, Scope::Local, timeout_ms, Some(conn));
    }

    fn keep(&mut self, now: Mono, id: SessionId, scope: Scope, timeout_ms: i32, conn: Option<ConnId>) {
        self.remove(id);
        let bucket = self.bucket(now, timeout_ms);
        self.buckets_of(scope).entry(bucket).or_default().insert(id);
        let owner = if conn.is_some() { Owner::Here } else { Owner::Nobody };
        if scope == Scope::Local {
            self.local_ids.insert(id);
        }
        self.by_id.insert(
            id,
            Session { scope, timeout_ms, conn, closing: false, owner, last_proposal: Zxid::ZERO, bucket },
        );
    }

    /// Makes a local session global, and returns its timeout in ms. `None` if there is no such local session.
    pub fn make_global(&mut self, id: SessionId) -> Option<i32> {
        let session = self.by_id.get_mut(&id).filter(|session| session.scope == Scope::Local)?;
        session.scope = Scope::Global;
        let (bucket, timeout_ms) = (session.bucket, session.timeout_ms);
        leave_bucket(&mut self.local, bucket, id);
        self.local_ids.remove(&id);
        self.global.entry(bucket).or_default().insert(id);
        Some(timeout_ms)
    }

    /// Whether this is a local session of this server.
    pub fn is_local(&self, id: SessionId) -> bool {
        self.by_id.get(&id).is_some_and(|session| session.scope == Scope::Local)
    }

    /// Notes a sign of life. Returns false for a session that is unknown or about to end.
    pub fn touch(&mut self, now: Mono, id: SessionId) -> bool {
        let Some(session) = self.by_id.get(&id) else { return false };
        if session.closing {
            return false;
        }
        let bucket = self.bucket(now, session.timeout_ms);
        let (before, scope) = (session.bucket, session.scope);
        // Most touches stay in the same bucket and end here.
        if bucket != before {
            let buckets = self.buckets_of(scope);
            leave_bucket(buckets, before, id);
            buckets.entry(bucket).or_default().insert(id);
            if let Some(session) = self.by_id.get_mut(&id) {
                session.bucket = bucket;
            }
        }
        true
    }

    /// A session by its id.
    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.by_id.get(&id)
    }

    /// A session by its id, to be changed.
    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.by_id.get_mut(&id)
    }

    /// Removes a session.
    pub fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.by_id.remove(&id)?;
        if session.scope == Scope::Local {
            self.local_ids.remove(&id);
        }
        leave_bucket(self.buckets_of(session.scope), session.bucket, id);
        Some(session)
    }

    /// Lets no session expire for a tick from now. A time that was begun before and is not over is not prolonged.
    pub fn spare(&mut self, now: Mono) {
        self.spared_until.get_or_insert(now.after(self.tick_ms));
    }

    /// Ends the time that [`Sessions::spare`] began, if it is over. Returns whether sessions may expire now.
    pub fn end_sparing(&mut self, now: Mono) -> bool {
        self.spared_until.take_if(|until| *until <= now);
        self.spared_until.is_none()
    }

    /// Takes one session of a scope that has expired, and marks it as closing.
    pub fn expire_next(&mut self, now: Mono, scope: Scope) -> Option<SessionId> {
        while let Some(id) = take_first(self.buckets_of(scope), now) {
            if let Some(session) = self.by_id.get_mut(&id)
                && !session.closing
            {
                session.closing = true;
                return Some(id);
            }
        }
        None
    }

    /// At a learner, which does not end global sessions: takes one that has been silent for its timeout, and returns
    /// its connection.
    pub fn next_silent(&mut self, now: Mono) -> Option<ConnId> {
        while let Some(id) = take_first(&mut self.global, now) {
            if let Some(conn) = self.by_id.get(&id).and_then(|session| session.conn) {
                return Some(conn);
            }
        }
        None
    }

    /// When [`Sessions::expire_next`] next has work.
    pub fn next_deadline(&self, scope: Scope) -> Option<Mono> {
        let first = self.buckets(scope).next().map(|(bucket, _)| bucket);
        first.map(|first| self.spared_until.map_or(first, |until| until.max(first)))
    }

    /// The number of sessions.
    pub fn count(&self, scope: Scope) -> usize {
        // Sessions that are about to end are in `by_id` only; local ones end at once.
        let local = self.local.values().map(BTreeSet::len).sum();
        match scope {
            Scope::Global => self.by_id.len() - local,
            Scope::Local => local,
        }
    }

    /// The ids of the local sessions after this one, in order.
    pub(crate) fn local_after(&self, after: Option<SessionId>) -> impl Iterator<Item = SessionId> {
        self.local_ids.range((after.map_or(Unbounded, Excluded), Unbounded)).copied()
    }

    /// Sessions by the time at which they expire.
    pub fn buckets(&self, scope: Scope) -> impl Iterator<Item = (Mono, &BTreeSet<SessionId>)> {
        let buckets = match scope {
            Scope::Global => &self.global,
            Scope::Local => &self.local,
        };
        buckets.iter().map(|(bucket, ids)| (*bucket, ids))
    }

    /// Sessions with the times at which they expire, in this order, after the given one.
    pub fn ends_after(
        &self,
        scope: Scope,
        after: Option<(u64, SessionId)>,
    ) -> impl Iterator<Item = (u64, SessionId)> {
        let buckets = match scope {
            Scope::Global => &self.global,
            Scope::Local => &self.local,
        };
        let from = after.map_or(Unbounded, |(end, _)| Included(Mono(end)));
        buckets.range((from, Unbounded)).flat_map(move |(end, ids)| {
            let last = after.filter(|(of, _)| *of == end.0).map_or(Unbounded, |(_, id)| Excluded(id));
            ids.range((last, Unbounded)).map(|id| (end.0, *id))
        })
    }
}

fn take_first(buckets: &mut Buckets, now: Mono) -> Option<SessionId> {
    let mut bucket = buckets.first_entry().filter(|bucket| *bucket.key() <= now)?;
    let id = bucket.get_mut().pop_first();
    if bucket.get().is_empty() {
        bucket.remove();
    }
    id
}

fn leave_bucket(buckets: &mut Buckets, bucket: Mono, id: SessionId) {
    if let Some(ids) = buckets.get_mut(&bucket) {
        ids.remove(&id);
        if ids.is_empty() {
            buckets.remove(&bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const S: SessionId = SessionId(1);

    fn expire(sessions: &mut Sessions, now: Mono, scope: Scope) -> Vec<SessionId> {
        core::iter::from_fn(|| sessions.expire_next(now, scope)).collect()
    }

    #[test]
    fn a_session_lives_from_its_timeout_to_a_tick_more() {
        let mut sessions = Sessions::new(2000);
        sessions.insert(Mono(100), S, 4000, None);
        assert_eq!(sessions.next_deadline(Scope::Global), Some(Mono(6000)));
        assert_eq!(expire(&mut sessions, Mono(5999), Scope::Global), []);
        assert_eq!(expire(&mut sessions, Mono(6000), Scope::Global), [S]);
        assert!(!sessions.touch(Mono(6000), S), "a closing session is not saved by a touch");
        assert!(sessions.remove(S).is_some());
        assert!(!sessions.touch(Mono(6000), S));
    }

    /// A learner closes the connection of a client that is silent, and leaves its session to the leader.
    #[test]
    fn the_connections_of_silent_sessions_are_taken_one_by_one() {
        let mut sessions = Sessions::new(2000);
        for (id, timeout_ms, conn) in
            [(1, 4000, Some(1)), (2, 4000, None), (3, 4000, Some(3)), (4, 8000, Some(4))]
        {
            sessions.insert(Mono(0), SessionId(id), timeout_ms, conn.map(ConnId));
        }
        assert_eq!(sessions.next_silent(Mono(5999)), None);
        let silent: Vec<ConnId> = core::iter::from_fn(|| sessions.next_silent(Mono(6000))).collect();
        assert_eq!(silent, [ConnId(1), ConnId(3)]);
        assert!(sessions.get(SessionId(1)).is_some_and(|session| !session.closing));
        assert_eq!(sessions.next_silent(Mono(60_000)), Some(ConnId(4)));
    }

    /// A report in parts goes on after the last session that it has.
    #[test]
    fn ends_go_on_behind_the_last() {
        let mut sessions = Sessions::new(2000);
        for (id, timeout_ms) in [(1, 4000), (2, 4000), (3, 4000), (4, 8000)] {
            sessions.insert(Mono(0), SessionId(id), timeout_ms, None);
        }
        let all: Vec<_> = sessions.ends_after(Scope::Global, None).collect();
        assert_eq!(all.iter().map(|(_, id)| id.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
        for (told, last) in all.iter().enumerate() {
            let rest: Vec<_> = sessions.ends_after(Scope::Global, Some(*last)).collect();
            assert_eq!(rest, all[told + 1..]);
        }
    }

    #[test]
    fn a_touch_moves_the_end() {
        let mut sessions = Sessions::new(2000);
        sessions.insert(Mono(0), S, 4000, None);
        assert!(sessions.touch(Mono(1999), S));
        assert_eq!(sessions.next_deadline(Scope::Global), Some(Mono(6000)));
        assert!(sessions.touch(Mono(2000), S));
        assert_eq!(sessions.next_deadline(Scope::Global), Some(Mono(8000)));
        assert_eq!(sessions.buckets(Scope::Global).count(), 1);
    }

    #[test]
    fn a_local_session_has_an_end_of_its_own_until_it_is_global() {
        let (mut sessions, local) = (Sessions::new(2000), SessionId(2));
        sessions.insert(Mono(0), S, 4000, None);
        sessions.insert_local(Mono(0), local, 2000, ConnId(1));
        assert!(sessions.is_local(local) && !sessions.is_local(S));
        assert_eq!((sessions.count(Scope::Global), sessions.count(Scope::Local)), (1, 1));
        assert_eq!(sessions.local_after(None).collect::<Vec<_>>(), [local]);
        assert_eq!(sessions.local_after(Some(local)).next(), None);
        assert!(sessions.touch(Mono(2000), local));
        assert_eq!(sessions.next_deadline(Scope::Local), Some(Mono(6000)));
        assert_eq!(sessions.make_global(local), Some(2000));
        assert_eq!(sessions.make_global(local), None, "it is global");
        assert_eq!(sessions.next_deadline(Scope::Local), None);
        assert_eq!(sessions.local_after(None).next(), None);
        assert_eq!(expire(&mut sessions, Mono(6000), Scope::Local), []);
        assert_eq!(expire(&mut sessions, Mono(6000), Scope::Global), [S, local]);
    }

    /// A session that only one server knew is gone with its end: the lists of local sessions do not grow.
    #[test]
    fn a_removed_local_session_is_in_no_list() {
        let mut sessions = Sessions::new(2000);
        for id in 1..=3 {
            sessions.insert_local(Mono(0), SessionId(id), 4000, ConnId(1));
        }
        assert!(sessions.remove(SessionId(2)).is_some());
        assert!(sessions.remove(SessionId(2)).is_none());
        let ids: Vec<i64> = sessions.local_after(None).map(|id| id.0).collect();
        assert_eq!(ids, [1, 3]);
        assert_eq!((sessions.count(Scope::Local), sessions.count(Scope::Global)), (2, 0));
    }

    /// Only the tick is known in which a session was heard of last, and the end of that tick is on the safe side.
    #[test]
    fn the_silence_of_a_session_is_a_lower_limit_within_a_tick_of_the_truth() {
        let mut sessions = Sessions::new(2000);
        for heard in [0, 100, 1999, 2000, 5000] {
            sessions.insert(Mono(heard), S, 4000, None);
            for silent in [0, 1999, 2000, 3000, 5999, 100_000] {
                let least = sessions.get(S).unwrap().silent_at_least_ms(Mono(heard + silent));
                assert!(least <= silent && silent <= least + 2000, "{least} of {silent} since {heard}");
            }
        }
    }
}
