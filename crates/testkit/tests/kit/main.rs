//! Tests of the test kit, through clients on raw sockets.
#![allow(clippy::unwrap_used)]

mod client;
mod client_proxies;
mod ensemble;
#[allow(dead_code, reason = "tests of the server use the rest")]
#[path = "../../../server/tests/shell/log.rs"]
mod log;
mod proxy;
mod server;
mod ways_out;
