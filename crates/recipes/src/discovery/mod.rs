//! Service discovery: instances of services register themselves, and are found by the service's name. Compatible with
//! `curator-x-discovery` and its `JsonInstanceSerializer`.
//!
//! An instance is a znode `/base/name/id` with JSON as data. Instances of dynamic services are ephemeral: when their
//! process dies, they are deleted after its session's timeout. So a program can get an instance that is dead or
//! unreachable, and reports it with [`ServiceProvider::note_error`].

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

use crate::{error::is_retryable, typed::CodecError};
use ostler_client::Error;

/// Why an operation of the discovery has failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// An operation of the client has failed.
    #[error(transparent)]
    Client(#[from] Error),
    /// A znode's data is not an instance.
    #[error("{path}: not an instance of a service: {cause}")]
    NotAnInstance {
        /// The znode's path.
        path: Box<str>,
        /// The reason.
        cause: CodecError,
    },
    /// An instance's payload cannot be written as JSON.
    #[error("instance {id} cannot be written as JSON: {cause}")]
    Payload {
        /// The instance's id.
        id: Box<str>,
        /// The reason.
        cause: CodecError,
    },
    /// The instance is not registered through this value.
    #[error("instance {id} of service {name} is not registered here")]
    NotRegistered {
        /// The service's name.
        name: Box<str>,
        /// The instance's id.
        id: Box<str>,
    },
}

impl DiscoveryError {
    /// Whether the same operation may succeed later: see [`Error::is_retryable`](crate::Error::is_retryable).
    pub fn is_retryable(&self) -> bool {
        self.client().is_some_and(is_retryable)
    }

    /// The client's error, if this is one.
    pub fn client(&self) -> Option<&Error> {
        match self {
            DiscoveryError::Client(error) => Some(error),
            _ => None,
        }
    }
}

/// Result of an operation of the discovery.
pub type Result<T> = std::result::Result<T, DiscoveryError>;
