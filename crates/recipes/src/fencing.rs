//! Fencing: what keeps a holder that was paused, or cut off, from doing harm.
//!
//! A lock tells others to stay away; it cannot stop its holder. A process that stands still between "I hold it" and
//! its write finds, when it goes on, that its session has expired and somebody else holds the lock. Asking the lock
//! once more before the write makes that rarer, never impossible. What helps is that the store refuses.
//!
//! **Writes to ZooKeeper** go through [`Fence::multi`]: the check that the holder's znode is there and the write are
//! one transaction, in the holder's session. Either it is still the holder at that point of the history, or nothing is
//! done.
//!
//! ```
//! # use ostler_recipes::lock::InterProcessMutex;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = ostler_testkit::TestServer::start().await?;
//! # let client = ostler_client::Client::connect(&server.connect_string()).await?;
//! # client.create("/ledger", b"").await?;
//! let lock = InterProcessMutex::new(&client, "/locks/ledger");
//! let guard = lock.acquire().await?;
//! // However long the process stood still here:
//! guard.multi().set_data("/ledger", b"42").commit().await?;
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! **Other stores** need the [`Token`]: a number that grows from holder to holder. The holder sends it with each
//! write, and the store keeps the largest that it has seen and refuses smaller ones. With SQL, for instance:
//!
//! ```sql
//! UPDATE ledger SET amount = 42, token = :token WHERE id = 7 AND token <= :token
//! ```
//!
//! No row changed means that a later holder has written: stop. With an object store, the token goes into the object's
//! metadata and the write is conditional on what was read. A store that can do neither cannot be protected by any lock.

use crate::error::{Error, Result};
use ostler_client::{Acl, CreateMode, EventKind, Hold, Multi, OpResult, Session, Zxid};
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use tokio::time::{Instant, sleep};

/// A number that grows from holder to holder: the `czxid` of the znode by which something is held.
///
/// It grows with the order in which the holders came, over restarts of every client and server, for as long as the
/// znode above is not restored from a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub Zxid);

impl Token {
    /// The number, for stores that want one.
    pub fn number(self) -> u64 {
        self.0.0
    }
}

/// As servers print a zxid: `0x1f`.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a holder holds: a znode, in a session, with a token. Clones speak of the same.
#[derive(Debug, Clone)]
pub struct Fence {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    session: Session,
    node: Box<str>,
    token: Token,
    /// A znode that has this version for as long as it is held: for znodes whose name others can have after us.
    reign: Option<(Box<str>, i32)>,
    released: AtomicBool,
    /// From the moment on at which it is held.
    hold: Mutex<Option<Hold>>,
}

impl Fence {
    pub(crate) fn new(session: Session, node: &str, token: Token) -> Fence {
        Fence::of(session, node, token, None)
    }

    pub(crate) fn with_reign(session: Session, node: &str, token: Token, reign: (&str, i32)) -> Fence {
        Fence::of(session, node, token, Some((reign.0.into(), reign.1)))
    }

    fn of(session: Session, node: &str, token: Token, reign: Option<(Box<str>, i32)>) -> Fence {
        let (released, hold) = (AtomicBool::new(false), Mutex::new(None));
        Fence { held: Arc::new(Held { session, node: node.into(), token, reign, released, hold }) }
    }

    /// It is held, as far as the server knows: returns as soon as its session is certain to live.
    pub(crate) async fn begin(&self) -> ostler_client::Result<()> {
        let hold = self.held.session.hold().await?;
        *self.held.hold.lock().unwrap_or_else(PoisonError::into_inner) = Some(hold);
        Ok(())
    }

    /// The token.
    pub fn token(&self) -> Token {
        self.held.token
    }

    /// The path of the znode by which it is held.
    pub fn node(&self) -> &str {
        &self.held.node
    }

    /// The session in which it is held.
    pub fn session(&self) -> &Session {
        &self.held.session
    }

    /// Whether it can be taken to be held at this moment: it was not released, and by this machine's monotonic clock
    /// no server can have expired the session. True while the connection is suspended for less than that. What a server
    /// says that is cut off from its leader counts for nothing, unless the client was built without
    /// [`prove_holding`](ostler_client::ClientBuilder::prove_holding).
    ///
    /// It is the best answer that a process can give to itself without asking a server, and it can be outdated when
    /// the caller acts on it: see [`multi`](Fence::multi).
    pub fn is_held(&self) -> bool {
        !self.held.released.load(SeqCst) && self.held.session.is_alive()
    }

