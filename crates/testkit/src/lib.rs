//! Servers and ensembles in a test's process, with faults on call: what `TestingServer` and `TestingCluster` are in
//! Java.
//!
//! They are real servers on real ports of 127.0.0.1, each with a thread of its own and a temporary folder. A server is
//! ready in milliseconds, an ensemble in some tens of them, and what is left of both goes when they are dropped.
//!
//! ```
//! use ostler_testkit::{TestEnsemble, TestServer};
//! use std::{
//!     io::{Read, Write},
//!     net::{SocketAddr, TcpStream},
//! };
//!
//! /// Any ZooKeeper client will do; a four-letter word needs none.
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
//! let leader = ensemble.until_led().await?;
//! assert_eq!(mode(ensemble.member(leader)?.address())?, "leader");
//! ensemble.pause(leader).await?;
//! let next = ensemble.until_led().await?;
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
//! | It stands still, as with SIGSTOP | [`TestServer::pause`], [`TestEnsemble::pause`], and `resume` |
//! | A session expires | [`TestServer::expire`], [`TestEnsemble::expire`] |
//! | A parent has nearly all its numbers given out | [`TestServer::number_children_from`] |
//! | Clients lose their connections | [`TestServer::cut_connections`], [`TestServer::cut_session`] |
//! | A connection breaks at one chosen message | [`FrameProxy::cut_at`] |
//! | A message stays on the way | [`FrameProxy::hold_at`] |
//! | A network between client and server that is down, silent or slow | [`FrameProxy::block`], [`FrameProxy::silence`], [`FrameProxy::delay`] |
//! | The same between members | [`TestEnsemble::cut`], [`TestEnsemble::silence`], [`TestEnsemble::delay`] |
//! | A leader whose followers have another one, and that does not know yet | [`TestEnsemble::desert`], or [`TestEnsemble::pause`] |
//!
//! # Looking
//!
//! | What | Call |
//! |---|---|
//! | Watches, ephemerals, sessions, requests and events, now or once they are as wanted | [`TestServer::counts`] and [`until`](TestServer::until), [`TestEnsemble::counts`] and [`until`](TestEnsemble::until) |
//! | Which znodes came and went, in the servers' own order: the judge of who held what when | [`TestServer::history`], [`TestEnsemble::history`] |
//! | Who leads | [`TestEnsemble::leader`], [`TestEnsemble::until_led`] |
//! | What has passed between a client and its servers | [`FrameProxy::seen`] |
//!
//! # Time
//!
//! Sockets do not know tokio's paused clock, so the servers' time is the machine's. Tests need not wait for it all the
//! same: a session expires [on call](TestServer::expire), and states are waited for without polling
//! ([`TestServer::until`], [`TestEnsemble::until`], [`TestEnsemble::until_led`]). Only where a server has to notice by itself that another one
//! is silent does that take its time, ten [ticks](TestOptions::tick).
//!
//! # What a kill leaves
//!
//! By default servers do not wait for the device: what they acknowledge is in the system's hands, in the order in which
//! it was written. That is all that `kill -9` asks for, and a kill here is no worse: everything acknowledged is there
//! at the restart. A test that pulls the machine's plug needs [`Durability::Machine`].
//!
//! # At each message
//!
//! "What if the connection is lost just here?" has as many answers as an exchange has messages. So try them all:
//!
//! ```no_run
//! # use ostler_testkit::{CutPoint, FrameProxy, TestServer};
//! # async fn take_the_lock(connect: &str) {}
//! # async fn check_that_nobody_else_has_it(server: &TestServer) {}
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::start().await?;
//! let proxy = server.proxy().await?;
//! take_the_lock(&proxy.connect_string()).await;
//! let (requests, events) = (proxy.requests(), proxy.events());
//! for point in CutPoint::all(requests, events) {
//!     let server = TestServer::start().await?;
//!     let proxy = server.proxy().await?;
//!     proxy.cut_at(point);
//!     take_the_lock(&proxy.connect_string()).await;
//!     assert_eq!(proxy.cuts(), [point]);
//!     check_that_nobody_else_has_it(&server).await;
//! }
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod child_counter;
mod counts;
mod disk;
mod ensemble;
mod error;
mod frame_proxy;
mod history;
mod lane;
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
pub use frame_proxy::{CutPoint, Direction, FrameProxy, Held, Seen};
pub use history::{Change, ChangeKind};
pub use options::{Durability, TestOptions};
pub use ostler_proto::{
    id::{ServerId, SessionId},
    op::Op,
};
pub use server::TestServer;
