//! The leader latch: a participant that, once elected, leads until it is closed.
//!
//! One task owns the place in the queue. It takes a place in the present session, waits for its turn, checks that its
//! znode exists, takes up leadership, and watches the znode. It gives up leadership as soon as the connection is
//! suspended. After a reconnect to the same session the latch keeps its place. It takes a new place only if its session
//! is over or another client has deleted its znode.

use super::participant::{self, Participant};
use crate::{
    background::{TaskEnd, TaskGuard},
    error::{Error, Result},
    fencing::Fence,
    polled::PolledWatch,
    queue_order::position,
    queue_place::{PlaceSpec, QueuePlace, Turn},
    session_retry::{self, is_writable},
};
use futures_util::Stream;
use ostler_client::{Client, RecipeTag, Session};
use ostler_planted::{self as planted, Bug};
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};
use tracing::Instrument;

/// The word in the names of a latch's znodes.
const WORD: &str = "latch-";

/// Whether [`LeaderLatch::changes`] reports the end of the leadership when a latch is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloseMode {
    /// The stream ends without [`LeaderChange::NotLeader`].
    #[default]
    Silent,
    /// If the latch leads, the stream has [`LeaderChange::NotLeader`] before it ends.
    NotifyLeader,
}

/// The state of a latch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LatchState {
    /// The latch was not started.
    Latent,
    /// The latch contends, or leads.
    Started,
    /// The latch was closed.
    Closed,
    /// The latch has stopped, because this error keeps it from contending.
    Failed(Error),
}

/// One participant of an election. It leads as soon as all earlier participants have left, until it is closed. This is
/// Curator's `LeaderLatch`, with the same znodes: programs in Java and Rust can take part in one election.
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
/// // The write is done only if the latch leads at that moment.
/// fence.multi().set_data("/state", b"new").await?;
/// latch.close().await;
/// # Ok(()) }
/// ```
///
/// When a latch is dropped, it leaves the election in the background.
#[derive(Debug)]
#[must_use = "a latch that is dropped leaves the election"]
pub struct LeaderLatch {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    close_mode: CloseMode,
    status: watch::Sender<LatchStatus>,
    run: Mutex<Run>,
}

#[derive(Debug)]
enum Run {
    Latent,
    Running {
        stop: oneshot::Sender<()>,
        ended: TaskEnd,
    },
    /// Closed. Other callers of `close` wait for the end of the task, if there was one.
    Over(Option<TaskEnd>),
}

/// The latch's status, as its methods and streams see it.
#[derive(Debug, Clone)]
struct LatchStatus {
    state: LatchState,
    /// How often leadership was taken up.
    leaderships: u64,
    leading: Option<Fence>,
    /// Whether streams end without [`LeaderChange::NotLeader`].
    silent: bool,
}

impl LeaderLatch {
    /// A participant with this id of the election at `path`, whose children are the queue. It contends after
    /// [`start`](LeaderLatch::start).
    pub fn new(client: &Client, path: &str, id: &str) -> LeaderLatch {
        LeaderLatch {
            client: client.clone(),
            path: path.into(),
            id: id.into(),
            close_mode: CloseMode::default(),
            status: watch::Sender::new(LatchStatus {
                state: LatchState::Latent,
                leaderships: 0,
                leading: None,
                silent: false,
            }),
            run: Mutex::new(Run::Latent),
        }
    }

    /// Whether [`changes`](LeaderLatch::changes) reports the end of the leadership when the latch is closed or dropped;
    /// [`CloseMode::Silent`] by default.
    pub fn close_mode(mut self, mode: CloseMode) -> LeaderLatch {
        self.close_mode = mode;
        self
    }

