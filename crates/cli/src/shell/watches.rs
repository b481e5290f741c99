//! Watches that are kept until they fire, and told of as they do.
//!
//! One task has them all. A client is told of a change before it gets any reply that shows it. So [`Watches::told`],
//! between a command's reply and its answer, makes the order of what a script prints always the same: first the changes.

use super::{announcement::Announcement, output::Teller};
use futures_util::{Stream, StreamExt, stream::FuturesUnordered};
use ostler_client::{Error, EventKind, StateStream, Watch, WatchStream, WatcherType};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

/// What a watch is for, and with it which `removewatches` means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    Data,
    Children,
    All { recursive: bool },
}

impl Watched {
    fn is(self, kind: WatcherType) -> bool {
        match kind {
            WatcherType::Any => true,
            WatcherType::Data => self == Watched::Data,
            WatcherType::Children => self == Watched::Children,
            WatcherType::Persistent => self == Watched::All { recursive: false },
            WatcherType::PersistentRecursive => self == Watched::All { recursive: true },
        }
    }

    /// In upstream's events.
    fn name(self) -> &'static str {
        match self {
            Watched::Data => "Data",
            Watched::Children => "Child",
            Watched::All { .. } => "Persistent",
        }
    }
}

/// A client's watches. Dropped, they are removed.
#[derive(Debug)]
pub(crate) struct Watches {
    orders: mpsc::UnboundedSender<Order>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
enum Order {
    Keep(Kept),
    Forget { path: String, kind: WatcherType },
    Told(oneshot::Sender<()>),
}

impl Watches {
    /// Tells of these states, too.
    pub(crate) fn start(states: StateStream, teller: Teller) -> Watches {
        let (orders, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(keep(received, states, teller));
        Watches { orders, task }
    }

    /// Tells nothing more.
    pub(crate) async fn end(self) {
        drop(self.orders);
        // It only ends in this way.
        let _ = self.task.await;
    }

    /// Tells of one change.
    pub(crate) fn once(&self, path: &str, of: Watched, watch: Watch) {
        self.order(Order::Keep(Kept { path: path.to_owned(), of, source: Source::Once(watch) }));
    }

    /// Tells of all changes.
    pub(crate) fn stream(&self, path: &str, of: Watched, stream: WatchStream) {
        self.order(Order::Keep(Kept { path: path.to_owned(), of, source: Source::Stream(stream) }));
    }

    /// Forgets watches without asking a server.
    pub(crate) fn forget(&self, path: &str, kind: WatcherType) {
        self.order(Order::Forget { path: path.to_owned(), kind });
    }

    /// Waits until everything is told that has come so far.
    pub(crate) async fn told(&self) {
        let (done, told) = oneshot::channel();
        self.order(Order::Told(done));
        // A task that is gone has nothing to tell.
        let _ = told.await;
    }

    fn order(&self, order: Order) {
        // As above.
        let _ = self.orders.send(order);
    }
}

async fn keep(mut orders: mpsc::UnboundedReceiver<Order>, mut states: StateStream, teller: Teller) {
    let mut kept: FuturesUnordered<Kept> = FuturesUnordered::new();
    loop {
        // In this order, so that an answer to Told comes after all that has happened before it.
        tokio::select! {
            biased;
            Some((announcement, again)) = kept.next(), if !kept.is_empty() => {
                teller.tell(&announcement);
                kept.extend(again);
            }
            Some(state) = states.next() => {
                teller.tell(&Announcement::State { state: state.state, session: state.session });
            }
            order = orders.recv() => match order {
                Some(Order::Keep(watch)) => kept.push(watch),
                Some(Order::Forget { path, kind }) => {
                    let stays = |watch: &Kept| !(watch.path == path && watch.of.is(kind));
                    kept = std::mem::take(&mut kept).into_iter().filter(stays).collect();
                }
                // Nobody waits if the command was interrupted.
                Some(Order::Told(done)) => drop(done.send(())),
                None => return,
            }
        }
    }
}

/// A watch that waits. As a future: what has happened, and the watch if more can come.
#[derive(Debug)]
struct Kept {
    path: String,
    of: Watched,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Once(Watch),
    Stream(WatchStream),
    Over,
}

impl Future for Kept {
    type Output = (Announcement, Option<Kept>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (path, of) = (self.path.clone(), self.of);
        let removed = Announcement::Removed { path: path.clone(), kind: of.name() };
        let announcement = match &mut self.source {
            Source::Over => removed,
            Source::Once(watch) => match ready!(Pin::new(watch).poll(cx)) {
                Ok(event) => Announcement::Changed(event),
                Err(Error::WatchRemoved { .. }) => removed,
                Err(_) => Announcement::Ended { path },
            },
            Source::Stream(stream) => match ready!(Pin::new(stream).poll_next(cx)) {
                None => removed,
                Some(event) => {
                    let source = std::mem::replace(&mut self.source, Source::Over);
                    let announcement = match event.kind {
                        EventKind::Gap => Announcement::Missed { path: path.clone() },
                        _ => Announcement::Changed(event),
                    };
                    return Poll::Ready((announcement, Some(Kept { path, of, source })));
                }
            },
        };
        Poll::Ready((announcement, None))
    }
}
