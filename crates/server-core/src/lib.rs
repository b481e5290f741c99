//! One ensemble member as a deterministic value.
//!
//! The shell passes each event to [`Server::step`] as an [`Input`], and carries out the [`Effect`]s that come back.
//! There is no clock, socket, file, thread or random number inside: the crate is `no_std`, so the compiler enforces it.
//! A real server, a simulated one and an embedded one differ only in their shells.
#![no_std]
extern crate alloc;

mod access;
pub mod auth;
mod backlog;
mod commit;
pub mod config;
mod connect;
mod context;
pub mod effect;
mod ending;
pub mod ensemble;
mod fifo;
mod identities;
pub mod input;

mod multi;
mod multi_read;
pub mod namespaces;
pub mod passwords;
mod pause_detector;
mod prepare;
mod propose;
mod read;
mod reaper;
pub mod report;
mod report_parts;
pub mod report_quotas;
pub mod server;
pub mod session;
pub mod stats;
mod watches;
pub mod work;

pub use config::CoreConfig;
pub use effect::{CloseReason, DialTarget, Effect, PeerMessage, PersistOp, Record};
pub use ensemble::EnsembleConfig;
pub use input::{ClientRequest, ConnId, Input, LogPart, Now};
pub use server::Server;
