//! The session state that the client handles and the connection's task share, behind one lock.
//!
//! A caller's task takes the lock, steps the session and appends its bytes to those of other callers. The connection's
//! task takes all gathered bytes and writes them at once.

use crate::{
    error::Error,
    metrics::Recorder,
    outcome::{Deliveries, Outcome, Recipient, Reply, deliver},
    protected::{Ids, ProtectionId},
    states::{StateStream, Subscribers},
    tracing,
    watch::{Sink, WatchEnd, WatchedEvent},
};
use bytes::Bytes;
use ostler_client_core::{
    AttemptId, AuthInfo, Chroot, ConnectionState, Credentials, Effect, Effects, Failure, Input, Mono,
    OnChange, RankedHost, RequestId, RetryBudget, RetryTokens, SaslStep, Session, SessionState, WatchId,
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
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    task::Waker,
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

/// From this number of requests under way on, the connection's task lets other tasks run first, so that several requests
/// share one write. With fewer requests a write for each costs less: a yield can wake another thread of the runtime in
/// vain.
pub(crate) const SHARED_WRITE_MIN: usize = 3;

/// Whether servers know create2, as far as this client has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Create2 {
    Untried,
    Known,
    Unknown,
}

/// The next action that the session asks of the connection's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskCommand {
    Connect { attempt: AttemptId, host: usize },
    Hangup,
    Stop,
}

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    begun: Instant,
    create2: AtomicU8,
    /// The retries that are left, if they have a budget.
    retries: Option<Mutex<RetryTokens>>,
    /// Notified when each server has failed.
    pub(crate) each_failed: Arc<Notify>,
    pub(crate) runtime: tokio::runtime::Handle,
}

struct Waiter {
    op: Op,
    recipient: Recipient,
}

pub(crate) struct State {
    core: Session,
    effects: Effects,
    /// Indexed by request number minus `first_waiter`; `None` for a request that has its outcome.
    waiters: VecDeque<Option<Waiter>>,
    first_waiter: u64,
    sinks: HashMap<WatchId, Sink, FxBuildHasher>,
    last_watch: u64,
    subscribers: Subscribers,
    order: Option<TaskCommand>,
    probe: Option<usize>,
    sasl: Option<SaslToken>,
    /// Set while the connection's task sleeps.
    waker: Option<Waker>,
    recorder: Recorder,
    ids: Ids,
    last_error: Option<String>,
    /// Notified when each server has failed.
    each_failed: Arc<Notify>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("core", &self.core).finish_non_exhaustive()
    }
}

/// A token of the server, for the mechanism of the client.
#[derive(Debug)]
pub(crate) struct SaslToken {
    pub(crate) attempt: AttemptId,
    #[cfg_attr(not(feature = "gssapi"), expect(dead_code, reason = "no mechanism reads it"))]
    pub(crate) token: Option<Vec<u8>>,
}

/// A login that cannot go on.
#[derive(Debug)]
pub(crate) struct FailedStep {
    pub(crate) step: SaslStep,
    pub(crate) problem: String,
}

/// The work that [`Shared::work`] hands to the connection's task.
pub(crate) struct Work {
    pub(crate) order: Option<TaskCommand>,
    pub(crate) probe: Option<usize>,
    pub(crate) sasl: Option<SaslToken>,
    pub(crate) deadline: Option<Mono>,
    /// There are bytes to send, but other tasks should run first. The other fields are not set.
    pub(crate) others_first: bool,
}

/// Stands for a deadline that never comes.
const FAR_AHEAD: Duration = Duration::from_secs(86_400 * 365);

