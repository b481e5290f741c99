//! One holder at a time, in the order of arrival.

use super::{
    owner::{Holdings, Owner},
    revocation,
};
use crate::{
    background::TaskGuard,
    error::Result,
    fencing::{Fence, FencedMulti, Token},
    line::{self, PlaceSpec, QueuePlace, Turn},
    line_order::position,
};
use ostler_client::{Client, Session};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// The word in the names of a mutex's znodes.
pub(crate) const WORD: &str = "lock-";

/// A lock that one holder has at a time, in the order of arrival. Curator's `InterProcessMutex`: the same znodes, so
/// that Java and Rust compete for one lock. Clones are the same lock.
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
///     guard.multi().set_data("/state", b"new").commit().await?;
///     guard.release().await?;
/// }
/// // To get it again while it is held, say who asks.
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

    /// Data for the znodes of this handle's acquisitions; empty unless said.
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> InterProcessMutex {
        self.data = data.into().into();
        self
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits for the lock, and for a session if the client has none.
    ///
    /// # Errors
    /// The client's: what forbids the znode, and connection trouble that lasts longer than its retry policy.
    pub async fn acquire(&self) -> Result<MutexGuard> {
        Ok(MutexGuard { holding: Arc::new(self.wait().await?) })
    }

    /// Waits for the lock, but no longer than `limit`; `None` if it was not to be had.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMutex::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<MutexGuard>> {
        // Dropped when the time is over, which leaves the queue.
        timeout(limit, self.acquire()).await.ok().transpose()
    }

    /// Waits for the lock, unless this owner holds it, through this lock or a clone: then it has it once more, and it
    /// is released with the last of its guards.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMutex::acquire).
    pub async fn acquire_as(&self, owner: &Owner) -> Result<MutexGuard> {
        Ok(MutexGuard { holding: self.holdings.share(owner, self.wait()).await? })
    }

    /// [`acquire_as`](InterProcessMutex::acquire_as), but no longer than `limit`.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMutex::acquire).
    pub async fn acquire_as_within(&self, owner: &Owner, limit: Duration) -> Result<Option<MutexGuard>> {
        timeout(limit, self.acquire_as(owner)).await.ok().transpose()
    }

    /// Whether the owner holds it, through this lock or a clone.
    pub fn is_held_by(&self, owner: &Owner) -> bool {
        self.holdings.held(owner).is_some()
    }

    /// The znodes of the holder and of those who wait, in their order.
    ///
    /// # Errors
    /// The client's.
    pub async fn participant_nodes(&self) -> Result<Vec<String>> {
        line::participant_nodes(&self.client, &self.path, WORD).await
    }

    async fn wait(&self) -> Result<Holding> {
        let wait = |session| async move { wait_in_line(&session, &self.path, &self.data, None).await };
        Ok(Holding(line::in_a_session(&self.client, wait).await?))
    }
}

/// A place in a mutex's queue whose turn has come.
pub(crate) async fn wait_in_line(
    session: &Session,
    path: &str,
    data: &[u8],
    running: Option<&TaskGuard>,
) -> Result<QueuePlace> {
    loop {
        let line = PlaceSpec { path, word: WORD, data };
        let mut place = match running {
            Some(running) => QueuePlace::take_while(session, line, running).await?,
            None => QueuePlace::take_for_turn(session, line).await?,
        };
        match place.turn(&[WORD], |queue, mine| position(queue, mine, WORD)).await? {
            Turn::Ours => return Ok(place),
            Turn::Gone => place.forget(),
        }
    }
}

/// The lock, held. Dropped, it is released in the background.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct MutexGuard {
    holding: Arc<Holding>,
}

impl MutexGuard {
    /// What holding it means to servers and other stores.
    pub fn fence(&self) -> &Fence {
        self.holding.0.fence()
    }

    /// A number that grows from holder to holder.
    pub fn token(&self) -> Token {
        self.fence().token()
    }

    /// The path of the znode by which it is held.
    pub fn node(&self) -> &str {
        self.fence().node()
    }

    /// [`Fence::is_held`].
    pub fn is_held(&self) -> bool {
        self.fence().is_held()
    }

    /// [`Fence::multi`].
    pub fn multi(&self) -> FencedMulti<'_> {
        self.fence().multi()
    }

    /// [`Fence::lost`].
    pub async fn lost(&self) {
        self.fence().lost().await;
    }

    /// Holds it once more: it is released when all guards are.
    pub fn again(&self) -> MutexGuard {
        MutexGuard { holding: self.holding.clone() }
    }

    /// Waits until somebody asks its holder to give it up, by [`attempt_revoke`](super::attempt_revoke) or Curator's
    /// `Revoker`. What the holder does about it is up to the holder.
    ///
    /// # Errors
    /// [`Error::NotHeld`](crate::Error::NotHeld) if it is lost before that; the client's errors.
    pub async fn revocation_requested(&self) -> Result<()> {
        revocation::requested(self.fence()).await
    }

    /// Gives it up, and waits until others can have it. With other guards of the same owner left, it stays held.
    ///
    /// # Errors
    /// The client's. It is given up nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        match Arc::into_inner(self.holding) {
            Some(holding) => holding.0.leave().await,
            None => Ok(()),
        }
    }
}
