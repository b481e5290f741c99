//! An async client of Ostler and of ZooKeeper 3.8 and 3.9, on tokio.
//!
//! ```
//! use ostler_client::{Client, Result, Version};
//!
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let servers = format!("{}/app", server.address);
//! // Like "host1:2181,host2:2181/app".
//! let client = Client::connect(&servers).await?;
//! client.create("/config", b"v1").creating_parents().await?;
//! let ((data, stat), changed) = client.get_data("/config").watch().await?;
//! client.set_data("/config", b"v2").version(Version::Exactly(stat.version)).await?;
//! println!("{:?}", changed.await?);
//! client.close().await;
//! # Ok(()) }
//! ```
//!
//! # Operations
//! Each operation of the protocol is a method of [`Client`] with ZooKeeper's name. Options come before the await:
//! `client.create("/a", b"x").ephemeral().creating_parents().await`. The request of a builder such as [`Create`] is
//! handed to the client when `await` or `send()` is called. A method that returns an [`Operation`] at once, such as
//! [`get_acl`](Client::get_acl), [`sync`](Client::sync) and [`watch`](Read::watch), hands it over by the call itself.
//! Requests are done in that order, and many can be under way at once:
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
//! | `addWatch`, `PersistentWatcher` | [`Client::add_watch`], [`WatchStream`] |
//! | `ConnectionStateListener` | [`Client::states`], [`Client::state`] |
//! | `KillSession` | [`Client::inject_session_expiration`] |
//! | `usingNamespace` | [`Client::using_namespace`] |
//! | `RetryPolicy` | [`RetryPolicy`], [`RetryBudget`] |
//! | `ensembleTracker`, `EnsembleProvider` | [`ClientBuilder::follow_ensemble`], [`ClientBuilder::servers_from`] |
//!
//! A name that is an adjective or a participle waits ([`Session::suspended`], [`Session::ended`]), `is_...` asks
//! ([`Session::is_alive`], [`Client::is_connected`]).
//!
//! # Sessions
//! A client has one session at a time. By default it opens a new one when the session is lost. An operation belongs to
//! the session in which it was handed over, and fails if that session ends before the request is sent. A [`Session`] is
//! a handle that is bound to one session: its operations are done in that session or not at all.
//!
//! ```
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let client = server.client().await;
//! # client.create("/state", b"").await?;
//! # client.create("/election", b"").await?;
//! # use ostler_client::Version;
//! let session = client.session().await?;
//! let mine = session.create("/election/n-", b"").ephemeral_sequential().protected().await?;
//! let token = mine.stat.czxid; // grows from holder to holder: a fencing token
//! tokio::select! {
//!     () = session.suspended() => println!("stop: the session may be lost"),
//!     done = session.multi().check(&mine.path, Version::Any).set_data("/state", b"x").send() => { done?; }
//! }
//! # Ok(()) }
//! ```
//!
//! The client reports [`ConnectionState::Lost`] by its own monotonic clock, before a server can have expired the
//! session. This needs clocks that run equally fast, and servers whose tick is no longer than
//! [`ClientBuilder::tick_time`]. The leader expires sessions. It learns half a tick later what a follower has answered,
//! or never, if the follower dies. So the client does not count from the last answer, but from one that the leader must
//! have heard of.
//!
//! # Connection loss
//! If the connection is lost between request and reply, the operation may have been done or not. The client repeats
//! reads, and writes with `idempotent`, `protected`, `guaranteed` or `or_set_data`, by its [`RetryPolicy`]. Any other
//! write returns [`Error::ConnectionLoss`]. If a repeated write ends with another error, it returns
//! [`Error::Undecided`], because an earlier try may have been done. [`Error::is_outcome_unknown`] is true for both errors.
//!
//! # How long an operation takes
//! One try ends in one of these times:
//!
//! - Without a connection, after [`ClientBuilder::connection_timeout`] (15 s by default), with [`Error::NotConnected`]. If
//!   the session is lost before that, with [`Error::SessionExpired`].
//! - With a server that has fallen silent, when the connection is given up: half of the session's timeout after the
//!   server's last byte, or three eighths of it while something is held ([`Session::hold`]); with
//!   [`Error::ConnectionLoss`]. The timeout is the granted one, [`Client::session_timeout`]; 40 s are asked for by default.
//! - With a server that answers pings, but not this request, when the server answers or ends the connection. A server that
//!   is cut off from its leader ends it after up to `syncLimit` ticks.
//!
//! An operation that is tried again adds the waits of its [`RetryPolicy`] and the times of the further tries: with the
//! defaults, and no server for so long, a read fails after about three minutes, or with the session.
//! [`RetryPolicy::at_most`] shortens that. For a fixed limit, put `tokio::time::timeout` around the operation; a write
//! that was sent may be done nevertheless.
//!
//! # TLS and logins
//! ```no_run
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(feature = "tls")]
//! # {
//! use ostler_client::Client;
//!
//! let authority = std::fs::read("ca.pem")?;
//! let client = Client::builder("zk1:2281,zk2:2281,zk3:2281/app")
//!     .tls_pem(&authority)?
//!     .auth("digest", "user:password")
//!     .connect()
//!     .await?;
//! # }
//! # Ok(()) }
//! ```
//!
//! `ClientBuilder::tls_pem_with_key` also shows a certificate to servers that ask for one, `tls_stores` reads Java's key
//! stores, and `sasl_digest_md5` and `sasl_gssapi` log in by SASL.
//!
//! # Dropping
//! Dropping a future does not take back a request that was sent. If a protected create or a guaranteed delete is
//! dropped, the znode is deleted in the background. Dropping a [`Watch`] or [`WatchStream`] removes it at the server.
//! Dropping the last [`Client`] closes the session; this needs the runtime to live on. A program that ends at once should
//! call [`Client::close`].
//!
//! In `tokio::select!` these can be dropped and asked again without a loss: `next` of each stream, [`Session::suspended`],
//! and `&mut` of a [`Watch`] or an operation. A write that is dropped may be done.
//!
//! # For programs that block
//! [`blocking`] has this client without `async`: tokio runs in a thread of its own.
//!
//! # Features
//! | Feature | On by default | Gives |
//! |---|---|---|
//! | `ring` | yes | TLS with the cryptography of ring. It needs a C compiler. |
//! | `aws-lc-rs` | | TLS with the cryptography of aws-lc-rs. It needs a C compiler. With both features ring is used. |
//! | `tls` | yes | TLS. Without `ring` and `aws-lc-rs` it needs a rustls provider that the program installs at its start. |
//! | `key-stores` | yes | key stores of Java clients: JKS, PKCS12, encrypted keys |
//! | `native-roots` | | the authorities that the operating system trusts |
//! | `sasl` | yes | logins by DIGEST-MD5 ([`ClientBuilder::sasl_digest_md5`]) |
//! | `gssapi` | | logins by Kerberos (`ClientBuilder::sasl_gssapi`); links MIT's library |
//! | `metrics` | yes | [`Client::metrics`] |
//! | `tracing` | yes | a span for each operation, and events, by the crate tracing |
//! | `serde` | | `Serialize` and `Deserialize` for ids, `Stat`, ACLs, states and events |
//! | `gzip` | | compressed data in Curator's format |
//! | `srv` | | servers from DNS SRV records |
//!
//! # Time
//! All waits use `tokio::time`, so tests can pause the clock.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "tracing"), allow(unused_variables, reason = "only events have them"))]