impl Shared {
    pub(crate) fn new(config: ostler_client_core::Config, ids: Ids) -> Shared {
        let each_failed = Arc::new(Notify::new());
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
            sasl: None,
            waker: None,
            recorder: Recorder::default(),
            ids,
            last_error: None,
            each_failed: each_failed.clone(),
        };
        let runtime = tokio::runtime::Handle::current();
        Shared {
            state: Mutex::new(state),
            begun: Instant::now(),
            create2: AtomicU8::new(Create2::Untried as u8),
            retries: None,
            each_failed,
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

    /// The same, and retries have a budget.
    pub(crate) fn with_budget(self, budget: Option<RetryBudget>) -> Shared {
        Shared { retries: budget.map(|budget| Mutex::new(RetryTokens::new(budget, self.now()))), ..self }
    }

    /// Takes a retry from the budget. True if there is no budget.
    pub(crate) fn take_retry(&self) -> bool {
        let Some(retries) = &self.retries else { return true };
        let requests = {
            let state = self.lock();
            state.first_waiter + state.waiters.len() as u64
        };
        retries.lock().unwrap_or_else(PoisonError::into_inner).take(self.now(), requests)
    }

    /// The session's time now.
    pub(crate) fn now(&self) -> Mono {
        Mono(self.begun.elapsed())
    }

    /// The moment of a session's time.
    pub(crate) fn instant(&self, at: Mono) -> Instant {
        // `Instant` cannot represent a deadline that never comes.
        self.begun.checked_add(at.0).unwrap_or_else(|| Instant::now() + FAR_AHEAD)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic within a step is a bug; other callers go on with the state that it left.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps the session, and delivers the outcomes.
    fn step(&self, input: Input<'_>) {
        self.step_with(|_| input);
    }

    /// Steps the session with an input that is made under its lock, and delivers the outcomes.
    fn step_with<'a>(&self, make_input: impl FnOnce(&mut State) -> Input<'a>) {
        let now = self.now();
        let mut deliveries = Deliveries::new();
        let waker = {
            let mut state = self.lock();
            let input = make_input(&mut state);
            state.step(now, input, &mut deliveries);
            state.waker.take()
        };
        deliver(deliveries, waker);
    }

    /// Hands over a request. This call fixes its place in the order of the client's requests.
    pub(crate) fn submit(
        &self,
        request: &Request<'_>,
        session: Option<SessionId>,
        watch: Option<WatchId>,
    ) -> oneshot::Receiver<Outcome> {
        let (to, outcome) = oneshot::channel();
        self.submit_for(Recipient::Caller(to), request, session, watch);
        outcome
    }

    /// [`submit`](Shared::submit) for any recipient.
    pub(crate) fn submit_for(
        &self,
        recipient: Recipient,
        request: &Request<'_>,
        session: Option<SessionId>,
        watch: Option<WatchId>,
    ) {
        self.step_with(|state| {
            let id = state.wait(request.op().unwrap_or(Op::Ping), recipient);
            Input::Request { id, session, request, watch }
        });
    }

    pub(crate) fn add_auth(&self, auth: AuthInfo) -> oneshot::Receiver<Outcome> {
        self.ask(Op::Auth, |id| Input::AddAuth { id, auth })
    }

    pub(crate) fn close(&self) -> oneshot::Receiver<Outcome> {
        self.ask(Op::CloseSession, Input::Close)
    }

    fn ask<'a>(&self, op: Op, input: impl FnOnce(RequestId) -> Input<'a>) -> oneshot::Receiver<Outcome> {
        let (to, outcome) = oneshot::channel();
        self.step_with(|state| input(state.wait(op, Recipient::Caller(to))));
        outcome
    }

    /// Registers a receiver of watch events. It gets events once a request with the returned id has set the watch.
    pub(crate) fn add_sink(&self, sink: Sink) -> WatchId {
        let mut state = self.lock();
        state.last_watch += 1;
        let watch = WatchId(state.last_watch);
        state.sinks.insert(watch, sink);
        watch
    }

    /// Removes the receiver of a watch, and the watch at the server if no other receiver needs it.
    pub(crate) fn unwatch(&self, watch: WatchId) {
        self.step_with(|state| {
            state.sinks.remove(&watch);
            Input::Unwatch(watch)
        });
    }

    pub(crate) fn subscribe(&self) -> StateStream {
        let mut state = self.lock();
        let current = state.core.state();
        state.subscribers.add(current)
    }

