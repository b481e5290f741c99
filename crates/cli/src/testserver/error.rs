//! Errors of the start, and of requests.

use axum::http::StatusCode;
use ostler_proto::id::SessionId;
use ostler_testkit::TestkitError;
use std::{io, time::Duration};

/// Why the command does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(
        "cannot listen on 127.0.0.1:{port}: {cause}; choose another --port, or leave it out for a free one"
    )]
    Port { port: u16, cause: io::Error },
    #[error("cannot make a folder for the servers in {folder}: {cause}; TMPDIR names another place")]
    Folder { folder: String, cause: io::Error },
    #[error("{what}: {cause}")]
    Io { what: &'static str, cause: io::Error },
}

/// Why a request is refused, or has failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ControlError {
    #[error("there is nothing at {method} {path}: docs/testserver.md lists the calls")]
    NoCall { method: String, path: String },
    #[error("the body is not the JSON that this call takes: {0}")]
    Body(#[from] serde_json::Error),
    #[error("{name} is {value:?}: {wanted}")]
    Value { name: &'static str, value: String, wanted: &'static str },
    #[error("an ensemble has 1 to {max} servers, not {wanted}; one server is a standalone server")]
    Size { wanted: usize, max: usize },
    #[error("{observers} of {servers} servers cannot be observers: at least one has to vote")]
    Observers { observers: usize, servers: usize },
    #[error("the setting {0} is made by ostler testserver itself: leave it out")]
    Setting(String),
    #[error("{0} ensembles are there, and no more may be: delete one, or give a higher --ensembles-max")]
    Full(usize),
    #[error("ostler testserver ends: start another one")]
    Ends,
    #[error("there is no ensemble {0}, or it was deleted: GET /ensembles lists those that are there")]
    NoEnsemble(u32),
    #[error("ensemble {ensemble} has no server {server}: its servers have the ids 1 to {servers}")]
    NoServer { ensemble: u32, server: i64, servers: usize },
    #[error("ensemble {0} has no leader at the moment: GET /ensembles/{0}/leader waits for one")]
    NoLeader(u32),
    #[error("server {0} does not run: restart it first")]
    Down(i64),
    #[error("server {0} is paused: resume it first")]
    Paused(i64),
    #[error("there is no session {0}: it has ended already, or belongs to another ensemble")]
    NoSession(SessionId),
    #[error("session {0} has no connection to a server that runs and is not paused")]
    NoConnection(SessionId),
    #[error("there is no network between {0}: name `clients`, `servers`, `leader` or two different ids")]
    NoNetwork(String),
    #[error("{what} has not happened within {} ms: {remedy}", .within.as_millis())]
    Late { what: &'static str, within: Duration, remedy: &'static str },
    #[error("the call has been given up by a panic: a bug; standard error has its message")]
    Panicked,
    #[error(transparent)]
    Testkit(#[from] TestkitError),
}

impl ControlError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            ControlError::NoCall { .. }
            | ControlError::NoEnsemble(_)
            | ControlError::NoServer { .. }
            | ControlError::NoSession(_) => StatusCode::NOT_FOUND,
            ControlError::Body(_)
            | ControlError::Value { .. }
            | ControlError::Size { .. }
            | ControlError::Observers { .. }
            | ControlError::Setting(_)
            | ControlError::NoNetwork(_)
            | ControlError::Testkit(TestkitError::Config(_)) => StatusCode::BAD_REQUEST,
            ControlError::Full(_)
            | ControlError::Ends
            | ControlError::NoLeader(_)
            | ControlError::Down(_)
            | ControlError::Paused(_)
            | ControlError::NoConnection(_) => StatusCode::CONFLICT,
            ControlError::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
            ControlError::Panicked | ControlError::Testkit(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
