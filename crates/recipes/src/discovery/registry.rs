//! Registers instances of services, and finds them.

use crate::{
    discovery::{DiscoveryError, Result, ServiceCache, ServiceInstance, ServiceProviderBuilder, ServiceType},
    nodes::PersistentNode,
    typed::CodecError,
    until_answered::until_answered,
};
use ostler_client::{Client, CreateMode, paths};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::HashMap,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
};

/// The services below one path: registers instances of this process, and finds all instances. Curator's
/// `ServiceDiscovery`.
///
/// An instance that is registered through this value stays registered over connection losses and lost sessions, with
/// its last update. A reconnect does not delete and create its znode. When this is dropped, its instances are
/// unregistered in the background; [`close`](ServiceDiscovery::close) waits for that.
///
/// ```
/// # use ostler_recipes::discovery::{ServiceDiscovery, ServiceInstance};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// let services: ServiceDiscovery = ServiceDiscovery::new(&client, "/services");
/// services.register(ServiceInstance::new("api", "10.0.0.7", 8080)).await?;
/// let provider = services.provider("api").await?;
/// if let Some(instance) = provider.instance() {
///     println!("{:?}:{:?}", instance.address, instance.port);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "instances are unregistered when this is dropped"]
pub struct ServiceDiscovery<P = serde_json::Value> {
    client: Client,
    base: String,
    registered: Mutex<HashMap<Key, Slot>>,
    payload: PhantomData<fn(P) -> P>,
}

/// An instance's service and id. Ids are unique within a service.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    id: String,
}

/// The registration of an instance. It is locked while the instance is registered or unregistered, so that a new
/// registration does not meet the deletion of the earlier one.
type Slot = Arc<tokio::sync::Mutex<Option<Registration>>>;

#[derive(Debug, Clone)]
struct Registration {
    service_type: ServiceType,
    node: Arc<PersistentNode>,
}

impl<P: Serialize + DeserializeOwned> ServiceDiscovery<P> {
    /// The services below `base`.
    pub fn new(client: &Client, base: &str) -> ServiceDiscovery<P> {
        ServiceDiscovery {
            client: client.clone(),
            base: base.to_owned(),
            registered: Mutex::new(HashMap::new()),
            payload: PhantomData,
        }
    }

    fn service(&self, name: &str) -> String {
        paths::join(&self.base, name)
    }

