//! Whole ensembles with their clients, in one thread and on virtual time.
//!
//! The members are those of a server ([`ostler_server_core::Server`]), and so is what keeps their data
//! ([`ostler_persistence`]); the network, the clocks and the files under them are simulated, and go wrong. All that
//! is left to chance comes from one number, so the same [`Plan`] is the same run, event by event. Everything that is
//! promised is checked as it happens: a broken promise is a panic whose message begins with the promise's name in
//! brackets.

#![expect(clippy::unwrap_used, reason = "what must be so is so, or the run has found something")]

mod acl_checks;
mod agenda;
mod chance;
mod checks;
mod client;
mod clock;
mod contender;
mod disk;
#[cfg_attr(not(test), allow(dead_code, reason = "scenes drive clients with the rest"))]
mod ending;
mod fault;
mod faults;
mod files;
mod fingerprint;
mod guarded;
#[cfg_attr(not(test), allow(dead_code, reason = "scenes ask for the rest"))]
mod history;
mod marks;
mod model;
mod network;
mod plan;
mod run;
mod scenes;
mod session_thief;
mod sessions;
mod shell;
mod shrink;
mod truth;
mod watch_checks;
mod watching;
#[allow(dead_code, reason = "tests of a single member use the rest")]
mod wire;
mod words;
mod world;

pub use fault::FaultKind;
pub use fingerprint::Fingerprint;
pub use ostler_proto::planted::Bug;
#[cfg(feature = "planted-bugs")]
pub use ostler_proto::planted::plant;
pub use plan::{Plan, parse_skip};
pub use run::{Report, run};
pub use scenes::{Scene, search};
pub use shrink::shrink;
