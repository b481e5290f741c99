//! Tests of the session against a server scripted by the test, and against a simulated server.
#![allow(clippy::unwrap_used)]

mod auth;
mod cuts;
mod followed;
mod hostile;
mod liveness;
mod loss;
mod moving;
mod read_only;
mod requests;
mod rig;
mod watches;
mod world;
