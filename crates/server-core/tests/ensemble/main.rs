//! Members of ensembles, one at a time.
#![allow(clippy::unwrap_used)]

mod commits;
mod configurations;
mod epoch_beginnings;
mod follower;
mod forwarding;
mod late_answers;
mod learners;
mod lost_disks;
mod member;
mod observers;
mod other_ensembles;
mod own_writes;
mod passwords;
mod read_only;
mod reconfigurations;
mod sessions;
mod synchronising;
