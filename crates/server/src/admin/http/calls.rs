//! Calls to the admin servers of other members, for pages about the whole ensemble.

use super::{handle::AdminHandle, router::AdminConn};
use crate::{config::AdminPeer, peers::ElectionLinkReport};
use ostler_tls::material::{TlsFileError, TlsMaterial};
use rustls::{ClientConfig, pki_types::ServerName};
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    task::spawn_blocking,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Why another member's admin server cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The keys `ssl.quorum.*` do not suffice.
    #[error("it is asked by https, and ssl.quorum.trustStore.* is not set here")]
    NoKeys,
    /// Their files cannot be used.
    #[error("the files of ssl.quorum.* cannot be used: {0}")]
    Files(TlsFileError),
    /// The name is none that a certificate can have.
    #[error("{0} is no name of a host")]
    Name(String),
    /// The system, or the other side.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A connection to another member's admin server.
pub struct AdminCall {
    stream: CallStream,
    /// The other side's address.
    pub to: SocketAddr,
}

enum CallStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// This server's addresses and folders.
#[derive(Debug, Clone)]
pub struct OwnPlace {
    /// The port for clients, of plain connections or else of those with TLS.
    pub client_port: u16,
    /// The address at which the admin server listens.
    pub admin: SocketAddr,
    /// Whether it takes TLS only.
    pub admin_is_https: bool,
    /// The folder of the snapshots.
    pub data_dir: PathBuf,
    /// The folder of the logs.
    pub log_dir: PathBuf,
}

impl AdminHandle {
    /// This server's addresses and folders.
    pub fn own_place(&self) -> OwnPlace {
        let (settings, folders) = (&self.state.settings, &self.state.snapshots.folders);
        OwnPlace {
            client_port: self.state.reports.shown_client_port(),
            admin: settings.address,
            admin_is_https: settings.https.as_ref().is_some_and(|https| !https.unification),
            data_dir: folders.snapshots.clone(),
            log_dir: folders.logs.clone(),
        }
    }

    /// The election connections to the other members; none of a standalone server.
    pub fn election_links(&self) -> Vec<ElectionLinkReport> {
        self.state.driver.election_links()
    }

    /// Whether a caller has the certificate of a member's host: one that `ssl.quorum.trustStore.*` trusts, so a member, which
    /// asks for the pages about the ensemble. A name that stands for several hosts does not count.
    pub fn is_member(&self, conn: &AdminConn) -> bool {
        if conn.certificate.is_none() {
            return false;
        }
        let mut names = (*conn.names).clone();
        names.dns.retain(|name| !name.starts_with('*'));
        self.state.driver.inspect(|server| {
            let Some(member) = server.member_report() else { return false };
            let hosts = member.membership.servers.values().flat_map(|server| &server.addresses);
            hosts.map(|address| &address.host).any(|host| names.cover(host))
        })
    }

    /// The admin servers of `admin.peers`.
    pub fn peers(&self) -> &[AdminPeer] {
        &self.state.settings.peers
    }

    /// Connects to an admin server.
    ///
    /// # Errors
    /// It cannot be reached, or TLS fails.
    pub async fn call(&self, peer: &AdminPeer) -> Result<AdminCall, CallError> {
        let stream = TcpStream::connect((&*peer.host, peer.port)).await?;
        stream.set_nodelay(true)?;
        let to = stream.peer_addr()?;
        if !peer.https {
            return Ok(AdminCall { stream: CallStream::Plain(stream), to });
        }
        let name = ServerName::try_from(peer.host.clone()).map_err(|_| CallError::Name(peer.host.clone()))?;
        let connector = TlsConnector::from(self.call_config().await?);
        let stream = connector.connect(name, stream).await?;
        Ok(AdminCall { stream: CallStream::Tls(Box::new(stream)), to })
    }

    /// Reads the files anew each time: they may have changed, and calls are rare.
    async fn call_config(&self) -> Result<Arc<ClientConfig>, CallError> {
        let settings = self.state.settings.peer_tls.clone().ok_or(CallError::NoKeys)?;
        let read = spawn_blocking(move || {
            let material = TlsMaterial::read(&settings)?;
            material.client_config(&settings).map(Arc::new)
        });
        read.await.map_err(io::Error::other)?.map_err(CallError::Files)
    }
}

impl AsyncRead for AdminCall {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            CallStream::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            CallStream::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for AdminCall {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            CallStream::Plain(stream) => Pin::new(stream).poll_write(cx, from),
            CallStream::Tls(stream) => Pin::new(stream).poll_write(cx, from),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            CallStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            CallStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            CallStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            CallStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