    /// The last reported state, and the session if it can be taken to live now. A session whose time is over is lost for
    /// good, even if a reply arrives later: a caller may have acted on the loss.
    pub(crate) fn state_now(&self) -> (SessionState, Option<SessionId>) {
        let now = self.now();
        let mut deliveries = Deliveries::new();
        let (seen, waker) = {
            let mut state = self.lock();
            if planted::is(Bug::HolderAsksNoClock) {
                let reported = state.core.state();
                let lives = !matches!(reported.state, ConnectionState::Lost | ConnectionState::Closed);
                return (reported, reported.session.filter(|_| lives));
            }
            let waker = if state.core.is_overdue(now) {
                state.step(now, Input::Deadline, &mut deliveries);
                state.waker.take()
            } else {
                None
            };
            ((state.core.state(), state.core.session_at(now)), waker)
        };
        deliver(deliveries, waker);
        seen
    }

    /// Notes that a recipe holds something in the session. Each call needs a [`release`](Shared::release).
    pub(crate) fn hold(&self, session: SessionId) {
        self.step(Input::Hold(session));
    }

    /// Ends one [`hold`](Shared::hold).
    pub(crate) fn release(&self, session: SessionId) {
        self.step(Input::Release(session));
    }

    pub(crate) fn is_proven(&self, session: SessionId) -> bool {
        self.lock().core.is_proven(session)
    }

    pub(crate) fn session_timeout(&self) -> Option<Duration> {
        self.lock().core.timeout()
    }

    /// By which another connection can take over the session.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        self.lock().core.credentials()
    }

    pub(crate) fn last_zxid(&self) -> Zxid {
        self.lock().core.last_zxid()
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn metrics(&self) -> crate::metrics::Metrics {
        let state = self.lock();
        state.recorder.report(state.core.watchers(), state.waiters.iter().flatten().count())
    }

    /// A new unique id for a protected znode.
    pub(crate) fn new_id(&self) -> ProtectionId {
        self.lock().ids.next()
    }

    pub(crate) fn note_error(&self, error: String) {
        self.lock().last_error = Some(error);
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.lock().last_error.clone()
    }

    /// The error of callers that wait for a connection of a client that has ended. A client that has ended with its
    /// session is closed: a wait for the next session would be in vain.
    pub(crate) fn end_error(&self) -> Error {
        match self.lock().core.failure() {
            Some(Failure::AuthFailed) => Error::AuthFailed,
            _ => Error::Closed,
        }
    }

    // The functions below are for the connection's task.

    pub(crate) fn connected(&self, attempt: AttemptId) {
        self.step(Input::Connected(attempt));
    }

    pub(crate) fn disconnected(&self, attempt: AttemptId) {
        self.step(Input::Disconnected(attempt));
    }

    pub(crate) fn sasl_step(&self, attempt: AttemptId, step: SaslStep) {
        self.step(Input::SaslStep { attempt, step });
    }

    pub(crate) fn found_read_write(&self, host: usize) {
        self.step(Input::FoundReadWrite { host });
    }

    pub(crate) fn deadline(&self) {
        self.step(Input::Deadline);
    }

    pub(crate) fn replace_servers(&self, servers: &[RankedHost], on_change: OnChange) {
        self.step(Input::Servers { servers, on_change });
    }

    pub(crate) fn change_server(&self) {
        self.step(Input::MoveOff);
    }

    /// The number of the connected server.
    pub(crate) fn server(&self) -> Option<usize> {
        self.lock().core.server()
    }

    /// Processes all `payloads` under one lock. Returns the number of requests that they answered.
    pub(crate) fn frames<'a>(
        &self,
        attempt: AttemptId,
        payloads: impl Iterator<Item = &'a [u8]>,
        deliveries: &mut Deliveries,
    ) -> usize {
        let now = self.now();
        {
            let mut state = self.lock();
            for payload in payloads {
                state.recorder.received(payload.len() + 4);
                state.step(now, Input::Frame { attempt, payload }, deliveries);
            }
        }
        let answered = deliveries.len();
        for (recipient, outcome) in deliveries.drain(..) {
            recipient.deliver(outcome);
        }
        answered
    }

    /// The work for the connection's task. If `out` is empty, it gets the bytes to send. `waker` is woken at the next
    /// change. With `may_wait`, and if [`SHARED_WRITE_MIN`] requests are under way, the bytes stay and
    /// [`Work::others_first`] is set.
    pub(crate) fn work(&self, out: Option<&mut Vec<u8>>, may_wait: bool, waker: &Waker) -> Work {
        let mut state = self.lock();
        let may_send = state.order.is_none() && !state.effects.bytes.is_empty();
        if let Some(out) = out.filter(|out| may_send && out.is_empty()) {
            if may_wait && state.waiters.len() >= SHARED_WRITE_MIN {
                return Work { order: None, probe: None, sasl: None, deadline: None, others_first: true };
            }
            std::mem::swap(out, &mut state.effects.bytes);
            state.recorder.sent(out.len());
        }
        let order = state.order.take();
        match &mut state.waker {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        Work {
            order,
            probe: state.probe.take(),
            sasl: state.sasl.take(),
            deadline: state.core.next_deadline(),
            others_first: false,
        }
    }
}

