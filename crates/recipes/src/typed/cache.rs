//! Caches of typed znodes.

use super::{Codec, CodecError, Json, Typed};
use crate::cache::{CacheEvent, CacheEvents, CachedNode, CuratorCache, CuratorCacheBuilder};
use futures_util::Stream;
use ostler_client::{ErrorCode, Result, Stat, Version};
use std::{
    fmt,
    future::poll_fn,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A znode of a typed cache.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypedNode<T> {
    /// The znode's path.
    pub path: String,
    /// The value, or why the data cannot be read as one.
    pub value: std::result::Result<T, CodecError>,
    /// The znode's Stat when it was read.
    pub stat: Stat,
}

impl<T> TypedNode<T> {
    /// The version of the value, for an update that must not overwrite a later one.
    pub fn version(&self) -> Version {
        Version::Exactly(self.stat.version)
    }
}

/// A change of a typed cache.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypedEvent<T> {
    /// A znode was created, or found at the start.
    Created(TypedNode<T>),
    /// A znode's data was set.
    Changed(TypedNode<T>),
    /// A znode was deleted. This is its last value.
    Deleted(TypedNode<T>),
    /// All znodes that existed at the start have been reported.
    Initialized,
    /// This client may not read a znode.
    Unreadable {
        /// The znode's path.
        path: String,
        /// The server's error code, `NoAuth`.
        code: ErrorCode,
    },
    /// The reader was too slow, and this number of events was left out. The cache itself has all changes.
    Gap(u64),
}

/// A cache of typed znodes, with the guarantees of [`CuratorCache`]. Curator's `CachedModeledFramework`.
///
/// Data that is no value of the type is reported for its path, as an error in [`TypedNode::value`], and the cache goes on.
/// A parent without a value is such a znode. The cache keeps the data; a value is made of it at each call.
///
/// ```
/// use ostler_recipes::{ostler_client::Client, typed::{Typed, TypedEvent}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = Client::connect(&server.connect_string()).await?;
/// let limit = Typed::<u32>::new(&client, "/limit");
/// limit.create(&10).await?;
/// let cache = limit.cache_node()?;
/// cache.initialized().await?;
/// assert_eq!(cache.get("/limit").and_then(|node| node.value.ok()), Some(10));
/// let mut events = cache.events();
/// # client.set_data("/limit", b"no number").await?;
/// while let Some(event) = events.next().await {
///     if let TypedEvent::Changed(node) = event {
///         println!("{}: {:?}", node.path, node.value);
/// #       assert!(node.value.is_err());
/// #       break;
///     }
/// }
/// # Ok(()) }
/// ```
#[must_use = "a cache that is dropped stops"]
pub struct TypedCache<T, C = Json> {
    cache: CuratorCache,
    codec: Arc<C>,
    of: PhantomData<fn() -> T>,
}

impl<T, C> fmt::Debug for TypedCache<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedCache").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl<T, C: Codec<T>> Typed<T, C> {
    /// Starts a cache of this znode and all znodes below it, which have values of the same type.
    ///
    /// # Errors
    /// [`Error::BadPath`](ostler_client::Error::BadPath).
    pub fn cache(&self) -> Result<TypedCache<T, C>> {
        self.cached(CuratorCache::builder(&self.client, &self.path))
    }

    /// [`cache`](Typed::cache) of this znode and its children only.
    ///
    /// # Errors
    /// [`Error::BadPath`](ostler_client::Error::BadPath).
    pub fn cache_children(&self) -> Result<TypedCache<T, C>> {
        self.cached(CuratorCache::builder(&self.client, &self.path).children_only())
    }

    /// [`cache`](Typed::cache) of this znode only.
    ///
    /// # Errors
    /// [`Error::BadPath`](ostler_client::Error::BadPath).
    pub fn cache_node(&self) -> Result<TypedCache<T, C>> {
        self.cached(CuratorCache::builder(&self.client, &self.path).single_node())
    }

    fn cached(&self, builder: CuratorCacheBuilder) -> Result<TypedCache<T, C>> {
        Ok(TypedCache { cache: builder.start()?, codec: self.codec.clone(), of: PhantomData })
    }
}

impl<T, C: Codec<T>> TypedCache<T, C> {
    /// Waits until the znodes that existed at the start have been read.
    ///
    /// # Errors
    /// Those of [`CuratorCache::initialized`].
    pub async fn initialized(&self) -> Result<()> {
        self.cache.initialized().await
    }

    /// The znode at this path, if the cache holds it.
    pub fn get(&self, path: &str) -> Option<TypedNode<T>> {
        self.cache.get(path).map(|node| typed(&*self.codec, &node))
    }

    /// The children of a znode that the cache holds, in the order of their names.
    pub fn children(&self, path: &str) -> Vec<TypedNode<T>> {
        self.cache.children(path).iter().map(|node| typed(&*self.codec, node)).collect()
    }

    /// All znodes that the cache holds at this moment, in the order of their paths.
    pub fn nodes(&self) -> Vec<TypedNode<T>> {
        self.cache.nodes().iter().map(|node| typed(&*self.codec, node)).collect()
    }

    /// A stream of the cache's content, as `Created`, and then of its changes. It ends when the cache is closed or
    /// dropped.
    pub fn events(&self) -> TypedEvents<T, C> {
        TypedEvents { events: self.cache.events(), codec: self.codec.clone(), of: PhantomData }
    }

    /// Why the cache does not follow the servers any more: see [`CuratorCache::end_reason`].
    pub fn end_reason(&self) -> Option<ostler_client::Error> {
        self.cache.end_reason()
    }

    /// Stops following the servers, and waits for that: see [`CuratorCache::close`].
    pub async fn close(&self) {
        self.cache.close().await;
    }
}

fn typed<T>(codec: &impl Codec<T>, node: &CachedNode) -> TypedNode<T> {
    TypedNode { path: node.path.clone(), value: codec.decode(&node.data), stat: node.stat }
}

/// The events of a [`TypedCache`], for one reader.
pub struct TypedEvents<T, C = Json> {
    events: CacheEvents,
    codec: Arc<C>,
    of: PhantomData<fn() -> T>,
}

impl<T, C> fmt::Debug for TypedEvents<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedEvents").field("events", &self.events).finish_non_exhaustive()
    }
}

impl<T, C: Codec<T>> TypedEvents<T, C> {
    /// Waits for the next event; `None` once the cache or the client is closed.
    pub async fn next(&mut self) -> Option<TypedEvent<T>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<TypedEvent<T>>> {
        let Some(event) = ready!(self.events.poll(cx)) else { return Poll::Ready(None) };
        let node = |node: Arc<CachedNode>| typed(&*self.codec, &node);
        Poll::Ready(Some(match event {
            CacheEvent::Created(created) => TypedEvent::Created(node(created)),
            CacheEvent::Changed { new, .. } => TypedEvent::Changed(node(new)),
            CacheEvent::Deleted(deleted) => TypedEvent::Deleted(node(deleted)),
            CacheEvent::Initialized => TypedEvent::Initialized,
            CacheEvent::Unreadable { path, code } => TypedEvent::Unreadable { path, code },
            CacheEvent::Gap(events) => TypedEvent::Gap(events),
        }))
    }
}

impl<T, C: Codec<T>> Stream for TypedEvents<T, C> {
    type Item = TypedEvent<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TypedEvent<T>>> {
        self.poll(cx)
    }
}
