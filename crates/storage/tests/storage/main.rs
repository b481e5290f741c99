//! Tests of the storage crate through its public interface: golden files, crashes, faults, damage and recovery.
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
