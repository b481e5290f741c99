//! Reads the files of a server for an operator, whether Java ZooKeeper or Ostler has written them.
//!
//! - [`logs`]: every transaction of a log, with torn tails, damage and gaps.
//! - [`snapshot`]: the contents of one snapshot.
//! - [`history`]: the transactions that touched one znode.
//! - [`state`]: the tree of a folder at a zxid; [`sizes`] and [`compare`] read it.
//! - [`repair`]: what is wrong with a folder, and how it is made usable again.
//! - [`view`]: transactions and znodes as text and as JSON.
//!
//! Only [`repair::apply`] changes a file. Logs are read record by record, so their size does not matter. A tree is held
//! in memory, as a server holds it.

pub mod compare;
pub mod error;
pub mod history;
pub mod logs;
pub mod planned_disk;
pub mod repair;
pub mod sizes;
pub mod snapshot;
pub mod source;
pub mod state;
pub mod view;

pub use error::InspectError;
