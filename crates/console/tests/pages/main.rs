//! The pages Sessions, Watches, Slow and hot, and Clients, asked by HTTP at real servers with real clients.
#![allow(clippy::unwrap_used)]

mod bounds;
mod clients;
mod expire;
#[path = "../ports/free.rs"]
mod free_ports;
mod members;
mod operations;
mod raw;
mod rights;
mod sessions;
mod site;
mod watches;
