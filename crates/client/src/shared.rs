//! The session, stepped by whoever has something for it, and the way of its effects to those who wait.
//!
//! A caller's task locks, steps and leaves its bytes behind those of others; the connection's task takes all
//! that has gathered and writes it at once.

use crate::{
    metrics::{Metrics, Recorder},
    protected::{Ids, ProtectionId},
    states::{StateStream, Subscribers},
    watch::{Sink, WatchEnd, WatchedEvent},
};
use bytes::Bytes;
use ostler_client_core::{
    AttemptId, AuthInfo, Chroot, ConnectionState, Effect, Effects, Failure, Input, Mono, RequestId, Session,
    SessionState, WatchId,
};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    id::{SessionId, Zxid},
    op::Op,
    reply::ReplyHeader,
    request::Request,
};
use rustc_hash::FxBuildHasher;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    task::Waker,
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};

/// With fewer requests under way a write for each costs less than to wait for others to share it: to step back can
/// wake another thread of the runtime for nothing.
pub(crate) const MANY: usize = 3;

/// A server's answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) error: i32,
    /// What follows the header.
    pub(crate) body: Bytes,
}

pub(crate) type Outcome = std::result::Result<Reply, Failure>;

/// Whether servers know create2, as far as this client has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Create2 {
    Untried,
    Known,
    Unknown,
}

/// What the connection's task is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Connect { attempt: AttemptId, host: usize },
    Hangup,
    Stop,
}

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    begun: Instant,
    create2: AtomicU8,
    pub(crate) runtime: tokio::runtime::Handle,
}

struct Waiter {
    op: Op,
    to: Told,
}

/// Whoever is told what has become of a request.
pub(crate) enum Told {
    /// A caller, who waits for it or does not any more.
    Caller(oneshot::Sender<Outcome>),
    /// Nobody waits; this is what is then done about it.
    Nobody(Box<dyn FnOnce(Outcome) + Send>),
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Told::Caller(_) => "Caller",
            Told::Nobody(_) => "Nobody",
        })
    }
}

impl Told {
    /// Not under the session's lock: what is done about it may need that.
    fn tell(self, outcome: Outcome) {
        match self {
            // Who does not wait any more does not want to know.
            Told::Caller(to) => drop(to.send(outcome)),
            Told::Nobody(act) => act(outcome),
        }
    }
}

pub(crate) struct State {
    core: Session,
    effects: Effects,
    /// By request number, the first being `first_waiter`.
    waiters: VecDeque<Option<Waiter>>,
    first_waiter: u64,
    sinks: HashMap<WatchId, Sink, FxBuildHasher>,
    last_watch: u64,
    subscribers: Subscribers,
    order: Option<Order>,
    probe: Option<usize>,
    /// Set while the connection's task sleeps.
    waker: Option<Waker>,
    recorder: Recorder,
    ids: Ids,
    trouble: Option<String>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("core", &self.core).finish_non_exhaustive()
    }
}

/// Answers on their way out of the lock.
pub(crate) type Answers = Vec<(Told, Outcome)>;

/// What the connection's task finds when it looks.
pub(crate) struct Work {
    pub(crate) order: Option<Order>,
    pub(crate) probe: Option<usize>,
    pub(crate) deadline: Option<Mono>,
    /// There are bytes to send, and nothing else was looked at.
    pub(crate) others_first: bool,
}

/// Longer than any wait.
const FAR_AHEAD: Duration = Duration::from_secs(86_400 * 365);

impl Shared {
    pub(crate) fn new(config: ostler_client_core::Config, ids: Ids) -> Shared {
        let state = State {
            core: Session::new(config, Mono::START),
            effects: Effects::default(),
            waiters: VecDeque::new(),
            first_waiter: 0,
            sinks: HashMap::default(),
            last_watch: 0,
            subscribers: Subscribers::default(),
            order: None,
            probe: None,
            waker: None,
            recorder: Recorder::default(),
            ids,
            trouble: None,
        };
        let runtime = tokio::runtime::Handle::current();
        Shared {
            state: Mutex::new(state),
            begun: Instant::now(),
            create2: AtomicU8::new(Create2::Untried as u8),
            runtime,
        }
    }

