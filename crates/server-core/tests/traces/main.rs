//! Traces of whole members: scripts of commands in `testdata`, each command with all inputs and effects that follow from
//! it.
#![allow(clippy::unwrap_used)]

mod clients;
mod commands;
mod member;
#[path = "../../../zab/tests/traces/net.rs"]
mod net;
mod packets;
#[path = "../../../zab/tests/traces/script.rs"]
mod script;
#[path = "../../../zab/tests/traces/words.rs"]
mod words;
mod world;

script::traces! {
    world::World:
    late_write_of_moved_session
    reconfiguration_adds_server
    reconfiguration_changes_role
    reconfiguration_removes_leader
    session_expires
    session_moves
    synchronization_diff
    synchronization_diff_from_log
    synchronization_snap
    synchronization_trunc
    write_on_follower
}
