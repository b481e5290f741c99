//! A proxy at a server's own address, through which all its clients come.

use crate::{error::TestkitError, frame_proxy::FrameProxy, port::ReservedPort};
use std::net::SocketAddr;

/// The proxy, and the port at which the server itself listens.
#[derive(Debug)]
pub(crate) struct ClientProxy {
    proxy: FrameProxy,
    server: ReservedPort,
}

impl ClientProxy {
    /// Starts a proxy at the port that clients know.
    pub(crate) fn start(public: &ReservedPort) -> Result<ClientProxy, TestkitError> {
        let server = ReservedPort::any()?;
        Ok(ClientProxy { proxy: FrameProxy::on(public, server.address())?, server })
    }

    pub(crate) fn proxy(&self) -> &FrameProxy {
        &self.proxy
    }

    /// The address at which the server itself listens.
    pub(crate) fn server_address(&self) -> SocketAddr {
        self.server.address()
    }
}
