//! Files and sockets that the caller can provide in place of those of the system.

use crate::{admin::AdminHandle, config::ServerConfig};
use axum::Router;
use ostler_storage::{
    disk::{Disk, OsDisk, PRIVATE},
    shared_files::SharedFiles,
};
use std::{net::TcpListener, sync::Arc};

/// By default nothing is overridden: the server uses the system's files, and the ports of the configuration.
pub struct Overrides {
    /// The files of the data folders. The lock of the folder and the configuration's files are always those of the system.
    pub files: Arc<dyn Disk>,
    /// The sockets for other servers, in place of the ports in this server's `server.N` line. The caller has to forward the
    /// connections of those ports to these sockets.
    pub peers: Option<PeerListeners>,
    /// More paths for the admin server, such as those of the console.
    pub admin_routes: Option<AdminRoutes>,
}

/// Makes paths for the admin server, from the handle by which they ask the server.
pub type AdminRoutes = Box<dyn FnOnce(AdminHandle) -> Router + Send>;

/// Listening sockets for other servers.
#[derive(Debug)]
pub struct PeerListeners {
    /// The socket of the quorum port.
    pub quorum: TcpListener,
    /// The socket of the election port.
    pub election: TcpListener,
}

impl Overrides {
    /// The overrides that a configuration needs: files with its mode.
    pub fn of(config: &ServerConfig) -> Overrides {
        match config.folders.files_mode {
            PRIVATE => Overrides::default(),
            mode => Overrides { files: Arc::new(SharedFiles { mode }), peers: None, admin_routes: None },
        }
    }
}

impl Default for Overrides {
    fn default() -> Overrides {
        Overrides { files: Arc::new(OsDisk), peers: None, admin_routes: None }
    }
}
