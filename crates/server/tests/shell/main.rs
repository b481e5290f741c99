//! The server's connections, threads and files under hostile clients, slow clients, too many clients, and errors of the
//! system.
//!
//! Each test starts a server in this process, with a free port and its own folder. While the test disturbs the server, the
//! requests of a well-behaved session must be answered.
#![allow(clippy::unwrap_used)]

mod audit;
mod client;
mod config_ways_out;
mod crowds;
mod disk_full;
mod duplicate_ids;
mod frames;
mod gate;
mod handshake;
mod log;
mod memory;
mod neighbour;
mod peers;
mod server;
mod slow;
mod start;
mod stop;
mod ways_out;
mod words;
