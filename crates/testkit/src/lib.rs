//! Servers and ensembles in a test's process, with faults on call: what `TestingServer` and `TestingCluster` are in
//! Java.
#![warn(missing_docs)]

mod counts;
mod disk;
mod error;
mod frame_proxy;
mod options;
mod port;
mod process;
mod runtime;
mod server;

pub use counts::{Connection, Counts};
pub use error::TestkitError;
pub use frame_proxy::{CutPoint, Direction, FrameProxy, Held, Seen};
pub use options::{Durability, TestOptions};
pub use ostler_proto::id::SessionId;
pub use server::TestServer;
