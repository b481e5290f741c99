//! A queue with the methods of the JDK's queues.

use crate::until_answered::{disconnected, fired, until_answered};
use ostler_client::{Bytes, Client, Result, Stat, Version, Watch, paths};
use std::{future::pending, time::Duration};
use tokio::time::{Instant, sleep_until, timeout_at};

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
    /// The time is over, and there is no connection.
    Unknown,
}

impl SimpleDistributedQueue {
    /// The queue at `path`, which is created with its first item.
    pub fn new(client: &Client, path: &str) -> SimpleDistributedQueue {
        SimpleDistributedQueue { client: client.clone(), path: path.to_owned() }
    }

    /// Puts an item at the end.
    ///
    /// # Errors
    /// Those of create; [`ConnectionLoss`](ostler_client::Error::ConnectionLoss): it may be in the queue or not.
    pub async fn offer(&self, item: impl AsRef<[u8]>) -> Result<()> {
        let path = paths::join(&self.path, PREFIX);
        self.client.create(&path, item.as_ref()).sequential().creating_container_parents().await?;
        Ok(())
    }

    /// Reads the first item, which stays in the queue; `None` if there is none.
    ///
    /// # Errors
    /// Those of getChildren and getData.
    pub async fn peek(&self) -> Result<Option<Bytes>> {
        for name in self.names().await? {
            if let Some((data, _)) = self.read(&name).await? {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Takes the first item; `None` if there is none.
    ///
    /// # Errors
    /// Those of getChildren, getData and delete; [`ConnectionLoss`](ostler_client::Error::ConnectionLoss): an item may
    /// be taken from the queue and lost, if the connection is lost just when it is deleted.
    pub async fn poll(&self) -> Result<Option<Bytes>> {
        for name in self.names().await? {
            let Some(found) = self.read(&name).await? else { continue };
            if let Some(item) = self.remove(&name, found).await? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Takes the first item, and waits for one at most for `limit`; `None` if there is none, or no connection, by then.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// Those of [`poll`](SimpleDistributedQueue::poll).
    pub async fn poll_within(&self, limit: Duration) -> Result<Option<Bytes>> {
        // None: that is further than the clock goes.
        let deadline = Instant::now().checked_add(limit);
        loop {
            // An item that is being taken must not be dropped by the clock, so only the waiting ends with it.
            match (self.head(deadline).await?, deadline) {
                (Head::Item(item), _) => return Ok(Some(item)),
                (Head::Empty(changed), None) => fired(changed.await)?,
                (Head::Empty(changed), Some(deadline)) => match timeout_at(deadline, changed).await {
                    Ok(changed) => fired(changed)?,
                    Err(_) => return Ok(None),
                },
                (Head::Unknown, _) => return Ok(None),
            }
        }
    }

    /// Takes the first item, and waits until there is one. If the future is dropped while it waits, it takes none. If
    /// it is dropped while it takes an item, that item can be lost.
    ///
    /// # Errors
    /// Those of [`poll`](SimpleDistributedQueue::poll).
    pub async fn take(&self) -> Result<Bytes> {
        loop {
            match self.head(None).await? {
                Head::Item(item) => return Ok(item),
                Head::Empty(changed) => fired(changed.await)?,
                Head::Unknown => {}
            }
        }
    }

    async fn head(&self, deadline: Option<Instant>) -> Result<Head> {
        let Some((names, changed)) = self.unless_late(deadline, self.look()).await? else {
            return Ok(Head::Unknown);
        };
        for name in names {
            let Some(read) = self.unless_late(deadline, self.read(&name)).await? else {
                return Ok(Head::Unknown);
            };
            let Some(found) = read else { continue };
            if let Some(item) = self.remove(&name, found).await? {
                return Ok(Head::Item(item));
            }
        }
        Ok(Head::Empty(changed))
    }

    /// The answer; `None` if it has not come at the deadline, and there is no connection by which it could.
    async fn unless_late<T>(
        &self,
        deadline: Option<Instant>,
        ask: impl Future<Output = Result<T>>,
    ) -> Result<Option<T>> {
        let late = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => pending().await,
            }
            disconnected(&self.client).await;
        };
        tokio::select! {
            biased;
            answer = ask => answer.map(Some),
            () = late => Ok(None),
        }
    }

    /// The items, and what tells of more.
    async fn look(&self) -> Result<(Vec<String>, Watch)> {
        loop {
            let look = || self.client.get_children(&self.path).watch();
            match until_answered(&self.client, look).await {
                Ok((names, changed)) => return Ok((sorted(names), changed)),
                Err(error) if error.is_no_node() => {}
                Err(error) => return Err(error),
            }
            let look = || self.client.exists(&self.path).watch();
            if let (None, created) = until_answered(&self.client, look).await? {
                return Ok((Vec::new(), created));
            }
        }
    }

    /// An item; `None` if it is gone.
    async fn read(&self, name: &str) -> Result<Option<(Bytes, Stat)>> {
        let path = paths::join(&self.path, name);
        match until_answered(&self.client, || self.client.get_data(&path)).await {
            Err(error) if error.is_no_node() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Deletes an item that was read; `None` if another one has.
    async fn remove(&self, name: &str, (data, stat): (Bytes, Stat)) -> Result<Option<Bytes>> {
        match self.client.delete(&paths::join(&self.path, name)).version(Version::Exactly(stat.version)).await
        {
            Ok(()) => Ok(Some(data)),
            Err(error) if error.is_no_node() || error.is_bad_version() => Ok(None),
            Err(error) => Err(error),
        }
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
