//! Watches as values: if one is dropped, it is removed at the server.

use crate::{
    error::{Error, ErrorContext, Result},
    shared::{Shared, relative},
};
use futures_core::Stream;
use ostler_client_core::{Chroot, EventKind, Failure, WatchId};
use ostler_proto::id::Zxid;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll},
};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};

/// Events that a stream's reader may leave unread before later ones become one [`EventKind::Gap`].
const UNREAD_MAX: usize = 8192;

/// An event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WatchedEvent {
    /// The kind of the change.
    pub kind: EventKind,
    /// The znode's path below the root of the client; empty for a [`Gap`](EventKind::Gap).
    pub path: String,
    /// The zxid of the change. Servers before 3.9 do not send it, and it is `None` for changes found after a reconnect.
    /// If there is one, all watches that this client had set before have reported the changes of earlier transactions, but
    /// for those of znodes that this client may not read.
    pub zxid: Option<Zxid>,
}

/// Which changes a [`WatchStream`] reports.
///
/// Servers before 3.9 keep one kind of watch for each path and connection. If a client has several kinds on one path,
/// it sets the kind again that serves most of them, but none serves all: on a path with a recursive stream, a persistent
/// stream and `get_children().watch()` of the same client may miss `NodeChildrenChanged`. With such servers watch the
/// children by the recursive stream, or use another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddWatchMode {
    /// The znode's own changes, and those of its list of children.
    Persistent,
    /// The znode's own changes and those of all znodes below it, without `NodeChildrenChanged`, which would add nothing
    /// to the creations and deletions.
    PersistentRecursive,
}

/// A one-shot watch: a future that resolves with the next change of a znode.
///
/// It survives reconnects: a change that happened meanwhile is reported. If it is dropped, it is removed at the server,
/// unless another watch of this client needs it there.
///
/// # Errors
/// [`Error::SessionExpired`] if the session expires, and the watch was set through a [`Session`](crate::Session) or the
/// client opens no new session; [`Error::Closed`] or [`Error::AuthFailed`] if the client ends with that error;
/// [`Error::WatchRemoved`] after [`remove_watches`](crate::Client::remove_watches).
#[derive(Debug)]
#[must_use = "a watch that is dropped is removed"]
pub struct Watch {
    event: oneshot::Receiver<std::result::Result<WatchedEvent, WatchEnd>>,
    path: Box<str>,
    guard: WatchGuard,
}

impl Future for Watch {
    type Output = Result<WatchedEvent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<WatchedEvent>> {
        let Poll::Ready(event) = Pin::new(&mut self.event).poll(cx) else { return Poll::Pending };
        self.guard.disarm();
        let path = self.path.clone();
        Poll::Ready(match event {
            Ok(Ok(event)) => Ok(event),
            Ok(Err(WatchEnd::Removed)) => Err(Error::WatchRemoved { path }),
            Ok(Err(WatchEnd::Failed(failure))) => Err(about(&path).failure(failure)),
            // The sender is dropped with the client.
            Err(_) => Err(Error::Closed),
        })
    }
}

fn about(path: &str) -> ErrorContext<'_> {
    ErrorContext { operation: "watch", path, session: None }
}

/// Why a watch has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WatchEnd {
    /// It was removed at the server.
    Removed,
    /// Its session or the client has ended with this failure.
    Failed(Failure),
}

/// Changes of a znode, or of all znodes below it, for as long as the stream lives.
///
/// It survives reconnects, and new sessions if the client opens them. Servers do not report changes that happened
/// meanwhile, so the stream then yields an [`EventKind::Gap`]: data that was read before may be old. If the stream is
/// dropped, the watch is removed at the server, unless another watch of this client needs it there.
#[derive(Debug)]
#[must_use = "a watch that is dropped is removed"]
pub struct WatchStream {
    events: mpsc::Receiver<WatchedEvent>,
    behind: Arc<AtomicBool>,
    _guard: WatchGuard,
}

