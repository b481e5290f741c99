//! The kinds of queues, and their options.

use crate::{
    queue::{
        Consumer,
        consumer::take,
        items,
        names::{self, Kind},
    },
    until_answered::{fired, until_answered},
};
use bytes::Bytes;
use ostler_client::{Client, Result, paths};
use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::{Duration, SystemTime},
};

/// Long enough for what fails always to be no burden.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The fate of an item whose consumer fails. Without a lock path the item is deleted already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ErrorMode {
    /// The item is put back with its id or its priority, behind all other items of this priority. In a delay queue it
    /// is [due again later](QueueBuilder::retry_after).
    ///
    /// Curator keeps only the id. There an item that was put back loses its priority or its due time, and comes before
    /// all other items.
    #[default]
    Requeue,
    /// The item is deleted.
    Delete,
}

/// Options of a queue, from [`DistributedQueue::builder`]: set them, then await it for a [`DistributedQueue`], or call
/// another `build` function.
#[derive(Debug, Clone)]
#[must_use = "there is no queue before it is built"]
pub struct QueueBuilder {
    client: Client,
    path: String,
    lock_path: Option<String>,
    max_items: Option<usize>,
    error_mode: ErrorMode,
    retry_after: Duration,
}

/// [`build`](QueueBuilder::build).
impl IntoFuture for QueueBuilder {
    type Output = Result<DistributedQueue>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<DistributedQueue>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.build())
    }
}

/// The part that all queues share.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) lock_path: Option<String>,
    pub(crate) error_mode: ErrorMode,
    pub(crate) kind: Kind,
    max_items: Option<usize>,
}

impl QueueBuilder {
    /// Delivers items at least once instead of at most once: while an item is consumed there is an ephemeral znode for
    /// it below `path`, and the item is deleted after that. All consumers of a queue must use the same path. By default
    /// there is none: at most once.
    pub fn lock_path(mut self, path: &str) -> Self {
        self.lock_path = Some(path.to_owned());
        self
    }

    /// Makes `put` wait while the queue has this number of items; no limit by default. Several producers at once can
    /// exceed it a little.
    pub fn max_items(mut self, items: usize) -> Self {
        self.max_items = Some(items.max(1));
        self
    }

    /// The fate of an item whose consumer fails; [`ErrorMode::Requeue`] by default. Has an effect only with a
    /// [`lock_path`](QueueBuilder::lock_path). Without one, which is the default, the item is deleted before it is
    /// consumed: if its consumer fails, it is lost.
    pub fn error_mode(mut self, mode: ErrorMode) -> Self {
        self.error_mode = mode;
        self
    }

    /// The time after which an item of a delay queue is due again when its consumer has failed; one second by default.
    /// Has no effect on other queues.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = delay;
        self
    }

    /// Creates a queue whose items come out in the order in which they were put in.
    ///
    /// # Errors
    /// Those of create.
    pub async fn build(self) -> Result<DistributedQueue> {
        Ok(DistributedQueue(self.start(Kind::Plain).await?))
    }

    /// Creates a queue whose items have ids, by which they can be removed.
    ///
    /// # Errors
    /// Those of create.
    pub async fn build_id_queue(self) -> Result<DistributedIdQueue> {
        Ok(DistributedIdQueue(self.start(Kind::Id).await?))
    }

    /// Creates a queue whose items come out by priority, the lowest number first. A consumer looks for newer items
    /// after it has taken `before_refresh` items. A small number costs more reads; with a large number urgent items
    /// wait longer. Items that have failed and were put back do not count, because an item that always fails would keep
    /// later items waiting.
    ///
    /// # Errors
    /// Those of create.
    pub async fn build_priority_queue(self, before_refresh: usize) -> Result<DistributedPriorityQueue> {
        let kind = Kind::Priority { before_refresh: before_refresh.max(1) };
        Ok(DistributedPriorityQueue(self.start(kind).await?))
    }

    /// Creates a queue whose items come out when they are due, by the consumers' wall clocks.
    ///
    /// # Errors
    /// Those of create.
    pub async fn build_delay_queue(self) -> Result<DistributedDelayQueue> {
        let retry_after = self.retry_after;
        Ok(DistributedDelayQueue(self.start(Kind::Delay { retry_after }).await?))
    }

    async fn start(self, kind: Kind) -> Result<Queue> {
        let QueueBuilder { client, path, lock_path, max_items, error_mode, retry_after: _ } = self;
        for path in [Some(&path), lock_path.as_ref()].into_iter().flatten() {
            let create = || client.create(path, b"").creating_container_parents();
            match until_answered(&client, create).await {
                Err(error) if !error.is_node_exists() => return Err(error),
                _ => {}
            }
        }
        Ok(Queue { client, path, lock_path, error_mode, kind, max_items })
    }
}

impl Queue {
    async fn put(&self, name: &str, items: &[&[u8]]) -> Result<()> {
        if let Some(max) = self.max_items {
            self.wait_for_room(max).await?;
        }
        let data = items::encode(items.iter().copied());
        self.client.create(&paths::join(&self.path, name), &data).sequential().await?;
        Ok(())
    }

    async fn wait_for_room(&self, max: usize) -> Result<()> {
        loop {
            let look = || self.client.get_children(&self.path).watch();
            let (names, changed) = until_answered(&self.client, look).await?;
            if names.len() < max {
                return Ok(());
            }
            fired(changed.await)?;
        }
    }

