//! A part of the tree, held here and kept as the servers have it. Curator's `CuratorCache`, and its path and node
//! caches as views of it.
//!
//! # What it guarantees
//! - Once [`initialized`](CuratorCache::initialized), the cache holds everything that was there when it was started and
//!   still is. A znode that changes all the time is held as it was a round trip before, and keeps nobody waiting.
//! - What it holds is never newer than the servers', and is as new as they are as soon as nothing changes any more:
//!   no change is lost for good, however often connection and session are.
//! - The events of one znode are told in order: it is created before it is changed, its parent is created before it,
//!   and it is deleted before its parent. Nothing is told twice, and nothing that was not so.
//!
//! # What it does not
//! - Changes that follow each other fast, or that happen while there is no connection, are told as one: a znode that
//!   is created and deleted meanwhile is never heard of. One that is deleted and created again is told as that.
//! - It is always a little behind. While there is no connection it stands still; look at
//!   [`Client::state`](ostler_client::Client::state) where that matters.
//!
//! # How
//! A persistent watch is set first, and then everything is read; servers before 3.6 know no such watches, so there
//! each read leaves a watch of its own, which costs two watches for each znode.

mod events;
pub(crate) mod model;
mod one_shot;
mod persistent;
mod views;

pub use events::CacheEvents;
pub use model::{CacheEvent, CachedNode};
pub use views::{NodeCache, PathChildrenCache, PathEvent, PathEvents};

use crate::background::BackgroundTask;
use model::{Answer, Ask, Effects, Model, Scope, Watching, What};
use ostler_client::{Bytes, Client, Error, Result, paths};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{broadcast, watch};

/// Events that a reader may leave unread by default.
const UNREAD_MAX: usize = 1024;
/// Reads under way at once.
const READS_MAX: usize = 256;

/// A part of the tree, held here and kept as the servers have it.
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
/// Dropped, it stops, and its watches are removed at the server.
#[derive(Debug)]
pub struct CuratorCache {
    shared: Arc<Shared>,
    _work: BackgroundTask,
}

/// Describes a cache; [`start`](CuratorCacheBuilder::start) makes it.
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
    TaskEnd,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    phase: watch::Sender<Phase>,
}

#[derive(Debug)]
struct State {
    model: Model,
    /// `None` once the cache has ended.
    events: Option<broadcast::Sender<CacheEvent>>,
    /// What is to be read and is not under way.
    asks: VecDeque<Ask>,
}

impl CuratorCache {
    /// Begins to hold a znode and all below it. It need not exist.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(client: &Client, path: &str) -> Result<CuratorCache> {
        CuratorCache::builder(client, path).start()
    }

    /// Begins to describe a cache.
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

    /// Waits until everything that was there at the start has been read.
    ///
    /// # Errors
    /// [`Error::Closed`]: the client was closed before.
    pub async fn initialized(&self) -> Result<()> {
        let mut phase = self.shared.phase.subscribe();
        match phase.wait_for(|phase| *phase != Phase::Loading).await {
            Ok(phase) if *phase == Phase::Initialized => Ok(()),
            _ => Err(Error::Closed),
        }
    }

    /// Whether everything that was there at the start has been read.
    pub fn is_initialized(&self) -> bool {
        self.shared.lock().model.is_initialized()
    }

    /// A znode, if the cache holds it.
    pub fn get(&self, path: &str) -> Option<Arc<CachedNode>> {
        self.shared.lock().model.nodes().get(path).cloned()
    }

    /// The children of a znode that the cache holds, by name.
    pub fn children(&self, path: &str) -> Vec<Arc<CachedNode>> {
        model::children(self.shared.lock().model.nodes(), path).cloned().collect()
    }

    /// Everything that the cache holds at one moment, by path. `stream` in Curator.
    pub fn nodes(&self) -> Vec<Arc<CachedNode>> {
        self.shared.lock().model.nodes().values().cloned().collect()
    }

    /// How many znodes it holds.
    pub fn len(&self) -> usize {
        self.shared.lock().model.nodes().len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the cache holds, as `Created`, and then every change of it.
    pub fn events(&self) -> CacheEvents {
        self.shared.events()
    }
}

impl CuratorCacheBuilder {
    /// Only the znode itself. `SINGLE_NODE_CACHE` in Curator.
    pub fn single_node(mut self) -> Self {
        self.scope = Scope::Node;
        self
    }

    /// Only the znode itself and its children.
    pub(crate) fn children_only(mut self) -> Self {
        self.scope = Scope::Children;
        self
    }

    /// Keeps paths and Stats, and no data.
    pub fn without_data(mut self) -> Self {
        self.keep_data = false;
        self
    }

    /// Uses watches that fire once, as it does by itself at servers before 3.6.
    pub fn one_shot_watches(mut self) -> Self {
        self.one_shot = true;
        self
    }

    /// How many events a reader may leave unread before it misses some. Default: 1,024. Memory for them is set
    /// aside at once.
    pub fn unread_max(mut self, events: usize) -> Self {
        self.unread_max = events.clamp(1, 1 << 20);
        self
    }

    /// Begins to hold what was described.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(self) -> Result<CuratorCache> {
        if !paths::is_valid(&self.path) {
            return Err(Error::BadPath { path: self.path.into() });
        }
        let model = Model::new(&self.path, self.scope, Watching::Persistent);
        let events = Some(broadcast::channel(self.unread_max).0);
        let state = State { model, events, asks: VecDeque::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), phase: watch::Sender::new(Phase::Loading) });
        let ending = Ending(shared.clone());
        let client = self.client.clone();
        let work = BackgroundTask::spawn(&client, async move {
            let ending = ending;
            match self.run(&ending.0).await {
                Ok(()) | Err(Error::Closed) => {}
                Err(error) => tracing::warn!(path = self.path, %error, "a cache has ended"),
            }
        });
        Ok(CuratorCache { shared, _work: work })
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

    fn kept(&self, data: Bytes) -> Bytes {
        if self.keep_data { data } else { Bytes::new() }
    }
}

/// Tells those who wait that nothing more will come.
#[derive(Debug)]
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.lock().events = None;
        self.0.phase.send_if_modified(|phase| {
            let ends = *phase == Phase::Loading;
            if ends {
                *phase = Phase::TaskEnd;
            }
            ends
        });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A step that panicked is a bug; readers go on with what it left.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps the model, and tells what comes of it.
    fn step<T>(&self, step: impl FnOnce(&mut Model, &mut Effects) -> T) -> T {
        let mut state = self.lock();
        let mut effects = Effects::default();
        let result = step(&mut state.model, &mut effects);
        state.asks.append(&mut effects.asks);
        for event in effects.told {
            if event == CacheEvent::Initialized {
                self.phase.send_replace(Phase::Initialized);
            }
            if let Some(events) = &state.events {
                // That nobody listens is no error.
                let _ = events.send(event);
            }
        }
        result
    }

    /// The next thing to read.
    fn next_ask(&self) -> Option<Ask> {
        self.lock().asks.pop_front()
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

/// What a refusal means to the model; other errors end the cache.
fn refusal(error: Error) -> Result<Answer> {
    match error.code() {
        _ if error.is_no_node() => Ok(Answer::NoNode),
        Some(code) => Ok(Answer::Refused(code)),
        None => Err(error),
    }
}
