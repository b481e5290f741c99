//! A connection to another server, with TLS or without.

use ostler_tls::names::CertificateNames;
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
pub(super) enum PeerStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The half that is read.
pub(super) enum PeerRead {
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
    /// Its subject, for messages.
    pub(super) subject: String,
    pub(super) names: CertificateNames,
}

impl PeerStream {
    fn tcp(&self) -> &TcpStream {
        match self {
            PeerStream::Plain(tcp) => tcp,
            PeerStream::Tls(tls) => tls.get_ref().0,
        }
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.tcp().peer_addr()
    }

    /// The other side's certificate; `None` without TLS.
    pub(super) fn certificate(&self) -> Option<PeerCertificate> {
        let PeerStream::Tls(tls) = self else { return None };
        let leaf = tls.get_ref().1.peer_certificates()?.first()?;
        let subject = ostler_tls::subject_name(leaf).unwrap_or_else(|_| "an unreadable subject".to_owned());
        Some(PeerCertificate { subject, names: CertificateNames::of(leaf) })
    }

    pub(super) fn into_split(self) -> (PeerRead, PeerWrite) {
        match self {
            PeerStream::Plain(tcp) => {
                let (read, write) = tcp.into_split();
                (PeerRead::Plain(read), PeerWrite::Plain(write))
            }
            PeerStream::Tls(tls) => {
                let (read, write) = tokio::io::split(tls);
                (PeerRead::Tls(read), PeerWrite::Tls(write))
            }
        }
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            PeerStream::Plain(tcp) => Pin::new(tcp).poll_read(cx, into),
            PeerStream::Tls(tls) => Pin::new(tls).poll_read(cx, into),
        }
    }
}

impl AsyncRead for PeerRead {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            PeerRead::Plain(tcp) => Pin::new(tcp).poll_read(cx, into),
            PeerRead::Tls(tls) => Pin::new(tls).poll_read(cx, into),
        }
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

write_by_kind!(PeerStream);
write_by_kind!(PeerWrite);
