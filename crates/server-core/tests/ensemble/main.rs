//! Members of ensembles, one at a time.
#![allow(clippy::unwrap_used)]

mod commits;
mod configurations;
mod follower;
mod late_answers;
mod learners;
mod member;
mod other_ensembles;
mod sessions;
