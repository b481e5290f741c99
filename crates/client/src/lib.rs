//! An async client of Ostler and of ZooKeeper 3.8 and 3.9, on tokio.
//!
//! ```
//! use ostler_client::{Client, Result};
//!
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let servers = format!("{}/app", server.address);
//! // Like "host1:2181,host2:2181/app".
//! let client = Client::connect(&servers).await?;
//! client.create("/config", b"v1").creating_parents().await?;
//! let ((data, stat), changed) = client.get_data("/config").watch().await?;
//! client.set_data("/config", b"v2").version(stat.version).await?;
//! println!("{:?}", changed.await?);
//! client.close().await;
//! # Ok(()) }
//! ```
//!
//! # Operations
//! Each operation of the protocol is a method of [`Client`], named as ZooKeeper names it. Options are said before
//! the await: `client.create("/a", b"x").ephemeral().creating_parents().await`. The request is handed over when
//! `await` or `send()` is called, and requests are done in that order; many can be under way at once:
//!
//! ```
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let client = server.client().await;
//! # client.create("/a", b"").await?;
//! let first = client.set_data("/a", b"1").send();
//! let second = client.get_data("/a").send(); // sees the 1
//! let (stat, (data, _)) = (first.await?, second.await?);
//! assert_eq!((stat.version, &data[..]), (1, &b"1"[..]));
//! # Ok(()) }
//! ```
//!
//! | ZooKeeper, Curator | here |
//! |---|---|
//! | `create`, modes, `withProtection`, `creatingParentsIfNeeded`, `idempotent`, `orSetData` | [`Client::create`], [`Create`] |
//! | `delete`, `guaranteed`, `deletingChildrenIfNeeded`, `quietly`, `inBackground` | [`Client::delete`], [`Delete`] |
//! | `exists`, `getData`, `getChildren`, with a watcher | [`Client::exists`] and so on, [`Read::watch`] |
//! | `setData`, `setACL`, `getACL`, `sync`, `getEphemerals`, `getAllChildrenNumber`, `whoAmI` | methods of the same names |
//! | `multi`, `inTransaction` | [`Client::multi`], [`Client::multi_read`] |
//! | `addWatch`, `CuratorCache`'s ground | [`Client::add_watch`], [`WatchStream`] |
//! | `ConnectionStateListener` | [`Client::states`], [`Client::state`] |
//! | `usingNamespace` | [`Client::using_namespace`] |
//! | `RetryPolicy` | [`RetryPolicy`] |
//!
//! # Sessions
//! A client has one session at a time and, unless told otherwise, makes a new one when it is lost. An operation
//! belongs to the session in which it was asked for, and fails if that ends before it was sent. A [`Session`] is a
//! handle that is bound to one session: whatever is asked through it later is done there or not at all.
//!
//! ```
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let client = server.client().await;
//! # client.create("/state", b"").await?;
//! # client.create("/election", b"").await?;
//! let session = client.session().await?;
//! let mine = session.create("/election/n-", b"").ephemeral_sequential().protected().await?;
//! let token = mine.stat.czxid; // only grows: a fencing token
//! tokio::select! {
//!     () = session.suspended() => println!("act as if it were lost"),
//!     done = session.multi().check(&mine.path, -1).set_data("/state", b"x").commit() => { done?; }
//! }
//! # Ok(()) }
//! ```
//!
//! `LOST` is told by this client's own monotonic clock before a server can have expired the session, given that
//! the clocks run equally fast and that the servers' tick is no longer than [`ClientBuilder::tick_time`]. It is the
//! leader that expires sessions, and it learns half a tick later what a follower has answered, or never, if the
//! follower dies; so not the last answer counts, but one that the leader must have heard of.
//!
//! # Connection loss
//! If the connection is lost between request and reply, the operation may have been done or not. Reads are tried again
//! by themselves, as the [`RetryPolicy`] says; so are writes that say `idempotent`, `protected` or `guaranteed`. Any
//! other write gives [`Error::ConnectionLoss`]. If a write that is tried again cannot be brought to an end after that,
//! it gives [`Error::Undecided`]; [`Error::is_outcome_unknown`] is true of both.
//!
//! # Dropping
//! Dropping a future does not take back what was sent. A protected create or a guaranteed delete that is dropped is
//! brought to an end in the background: the znode is deleted. Dropping a [`Watch`] or [`WatchStream`] removes it at
//! the server. Dropping the last [`Client`] closes the session.
//!
//! # Time
//! All waiting is done with `tokio::time`, so tests can pause it.
#![deny(missing_docs)]

mod background;
mod builder;
mod client;
mod connect_string;
mod connection_task;
mod create;
mod delete;
mod dial;
mod error;
mod metrics;
mod multi;
mod operation;
pub mod paths;
mod protected;
mod reads;
mod retry;
mod session;
mod shared;
mod states;
mod tls;
mod watch;
mod watch_ops;
mod writes;

pub use builder::ClientBuilder;
pub use bytes::Bytes;
pub use client::Client;
pub use create::{Create, CreateMode, Created};
pub use delete::Delete;
pub use error::{Error, Result};
pub use metrics::{Metrics, OperationMetrics};
pub use multi::{Multi, MultiRead, OpResult, ReadResult};
pub use operation::Operation;
pub use ostler_client_core::{ConnectionState, EventKind, SessionState};
pub use ostler_proto::{
    acl::{Acl, Id, Perms},
    error::ErrorCode,
    id::{SessionId, Zxid},
    stat::Stat,
};
pub use protected::{ProtectionId, without_protection};
pub use reads::Read;
pub use retry::RetryPolicy;
pub use rustls;
pub use session::{Hold, Session};
pub use states::StateStream;
pub use watch::{AddWatchMode, Watch, WatchStream, WatchedEvent};
pub use watch_ops::WatcherType;
pub use writes::{Reconfig, SetAcl, SetData};
