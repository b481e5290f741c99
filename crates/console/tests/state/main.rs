//! The pages about a server's load, configuration and disk, asked by HTTP at a real server.
#![allow(clippy::unwrap_used)]

mod configuration;
mod disk;
mod exposed;
mod metrics;
mod rights;
mod site;
