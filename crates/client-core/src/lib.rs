//! A client's session as one deterministic value.
//!
//! [`Session`] has one door, [`Session::step`]: what happens in the world (a connection, a frame, a request of
//! the application, a deadline) is an [`Input`], what the world shall do is an [`Effect`], or bytes to send.
//! Inside there is no clock, socket, thread or source of chance: time comes in with each step, chance as a
//! seed in the [`Config`].
#![no_std]
extern crate alloc;

mod chroot;
mod config;
mod digest_md5;
mod effect;
mod event_match;
mod hosts;
mod input;
mod liveness;
mod rearm;
mod sent;
mod session;
mod state;
mod time;
mod watch_table;

pub use chroot::Chroot;
pub use config::{AuthInfo, Config};
pub use digest_md5::SaslCredentials;
pub use effect::{Effect, Effects, Failure};
pub use input::{AttemptId, Input, RequestId, WatchId};
pub use session::Session;
pub use state::{ConnectionState, SessionState};
pub use time::Mono;
pub use watch_table::EventKind;

/// The exchange of SASL tokens, for the fuzz targets.
#[doc(hidden)]
pub mod sasl_tokens {
    pub use crate::digest_md5::{Answer, answer, directives, is_proof};
}
