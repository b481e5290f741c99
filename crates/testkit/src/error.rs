//! The error type of the test kit.

use ostler_proto::{
    id::{ServerId, SessionId, Zxid},
    jute::JuteError,
};
use ostler_server::{ServerError, config::ConfigError};
use ostler_storage::error::StorageError;
use std::{io, path::PathBuf};

/// Why a call of the test kit has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestkitError {
    /// The folder for a server's data cannot be created.
    #[error("cannot create a folder for a server's data: {0}; is there room in the temporary folder?")]
    Folder(#[source] io::Error),
    /// A file for a server cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A port of 127.0.0.1 cannot be reserved or listened on.
    #[error("cannot take a port on 127.0.0.1: {0}")]
    Port(#[source] io::Error),
    /// The thread of a server or a proxy cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// A setting of the test is not valid in zoo.cfg.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A server does not start, or has stopped by itself.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A server has panicked. The message is on standard error.
    #[error("a server panicked")]
    Panicked,
    /// The server does not run: it was killed or stopped.
    #[error("the server does not run: call restart first")]
    Down,
    /// The connection of a held frame has ended.
    #[error("the proxy's connection has ended, and the frame that was held with it")]
    ConnectionGone,
    /// The ensemble has no such member.
    #[error("there is no member {}; members have the ids from 1 on", .0.0)]
    NoMember(ServerId),
    /// A proxy needs a server to stand in front of.
    #[error("a proxy needs at least one server")]
    NoServers,
    /// The call needs the leader, and this member is not the leader.
    #[error("this member does not lead: ask the ensemble, or its leader")]
    NotLeading,
    /// The ensemble has no leader.
    #[error("the ensemble has no leader at the moment")]
    NoLeader,
    /// A server's log cannot be read.
    #[error(transparent)]
    Log(#[from] StorageError),
    /// The transaction with this zxid is applied, but not in the logs of the running servers.
    #[error(
        "{0} is applied, but not in the logs of the running servers; did some of them receive a snapshot?"
    )]
    NotLogged(Zxid),
    /// A record of a server's log cannot be decoded.
    #[error("the record {zxid} of a server's log cannot be decoded: {cause}")]
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
