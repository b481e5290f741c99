//! The storage crate from outside: golden files, crashes, faults, recovery.
#![allow(clippy::unwrap_used)]

mod crashes;
mod damage;
mod ends;
mod faults;
mod faulty_disk;
mod files;
mod golden;
mod lacking;
mod links;
mod recovery;
mod retention;
mod sinks;
mod snapshots;
mod synced;
mod ways_out;
