//! So many holders at a time.

use super::mutex::wait_in_line;
use crate::{
    counter::{CountChanges, SharedCount},
    error::Result,
    fencing::{Fence, FencedMulti, Token},
    line::{self, PlaceSpec, QueuePlace},
};
use ostler_client::{Bytes, Client, Session, paths};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};

/// The word in the names of leases.
const WORD: &str = "lease-";

/// How many leases there are at a time.
#[derive(Debug, Clone)]
pub enum SemaphoreSize {
    /// Always so many. All who use the semaphore must say the same.
    Fixed(u32),
    /// As many as a [`SharedCount`] says, which all who use the semaphore share. Below zero is none, and so is data
    /// that is no count. When the count is dropped, what it said last stays.
    Shared(CountChanges),
    /// As many as something else says that all of them watch. Below zero is none.
    Watched(watch::Receiver<i32>),
}

impl From<u32> for SemaphoreSize {
    fn from(leases: u32) -> SemaphoreSize {
        SemaphoreSize::Fixed(leases)
    }
}

impl From<&SharedCount> for SemaphoreSize {
    fn from(leases: &SharedCount) -> SemaphoreSize {
        SemaphoreSize::Shared(leases.changes())
    }
}

impl From<watch::Receiver<i32>> for SemaphoreSize {
    fn from(leases: watch::Receiver<i32>) -> SemaphoreSize {
        SemaphoreSize::Watched(leases)
    }
}

impl SemaphoreSize {
    /// The size now; a later change wakes `changed`.
    fn now(&mut self) -> usize {
        let leases = match self {
            SemaphoreSize::Fixed(leases) => return *leases as usize,
            SemaphoreSize::Shared(leases) => leases.now().unwrap_or_else(|error| {
                tracing::warn!(%error, "a semaphore without a size gives out no lease");
                0
            }),
            SemaphoreSize::Watched(leases) => *leases.borrow_and_update(),
        };
        usize::try_from(leases).unwrap_or(0)
    }

    async fn changed(&mut self) {
        let is_counted = match self {
            SemaphoreSize::Fixed(_) => false,
            SemaphoreSize::Shared(leases) => leases.next().await.is_some(),
            SemaphoreSize::Watched(leases) => leases.changed().await.is_ok(),
        };
        if !is_counted {
            // Nobody counts any more.
            pending::<()>().await;
        }
    }
}

/// A number of leases, given out in the order of arrival. Curator's `InterProcessSemaphoreV2`, with its znodes:
/// `locks`, a mutex for whoever is next, and `leases`.
///
/// A smaller size takes no lease away: fewer are given out until it is met. With a [`SharedCount`] for its size
/// everybody sees a change, though not at the same moment.
///
/// ```
/// # use ostler_recipes::{counter::SharedCount, lock::InterProcessSemaphore};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// let size = SharedCount::start(&client, "/semaphore-size", 2).await?;
/// let semaphore = InterProcessSemaphore::new(&client, "/semaphore", &size);
/// let leases = semaphore.acquire_many(2).await?;
/// size.set(3).await?;
/// let third = semaphore.acquire().await?;
/// # drop((leases, third));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct InterProcessSemaphore {
    client: Client,
    locks: Arc<str>,
    leases: Arc<str>,
    size: SemaphoreSize,
    data: Arc<[u8]>,
}

enum Wait {
    Leased(QueuePlace),
    /// Somebody has deleted our znode.
    Gone,
}

impl InterProcessSemaphore {
    /// The semaphore at `path`.
    pub fn new(client: &Client, path: &str, size: impl Into<SemaphoreSize>) -> InterProcessSemaphore {
        InterProcessSemaphore {
            client: client.clone(),
            locks: paths::join(path, "locks").into(),
            leases: paths::join(path, "leases").into(),
            size: size.into(),
            data: Arc::default(),
        }
    }

    /// Data for the znodes of this handle's leases; empty unless said.
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> InterProcessSemaphore {
        self.data = data.into().into();
        self
    }

