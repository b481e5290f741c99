//! Queues to put items in.

use crate::{
    queue::{
        Consumer,
        consumer::{Consumption, take},
        items,
        names::{self, Kind},
    },
    until_answered::{fired, until_answered},
};
use bytes::Bytes;
use ostler_client::{Client, Result, paths};
use std::time::{Duration, SystemTime};

/// Long enough for what fails always to be no burden.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What becomes of an item whose consumer says that it has failed. Without a lock path it is gone already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorMode {
    /// It is put back with its id or its priority, behind all others that have this priority. In a delay queue it is
    /// [due again later](QueueBuilder::retry_after).
    ///
    /// Curator keeps the id only. There an item without its priority comes before all others from then on, and one
    /// without its time is due at once and before all others.
    #[default]
    Requeue,
    /// It is deleted.
    Delete,
}

/// Describes a queue.
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

/// What all queues have in common.
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
    /// A queue at `path`, which is created if it is not there.
    pub fn new(client: &Client, path: &str) -> QueueBuilder {
        QueueBuilder {
            client: client.clone(),
            path: path.to_owned(),
            lock_path: None,
            max_items: None,
            error_mode: ErrorMode::default(),
            retry_after: RETRY_AFTER,
        }
    }

    /// Delivers at least once instead of once at most: while an item is consumed there is an ephemeral znode for it
    /// below `path`, and the item is deleted after that. All consumers of a queue must agree on it.
    pub fn lock_path(mut self, path: &str) -> Self {
        self.lock_path = Some(path.to_owned());
        self
    }

    /// Has `put` wait while there is this number of items. Several producers at once can exceed it a little.
    pub fn max_items(mut self, items: usize) -> Self {
        self.max_items = Some(items.max(1));
        self
    }

    /// What becomes of an item whose consumer fails. Default: it is put back.
    pub fn error_mode(mut self, mode: ErrorMode) -> Self {
        self.error_mode = mode;
        self
    }

    /// How long after its consumer has failed an item of a delay queue is due again. Default: one second. The other
    /// queues know no time, and give the item out again in its turn.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = delay;
        self
    }

    /// A queue whose items come out in the order in which they were put in.
    ///
    /// # Errors
    /// Those of create.
    pub async fn build(self) -> Result<DistributedQueue> {
        Ok(DistributedQueue(self.start(Kind::Plain).await?))
    }

    /// A queue whose items can be removed by their ids.
    ///
    /// # Errors
    /// Those of create.
    pub async fn build_id(self) -> Result<DistributedIdQueue> {
        Ok(DistributedIdQueue(self.start(Kind::Id).await?))
    }

    /// A queue whose items come out by priority, the lowest number first. A consumer looks for newer items after it
    /// has taken `before_refresh`: few of them cost more reads, many let urgent items wait. Those that have failed and
    /// were put back do not count, or one that always fails would keep all after it waiting.
    ///
    /// # Errors
    /// Those of create.
    pub async fn build_priority(self, before_refresh: usize) -> Result<DistributedPriorityQueue> {
        let kind = Kind::Priority { before_refresh: before_refresh.max(1) };
        Ok(DistributedPriorityQueue(self.start(kind).await?))
    }

    /// A queue whose items come out when their time has come, by the consumers' wall clocks.
    ///
    /// # Errors
    /// Those of create.
    pub async fn build_delay(self) -> Result<DistributedDelayQueue> {
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
        Consumer::start(Consumption::new(self.clone()), consume)
    }
}

macro_rules! queue {
    ($queue:ident) => {
        impl $queue {
            /// Begins to take items out, one after the other, for as long as the [`Consumer`] lives. A panic of the
            /// function is a failure like another.
            ///
            /// # Panics
            /// Outside of a tokio runtime.
            pub fn consume<F, Fut, E>(&self, consume: F) -> Consumer
            where
                F: FnMut(Bytes) -> Fut + Send + 'static,
                Fut: Future<Output = std::result::Result<(), E>> + Send,
                E: std::fmt::Display + Send,
            {
                self.0.consume(consume)
            }

            /// How many items there are.
            ///
            /// # Errors
            /// Those of getChildren.
            pub async fn len(&self) -> Result<usize> {
                Ok(self.0.names().await?.len())
            }

            /// Whether there are none.
            ///
            /// # Errors
            /// Those of getChildren.
            pub async fn is_empty(&self) -> Result<bool> {
                Ok(self.len().await? == 0)
            }
        }
    };
}

/// Items come out in the order in which they were put in. Curator's `DistributedQueue`.
#[derive(Debug, Clone)]
pub struct DistributedQueue(Queue);

/// Items have ids, and can be removed by them. Curator's `DistributedIdQueue`.
#[derive(Debug, Clone)]
pub struct DistributedIdQueue(Queue);

/// Items come out by priority. Curator's `DistributedPriorityQueue`.
#[derive(Debug, Clone)]
pub struct DistributedPriorityQueue(Queue);

/// Items come out when their time has come. Curator's `DistributedDelayQueue`.
#[derive(Debug, Clone)]
pub struct DistributedDelayQueue(Queue);

queue!(DistributedQueue);
queue!(DistributedIdQueue);
queue!(DistributedPriorityQueue);
queue!(DistributedDelayQueue);

impl DistributedQueue {
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

    /// Removes the items with this id that nobody is consuming; gives how many. Ids that differ in slashes, bars and
    /// underscores alone are the same.
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
    /// Puts an item in. Those with lower numbers come out first.
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
