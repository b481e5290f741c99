//! Checks a client session's effects: one answer to each request, events only to registered watchers, whole frames to
//! the server.

use ostler_client_core::{AttemptId, Effect, Effects, EventKind, Input, Mono, RequestId, Session, WatchId};
use ostler_proto::{
    frame::{Split, split},
    id::Zxid,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const FRAME_MAX: usize = 1 << 20;
/// The most deadlines that may be due at one moment.
const DEADLINES_AT_ONCE: usize = 20;

/// The calls that the session has got, and its results so far.
#[derive(Default)]
pub(super) struct Ledger {
    unanswered: BTreeSet<RequestId>,
    watching: BTreeMap<WatchId, Watching>,
    attempt: AttemptId,
    /// The xids of requests that were sent on the connection and not answered.
    xids: VecDeque<i32>,
    is_greeted: bool,
    last_zxid: Zxid,
    has_ended: bool,
}

struct Watching {
    one_shot: bool,
    heard: usize,
}

impl Ledger {
    pub(super) fn attempt(&self) -> AttemptId {
        self.attempt
    }

    pub(super) fn asked(&mut self, id: RequestId) {
        self.unanswered.insert(id);
    }

    pub(super) fn watched(&mut self, watch: WatchId, one_shot: bool) {
        self.watching.insert(watch, Watching { one_shot, heard: 0 });
    }

    pub(super) fn unwatched(&mut self, watch: WatchId) {
        self.watching.remove(&watch);
    }

    pub(super) fn take_oldest_xid(&mut self) -> Option<i32> {
        self.xids.pop_front()
    }

    /// Passes one input to the session, and then the deadlines that are due.
    pub(super) fn step(&mut self, session: &mut Session, now: Mono, input: Input<'_>) {
        let mut effects = Effects::default();
        session.step(now, input, &mut effects);
        self.take_in(session, effects);
        for _ in 0..DEADLINES_AT_ONCE {
            if session.next_deadline().is_none_or(|next| next > now) {
                return;
            }
            let mut effects = Effects::default();
            session.step(now, Input::Deadline, &mut effects);
            self.take_in(session, effects);
        }
        panic!("its deadline stays in the past: {session:?}");
    }

    fn take_in(&mut self, session: &Session, effects: Effects) {
        let had_ended = self.has_ended;
        for effect in effects.list {
            assert!(
                !had_ended || matches!(effect, Effect::Failed { .. } | Effect::Reply { .. }),
                "{effect:?}"
            );
            self.take(effect);
        }
        assert!(effects.bytes.is_empty() || !self.has_ended, "bytes after the end");
        self.sent(&effects.bytes);
        assert!(self.last_zxid <= session.last_zxid(), "the last zxid goes back");
        self.last_zxid = session.last_zxid();
        assert!(
            session.watchers() <= self.watching.len(),
            "the session has watchers that were never registered"
        );
        assert_eq!(session.next_deadline().is_none(), self.has_ended);
    }

    fn take(&mut self, effect: Effect) {
        match effect {
            Effect::Reply { id, .. } | Effect::Failed { id, .. } => {
                assert!(self.unanswered.remove(&id), "{id:?} is answered twice, or was never sent");
            }
            Effect::Connect { attempt, .. } => {
                assert!(attempt > self.attempt);
                self.attempt = attempt;
                self.hung_up();
            }
            Effect::Hangup(attempt) => {
                assert_eq!(attempt, self.attempt);
                self.hung_up();
            }
            Effect::Event { watchers, kind, path, .. } => {
                assert!(!watchers.is_empty());
                watchers.iter().for_each(|watcher| self.heard(*watcher, kind, &path));
            }
            Effect::WatchesEnded(watchers) | Effect::WatchesRemoved(watchers) => {
                for watcher in watchers {
                    assert!(
                        self.watching.remove(&watcher).is_some(),
                        "{watcher:?} ends and was not registered"
                    );
                }
            }
            Effect::Ended { .. } => self.has_ended = true,
            Effect::SaslToken { attempt, .. } => assert_eq!(attempt, self.attempt),
            Effect::State(_) | Effect::ProbeReadWrite { .. } | Effect::EachServerFailed => {}
        }
    }

    fn hung_up(&mut self) {
        self.xids.clear();
        self.is_greeted = false;
    }

    fn heard(&mut self, watcher: WatchId, kind: EventKind, path: &str) {
        let Some(watching) = self.watching.get_mut(&watcher) else {
            panic!("{watcher:?} gets an event of {path:?} and is not registered");
        };
        watching.heard += 1;
        assert!(!watching.one_shot || watching.heard == 1, "{watcher:?} fires twice: {kind:?} of {path:?}");
    }

    /// Takes in what the session sends: whole frames, of which the first one on a connection is the handshake.
    fn sent(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Split::Frame { payload, used } = split(bytes, FRAME_MAX) else {
                panic!("no whole frame: {bytes:?}");
            };
            if std::mem::replace(&mut self.is_greeted, true) {
                let xid = payload.first_chunk().expect("every request begins with its number");
                let xid = i32::from_be_bytes(*xid);
                self.xids.push_back(xid);
            }
            bytes = &bytes[used..];
        }
    }

    /// Checks the session after its end.
    pub(super) fn assert_settled(&self, session: &Session) {
        assert!(self.has_ended);
        assert!(self.unanswered.is_empty(), "no answer to {:?}", self.unanswered);
        assert_eq!(session.watchers(), 0, "watchers after the end");
    }
}
