//! The leader selector: a participant that, once elected, leads until its function returns.

use super::participant::{self, Participant};
use crate::{
    background::{TaskEnd, TaskGuard},
    error::{Error, Result},
    fencing::Fence,
    lock::{WORD, wait_for_place},
    polled::PolledWatch,
    queue_place::{PlaceSpec, QueuePlace},
    session_retry,
};
use futures_util::Stream;
use ostler_client::{Client, RecipeTag};
use ostler_planted::{self as planted, Bug};
use std::{
    fmt,
    future::poll_fn,
    ops::Deref,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};
use tokio::sync::{oneshot, watch};
use tracing::Instrument;

/// The function that a selector runs while it leads. Closures that take a [`Leadership`] and return a future implement
/// it.
pub trait TakeLeadership: Send + Sync + 'static {
    /// Called when the selector is elected. The selector leads until the future ends. If leadership is lost, in doubt
    /// or interrupted, or the selector is closed, the future is dropped at its next `await`. The selector gives up its
    /// place in the queue only after that.
    fn take_leadership(&self, leadership: Leadership) -> impl Future<Output = ()> + Send;
}

impl<F, T> TakeLeadership for F
where
    F: Fn(Leadership) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send,
{
    fn take_leadership(&self, leadership: Leadership) -> impl Future<Output = ()> + Send {
        self(leadership)
    }
}

/// A selector's leadership, as its function gets it.
///
/// It dereferences to its [`Fence`], with token and transactions.
#[derive(Debug, Clone)]
pub struct Leadership {
    client: Client,
    fence: Fence,
}

impl Deref for Leadership {
    type Target = Fence;

    fn deref(&self) -> &Fence {
        &self.fence
    }
}

impl Leadership {
    /// The selector's client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The fence of this leadership.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }
}

/// The state of a selector.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SelectorState {
    /// The selector does not contend: its function has ended, or the error kept it from contending.
    Idle(Option<Error>),
    /// The selector is in the queue, or is about to enter it.
    Queued,
    /// The selector's function runs, with this fence.
    Leading(Fence),
    /// The selector was closed.
    Closed,
}

/// The states of a selector, beginning with the present one. A state that has ended before it was read is left out. The
/// stream ends after [`SelectorState::Closed`].
#[derive(Debug)]
pub struct SelectorStates {
    state: PolledWatch<SelectorState>,
    begun: bool,
    over: bool,
}

impl SelectorStates {
    /// Waits for the next state; `None` once the selector is closed.
    pub async fn next(&mut self) -> Option<SelectorState> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<SelectorState>> {
        if self.over || self.begun && ready!(self.state.poll_changed(cx)).is_none() {
            return Poll::Ready(None);
        }
        self.begun = true;
        let state = self.state.borrow_and_update().clone();
        self.over = matches!(state, SelectorState::Closed);
        Poll::Ready(Some(state))
    }
}

impl Stream for SelectorStates {
    type Item = SelectorState;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SelectorState>> {
        self.poll(cx)
    }
}

/// One participant of an election. When it is elected it calls its function, and it leads until the function returns.
/// This is Curator's `LeaderSelector`, with the same znodes: programs in Java and Rust can take part in one election.
///
/// ```
/// # use ostler_recipes::leader::{LeaderSelector, Leadership};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// # client.create("/state", b"").await?;
/// let lead = |leadership: Leadership| async move {
///     // The write is done only if the selector leads at that moment.
///     let written = leadership.multi().set_data("/state", b"new").await;
/// };
/// let selector = LeaderSelector::builder(&client, "/election", lead).id("server-7").auto_requeue().start();
/// selector.close().await;
/// # Ok(()) }
/// ```
///
/// When a selector is dropped, its function's future is dropped, and it leaves the election in the background.
#[derive(Debug)]
#[must_use = "a selector that is dropped leaves the election"]
pub struct LeaderSelector {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    state: watch::Sender<SelectorState>,
    /// Counts interruptions.
    interrupt: watch::Sender<u64>,
    /// Stops the task; taken by the first call of `close`.
    stop: Mutex<Option<oneshot::Sender<()>>>,
    ended: TaskEnd,
}

/// Options of a selector; [`start`](LeaderSelectorBuilder::start) creates it.
#[must_use = "nobody contends until start"]
pub struct LeaderSelectorBuilder<H> {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    auto_requeue: bool,
    handler: H,
}

