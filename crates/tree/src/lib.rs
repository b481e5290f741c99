//! The replicated state: znodes, sessions, ACLs, quotas and digests, and the watches of one server.
//!
//! Committed records change it by one function, [`Tree::apply`]. Nothing here knows of elections, peers or files. The
//! crate is `no_std`: it has no clock, no sockets and no threads.
#![no_std]
extern crate alloc;

pub mod acl_list;
pub mod acl_table;
pub mod apply;
pub mod children;
pub mod digest;
pub mod freeze;
pub mod networks;
pub mod overlay;
mod prefixes;
pub mod quota;
pub mod scan;
pub mod sorted_strings;
pub mod table;
pub mod tree;
pub mod watch;
pub mod znode;

pub use acl_list::AclList;
pub use acl_table::{AclId, AclRef};
pub use apply::{Change, Outcome, TreeEvent};
pub use freeze::FrozenTree;
pub use overlay::{Overlay, PendingNode};
pub use tree::{RestoreError, Tree};
pub use watch::{WatchMode, WatchTable, WatcherId};
pub use znode::{DetachedZnode, Znode};

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
