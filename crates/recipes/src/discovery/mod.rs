//! Services that register themselves and are found by name, compatible with `curator-x-discovery` and its
//! `JsonInstanceSerializer`.
//!
//! An instance is a znode below its service's, which is below the base path: `/base/name/id`, with JSON as data. Those
//! of dynamic services are ephemeral: they go with their process, after its session's timeout. So a client can be given
//! an instance that is not there any more, and one that is there can be unreachable: [`ServiceProvider::note_error`] is
//! for that.

mod cache;
mod down;
mod instance;
mod provider;
mod registry;
mod strategy;
mod uri_spec;

pub use cache::{ServiceCache, ServiceChanges};
pub use down::DownInstancePolicy;
pub use instance::{ServiceInstance, ServiceType};
pub use provider::{ServiceProvider, ServiceProviderBuilder};
pub use registry::ServiceDiscovery;
pub use strategy::{ProviderStrategy, Random, RoundRobin, Sticky};
pub use uri_spec::{UriPart, UriSpec, UriSpecError};

use ostler_client::Error;

/// What can go wrong with the discovery of services.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// An operation of the client fails.
    #[error(transparent)]
    Client(#[from] Error),
    /// A znode's data is no instance.
    #[error("{path}: no instance of a service: {cause}")]
    NoInstance {
        /// The znode.
        path: Box<str>,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// An instance's payload cannot be written as JSON.
    #[error("instance {id} cannot be written as JSON: {cause}")]
    Payload {
        /// The instance.
        id: Box<str>,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// An instance is not registered here.
    #[error("instance {id} of service {name} is not registered here")]
    NotRegistered {
        /// The service.
        name: Box<str>,
        /// The instance.
        id: Box<str>,
    },
}

/// Result of an operation of the discovery.
pub type Result<T> = std::result::Result<T, DiscoveryError>;
