//! Sessions that this server keeps alive, in buckets by the time at which they expire.

use crate::input::{ConnId, Mono};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use hashbrown::HashMap;
use ostler_proto::id::SessionId;
use ostler_zab::leading::LinkId;
use rustc_hash::FxBuildHasher;

/// At a leader, or a follower with observers: whose client a session's is. Requests that come another way are late, and
/// fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Whoever writes first.
    Nobody,
    /// This server's, also after its connection is gone.
    Here,
    /// A learner's.
    Learner(LinkId),
}

/// A live session.
#[derive(Debug)]
pub struct Session {
    /// Negotiated timeout, ms.
    pub timeout_ms: i32,
    /// The connection that it is on, if any.
    pub conn: Option<ConnId>,
    /// Its end has been proposed.
    pub closing: bool,
    /// Where it is.
    pub owner: Owner,
    bucket: Mono,
}

/// All live sessions. A session lives between its timeout and one tick more after its last touch.
#[derive(Debug)]
pub struct Sessions {
    tick_ms: u64,
    by_id: HashMap<SessionId, Session, FxBuildHasher>,
    buckets: BTreeMap<Mono, BTreeSet<SessionId>>,
}

impl Sessions {
    /// None yet; they expire in steps of `tick_ms`.
    pub fn new(tick_ms: u64) -> Self {
        Sessions { tick_ms, by_id: HashMap::default(), buckets: BTreeMap::new() }
    }

    fn bucket(&self, now: Mono, timeout_ms: i32) -> Mono {
        let expires = now.0 + u64::try_from(timeout_ms).unwrap_or(0);
        Mono((expires / self.tick_ms + 1) * self.tick_ms)
    }

    /// Begins to keep a session.
    pub fn insert(&mut self, now: Mono, id: SessionId, timeout_ms: i32, conn: Option<ConnId>) {
        let bucket = self.bucket(now, timeout_ms);
        self.buckets.entry(bucket).or_default().insert(id);
        let owner = if conn.is_some() { Owner::Here } else { Owner::Nobody };
        let before = self.by_id.insert(id, Session { timeout_ms, conn, closing: false, owner, bucket });
        if let Some(before) = before
            && before.bucket != bucket
        {
            self.leave_bucket(before.bucket, id);
        }
    }

    /// A sign of life. False for sessions that are unknown or about to end.
    pub fn touch(&mut self, now: Mono, id: SessionId) -> bool {
        let Some(session) = self.by_id.get(&id) else { return false };
        if session.closing {
            return false;
        }
        let bucket = self.bucket(now, session.timeout_ms);
        let before = session.bucket;
        // Most touches stay in the same bucket and end here.
        if bucket != before {
            self.leave_bucket(before, id);
            self.buckets.entry(bucket).or_default().insert(id);
            if let Some(session) = self.by_id.get_mut(&id) {
                session.bucket = bucket;
            }
        }
        true
    }

    fn leave_bucket(&mut self, bucket: Mono, id: SessionId) {
        if let Some(ids) = self.buckets.get_mut(&bucket) {
            ids.remove(&id);
            if ids.is_empty() {
                self.buckets.remove(&bucket);
            }
        }
    }

    /// A session by its id.
    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.by_id.get(&id)
    }

    /// A session by its id, to be changed.
    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.by_id.get_mut(&id)
    }

    /// Stops keeping a session.
    pub fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.by_id.remove(&id)?;
        self.leave_bucket(session.bucket, id);
        Some(session)
    }

    /// Takes the sessions whose time is over, and marks them.
    pub fn expire(&mut self, now: Mono) -> Vec<SessionId> {
        let mut expired = Vec::new();
        while let Some(bucket) = self.buckets.first_entry()
            && *bucket.key() <= now
        {
            for id in bucket.remove() {
                if let Some(session) = self.by_id.get_mut(&id)
                    && !session.closing
                {
                    session.closing = true;
                    expired.push(id);
                }
            }
        }
        expired
    }

    /// When [`Sessions::expire`] next has work.
    pub fn next_deadline(&self) -> Option<Mono> {
        self.buckets.first_key_value().map(|(bucket, _)| *bucket)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Sessions by the time at which they expire.
    pub fn buckets(&self) -> impl Iterator<Item = (Mono, &BTreeSet<SessionId>)> {
        self.buckets.iter().map(|(bucket, ids)| (*bucket, ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: SessionId = SessionId(1);

    #[test]
    fn a_session_lives_from_its_timeout_to_a_tick_more() {
        let mut sessions = Sessions::new(2000);
        sessions.insert(Mono(100), S, 4000, None);
        assert_eq!(sessions.next_deadline(), Some(Mono(6000)));
        assert_eq!(sessions.expire(Mono(5999)), []);
        assert_eq!(sessions.expire(Mono(6000)), [S]);
        assert!(!sessions.touch(Mono(6000), S), "a closing session is not saved by a touch");
        assert!(sessions.remove(S).is_some());
        assert!(!sessions.touch(Mono(6000), S));
    }

    #[test]
    fn a_touch_moves_the_end() {
        let mut sessions = Sessions::new(2000);
        sessions.insert(Mono(0), S, 4000, None);
        assert!(sessions.touch(Mono(1999), S));
        assert_eq!(sessions.next_deadline(), Some(Mono(6000)));
        assert!(sessions.touch(Mono(2000), S));
        assert_eq!(sessions.next_deadline(), Some(Mono(8000)));
        assert_eq!(sessions.buckets().count(), 1);
    }
}
