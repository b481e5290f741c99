//! The mutex: a lock that has one holder at a time, in the order of arrival.

use super::{
    owner::{Holdings, Owner},
    revocation,
};
use crate::{
    background::TaskGuard,
    error::Result,
    fencing::Fence,
    queue_order::position_or_next,
    queue_place::{self, PlaceSpec, QueuePlace, Turn},
    session_retry,
};
use ostler_client::{Client, RecipeTag, Session};
use std::{ops::Deref, sync::Arc, time::Duration};
use tokio::time::timeout;

/// The word in the names of a mutex's znodes.
pub(crate) const WORD: &str = "lock-";

/// A lock that has one holder at a time, in the order of arrival. This is Curator's `InterProcessMutex`, with the same
/// znodes: programs in Java and Rust can share one lock. Clones are the same lock.
///
/// ```
/// # use ostler_recipes::lock::{InterProcessMutex, Owner};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// # client.create("/state", b"").await?;
/// let lock = InterProcessMutex::new(&client, "/locks/a");
/// if let Some(guard) = lock.acquire_within(Duration::from_secs(5)).await? {
///     guard.multi().set_data("/state", b"new").await?;
///     guard.release().await?;
/// }
/// // An owner can acquire the lock again while it holds it.
/// let me = Owner::new();
/// let outer = lock.acquire_as(&me).await?;
/// let inner = lock.acquire_as(&me).await?;
/// assert_eq!(outer.token(), inner.token());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct InterProcessMutex {
    client: Client,
    path: Arc<str>,
    data: Arc<[u8]>,
    holdings: Holdings<Holding>,
}

/// One acquisition, shared by the guards of its owner.
#[derive(Debug)]
struct Holding(QueuePlace);

impl AsRef<Fence> for Holding {
    fn as_ref(&self) -> &Fence {
        self.0.fence()
    }
}

impl InterProcessMutex {
    /// The lock at `path`, whose children are its queue. Nothing else may be below it.
    pub fn new(client: &Client, path: &str) -> InterProcessMutex {
        let (data, holdings) = (Arc::default(), Holdings::default());
        InterProcessMutex { client: client.clone(), path: path.into(), data, holdings }
    }

    /// The data of the znodes of this handle's acquisitions; empty by default.
    #[must_use]
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> InterProcessMutex {
        self.data = data.into().into();
        self
    }

    /// The lock's path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits for the lock, and for a session if the client has none.
    ///
    /// Each call is a contender of its own: a task that holds a guard and calls this again waits for itself. In Curator a
    /// thread that holds the lock gets it again at once. Here that is [`acquire_as`](InterProcessMutex::acquire_as) with
    /// one [`Owner`], or [`another_guard`](MutexGuard::another_guard).
    ///
    /// # Errors
    /// The client's errors: the server refuses the znode, or connection trouble lasts longer than the retry policy
    /// allows.
    pub async fn acquire(&self) -> Result<MutexGuard> {
        Ok(MutexGuard { holding: Arc::new(self.wait().await?) })
    }

    /// Waits for the lock, at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMutex::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<MutexGuard>> {
        // The future is dropped at the limit, and so leaves the queue.
        timeout(limit, self.acquire()).await.ok().transpose()
    }

    /// Waits for the lock. If this owner holds it already, through this value or a clone, this returns at once with
    /// another guard. The lock is released with the owner's last guard.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMutex::acquire).
    pub async fn acquire_as(&self, owner: &Owner) -> Result<MutexGuard> {
        Ok(MutexGuard { holding: self.holdings.share(owner, self.wait()).await? })
    }

    /// [`acquire_as`](InterProcessMutex::acquire_as), at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds,
    /// unless the owner holds the lock already.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMutex::acquire).
    pub async fn acquire_as_within(&self, owner: &Owner, limit: Duration) -> Result<Option<MutexGuard>> {
        timeout(limit, self.acquire_as(owner)).await.ok().transpose()
    }

    /// Whether the owner holds the lock, through this value or a clone.
    pub fn is_held_by(&self, owner: &Owner) -> bool {
        self.holdings.is_held(owner)
    }

    /// The paths of the znodes of the holder and of the waiting contenders, in the order of the queue.
    ///
    /// # Errors
    /// The client's errors.
    pub async fn participant_nodes(&self) -> Result<Vec<String>> {
        queue_place::participant_nodes(&self.client, &self.path, WORD).await
    }

    async fn wait(&self) -> Result<Holding> {
        let spec = PlaceSpec { path: &self.path, word: WORD, data: &self.data, tag: RecipeTag::Mutex };
        let wait = |session| async move { wait_for_place(&session, spec, None).await };
        Ok(Holding(session_retry::in_a_session(&self.client, wait).await?))
    }
}

/// Waits until this contender is first in a mutex's queue, and returns its place.
pub(crate) async fn wait_for_place(
    session: &Session,
    spec: PlaceSpec<'_>,
    running: Option<&TaskGuard>,
) -> Result<QueuePlace> {
    loop {
        let mut place = match running {
            Some(running) => QueuePlace::take_while(session, spec, running).await?,
            None => QueuePlace::take_for_turn(session, spec).await?,
        };
        match place.wait_for_turn(&[WORD], |queue, mine| position_or_next(queue, mine, WORD)).await? {
            Turn::Ours => return Ok(place),
            Turn::Gone => place.forget(),
        }
    }
}

/// A held mutex. It is released in the background when its owner's last guard is dropped.
///
/// It dereferences to its [`Fence`], with token and transactions.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct MutexGuard {
    holding: Arc<Holding>,
}

impl Deref for MutexGuard {
    type Target = Fence;

    fn deref(&self) -> &Fence {
        self.fence()
    }
}

impl MutexGuard {
    /// The holder's fence.
    pub fn fence(&self) -> &Fence {
        self.holding.0.fence()
    }

    /// Another guard of the same holder. The lock is released with the last one.
    pub fn another_guard(&self) -> MutexGuard {
        MutexGuard { holding: self.holding.clone() }
    }

    /// Waits until another process asks the holder to release the lock, by [`attempt_revoke`](super::attempt_revoke) or
    /// Curator's `Revoker`. The lock stays held until the holder releases it.
    ///
    /// # Errors
    /// [`Error::NotHeld`](crate::Error::NotHeld) if the lock is lost before that; the client's errors.
    pub async fn revocation_requested(&self) -> Result<()> {
        revocation::requested(self.fence()).await
    }

    /// Releases the lock, and waits until the znode is deleted. If the owner has other guards, the lock stays held.
    ///
    /// # Errors
    /// The client's errors. The lock is released nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        match Arc::into_inner(self.holding) {
            Some(holding) => holding.0.leave().await,
            None => Ok(()),
        }
    }
}
