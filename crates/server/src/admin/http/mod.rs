//! The admin server: HTTP for operators and their tools.
//!
//! Its commands have the URLs, members and statuses of ZooKeeper 3.9's AdminServer (`server/admin/Commands.java`,
//! `JettyAdminServer.java`). Beside them are `/livez`, `/readyz` and `/metrics`.

mod access;
mod bodies;
pub(crate) mod calls;
mod command;
mod commands;
pub(crate) mod configuration;
pub(crate) mod disk;
pub(crate) mod figures;
pub(crate) mod handle;
mod health;
mod json;
pub(crate) mod listener;
mod member_bodies;
mod pages;
pub(crate) mod router;
pub(crate) mod state;
mod temporary_folder;
pub(crate) mod whole;
