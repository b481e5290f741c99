//! Views of a cache: the children of a znode, or a znode alone.

use crate::cache::{CacheEvent, CacheEvents, CachedNode, CuratorCache, CuratorCacheBuilder};
use futures_util::Stream;
use ostler_client::{Client, Error, ErrorCode, Result};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A znode's children with their data. Curator's `PathChildrenCache`.
///
/// It has the guarantees of [`CuratorCache`].
#[derive(Debug)]
#[must_use = "a cache that is dropped stops"]
pub struct PathChildrenCache {
    cache: CuratorCache,
    path: String,
}

/// Options of a [`PathChildrenCache`]; [`start`](PathChildrenCacheBuilder::start) creates it.
#[derive(Debug, Clone)]
#[must_use = "nothing is read until start"]
pub struct PathChildrenCacheBuilder {
    cache: CuratorCacheBuilder,
    path: String,
}

impl PathChildrenCacheBuilder {
    fn map(self, set: impl FnOnce(CuratorCacheBuilder) -> CuratorCacheBuilder) -> Self {
        PathChildrenCacheBuilder { cache: set(self.cache), path: self.path }
    }

    /// Keeps names and Stats, and no data.
    pub fn without_data(self) -> Self {
        self.map(CuratorCacheBuilder::without_data)
    }

    /// Uses watches that fire once, which is the default at servers before 3.6.
    pub fn one_shot_watches(self) -> Self {
        self.map(CuratorCacheBuilder::one_shot_watches)
    }

    /// The number of events that a reader may leave unread: see [`CuratorCacheBuilder::unread_max`].
    pub fn unread_max(self, events: usize) -> Self {
        self.map(|cache| cache.unread_max(events))
    }

    /// Starts the cache.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn start(self) -> Result<PathChildrenCache> {
        Ok(PathChildrenCache { cache: self.cache.start()?, path: self.path })
    }
}

/// A change of a znode's children.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// A child was created, or found at the start.
    ChildAdded(Arc<CachedNode>),
    /// A child's data was set.
    ChildUpdated(Arc<CachedNode>),
    /// A child was deleted.
    ChildRemoved(Arc<CachedNode>),
    /// All children that existed at the start have been reported.
    Initialized,
    /// This client may not read a child, or the znode itself. The cache does not hold it.
    Unreadable {
        /// The path of the child, or of the znode itself.
        path: String,
        /// The server's error code, `NoAuth`.
        code: ErrorCode,
    },
    /// The reader was too slow, and events were left out. The cache itself has all changes.
    Gap(u64),
}

/// A [`PathChildrenCache`]'s events, for one reader.
#[derive(Debug)]
pub struct PathEvents {
    events: CacheEvents,
    path: String,
}

impl PathChildrenCache {
    /// Starts a cache of a znode's children. The znode need not exist, and can be deleted and created again.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn start(client: &Client, path: &str) -> Result<PathChildrenCache> {
        PathChildrenCache::builder(client, path).start()
    }

    /// Options of a cache of a znode's children.
    pub fn builder(client: &Client, path: &str) -> PathChildrenCacheBuilder {
        let cache = CuratorCache::builder(client, path).children_only();
        PathChildrenCacheBuilder { cache, path: path.to_owned() }
    }

    /// Waits until the children that existed at the start have been read.
    ///
    /// # Errors
    /// Those of [`CuratorCache::initialized`].
    pub async fn initialized(&self) -> Result<()> {
        self.cache.initialized().await
    }

    /// The children, in the order of their names.
    pub fn children(&self) -> Vec<Arc<CachedNode>> {
        self.cache.children(&self.path)
    }

    /// The child with this name, if the cache holds it.
    pub fn child(&self, name: &str) -> Option<Arc<CachedNode>> {
        self.cache.get(&ostler_client::paths::join(&self.path, name))
    }

    /// A stream of the children, as `ChildAdded`, and then of their changes.
    pub fn events(&self) -> PathEvents {
        PathEvents { events: self.cache.events(), path: self.path.clone() }
    }

    /// Why the cache does not follow the servers any more: see [`CuratorCache::end_reason`].
    pub fn end_reason(&self) -> Option<Error> {
        self.cache.end_reason()
    }

    /// Stops following the servers, and waits for that: see [`CuratorCache::close`].
    pub async fn close(&self) {
        self.cache.close().await;
    }
}

impl PathEvents {
    /// Waits for the next event; `None` once the cache or the client is closed, or an error has ended the cache: see
    /// [`PathChildrenCache::end_reason`].
    pub async fn next(&mut self) -> Option<PathEvent> {
        poll_fn(|cx| self.poll(cx)).await
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<PathEvent>> {
        loop {
            let Some(event) = ready!(self.events.poll(cx)) else { return Poll::Ready(None) };
            if let Some(event) = of_children(&self.path, event) {
                return Poll::Ready(Some(event));
            }
        }
    }
}

impl Stream for PathEvents {
    type Item = PathEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<PathEvent>> {
        self.poll(cx)
    }
}

fn of_children(path: &str, event: CacheEvent) -> Option<PathEvent> {
    let is_child = |node: &Arc<CachedNode>| node.path != path;
    match event {
        CacheEvent::Created(node) if is_child(&node) => Some(PathEvent::ChildAdded(node)),
        CacheEvent::Changed { new, .. } if is_child(&new) => Some(PathEvent::ChildUpdated(new)),
        CacheEvent::Deleted(node) if is_child(&node) => Some(PathEvent::ChildRemoved(node)),
        CacheEvent::Initialized => Some(PathEvent::Initialized),
        CacheEvent::Unreadable { path, code } => Some(PathEvent::Unreadable { path, code }),
        CacheEvent::Gap(events) => Some(PathEvent::Gap(events)),
        _ => None,
    }
}

/// One znode with its data. Curator's `NodeCache`.
///
/// It has the guarantees of [`CuratorCache`].
#[derive(Debug)]
#[must_use = "a cache that is dropped stops"]
pub struct NodeCache {
    cache: CuratorCache,
    path: String,
}

impl NodeCache {
    /// Starts a cache of a znode. The znode need not exist, and can be deleted and created again.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn start(client: &Client, path: &str) -> Result<NodeCache> {
        let cache = CuratorCache::builder(client, path).single_node().start()?;
        Ok(NodeCache { cache, path: path.to_owned() })
    }

    /// Waits until the znode has been read.
    ///
    /// # Errors
    /// Those of [`CuratorCache::initialized`].
    pub async fn initialized(&self) -> Result<()> {
        self.cache.initialized().await
    }

    /// The znode; `None` if it does not exist.
    pub fn node(&self) -> Option<Arc<CachedNode>> {
        self.cache.get(&self.path)
    }

    /// A stream of the znode as it is now, and then of its changes.
    pub fn events(&self) -> CacheEvents {
        self.cache.events()
    }

    /// Why the cache does not follow the servers any more: see [`CuratorCache::end_reason`].
    pub fn end_reason(&self) -> Option<Error> {
        self.cache.end_reason()
    }

    /// Stops following the servers, and waits for that: see [`CuratorCache::close`].
    pub async fn close(&self) {
        self.cache.close().await;
    }
}
