//! The session against a server that the test plays by hand, and against a whole simulated member.
#![allow(clippy::unwrap_used)]

mod auth;
mod cuts;
mod followed;
mod hostile;
mod liveness;
mod loss;
mod read_only;
mod requests;
mod rig;
mod watches;
mod world;
