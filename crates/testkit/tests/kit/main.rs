//! The kit itself, through clients on raw sockets.
#![allow(clippy::unwrap_used)]

mod client;
mod ensemble;
mod proxy;
mod server;
mod ways_out;
