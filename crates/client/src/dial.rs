//! From a server's name to a connection: names are resolved anew at every attempt.

use crate::{connect_string::HostPort, error::DialError};
use rustls_pki_types::ServerName;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, lookup_host},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) hosts: Arc<[HostPort]>,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
}

/// A connection, encrypted or not.
#[derive(Debug)]
pub(crate) enum Conn {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Dialer {
    /// Connects to server number `host`. Of several addresses of one name the `turn`th is tried first, so that
    /// one that does not answer is not the first again.
    pub(crate) async fn dial(self, host: usize, turn: u64) -> Result<Conn, DialError> {
        let server = &self.hosts[host];
        let tcp = connect(server, turn).await?;
        match self.tls {
            None => Ok(Conn::Plain(tcp)),
            Some(config) => {
                let failed = |cause| DialError::Tls(server.to_string(), cause);
                let name = ServerName::try_from(server.host.clone());
                let name = name.map_err(|cause| failed(io::Error::other(cause)))?;
                let tls = TlsConnector::from(config).connect(name, tcp).await.map_err(failed)?;
                Ok(Conn::Tls(Box::new(tls)))
            }
        }
    }

    /// Asks a server whether it can write.
    pub(crate) async fn can_write(self, host: usize) -> bool {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let Ok(mut conn) = self.dial(host, 0).await else { return false };
        let mut answer = [0; 2];
        let asked = conn.write_all(b"isro").await.is_ok() && conn.flush().await.is_ok();
        asked && conn.read_exact(&mut answer).await.is_ok() && answer == *b"rw"
    }
}

async fn connect(server: &HostPort, turn: u64) -> Result<TcpStream, DialError> {
    let found = lookup_host((server.host.as_str(), server.port)).await;
    let mut addresses: Vec<_> =
        found.map_err(|cause| DialError::Resolve(server.to_string(), cause))?.collect();
    if addresses.is_empty() {
        return Err(DialError::NoAddress(server.to_string()));
    }
    let first = turn as usize % addresses.len();
    addresses.rotate_left(first);
    let mut last = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(tcp) => {
                // Requests are gathered before they are written; what is written shall go.
                let _ = tcp.set_nodelay(true);
                return Ok(tcp);
            }
            Err(cause) => last = Some(DialError::Connect(format!("{server} ({address})"), cause)),
        }
    }
    Err(last.unwrap_or_else(|| DialError::NoAddress(server.to_string())))
}

impl AsyncRead for Conn {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Conn::Plain(tcp) => Pin::new(tcp).poll_read(cx, into),
            Conn::Tls(tls) => Pin::new(tls).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Conn {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Conn::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Conn::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Conn::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Conn::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Conn::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Conn::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
