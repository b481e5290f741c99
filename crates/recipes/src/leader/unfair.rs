//! An election without a queue: the participant that creates the leader's znode first leads, the others watch it.
//!
//! When the leader leaves, all other participants get an event and all try. With many participants use the
//! [latch](super::LeaderLatch).
//!
//! The leader's znode is the ephemeral `leader` below the election's znode. Later leaders create it again at the same
//! path, so its existence does not show who leads. For that, the transaction that creates `leader` also writes the
//! election's own znode, and each write through the leader's fence checks the version that this write has made. If the
//! reply to the transaction is lost, the data of the election's znode shows whether it was done.

use super::participant::{self, Participant};
use crate::{
    error::Result,
    fencing::{Fence, Token},
    session_retry,
    until_answered::event_unless_removed,
};
use ostler_client::{Client, Error as ClientError, ErrorCode, RetryPolicy, Session, Version, paths};
use std::{ops::Deref, sync::Arc, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use uuid::Uuid;

/// A participant of an election without a queue: the first that creates the leader's znode leads.
#[derive(Debug, Clone)]
pub struct UnfairElection {
    client: Client,
    path: Arc<str>,
    leader: Arc<str>,
    id: Arc<str>,
}

impl UnfairElection {
    /// A participant with this id of the election at `path`. No request is sent.
    pub fn new(client: &Client, path: &str, id: &str) -> UnfairElection {
        let leader = paths::join(path, "leader").into();
        UnfairElection { client: client.clone(), path: path.into(), leader, id: id.into() }
    }

    /// Waits until this participant leads. Dropping the future leaves no znode behind.
    ///
    /// # Errors
    /// The client's errors: the server refuses the znodes, or connection trouble lasts longer than the retry policy
    /// allows.
    pub async fn campaign(&self) -> Result<UnfairLeadership> {
        session_retry::in_a_session(&self.client, |session| self.campaign_in(session)).await
    }

    /// Waits until this participant leads, at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// As [`campaign`](UnfairElection::campaign).
    pub async fn campaign_within(&self, limit: Duration) -> Result<Option<UnfairLeadership>> {
        timeout(limit, self.campaign()).await.ok().transpose()
    }

    /// The present leader; `None` if there is none.
    ///
    /// # Errors
    /// The client's errors.
    pub async fn leader(&self) -> Result<Option<Participant>> {
        participant::at(&self.client, (*self.leader).to_owned(), true).await
    }

    async fn campaign_in(&self, session: Session) -> Result<UnfairLeadership> {
        loop {
            if let Some(leadership) = self.claim(&session).await? {
                return Ok(leadership);
            }
            match session.get_data(&self.leader).watch().await {
                Err(error) if error.is_no_node() => {}
                watched => {
                    let (_, changed) = watched?;
                    event_unless_removed(changed).await?;
                }
            }
        }
    }

    /// Tries once, in a task of its own. If the caller no longer waits, a leadership that was won is dropped, and so
    /// given up.
    async fn claim(&self, session: &Session) -> Result<Option<UnfairLeadership>> {
        let claim = Claim {
            session: session.clone(),
            path: self.path.clone(),
            leader: self.leader.clone(),
            id: self.id.clone(),
            mark: Uuid::new_v4().to_string(),
        };
        let (to, claimed) = oneshot::channel();
        session.runtime().spawn(claim.run(to));
        let leadership = claimed.await.map_err(|_| ClientError::Closed)??;
        if let Some(leadership) = &leadership {
            leadership.fence.begin().await?;
        }
        Ok(leadership)
    }
}

/// One attempt to become the leader.
struct Claim {
    session: Session,
    path: Arc<str>,
    leader: Arc<str>,
    id: Arc<str>,
    /// A random text that is written into the election's znode, by which this attempt is recognized.
    mark: String,
}

impl Claim {
    /// Sends the outcome to the waiting caller.
    async fn run(self, to: oneshot::Sender<Result<Option<UnfairLeadership>>>) {
        let (claimed, unknown) = self.claim().await;
        // If the receiver is gone, a leadership in the outcome is dropped, and so given up.
        let _ = to.send(claimed.map_err(Into::into));
        if unknown {
            self.undo().await;
        }
    }

    /// The outcome, and whether a transaction with a lost reply may still have created the znode.
    async fn claim(&self) -> (ostler_client::Result<Option<UnfairLeadership>>, bool) {
        let policy = self.session.retry_policy();
        let (begun, mut tries, mut unknown) = (Instant::now(), 0, false);
        loop {
            let error = match self.once(unknown).await {
                Err(error) => error,
                done => return (done, false),
            };
            unknown |= error.is_outcome_unknown();
            tries += 1;
            match policy.next_wait(tries, begun.elapsed(), u64::from(begun.elapsed().subsec_nanos())) {
                Some(wait) if error.is_connection_trouble() => sleep(wait).await,
                _ => return (Err(error), unknown),
            }
        }
    }

    async fn once(&self, unknown: bool) -> ostler_client::Result<Option<UnfairLeadership>> {
        if unknown {
            if let Some(found) = self.find().await? {
                return Ok(Some(found));
            }
        }
        loop {
            let multi = self.session.multi().set_data(&self.path, &self.mark);
            match multi.create(&self.leader, &*self.id).ephemeral().await {
                Ok(results) => {
                    let stat = results.first().and_then(|result| result.stat());
                    // The created znode's czxid is the same zxid.
                    return Ok(stat.map(|stat| self.leadership(stat.version, Token(stat.mzxid))));
                }
                Err(error) if error.code() == Some(ErrorCode::NodeExists) => return Ok(None),
                Err(error) if error.code() == Some(ErrorCode::NoNode) => {
                    match self.session.create(&self.path, b"").creating_parents().idempotent().await {
                        Err(error) if error.is_node_exists() => {}
                        made => drop(made?),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The leadership, if an attempt whose reply was lost has succeeded. Calls `sync` first, because the server may
    /// lag.
    async fn find(&self) -> ostler_client::Result<Option<UnfairLeadership>> {
        self.session.sync(&self.path).await?;
        let (data, stat) = match self.session.get_data(&self.path).await {
            Err(error) if error.is_no_node() => return Ok(None),
            read => read?,
        };
        let leader = self.session.exists(&self.leader).await?;
        let ours = data == self.mark.as_bytes() && leader.is_some_and(|leader| leader.czxid == stat.mzxid);
        Ok(ours.then(|| self.leadership(stat.version, Token(stat.mzxid))))
    }

    fn leadership(&self, version: i32, token: Token) -> UnfairLeadership {
        let fence =
            Fence::with_version_check(self.session.clone(), &self.leader, token, (&self.path, version));
        UnfairLeadership { path: self.path.clone(), version, fence, left: false }
    }

    /// Deletes a znode that may have been created: a leadership that is found is dropped, and so given up.
    async fn undo(&self) {
        let mut tries = 0;
        while self.session.is_alive() {
            match self.find().await {
                Err(error) if error.is_connection_trouble() => {
                    tries += 1;
                    sleep(WAITS.next_wait(tries, Duration::ZERO, tries.into()).unwrap_or_default()).await;
                }
                _ => return,
            }
        }
    }
}

const WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(50), Duration::from_secs(5), u32::MAX);

/// Repeats the deletion until it is done or refused for good, or the session is over and the znode deleted with it.
async fn delete_until_done(session: &Session, path: &str, version: i32, leader: &str) {
    let mut tries = 0;
    while session.is_alive() {
        match delete(session, path, version, leader).await {
            Err(error) if error.is_connection_trouble() => {
                tries += 1;
                sleep(WAITS.next_wait(tries, Duration::ZERO, tries.into()).unwrap_or_default()).await;
            }
            Err(error) if !(error.is_session_over() || error.is_closed()) => {
                return tracing::warn!(%error, "a leader's znode is not deleted");
            }
            _ => return,
        }
    }
}

/// Deletes the leader's znode, unless a later leader has created it.
async fn delete(session: &Session, path: &str, version: i32, leader: &str) -> ostler_client::Result<()> {
    match session.multi().check(path, Version::Exactly(version)).delete(leader).await {
        Err(error) if matches!(error.code(), Some(ErrorCode::BadVersion | ErrorCode::NoNode)) => Ok(()),
        done => done.map(drop),
    }
}

/// Leadership in an [`UnfairElection`]. It is given up in the background when this is dropped.
///
/// It dereferences to its [`Fence`], with token and transactions.
#[derive(Debug)]
#[must_use = "leadership that is dropped is given up"]
pub struct UnfairLeadership {
    path: Arc<str>,
    version: i32,
    fence: Fence,
    left: bool,
}

impl Deref for UnfairLeadership {
    type Target = Fence;

    fn deref(&self) -> &Fence {
        &self.fence
    }
}

impl UnfairLeadership {
    /// The fence of this leadership.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Gives up leadership, and waits until the leader's znode is deleted.
    ///
    /// # Errors
    /// The client's errors. Leadership is given up nevertheless: the deletion goes on in the background.
    pub async fn resign(mut self) -> Result<()> {
        self.fence.set_released();
        let session = self.fence.session().clone();
        match delete(&session, &self.path, self.version, self.fence.node()).await {
            Err(error) if error.is_connection_trouble() => Err(error.into()),
            Err(error) if !(error.is_session_over() || error.is_closed()) => Err(error.into()),
            _ => {
                self.left = true;
                Ok(())
            }
        }
    }
}

impl Drop for UnfairLeadership {
    fn drop(&mut self) {
        self.fence.set_released();
        if self.left || !self.fence.session().is_alive() {
            return;
        }
        let (session, path, version) = (self.fence.session().clone(), self.path.clone(), self.version);
        let leader = self.fence.node().to_owned();
        self.fence.session().runtime().spawn(async move {
            delete_until_done(&session, &path, version, &leader).await;
        });
    }
}
