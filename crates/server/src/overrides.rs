//! [`Overrides`]: files and ports that a server uses in place of the system's files and its configured ports.

use crate::config::ServerConfig;
use ostler_storage::{
    disk::{Disk, OsDisk, PRIVATE},
    shared_files::SharedFiles,
};
use std::{net::TcpListener, sync::Arc};

/// By default the system's files, and the ports of the configuration.
pub struct Overrides {
    /// The disk with the data. The lock of the folder and the configuration's files are always on the system's disk.
    pub files: Arc<dyn Disk>,
    /// Sockets for the other servers, in place of the ports in this server's `server.N` line. The caller sees to it that
    /// connections to those ports arrive here.
    pub peers: Option<PeerListeners>,
}

/// Sockets that listen.
#[derive(Debug)]
pub struct PeerListeners {
    /// The quorum port: connections between leader and learners.
    pub quorum: TcpListener,
    /// The election port.
    pub election: TcpListener,
}

impl Overrides {
    /// The system's files with the mode of the configuration.
    pub(crate) fn of(config: &ServerConfig) -> Overrides {
        match config.folders.files_mode {
            PRIVATE => Overrides::default(),
            mode => Overrides { files: Arc::new(SharedFiles { mode }), peers: None },
        }
    }
}

impl Default for Overrides {
    fn default() -> Overrides {
        Overrides { files: Arc::new(OsDisk), peers: None }
    }
}
