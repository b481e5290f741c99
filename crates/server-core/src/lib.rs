//! One ensemble member as a deterministic value.
//!
//! The shell (the code around the core, with sockets, files and a clock) passes each event to [`Server::step`] as an [`Input`], and carries out the [`Effect`]s that come back.
//! There is no clock, socket, file, thread or random number inside: the crate is `no_std`, so the compiler enforces it.
//! A real server, a simulated one and an embedded one differ only in their shells.
#![no_std]
extern crate alloc;

pub mod audit;
pub mod config;
mod connections;
mod context;
pub mod effect;
pub mod input;
mod pipeline;
pub mod quorum;
pub mod report;
mod requests;
pub mod server;
pub mod sessions;
pub mod stats;
pub mod work;

pub use config::CoreConfig;
pub use effect::{CloseReason, DialTarget, Effect, PeerMessage, PersistOp, Record};
pub use input::{ClientRequest, ConnId, Input, LogPart, Now};
pub use pipeline::snapshot_plan::SnapshotTurn;
pub use quorum::EnsembleConfig;
pub use requests::{auth, operator::OperatorLogin, sasl::SaslAnswer};
pub use server::Server;
pub use sessions::passwords;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
