//! Traces of Zab: scripts of commands in `testdata`, each command with all inputs and outputs that follow from it.
#![allow(clippy::unwrap_used)]

mod commands;
mod message;
mod net;
mod packets;
mod roles;
mod script;
mod server;
mod words;
mod world;

script::traces! {
    world::World:
    acknowledgement_waits_for_disk
    equal_votes
    fresh_start
    joins_running_ensemble
    late_vote
    later_epoch_wins
    leader_dies
    leader_does_not_lead
    elected_leader_restarts
    new_ensemble_without_history
    observer
    two_of_five_cut_off
    without_history
}