/// Without the function, because closures have no `Debug`.
impl<H> fmt::Debug for LeaderSelectorBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderSelectorBuilder")
            .field("path", &self.path)
            .field("id", &self.id)
            .field("auto_requeue", &self.auto_requeue)
            .finish_non_exhaustive()
    }
}

impl<H: TakeLeadership> LeaderSelectorBuilder<H> {
    /// The selector's id as a participant; empty by default.
    pub fn id(mut self, id: &str) -> Self {
        self.id = id.into();
        self
    }

    /// Lets the selector contend again whenever its leadership has ended, and when connection trouble kept it from
    /// contending. Off by default.
    pub fn auto_requeue(mut self) -> Self {
        self.auto_requeue = true;
        self
    }

    /// Begins to contend.
    pub fn start(self) -> LeaderSelector {
        let (stop, stopped) = oneshot::channel();
        let state = watch::Sender::new(SelectorState::Queued);
        let interrupt = watch::Sender::new(0);
        let span =
            tracing::debug_span!(target: "ostler_recipes", "selector", path = &*self.path, id = &*self.id);
        let contender = Contender {
            client: self.client.clone(),
            path: self.path.clone(),
            id: self.id.clone(),
            auto_requeue: self.auto_requeue,
            handler: Arc::new(self.handler),
            state: state.clone(),
            interrupt: interrupt.clone(),
        };
        let ended = TaskEnd::of(&self.client, |running| contender.run(running, stopped).instrument(span));
        let stop = Mutex::new(Some(stop));
        LeaderSelector { client: self.client, path: self.path, id: self.id, state, interrupt, stop, ended }
    }
}

impl LeaderSelector {
    /// Options of a participant of the election at `path`, whose children are the queue. `handler` runs while it leads.
    pub fn builder<H: TakeLeadership>(client: &Client, path: &str, handler: H) -> LeaderSelectorBuilder<H> {
        let id = "".into();
        LeaderSelectorBuilder { client: client.clone(), path: path.into(), id, auto_requeue: false, handler }
    }

    /// Makes an idle selector contend again. Returns false if it contends already or is closed. As soon as the selector
    /// is seen not to lead any more, it can be requeued (CURATOR-671).
    pub fn requeue(&self) -> bool {
        self.state.send_if_modified(|state| {
            let idle = matches!(state, SelectorState::Idle(_));
            if idle {
                *state = SelectorState::Queued;
            }
            idle
        })
    }

    /// Ends the leadership: if the selector's function runs, its future is dropped. With auto-requeue the selector then
    /// contends again.
    pub fn interrupt_leadership(&self) {
        self.interrupt.send_modify(|interruptions| *interruptions += 1);
    }

    /// Whether the selector leads, without asking a server: its function runs, the client is connected, and by this
    /// machine's clock its session lives.
    pub fn has_leadership(&self) -> bool {
        let leading = match &*self.state.borrow() {
            SelectorState::Leading(fence) => fence.is_held(),
            _ => false,
        };
        leading && session_retry::is_writable(self.client.state().state)
    }

    /// The selector's state.
    pub fn state(&self) -> SelectorState {
        self.state.borrow().clone()
    }

    /// The selector's states, beginning with the present one.
    pub fn states(&self) -> SelectorStates {
        SelectorStates { state: PolledWatch::new(self.state.subscribe()), begun: false, over: false }
    }

    /// Waits until `wanted` returns true for the selector's state, and returns that state. No state comes after
    /// [`SelectorState::Closed`], so this returns it also if it is not wanted: the caller must look at the result.
    ///
    /// An idle selector stays idle until [`requeue`](LeaderSelector::requeue). If nothing calls that, `wanted` should be
    /// true for [`SelectorState::Idle`] as well. A state that ends before this task runs is not seen.
    pub async fn wait_for(&self, mut wanted: impl FnMut(&SelectorState) -> bool) -> SelectorState {
        let mut states = self.state.subscribe();
        match states.wait_for(|state| matches!(state, SelectorState::Closed) || wanted(state)).await {
            Ok(state) => state.clone(),
            // Cannot be: this holds a sender.
            Err(_) => SelectorState::Closed,
        }
    }

