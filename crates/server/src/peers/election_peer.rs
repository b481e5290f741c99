//! Another server at the election port: its connection, and the votes that wait for it.

use super::{
    claims::{Origin, SameId},
    peer_stream::PeerWrite,
};
use crate::log_throttle::LogThrottle;
use ostler_proto::id::ServerId;
use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    pub(super) said_other_ensemble: LogThrottle,
    said_duplicate: LogThrottle,
    pub(super) said_unknown: LogThrottle,
}

impl ElectionPeer {
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