    pub(crate) fn create2(&self) -> Create2 {
        match self.create2.load(Relaxed) {
            0 => Create2::Untried,
            1 => Create2::Known,
            _ => Create2::Unknown,
        }
    }

    pub(crate) fn note_create2(&self, found: Create2) {
        self.create2.store(found as u8, Relaxed);
    }

    /// The session's time now.
    pub(crate) fn now(&self) -> Mono {
        Mono(self.begun.elapsed())
    }

    /// The moment of a session's time.
    pub(crate) fn instant(&self, at: Mono) -> Instant {
        // A deadline that never comes is beyond what a clock can say.
        self.begun.checked_add(at.0).unwrap_or_else(|| Instant::now() + FAR_AHEAD)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A step that panicked is a bug; others go on with what it left.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps, and delivers what comes of it.
    fn step(&self, input: Input<'_>) {
        let now = self.now();
        let mut answers = Answers::new();
        let waker = {
            let mut state = self.lock();
            state.step(now, input, &mut answers);
            state.waker.take()
        };
        deliver(answers, waker);
    }

    /// Hands a request over. Its place among the client's requests is fixed now.
    pub(crate) fn submit(
        &self,
        request: &Request<'_>,
        session: Option<SessionId>,
        watch: Option<WatchId>,
    ) -> oneshot::Receiver<Outcome> {
        let (to, outcome) = oneshot::channel();
        self.submit_for(Told::Caller(to), request, session, watch);
        outcome
    }

    /// [`submit`](Shared::submit), where somebody else than a caller may be told.
    pub(crate) fn submit_for(
        &self,
        to: Told,
        request: &Request<'_>,
        session: Option<SessionId>,
        watch: Option<WatchId>,
    ) {
        let now = self.now();
        let mut answers = Answers::new();
        let waker = {
            let mut state = self.lock();
            let id = state.wait(request.op().unwrap_or(Op::Ping), to);
            state.step(now, Input::Request { id, session, request, watch }, &mut answers);
            state.waker.take()
        };
        deliver(answers, waker);
    }

    pub(crate) fn add_auth(&self, auth: AuthInfo) -> oneshot::Receiver<Outcome> {
        self.ask(Op::Auth, |id| Input::AddAuth { id, auth })
    }

    pub(crate) fn close(&self) -> oneshot::Receiver<Outcome> {
        self.ask(Op::CloseSession, Input::Close)
    }

    fn ask<'a>(&self, op: Op, input: impl FnOnce(RequestId) -> Input<'a>) -> oneshot::Receiver<Outcome> {
        let (to, outcome) = oneshot::channel();
        let now = self.now();
        let mut answers = Answers::new();
        let waker = {
            let mut state = self.lock();
            let id = state.wait(op, Told::Caller(to));
            state.step(now, input(id), &mut answers);
            state.waker.take()
        };
        deliver(answers, waker);
        outcome
    }

    /// Somebody who will hear of a path's changes, once a request has asked for it.
    pub(crate) fn add_sink(&self, sink: Sink) -> WatchId {
        let mut state = self.lock();
        state.last_watch += 1;
        let watch = WatchId(state.last_watch);
        state.sinks.insert(watch, sink);
        watch
    }

    /// Nobody listens any more.
    pub(crate) fn unwatch(&self, watch: WatchId) {
        let now = self.now();
        let mut answers = Answers::new();
        let waker = {
            let mut state = self.lock();
            state.sinks.remove(&watch);
            state.step(now, Input::Unwatch(watch), &mut answers);
            state.waker.take()
        };
        deliver(answers, waker);
    }

    pub(crate) fn subscribe(&self) -> StateStream {
        let mut state = self.lock();
        let current = state.core.state();
        state.subscribers.add(current)
    }

