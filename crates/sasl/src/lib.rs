//! SASL as ZooKeeper's servers and clients speak it.
//!
//! Pure state machines: tokens and random texts go in, tokens come out. Nothing here opens a file or a connection.
#![no_std]
extern crate alloc;

pub mod digest_md5;
pub mod gssapi;
pub mod jaas;
pub mod quorum;
