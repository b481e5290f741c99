//! The client against real servers in this process.
#![allow(clippy::unwrap_used)]

mod operations;
mod server;
mod sessions;
mod watches;