    /// Asks the ensemble whether it is held, by a transaction that only checks. After connection trouble it asks again,
    /// as the client's retry policy says.
    ///
    /// # Errors
    /// [`Error::NotHeld`]; the client's errors.
    pub async fn verify(&self) -> Result<()> {
        let (policy, begun, mut tries) = (self.held.session.retry_policy(), Instant::now(), 0);
        loop {
            let error = match self.multi().commit().await {
                Err(Error::Client(error)) if error.is_connection_trouble() => error,
                checked => return checked.map(drop),
            };
            tries += 1;
            let chance = begun.elapsed().subsec_nanos().into();
            let Some(wait) = policy.wait(tries, begun.elapsed(), chance) else { return Err(error.into()) };
            sleep(wait).await;
        }
    }

    /// Waits until its holder should act as if it were lost: the connection is suspended, the session is over, or the
    /// znode is gone, by release or by somebody's hand.
    pub async fn lost(&self) {
        let watched = async {
            // Whatever error there is: it cannot be watched, so it cannot be relied on.
            while let Ok(((_, stat), gone)) = self.held.session.get_data(self.node()).watch().await {
                // By another holder, whose znode has the same name.
                let is_replaced = self.held.reign.is_some() && stat.czxid != self.token().0;
                if is_replaced || gone.await.map_or(true, |event| event.kind == EventKind::NodeDeleted) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = self.held.session.suspended() => {}
            () = watched => {}
        }
    }

    /// Begins a transaction that is done only if this is held when it is done.
    pub fn multi(&self) -> FencedMulti<'_> {
        let multi = self.held.session.multi().check(self.node(), -1);
        let (multi, checks) = match &self.held.reign {
            Some((path, version)) => (multi.check(path, *version), 2),
            None => (multi, 1),
        };
        FencedMulti { fence: self, multi, checks }
    }

    pub(crate) fn set_released(&self) {
        self.held.released.store(true, SeqCst);
        *self.held.hold.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn not_held(&self) -> Error {
        Error::NotHeld { node: self.held.node.clone(), token: self.held.token }
    }
}

/// Operations that are done all together, and only by the holder: add them, then [`commit`](FencedMulti::commit).
#[derive(Debug, Clone)]
#[must_use = "nothing is done until commit"]
pub struct FencedMulti<'a> {
    fence: &'a Fence,
    multi: Multi<'a>,
    checks: usize,
}

impl FencedMulti<'_> {
    fn map(mut self, add: impl FnOnce(Multi<'_>) -> Multi<'_>) -> Self {
        self.multi = add(self.multi);
        self
    }

    /// The znode is there and has this version, -1 for any.
    pub fn check(self, path: &str, version: i32) -> Self {
        self.map(|multi| multi.check(path, version))
    }

    /// Creates a persistent znode that everybody may use.
    pub fn create(self, path: &str, data: impl AsRef<[u8]>) -> Self {
        self.map(|multi| multi.create(path, data))
    }

    /// Creates a znode that everybody may use.
    pub fn create_mode(self, path: &str, data: impl AsRef<[u8]>, mode: CreateMode) -> Self {
        self.map(|multi| multi.create_mode(path, data, mode))
    }

    /// Creates a znode.
    pub fn create_with(self, path: &str, data: impl AsRef<[u8]>, mode: CreateMode, acl: Vec<Acl>) -> Self {
        self.map(|multi| multi.create_with(path, data, mode, acl))
    }

    /// Deletes a znode if it has this version, -1 for any.
    pub fn delete(self, path: &str, version: i32) -> Self {
        self.map(|multi| multi.delete(path, version))
    }

    /// Sets a znode's data, whatever its version.
    pub fn set_data(self, path: &str, data: impl AsRef<[u8]>) -> Self {
        self.map(|multi| multi.set_data(path, data))
    }

    /// Sets a znode's data if it has this version, -1 for any.
    pub fn set_data_version(self, path: &str, data: impl AsRef<[u8]>, version: i32) -> Self {
        self.map(|multi| multi.set_data_version(path, data, version))
    }

    /// Does all of them, in order, in one transaction; gives a result for each.
    ///
    /// # Errors
    /// [`Error::NotHeld`]: nothing was done, and nothing will be. `Multi` of the client's errors, counted from the
    /// first operation that the caller added; `ConnectionLoss`: all or none were done.
    pub async fn commit(self) -> Result<Vec<OpResult>> {
        let (fence, checks) = (self.fence, self.checks);
        if fence.held.released.load(SeqCst) {
            return Err(fence.not_held());
        }
        match self.multi.commit().await {
            Ok(mut results) => {
                results.drain(..checks.min(results.len()));
                Ok(results)
            }
            Err(error) if error.is_session_over() => Err(fence.not_held()),
            Err(ostler_client::Error::Multi { index, .. }) if index < checks => Err(fence.not_held()),
            Err(ostler_client::Error::Multi { code, index, operation, path }) => {
                Err(ostler_client::Error::Multi { code, index: index - checks, operation, path }.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}