    /// The last state told, and the session as far as it can be taken to live now. If its time is over it is lost for
    /// good, whatever arrives later: somebody has acted by it.
    pub(crate) fn state_now(&self) -> (SessionState, Option<SessionId>) {
        let now = self.now();
        let mut answers = Answers::new();
        let (seen, waker) = {
            let mut state = self.lock();
            if planted::is(Bug::HolderAsksNoClock) {
                let told = state.core.state();
                let lives = !matches!(told.state, ConnectionState::Lost | ConnectionState::Closed);
                return (told, told.session.filter(|_| lives));
            }
            let waker = if state.core.is_overdue(now) {
                state.step(now, Input::Deadline, &mut answers);
                state.waker.take()
            } else {
                None
            };
            ((state.core.state(), state.core.session_at(now)), waker)
        };
        deliver(answers, waker);
        seen
    }

    /// Something is held by the session from now on.
    pub(crate) fn hold(&self, session: SessionId) {
        self.step(Input::Hold(session));
    }

    /// It is held no more.
    pub(crate) fn release(&self, session: SessionId) {
        self.step(Input::Release(session));
    }

    pub(crate) fn is_proven(&self, session: SessionId) -> bool {
        self.lock().core.is_proven(session)
    }

    pub(crate) fn session_timeout(&self) -> Option<Duration> {
        self.lock().core.timeout()
    }

    pub(crate) fn last_zxid(&self) -> Zxid {
        self.lock().core.last_zxid()
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let state = self.lock();
        state.recorder.report(state.core.watchers(), state.waiters.iter().flatten().count())
    }

    /// An id that nobody else has.
    pub(crate) fn new_id(&self) -> ProtectionId {
        self.lock().ids.next()
    }

    pub(crate) fn note_trouble(&self, trouble: String) {
        self.lock().trouble = Some(trouble);
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }

    // What follows is for the connection's task.

    pub(crate) fn connected(&self, attempt: AttemptId) {
        self.step(Input::Connected(attempt));
    }

    pub(crate) fn disconnected(&self, attempt: AttemptId) {
        self.step(Input::Disconnected(attempt));
    }

    pub(crate) fn found_read_write(&self, host: usize) {
        self.step(Input::FoundReadWrite { host });
    }

    pub(crate) fn deadline(&self) {
        self.step(Input::Deadline);
    }

    /// Takes in all of `payloads` under one lock; gives how many requests they have answered.
    pub(crate) fn frames<'a>(
        &self,
        attempt: AttemptId,
        payloads: impl Iterator<Item = &'a [u8]>,
        answers: &mut Answers,
    ) -> usize {
        let now = self.now();
        {
            let mut state = self.lock();
            for payload in payloads {
                state.recorder.bytes_in += payload.len() as u64 + 4;
                state.step(now, Input::Frame { attempt, payload }, answers);
            }
        }
        let answered = answers.len();
        for (to, outcome) in answers.drain(..) {
            to.tell(outcome);
        }
        answered
    }

    /// What there is to do. If `out` is empty it gets the bytes to send; `waker` is kept until something changes.
    /// With `may_wait` bytes are only said to be there, if [`MANY`] requests are under way.
    pub(crate) fn work(&self, out: Option<&mut Vec<u8>>, may_wait: bool, waker: &Waker) -> Work {
        let mut state = self.lock();
        if let Some(out) = out
            && state.order.is_none()
            && out.is_empty()
            && !state.effects.bytes.is_empty()
        {
            if may_wait && state.waiters.len() >= MANY {
                return Work { order: None, probe: None, deadline: None, others_first: true };
            }
            std::mem::swap(out, &mut state.effects.bytes);
            state.recorder.bytes_out += out.len() as u64;
        }
        let order = state.order.take();
        match &mut state.waker {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        Work { order, probe: state.probe.take(), deadline: state.core.next_deadline(), others_first: false }
    }
}

