//! A server, its clients, and what all recipes have in common: something is held.

pub(crate) use crate::servers::{PATIENCE, patience, patiently};

use crate::servers::{Ensemble, Servers, connect_string};
use ostler_client::{Client, ClientBuilder, ErrorCode, RetryPolicy};
use ostler_recipes::{
    Error,
    fencing::Fence,
    leader::{LeaderLatch, LeaderSelector, Leadership, UnfairElection},
    lock::{
        InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphore,
        InterProcessSemaphoreMutex,
    },
};
use ostler_testkit::{Counts, FrameProxy, SeenFrame, TestOptions, TestServer};
use std::{
    fmt::Debug,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::mpsc, time::timeout};

pub(crate) const SESSION: Duration = Duration::from_secs(20);
/// With this chance a client tries three servers in the order in which they are named.
const IN_ORDER: u64 = 1;
const JOURNAL: &str = "/journal";

pub(crate) struct World<S = TestServer> {
    pub(crate) server: S,
}

impl World {
    pub(crate) async fn start() -> World {
        #[cfg(feature = "planted-bugs")]
        crate::planted::plant_as_told();
        World { server: TestServer::start().await.unwrap() }
    }
}

impl World<Ensemble> {
    pub(crate) async fn ensemble() -> World<Ensemble> {
        World { server: Ensemble::start(TestOptions::new()).await }
    }
}

impl<S: Servers> World<S> {
    /// A client that goes to the servers directly.
    pub(crate) async fn client(&self) -> Client {
        connect(&connect_string(&self.server.addresses()), SESSION).await
    }

    /// A client behind a proxy that counts from here on.
    pub(crate) async fn proxied(&self) -> (FrameProxy, Client) {
        self.proxied_by(&self.server.addresses()).await
    }

    /// The same; it tries the servers in this order.
    pub(crate) async fn proxied_by(&self, servers: &[SocketAddr]) -> (FrameProxy, Client) {
        let proxy = FrameProxy::start_for(servers).await.unwrap();
        let client = builder(&proxy.connect_string(), SESSION).seed(IN_ORDER).connect().await.unwrap();
        assert_eq!(proxy.seen().first(), Some(&SeenFrame::Handshake { number: 1, server: 0 }));
        proxy.reset();
        (proxy, client)
    }

    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&Counts) -> bool + Send + 'static) {
        let last = Arc::new(Mutex::new(Counts::default()));
        let seen = last.clone();
        let waiting = self.server.until(move |counts| {
            *seen.lock().unwrap() = *counts;
            wanted(counts)
        });
        if timeout(patience(), waiting).await.is_err() {
            panic!("{what}: {:?}", last.lock().unwrap());
        }
    }

    /// Nothing is held or waited for any more: no orphan znode, no leaked watch.
    pub(crate) async fn until_clean(&self, what: impl Debug) {
        self.until(&format!("clean after {what:?}"), |c| c.ephemerals == 0 && c.watches == 0).await;
    }

    pub(crate) async fn expire(&self, client: &Client) {
        if let Some(session) = client.session_id() {
            // It can have ended by itself.
            let _ = self.server.expire(session).await;
        }
    }
}

pub(crate) fn builder(servers: &str, session: Duration) -> ClientBuilder {
    let retry = RetryPolicy::times(1000, Duration::from_millis(10));
    Client::builder(servers).session_timeout(session).retry(retry)
}

pub(crate) async fn connect(servers: &str, session: Duration) -> Client {
    builder(servers, session).connect().await.unwrap()
}

/// Every recipe that hands over from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recipe {
    Mutex,
    /// Of two mutexes; in all else it is what they are.
    Multi,
    SemaphoreMutex,
    Semaphore,
    Write,
    Read,
    Latch,
    Selector,
    Unfair,
}

impl Recipe {
    pub(crate) const ALL: [Recipe; 8] = [
        Recipe::Mutex,
        Recipe::SemaphoreMutex,
        Recipe::Semaphore,
        Recipe::Write,
        Recipe::Read,
        Recipe::Latch,
        Recipe::Selector,
        Recipe::Unfair,
    ];

    /// Ephemeral znodes and watches when one holds and one waits.
    pub(crate) fn with_one_waiting(self) -> (usize, usize) {
        match self {
            // The one that waits does so for the first of the two. The next in a queue watches itself, too.
            Recipe::Multi => (3, 2),
            Recipe::Mutex => (2, 2),
            Recipe::Write | Recipe::Read => (2, 1),
            // The one that waits has the lock and a lease that is too many.
            Recipe::SemaphoreMutex | Recipe::Semaphore => (3, 1),
            // The leader watches itself. A selector's queue is that of a lock.
            Recipe::Latch => (2, 2),
            Recipe::Selector => (2, 3),
            Recipe::Unfair => (1, 1),
        }
    }

    /// Whether the next in its queue watches its own znode, too.
    pub(crate) fn next_watches_itself(self) -> bool {
        matches!(self, Recipe::Multi | Recipe::Mutex | Recipe::Selector)
    }

    /// As [`with_one_waiting`](Recipe::with_one_waiting), where the numbers of the znodes do not decide who is next: then
    /// nobody is next.
    pub(crate) fn with_one_behind(self) -> (usize, usize) {
        let (ephemerals, watches) = self.with_one_waiting();
        (ephemerals, watches - usize::from(self.next_watches_itself()))
    }

