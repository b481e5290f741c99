//! SASL as ZooKeeper's servers and clients speak it.
//!
//! Pure state machines: tokens and random texts go in, tokens come out. Nothing here opens a file or a connection.
#![no_std]
extern crate alloc;

pub mod digest_md5;
pub mod gssapi;
pub mod jaas;
pub mod quorum;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
