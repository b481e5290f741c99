//! A provider: gives out one instance of a service at a time.

use crate::discovery::{
    DownInstancePolicy, ProviderStrategy, Result, RoundRobin, ServiceCache, ServiceInstance,
    down::{DownInstances, Key},
};
use ostler_client::Client;
use serde::de::DeserializeOwned;
use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::time::Instant;

type Filter<P> = Box<dyn Fn(&ServiceInstance<P>) -> bool + Send + Sync>;

/// Gives out instances of a service. Curator's `ServiceProvider`.
///
/// Ask for an instance each time that one is needed, and report errors with
/// [`note_error`](ServiceProvider::note_error): an instance with several errors is not given out for a while.
#[must_use = "a provider that is dropped stops"]
pub struct ServiceProvider<P> {
    cache: ServiceCache<P>,
    strategy: Box<dyn ProviderStrategy<P>>,
    filters: Vec<Filter<P>>,
    down: Mutex<DownInstances>,
}

/// Options of a [`ServiceProvider`]: set them, then await it.
#[must_use = "no provider runs until it is awaited"]
pub struct ServiceProviderBuilder<P> {
    client: Client,
    path: String,
    strategy: Box<dyn ProviderStrategy<P>>,
    filters: Vec<Filter<P>>,
    down: DownInstancePolicy,
}

impl<P> fmt::Debug for ServiceProviderBuilder<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceProviderBuilder").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<P> fmt::Debug for ServiceProvider<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceProvider").finish_non_exhaustive()
    }
}

impl<P: DeserializeOwned + Send + Sync> ServiceProviderBuilder<P> {
    pub(crate) fn new(client: &Client, path: &str) -> ServiceProviderBuilder<P> {
        ServiceProviderBuilder {
            client: client.clone(),
            path: path.to_owned(),
            strategy: Box::new(RoundRobin::default()),
            filters: Vec::new(),
            down: DownInstancePolicy::default(),
        }
    }

    /// The strategy that chooses an instance; [`RoundRobin`](super::RoundRobin) by default.
    pub fn strategy(mut self, strategy: impl ProviderStrategy<P> + 'static) -> Self {
        self.strategy = Box::new(strategy);
        self
    }

    /// Gives out only instances for which `filter` returns true.
    pub fn filter(mut self, filter: impl Fn(&ServiceInstance<P>) -> bool + Send + Sync + 'static) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// When an instance that has failed is not given out; by default after two errors within 30 s.
    pub fn down_instances(mut self, policy: DownInstancePolicy) -> Self {
        self.down = policy;
        self
    }

    /// Starts the provider, and waits until the present instances are known.
    ///
    /// # Errors
    /// [`Error::BadPath`](ostler_client::Error::BadPath); those of
    /// [`CuratorCache::initialized`](crate::cache::CuratorCache::initialized).
    pub async fn start(self) -> Result<ServiceProvider<P>> {
        let cache = ServiceCache::start(&self.client, &self.path)?;
        cache.initialized().await?;
        let down = Mutex::new(DownInstances::new(self.down));
        Ok(ServiceProvider { cache, strategy: self.strategy, filters: self.filters, down })
    }
}

/// [`start`](ServiceProviderBuilder::start).
impl<P: DeserializeOwned + Send + Sync + 'static> IntoFuture for ServiceProviderBuilder<P> {
    type Output = Result<ServiceProvider<P>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<ServiceProvider<P>>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

impl<P: DeserializeOwned> ServiceProvider<P> {
    /// All instances that may be given out.
    pub fn all_instances(&self) -> Vec<Arc<ServiceInstance<P>>> {
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut instances = self.cache.instances();
        instances.retain(|instance| {
            instance.enabled
                && self.filters.iter().all(|filter| filter(instance))
                && down.is_up(&key(instance), now)
        });
        instances
    }

    /// An instance to use now; `None` if there is none.
    pub fn instance(&self) -> Option<Arc<ServiceInstance<P>>> {
        self.strategy.choose(&self.all_instances())
    }

    /// Notes an error of an instance that was given out.
    pub fn note_error(&self, instance: &ServiceInstance<P>) {
        self.down.lock().unwrap_or_else(PoisonError::into_inner).note(key(instance), Instant::now());
    }

    /// The cache of all instances, including those that are down or filtered out.
    pub fn cache(&self) -> &ServiceCache<P> {
        &self.cache
    }

    /// Stops following the servers, and waits for that. The present instances can still be given out.
    pub async fn close(&self) {
        self.cache.close().await;
    }
}

fn key<P>(instance: &ServiceInstance<P>) -> Key {
    (instance.id.clone(), instance.registration_time_ms)
}
