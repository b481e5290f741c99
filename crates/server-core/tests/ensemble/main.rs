//! Members of ensembles, one at a time.
#![allow(clippy::unwrap_used)]

mod answers;
mod audit;
mod commits;
mod configurations;
mod disks;
mod election_history;
mod epoch_beginnings;
mod epoch_moves;
mod figures;
mod follower;
mod forwarding;
mod heard_configurations;
mod late_answers;
mod leaders_history;
mod learners;
mod local_sessions;
mod lost_disks;
mod member;
mod member_reports;
mod observers;
mod other_ensembles;
mod own_writes;
mod passwords;
mod pending_learners;
mod quorum_links;
mod read_only;
mod reconfigurations;
#[path = "../log/said.rs"]
mod said;
mod sessions;
mod snapshots;
mod synchronising;
mod waits;
mod ways_out;
