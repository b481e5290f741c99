//! The records of ZooKeeper's wire protocols and files, and their bytes.
//!
//! Records are decoded from a borrowed slice and encoded onto a `Vec<u8>`. Fields are in the order of the wire. The
//! crate is `no_std`: it cannot reach a socket, a file or a clock.
#![no_std]
#![warn(missing_docs)]
extern crate alloc;

pub mod acl;
pub mod connect;
pub mod distinguished_name;
pub mod election;
pub mod error;
pub mod event;
pub mod frame;
pub mod id;
pub mod jute;
pub mod membership;
pub mod op;
pub mod password;
pub mod path;
pub mod quorum_packet;
pub mod reply;
pub mod request;
pub mod shared;
pub mod stat;
pub mod strings;
pub mod txn;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
