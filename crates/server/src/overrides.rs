//! What a server can be given instead of taking it from the system itself.

use crate::config::ServerConfig;
use ostler_storage::{
    disk::{Disk, OsDisk, PRIVATE},
    shared_files::SharedFiles,
};
use std::{net::TcpListener, sync::Arc};

/// By default nothing: the system's files, and the ports of the configuration.
pub struct Overrides {
    /// Where the data are. The lock of the folder and the configuration's files are the system's all the same.
    pub files: Arc<dyn Disk>,
    /// Where the other servers come in, in place of the ports in this server's `server.N` line: whoever gives these
    /// sees to it that what comes to those ports comes here.
    pub peers: Option<PeerListeners>,
}

/// Sockets that listen.
#[derive(Debug)]
pub struct PeerListeners {
    /// For leader and learners.
    pub quorum: TcpListener,
    /// For votes.
    pub election: TcpListener,
}

impl Overrides {
    /// What a configuration asks for: the system's files with its mode.
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
