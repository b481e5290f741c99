//! The shell against hostile clients, slow ones, too many of them, and a machine that refuses.
//!
//! Each test starts a server in this process, on a free port and a folder of its own. Beside the trouble that
//! it makes there is a well-behaved session whose requests must go on being answered.
#![allow(clippy::unwrap_used)]

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
