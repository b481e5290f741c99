//! Leading until a function returns.

use super::participant::{self, Participant};
use crate::{
    background::{Ended, Running},
    error::{Error, Result},
    fencing::{Fence, FencedMulti, Token},
    line::{self, Place},
    lock::{WORD, wait_in_line},
    planted::{self, Bug},
};
use ostler_client::Client;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{oneshot, watch};
use tracing::Instrument;

/// What a leader does. Closures that take a [`Leadership`] and return a future are of this kind.
pub trait TakeLeadership: Send + Sync + 'static {
    /// Called when elected; leads until it returns. When leadership is lost or in doubt, interrupted or closed, the
    /// future is dropped at its next `await`, and nobody else is elected by this selector's doing before that.
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

/// What a leader is given.
#[derive(Debug, Clone)]
pub struct Leadership {
    client: Client,
    fence: Fence,
}

impl Leadership {
    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What leading means to servers and other stores.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// A number that grows from leader to leader.
    pub fn token(&self) -> Token {
        self.fence.token()
    }

    /// [`Fence::multi`].
    pub fn multi(&self) -> FencedMulti<'_> {
        self.fence.multi()
    }
}

/// Where a selector is in its life.
#[derive(Debug, Clone)]
pub enum SelectorState {
    /// It was not started.
    Latent,
    /// It does not contend: its function has returned, or it could not contend, which the error says.
    Idle(Option<Error>),
    /// It stands in the queue, or is about to.
    Queued,
    /// Its function runs.
    Leading(Fence),
    /// It was closed.
    Closed,
}

/// One participant of an election: a function of it is called when it is elected, and it leads until that returns.
/// Curator's `LeaderSelector`, with its znodes, so that Java and Rust stand in one election.
///
/// ```
/// # use ostler_recipes::leader::{LeaderSelector, Leadership};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// # client.create("/state", b"").await?;
/// let lead = |leadership: Leadership| async move {
///     // Written only if it leads when it is written:
///     let written = leadership.multi().set_data("/state", b"new").commit().await;
/// };
/// let selector = LeaderSelector::builder(&client, "/election", lead).id("server-7").auto_requeue().start();
/// selector.close().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LeaderSelector {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    state: watch::Sender<SelectorState>,
    /// Counts interruptions.
    interrupt: watch::Sender<u64>,
    /// Stops the task; taken by the first who closes it.
    stop: Mutex<Option<oneshot::Sender<()>>>,
    ended: Ended,
}

/// Describes a selector; [`start`](LeaderSelectorBuilder::start) makes it.
#[derive(Debug)]
#[must_use = "nobody contends until start"]
pub struct LeaderSelectorBuilder<H> {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    auto_requeue: bool,
    handler: H,
}

impl<H: TakeLeadership> LeaderSelectorBuilder<H> {
    /// What it calls itself; nothing unless said.
    pub fn id(mut self, id: &str) -> Self {
        self.id = id.into();
        self
    }

    /// Contends again whenever it has led, and whenever it could not contend because of connection trouble.
    pub fn auto_requeue(mut self) -> Self {
        self.auto_requeue = true;
        self
    }

    /// Begins to contend. Must be called within a tokio runtime.
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
        let ended = Ended::of(&self.client, |running| contender.run(running, stopped).instrument(span));
        let stop = Mutex::new(Some(stop));
        LeaderSelector { client: self.client, path: self.path, id: self.id, state, interrupt, stop, ended }
    }
}

impl LeaderSelector {
    /// Begins to describe a participant of the election at `path`, whose children are the queue.
    pub fn builder<H: TakeLeadership>(client: &Client, path: &str, handler: H) -> LeaderSelectorBuilder<H> {
        let id = "".into();
        LeaderSelectorBuilder { client: client.clone(), path: path.into(), id, auto_requeue: false, handler }
    }

    /// Contends again, if it does not contend and is not closed; false otherwise. Whoever has seen it lead and then
    /// not lead any more can requeue it (CURATOR-671).
    pub fn requeue(&self) -> bool {
        self.state.send_if_modified(|state| {
            let idle = matches!(state, SelectorState::Idle(_));
            if idle {
                *state = SelectorState::Queued;
            }
            idle
        })
    }

