//! In-memory connections that the real client uses instead of sockets.

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
struct PipeState {
    to_client: Vec<u8>,
    /// The server's side has closed: nothing comes after `to_client`.
    ended: bool,
    from_client: Vec<u8>,
    /// The client has closed.
    gone: bool,
    reader: Option<Waker>,
}

type Shared = Arc<Mutex<PipeState>>;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The network's side of a connection.
#[derive(Debug)]
pub(super) struct NetworkEnd(Shared);

/// The client's side.
#[derive(Debug)]
pub(super) struct ClientEnd(Shared);

pub(super) fn pipe() -> (ClientEnd, NetworkEnd) {
    let ends = Shared::default();
    (ClientEnd(ends.clone()), NetworkEnd(ends))
}

impl NetworkEnd {
    /// Passes bytes to the client.
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

    /// Takes what the client has written.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0).from_client)
    }

    pub(super) fn is_closed_by_client(&self) -> bool {
        lock(&self.0).gone
    }
}

impl PipeState {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl Drop for ClientEnd {
    fn drop(&mut self) {
        lock(&self.0).gone = true;
    }
}

impl AsyncRead for ClientEnd {
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

impl AsyncWrite for ClientEnd {
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

/// A client's attempt to connect to a server.
pub(super) struct ConnectCall {
    pub(super) member: i64,
    pub(super) answer: oneshot::Sender<io::Result<ClientEnd>>,
}

/// Connection attempts that the network has not taken yet.
#[derive(Clone, Default)]
pub(super) struct PendingCalls(Arc<Mutex<Vec<ConnectCall>>>);

impl PendingCalls {
    pub(super) fn take(&self) -> Vec<ConnectCall> {
        std::mem::take(&mut lock(&self.0))
    }

    /// The client's connector. Host names are `h1`, `h2` and so on.
    pub(super) fn connect(&self, host: &str) -> impl Future<Output = io::Result<ClientEnd>> + use<> {
        let (to, answer) = oneshot::channel();
        if let Ok(member) = host[1..].parse() {
            lock(&self.0).push(ConnectCall { member, answer: to });
        }
        async move { answer.await.unwrap_or_else(|_| Err(io::ErrorKind::ConnectionAborted.into())) }
    }
}