    /// Waits for a lease.
    ///
    /// # Errors
    /// The client's: what forbids the znodes, and connection trouble that lasts longer than its retry policy.
    pub async fn acquire(&self) -> Result<Lease> {
        Ok(Lease { place: line::in_a_session(&self.client, |session| self.wait(session)).await? })
    }

    /// Waits for so many leases. Either all are had, or those that were are returned.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphore::acquire).
    pub async fn acquire_many(&self, leases: usize) -> Result<Vec<Lease>> {
        let mut acquired: Vec<Lease> = Vec::new();
        while acquired.len() < leases {
            acquired.push(self.acquire().await?);
            // Those of a session that is over are none any more.
            acquired.retain(|lease| lease.fence().is_held());
        }
        Ok(acquired)
    }

    /// Waits for a lease, but no longer than `limit`; `None` if there was none to be had.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphore::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<Lease>> {
        timeout(limit, self.acquire()).await.ok().transpose()
    }

    /// Waits for so many leases, but no longer than `limit`; `None` if they were not to be had.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphore::acquire).
    pub async fn acquire_many_within(&self, leases: usize, limit: Duration) -> Result<Option<Vec<Lease>>> {
        timeout(limit, self.acquire_many(leases)).await.ok().transpose()
    }

    /// The znodes of all leases, in the order in which they were asked for; with one that waits, more than the size.
    ///
    /// # Errors
    /// The client's.
    pub async fn participant_nodes(&self) -> Result<Vec<String>> {
        line::participant_nodes(&self.client, &self.leases, WORD).await
    }

    async fn wait(&self, session: Session) -> Result<QueuePlace> {
        let mut size = self.size.clone();
        loop {
            let lock = wait_in_line(&session, &self.locks, &[], None).await?;
            let waited = self.wait_as_next(&session, &mut size).await?;
            match lock.leave().await {
                // The lease is had; the rest is done in the background.
                Err(crate::Error::Client(error)) if error.is_connection_trouble() => {}
                left => left?,
            }
            if let Wait::Leased(place) = waited {
                return Ok(place);
            }
        }
    }

    /// Only whoever has the lock waits here, so a returned lease wakes one contender.
    async fn wait_as_next(&self, session: &Session, size: &mut SemaphoreSize) -> Result<Wait> {
        let line = PlaceSpec { path: &self.leases, word: WORD, data: &self.data };
        let place = QueuePlace::take(session, line).await?;
        loop {
            let watched = session.get_children(&self.leases).watch().await;
            let (names, changed) = match watched {
                Err(error) if error.is_no_node() => break,
                watched => watched?,
            };
            if !names.iter().any(|name| name == place.name()) {
                break;
            }
            if names.len() <= size.now() {
                place.fence().begin().await?;
                return Ok(Wait::Leased(place));
            }
            // Both lead to the same look.
            tokio::select! {
                biased;
                changed = changed => drop(changed?),
                () = size.changed() => {}
            }
        }
        place.forget();
        Ok(Wait::Gone)
    }
}

/// A lease, held. Dropped, it is returned in the background.
#[derive(Debug)]
#[must_use = "a lease that is dropped is returned"]
pub struct Lease {
    place: QueuePlace,
}

impl Lease {
    /// What holding it means to servers and other stores.
    pub fn fence(&self) -> &Fence {
        self.place.fence()
    }

    /// A number that grows from lease to lease.
    pub fn token(&self) -> Token {
        self.fence().token()
    }

    /// [`Fence::is_held`].
    pub fn is_held(&self) -> bool {
        self.fence().is_held()
    }

    /// [`Fence::multi`].
    pub fn multi(&self) -> FencedMulti<'_> {
        self.fence().multi()
    }

    /// The name of its znode.
    pub fn node_name(&self) -> &str {
        self.place.name()
    }

    /// The data of its znode.
    ///
    /// # Errors
    /// The client's.
    pub async fn data(&self) -> Result<Bytes> {
        Ok(self.place.session().get_data(self.place.path()).await?.0)
    }

    /// Returns it, and waits until others can have it.
    ///
    /// # Errors
    /// The client's. It is returned nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        self.place.leave().await
    }
}
