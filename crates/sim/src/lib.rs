//! Simulates whole ensembles with their clients, in one thread and on virtual time.
//!
//! The servers run the real core ([`ostler_server_core::Server`]) and the real storage ([`ostler_data_dir`]). The
//! network, the clocks and the files are simulated, and have faults. Every random choice comes from one number, the
//! seed. So the same [`Plan`] gives the same run, event by event. Every promise is checked at each step: a broken
//! promise is a panic whose message begins with the promise's name in brackets. docs/simulation.md lists the promises.

#![expect(clippy::unwrap_used, reason = "a panic ends the run and reports what it has found")]

mod acl_checks;
mod agenda;
mod certificates;
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
mod logins;
mod marks;
mod model;
mod network;
mod plan;
mod reference;
mod run;
mod scenes;
mod session_thief;
mod sessions;
mod shell;
mod shrink;
mod watch_checks;
mod watching;
#[allow(dead_code, reason = "tests of a single member use the rest")]
mod wire;
mod words;
mod world;

pub use fault::FaultKind;
pub use fingerprint::Fingerprint;
pub use ostler_planted::Bug;
#[cfg(feature = "planted-bugs")]
pub use ostler_planted::plant;
pub use plan::{Plan, parse_skip};
pub use run::{Report, run};
pub use scenes::{Scene, search};
pub use shrink::shrink;
