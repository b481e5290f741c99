//! Connections within the process: what a real client writes and reads instead of a socket.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};

#[derive(Debug, Default)]
struct Ends {
    to_client: Vec<u8>,
    /// The server's side has hung up: after what has come there is nothing.
    ended: bool,
    from_client: Vec<u8>,
    /// The client has hung up.
    gone: bool,
    reader: Option<Waker>,
}

type Shared = Arc<Mutex<Ends>>;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The network's side of a connection.
#[derive(Debug)]
pub(super) struct Far(Shared);

/// The client's side.
#[derive(Debug)]
pub(super) struct Near(Shared);

pub(super) fn pipe() -> (Near, Far) {
    let ends = Shared::default();
    (Near(ends.clone()), Far(ends))
}

impl Far {
    /// Something has come for the client.
    pub(super) fn feed(&self, bytes: &[u8]) {
        let mut ends = lock(&self.0);
        ends.to_client.extend_from_slice(bytes);
        ends.wake();
    }

    pub(super) fn end(&self) {
        let mut ends = lock(&self.0);
        ends.ended = true;
        ends.wake();
    }

    /// What the client has written.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0).from_client)
    }

    pub(super) fn is_left(&self) -> bool {
        lock(&self.0).gone
    }
}

impl Ends {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        lock(&self.0).gone = true;
    }
}

impl AsyncRead for Near {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut ends = lock(&self.0);
        if ends.to_client.is_empty() && !ends.ended {
            ends.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = ends.to_client.len().min(into.remaining());
        into.put_slice(&ends.to_client[..count]);
        ends.to_client.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Near {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).from_client.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A client wants to be connected with a server.
pub(super) struct Call {
    pub(super) member: i64,
    pub(super) answer: oneshot::Sender<io::Result<Near>>,
}

/// Calls that the network has not heard of yet.
#[derive(Clone, Default)]
pub(super) struct Board(Arc<Mutex<Vec<Call>>>);

impl Board {
    pub(super) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut lock(&self.0))
    }

    /// What a client's connector does; servers are called `h1`, `h2` and so on.
    pub(super) fn connect(&self, host: &str) -> impl Future<Output = io::Result<Near>> + use<> {
        let (to, answer) = oneshot::channel();
        if let Ok(member) = host[1..].parse() {
            lock(&self.0).push(Call { member, answer: to });
        }
        async move { answer.await.unwrap_or_else(|_| Err(io::ErrorKind::ConnectionAborted.into())) }
    }
}