mod background;
pub mod blocking;
mod builder;
mod client;
mod connect_string;
mod connection_task;
mod create;
mod delete;
mod dial;
mod ensemble;
mod error;
#[cfg(feature = "gzip")]
pub mod gzip;
mod injected_expiry;
#[cfg(feature = "gssapi")]
mod kerberos;
#[cfg(not(feature = "gssapi"))]
#[path = "no_kerberos.rs"]
mod kerberos;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "no_metrics.rs"]
mod metrics;
mod multi;
mod multi_read;
mod operation;
mod operation_name;
mod outcome;
pub mod paths;
pub mod prelude;
mod protected;
mod reads;
mod recipe_tag;
mod retry;
mod server_list;
mod server_source;
mod servers;
mod session;
mod shared;
#[cfg(feature = "srv")]
mod srv;
mod states;
#[cfg(feature = "tracing")]
use ::tracing;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
#[cfg(not(feature = "tracing"))]
#[path = "no_tracing.rs"]
mod tracing;
mod version;
mod watch;
mod watch_ops;
mod writes;

pub use builder::ClientBuilder;
pub use bytes::Bytes;
pub use client::Client;
pub use connect_string::HostPort;
pub use create::{Create, CreateMode, Created};
pub use delete::Delete;
pub use error::{Error, Result};
pub use futures_core::Stream;
#[cfg(feature = "gssapi")]
pub use kerberos::KerberosLogin;
#[cfg(feature = "metrics")]
pub use metrics::{Metrics, OperationMetrics};
pub use multi::{CreateOp, Multi, OpResult, VersionedOp};
pub use multi_read::{MultiRead, ReadResult};
pub use operation::Operation;
pub use ostler_client_core::{ConnectionState, EventKind, RetryBudget, SessionState};
pub use ostler_proto::{
    acl::{Acl, Id, Perms},
    error::ErrorCode,
    id::{Epoch, SessionId, Zxid},
    jute::JuteError,
    stat::Stat,
};
/// The key stores and trust stores of [`ClientBuilder::tls_stores`].
#[cfg(feature = "tls")]
pub use ostler_tls::settings as tls_settings;
pub use protected::{ProtectionId, without_protection};
pub use reads::Read;
#[doc(hidden)]
pub use recipe_tag::RecipeTag;
pub use retry::RetryPolicy;
#[cfg(feature = "tls")]
pub use rustls;
pub use session::{Hold, Session};
pub use states::StateStream;
#[cfg(feature = "tls")]
pub use tls::{pem_tls_config, pem_tls_config_with_key};
/// tokio, whose types are in the signatures of [`Client::runtime`] and [`ClientBuilder::connector`].
pub use tokio;
pub use version::Version;
pub use watch::{AddWatchMode, Watch, WatchStream, WatchedEvent};
pub use watch_ops::WatcherType;
pub use writes::{Reconfig, SetAcl, SetData};

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
