//! The kit itself, through clients on raw sockets.
#![allow(clippy::unwrap_used)]

mod client;
mod proxy;
mod server;
