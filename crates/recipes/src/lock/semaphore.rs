//! The semaphore: a number of leases, given out in the order of arrival.

use super::mutex::{WORD as MUTEX, wait_for_place};
use crate::{
    counter::{CountChanges, SharedCount},
    error::Result,
    fencing::Fence,
    queue_place::{self, PlaceSpec, QueuePlace},
    session_retry,
    until_answered::event_unless_removed,
};
use ostler_client::{Bytes, Client, RecipeTag, Session, paths};
use std::{future::pending, ops::Deref, sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};

/// The word in the names of leases.
const WORD: &str = "lease-";

/// The number of leases that a semaphore gives out at a time. Negative numbers count as zero.
///
/// It is made from
/// - a `u32`: a fixed number. All programs that use the semaphore must give the same.
/// - a [`SharedCount`] that all programs share. Data that is no number counts as zero. The semaphore keeps the count
///   followed, also if the program drops its own handle. After [`SharedCount::close`]
///   changes by other clients are not seen.
/// - a `watch::Receiver<i32>`: another source that all programs watch. When its sender is dropped, the last value stays
///   in force.
#[derive(Debug, Clone)]
pub struct SemaphoreSize(Source);

#[derive(Debug, Clone)]
enum Source {
    Fixed(u32),
    Shared {
        changes: CountChanges,
        /// Keeps the count followed.
        _count: SharedCount,
    },
    Watched(watch::Receiver<i32>),
}

impl From<u32> for SemaphoreSize {
    fn from(leases: u32) -> SemaphoreSize {
        SemaphoreSize(Source::Fixed(leases))
    }
}

impl From<SharedCount> for SemaphoreSize {
    fn from(leases: SharedCount) -> SemaphoreSize {
        SemaphoreSize(Source::Shared { changes: leases.changes(), _count: leases })
    }
}

impl From<&SharedCount> for SemaphoreSize {
    fn from(leases: &SharedCount) -> SemaphoreSize {
        leases.clone().into()
    }
}

impl From<watch::Receiver<i32>> for SemaphoreSize {
    fn from(leases: watch::Receiver<i32>) -> SemaphoreSize {
        SemaphoreSize(Source::Watched(leases))
    }
}

impl SemaphoreSize {
    /// The size now. A later change ends the next call of `changed`.
    fn now(&mut self) -> usize {
        let leases = match &mut self.0 {
            Source::Fixed(leases) => return *leases as usize,
            Source::Shared { changes, .. } => changes.now().unwrap_or_else(|error| {
                tracing::warn!(%error, "a semaphore's size cannot be read; it gives out no lease");
                0
            }),
            Source::Watched(leases) => *leases.borrow_and_update(),
        };
        usize::try_from(leases).unwrap_or(0)
    }

    async fn changed(&mut self) {
        let has_source = match &mut self.0 {
            Source::Fixed(_) => false,
            Source::Shared { changes, .. } => changes.next().await.is_some(),
            Source::Watched(leases) => leases.changed().await.is_ok(),
        };
        if !has_source {
            // The size does not change any more.
            pending::<()>().await;
        }
    }
}

/// A number of leases, given out in the order of arrival. This is Curator's `InterProcessSemaphoreV2`, with the same
/// znodes: `locks`, a mutex for the contender that is next, and `leases`.
///
/// A smaller size takes no lease away: no new lease is given out until the leases fit the size. With a [`SharedCount`]
/// as the size all programs see a change, but not at the same moment.
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

/// The end of the wait for a lease.
enum LeaseWait {
    Leased(QueuePlace),
    /// Another client has deleted this contender's znode.
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

    /// The data of the znodes of this handle's leases; empty by default.
    #[must_use]
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> InterProcessSemaphore {
        self.data = data.into().into();
        self
    }

    /// Waits for a lease. Each call waits for another one, also in a task that holds leases: if the task holds all of them,
    /// it waits for itself.
    ///
    /// # Errors
    /// The client's errors: the server refuses the znodes, or connection trouble lasts longer than the retry policy
    /// allows.
    pub async fn acquire(&self) -> Result<Lease> {
        Ok(Lease { place: session_retry::in_a_session(&self.client, |session| self.wait(session)).await? })
    }

