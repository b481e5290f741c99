//! A cache of the instances of a service.

use crate::{
    cache::{CachedNode, PathChildrenCache, PathEvent, PathEvents},
    discovery::{Result, ServiceInstance, registry::read},
};
use futures_util::Stream;
use ostler_client::{Client, Zxid, paths};
use serde::de::DeserializeOwned;
use std::{
    collections::HashMap,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

/// A cache of the instances of a service. Curator's `ServiceCache`.
///
/// It has the guarantees of [`CuratorCache`](crate::cache::CuratorCache): it is a little behind, and does not change
/// without a connection. A znode whose data is not an instance is left out.
#[derive(Debug)]
#[must_use = "a cache that is dropped stops"]
pub struct ServiceCache<P> {
    cache: PathChildrenCache,
    /// The parsed data of each znode, by the znode's name.
    parsed: Mutex<HashMap<String, ParsedNode<P>>>,
}

/// The zxid by which a znode's data was written, and the instance in the data, if it is one.
type ParsedNode<P> = (Zxid, Option<Arc<ServiceInstance<P>>>);

/// The changes of a [`ServiceCache`], for one reader.
#[derive(Debug)]
pub struct ServiceChanges(PathEvents);

impl ServiceChanges {
    /// Waits until an instance is registered, unregistered or changed; `None` once the cache or the client is closed, or
    /// an error has ended the cache: see [`ServiceCache::end_reason`].
    pub async fn next(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        loop {
            match ready!(self.0.poll(cx)) {
                Some(PathEvent::Initialized | PathEvent::Unreadable { .. }) => {}
                event => return Poll::Ready(event.map(drop)),
            }
        }
    }
}

impl Stream for ServiceChanges {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.poll(cx)
    }
}

impl<P: DeserializeOwned> ServiceCache<P> {
    pub(crate) fn start(client: &Client, path: &str) -> Result<ServiceCache<P>> {
        Ok(ServiceCache {
            cache: PathChildrenCache::start(client, path)?,
            parsed: Mutex::new(HashMap::new()),
        })
    }

    /// Waits until all instances that existed at the start are known.
    ///
    /// # Errors
    /// Those of [`CuratorCache::initialized`](crate::cache::CuratorCache::initialized).
    pub async fn initialized(&self) -> Result<()> {
        Ok(self.cache.initialized().await?)
    }

    /// The instances, by the names of their znodes.
    pub fn instances(&self) -> Vec<Arc<ServiceInstance<P>>> {
        let nodes = self.cache.children();
        let mut known = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = HashMap::with_capacity(nodes.len());
        let mut found = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let instance = match known.remove(node.name()) {
                Some((zxid, instance)) if zxid == node.stat.mzxid => instance,
                _ => instance_of(node),
            };
            found.extend(instance.clone());
            next.insert(node.name().to_owned(), (node.stat.mzxid, instance));
        }
        *known = next;
        found
    }

    /// A stream with one item for each present instance, and then for each change.
    pub fn changes(&self) -> ServiceChanges {
        ServiceChanges(self.cache.events())
    }
}

impl<P> ServiceCache<P> {
    /// Why the cache does not follow the servers any more: see
    /// [`CuratorCache::end_reason`](crate::cache::CuratorCache::end_reason).
    pub fn end_reason(&self) -> Option<ostler_client::Error> {
        self.cache.end_reason()
    }

    /// Stops following the servers, and waits for that: see [`CuratorCache::close`](crate::cache::CuratorCache::close).
    pub async fn close(&self) {
        self.cache.close().await;
    }
}

fn instance_of<P: DeserializeOwned>(node: &CachedNode) -> Option<Arc<ServiceInstance<P>>> {
    match read(&node.path, &node.data) {
        Ok(instance) => Some(Arc::new(instance)),
        Err(error) => {
            tracing::warn!(name = paths::name(&node.path), %error, "a znode of a service is left out");
            None
        }
    }
}
