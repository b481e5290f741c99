//! Znodes that hold values of a type, for which Curator has `ModeledFramework`.
//!
//! ```
//! use ostler_recipes::{ostler_client::{Client, Version}, serde::{Deserialize, Serialize}, typed::Typed};
//!
//! #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
//! #[serde(crate = "ostler_recipes::serde")] // not needed if the program depends on serde itself
//! struct Limits {
//!     connections: u32,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = ostler_testkit::TestServer::start().await?;
//! # let client = Client::connect(&server.connect_string()).await?;
//! let limits = Typed::<Limits>::new(&client, "/config/limits");
//! limits.create(&Limits { connections: 10 }).creating_parents().await?;
//! let now = limits.read().await?;
//! let more = Limits { connections: now.value.connections + 1 };
//! limits.update(&more).version(now.version()).await?;
//! assert_eq!(limits.read().await?.value, more);
//! assert!(limits.update(&more).version(Version::Exactly(0)).await.is_err());
//! # Ok(()) }
//! ```
//!
//! A path with parameters, such as Curator's `ZPath`, is `format!`, and [`Typed::child`].

mod cache;
mod codec;
mod operations;

pub use crate::versioned::VersionedValue;
pub use cache::{TypedCache, TypedEvent, TypedEvents, TypedNode};
#[cfg(feature = "gzip")]
pub use codec::Compressed;
pub use codec::{Codec, CodecError, Json};
pub use operations::{TypedCreate, TypedUpdate};

use ostler_client::Client;
use std::{fmt, marker::PhantomData, sync::Arc};

/// Result of an operation with a typed znode.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation with a typed znode has failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The value cannot be written in the format. The request was not sent.
    #[error("{path}: the value cannot be written: {cause}; it was not sent")]
    Encode {
        /// The znode's path.
        path: Box<str>,
        /// The reason.
        cause: CodecError,
    },
    /// The znode's data is not a value of the type.
    #[error("{path}: the data cannot be read as a value: {cause}")]
    Decode {
        /// The znode's path.
        path: Box<str>,
        /// The reason.
        cause: CodecError,
    },
    /// An error of the client.
    #[error(transparent)]
    Client(#[from] ostler_client::Error),
}

impl Error {
    /// Whether the same operation may succeed later: see [`Error::is_retryable`](crate::Error::is_retryable).
    pub fn is_retryable(&self) -> bool {
        self.client().is_some_and(crate::error::is_retryable)
    }

    /// The client's error, if this is one.
    pub fn client(&self) -> Option<&ostler_client::Error> {
        match self {
            Error::Client(error) => Some(error),
            _ => None,
        }
    }
}

/// A znode whose data is a value of the type `T`, in the format `C`. The [module](self) has an example.
pub struct Typed<T, C = Json> {
    client: Client,
    path: Box<str>,
    codec: Arc<C>,
    of: PhantomData<fn() -> T>,
}

impl<T, C> Clone for Typed<T, C> {
    fn clone(&self) -> Self {
        Typed {
            client: self.client.clone(),
            path: self.path.clone(),
            codec: self.codec.clone(),
            of: PhantomData,
        }
    }
}

impl<T, C> fmt::Debug for Typed<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<T> Typed<T> {
    /// A znode with a value as JSON. The znode need not exist.
    pub fn new(client: &Client, path: &str) -> Typed<T> {
        Typed { client: client.clone(), path: path.into(), codec: Arc::new(Json), of: PhantomData }
    }
}

impl<T, C> Typed<T, C> {
    /// The same znode with values in another format.
    pub fn with_codec<D: Codec<T>>(self, codec: D) -> Typed<T, D> {
        Typed { client: self.client, path: self.path, codec: Arc::new(codec), of: PhantomData }
    }

    /// The znode's path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The child with this name, with values of the same type.
    pub fn child(&self, name: &str) -> Typed<T, C> {
        Typed { path: ostler_client::paths::join(&self.path, name).into(), ..self.clone() }
    }

    /// The znode at this path, with values of another type in the same format.
    pub fn at<U>(&self, path: &str) -> Typed<U, C> {
        Typed { client: self.client.clone(), path: path.into(), codec: self.codec.clone(), of: PhantomData }
    }
}
