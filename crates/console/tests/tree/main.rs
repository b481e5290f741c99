//! The tree of the console, asked by HTTP at a real server, and compared with what a client sees there.
#![allow(clippy::unwrap_used)]

mod children;
mod dropped;
mod history;
mod reads;
mod rights;
mod runs;
mod search;
mod server;
mod writes;
