//! An election without a queue: all want the same znode, whoever creates it leads, the others watch it.
//!
//! Simple, and a herd: when the leader goes, all others are told and all try. With many participants use the
//! [latch](super::LeaderLatch).
//!
//! `leader` below the election's znode is the ephemeral one. As others have the same name after us, that it is there
//! says nothing about us; so each leader also writes the election's own znode in the transaction that creates
//! `leader`, and a write of that leader checks the version that it has made. From the same write it is known, after a
//! lost reply, whether the transaction was ours.

use super::participant::{self, Participant};
use crate::{
    error::Result,
    fencing::{Fence, FencedMulti, Token},
    line,
};
use ostler_client::{Client, CreateMode, Error as ClientError, ErrorCode, RetryPolicy, Session, paths};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use uuid::Uuid;

/// An election in which whoever is first leads and the others have no order.
#[derive(Debug, Clone)]
pub struct UnfairElection {
    client: Client,
    path: Arc<str>,
    leader: Arc<str>,
    id: Arc<str>,
}

impl UnfairElection {
    /// A participant that calls itself `id`, of the election at `path`.
    pub fn new(client: &Client, path: &str, id: &str) -> UnfairElection {
        let leader = paths::join(path, "leader").into();
        UnfairElection { client: client.clone(), path: path.into(), leader, id: id.into() }
    }

    /// Waits until it leads. Dropping the future leaves no znode behind.
    ///
    /// # Errors
    /// The client's: what forbids the znodes, and connection trouble that lasts longer than its retry policy.
    pub async fn campaign(&self) -> Result<UnfairLeadership> {
        line::in_a_session(&self.client, |session| self.campaign_in(session)).await
    }

    /// Waits until it leads, but no longer than `limit`; `None` if it does not by then.
    ///
    /// # Errors
    /// As [`campaign`](UnfairElection::campaign).
    pub async fn campaign_within(&self, limit: Duration) -> Result<Option<UnfairLeadership>> {
        timeout(limit, self.campaign()).await.ok().transpose()
    }

    /// Who leads now.
    ///
    /// # Errors
    /// The client's.
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
                    changed.await?;
                }
            }
        }
    }

    /// Tries once, in a task of its own: what comes of it when nobody waits any more is dropped, and so undone.
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
    /// Written into the election's znode, so that this attempt is known again.
    mark: String,
}

impl Claim {
    /// Gives the outcome to whoever waits for it.
    async fn run(self, to: oneshot::Sender<Result<Option<UnfairLeadership>>>) {
        let (claimed, unknown) = self.claim().await;
        // If nobody waits any more, what is in it is dropped, and so undone.
        let _ = to.send(claimed.map_err(Into::into));
        if unknown {
            self.undo().await;
        }
    }

    /// The outcome, and whether there may be another one.
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
            match policy.wait(tries, begun.elapsed(), u64::from(begun.elapsed().subsec_nanos())) {
                Some(wait) if error.is_connection_trouble() => sleep(wait).await,
                _ => return (Err(error), unknown),
            }
        }
    }

    async fn once(&self, unknown: bool) -> ostler_client::Result<Option<UnfairLeadership>> {
        if unknown && let Some(found) = self.find().await? {
            return Ok(Some(found));
        }
        loop {
            let multi = self.session.multi().set_data(&self.path, &self.mark);
            match multi.create_mode(&self.leader, &*self.id, CreateMode::Ephemeral).commit().await {
                Ok(results) => {
                    let stat = results.first().and_then(|result| result.stat());
                    // Both have the zxid of the transaction.
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

    /// Whether an attempt whose reply was lost has succeeded. After `sync`, so that no server hides it.
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
        let fence = Fence::with_reign(self.session.clone(), &self.leader, token, (&self.path, version));
        UnfairLeadership { path: self.path.clone(), version, fence, left: false }
    }

    /// What was perhaps created must not stay: once found, it is dropped, and so deleted.
    async fn undo(&self) {
        let mut tries = 0;
        while self.session.is_alive() {
            match self.find().await {
                Err(error) if error.is_connection_trouble() => {
                    tries += 1;
                    sleep(WAITS.wait(tries, Duration::ZERO, tries.into()).unwrap_or_default()).await;
                }
                _ => return,
            }
        }
    }
}

const WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(50), Duration::from_secs(5), u32::MAX);

/// Deletes until it is done, refused for good, or the session is over and took everything along.
async fn delete_until_done(session: &Session, path: &str, version: i32, leader: &str) {
    let mut tries = 0;
    while session.is_alive() {
        match delete(session, path, version, leader).await {
            Err(error) if error.is_connection_trouble() => {
                tries += 1;
                sleep(WAITS.wait(tries, Duration::ZERO, tries.into()).unwrap_or_default()).await;
            }
            Err(error) if !error.is_session_over() => {
                return tracing::warn!(%error, "a leader's znode is left undeleted");
            }
            _ => return,
        }
    }
}

/// Deletes the leader's znode if it is that of this reign.
async fn delete(session: &Session, path: &str, version: i32, leader: &str) -> ostler_client::Result<()> {
    match session.multi().check(path, version).delete(leader, -1).commit().await {
        Err(error) if matches!(error.code(), Some(ErrorCode::BadVersion | ErrorCode::NoNode)) => Ok(()),
        done => done.map(drop),
    }
}

/// Leadership, held. Dropped, it is given up in the background.
#[derive(Debug)]
#[must_use = "leadership that is dropped is given up"]
pub struct UnfairLeadership {
    path: Arc<str>,
    version: i32,
    fence: Fence,
    left: bool,
}

impl UnfairLeadership {
    /// What leading means to servers and other stores.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// A number that grows from leader to leader.
    pub fn token(&self) -> Token {
        self.fence.token()
    }

    /// [`Fence::is_held`].
    pub fn is_held(&self) -> bool {
        self.fence.is_held()
    }

    /// [`Fence::multi`].
    pub fn multi(&self) -> FencedMulti<'_> {
        self.fence.multi()
    }

    /// [`Fence::lost`].
    pub async fn lost(&self) {
        self.fence.lost().await;
    }

    /// Gives it up, and waits until others can have it.
    ///
    /// # Errors
    /// The client's. It is given up nevertheless: the deletion goes on in the background.
    pub async fn resign(mut self) -> Result<()> {
        self.fence.set_released();
        let session = self.fence.session().clone();
        match delete(&session, &self.path, self.version, self.fence.node()).await {
            Err(error) if error.is_connection_trouble() => Err(error.into()),
            Err(error) if !error.is_session_over() => Err(error.into()),
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