    /// Waits for this number of leases. If one cannot be acquired, the others are given back.
    ///
    /// The leases are acquired one by one. So two calls can wait for each other: with a size of two, each of two
    /// `acquire_many(2)` can have one lease. Use [`acquire_many_within`](InterProcessSemaphore::acquire_many_within), or
    /// a mutex around the call.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphore::acquire).
    pub async fn acquire_many(&self, leases: usize) -> Result<Vec<Lease>> {
        let mut acquired: Vec<Lease> = Vec::new();
        while acquired.len() < leases {
            acquired.push(self.acquire().await?);
            // Leases of a session that is over are lost.
            acquired.retain(|lease| lease.fence().is_held());
        }
        Ok(acquired)
    }

    /// Waits for a lease, at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphore::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<Lease>> {
        timeout(limit, self.acquire()).await.ok().transpose()
    }

    /// Waits for this number of leases, at most for `limit` in all; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphore::acquire).
    pub async fn acquire_many_within(&self, leases: usize, limit: Duration) -> Result<Option<Vec<Lease>>> {
        timeout(limit, self.acquire_many(leases)).await.ok().transpose()
    }

    /// The paths of the leases' znodes, in the order in which they were asked for. If a contender waits for a lease,
    /// its znode is among them, so there can be more than the size.
    ///
    /// # Errors
    /// The client's errors.
    pub async fn participant_nodes(&self) -> Result<Vec<String>> {
        queue_place::participant_nodes(&self.client, &self.leases, WORD).await
    }

    async fn wait(&self, session: Session) -> Result<QueuePlace> {
        let mut size = self.size.clone();
        loop {
            let queue = PlaceSpec { path: &self.locks, word: MUTEX, data: &[], tag: RecipeTag::Semaphore };
            let lock = wait_for_place(&session, queue, None).await?;
            let waited = self.wait_as_next(&session, &mut size).await?;
            match lock.leave().await {
                // The lease is acquired. If the release of the mutex fails, it goes on in the background.
                Err(crate::Error::Client(error)) if error.is_connection_trouble() => {}
                left => left?,
            }
            if let LeaseWait::Leased(place) = waited {
                return Ok(place);
            }
        }
    }

    /// Waits for a lease. The holder of the mutex waits here, so a lease that is given back wakes one contender.
    async fn wait_as_next(&self, session: &Session, size: &mut SemaphoreSize) -> Result<LeaseWait> {
        let spec = PlaceSpec { path: &self.leases, word: WORD, data: &self.data, tag: RecipeTag::Semaphore };
        let mut place = QueuePlace::take(session, spec).await?;
        loop {
            let watched = session.get_children(&self.leases).watch().await;
            let (names, changed) = match watched {
                Err(error) if error.is_no_node() => break,
                watched => watched?,
            };
            // Leases after this one do not count: if another client deletes a contender's znode in the mutex, two contenders
            // wait here, and would wait for each other. Curator counts all of them.
            let Some(before) = place.count_before(names, WORD).await? else { break };
            if before < size.now() {
                place.fence().begin().await?;
                return Ok(LeaseWait::Leased(place));
            }
            // After each of these the leases are read again.
            tokio::select! {
                biased;
                changed = event_unless_removed(changed) => drop(changed?),
                () = size.changed() => {}
            }
        }
        place.forget();
        Ok(LeaseWait::Gone)
    }
}

/// A held lease. It is given back in the background when this is dropped.
///
/// It dereferences to its [`Fence`], with token and transactions.
#[derive(Debug)]
#[must_use = "a lease that is dropped is given back"]
pub struct Lease {
    place: QueuePlace,
}

impl Deref for Lease {
    type Target = Fence;

    fn deref(&self) -> &Fence {
        self.fence()
    }
}

impl Lease {
    /// The holder's fence.
    pub fn fence(&self) -> &Fence {
        self.place.fence()
    }

    /// The name of the lease's znode.
    pub fn node_name(&self) -> &str {
        self.place.name()
    }

    /// Reads the data of the lease's znode.
    ///
    /// # Errors
    /// The client's errors.
    pub async fn data(&self) -> Result<Bytes> {
        Ok(self.place.session().get_data(self.place.path()).await?.0)
    }

    /// Gives the lease back, and waits until its znode is deleted.
    ///
    /// # Errors
    /// The client's errors. The lease is given back nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        self.place.leave().await
    }
}
