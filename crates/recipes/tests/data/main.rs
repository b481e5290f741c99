//! Counters, caches, nodes, barriers, queues and discovery against servers in this process, with their connections cut
//! at every message and their sessions ended at every step.
#![allow(clippy::unwrap_used)]

mod barriers;
mod caches;
mod counters;
mod discovery;
mod ensemble;
mod groups;
mod nodes;
mod queues;
#[path = "../servers/mod.rs"]
mod servers;
mod world;
