//! Errors that end a run.

use crate::tls_options::UnreadableFile;
use ostler_proto::jute::JuteError;
use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

/// An error that ends a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("nothing listens on {0}: start the server, or name another one with --server HOST:PORT")]
    Refused(SocketAddr),
    #[error("cannot connect to {server}: {cause}")]
    Connect { server: SocketAddr, cause: io::Error },
    #[error("cannot read {}: {cause}", .path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    TlsFiles(ostler_client::Error),
    #[error(
        "there is no TLS session with {server}: {cause}; --tls-ca names the authority of its certificate"
    )]
    Tls { server: SocketAddr, cause: io::Error },
    #[error(
        "{server} closed connection {number} before it granted a session: it may lack a quorum, or limit the \
         connections of one address (maxClientCnxns=0 in zoo.cfg lifts that), or take only TLS (--tls-ca) or only \
         certificates that it knows (--tls-cert)"
    )]
    SessionRefused { server: SocketAddr, number: usize },
    #[error("the server closed connection {number} in the middle of the run: {cause}; see the server's log")]
    Lost { number: usize, cause: io::Error },
    #[error("no reply for {} s: the server hangs, or has lost its quorum", .0.as_secs())]
    Silent(Duration),
    #[error(
        "connection {number}: the reply to request {expected} was due and {got} came; the server broke the order"
    )]
    OutOfOrder { number: usize, expected: i32, got: i32 },
    #[error("the server sent bytes that are no reply: {0}")]
    Broken(#[from] JuteError),
    #[error("the server sent a frame of {0} bytes")]
    BrokenFrame(i32),
    #[error("{what} {path} failed: {}", super::codes::name(*.code))]
    Setup { what: &'static str, path: String, code: i32 },
    #[error("{0}")]
    Usage(String),
    #[error("cannot find the server's process: {0}; give --pid")]
    NoProcess(String),
    #[error("the command {command} {what}")]
    Command { command: String, what: String },
    #[error(transparent)]
    Disk(#[from] ostler_storage::StorageError),
    #[error("{what}: {cause}")]
    Io { what: String, cause: io::Error },
}

/// The result of functions of the load generator.
pub(crate) type Result<T> = std::result::Result<T, BenchError>;

impl From<UnreadableFile> for BenchError {
    fn from(UnreadableFile { path, cause }: UnreadableFile) -> BenchError {
        BenchError::File { path, cause }
    }
}

/// Adds to an error of the operating system what was being done.
pub(crate) trait While<T> {
    fn during(self, what: impl Into<String>) -> Result<T>;
}

impl<T> While<T> for io::Result<T> {
    fn during(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|cause| BenchError::Io { what: what.into(), cause })
    }
}
