//! What the fuzz targets do with their bytes. A target is a `check` here and three lines in `fuzz_targets/`.
//!
//! Each check takes anything, and panics where a promise is broken: beside not crashing, not hanging and not
//! taking memory that the bytes do not back, decoders promise that what they write they read again, and the
//! server that its invariants hold after every step.

pub mod client_session;
pub mod config_file;
pub mod connection;
pub mod election_door;
pub mod epoch_file;
pub mod frames;
pub mod handshake;
pub mod log_files;
pub mod membership;
pub mod quorum_packets;
pub mod ram_disk;
pub mod reply;
pub mod request;
pub mod restored;
pub mod sasl;
pub mod script;
pub mod snapshot_file;
pub mod transaction;
pub mod tree_stream;
pub mod vote;
pub mod words;
