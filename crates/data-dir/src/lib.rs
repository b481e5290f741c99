//! What a member asks of its disk, in files: its log, its snapshots, its epochs, the configuration beside zoo.cfg; and
//! a member made from them again.
//!
//! Everything here blocks and is driven from outside: by the threads of a server, or by the simulator over a disk that
//! forgets and fails. Only the start reads ahead on a thread of its own.

mod config_files;
mod persistence;
mod read_ahead;
pub mod recovery;
pub mod snapshots;

pub use persistence::{
    Frozen, KeepingOptions, Persistence, Reloaded, epochs, is_incomplete, log_from, log_part,
};
