//! Watches as values: dropping one removes it at the server.

use crate::{
    error::{About, Error, Result},
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

/// A change that was watched for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchedEvent {
    /// What happened.
    pub kind: EventKind,
    /// The znode, as this client names it; empty for a gap.
    pub path: String,
    /// The transaction that did it, from servers since 3.9; `None` for changes found after a reconnect.
    pub zxid: Option<Zxid>,
}

/// Which changes a [`WatchStream`] hears of.
///
/// Servers before 3.9 keep one kind of watch for each path and connection. The client sets the kind again that serves
/// most, but none serves all: on a path with a recursive stream, a persistent one and `get_children().watch()` of the
/// same client may not hear of `NodeChildrenChanged`. With such servers watch the children by the recursive stream, or
/// use another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddWatchMode {
    /// The znode's own changes, and those of its list of children.
    Persistent,
    /// The znode's own changes and those of all znodes below it. Not `NodeChildrenChanged`, which would say
    /// nothing new.
    PersistentRecursive,
}

/// One change of one znode, to come. A future: it resolves when the watch fires.
///
/// It survives reconnects: a change that happened meanwhile is reported. It ends with
/// [`Error::SessionExpired`] if its session does and it was set through a [`Session`](crate::Session), or if the
/// client makes no new ones; with [`Error::Closed`] or [`Error::AuthFailed`] if the client ends so; and with
/// [`Error::WatchRemoved`] by [`remove_watches`](crate::Client::remove_watches). Dropped, it is removed at the server,
/// unless somebody else needs it.
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
            // Nobody tells any more when the client is gone.
            Err(_) => Err(Error::Closed),
        })
    }
}

fn about(path: &str) -> About<'_> {
    About { operation: "watch", path, session: None }
}

/// Why nothing more is to come of a watch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WatchEnd {
    /// It was removed at the server.
    Removed,
    /// Its session or the client has ended so.
    Failed(Failure),
}

/// Changes of a znode, or of all znodes below it, for as long as the stream lives.
///
/// It survives reconnects, and new sessions if the client makes them; as servers report nothing of what happened
/// meanwhile, it then yields an [`EventKind::Gap`]: what was read before may be old. Dropped, it is removed at
/// the server, unless somebody else needs it.
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
            // Everything from before the gap is read.
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
    /// The watch is over by itself.
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

/// The shell's end of a watch.
#[derive(Debug)]
pub(crate) struct Sink {
    to: To,
    chroot: Chroot,
}

#[derive(Debug)]
enum To {
    Once(Option<oneshot::Sender<std::result::Result<WatchedEvent, WatchEnd>>>),
    Stream { events: mpsc::Sender<WatchedEvent>, behind: Arc<AtomicBool> },
}

impl Sink {
    /// Nothing more is to come.
    pub(crate) fn end(self, end: WatchEnd) {
        if let To::Once(Some(to)) = self.to {
            let _ = to.send(Err(end));
        }
    }

    /// True if nothing more is to come.
    pub(crate) fn tell(&mut self, mut event: WatchedEvent) -> bool {
        event.path = relative(&self.chroot, event.path);
        match &mut self.to {
            To::Once(to) => {
                if let Some(to) = to.take() {
                    let _ = to.send(Ok(event));
                }
                true
            }
            To::Stream { events, behind } => {
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

/// A watch that is asked for and not yet set.
pub(crate) struct Pending<W> {
    pub(crate) guard: WatchGuard,
    finish: Box<dyn FnOnce(WatchGuard) -> W + Send>,
}

impl<W> Pending<W> {
    pub(crate) fn set(self) -> W {
        (self.finish)(self.guard)
    }
}

pub(crate) fn one_shot(shared: &Arc<Shared>, chroot: &Chroot, path: &str) -> Pending<Watch> {
    let (to, event) = oneshot::channel();
    let id = shared.add_sink(Sink { to: To::Once(Some(to)), chroot: chroot.clone() });
    let path: Box<str> = path.into();
    Pending {
        guard: WatchGuard { shared: Some(shared.clone()), id },
        finish: Box::new(move |guard| Watch { event, path, guard }),
    }
}

pub(crate) fn stream(shared: &Arc<Shared>, chroot: &Chroot) -> Pending<WatchStream> {
    let (to, events) = mpsc::channel(UNREAD_MAX);
    let behind = Arc::new(AtomicBool::new(false));
    let sink = Sink { to: To::Stream { events: to, behind: behind.clone() }, chroot: chroot.clone() };
    let id = shared.add_sink(sink);
    Pending {
        guard: WatchGuard { shared: Some(shared.clone()), id },
        finish: Box::new(move |guard| WatchStream { events, behind, _guard: guard }),
    }
}
