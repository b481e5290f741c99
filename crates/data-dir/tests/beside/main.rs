//! What is kept beside the log, and goes on beside the service.
#![allow(clippy::unwrap_used)]

mod configuration;
mod options;
mod restricted_disk;
mod side_by_side;
mod ways_out;
