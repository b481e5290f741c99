//! A connection to another server, with TLS or without.

use ostler_tls::{log_text, names::CertificateNames};
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};
use tokio_rustls::TlsStream;

/// A connection to another server.
pub(super) struct PeerStream {
    socket: Socket,
    /// Bytes that were read to look at them.
    unread: Vec<u8>,
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The half that is read.
pub(super) struct PeerRead {
    socket: ReadSocket,
    unread: Vec<u8>,
}

enum ReadSocket {
    Plain(OwnedReadHalf),
    Tls(ReadHalf<Box<TlsStream<TcpStream>>>),
}

/// The half that is written. With TLS, what is written may wait until it is flushed.
pub(super) enum PeerWrite {
    Plain(OwnedWriteHalf),
    Tls(WriteHalf<Box<TlsStream<TcpStream>>>),
}

/// The certificate that the other side has shown.
#[derive(Debug, Clone)]
pub(super) struct PeerCertificate {
    /// Its subject, for messages: see [`log_text`].
    pub(super) subject: String,
    pub(super) names: CertificateNames,
}

impl PeerStream {
    pub(super) fn plain(tcp: TcpStream) -> PeerStream {
        PeerStream { socket: Socket::Plain(tcp), unread: Vec::new() }
    }

    pub(super) fn tls(tls: TlsStream<TcpStream>) -> PeerStream {
        PeerStream { socket: Socket::Tls(Box::new(tls)), unread: Vec::new() }
    }

    /// Gives bytes back that were read: they are read again before all others.
    pub(super) fn give_back(&mut self, bytes: &[u8]) {
        self.unread.splice(..0, bytes.iter().copied());
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.socket {
            Socket::Plain(tcp) => tcp.peer_addr(),
            Socket::Tls(tls) => tls.get_ref().0.peer_addr(),
        }
    }

    /// The other side's certificate; `None` without TLS.
    pub(super) fn certificate(&self) -> Option<PeerCertificate> {
        let Socket::Tls(tls) = &self.socket else { return None };
        let leaf = tls.get_ref().1.peer_certificates()?.first()?;
        let subject = ostler_tls::subject_name(leaf)
            .map_or_else(|_| "an unreadable subject".to_owned(), |subject| log_text(&subject));
        Some(PeerCertificate { subject, names: CertificateNames::of(leaf) })
    }

    pub(super) fn into_split(self) -> (PeerRead, PeerWrite) {
        let (socket, write) = match self.socket {
            Socket::Plain(tcp) => {
                let (read, write) = tcp.into_split();
                (ReadSocket::Plain(read), PeerWrite::Plain(write))
            }
            Socket::Tls(tls) => {
                let (read, write) = tokio::io::split(tls);
                (ReadSocket::Tls(read), PeerWrite::Tls(write))
            }
        };
        (PeerRead { socket, unread: self.unread }, write)
    }
}

/// Moves bytes that were given back. Returns false if there are none.
fn read_again(unread: &mut Vec<u8>, into: &mut ReadBuf<'_>) -> bool {
    if unread.is_empty() {
        return false;
    }
    let count = unread.len().min(into.remaining());
    into.put_slice(&unread[..count]);
    unread.drain(..count);
    true
}

impl AsyncRead for PeerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let PeerStream { socket, unread } = self.get_mut();
        if read_again(unread, into) {
            return Poll::Ready(Ok(()));
        }
        match socket {
            Socket::Plain(tcp) => Pin::new(tcp).poll_read(cx, into),
            Socket::Tls(tls) => Pin::new(tls).poll_read(cx, into),
        }
    }
}

impl AsyncRead for PeerRead {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let PeerRead { socket, unread } = self.get_mut();
        if read_again(unread, into) {
            return Poll::Ready(Ok(()));
        }
        match socket {
            ReadSocket::Plain(tcp) => Pin::new(tcp).poll_read(cx, into),
            ReadSocket::Tls(tls) => Pin::new(tls).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

/// Both kinds of stream are written alike.
macro_rules! write_by_kind {
    ($stream:ident) => {
        impl AsyncWrite for $stream {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
                    $stream::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
                }
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
                    $stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
                }
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
                    $stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
                }
            }
        }
    };
}

write_by_kind!(Socket);
write_by_kind!(PeerWrite);