    /// Has the function's future dropped, if it runs. With auto-requeue it then contends again.
    pub fn interrupt_leadership(&self) {
        self.interrupt.send_modify(|interruptions| *interruptions += 1);
    }

    /// Whether its function runs and, as far as it can know without asking a server, it leads.
    pub fn has_leadership(&self) -> bool {
        let leading = match &*self.state.borrow() {
            SelectorState::Leading(fence) => fence.is_held(),
            _ => false,
        };
        leading && line::is_writable(self.client.state().state)
    }

    /// Where it is in its life.
    pub fn state(&self) -> SelectorState {
        self.state.borrow().clone()
    }

    /// Waits until its state is as wanted.
    pub async fn wait_for(&self, mut wanted: impl FnMut(&SelectorState) -> bool) -> SelectorState {
        let mut states = self.state.subscribe();
        match states.wait_for(|state| wanted(state)).await {
            Ok(state) => state.clone(),
            // Cannot be: this holds a sender.
            Err(_) => SelectorState::Closed,
        }
    }

    /// What it calls itself.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// All who take part, in the order of the queue.
    ///
    /// # Errors
    /// The client's.
    pub async fn participants(&self) -> Result<Vec<Participant>> {
        participant::all(&self.client, &self.path, WORD).await
    }

    /// The first in the queue; `None` if nobody takes part.
    ///
    /// # Errors
    /// The client's.
    pub async fn leader(&self) -> Result<Option<Participant>> {
        participant::leader(&self.client, &self.path, WORD).await
    }

    /// Leaves the election. When this returns the function's future is dropped, and the znode is gone, or will go in
    /// the background if there is connection trouble. Whoever else closes it waits for that as well.
    pub async fn close(&self) {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop) = stop {
            // If nobody listens, it has ended by itself.
            let _ = stop.send(());
        }
        self.ended.clone().wait().await;
    }
}

/// The task's side.
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
    async fn run(self, running: Running, mut stopped: oneshot::Receiver<()>) {
        loop {
            // Sent, or the selector is gone; what was begun leaves the queue when it is dropped.
            let place = tokio::select! {
                biased;
                _ = &mut stopped => break,
                place = self.elected(&running) => place,
            };
            let stop = self.lead(&place, &mut stopped).await;
            if planted::is(Bug::SelectorForgetsZnode) {
                place.forget();
            } else {
                // It goes on in the background.
                let _ = place.leave().await;
            }
            if stop {
                break;
            }
        }
        self.state.send_replace(SelectorState::Closed);
    }

    /// Waits until it is to contend and was elected.
    async fn elected(&self, running: &Running) -> Place {
        let mut states = self.state.subscribe();
        loop {
            if states.wait_for(|state| matches!(state, SelectorState::Queued)).await.is_err() {
                // Cannot be: this holds a sender.
                std::future::pending::<()>().await;
            }
            let wait = |session| async move {
                wait_in_line(&session, &self.path, self.id.as_bytes(), Some(running)).await
            };
            match line::in_a_session(&self.client, wait).await {
                Ok(place) => return place,
                Err(Error::Client(error)) if error.may_pass() && self.auto_requeue => {
                    tracing::debug!(%error, "waiting for a connection");
                    // Closed if there is an error, which the next attempt finds.
                    let _ = line::wait_writable(&self.client).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot contend for leadership");
                    let told = Some(error).filter(|_| !planted::is(Bug::SelectorHidesError));
                    self.state.send_replace(SelectorState::Idle(told));
                }
            }
        }
    }

    /// Runs the function; true if it is to stop.
    async fn lead(&self, place: &Place, stopped: &mut oneshot::Receiver<()>) -> bool {
        // From now on, an interruption is meant for this reign.
        let mut interruptions = self.interrupt.subscribe();
        self.state.send_replace(SelectorState::Leading(place.fence().clone()));
        let leadership = Leadership { client: self.client.clone(), fence: place.fence().clone() };
        let handler = self.handler.clone();
        // In a task of its own, so that its panic ends the reign and not the selector.
        let mut task = self.client.runtime().spawn(async move { handler.take_leadership(leadership).await });
        // To be closed ends all of it, whatever else has come; a function that has returned was not interrupted.
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