    /// The selector's id as a participant.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// All participants of the election, in the order of the queue.
    ///
    /// # Errors
    /// The client's errors.
    pub async fn participants(&self) -> Result<Vec<Participant>> {
        participant::all(&self.client, &self.path, WORD).await
    }

    /// The first participant in the queue; `None` if there is none.
    ///
    /// # Errors
    /// The client's errors.
    pub async fn leader(&self) -> Result<Option<Participant>> {
        participant::leader(&self.client, &self.path, WORD).await
    }

    /// Leaves the election. When this returns the function's future is dropped and the znode is deleted; if there is
    /// connection trouble, the deletion goes on in the background. Further callers wait for the same.
    pub async fn close(&self) {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop) = stop {
            // If the receiver is gone, the task has ended already.
            let _ = stop.send(());
        }
        self.ended.clone().wait().await;
    }
}

/// The selector's task.
struct Contender<H> {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    auto_requeue: bool,
    handler: Arc<H>,
    state: watch::Sender<SelectorState>,
    /// Counts interruptions.
    interrupt: watch::Sender<u64>,
}

impl<H: TakeLeadership> Contender<H> {
    async fn run(self, running: TaskGuard, mut stopped: oneshot::Receiver<()>) {
        loop {
            // The selector is closed or dropped. The dropped future of `elected` leaves the queue.
            let place = tokio::select! {
                biased;
                _ = &mut stopped => break,
                place = self.elected(&running) => place,
            };
            let stop = self.lead(&place, &mut stopped).await;
            if planted::is(Bug::SelectorForgetsZnode) {
                place.forget();
            } else {
                // After an error the deletion goes on in the background.
                let _ = place.leave().await;
            }
            if stop {
                break;
            }
        }
        self.state.send_replace(SelectorState::Closed);
    }

    /// Waits until the selector is to contend, and until it is elected.
    async fn elected(&self, running: &TaskGuard) -> QueuePlace {
        let mut states = self.state.subscribe();
        loop {
            if states.wait_for(|state| matches!(state, SelectorState::Queued)).await.is_err() {
                // Cannot be: this holds a sender.
                std::future::pending::<()>().await;
            }
            let (data, tag) = (self.id.as_bytes(), RecipeTag::LeaderSelector);
            let spec = PlaceSpec { path: &self.path, word: WORD, data, tag };
            let wait = |session| async move { wait_for_place(&session, spec, Some(running)).await };
            match session_retry::in_a_session(&self.client, wait).await {
                Ok(place) => return place,
                Err(Error::Client(error)) if error.is_retryable() && self.auto_requeue => {
                    tracing::debug!(%error, "waiting for a connection");
                    // An error means that the client is closed, which the next attempt returns as well.
                    let _ = session_retry::wait_writable(&self.client).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot contend for leadership");
                    let error = Some(error).filter(|_| !planted::is(Bug::SelectorHidesError));
                    self.state.send_replace(SelectorState::Idle(error));
                }
            }
        }
    }

    /// Runs the function. Returns true if the selector is to be closed.
    async fn lead(&self, place: &QueuePlace, stopped: &mut oneshot::Receiver<()>) -> bool {
        // From now on, an interruption is meant for this leadership.
        let mut interruptions = self.interrupt.subscribe();
        self.state.send_replace(SelectorState::Leading(place.fence().clone()));
        let leadership = Leadership { client: self.client.clone(), fence: place.fence().clone() };
        let handler = self.handler.clone();
        // In a task of its own, so that a panic of the function ends the leadership and not the selector.
        let mut task = self.client.runtime().spawn(async move { handler.take_leadership(leadership).await });
        // Biased: closing comes first. A function that has returned does not count as interrupted.
        let (stop, ended) = tokio::select! {
            biased;
            _ = stopped => (true, None),
            ended = &mut task => (false, Some(ended)),
            () = place.fence().lost() => (false, None),
            _ = interruptions.changed() => (false, None),
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                task.abort();
                task.await
            }
        };
        if ended.is_err_and(|error| error.is_panic()) {
            tracing::error!("the function that leads has panicked; leadership is given up");
        }
        self.state.send_replace(match self.auto_requeue {
            true => SelectorState::Queued,
            false => SelectorState::Idle(None),
        });
        stop
    }
}
