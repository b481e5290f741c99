//! Fencing: refuses writes of a process that was the holder and is not any more.
//!
//! A lock keeps other processes away; it cannot stop its holder. If a process is paused between its check that it holds
//! the lock and its write, its session may expire meanwhile and another process may hold the lock. Another check before
//! the write makes this rarer, never impossible. Only the store can prevent it, by refusing the write.
//!
//! **Writes to ZooKeeper** go through [`Fence::multi`]. The check that the holder's znode exists and the write are one
//! transaction in the holder's session. If the process is not the holder when the transaction is done, nothing is
//! written.
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
//! // The process may be paused here for any time.
//! guard.multi().set_data("/ledger", b"42").await?;
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! **Other stores** need the [`Token`]: a number that grows from holder to holder. The holder sends it with each
//! write. The store keeps the largest token that it has seen, and refuses writes with smaller ones. With SQL, for
//! instance:
//!
//! ```sql
//! UPDATE ledger SET amount = 42, token = :token WHERE id = 7 AND token <= :token
//! ```
//!
//! If no row was changed, a later holder has written: stop. With an object store, put the token into the object's
//! metadata and make the write conditional on the metadata that was read. No lock can protect a store that allows
//! neither.

mod fenced_multi;

pub use fenced_multi::{FencedMulti, FencedOperation};

use crate::error::{Error, Result};
use ostler_client::{EventKind, Hold, Session, Version, Zxid};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    fmt,
    num::ParseIntError,
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use tokio::time::{Instant, sleep};

/// A fencing token: a number that grows from holder to holder. It is the `czxid` of the holder's znode; of a writer
/// that has become a reader, of its first znode.
///
/// It keeps growing over restarts of clients and servers, unless the servers' data is deleted or restored from a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub Zxid);

impl Token {
    /// The token as a number, for stores.
    pub fn number(self) -> u64 {
        self.0.0
    }

    /// The token as SQL databases store it, whose numbers have a sign. Every token fits, unless the ensemble has had more
    /// than two billion epochs: then this is `i64::MAX`.
    pub fn as_i64(self) -> i64 {
        i64::try_from(self.number()).unwrap_or(i64::MAX)
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> u64 {
        token.number()
    }
}

/// Reads what `Display` writes, `0x1f`, and a decimal number, `31`.
impl FromStr for Token {
    type Err = ParseIntError;

    fn from_str(text: &str) -> std::result::Result<Token, ParseIntError> {
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        Ok(Token(Zxid(number?)))
    }
}

/// As a number.
impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.number())
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Token, D::Error> {
        Ok(Token(Zxid(u64::deserialize(deserializer)?)))
    }
}

/// As servers print a zxid: `0x1f`.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The proof of holding a lock, a lease or leadership: a znode, the session that owns the znode, and a token. Clones are
/// the same fence.
#[derive(Debug, Clone)]
pub struct Fence {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    session: Session,
    node: Box<str>,
    token: Token,
    /// A znode's path, and the version that it has as long as this holder holds. This is needed where a later holder's
    /// znode has the same path.
    version_check: Option<(Box<str>, i32)>,
    released: AtomicBool,
    /// Proves by writes that the session lives, from the beginning of the holding to the release.
    hold: Mutex<Option<Hold>>,
}

impl Fence {
    pub(crate) fn new(session: Session, node: &str, token: Token) -> Fence {
        Fence::of(session, node, token, None)
    }

    pub(crate) fn with_version_check(
        session: Session,
        node: &str,
        token: Token,
        version_check: (&str, i32),
    ) -> Fence {
        Fence::of(session, node, token, Some((version_check.0.into(), version_check.1)))
    }

    fn of(session: Session, node: &str, token: Token, version_check: Option<(Box<str>, i32)>) -> Fence {
        let (released, hold) = (AtomicBool::new(false), Mutex::new(None));
        Fence { inner: Arc::new(Inner { session, node: node.into(), token, version_check, released, hold }) }
    }

