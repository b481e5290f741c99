//! The client against real servers in this process.
#![allow(clippy::unwrap_used)]

mod any_server;
mod blocking;
mod budget;
mod connectors;
mod encrypted;
mod following;
mod guaranteed;
mod json;
mod kinds;
mod logins;
mod losses;
mod observed;
mod old_servers;
mod operations;
mod proxy;
mod read_only;
mod secure_port;
mod server;
mod sessions;
mod stage;
mod traces;
mod undecided;
mod watches;
