//! Leading until closed.
//!
//! One task owns the place in the queue, so nothing can interleave: it takes a place in the present session, waits for
//! its turn, makes sure that the znode is there, says that it leads, and watches. Leadership is given up as soon as the
//! connection is suspended. After a reconnect to the same session the place is still there and is kept; only a session
//! that is over, or a znode that somebody has deleted, makes it take a new one.

use super::participant::{self, Participant};
use crate::{
    background::{Ended, Running},
    error::{Error, Result},
    fencing::Fence,
    line::{self, Line, Place, Turn, is_writable},
    line_order::standing,
    planted::{self, Bug},
};
use ostler_client::{Client, Session};
use ostler_proto::planted::{self as simulated, Bug as Simulated};
use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};
use tracing::Instrument;

/// The word in the names of a latch's znodes.
const WORD: &str = "latch-";

/// What those who follow a latch's changes are told when it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloseMode {
    /// Nothing.
    #[default]
    Silent,
    /// That it does not lead any more, if it did.
    NotifyLeader,
}

/// Where a latch is in its life.
#[derive(Debug, Clone)]
pub enum LatchState {
    /// It was not started.
    Latent,
    /// It contends, or leads.
    Started,
    /// It was closed.
    Closed,
    /// It cannot contend, and has stopped.
    Failed(Error),
}

/// One participant of an election: it leads from the moment on at which all who came before it are gone, until it is
/// closed. Curator's `LeaderLatch`, with its znodes, so that Java and Rust stand in one election.
///
/// ```
/// # use ostler_recipes::leader::{LeaderChange, LeaderLatch};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// # client.create("/state", b"").await?;
/// let latch = LeaderLatch::new(&client, "/election", "server-7");
/// latch.start();
/// let fence = latch.wait_for_leadership().await?;
/// // Written only if it leads when it is written:
/// fence.multi().set_data("/state", b"new").commit().await?;
/// latch.close().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LeaderLatch {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    close_mode: CloseMode,
    told: watch::Sender<Told>,
    run: Mutex<Run>,
}

#[derive(Debug)]
enum Run {
    Latent,
    Running {
        stop: oneshot::Sender<()>,
        ended: Ended,
    },
    /// What is left to do has to be waited for, if it was started.
    Over(Option<Ended>),
}

/// What everybody who asks or follows is told.
#[derive(Debug, Clone)]
struct Told {
    state: LatchState,
    /// Counts how often leadership was taken up.
    reigns: u64,
    leading: Option<Fence>,
    /// Whether the end of the last reign is kept from those who follow.
    silent: bool,
}

impl LeaderLatch {
    /// A participant that calls itself `id`, of the election at `path`, whose children are the queue.
    pub fn new(client: &Client, path: &str, id: &str) -> LeaderLatch {
        LeaderLatch {
            client: client.clone(),
            path: path.into(),
            id: id.into(),
            close_mode: CloseMode::default(),
            told: watch::Sender::new(Told {
                state: LatchState::Latent,
                reigns: 0,
                leading: None,
                silent: false,
            }),
            run: Mutex::new(Run::Latent),
        }
    }

    /// What those who follow its changes are told when it is closed or dropped; nothing unless said.
    pub fn close_mode(mut self, mode: CloseMode) -> LeaderLatch {
        self.close_mode = mode;
        self
    }