impl WatchStream {
    /// The next change; `None` once the watch has ended with its session or the client.
    pub async fn next(&mut self) -> Option<WatchedEvent> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<WatchedEvent>> {
        match self.events.poll_recv(cx) {
            // All events from before the gap have been read.
            Poll::Pending if self.behind.swap(false, SeqCst) => Poll::Ready(Some(gap())),
            other => other,
        }
    }
}

impl Stream for WatchStream {
    type Item = WatchedEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchedEvent>> {
        self.poll(cx)
    }
}

fn gap() -> WatchedEvent {
    WatchedEvent { kind: EventKind::Gap, path: String::new(), zxid: None }
}

/// Removes its watch when dropped.
#[derive(Debug)]
pub(crate) struct WatchGuard {
    shared: Option<Arc<Shared>>,
    id: WatchId,
}

impl WatchGuard {
    /// The watch has ended, so there is nothing to remove.
    fn disarm(&mut self) {
        self.shared = None;
    }

    pub(crate) fn id(&self) -> WatchId {
        self.id
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.unwatch(self.id);
        }
    }
}

/// The sending end of a [`Watch`] or [`WatchStream`].
#[derive(Debug)]
pub(crate) struct Sink {
    to: SinkTarget,
    chroot: Chroot,
}

#[derive(Debug)]
enum SinkTarget {
    Once(Option<oneshot::Sender<std::result::Result<WatchedEvent, WatchEnd>>>),
    Stream { events: mpsc::Sender<WatchedEvent>, behind: Arc<AtomicBool> },
}

impl Sink {
    /// Nothing more is to come.
    pub(crate) fn end(self, end: WatchEnd) {
        if let SinkTarget::Once(Some(to)) = self.to {
            let _ = to.send(Err(end));
        }
    }

    /// True if nothing more is to come.
    pub(crate) fn send(&mut self, mut event: WatchedEvent) -> bool {
        event.path = relative(&self.chroot, event.path);
        match &mut self.to {
            SinkTarget::Once(to) => {
                if let Some(to) = to.take() {
                    let _ = to.send(Ok(event));
                }
                true
            }
            SinkTarget::Stream { events, behind } => {
                if behind.load(SeqCst) {
                    return false;
                }
                if let Err(TrySendError::Full(event)) = events.try_send(event) {
                    behind.store(true, SeqCst);
                    // The reader may have emptied it before the mark was there, and must be woken to see it.
                    let _ = events.try_send(event);
                }
                false
            }
        }
    }
}

/// A watch whose request is under way.
pub(crate) struct PendingWatch<W> {
    pub(crate) guard: WatchGuard,
    finish: Box<dyn FnOnce(WatchGuard) -> W + Send>,
}

impl<W> PendingWatch<W> {
    pub(crate) fn set(self) -> W {
        (self.finish)(self.guard)
    }
}

pub(crate) fn one_shot(shared: &Arc<Shared>, chroot: &Chroot, path: &str) -> PendingWatch<Watch> {
    let (to, event) = oneshot::channel();
    let id = shared.add_sink(Sink { to: SinkTarget::Once(Some(to)), chroot: chroot.clone() });
    let path: Box<str> = path.into();
    PendingWatch {
        guard: WatchGuard { shared: Some(shared.clone()), id },
        finish: Box::new(move |guard| Watch { event, path, guard }),
    }
}

pub(crate) fn stream(shared: &Arc<Shared>, chroot: &Chroot) -> PendingWatch<WatchStream> {
    let (to, events) = mpsc::channel(UNREAD_MAX);
    let behind = Arc::new(AtomicBool::new(false));
    let sink = Sink { to: SinkTarget::Stream { events: to, behind: behind.clone() }, chroot: chroot.clone() };
    let id = shared.add_sink(sink);
    PendingWatch {
        guard: WatchGuard { shared: Some(shared.clone()), id },
        finish: Box::new(move |guard| WatchStream { events, behind, _guard: guard }),
    }
}