fn deliver(answers: Answers, waker: Option<Waker>) {
    for (to, outcome) in answers {
        to.tell(outcome);
    }
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl State {
    fn wait(&mut self, op: Op, to: Told) -> RequestId {
        let id = RequestId(self.first_waiter + self.waiters.len() as u64);
        self.waiters.push_back(Some(Waiter { op, to }));
        id
    }

    fn take_waiter(&mut self, id: RequestId) -> Option<Waiter> {
        let place = usize::try_from(id.0.checked_sub(self.first_waiter)?).ok()?;
        let waiter = self.waiters.get_mut(place)?.take();
        while let Some(None) = self.waiters.front() {
            self.waiters.pop_front();
            self.first_waiter += 1;
        }
        waiter
    }

    fn step(&mut self, now: Mono, input: Input<'_>, answers: &mut Answers) {
        let payload = match &input {
            Input::Frame { payload, .. } => *payload,
            _ => &[],
        };
        self.core.step(now, input, &mut self.effects);
        if self.effects.list.is_empty() {
            return;
        }
        let mut list = std::mem::take(&mut self.effects.list);
        for effect in list.drain(..) {
            self.route(now, effect, payload, answers);
        }
        self.effects.list = list;
    }

    fn route(&mut self, now: Mono, effect: Effect, payload: &[u8], answers: &mut Answers) {
        match effect {
            Effect::Reply { id, asked, error, .. } => {
                let Some(waiter) = self.take_waiter(id) else { return };
                self.recorder.answered(waiter.op, now.since(asked), error);
                let body = Bytes::copy_from_slice(payload.get(ReplyHeader::SIZE..).unwrap_or_default());
                answers.push((waiter.to, Ok(Reply { error, body })));
            }
            Effect::Failed { id, failure } => {
                let Some(waiter) = self.take_waiter(id) else { return };
                self.recorder.failed(waiter.op);
                answers.push((waiter.to, Err(failure)));
            }
            Effect::Event { watchers, kind, path, zxid } => {
                self.recorder.events += watchers.len() as u64;
                for watch in watchers {
                    self.tell(watch, WatchedEvent { kind, path: path.clone(), zxid });
                }
            }
            Effect::WatchesEnded(watches) => {
                let failure = self.core.failure().unwrap_or(Failure::SessionExpired);
                self.end_watches(watches, WatchEnd::Failed(failure));
            }
            Effect::WatchesRemoved(watches) => self.end_watches(watches, WatchEnd::Removed),
            Effect::State(next) => {
                tracing::debug!(state = ?next.state, session = ?next.session, "connection state");
                self.recorder.state(next.state);
                self.subscribers.tell(next);
            }
            Effect::Connect { attempt, host } => self.order = Some(Order::Connect { attempt, host }),
            Effect::Hangup(_) => self.order = Some(Order::Hangup),
            Effect::ProbeReadWrite { host } => self.probe = Some(host),
            Effect::Ended { .. } => {
                self.order = Some(Order::Stop);
                self.sinks.clear();
                self.subscribers.end();
            }
        }
    }

    fn end_watches(&mut self, watches: Vec<WatchId>, end: WatchEnd) {
        for watch in watches {
            if let Some(sink) = self.sinks.remove(&watch) {
                sink.end(end);
            }
        }
    }

    fn tell(&mut self, watch: WatchId, event: WatchedEvent) {
        let done = match self.sinks.get_mut(&watch) {
            Some(sink) => sink.tell(event),
            None => false,
        };
        if done {
            self.sinks.remove(&watch);
        }
    }
}

/// A path of the server as a handle with this root names it.
pub(crate) fn relative(chroot: &Chroot, path: String) -> String {
    match chroot.is_none() {
        true => path,
        false => chroot.relative(&path).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    /// A deadline in the past would have the connection's task look at it again and again, without a pause.
    #[tokio::test(start_paused = true)]
    async fn what_is_still_to_come_is_ahead_however_long_the_client_has_been_there() {
        let shared = Shared::new(ostler_client_core::Config::new(1, 1), Ids::from_seed(1));
        let wait = Duration::from_secs(5);
        for days in [0, 1, 364, 365, 366, 1000] {
            let begun = shared.begun;
            tokio::time::advance((begun + days * DAY).saturating_duration_since(Instant::now())).await;
            let next = shared.instant(shared.now() + wait);
            assert_eq!(next.saturating_duration_since(Instant::now()), wait, "after {days} days");
        }
    }

    /// A deadline that never comes is further away than any clock goes.
    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_far_ahead() {
        let shared = Shared::new(ostler_client_core::Config::new(1, 1), Ids::from_seed(1));
        tokio::time::advance(400 * DAY).await;
        assert!(shared.instant(Mono(Duration::MAX)) > Instant::now() + 30 * DAY);
    }
}