    fn slot(&self, name: &str, id: &str) -> Slot {
        // Each change of the map is one call, so it is whole.
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes the slots of instances that are neither registered nor in use.
        registered.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|registration| registration.is_some())
        });
        registered.entry(Key { name: name.to_owned(), id: id.to_owned() }).or_default().clone()
    }

    /// Registers an instance, and waits until it can be found. If an instance with this name and id is registered here
    /// already, it is updated; if it has another type, it is unregistered first. If the future is dropped, the
    /// registration goes on in the background, unless it waits for the end of an earlier one.
    ///
    /// # Errors
    /// The server's refusal: the registration is tried again until the server allows it or the instance is
    /// unregistered. [`DiscoveryError::Payload`].
    pub async fn register(&self, instance: ServiceInstance<P>) -> Result<()> {
        let data = write(&instance)?;
        let service_type = instance.service_type;
        let slot = self.slot(&instance.name, &instance.id);
        let mut registered = slot.lock().await;
        if let Some(known) = registered.as_ref().filter(|known| known.service_type == service_type) {
            let node = known.node.clone();
            drop(registered);
            return Ok(node.set_data(data).await?);
        }
        if let Some(earlier) = registered.take() {
            earlier.node.close().await;
        }
        let mode = match service_type {
            ServiceType::Dynamic => CreateMode::Ephemeral,
            ServiceType::DynamicSequential => CreateMode::EphemeralSequential,
            ServiceType::Static | ServiceType::Permanent => CreateMode::Persistent,
        };
        let path = paths::join(&self.service(&instance.name), &instance.id);
        let node = Arc::new(PersistentNode::builder(&self.client, &path, data).mode(mode).start()?);
        *registered = Some(Registration { service_type, node: node.clone() });
        drop(registered);
        node.created().await?;
        Ok(())
    }

    /// Changes an instance that is registered here. Its type stays.
    ///
    /// # Errors
    /// [`DiscoveryError::NotRegistered`]; [`DiscoveryError::Payload`]; the server's refusal.
    pub async fn update(&self, instance: &ServiceInstance<P>) -> Result<()> {
        let data = write(instance)?;
        let known = self.slot(&instance.name, &instance.id).lock().await.clone();
        let known = known.ok_or_else(|| not_registered(&instance.name, &instance.id))?;
        Ok(known.node.set_data(data).await?)
    }

    /// Unregisters an instance of a service, and waits until its znode is deleted. If the future is dropped, this goes on
    /// in the background.
    ///
    /// # Errors
    /// [`DiscoveryError::NotRegistered`].
    pub async fn unregister(&self, name: &str, id: &str) -> Result<()> {
        let slot = self.slot(name, id);
        let mut registered = slot.lock().await;
        let registration = registered.take().ok_or_else(|| not_registered(name, id))?;
        registration.node.close().await;
        Ok(())
    }

    /// Unregisters all instances that were registered here, and waits for that. Instances can be registered again.
    pub async fn close(&self) {
        let slots = {
            let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *registered)
        };
        for slot in slots.into_values() {
            if let Some(registration) = slot.lock().await.take() {
                registration.node.close().await;
            }
        }
    }

    /// Reads the names of all services that have been registered. They may have no instances any more.
    ///
    /// # Errors
    /// Those of getChildren, except `NoNode`.
    pub async fn names(&self) -> Result<Vec<String>> {
        children(&self.client, &self.base).await
    }

    /// Reads the instances of a service. A znode whose data is not an instance is left out.
    ///
    /// # Errors
    /// Those of getChildren and getData, except `NoNode`.
    pub async fn instances(&self, name: &str) -> Result<Vec<ServiceInstance<P>>> {
        let mut found = Vec::new();
        for id in children(&self.client, &self.service(name)).await? {
            match self.instance(name, &id).await {
                Ok(instance) => found.extend(instance),
                Err(DiscoveryError::NotAnInstance { path, cause }) => {
                    tracing::warn!(%path, %cause, "a znode of a service is left out")
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Reads an instance; `None` if it is not registered.
    ///
    /// # Errors
    /// Those of getData, except `NoNode`; [`DiscoveryError::NotAnInstance`].
    pub async fn instance(&self, name: &str, id: &str) -> Result<Option<ServiceInstance<P>>> {
        let path = paths::join(&self.service(name), id);
        match until_answered(&self.client, || self.client.get_data(&path)).await {
            Ok((data, _)) => read(&path, &data).map(Some),
            Err(error) if error.is_no_node() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Starts a cache of the instances of a service.
    ///
    /// # Errors
    /// [`Error::BadPath`](ostler_client::Error::BadPath).
    pub fn cache(&self, name: &str) -> Result<ServiceCache<P>> {
        ServiceCache::start(&self.client, &self.service(name))
    }

    /// Options of a provider of a service's instances.
    pub fn provider(&self, name: &str) -> ServiceProviderBuilder<P>
    where
        P: Send + Sync,
    {
        ServiceProviderBuilder::new(&self.client, &self.service(name))
    }
}

fn not_registered(name: &str, id: &str) -> DiscoveryError {
    DiscoveryError::NotRegistered { name: name.into(), id: id.into() }
}

async fn children(client: &Client, path: &str) -> Result<Vec<String>> {
    match until_answered(client, || client.get_children(path)).await {
        Ok(mut names) => {
            names.sort_unstable();
            Ok(names)
        }
        Err(error) if error.is_no_node() => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn write<P: Serialize>(instance: &ServiceInstance<P>) -> Result<Vec<u8>> {
    serde_json::to_vec(instance).map_err(|error| DiscoveryError::Payload {
        id: instance.id.as_str().into(),
        cause: CodecError::new(error),
    })
}

pub(crate) fn read<P: DeserializeOwned>(path: &str, data: &[u8]) -> Result<ServiceInstance<P>> {
    serde_json::from_slice(data)
        .map_err(|error| DiscoveryError::NotAnInstance { path: path.into(), cause: CodecError::new(error) })
}