    /// Begins to contend. Must be called within a tokio runtime. Only the first call does something.
    pub fn start(&self) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*run, Run::Latent) {
            return;
        }
        self.told.send_modify(|told| told.state = LatchState::Started);
        let (stop, stopped) = oneshot::channel();
        let contender = Contender {
            client: self.client.clone(),
            path: self.path.clone(),
            id: self.id.clone(),
            told: self.told.clone(),
            place: None,
        };
        let span =
            tracing::debug_span!(target: "ostler_recipes", "latch", path = &*self.path, id = &*self.id);
        let ended = Ended::of(&self.client, |running| contender.run(running, stopped).instrument(span));
        *run = Run::Running { stop, ended };
    }

    /// Leaves the election. When this returns the znode is gone, or will go in the background if there is connection
    /// trouble. Whoever else closes it waits for that as well. It cannot be started again.
    pub async fn close(&self) {
        self.close_with(self.close_mode).await;
    }

    /// [`close`](LeaderLatch::close), with another mode.
    pub async fn close_with(&self, mode: CloseMode) {
        if let Some(ended) = self.end(mode) {
            ended.wait().await;
        }
    }

    /// From now on it does not lead, whatever the task still has to do.
    fn end(&self, mode: CloseMode) -> Option<Ended> {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let was = std::mem::replace(&mut *run, Run::Over(None));
        self.told.send_modify(|told| {
            if !matches!(told.state, LatchState::Failed(_)) {
                told.state = LatchState::Closed;
            }
            told.leading = None;
            told.silent = mode == CloseMode::Silent;
        });
        let ended = match was {
            Run::Running { stop, ended } => {
                // If nobody listens, it has ended by itself.
                let _ = stop.send(());
                Some(ended)
            }
            Run::Over(ended) => ended,
            Run::Latent => None,
        };
        *run = Run::Over(ended.clone());
        ended
    }

    /// Whether it leads, as far as it can know without asking a server: it took up leadership, the connection is up,
    /// and by this machine's clock its session lives.
    pub fn has_leadership(&self) -> bool {
        self.leadership().is_some()
    }

    /// What leading means to servers and other stores, if it [leads](LeaderLatch::has_leadership).
    pub fn leadership(&self) -> Option<Fence> {
        let leading = self.told.borrow().leading.clone()?;
        if simulated::is(Simulated::LatchLeadsOn) {
            return Some(leading);
        }
        let connected = is_writable(self.client.state().state);
        (connected && leading.is_held()).then_some(leading)
    }

    /// Waits until it leads. Curator's `await`.
    ///
    /// # Errors
    /// [`Error::Closed`]; what has made it [fail](LatchState::Failed).
    pub async fn wait_for_leadership(&self) -> Result<Fence> {
        let mut told = self.told.subscribe();
        loop {
            let now = told.borrow_and_update().clone();
            match (now.state, now.leading) {
                (LatchState::Failed(error), _) => return Err(error),
                (LatchState::Closed, _) => return Err(self.closed()),
                (_, Some(fence)) if fence.is_held() => return Ok(fence),
                _ => {}
            }
            told.changed().await.map_err(|_| self.closed())?;
        }
    }

    /// Waits until it leads, but no longer than `limit`; `None` if it does not by then.
    ///
    /// # Errors
    /// As [`wait_for_leadership`](LeaderLatch::wait_for_leadership).
    pub async fn wait_for_leadership_within(&self, limit: Duration) -> Result<Option<Fence>> {
        timeout(limit, self.wait_for_leadership()).await.ok().transpose()
    }

    /// Its changes from now on, beginning with [`LeaderChange::IsLeader`] if it leads.
    pub fn changes(&self) -> LeaderChanges {
        LeaderChanges { told: self.told.subscribe(), reign: None }
    }

    /// Where it is in its life.
    pub fn state(&self) -> LatchState {
        self.told.borrow().state.clone()
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

    fn closed(&self) -> Error {
        Error::Closed { path: (*self.path).into() }
    }
}

impl Drop for LeaderLatch {
    fn drop(&mut self) {
        // The task leaves the queue without being waited for.
        drop(self.end(self.close_mode));
    }
}

/// A change of one participant's leadership.
#[derive(Debug, Clone)]
pub enum LeaderChange {
    /// It leads.
    IsLeader(Fence),
    /// It does not lead any more: what was done as leader has to stop.
    NotLeader,
}

/// The changes of a latch, in turns [`IsLeader`](LeaderChange::IsLeader) and [`NotLeader`](LeaderChange::NotLeader).
///
/// A reign that has ended before it was read of is not told. If another has begun since the one that was told last,
/// its end is told first, even if both are of the same znode. It ends when the latch is closed or has failed.
#[derive(Debug)]
pub struct LeaderChanges {
    told: watch::Receiver<Told>,
    /// The reign that was told last, while its end was not.
    reign: Option<u64>,
}

impl LeaderChanges {
    /// The next change; `None` once the latch is closed.
    pub async fn next(&mut self) -> Option<LeaderChange> {
        loop {
            let told = self.told.borrow_and_update().clone();
            let over = matches!(told.state, LatchState::Closed | LatchState::Failed(_));
            match (self.reign, told.leading) {
                (Some(last), Some(_)) if last == told.reigns => {}
                (None, Some(fence)) => {
                    self.reign = Some(told.reigns);
                    return Some(LeaderChange::IsLeader(fence));
                }
                (Some(_), leading) if leading.is_some() || !(over && told.silent) => {
                    self.reign = None;
                    return Some(LeaderChange::NotLeader);
                }
                _ if over => return None,
                _ => {}
            }
            self.told.changed().await.ok()?;
        }
    }
}

/// The task's side.
struct Contender {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    told: watch::Sender<Told>,
    place: Option<Place>,
}

impl Contender {
    async fn run(mut self, running: Running, stopped: oneshot::Receiver<()>) {
        let error = {
            let mut contend = pin!(self.contend(&running));
            tokio::select! {
                biased;
                // Sent, or the latch is gone.
                _ = stopped => None,
                error = &mut contend => Some(error),
            }
        };
        self.told.send_modify(|told| {
            told.leading = None;
            if let (Some(error), LatchState::Started) = (&error, &told.state) {
                tracing::warn!(%error, "cannot contend for leadership");
                told.state = LatchState::Failed(error.clone());
            }
        });
        if let Some(place) = self.place.take() {
            // It goes on in the background.
            let _ = place.leave().await;
        }
    }