    /// Begins the holding: returns as soon as it is certain that the session lives.
    pub(crate) async fn begin(&self) -> ostler_client::Result<()> {
        let hold = self.inner.session.hold().await?;
        *self.inner.hold.lock().unwrap_or_else(PoisonError::into_inner) = Some(hold);
        Ok(())
    }

    /// The holder's token.
    pub fn token(&self) -> Token {
        self.inner.token
    }

    /// The path of the holder's znode.
    pub fn node(&self) -> &str {
        &self.inner.node
    }

    /// The session that owns the holder's znode.
    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// Whether the caller can take itself for the holder now: it has not released, and by this machine's monotonic
    /// clock no server can have expired the session. This stays true while the connection is suspended for a shorter
    /// time. Answers of a server that is cut off from its leader do not count, unless the client was built with
    /// [`prove_holding(false)`](ostler_client::ClientBuilder::prove_holding).
    ///
    /// No request is sent. The answer can be outdated when the caller acts on it: see [`multi`](Fence::multi).
    pub fn is_held(&self) -> bool {
        !self.is_released() && self.inner.session.is_alive()
    }

    /// Asks the ensemble whether the caller is still the holder, by a transaction that only checks. After connection
    /// trouble it asks again, by the client's retry policy.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if it is not; the client's errors.
    pub async fn verify(&self) -> Result<()> {
        let (policy, begun, mut tries) = (self.inner.session.retry_policy(), Instant::now(), 0);
        loop {
            let error = match self.multi().await {
                Err(Error::Client(error)) if error.is_connection_trouble() => error,
                checked => return checked.map(drop),
            };
            tries += 1;
            let chance = begun.elapsed().subsec_nanos().into();
            let Some(wait) = policy.next_wait(tries, begun.elapsed(), chance) else {
                return Err(error.into());
            };
            sleep(wait).await;
        }
    }

    /// Waits until the holder should stop: the connection is suspended, the session is over, or the znode is gone, by a
    /// release or because another client has deleted it.
    pub async fn lost(&self) {
        let watched = async {
            // Any error ends the wait: a znode that cannot be watched cannot be relied on.
            while let Ok(((_, stat), gone)) = self.inner.session.get_data(self.node()).watch().await {
                // A later holder's znode can have the same path.
                let is_replaced = self.inner.version_check.is_some() && stat.czxid != self.token().0;
                if is_replaced || gone.await.map_or(true, |event| event.kind == EventKind::NodeDeleted) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = self.inner.session.suspended() => {}
            () = watched => {}
        }
    }

    /// Begins a transaction that is done only if the caller is the holder at that moment.
    pub fn multi(&self) -> FencedMulti<'_> {
        let multi = self.inner.session.multi().check(self.node(), Version::Any);
        FencedMulti::new(
            self,
            match &self.inner.version_check {
                Some((path, version)) => multi.check(path, Version::Exactly(*version)),
                None => multi,
            },
        )
    }

    fn is_released(&self) -> bool {
        self.inner.released.load(SeqCst)
    }

    pub(crate) fn set_released(&self) {
        self.inner.released.store(true, SeqCst);
        *self.inner.hold.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn not_held(&self) -> Error {
        Error::NotHeld { node: self.inner.node.clone(), token: self.inner.token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_written_and_read() {
        let token = Token(Zxid(0x1_0000_001f));
        assert_eq!((token.as_i64(), u64::from(token)), (4_294_967_327, 4_294_967_327));
        assert_eq!(token.to_string().parse(), Ok(token));
        assert_eq!("4294967327".parse(), Ok(token));
        assert!(["", "0x", "1f", "-1"].iter().all(|text| text.parse::<Token>().is_err()));
        assert_eq!(serde_json::to_string(&token).unwrap(), "4294967327");
        assert_eq!(serde_json::from_str::<Token>("4294967327").unwrap(), token);
        assert_eq!(Token(Zxid(u64::MAX)).as_i64(), i64::MAX);
    }
}
