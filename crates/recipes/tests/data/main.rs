//! Counters, caches, nodes, barriers, queues and discovery against servers in this process, standalone ones and ensembles,
//! with their connections cut, their sessions ended and their leader killed at every message.
#![allow(clippy::unwrap_used)]

mod barriers;
mod caches;
mod counters;
mod discovery;
mod ensemble;
mod groups;
mod nodes;
mod put_back;
mod queue_kinds;
mod queues;
mod runtimes;
#[path = "../servers/mod.rs"]
mod servers;
mod streams;
mod typed;
mod world;