    /// Contends for ever; returns what makes that impossible.
    async fn contend(&mut self, running: &Running) -> Error {
        loop {
            let session = match self.client.session().await {
                Ok(session) => session,
                Err(error) => return error.into(),
            };
            if let Some(place) = self.place.take_if(|place| place.session().id() != session.id()) {
                // Its znode goes with its session.
                if planted::is(Bug::LatchKeepsOldZnode) {
                    self.place = Some(Place::at(&session, place.path(), place.fence().token()));
                }
            }
            match self.contend_in(&session, running).await {
                Ok(()) => {
                    if planted::is(Bug::ReconnectDeletesZnode)
                        && let Some(place) = &self.place
                    {
                        session.delete(place.path()).in_background();
                    }
                }
                Err(Error::Client(ostler_client::Error::Closed)) => {
                    return ostler_client::Error::Closed.into();
                }
                Err(Error::Client(error)) if error.is_session_over() => {}
                Err(Error::Client(error)) if error.may_pass() => {
                    tracing::debug!(%error, "waiting for a connection");
                }
                Err(error) => return error,
            }
            if let Err(error) = line::wait_writable(&self.client).await {
                return error;
            }
        }
    }

    /// Waits for one's turn and leads, once. The place is kept for the next time, if it is not gone.
    async fn contend_in(&mut self, session: &Session, running: &Running) -> Result<()> {
        let line = Line { path: &self.path, word: WORD, data: self.id.as_bytes() };
        if planted::is(Bug::ReconnectMakesZnode) {
            self.place = None;
        }
        if planted::is(Bug::PathMadeOnce) && self.told.borrow().reigns > 0 {
            session.get_children(&self.path).await?;
        }
        let was_there = self.place.is_some();
        let place = match self.place.take() {
            Some(place) => place,
            None => Place::take_while(session, line, running).await?,
        };
        let place = self.place.insert(place);
        let turn = place.turn(&[WORD], |queue, mine| standing(queue, mine, WORD)).await?;
        if planted::is(Bug::LeadsByAnEarlierLook) && was_there {
            *place = Place::take(session, line).await?;
        }
        let kept = turn == Turn::Ours && lead(&self.client, place, &self.told).await?;
        if !kept && let Some(place) = self.place.take() {
            place.forget();
        }
        Ok(())
    }
}

/// Leads until the connection is suspended, the session is over, or the znode is gone; false if it is gone.
async fn lead(client: &Client, place: &Place, told: &watch::Sender<Told>) -> Result<bool> {
    let read = place.session().get_data(place.path()).watch().await;
    let (((_, stat), mut changed), session) = match read {
        Err(error) if error.is_no_node() => return Ok(false),
        read => (read?, place.session()),
    };
    let any_owner = planted::is(Bug::LatchKeepsOldZnode) || planted::is(Bug::LatchFindsOldZnode);
    if stat.ephemeral_owner != session.id().0 && !any_owner {
        return Ok(false);
    }
    // The present state comes first: nothing is claimed while the connection is in doubt.
    let mut states = client.states();
    if !states.next().await.is_some_and(|state| is_writable(state.state)) || !session.is_alive() {
        return Ok(true);
    }
    let _reign = Reign::begin(told, place.fence());
    loop {
        tokio::select! {
            biased;
            state = states.next() => match state {
                Some(state) if is_writable(state.state) => {}
                Some(_) if simulated::is(Simulated::LatchLeadsOn) => {}
                _ => return Ok(true),
            },
            event = &mut changed => match event {
                // Its data has changed, by somebody's hand.
                Ok(event) if event.kind != ostler_client::EventKind::NodeDeleted => {
                    match session.get_data(place.path()).watch().await {
                        Ok((_, next)) => changed = next,
                        Err(error) if error.is_no_node() => return Ok(false),
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(_) => return Ok(false),
                Err(_) if simulated::is(Simulated::LatchLeadsOn) => std::future::pending().await,
                Err(error) => return Err(error.into()),
            },
        }
    }
}

/// Leading, told to everybody; its end too, however it comes.
struct Reign<'a>(&'a watch::Sender<Told>);

impl<'a> Reign<'a> {
    fn begin(told: &'a watch::Sender<Told>, fence: &Fence) -> Reign<'a> {
        told.send_modify(|told| {
            // Closed meanwhile: the task is about to learn of it.
            if matches!(told.state, LatchState::Started) {
                told.reigns += 1;
                told.leading = Some(fence.clone());
            }
        });
        Reign(told)
    }
}

impl Drop for Reign<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|told| told.leading = None);
    }
}
