//! The names that most programs need: `use ostler_client::prelude::*;`
//!
//! ```
//! use ostler_client::prelude::*;
//!
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let servers = server.address.to_string();
//! let client = Client::connect(&servers).await?;
//! let created = client.create("/worker-", b"").mode(CreateMode::EphemeralSequential).await?;
//! client.delete(&created.path).version(Version::Exactly(0)).await?;
//! # Ok(()) }
//! ```
//!
//! `Error` and `Result` are left out, because a program has its own.

pub use crate::{
    Acl, AddWatchMode, Bytes, Client, ConnectionState, CreateMode, ErrorCode, EventKind, Id, OpResult, Perms,
    RetryPolicy, Session, Stat, Stream, Version, WatchedEvent, Zxid,
};
