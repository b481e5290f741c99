//! The checks of the fuzz targets. A target is a `check` function here and three lines in `fuzz/fuzz_targets/`.
//!
//! Each check takes any bytes, and panics if a promise is broken. Nothing crashes, hangs, or allocates memory out of
//! proportion to the input. Decoders read what encoders write. The server's invariants hold after every step.

pub mod client_session;
pub mod config_file;
pub mod connection;
pub mod election_door;
pub mod election_records;
pub mod epoch_file;
pub mod frames;
pub mod handshake;
pub mod jaas;
pub mod log_files;
pub mod logins;
pub mod member_words;
pub mod membership;
pub mod quorum_packets;
pub mod ram_disk;
pub mod reply;
pub mod request;
pub mod restored;
pub mod sasl;
pub mod script;
pub mod snapshot_file;
pub mod stores;
pub mod transaction;
pub mod tree_stream;
pub mod vote;
pub mod words;
