//! The I/O around the core of a server: configuration, sockets and the disk. The logic of the protocol is in the core.
//!
//! [`RunningServer::start`] starts a server with a [`config::ServerConfig`]. There are no global variables, so a process
//! can have several servers.

pub mod admin;
mod audit;
mod boot;
mod client_conn;
mod client_effects;
mod client_stream;
mod clock;
pub mod config;
mod descriptors;
mod disk_thread;
mod driver;
mod error;
mod fan_out;
mod handle;
mod handshake_turns;
mod host_probe;
mod listener;
mod log_throttle;
pub mod logging;
mod outbox;
mod overrides;
mod peers;
mod principal_names;
mod responses;
mod room;
mod sasl_files;
mod sasl_logins;
mod sending;
mod snapshot_thread;
mod throttle;
mod timer_task;
mod tls_files;
mod tls_handshake;
mod traces;
mod traffic;
mod unidentified;
mod watched_files;

pub use audit::AuditError;
pub use boot::RunningServer;
pub use descriptors::raise_limit as raise_limit_of_open_files;
pub use error::ServerError;
pub use handle::{Ended, ServerHandle};
pub use overrides::{AdminRoutes, Overrides, PeerListeners};
#[doc(hidden)]
pub use peers::decoders;
pub use traces::TraceSettingsError;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