    /// Begins to contend. Further calls have no effect.
    pub fn start(&self) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*run, Run::Latent) {
            return;
        }
        self.status.send_modify(|status| status.state = LatchState::Started);
        let (stop, stopped) = oneshot::channel();
        let contender = Contender {
            client: self.client.clone(),
            path: self.path.clone(),
            id: self.id.clone(),
            status: self.status.clone(),
            place: None,
        };
        let span =
            tracing::debug_span!(target: "ostler_recipes", "latch", path = &*self.path, id = &*self.id);
        let ended = TaskEnd::of(&self.client, |running| contender.run(running, stopped).instrument(span));
        *run = Run::Running { stop, ended };
    }

    /// Leaves the election. When this returns the znode is deleted, or the deletion goes on in the background if there
    /// is connection trouble. Further callers wait for the same. A closed latch cannot be started again.
    pub async fn close(&self) {
        self.close_with(self.close_mode).await;
    }

    /// [`close`](LeaderLatch::close) with another mode than [`close_mode`](LeaderLatch::close_mode).
    pub async fn close_with(&self, mode: CloseMode) {
        if let Some(ended) = self.end(mode) {
            ended.wait().await;
        }
    }

    /// Ends leadership at once and stops the task. Returns the end of the task, if there was one.
    fn end(&self, mode: CloseMode) -> Option<TaskEnd> {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let was = std::mem::replace(&mut *run, Run::Over(None));
        self.status.send_modify(|status| {
            if !matches!(status.state, LatchState::Failed(_)) {
                status.state = LatchState::Closed;
            }
            status.leading = None;
            status.silent = mode == CloseMode::Silent;
        });
        let ended = match was {
            Run::Running { stop, ended } => {
                // If the receiver is gone, the task has ended already.
                let _ = stop.send(());
                Some(ended)
            }
            Run::Over(ended) => ended,
            Run::Latent => None,
        };
        *run = Run::Over(ended.clone());
        ended
    }

    /// Whether the latch leads, without asking a server: it has taken up leadership, the client is connected, and by
    /// this machine's clock its session lives.
    pub fn has_leadership(&self) -> bool {
        self.leadership().is_some()
    }

    /// The fence of this leadership, if the latch [leads](LeaderLatch::has_leadership).
    pub fn leadership(&self) -> Option<Fence> {
        let leading = self.status.borrow().leading.clone()?;
        if planted::is(Bug::LatchLeadsOn) {
            return Some(leading);
        }
        let connected = is_writable(self.client.state().state);
        (connected && leading.is_held()).then_some(leading)
    }

    /// Waits until the latch leads. Curator's `await`.
    ///
    /// # Errors
    /// [`Error::NotStarted`]; [`Error::Closed`]; the error of [`LatchState::Failed`].
    pub async fn wait_for_leadership(&self) -> Result<Fence> {
        let mut status = self.status.subscribe();
        loop {
            let now = status.borrow_and_update().clone();
            match (now.state, now.leading) {
                (LatchState::Latent, _) => return Err(Error::NotStarted { path: (*self.path).into() }),
                (LatchState::Failed(error), _) => return Err(error),
                (LatchState::Closed, _) => return Err(self.closed()),
                (_, Some(fence)) if fence.is_held() => return Ok(fence),
                _ => {}
            }
            status.changed().await.map_err(|_| self.closed())?;
        }
    }

    /// Waits until the latch leads, at most for `limit`; `None` after that time.
    ///
    /// This sends no request: with a limit of zero it returns the present leadership, if there is one.
    ///
    /// # Errors
    /// As [`wait_for_leadership`](LeaderLatch::wait_for_leadership).
    pub async fn wait_for_leadership_within(&self, limit: Duration) -> Result<Option<Fence>> {
        timeout(limit, self.wait_for_leadership()).await.ok().transpose()
    }

    /// The changes of leadership from now on. The first is [`LeaderChange::IsLeader`] if the latch leads already.
    pub fn changes(&self) -> LeaderChanges {
        LeaderChanges { status: PolledWatch::new(self.status.subscribe()), reported: None }
    }

    /// The latch's state.
    pub fn state(&self) -> LatchState {
        self.status.borrow().state.clone()
    }

    /// The latch's id as a participant.
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

    fn closed(&self) -> Error {
        Error::Closed { path: (*self.path).into() }
    }
}

impl Drop for LeaderLatch {
    fn drop(&mut self) {
        // The task leaves the queue in the background.
        drop(self.end(self.close_mode));
    }
}

