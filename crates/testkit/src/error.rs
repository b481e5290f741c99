//! Why a test does not get what it asks for.

use ostler_proto::{
    id::{ServerId, SessionId, Zxid},
    jute::JuteError,
};
use ostler_server::{ServerError, config::ConfigError};
use ostler_storage::error::StorageError;
use std::{io, path::PathBuf};

/// Each says what happened, and to what.
#[derive(Debug, thiserror::Error)]
pub enum TestkitError {
    /// No folder for a server's data.
    #[error("cannot make a folder for a server's data: {0}; is there room in the temporary folder?")]
    Folder(#[source] io::Error),
    /// A file for a server cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No port, or none that stays ours.
    #[error("cannot take a port on 127.0.0.1: {0}")]
    Port(#[source] io::Error),
    /// No thread for a server or a proxy.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// A setting that the test chose is none.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A server does not start, or has stopped by itself.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A panic in a server; its message is on standard error.
    #[error("a server panicked")]
    Panicked,
    /// It was killed or stopped, and not started again.
    #[error("the server does not run: call restart first")]
    Down,
    /// The connection of a frame that a proxy held is gone.
    #[error("the proxy's connection has ended, and the frame that was held with it")]
    ConnectionGone,
    /// The ensemble has no such member.
    #[error("there is no member {}; members have the numbers from 1 on", .0.0)]
    NoMember(ServerId),
    /// Only a leader can do that.
    #[error("this member does not lead: ask the ensemble, or its leader")]
    NotLeading,
    /// Nobody leads.
    #[error("the ensemble has no leader at the moment")]
    NoLeader,
    /// A server's log cannot be read.
    #[error(transparent)]
    Log(#[from] StorageError),
    /// What is applied is not in the logs that can be read.
    #[error(
        "{0} is applied, and not in the logs of the servers that run; were some of them sent a snapshot?"
    )]
    NotLogged(Zxid),
    /// A record of a server's log cannot be decoded.
    #[error("{zxid} in a server's log is no transaction: {cause}")]
    Record {
        /// The record's zxid.
        zxid: Zxid,
        /// The reason.
        cause: JuteError,
    },
    /// There is no such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
}
