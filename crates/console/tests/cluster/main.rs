//! The pages about the whole ensemble, asked of real servers; and of one server whose other members are made up: silent,
//! slow, hostile, of Java.
#![allow(clippy::unwrap_used)]

mod elections;
mod ensemble;
mod events;
#[path = "../ports/free.rs"]
mod free_ports;
mod identities;
mod made_up;
mod members;
