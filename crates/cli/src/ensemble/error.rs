//! Errors that prevent the start of an ensemble, or end it.

use ostler_server::config::ConfigError;
use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub(crate) enum EnsembleError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(
        "{} holds an ensemble of {there}, not of {wanted}: leave the number out, or name another --folder",
        .folder.display()
    )]
    OtherSize { folder: PathBuf, there: usize, wanted: u16 },
    #[error(
        "{} has the client port {there}, not {wanted}: leave --port out, or name another --folder",
        .zoo_cfg.display()
    )]
    OtherPort { zoo_cfg: PathBuf, there: u16, wanted: u16 },
    #[error(
        "{} is there, but {} is not: put that back, or name another --folder",
        .there.display(), .lacking.display()
    )]
    Remains { there: PathBuf, lacking: PathBuf },
    #[error("{} does not describe server {id} of an ensemble: name another --folder", .zoo_cfg.display())]
    NotServer { zoo_cfg: PathBuf, id: u16 },
    #[error("{} is no UTF-8, so no zoo.cfg can name it: choose another --folder", .0.display())]
    Unwritable(PathBuf),
    #[error(
        "ports up to {last} would be needed from --port {port} on, and 65535 is the last: choose a lower one"
    )]
    NoRoom { port: u16, last: u32 },
    #[error("{address} is in use{by}: {remedy}")]
    InUse { address: String, by: String, remedy: &'static str },
    #[error("all servers have ended; their logs say why: {}", listed(.0))]
    AllEnded(Vec<PathBuf>),
    #[error("{what}: {cause}")]
    Io { what: String, cause: io::Error },
}

fn listed(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

/// Adds to an error of the operating system what was being done.
pub(super) trait While<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, EnsembleError>;
}

impl<T> While<T> for io::Result<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, EnsembleError> {
        self.map_err(|cause| EnsembleError::Io { what: what(), cause })
    }
}
