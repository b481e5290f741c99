//! Servers and ensembles in a test's process, with faults on demand: Curator's `TestingServer` and `TestingCluster`.
//!
//! They are real servers on ports of 127.0.0.1, each with its own thread and a temporary folder. A server starts in a few
//! milliseconds, an ensemble in some tens of milliseconds. When they are dropped, their threads end and their folders are
//! removed.
//!
//! ```
//! use ostler_testkit::{TestEnsemble, TestServer};
//! use std::{
//!     io::{Read, Write},
//!     net::{SocketAddr, TcpStream},
//! };
//!
//! /// Asks with a four-letter word, which needs no client.
//! fn mode(server: SocketAddr) -> std::io::Result<String> {
//!     let mut stream = TcpStream::connect(server)?;
//!     stream.write_all(b"srvr")?;
//!     let mut text = String::new();
//!     stream.read_to_string(&mut text)?;
//!     Ok(text.lines().find_map(|line| line.strip_prefix("Mode: ")).unwrap_or("none").into())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut server = TestServer::start().await?;
//! assert_eq!(mode(server.address())?, "standalone");
//! server.kill().await;
//! assert!(mode(server.address()).is_err());
//! server.restart().await?;
//! assert_eq!(mode(server.address())?, "standalone");
//!
//! let mut ensemble = TestEnsemble::start(3).await?;
//! let leader = ensemble.wait_for_leader().await?;
//! assert_eq!(mode(ensemble.member(leader)?.address())?, "leader");
//! ensemble.pause(leader).await?;
//! let next = ensemble.wait_for_leader().await?;
//! assert_ne!(next, leader);
//! # Ok(())
//! # }
//! ```
//!
//! # Faults
//!
//! | Fault | Call |
//! |---|---|
//! | A server dies | [`TestServer::kill`], [`TestEnsemble::kill`], and `restart` |
//! | A server is frozen, as by SIGSTOP | [`TestServer::pause`], [`TestEnsemble::pause`], and `resume` |
//! | A session expires | [`TestServer::expire`], [`TestEnsemble::expire`] |
//! | The counter of sequential children is near its end | [`TestServer::restart_with_next_sequence`] |
//! | Clients lose their connections | [`TestServer::cut_connections`], [`TestServer::cut_session`] |
//! | A connection is cut at one chosen message | [`FrameProxy::cut_at`] |
//! | A message is held back | [`FrameProxy::hold_at`] |
//! | A network between client and server that is down, silent or slow | [`FrameProxy::block`], [`FrameProxy::silence`], [`FrameProxy::delay`] |
//! | The same, at the servers' own addresses | [`TestOptions::client_proxies`], [`TestServer::client_proxy`] |
//! | The same between members | [`TestEnsemble::cut_link`], [`TestEnsemble::silence_link`], [`TestEnsemble::delay_link`] |
//! | A leader whose followers have elected another one, and that has not noticed it | [`TestEnsemble::cut_member_unnoticed`], or [`TestEnsemble::pause`] |
//!
//! # Observations
//!
//! | Observation | Call |
//! |---|---|
//! | Numbers of watches, ephemerals, sessions, requests and events, now or once a condition holds | [`TestServer::counts`] and [`until`](TestServer::until), [`TestEnsemble::counts`] and [`until`](TestEnsemble::until) |
//! | Created and deleted znodes in the order of transactions, to check who held a lock at which time | [`TestServer::history`], [`TestEnsemble::history`] |
//! | The leader | [`TestEnsemble::leader`], [`TestEnsemble::wait_for_leader`] |
//! | The messages between clients and servers | [`FrameProxy::seen`] |
//!
//! # Time
//!
//! The servers use the machine's clock, because sockets do not follow tokio's paused clock. Tests still need few waits: a
//! session expires [on call](TestServer::expire), and states are awaited without polling ([`TestServer::until`],
//! [`TestEnsemble::until`], [`TestEnsemble::wait_for_leader`]). Only a server that must notice the silence of another one takes
//! its time: ten [ticks](TestOptions::tick).
//!
//! # Data after a kill
//!
//! By default servers do not wait for the disk (`forceSync=no`): acknowledged writes are in the operating system's cache,
//! in order. As with `kill -9`, everything acknowledged is there after a restart. A test of a power loss needs
//! [`Durability::Machine`].
//!
//! # A cut at each message
//!
//! A connection can be lost at each message of an exchange. A test can try all of them:
//!
//! ```no_run
//! # use ostler_testkit::{CutPoint, FrameProxy, TestServer};
//! # async fn take_the_lock(connect: &str) {}
//! # async fn check_that_nobody_else_has_it(server: &TestServer) {}
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::start().await?;
//! let proxy = server.start_proxy().await?;
//! take_the_lock(&proxy.connect_string()).await;
//! let (requests, events) = (proxy.requests(), proxy.events());
//! for point in CutPoint::all(requests, events) {
//!     let server = TestServer::start().await?;
//!     let proxy = server.start_proxy().await?;
//!     proxy.cut_at(point);
//!     take_the_lock(&proxy.connect_string()).await;
//!     assert_eq!(proxy.cuts(), [point]);
//!     check_that_nobody_else_has_it(&server).await;
//! }
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]

mod child_counter;
mod client_proxy;
mod counts;
mod disk;
mod ensemble;
mod error;
mod frame_proxy;
mod history;
mod lane;
mod mode;
mod network;
mod options;
mod port;
mod process;
mod roster;
mod runtime;
mod server;

pub use counts::{Connection, Counts};
pub use ensemble::TestEnsemble;
pub use error::TestkitError;
pub use frame_proxy::{CutPoint, Direction, FrameProxy, HeldFrame, SeenFrame};
pub use history::{Change, ChangeKind};
pub use mode::Mode;
pub use options::{Durability, TestOptions};
pub use ostler_proto::{
    id::{ServerId, SessionId, Zxid},
    jute::JuteError,
    op::Op,
};
pub use ostler_server::{ServerError, config::ConfigError};
pub use ostler_storage::error::StorageError;
pub use server::TestServer;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
