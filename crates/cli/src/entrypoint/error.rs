//! Why a container is not started.

use std::{io, path::PathBuf};
use thiserror::Error;

/// Why the environment of a container makes no configuration, or why it cannot be written.
#[derive(Debug, Error)]
pub(super) enum EntryError {
    #[error("{variable}={file} cannot be read: {source}; mount the file, or set the variable without _FILE")]
    File { variable: String, file: String, source: io::Error },
    #[error("{variable} has a line break or another control character; remove it")]
    ControlCharacter { variable: String },
    #[error("{variable}={value} is not allowed; write yes or no")]
    NotASwitch { variable: &'static str, value: String },
    #[error("{variable}={value} is not allowed; write a number from {from} to {to}")]
    NotANumber { variable: &'static str, value: String, from: u64, to: u64 },
    #[error(
        "OSTLER_ID_FROM_NAME={0} has no number at its end; it must be the name of a pod, such as ostler-0"
    )]
    NoNumberInName(String),
    #[error(
        "ZOO_SERVERS: \"{0}\" is no server; write server.ID=host:2888:3888;2181, or host:2888:3888::ID as for Bitnami's \
         image"
    )]
    Server(String),
    #[error("ZOO_SERVERS: server {0} is there twice")]
    ServerTwice(u64),
    #[error(
        "ZOO_SERVERS has no server {id}, the id of this one; add it, or set ZOO_MY_ID to one of those listed"
    )]
    NotListed { id: u64 },
    #[error(
        "the ensemble has removed server {id}, this one ({file}); add it again with OSTLER_OWN_SERVER, or start it \
         with an empty folder"
    )]
    Removed { id: u64, file: String },
    #[error(
        "ZOO_TLS_CLIENT_ENABLE leaves no port without TLS, but ZOO_SERVERS names one: \"{0}\"; remove the part behind ;"
    )]
    PlainPort(String),
    #[error("{0} is not set, but {1} needs it")]
    Missing(String, &'static str),
    #[error("{users} has {of_users} entries and {passwords} has {of_passwords}; give each user one password")]
    Uneven { users: &'static str, of_users: usize, passwords: &'static str, of_passwords: usize },
    #[error("{variable}: the user \"{user}\" is not allowed; a name has letters, digits, and any of _ . -")]
    User { variable: &'static str, user: String },
    #[error("{0} has ${{, which a JAAS file reads as the name of a property; choose another password")]
    Property(&'static str),
    #[error(
        "{0}=no asks for logins, and ZOO_ENABLE_AUTH is not yes; set ZOO_ENABLE_AUTH=yes with ZOO_SERVER_USERS and \
         ZOO_SERVER_PASSWORDS, or {0}=yes to let everybody in"
    )]
    NobodyLogsIn(&'static str),
    /// Without the text, which may be a part of a secret.
    #[error("ZOO_CFG_EXTRA: part {0} is no line of zoo.cfg; write key=value, with a space between two")]
    Extra(usize),
    #[error("cannot write {}: {source}; mount a folder there that user {user} may write", path.display())]
    Write { path: PathBuf, user: u32, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot start {program}: {source}")]
    Program { program: String, source: io::Error },
}
