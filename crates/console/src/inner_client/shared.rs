//! The sessions that requests share. Nobody waits for a session but those who use it, and whoever opens many makes room by
//! their own.

use crate::people::Proof;
use ostler_server::admin::logins::network;
use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::OnceCell;

/// A session that nobody has used for this time is closed.
const IDLE: Duration = Duration::from_secs(60);
/// Sessions at once, and those of one address.
const SESSIONS_MAX: usize = 64;
const PER_ADDRESS_MAX: usize = 8;

/// Whoever has the same address, certificate and proof has the same rights, so these share a session.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) address: IpAddr,
    pub(super) certificate: Option<(String, String)>,
    pub(super) proof: Proof,
}

/// One attempt to open a session, and its result for all who wait for it.
pub(super) type Attempt<C, E> = OnceCell<Result<C, E>>;

/// The sessions by whose rights they have.
pub(super) struct Shared<C, E> {
    open: Mutex<Open<C, E>>,
}

struct Open<C, E> {
    by_key: HashMap<Key, Kept<C, E>>,
    /// Whether a task closes those that nobody uses.
    is_looked_after: bool,
}

struct Kept<C, E> {
    attempt: Arc<Attempt<C, E>>,
    used: Instant,
}

impl<C, E> Default for Shared<C, E> {
    fn default() -> Shared<C, E> {
        Shared { open: Mutex::new(Open { by_key: HashMap::new(), is_looked_after: false }) }
    }
}

impl<C, E> Shared<C, E> {
    /// The attempt of those who have this key: one that is under way, or has given a session that goes on, or a new one.
    /// Also returns whether the caller has to start the task that looks after the sessions.
    pub(super) fn attempt(
        &self,
        key: &Key,
        now: Instant,
        is_over: impl Fn(&C) -> bool,
    ) -> (Arc<Attempt<C, E>>, bool) {
        let mut open = self.open();
        let must_look_after = !std::mem::replace(&mut open.is_looked_after, true);
        if let Some(kept) = open.by_key.get_mut(key).filter(|kept| !kept.is_over(&is_over)) {
            kept.used = now;
            return (kept.attempt.clone(), must_look_after);
        }
        open.by_key.remove(key);
        open.make_room(key.address);
        let attempt = Arc::new(OnceCell::new());
        open.by_key.insert(key.clone(), Kept { attempt: attempt.clone(), used: now });
        (attempt, must_look_after)
    }

    /// Forgets sessions that are over or that nobody has used for long. Returns false if none is left: then nobody looks
    /// after the next ones.
    pub(super) fn forget_idle(&self, now: Instant, is_over: impl Fn(&C) -> bool) -> bool {
        let mut open = self.open();
        open.by_key
            .retain(|_, kept| now.saturating_duration_since(kept.used) < IDLE && !kept.is_over(&is_over));
        open.is_looked_after = !open.by_key.is_empty();
        open.is_looked_after
    }

    fn open(&self) -> MutexGuard<'_, Open<C, E>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C, E> Open<C, E> {
    /// Forgets the session that was not used for the longest time: of this address if it has many, or of all.
    fn make_room(&mut self, address: IpAddr) {
        let is_near = |key: &Key| network(key.address) == network(address);
        let near = self.by_key.keys().filter(|key| is_near(key)).count();
        let is_crowded = near >= PER_ADDRESS_MAX;
        if !is_crowded && self.by_key.len() < SESSIONS_MAX {
            return;
        }
        let some = self.by_key.iter().filter(|(key, _)| !is_crowded || is_near(key));
        let longest = some.min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
        // Whoever still works with it has the client, too, and it is closed when the last one lets it go.
        longest.and_then(|key| self.by_key.remove(&key));
    }
}

impl<C, E> Kept<C, E> {
    /// Whether the attempt has failed, or its session has ended.
    fn is_over(&self, is_over: impl Fn(&C) -> bool) -> bool {
        self.attempt.get().is_some_and(|made| made.as_ref().map_or(true, is_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = Shared<usize, &'static str>;

    fn key(address: &str, user: usize) -> Key {
        let proof = Proof::Digest(user.to_string().into_bytes());
        Key { address: address.parse().unwrap(), certificate: None, proof }
    }

    fn open(shared: &Numbers, key: &Key, now: Instant, number: usize) -> usize {
        let (attempt, _) = shared.attempt(key, now, |_| false);
        attempt.set(Ok(number)).ok();
        *attempt.get().unwrap().as_ref().unwrap()
    }

    #[test]
    fn an_address_makes_room_by_its_own_sessions() {
        let (shared, start) = (Numbers::default(), Instant::now());
        open(&shared, &key("10.0.0.9", 0), start, 1000);
        for user in 0..SESSIONS_MAX {
            open(&shared, &key("10.0.0.1", user), start + Duration::from_millis(user as u64), user);
        }
        assert_eq!(shared.open().by_key.len(), 1 + PER_ADDRESS_MAX);
        assert_eq!(open(&shared, &key("10.0.0.9", 0), start, 1), 1000, "it is still open");
        let newest = key("10.0.0.1", SESSIONS_MAX - 1);
        assert_eq!(open(&shared, &newest, start, 1), SESSIONS_MAX - 1);
        // Of many addresses the longest unused one makes room.
        for host in 0..2 * SESSIONS_MAX {
            let now = start + Duration::from_secs(1 + host as u64);
            open(&shared, &key(&format!("10.1.0.{host}"), 0), now, host);
        }
        assert_eq!(shared.open().by_key.len(), SESSIONS_MAX);
        assert_eq!(open(&shared, &newest, start, 1), 1, "another one");
    }

    #[test]
    fn a_session_that_is_over_and_an_attempt_that_has_failed_are_not_used_again() {
        let (shared, start) = (Numbers::default(), Instant::now());
        let me = key("10.0.0.1", 0);
        let (failed, _) = shared.attempt(&me, start, |_| false);
        assert!(Arc::ptr_eq(&failed, &shared.attempt(&me, start, |_| false).0), "it is under way");
        failed.set(Err("no quorum")).unwrap();
        assert_eq!(open(&shared, &me, start, 1), 1);
        let (next, _) = shared.attempt(&me, start, |number| *number == 1);
        assert!(next.get().is_none());
    }

    #[test]
    fn one_task_looks_after_all_sessions_until_none_is_left() {
        let (shared, start) = (Numbers::default(), Instant::now());
        let me = key("10.0.0.1", 0);
        assert!(shared.attempt(&me, start, |_| false).1);
        for _ in 0..3 {
            let (attempt, must_look_after) = shared.attempt(&me, start, |_| true);
            attempt.set(Ok(1)).unwrap();
            assert!(!must_look_after, "one does");
        }
        assert!(shared.forget_idle(start + IDLE / 2, |_| false));
        assert!(!shared.forget_idle(start + IDLE, |_| false));
        assert!(shared.attempt(&me, start, |_| false).1);
    }

    /// Without a quorum each attempt lasts long. All of them last at the same time.
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_the_attempt_of_another() {
        const LASTS: Duration = Duration::from_secs(5);
        let (shared, begun) = (Numbers::default(), tokio::time::Instant::now());
        let ask = |user| {
            let (attempt, _) = shared.attempt(&key("10.0.0.1", user), Instant::now(), |_| false);
            async move {
                let fails = async {
                    tokio::time::sleep(LASTS).await;
                    Err("no quorum")
                };
                attempt.get_or_init(|| fails).await.is_err()
            }
        };
        assert_eq!(tokio::join!(ask(1), ask(2), ask(1)), (true, true, true));
        assert_eq!(begun.elapsed(), LASTS);
    }
}
