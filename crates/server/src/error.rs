//! Why a server does not start, or stops.

use crate::audit::AuditError;
use crate::traces::TraceSettingsError;
use ostler_storage::StorageError;
use ostler_tls::material::TlsFileError;
use std::{io, net::SocketAddr, path::PathBuf};

/// Each text says what happened, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The client port cannot be bound.
    #[error("cannot listen on {address}: {}", listen_reason(.source))]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The port of the admin server, or the one for metrics, cannot be bound.
    #[error("cannot listen on {address} for {purpose}: {source}; choose another port by {keys}")]
    ListenForOperators {
        /// The configured address.
        address: SocketAddr,
        /// The port's purpose.
        purpose: &'static str,
        /// The keys of zoo.cfg that name the address.
        keys: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Traces cannot be sent.
    #[error(transparent)]
    Traces(#[from] TraceSettingsError),
    /// The files of TLS cannot be used.
    #[error("TLS ({keys}): {source}")]
    Tls {
        /// The keys of zoo.cfg that name the files.
        keys: &'static str,
        /// The problem, with its file.
        source: TlsFileError,
    },
    /// The file with the users of SASL cannot be used.
    #[error("{}: {problem}", .file.display())]
    SaslFile {
        /// The file.
        file: PathBuf,
        /// The problem, without any secret.
        problem: String,
    },
    /// The audit log cannot be opened.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A port for other servers cannot be bound.
    #[error(
        "cannot listen on {address} for the other servers: {source}; is the port in use, or not this machine's? If its \
         name comes later, set electionPortBindRetry=0"
    )]
    ListenForPeers {
        /// The address of this server's server.N line.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// There is no database, and the configuration does not allow an empty one.
    #[error(
        "{} holds no database, and db.autocreate is off: put the data folder in place, or, if the server is to \
         start empty, create an empty file named `initialize` in dataLogDir (dataDir, if that is not set)",
        .folder.display()
    )]
    NoDatabase {
        /// The folder of the database.
        folder: PathBuf,
    },
    /// Files cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}; raise the limit of processes or free some memory")]
    Thread(#[source] io::Error),
}

fn listen_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is in use; stop the process that holds it, or choose another clientPort".into()
        }
        io::ErrorKind::PermissionDenied => {
            "permission denied; choose a clientPort from 1024 up, or run with the right to bind lower ones"
                .into()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; correct clientPortAddress".into()
        }
        _ => error.to_string(),
    }
}