impl State {
    fn wait(&mut self, op: Op, recipient: Recipient) -> RequestId {
        let id = RequestId(self.first_waiter + self.waiters.len() as u64);
        self.waiters.push_back(Some(Waiter { op, recipient }));
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

    fn step(&mut self, now: Mono, input: Input<'_>, deliveries: &mut Deliveries) {
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
            self.route(now, effect, payload, deliveries);
        }
        self.effects.list = list;
    }

    fn route(&mut self, now: Mono, effect: Effect, payload: &[u8], deliveries: &mut Deliveries) {
        match effect {
            Effect::Reply { id, asked, error, .. } => {
                let Some(waiter) = self.take_waiter(id) else { return };
                self.recorder.answered(waiter.op, now.since(asked), error);
                let body = Bytes::copy_from_slice(payload.get(ReplyHeader::SIZE..).unwrap_or_default());
                deliveries.push((waiter.recipient, Ok(Reply { error, body })));
            }
            Effect::Failed { id, failure } => {
                let Some(waiter) = self.take_waiter(id) else { return };
                self.recorder.failed(waiter.op);
                deliveries.push((waiter.recipient, Err(failure)));
            }
            Effect::Event { watchers, kind, path, zxid } => {
                self.recorder.delivered(watchers.len());
                for watch in watchers {
                    self.send_event(watch, WatchedEvent { kind, path: path.clone(), zxid });
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
                self.subscribers.report(next);
            }
            Effect::Connect { attempt, host } => self.order = Some(TaskCommand::Connect { attempt, host }),
            Effect::SaslToken { attempt, token } => self.sasl = Some(SaslToken { attempt, token }),
            Effect::Hangup(_) => self.order = Some(TaskCommand::Hangup),
            Effect::ProbeReadWrite { host } => self.probe = Some(host),
            Effect::EachServerFailed => self.each_failed.notify_one(),
            Effect::Ended { .. } => {
                self.order = Some(TaskCommand::Stop);
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

    fn send_event(&mut self, watch: WatchId, event: WatchedEvent) {
        let done = match self.sinks.get_mut(&watch) {
            Some(sink) => sink.send(event),
            None => false,
        };
        if done {
            self.sinks.remove(&watch);
        }
    }
}

/// A path from the servers' root as a path from the root of a handle.
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

    /// With a deadline in the past the connection's task would spin.
    #[tokio::test(start_paused = true)]
    async fn deadlines_stay_in_the_future_for_a_client_of_any_age() {
        let shared = Shared::new(ostler_client_core::Config::new(1, 1), Ids::from_seed(1));
        let wait = Duration::from_secs(5);
        for days in [0, 1, 364, 365, 366, 1000] {
            let begun = shared.begun;
            tokio::time::advance((begun + days * DAY).saturating_duration_since(Instant::now())).await;
            let next = shared.instant(shared.now() + wait);
            assert_eq!(next.saturating_duration_since(Instant::now()), wait, "after {days} days");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_never_comes_is_far_ahead() {
        let shared = Shared::new(ostler_client_core::Config::new(1, 1), Ids::from_seed(1));
        tokio::time::advance(400 * DAY).await;
        assert!(shared.instant(Mono(Duration::MAX)) > Instant::now() + 30 * DAY);
    }
}
