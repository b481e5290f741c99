//! A client's socket, with TLS or without.
//!
//! TLS is that of rustls, which moves bytes between buffers; this file moves them between the buffers and the socket. A
//! wrapper with the interface of a socket would copy and poll more.

use rustls::ServerConnection;
use std::{
    cell::RefCell,
    io::{self, IoSlice, Read, Write},
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWriteExt, Interest, ReadBuf},
    net::TcpStream,
};

/// The most encrypted bytes of one read.
const ENCRYPTED_SIZE: usize = 40 << 10;
/// A reader with room for that and for a record of which the beginning came before.
const ROOM_FOR_ALL: usize = ENCRYPTED_SIZE + (18 << 10);

thread_local! {
    /// As connections have no buffer of their own to read into, each thread has one for what is encrypted.
    static ENCRYPTED: RefCell<Vec<u8>> = RefCell::new(vec![0; ENCRYPTED_SIZE]);
}

/// A client's socket.
pub(crate) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// A socket after the handshake of TLS.
pub(crate) struct TlsStream {
    tcp: TcpStream,
    tls: ServerConnection,
}

/// The socket as rustls uses it. It never waits.
pub(crate) struct Unblocked<'a>(pub(crate) &'a TcpStream);

/// The socket of a task that waits for it. Unlike [`Unblocked`], this remembers that a short read has emptied the socket,
/// and saves the call that would only say so.
struct Polled<'a, 'c, 'w> {
    tcp: &'a mut TcpStream,
    cx: &'c mut Context<'w>,
}

impl Read for Polled<'_, '_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(into);
        match Pin::new(&mut *self.tcp).poll_read(self.cx, &mut buffer) {
            Poll::Ready(done) => done.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Read for Unblocked<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }
}

impl Write for Unblocked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    /// Takes a connection whose handshake is done.
    pub(crate) fn new(tcp: TcpStream, tls: ServerConnection) -> TlsStream {
        TlsStream { tcp, tls }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.tls.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The client's TCP connection ended without a last word of TLS, as many clients end it.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
                read => return Poll::Ready(read),
            }
            let arrived = if into.len() < ROOM_FOR_ALL {
                match self.tls.read_tls(&mut Polled { tcp: &mut self.tcp, cx }) {
                    Ok(0) => Ok(None),
                    Ok(_) => self.process().map(|()| Some(0)),
                    Err(error) => Err(error),
                }
            } else {
                ENCRYPTED.with_borrow_mut(|encrypted| {
                    match (Polled { tcp: &mut self.tcp, cx }).read(encrypted)? {
                        0 => Ok(None),
                        size => self.decrypt(&encrypted[..size], into).map(Some),
                    }
                })
            };
            match arrived {
                Ok(None) => return Poll::Ready(Ok(0)),
                // No record is whole yet, or what came was not for the reader.
                Ok(Some(0)) => {}
                Ok(Some(size)) => return Poll::Ready(Ok(size)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Decrypts many records at once: rustls by itself reads 4 KiB. Returns the number of bytes for the reader, for which
    /// there is room.
    fn decrypt(&mut self, mut encrypted: &[u8], into: &mut [u8]) -> io::Result<usize> {
        let mut size = 0;
        while !encrypted.is_empty() {
            // 0 after the client's last word of TLS: nothing more is read.
            if self.tls.read_tls(&mut encrypted)? == 0 {
                break;
            }
            self.process()?;
            match self.tls.reader().read(&mut into[size..]) {
                Ok(read) => size += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(size)
    }

    /// Decrypts what has come. If that is no TLS, the alert for the client goes out, if the socket takes it.
    fn process(&mut self) -> io::Result<()> {
        self.tls.process_new_packets().map(|_| ()).map_err(|error| {
            let _ = self.try_flush();
            io::Error::new(io::ErrorKind::InvalidData, error)
        })
    }

    /// Encrypts as many bytes as the buffer has room for.
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_flush()?;
        let written = self.tls.writer().write(bytes)?;
        self.flush_if_possible()?;
        Ok(written)
    }

    fn try_write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_flush()?;
        let written = self.tls.writer().write_vectored(slices)?;
        self.flush_if_possible()?;
        Ok(written)
    }

    fn flush_if_possible(&mut self) -> io::Result<()> {
        match self.try_flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes what is encrypted.
    fn try_flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            if self.tls.write_tls(&mut Unblocked(&self.tcp))? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

impl ClientStream {
    /// Reads bytes of the client. 0 is the end of the connection.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            ClientStream::Plain(tcp) => {
                let mut buffer = ReadBuf::new(into);
                ready!(Pin::new(tcp).poll_read(cx, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
            ClientStream::Tls(tls) => tls.poll_read(cx, into),
        }
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp().poll_write_ready(cx)
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.tcp().writable().await
    }

    /// This server's address of the connection.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp().local_addr()
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            ClientStream::Plain(tcp) => tcp,
            ClientStream::Tls(tls) => &tls.tcp,
        }
    }

    /// Whether the client has closed the connection, or its own half, as far as the system has said so.
    pub(crate) fn is_closed_by_client(&self) -> bool {
        let ready = pin!(self.tcp().ready(Interest::READABLE));
        let ready = ready.poll(&mut Context::from_waker(Waker::noop()));
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }

    /// Takes bytes that are to go out. Returns their number; fails with `WouldBlock` if the socket takes none now.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ClientStream::Plain(tcp) => tcp.try_write(bytes),
            ClientStream::Tls(tls) => tls.try_write(bytes),
        }
    }

    pub(crate) fn try_write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            ClientStream::Plain(tcp) => tcp.try_write_vectored(slices),
            ClientStream::Tls(tls) => tls.try_write_vectored(slices),
        }
    }

    /// Whether bytes that were taken have not gone out.
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            ClientStream::Plain(_) => false,
            ClientStream::Tls(tls) => tls.tls.wants_write(),
        }
    }

    /// Sends bytes that were taken. Fails with `WouldBlock` if some of them still wait.
    pub(crate) fn try_flush(&mut self) -> io::Result<()> {
        match self {
            ClientStream::Plain(_) => Ok(()),
            ClientStream::Tls(tls) => tls.try_flush(),
        }
    }

    /// Sends these bytes, waiting for the socket.
    pub(crate) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() || self.has_unsent() {
            let written = match bytes {
                [] => self.try_flush().map(|()| 0),
                _ => self.try_write(bytes),
            };
            match written {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the client that nothing more comes.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        if let ClientStream::Tls(tls) = self {
            tls.tls.send_close_notify();
            tls.flush_if_possible()?;
        }
        match self {
            ClientStream::Plain(tcp) => tcp.shutdown().await,
            ClientStream::Tls(tls) => tls.tcp.shutdown().await,
        }
    }
}
