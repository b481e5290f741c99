//! Watches that wait for events, and print them.
//!
//! One task has all watches. A client gets the event of a change before any reply that shows the change. So
//! [`Watches::printed`], between a command's reply and its answer, prints the events first, in every run of a script.

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

/// The kind of a watch, by which `removewatches` chooses.
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
            _ => false,
        }
    }

    /// The name of the kind in zkCli.sh's events.
    fn name(self) -> &'static str {
        match self {
            Watched::Data => "Data",
            Watched::Children => "Child",
            Watched::All { .. } => "Persistent",
        }
    }
}

/// The watches of a client. They are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Watches {
    orders: mpsc::UnboundedSender<Order>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
enum Order {
    Keep(WaitingWatch),
    Forget { path: String, kind: WatcherType },
    Report(oneshot::Sender<()>),
}

impl Watches {
    /// Starts the task, which also prints these states of the connection.
    pub(crate) fn start(states: StateStream, teller: Teller) -> Watches {
        let (orders, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(keep(received, states, teller));
        Watches { orders, task }
    }

    /// Ends the task.
    pub(crate) async fn end(self) {
        drop(self.orders);
        // The task does not panic.
        let _ = self.task.await;
    }

    /// Prints one change.
    pub(crate) fn once(&self, path: &str, of: Watched, watch: Watch) {
        self.order(Order::Keep(WaitingWatch { path: path.to_owned(), of, source: Source::Once(watch) }));
    }

    /// Prints all changes.
    pub(crate) fn stream(&self, path: &str, of: Watched, stream: WatchStream) {
        self.order(Order::Keep(WaitingWatch { path: path.to_owned(), of, source: Source::Stream(stream) }));
    }

    /// Forgets watches without asking a server.
    pub(crate) fn forget(&self, path: &str, kind: WatcherType) {
        self.order(Order::Forget { path: path.to_owned(), kind });
    }

    /// Waits until all events that have come so far are printed.
    pub(crate) async fn printed(&self) {
        let (done, printed) = oneshot::channel();
        self.order(Order::Report(done));
        // A task that has ended prints nothing.
        let _ = printed.await;
    }

    fn order(&self, order: Order) {
        // A task that has ended needs no orders.
        let _ = self.orders.send(order);
    }
}

async fn keep(mut orders: mpsc::UnboundedReceiver<Order>, mut states: StateStream, teller: Teller) {
    let mut kept: FuturesUnordered<WaitingWatch> = FuturesUnordered::new();
    loop {
        // In this order, so that `Order::Report` is answered after all events that came before it.
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
                    let stays = |watch: &WaitingWatch| !(watch.path == path && watch.of.is(kind));
                    kept = std::mem::take(&mut kept).into_iter().filter(stays).collect();
                }
                // If the command was interrupted, nothing waits for this.
                Some(Order::Report(done)) => drop(done.send(())),
                None => return,
            }
        }
    }
}

/// A watch that waits for an event. As a future it gives the event, and the watch itself if more events can come.
#[derive(Debug)]
struct WaitingWatch {
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

impl Future for WaitingWatch {
    type Output = (Announcement, Option<WaitingWatch>);

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
                    return Poll::Ready((announcement, Some(WaitingWatch { path, of, source })));
                }
            },
        };
        Poll::Ready((announcement, None))
    }
}
