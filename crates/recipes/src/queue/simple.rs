//! A queue with the methods of the JDK's.

use crate::until_answered::until_answered;
use ostler_client::{Bytes, Client, Error, Result, Watch, paths};
use std::time::Duration;

const PREFIX: &str = "qn-";

/// A queue without a consumer of its own. Curator's `SimpleDistributedQueue`; its items are the znodes' plain data.
///
/// The [warning](crate::queue) about queues in ZooKeeper holds.
#[derive(Debug, Clone)]
pub struct SimpleDistributedQueue {
    client: Client,
    path: String,
}

/// An item, and whether it was taken.
enum Head {
    Item(Bytes),
    /// There is none; the watch tells of the next one.
    Empty(Watch),
}

impl SimpleDistributedQueue {
    /// The queue at `path`, which is created with its first item.
    pub fn new(client: &Client, path: &str) -> SimpleDistributedQueue {
        SimpleDistributedQueue { client: client.clone(), path: path.to_owned() }
    }

    /// Puts an item at the end.
    ///
    /// # Errors
    /// Those of create; [`Error::ConnectionLoss`]: it may be in the queue or not.
    pub async fn offer(&self, item: impl AsRef<[u8]>) -> Result<()> {
        let path = paths::join(&self.path, PREFIX);
        self.client.create(&path, item.as_ref()).sequential().creating_container_parents().await?;
        Ok(())
    }

    /// The first item, which stays; `None` if there is none.
    ///
    /// # Errors
    /// Those of getChildren and getData.
    pub async fn peek(&self) -> Result<Option<Bytes>> {
        for name in self.names().await? {
            let path = paths::join(&self.path, &name);
            match until_answered(&self.client, || self.client.get_data(&path)).await {
                Err(error) if error.is_no_node() => {}
                read => return read.map(|(data, _)| Some(data)),
            }
        }
        Ok(None)
    }

    /// Takes the first item; `None` if there is none.
    ///
    /// # Errors
    /// Those of getChildren, getData and delete; [`Error::ConnectionLoss`]: an item may be taken from the queue and
    /// lost, if the connection is lost just when it is deleted.
    pub async fn poll(&self) -> Result<Option<Bytes>> {
        let names = self.names().await?;
        self.take_first(names).await
    }

    /// Takes the first item, and waits for it no longer than `limit`; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`poll`](SimpleDistributedQueue::poll).
    pub async fn poll_at_most(&self, limit: Duration) -> Result<Option<Bytes>> {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            // An item that is being taken must not be dropped by the clock, so only the waiting ends with it.
            match self.head().await? {
                Head::Item(item) => return Ok(Some(item)),
                Head::Empty(changed) => match tokio::time::timeout_at(deadline, changed).await {
                    Ok(changed) => drop(changed.map_err(|_| Error::Closed)?),
                    Err(_) => return Ok(None),
                },
            }
        }
    }

    /// Takes the first item, and waits for it. Dropped while it waits, it takes none; dropped while it takes one, that
    /// can be lost.
    ///
    /// # Errors
    /// Those of [`poll`](SimpleDistributedQueue::poll).
    pub async fn take(&self) -> Result<Bytes> {
        loop {
            match self.head().await? {
                Head::Item(item) => return Ok(item),
                Head::Empty(changed) => drop(changed.await.map_err(|_| Error::Closed)?),
            }
        }
    }

    async fn head(&self) -> Result<Head> {
        loop {
            let look = || self.client.get_children(&self.path).watch();
            match until_answered(&self.client, look).await {
                Ok((names, changed)) => {
                    if let Some(item) = self.take_first(sorted(names)).await? {
                        return Ok(Head::Item(item));
                    }
                    return Ok(Head::Empty(changed));
                }
                Err(error) if error.is_no_node() => {
                    let look = || self.client.exists(&self.path).watch();
                    if let (None, created) = until_answered(&self.client, look).await? {
                        return Ok(Head::Empty(created));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn take_first(&self, names: Vec<String>) -> Result<Option<Bytes>> {
        for name in names {
            let path = paths::join(&self.path, &name);
            let (data, stat) = match until_answered(&self.client, || self.client.get_data(&path)).await {
                Err(error) if error.is_no_node() => continue,
                read => read?,
            };
            match self.client.delete(&path).version(stat.version).await {
                Ok(()) => return Ok(Some(data)),
                Err(error) if error.is_no_node() || error.is_bad_version() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn names(&self) -> Result<Vec<String>> {
        match until_answered(&self.client, || self.client.get_children(&self.path)).await {
            Err(error) if error.is_no_node() => Ok(Vec::new()),
            names => names.map(sorted),
        }
    }
}

fn sorted(names: Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().filter(|name| name.starts_with(PREFIX)).collect();
    names.sort_unstable();
    names
}
