//! A connection to a server: its socket, and TLS if the run uses it.
//!
//! TLS is that of rustls, which only moves bytes between buffers. One read of the socket and one write serve many frames,
//! as without TLS.

use rustls::{ClientConfig, ClientConnection, Stream, client::Resumption, pki_types::ServerName};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// TLS for new connections.
#[derive(Debug)]
pub(crate) struct TlsDialer {
    config: Arc<ClientConfig>,
    /// The names that the certificates of the servers must have, in the order of the servers.
    names: Vec<ServerName<'static>>,
}

/// The state of TLS on one connection. The thread that sends and the one that receives may be two.
type TlsState = Arc<Mutex<ClientConnection>>;

/// A connection.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    socket: S,
    tls: Option<TlsState>,
}

/// The result of one read of a nonblocking socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    /// Bytes for the reader. With TLS there may be none, though some came.
    pub(crate) size: usize,
    /// Whether the read filled its buffer. Then the socket may have more.
    pub(crate) was_full: bool,
}

/// Bytes that one read of a nonblocking socket takes.
pub(crate) const READ_BUFFER: usize = 256 * 1024;
/// Decrypted bytes of one read: a record that was incomplete before may come on top.
const DECRYPTED_MAX: usize = READ_BUFFER + (32 << 10);

impl TlsDialer {
    /// Every handshake is a full one: a resumed session would cost the server nearly nothing.
    pub(crate) fn new(mut config: ClientConfig, names: Vec<ServerName<'static>>) -> TlsDialer {
        config.resumption = Resumption::disabled();
        TlsDialer { config: Arc::new(config), names }
    }

    fn begin(&self, number: usize) -> io::Result<ClientConnection> {
        let name = self.names[number % self.names.len()].clone();
        let mut tls = ClientConnection::new(self.config.clone(), name).map_err(io::Error::other)?;
        // All that the driver appends at once is encrypted at once.
        tls.set_buffer_limit(None);
        Ok(tls)
    }
}

impl<S: Read + Write> Wire<S> {
    /// Takes a connected socket, and begins TLS with the server of connection `number`. The handshake goes on while bytes
    /// are sent and received.
    pub(crate) fn new(socket: S, tls: Option<&TlsDialer>, number: usize) -> io::Result<Wire<S>> {
        let tls = tls.map(|dialer| dialer.begin(number)).transpose()?;
        Ok(Wire { socket, tls: tls.map(|tls| Arc::new(Mutex::new(tls))) })
    }

    /// The same connection on another kind of socket.
    pub(crate) fn map<T>(self, convert: impl FnOnce(S) -> T) -> Wire<T> {
        Wire { socket: convert(self.socket), tls: self.tls }
    }

    pub(crate) fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Sends the first bytes: with TLS only the beginning of the handshake goes out, and the bytes after its end.
    pub(crate) fn greet(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &self.tls else { return self.socket.write_all(bytes) };
        let mut tls = locked(tls);
        tls.writer().write_all(bytes)?;
        flush(&mut tls, &mut self.socket)
    }

    /// Ends the handshake of TLS on a blocking socket, and sends the bytes that wait for its end.
    pub(crate) fn finish_handshake(&mut self) -> io::Result<()> {
        let Some(tls) = &self.tls else { return Ok(()) };
        let mut tls = locked(tls);
        while tls.is_handshaking() {
            tls.complete_io(&mut self.socket)?;
        }
        flush(&mut tls, &mut self.socket)
    }

    /// Reads once from a nonblocking socket into `buffer` from `kept` on. The buffer grows as needed; `encrypted` is only
    /// room to work in.
    ///
    /// # Errors
    /// `UnexpectedEof` at the end of the stream, `InvalidData` if the other side does not keep to TLS.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut Vec<u8>,
        kept: usize,
        encrypted: &mut Vec<u8>,
    ) -> io::Result<Received> {
        let room = kept + if self.tls.is_some() { DECRYPTED_MAX } else { READ_BUFFER };
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let Some(tls) = &self.tls else {
            let size = read_some(&mut self.socket, &mut buffer[kept..])?;
            return Ok(Received { size, was_full: kept + size == buffer.len() });
        };
        encrypted.resize(READ_BUFFER, 0);
        let arrived = read_some(&mut self.socket, encrypted)?;
        let mut tls = locked(tls);
        let size = decrypt(&mut tls, &encrypted[..arrived], &mut buffer[kept..])?;
        // Handshakes and changes of keys are answered.
        flush(&mut tls, &mut self.socket)?;
        Ok(Received { size, was_full: arrived == encrypted.len() })
    }

    /// Sends to a nonblocking socket, and removes from `out` what was taken. The next writable event goes on with the rest.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if let Some(tls) = &self.tls {
            let mut tls = locked(tls);
            if !out.is_empty() {
                tls.writer().write_all(out)?;
                out.clear();
            }
            return flush(&mut tls, &mut self.socket);
        }
        let mut sent = 0;
        while sent < out.len() {
            match self.socket.write(&out[sent..]) {
                Ok(size) => sent += size,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        out.drain(..sent);
        Ok(())
    }

    /// Whether bytes that were taken have not gone out.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| locked(tls).wants_write())
    }

    /// Tells the server that nothing more comes, as far as the socket takes it.
    pub(crate) fn say_goodbye(&mut self) {
        if let Some(tls) = &self.tls {
            let mut tls = locked(tls);
            tls.send_close_notify();
            // The connection is over, whether the server hears it or not.
            let _ = flush(&mut tls, &mut self.socket);
        }
    }
}

impl Wire<TcpStream> {
    /// The same connection for another thread.
    pub(crate) fn try_clone(&self) -> io::Result<Wire<TcpStream>> {
        Ok(Wire { socket: self.socket.try_clone()?, tls: self.tls.clone() })
    }
}

/// Reads from a blocking socket.
impl<S: Read + Write> Read for Wire<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &self.tls {
            None => self.socket.read(into),
            Some(tls) => Stream::new(&mut *locked(tls), &mut self.socket).read(into),
        }
    }
}

/// Writes to a blocking socket.
impl<S: Read + Write> Write for Wire<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.tls {
            None => self.socket.write(bytes),
            Some(tls) => Stream::new(&mut *locked(tls), &mut self.socket).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.tls {
            None => self.socket.flush(),
            Some(tls) => Stream::new(&mut *locked(tls), &mut self.socket).flush(),
        }
    }
}

fn locked(tls: &TlsState) -> MutexGuard<'_, ClientConnection> {
    // A panic aborts the process, so a poisoned lock is never met.
    tls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads at least one byte.
fn read_some(socket: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    match socket.read(into)? {
        0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "end of stream")),
        size => Ok(size),
    }
}

/// Returns the number of decrypted bytes.
fn decrypt(tls: &mut ClientConnection, mut encrypted: &[u8], into: &mut [u8]) -> io::Result<usize> {
    let mut size = 0;
    while !encrypted.is_empty() {
        // 0 after the server's last word of TLS: nothing more is read.
        if tls.read_tls(&mut encrypted)? == 0 {
            break;
        }
        let state = match tls.process_new_packets() {
            Ok(state) => state,
            Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error)),
        };
        let decrypted = state.plaintext_bytes_to_read();
        if decrypted > 0 {
            tls.reader().read_exact(&mut into[size..size + decrypted])?;
            size += decrypted;
        }
    }
    Ok(size)
}

fn flush(tls: &mut ClientConnection, socket: &mut impl Write) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(_) => {}
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}