    /// The events for a contender that waits, holds and releases: the one before it has left, and its own znode is gone.
    pub(crate) fn events_of_hand_over(self) -> u64 {
        1 + u64::from(self.next_watches_itself())
    }

    /// Holds it as the others wait for it; only the write lock makes readers wait.
    pub(crate) async fn hold_first(self, client: &Client, path: &str) -> Held {
        match self {
            Recipe::Read => Recipe::Write.hold(client, path).await.unwrap(),
            _ => self.hold(client, path).await.unwrap(),
        }
    }

    /// Whether its holder gives up as soon as the connection is lost.
    pub(crate) fn ends_when_suspended(self) -> bool {
        self == Recipe::Selector
    }

    pub(crate) async fn hold(self, client: &Client, path: &str) -> Result<Held, Error> {
        match self {
            Recipe::Multi => {
                let paths = ["a", "b"].map(|name| format!("{path}/{name}"));
                let lock = InterProcessMultiLock::new(client, paths.iter().map(String::as_str));
                let guard = lock.acquire().await?;
                Ok(Held::new(guard.guards()[0].fence().clone(), async move { guard.release().await }))
            }
            Recipe::Mutex => {
                let guard = InterProcessMutex::new(client, path).acquire().await?;
                Ok(Held::new(guard.fence().clone(), async move { guard.release().await }))
            }
            Recipe::SemaphoreMutex => {
                let guard = InterProcessSemaphoreMutex::new(client, path).acquire().await?;
                Ok(Held::new(guard.fence().clone(), async move { guard.release().await }))
            }
            Recipe::Semaphore => {
                let lease = InterProcessSemaphore::new(client, path, 1).acquire().await?;
                Ok(Held::new(lease.fence().clone(), async move { lease.release().await }))
            }
            Recipe::Write => {
                let guard = InterProcessReadWriteLock::new(client, path).acquire_write().await?;
                Ok(Held::new(guard.fence().clone(), async move { guard.release().await }))
            }
            Recipe::Read => {
                let guard = InterProcessReadWriteLock::new(client, path).acquire_read().await?;
                Ok(Held::new(guard.fence().clone(), async move { guard.release().await }))
            }
            Recipe::Latch => {
                let latch = LeaderLatch::new(client, path, "latch");
                latch.start();
                let fence = latch.wait_for_leadership().await?;
                Ok(Held::new(fence, async move {
                    latch.close().await;
                    Ok(())
                }))
            }
            Recipe::Selector => {
                let (to, mut led) = mpsc::unbounded_channel();
                let lead = move |leadership: Leadership| {
                    let _ = to.send(leadership);
                    std::future::pending()
                };
                let selector =
                    LeaderSelector::builder(client, path, lead).id("selector").auto_requeue().start();
                let leadership = led.recv().await.unwrap();
                Ok(Held::new(leadership.fence().clone(), async move {
                    selector.close().await;
                    Ok(())
                }))
            }
            Recipe::Unfair => {
                let leadership = UnfairElection::new(client, path, "unfair").campaign().await?;
                Ok(Held::new(leadership.fence().clone(), async move { leadership.resign().await }))
            }
        }
    }
}

/// The code that a server has refused something with.
pub(crate) fn code<T>(outcome: &Result<T, Error>) -> Option<ErrorCode> {
    match outcome {
        Err(Error::Client(error)) => error.code(),
        _ => None,
    }
}

/// Something held; dropped, it is released in the background.
pub(crate) struct Held {
    pub(crate) fence: Fence,
    end: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>,
}

impl Held {
    fn new(fence: Fence, end: impl Future<Output = Result<(), Error>> + Send + 'static) -> Held {
        Held { fence, end: Box::pin(end) }
    }

    /// Its reports of connection trouble do not matter: it goes on in the background.
    pub(crate) async fn release(self) {
        let _ = self.end.await;
    }
}

/// Writes, as a holder only, into the server's own order of events. False if it was refused.
pub(crate) async fn write_journal(fence: &Fence) -> bool {
    let record = fence.token().number().to_string();
    let write = fence.multi().create(&format!("{JOURNAL}/at-"), record).sequential();
    match write.await {
        Ok(_) => true,
        Err(Error::NotHeld { .. }) => false,
        // It may be there or not; both are right.
        Err(Error::Client(error)) if error.is_connection_trouble() => true,
        Err(error) => panic!("{error}"),
    }
}

/// Whether a znode is a record of the journal.
pub(crate) fn is_record(path: &str) -> bool {
    path.strip_prefix(JOURNAL).is_some_and(|rest| rest.starts_with("/at-"))
}

pub(crate) async fn open_journal(client: &Client) {
    client.create(JOURNAL, b"").await.unwrap();
}

/// By the server's own order no holder has written after a later one; gives their tokens, in order.
pub(crate) async fn check_journal(client: &Client) -> Vec<u64> {
    client.sync(JOURNAL).await.unwrap();
    let mut names = client.get_children(JOURNAL).await.unwrap();
    names.sort();
    let mut tokens = Vec::new();
    for name in names {
        let (record, _) = client.get_data(&format!("{JOURNAL}/{name}")).await.unwrap();
        tokens.push(std::str::from_utf8(&record).unwrap().parse().unwrap());
    }
    assert!(tokens.is_sorted(), "written by an earlier holder after a later one: {tokens:?}");
    client.delete(JOURNAL).deleting_children().await.unwrap();
    open_journal(client).await;
    tokens
}
