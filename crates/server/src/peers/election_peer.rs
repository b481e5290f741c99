//! Another server at the election port: its connection, and the votes that wait for it.

use super::{
    claims::{Origin, SameId},
    peer_stream::PeerWrite,
};
use crate::log_throttle::LogThrottle;
use ostler_proto::id::ServerId;
use std::{
    collections::VecDeque,
    error::Error,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tokio::{io::AsyncWriteExt, sync::Notify};

/// Encoded votes that have not been sent to a server yet, oldest first. Upstream keeps only the newest, but the one before
/// may be the vote that counts for the receiver.
#[derive(Debug, Default)]
pub(super) struct VoteBox {
    votes: Mutex<VecDeque<Vec<u8>>>,
    /// Wakes the task that sends votes.
    wake: Notify,
    /// Ends the connection.
    closed: Notify,
}

/// The number of votes that are kept. Older ones are dropped: the later votes replace them.
const VOTES_MAX: usize = 8;

impl VoteBox {
    pub(super) fn with(votes: VecDeque<Vec<u8>>) -> VoteBox {
        VoteBox { votes: Mutex::new(votes), ..VoteBox::default() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.votes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection that sends these votes.
    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    /// Returns once [`VoteBox::close`] is called.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(super) fn put(&self, vote: Vec<u8>) {
        put(&mut self.lock(), vote);
        self.wake.notify_one();
    }
}

/// Sends the votes of a box until the connection fails.
pub(super) async fn write_votes(votes: &VoteBox, mut write: PeerWrite) -> io::Result<()> {
    loop {
        let next = votes.lock().pop_front();
        match next {
            Some(vote) => {
                write.write_all(&vote).await?;
                write.flush().await?;
            }
            None => votes.wake.notified().await,
        }
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

/// Adds a vote, and drops the oldest of too many.
pub(super) fn put(votes: &mut VecDeque<Vec<u8>>, vote: Vec<u8>) {
    if votes.len() == VOTES_MAX {
        votes.pop_front();
    }
    votes.push_back(vote);
}

/// The election connection of a server.
#[derive(Debug)]
pub(super) struct ElectionLink {
    pub(super) number: u64,
    pub(super) origin: Origin,
    pub(super) votes: Arc<VoteBox>,
}

/// Another server, as the election port knows it.
#[derive(Debug, Default)]
pub(super) struct ElectionPeer {
    pub(super) link: Option<ElectionLink>,
    /// A task is connecting to this server.
    pub(super) connecting: bool,
    /// Encoded votes to send once there is a connection.
    pub(super) waiting: VecDeque<Vec<u8>>,
    /// When the connection was made, or was lost or first could not be had; in milliseconds since 1970.
    since_ms: Option<i64>,
    /// Why it was lost or could not be had last.
    error: Option<String>,
    pub(super) said_other_ensemble: LogThrottle,
    said_duplicate: LogThrottle,
    pub(super) said_unknown: LogThrottle,
}

/// The election connection to a server, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionLinkReport {
    /// The other server.
    pub peer: ServerId,
    /// Whether there is a connection.
    pub up: bool,
    /// Since when that is so, in milliseconds since 1970; `None` if none was tried yet.
    pub since_ms: Option<i64>,
    /// Why it was lost or could not be had last.
    pub error: Option<String>,
}

/// The longest text of an error that is kept.
const ERROR_MAX: usize = 200;

impl ElectionPeer {
    /// Notes that the connection was made.
    pub(super) fn note_up(&mut self) {
        self.since_ms = Some(now_ms());
    }

    /// Notes that the connection was lost (`was_up`), or could not be had.
    pub(super) fn note_down(&mut self, was_up: bool, error: Option<&dyn Error>) {
        if was_up || self.since_ms.is_none() {
            self.since_ms = Some(now_ms());
        }
        if let Some(error) = error {
            self.error = Some(error.to_string().chars().take(ERROR_MAX).collect());
        }
    }

    /// The state of the connection.
    pub(super) fn report(&self, peer: ServerId) -> ElectionLinkReport {
        ElectionLinkReport {
            peer,
            up: self.link.is_some(),
            since_ms: self.since_ms,
            error: self.error.clone(),
        }
    }

    /// Ends the connection. Its unsent votes wait for the next one.
    pub(super) fn unlink(&mut self) {
        if let Some(old) = self.link.take() {
            old.votes.close();
            self.keep(&old.votes);
        }
    }

    /// Refuses a caller from another address if the server with its id is connected from the address of the configuration.
    /// Returns true if the caller is refused.
    pub(super) fn refuse_duplicate(&mut self, id: ServerId, new: &Origin) -> bool {
        let Some(live) = &self.link else { return false };
        let is_refused = new.compare(&live.origin) == SameId::Elsewhere;
        if is_refused && self.said_duplicate.take_turn() {
            tracing::warn!(
                server = id.0, from = %new.text(), connected = %live.origin.text(),
                "a connection to the election port was refused: it is not from where the configuration has this server, \
                 and the server that is there is connected. Do two servers have the same myid?"
            );
        }
        is_refused
    }

    /// Logs that a caller from another address replaces the live connection.
    pub(super) fn note_replaced(&mut self, id: ServerId, new: &Origin) {
        if let Some(live) = &self.link
            && new.compare(&live.origin) == SameId::Moved
            && self.said_duplicate.take_turn()
        {
            tracing::warn!(
                server = id.0, from = %new.text(), instead_of = %live.origin.text(),
                "a connection to the election port has taken the place of one from elsewhere: if this server has not \
                 moved, two servers have the same myid"
            );
        }
    }

    /// Keeps the unsent votes of a connection for the next one.
    pub(super) fn keep(&mut self, unsent: &VoteBox) {
        for vote in std::mem::take(&mut *unsent.lock()) {
            put(&mut self.waiting, vote);
        }
    }
}