/// A change of a latch's leadership.
#[derive(Debug, Clone)]
pub enum LeaderChange {
    /// The latch leads, with this fence.
    IsLeader(Fence),
    /// The latch does not lead any more. The program must stop what it does as the leader.
    NotLeader,
}

/// The changes of a latch: [`IsLeader`](LeaderChange::IsLeader) and [`NotLeader`](LeaderChange::NotLeader) by turns.
///
/// A leadership that has begun and ended between two calls of [`next`](LeaderChanges::next) is left out. If one
/// leadership has ended and another has begun between two calls, the end is returned first, even if both are by the
/// same znode.
///
/// The stream ends when the latch is closed or has failed. Its end, `None`, means that the latch does not lead. With
/// [`CloseMode::Silent`], which is the default, no [`NotLeader`](LeaderChange::NotLeader) comes before it: the program
/// must stop what it does as the leader at `None` as well.
#[derive(Debug)]
pub struct LeaderChanges {
    status: PolledWatch<LatchStatus>,
    /// The number of the leadership that was returned last, until its end is returned.
    reported: Option<u64>,
}

impl LeaderChanges {
    /// Waits for the next change; `None` once the latch is closed or has failed: then it does not lead.
    pub async fn next(&mut self) -> Option<LeaderChange> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<LeaderChange>> {
        loop {
            let status = self.status.borrow_and_update().clone();
            let over = matches!(status.state, LatchState::Closed | LatchState::Failed(_));
            match (self.reported, status.leading) {
                (Some(last), Some(_)) if last == status.leaderships => {}
                (None, Some(fence)) => {
                    self.reported = Some(status.leaderships);
                    return Poll::Ready(Some(LeaderChange::IsLeader(fence)));
                }
                (Some(_), leading) if leading.is_some() || !(over && status.silent) => {
                    self.reported = None;
                    return Poll::Ready(Some(LeaderChange::NotLeader));
                }
                _ if over => return Poll::Ready(None),
                _ => {}
            }
            if ready!(self.status.poll_changed(cx)).is_none() {
                return Poll::Ready(None);
            }
        }
    }
}

impl Stream for LeaderChanges {
    type Item = LeaderChange;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LeaderChange>> {
        self.poll(cx)
    }
}

/// The latch's task.
struct Contender {
    client: Client,
    path: Arc<str>,
    id: Arc<str>,
    status: watch::Sender<LatchStatus>,
    place: Option<QueuePlace>,
}

impl Contender {
    async fn run(mut self, running: TaskGuard, stopped: oneshot::Receiver<()>) {
        let error = {
            let mut contend = pin!(self.contend(&running));
            tokio::select! {
                biased;
                // The latch is closed or dropped.
                _ = stopped => None,
                error = &mut contend => Some(error),
            }
        };
        self.status.send_modify(|status| {
            status.leading = None;
            if let (Some(error), LatchState::Started) = (&error, &status.state) {
                tracing::warn!(%error, "cannot contend for leadership");
                status.state = LatchState::Failed(error.clone());
            }
        });
        if let Some(place) = self.place.take() {
            // After an error the deletion goes on in the background.
            let _ = place.leave().await;
        }
    }

    /// Contends for ever; returns the error that makes this impossible.
    async fn contend(&mut self, running: &TaskGuard) -> Error {
        loop {
            let session = match self.client.session().await {
                Ok(session) => session,
                Err(error) => return error.into(),
            };
            self.drop_old_place(&session);
            match self.contend_in(&session, running).await {
                Ok(()) => self.delete_znode_of_planted_bug(&session),
                Err(Error::Client(error)) if error.is_session_over() => {}
                Err(Error::Client(error)) if error.is_retryable() => {
                    tracing::debug!(%error, "waiting for a connection");
                }
                Err(error) => return error,
            }
            if let Err(error) = session_retry::wait_writable(&self.client).await {
                return error;
            }
        }
    }

    /// Drops the place of an earlier session. Its znode is deleted with that session.
    fn drop_old_place(&mut self, session: &Session) {
        let old = self.place.take_if(|place| place.session().id() != session.id());
        if planted::is(Bug::LatchKeepsOldZnode) {
            let kept = old.map(|old| QueuePlace::at(session, old.path(), old.fence().token()));
            self.place = kept.or(self.place.take());
        }
    }

