//! Tests of files beside the log (configuration, snapshots), and of work beside the service (snapshots, purges).
#![allow(clippy::unwrap_used)]

mod configuration;
mod options;
mod restricted_disk;
mod side_by_side;
mod ways_out;
