//! A client's session as a deterministic state machine, without I/O.
//!
//! [`Session::step`] is the only way to change a [`Session`]. It takes an [`Input`]: a new connection, a frame, a
//! request of the application, or a deadline. It returns [`Effect`]s, which the caller carries out, and bytes to send.
//! A session uses no clock, socket, thread or random source: the time comes with each step, and the [`Config`] has a
//! seed.
#![no_std]
#![warn(missing_docs)]
extern crate alloc;

mod chroot;
mod config;
mod effect;
mod event_match;
mod hosts;
mod input;
mod liveness;
mod rearm;
mod retry_budget;
mod sent;
mod session;
mod state;
mod time;
mod watch_table;

pub use chroot::Chroot;
pub use config::{AuthInfo, Config, SaslLogin};
pub use effect::{Effect, Effects, Failure};
pub use hosts::RankedHost;
pub use input::{AttemptId, Input, OnChange, RequestId, SaslStep, WatchId};
#[cfg(feature = "sasl")]
pub use ostler_sasl::digest_md5::SaslCredentials;
pub use retry_budget::{RetryBudget, RetryTokens};
pub use session::{Credentials, Session};
pub use state::{ConnectionState, SessionState};
pub use time::Mono;
pub use watch_table::EventKind;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