    fn delete_znode_of_planted_bug(&self, session: &Session) {
        if planted::is(Bug::ReconnectDeletesZnode) {
            if let Some(place) = &self.place {
                session.delete(place.path()).in_background();
            }
        }
    }

    async fn before_place_of_planted_bug(&mut self, session: &Session) -> Result<()> {
        if planted::is(Bug::ReconnectMakesZnode) {
            self.place = None;
        }
        if planted::is(Bug::PathMadeOnce) && self.status.borrow().leaderships > 0 {
            session.get_children(&self.path).await?;
        }
        Ok(())
    }

    /// Waits for the turn and leads, once. The place is kept for the next time, unless its znode is gone.
    async fn contend_in(&mut self, session: &Session, running: &TaskGuard) -> Result<()> {
        self.before_place_of_planted_bug(session).await?;
        let (data, tag) = (self.id.as_bytes(), RecipeTag::LeaderLatch);
        let spec = PlaceSpec { path: &self.path, word: WORD, data, tag };
        let had_place = self.place.is_some();
        let place = match self.place.take() {
            Some(place) => place,
            None => QueuePlace::take_while(session, spec, running).await?,
        };
        let place = self.place.insert(place);
        let turn = place.wait_for_turn(&[WORD], |queue, mine| position(queue, mine, WORD)).await?;
        if planted::is(Bug::LeadsByAnEarlierLook) && had_place {
            *place = QueuePlace::take(session, spec).await?;
        }
        let kept = turn == Turn::Ours && lead(&self.client, place, &self.status).await?;
        if !kept {
            if let Some(place) = self.place.take() {
                place.forget();
            }
        }
        Ok(())
    }
}

/// Leads until the connection is suspended, the session is over, or the znode is gone. Returns false if the znode is
/// gone.
async fn lead(client: &Client, place: &QueuePlace, status: &watch::Sender<LatchStatus>) -> Result<bool> {
    let read = place.session().get_data(place.path()).watch().await;
    let (((_, stat), mut changed), session) = match read {
        Err(error) if error.is_no_node() => return Ok(false),
        read => (read?, place.session()),
    };
    let any_owner = planted::is(Bug::LatchKeepsOldZnode) || planted::is(Bug::LatchFindsOldZnode);
    if stat.ephemeral_owner != session.id().0 && !any_owner {
        return Ok(false);
    }
    // The stream begins with the present state. The latch does not lead while the connection is in doubt.
    let mut states = client.states();
    if !states.next().await.is_some_and(|state| is_writable(state.state)) || !session.is_alive() {
        return Ok(true);
    }
    let _published = PublishedLeadership::begin(status, place.fence());
    loop {
        tokio::select! {
            biased;
            state = states.next() => match state {
                Some(state) if is_writable(state.state) => {}
                Some(_) if planted::is(Bug::LatchLeadsOn) => {}
                _ => return Ok(true),
            },
            event = &mut changed => match event {
                // Another client has set the znode's data.
                Ok(event) if event.kind != ostler_client::EventKind::NodeDeleted => {
                    match session.get_data(place.path()).watch().await {
                        Ok((_, next)) => changed = next,
                        Err(error) if error.is_no_node() => return Ok(false),
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(_) => return Ok(false),
                Err(_) if planted::is(Bug::LatchLeadsOn) => std::future::pending().await,
                Err(error) => return Err(error.into()),
            },
        }
    }
}

/// Publishes the leadership in the status, and its end when this is dropped.
struct PublishedLeadership<'a>(&'a watch::Sender<LatchStatus>);

impl<'a> PublishedLeadership<'a> {
    fn begin(status: &'a watch::Sender<LatchStatus>, fence: &Fence) -> PublishedLeadership<'a> {
        status.send_modify(|status| {
            // If the latch was closed meanwhile, the task is about to be stopped.
            if matches!(status.state, LatchState::Started) {
                status.leaderships += 1;
                status.leading = Some(fence.clone());
            }
        });
        PublishedLeadership(status)
    }
}

impl Drop for PublishedLeadership<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|status| status.leading = None);
    }
}
