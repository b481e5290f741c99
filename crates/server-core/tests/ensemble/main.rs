//! Members of ensembles, one at a time.
#![allow(clippy::unwrap_used)]

mod commits;
mod configurations;
mod epoch_beginnings;
mod follower;
mod late_answers;
mod learners;
mod lost_disks;
mod member;
mod other_ensembles;
mod own_writes;
mod sessions;
