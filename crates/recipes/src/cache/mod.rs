//! Caches: copies of a part of the tree that follow the servers. Curator's `CuratorCache`, and its path and node caches
//! as views of it.
//!
//! # Guarantees
//! - Once [`initialized`](CuratorCache::initialized), the cache holds all znodes that existed when it was started and
//!   still exist. A znode that changes all the time does not delay this: the cache holds it as it was a round trip
//!   before.
//! - The cache is never newer than the servers. When changes stop, it becomes equal to them. No change is lost for
//!   good, however often the connection or the session is lost.
//! - The events of one znode come in order: it is created before it is changed, its parent is created before it, and it
//!   is deleted before its parent. No event comes twice, and each one has happened.
//!
//! # Limits
//! - Changes in quick succession, or without a connection, are reported as one. A znode that is created and deleted
//!   meanwhile is not reported. A znode that is deleted and created again is reported as deleted and created.
//! - The cache is always a little behind. Without a connection it does not change: see
//!   [`Client::state`](ostler_client::Client::state).
//!
//! # How it works
//! The cache sets a persistent watch first, and then reads everything. Servers before 3.6 know no such watches; there
//! each read sets a watch of its own, two for each znode.

mod events;
pub(crate) mod model;
mod one_shot;
mod persistent;
mod views;

pub use events::CacheEvents;
pub use model::{CacheEvent, CachedNode};
pub use views::{NodeCache, PathChildrenCache, PathChildrenCacheBuilder, PathEvent, PathEvents};

use crate::background::BackgroundTask;
use model::{Effects, Model, NodeRead, ReadAnswer, ReadKind, Scope, Watching};
use ostler_client::{Bytes, Client, Error, Result, paths};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{broadcast, watch};

/// The number of events that a reader may leave unread, by default.
const UNREAD_MAX: usize = 1024;
/// The largest number of reads under way at once.
const READS_MAX: usize = 256;

/// A copy of a part of the tree that follows the servers. The [module](self) says what it guarantees.
///
/// ```
/// # use ostler_recipes::cache::{CacheEvent, CuratorCache};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// # client.create("/config/limits", b"1").creating_parents().await?;
/// let cache = CuratorCache::start(&client, "/config")?;
/// cache.initialized().await?;
/// println!("{:?}", cache.get("/config/limits").map(|node| node.data.clone()));
/// let mut events = cache.events();
/// # client.set_data("/config/limits", b"2").await?;
/// while let Some(event) = events.next().await {
///     if let CacheEvent::Changed { new, .. } = event {
///         println!("{} is now {:?}", new.path, new.data);
/// #       break;
///     }
/// }
/// # Ok(()) }
/// ```
///
/// When the cache is closed or dropped it stops, and its watches are removed at the server.
#[derive(Debug)]
#[must_use = "a cache that is dropped stops"]
pub struct CuratorCache {
    shared: Arc<Shared>,
    work: BackgroundTask,
}

/// Options of a cache; [`start`](CuratorCacheBuilder::start) creates it.
#[derive(Debug, Clone)]
#[must_use = "nothing is read until start"]
pub struct CuratorCacheBuilder {
    client: Client,
    path: String,
    scope: Scope,
    keep_data: bool,
    one_shot: bool,
    unread_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Loading,
    Initialized,
    Ended,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    phase: watch::Sender<Phase>,
}

#[derive(Debug)]
struct State {
    model: Model,
    /// Why the cache has ended, if it has.
    end: Option<Error>,
    /// `None` once the cache has ended.
    events: Option<broadcast::Sender<CacheEvent>>,
    /// Reads that are not sent yet.
    reads: VecDeque<NodeRead>,
}

impl CuratorCache {
    /// Starts a cache of a znode and all znodes below it. The znode need not exist.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn start(client: &Client, path: &str) -> Result<CuratorCache> {
        CuratorCache::builder(client, path).start()
    }

    /// Options of a cache of a znode and all znodes below it.
    pub fn builder(client: &Client, path: &str) -> CuratorCacheBuilder {
        CuratorCacheBuilder {
            client: client.clone(),
            path: path.to_owned(),
            scope: Scope::Tree,
            keep_data: true,
            one_shot: false,
            unread_max: UNREAD_MAX,
        }
    }

    /// Waits until the znodes that existed at the start have been read.
    ///
    /// # Errors
    /// The error that has ended the cache before that; [`Error::Closed`]: the cache or the client was closed.
    pub async fn initialized(&self) -> Result<()> {
        let mut phase = self.shared.phase.subscribe();
        match phase.wait_for(|phase| *phase != Phase::Loading).await {
            Ok(phase) if *phase == Phase::Initialized => Ok(()),
            _ => Err(self.end_reason().unwrap_or(Error::Closed)),
        }
    }

    /// Why the cache does not follow the servers any more: [`Error::Closed`] if it or the client was closed, else the error
    /// that no later try can mend. `None` as long as the cache works.
    pub fn end_reason(&self) -> Option<Error> {
        self.shared.lock().end.clone()
    }

    /// Stops following the servers, and waits for that. The content stays as it was, and streams end. The watches are
    /// removed at the server in the background. Further callers wait for the same.
    pub async fn close(&self) {
        self.work.stop().await;
    }

    /// Whether the znodes that existed at the start have been read.
    pub fn is_initialized(&self) -> bool {
        self.shared.lock().model.is_initialized()
    }

    /// The znode at this path, if the cache holds it.
    pub fn get(&self, path: &str) -> Option<Arc<CachedNode>> {
        self.shared.lock().model.nodes().get(path).cloned()
    }

    /// The children of a znode that the cache holds, in the order of their names.
    pub fn children(&self, path: &str) -> Vec<Arc<CachedNode>> {
        model::children(self.shared.lock().model.nodes(), path).cloned().collect()
    }

    /// All znodes that the cache holds at this moment, in the order of their paths. `stream` in Curator.
    pub fn nodes(&self) -> Vec<Arc<CachedNode>> {
        self.shared.lock().model.nodes().values().cloned().collect()
    }

    /// The number of znodes that the cache holds.
    pub fn len(&self) -> usize {
        self.shared.lock().model.nodes().len()
    }

    /// Whether the cache holds no znode.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A stream of the cache's content, as `Created`, and then of its changes.
    pub fn events(&self) -> CacheEvents {
        self.shared.events()
    }
}

