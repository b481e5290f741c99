//! The pages about a server's load, configuration and disk, asked by HTTP at a real server.
#![allow(clippy::unwrap_used)]

mod certificates;
mod configuration;
mod disk;
mod exposed;
mod logins;
mod metrics;
mod rights;
mod site;
