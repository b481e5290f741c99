//! Tests of `ostler shell`, from scripts and at a terminal.
#![allow(clippy::unwrap_used)]

#[path = "shell/ended.rs"]
mod ended;
#[path = "shell/holding.rs"]
mod holding;
#[path = "shell/identity.rs"]
mod identity;
#[path = "shell/membership.rs"]
mod membership;
#[path = "shell/program.rs"]
mod program;
#[path = "shell/scripts.rs"]
mod scripts;
#[path = "shell/sessions.rs"]
mod sessions;
#[path = "shell/terminal.rs"]
mod terminal;