impl CuratorCacheBuilder {
    /// Caches only the znode itself. `SINGLE_NODE_CACHE` in Curator.
    pub fn single_node(mut self) -> Self {
        self.scope = Scope::Node;
        self
    }

    /// Caches only the znode itself and its children. A [`PathChildrenCache`] is a view of such a cache.
    pub fn children_only(mut self) -> Self {
        self.scope = Scope::Children;
        self
    }

    /// Keeps paths and Stats, and no data.
    pub fn without_data(mut self) -> Self {
        self.keep_data = false;
        self
    }

    /// Uses watches that fire once, which is the default at servers before 3.6.
    pub fn one_shot_watches(mut self) -> Self {
        self.one_shot = true;
        self
    }

    /// The number of events that a reader may leave unread before it gets a [`Gap`](CacheEvent::Gap); 1,024 by default.
    /// Their memory is allocated at once.
    pub fn unread_max(mut self, events: usize) -> Self {
        self.unread_max = events.clamp(1, 1 << 20);
        self
    }

    /// Starts the cache.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn start(self) -> Result<CuratorCache> {
        if !paths::is_valid(&self.path) {
            return Err(Error::BadPath { path: self.path.into() });
        }
        let model = Model::new(&self.path, self.scope, Watching::Persistent);
        let events = Some(broadcast::channel(self.unread_max).0);
        let state = State { model, end: None, events, reads: VecDeque::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), phase: watch::Sender::new(Phase::Loading) });
        let ending = Ending(shared.clone());
        let client = self.client.clone();
        let work = BackgroundTask::spawn(&client, async move {
            let ending = ending;
            match self.run(&ending.0).await {
                Ok(()) | Err(Error::Closed) => {}
                Err(error) => {
                    tracing::warn!(path = self.path, %error, "a cache has ended");
                    ending.0.lock().end = Some(error);
                }
            }
        });
        Ok(CuratorCache { shared, work })
    }

    async fn run(&self, shared: &Shared) -> Result<()> {
        if !self.one_shot {
            match persistent::run(self, shared).await {
                Err(error) if error.is_unimplemented() => {}
                ended => return ended,
            }
        }
        shared.lock().model = Model::new(&self.path, self.scope, Watching::OneShot);
        one_shot::run(self, shared).await
    }

    /// The answer, without the data if the cache keeps no data.
    fn without_unwanted_data(&self, answer: ReadAnswer) -> ReadAnswer {
        match answer {
            ReadAnswer::Data(_, stat) if !self.keep_data => ReadAnswer::Data(Bytes::new(), stat),
            answer => answer,
        }
    }
}

/// Ends the waits of readers when the cache's task ends.
#[derive(Debug)]
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.events = None;
        state.end.get_or_insert(Error::Closed);
        drop(state);
        self.0.phase.send_if_modified(|phase| {
            let ends = *phase == Phase::Loading;
            if ends {
                *phase = Phase::Ended;
            }
            ends
        });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A step that has panicked is a bug; readers go on with the state that it left.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps the model and sends its events.
    fn step<T>(&self, step: impl FnOnce(&mut Model, &mut Effects) -> T) -> T {
        let mut state = self.lock();
        let mut effects = Effects::default();
        let result = step(&mut state.model, &mut effects);
        state.reads.append(&mut effects.reads);
        for event in effects.events {
            if event == CacheEvent::Initialized {
                self.phase.send_replace(Phase::Initialized);
            }
            if let Some(events) = &state.events {
                // An error means that there is no reader.
                let _ = events.send(event);
            }
        }
        result
    }

    /// The next read to send.
    fn next_read(&self) -> Option<NodeRead> {
        self.lock().reads.pop_front()
    }

    fn events(&self) -> CacheEvents {
        let state = self.lock();
        let held = state.model.nodes().values().cloned().map(CacheEvent::Created);
        let initialized = state.model.is_initialized().then_some(CacheEvent::Initialized);
        CacheEvents::new(
            held.chain(initialized).collect(),
            state.events.as_ref().map(broadcast::Sender::subscribe),
        )
    }
}

/// The answer for the model, from a server's refusal. Any other error ends the cache.
fn answer_of_error(error: Error) -> Result<ReadAnswer> {
    match error.code() {
        _ if error.is_no_node() => Ok(ReadAnswer::NoNode),
        Some(code) => Ok(ReadAnswer::Refused(code)),
        None => Err(error),
    }
}