    pub(crate) async fn names(&self) -> Result<Vec<String>> {
        Ok(names::in_order(
            self.kind,
            until_answered(&self.client, || self.client.get_children(&self.path)).await?,
        ))
    }

    fn consume<F, Fut, E>(&self, consume: F) -> Consumer
    where
        F: FnMut(Bytes) -> Fut + Send + 'static,
        Fut: Future<Output = std::result::Result<(), E>> + Send,
        E: std::fmt::Display + Send,
    {
        Consumer::start(self.clone(), consume)
    }
}

macro_rules! queue {
    ($queue:ident) => {
        impl $queue {
            /// Takes items out, one after the other, until the [`Consumer`] is closed or dropped. A panic of the
            /// function counts as a failure.
            pub fn consume<F, Fut, E>(&self, consume: F) -> Consumer
            where
                F: FnMut(Bytes) -> Fut + Send + 'static,
                Fut: Future<Output = std::result::Result<(), E>> + Send,
                E: std::fmt::Display + Send,
            {
                self.0.consume(consume)
            }

            /// Reads the number of items.
            ///
            /// # Errors
            /// Those of getChildren.
            pub async fn len(&self) -> Result<usize> {
                Ok(self.0.names().await?.len())
            }

            /// Reads whether there are no items.
            ///
            /// # Errors
            /// Those of getChildren.
            pub async fn is_empty(&self) -> Result<bool> {
                Ok(self.len().await? == 0)
            }
        }
    };
}

/// A queue whose items come out in the order in which they were put in. Curator's `DistributedQueue`.
#[derive(Debug, Clone)]
pub struct DistributedQueue(Queue);

/// A queue whose items have ids, by which they can be removed. Curator's `DistributedIdQueue`.
#[derive(Debug, Clone)]
pub struct DistributedIdQueue(Queue);

/// A queue whose items come out by priority. Curator's `DistributedPriorityQueue`.
#[derive(Debug, Clone)]
pub struct DistributedPriorityQueue(Queue);

/// A queue whose items come out when they are due. Curator's `DistributedDelayQueue`.
#[derive(Debug, Clone)]
pub struct DistributedDelayQueue(Queue);

queue!(DistributedQueue);
queue!(DistributedIdQueue);
queue!(DistributedPriorityQueue);
queue!(DistributedDelayQueue);

impl DistributedQueue {
    /// Options of a queue at `path`, whose znode is created if it does not exist. They also make the queues of the
    /// other kinds.
    pub fn builder(client: &Client, path: &str) -> QueueBuilder {
        QueueBuilder {
            client: client.clone(),
            path: path.to_owned(),
            lock_path: None,
            max_items: None,
            error_mode: ErrorMode::default(),
            retry_after: RETRY_AFTER,
        }
    }

    /// Puts an item at the end.
    ///
    /// # Errors
    /// Those of create; [`ConnectionLoss`](ostler_client::Error::ConnectionLoss): it may be in the queue or not.
    pub async fn put(&self, item: impl AsRef<[u8]>) -> Result<()> {
        self.0.put(&names::plain(), &[item.as_ref()]).await
    }

    /// Puts several items at the end as one znode: one consumer gets all of them.
    ///
    /// # Errors
    /// Those of [`put`](DistributedQueue::put).
    pub async fn put_multi(&self, items: &[&[u8]]) -> Result<()> {
        self.0.put(&names::plain(), items).await
    }
}

impl DistributedIdQueue {
    /// Puts an item at the end. Slashes and bars in an id become underscores; ids need not be unique.
    ///
    /// # Errors
    /// Those of create; [`ConnectionLoss`](ostler_client::Error::ConnectionLoss): it may be in the queue or not.
    pub async fn put(&self, item: impl AsRef<[u8]>, id: &str) -> Result<()> {
        self.0.put(&names::with_id(id), &[item.as_ref()]).await
    }

    /// Removes the items with this id that are not being consumed; returns their number. Ids that differ only in
    /// slashes, bars and underscores are the same.
    ///
    /// # Errors
    /// Those of getChildren and delete.
    pub async fn remove(&self, id: &str) -> Result<usize> {
        let id = names::id_in_name(id);
        let mut removed = 0;
        for name in self.0.names().await? {
            if names::id(&name) == id && take(&self.0, &name).await? {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

impl DistributedPriorityQueue {
    /// Puts an item in. Items with a lower `priority` come out first.
    ///
    /// # Errors
    /// Those of create; [`ConnectionLoss`](ostler_client::Error::ConnectionLoss): it may be in the queue or not.
    pub async fn put(&self, item: impl AsRef<[u8]>, priority: i32) -> Result<()> {
        self.0.put(&names::with_priority(priority), &[item.as_ref()]).await
    }
}

impl DistributedDelayQueue {
    /// Puts an item in that comes out at `due` at the earliest, by the consumers' wall clocks.
    ///
    /// # Errors
    /// Those of create; [`ConnectionLoss`](ostler_client::Error::ConnectionLoss): it may be in the queue or not.
    pub async fn put(&self, item: impl AsRef<[u8]>, due: SystemTime) -> Result<()> {
        self.0.put(&names::with_delay(due), &[item.as_ref()]).await
    }
}
