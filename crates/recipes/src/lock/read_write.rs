//! Many readers or one writer, in the order of arrival.

use super::{
    owner::{Holdings, Owner},
    read_write_order::{READ, WRITE, number, reader_after, reader_standing, writer_standing},
    revocation,
};
use crate::{
    error::{Error, Result},
    fencing::{Fence, FencedMulti, Token},
    line::{self, PlaceSpec, QueuePlace, Turn},
    line_order::{Position, Queue, number_after},
    planted::{self, Bug},
};
use ostler_client::{Client, Error as ClientError, Session, paths};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// A lock that many readers have at a time, or one writer, in the order of arrival: a reader waits for the writers
/// before it, a writer for everybody. Curator's `InterProcessReadWriteLock`, with its znodes.
///
/// Both are reentrant for an [`Owner`]. A writer can have the read lock as well, and keep it after it has released the
/// write lock ([`WriteGuard::downgrade`]): no other writer comes in between. A reader cannot become a writer, for it
/// would wait for itself.
#[derive(Debug, Clone)]
pub struct InterProcessReadWriteLock {
    client: Client,
    path: Arc<str>,
    data: Arc<[u8]>,
    reading: Holdings<Reading>,
    writing: Holdings<Writing>,
}

#[derive(Debug)]
struct Reading(QueuePlace);

#[derive(Debug)]
struct Writing(QueuePlace);

impl AsRef<Fence> for Reading {
    fn as_ref(&self) -> &Fence {
        self.0.fence()
    }
}

impl AsRef<Fence> for Writing {
    fn as_ref(&self) -> &Fence {
        self.0.fence()
    }
}

impl InterProcessReadWriteLock {
    /// The lock at `path`, whose children are its queue. Nothing else may be below it.
    pub fn new(client: &Client, path: &str) -> InterProcessReadWriteLock {
        InterProcessReadWriteLock {
            client: client.clone(),
            path: path.into(),
            data: Arc::default(),
            reading: Holdings::default(),
            writing: Holdings::default(),
        }
    }

    /// Data for the znodes of this handle's acquisitions; empty unless said.
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> InterProcessReadWriteLock {
        self.data = data.into().into();
        self
    }

    /// Waits for the read lock.
    ///
    /// # Errors
    /// The client's: what forbids the znode, and connection trouble that lasts longer than its retry policy.
    pub async fn read(&self) -> Result<ReadGuard> {
        self.read_as(&Owner::new()).await
    }

    /// Waits for the read lock, unless this owner holds it or the write lock. If it waits for the write lock, it has
    /// both then.
    ///
    /// # Errors
    /// As [`read`](InterProcessReadWriteLock::read).
    pub async fn read_as(&self, owner: &Owner) -> Result<ReadGuard> {
        let acquire = async {
            match self.writing.settled(owner).await {
                // Kept until the reader's znode is there: no moment without either.
                Some(writing) => self.read_under(&writing).await,
                None => self.wait(READ).await.map(Reading),
            }
        };
        Ok(ReadGuard { holding: self.reading.share(owner, acquire).await? })
    }

    /// [`read_as`](InterProcessReadWriteLock::read_as), but no longer than `limit`; `None` if it was not to be had.
    ///
    /// # Errors
    /// As [`read`](InterProcessReadWriteLock::read).
    pub async fn read_as_within(&self, owner: &Owner, limit: Duration) -> Result<Option<ReadGuard>> {
        timeout(limit, self.read_as(owner)).await.ok().transpose()
    }

    /// Waits for the write lock.
    ///
    /// # Errors
    /// As [`read`](InterProcessReadWriteLock::read).
    pub async fn write(&self) -> Result<WriteGuard> {
        self.write_as(&Owner::new()).await
    }

    /// Waits for the write lock, unless this owner holds it.
    ///
    /// # Errors
    /// [`Error::WouldWaitForItself`] if the owner has only the read lock, or waits for that; otherwise as
    /// [`read`](InterProcessReadWriteLock::read).
    pub async fn write_as(&self, owner: &Owner) -> Result<WriteGuard> {
        if !self.writing.is_wanted(owner) && self.reading.is_wanted(owner) {
            return Err(Error::WouldWaitForItself { path: (*self.path).into() });
        }
        let acquire = async { self.wait(WRITE).await.map(Writing) };
        let holding = self.writing.share(owner, acquire).await?;
        Ok(WriteGuard { holding, owner: owner.clone(), lock: self.clone() })
    }

    /// [`write_as`](InterProcessReadWriteLock::write_as), but no longer than `limit`; `None` if it was not to be had.
    ///
    /// # Errors
    /// As [`write_as`](InterProcessReadWriteLock::write_as).
    pub async fn write_as_within(&self, owner: &Owner, limit: Duration) -> Result<Option<WriteGuard>> {
        timeout(limit, self.write_as(owner)).await.ok().transpose()
    }

    /// The znodes of readers, in their order.
    ///
    /// # Errors
    /// The client's.
    pub async fn reader_nodes(&self) -> Result<Vec<String>> {
        line::participant_nodes(&self.client, &self.path, READ).await
    }

    /// The znodes of writers, in their order.
    ///
    /// # Errors
    /// The client's.
    pub async fn writer_nodes(&self) -> Result<Vec<String>> {
        line::participant_nodes(&self.client, &self.path, WRITE).await
    }

    /// A reader in the place of a writer, with its number and its token: a token of its own would be larger than those
    /// of writers that have waited meanwhile.
    async fn read_under(&self, writing: &Writing) -> Result<Reading> {
        let writer = &writing.0;
        if planted::is(Bug::DowngradeToTheEnd) {
            let line = PlaceSpec { path: &self.path, word: READ, data: &self.data };
            return Ok(Reading(QueuePlace::take(writer.session(), line).await?));
        }
        let token = writer.fence().token();
        let path = paths::join(&self.path, &reader_after(writer.name(), token.0));
        Ok(Reading(QueuePlace::take_named(writer.session(), &path, &self.data, token).await?))
    }

    /// The read lock for the owner of the write lock that is held by `writing`, and by nothing else: with that lost,
    /// other writers may have come in between.
    async fn read_while(&self, owner: &Owner, writing: &Writing) -> Result<ReadGuard> {
        let lost = || Err(writing.0.fence().not_held());
        if !writing.0.fence().is_held() {
            return lost();
        }
        match self.reading.share(owner, self.read_under(writing)).await {
            Err(Error::Client(error)) if error.is_session_over() && !matches!(error, ClientError::Closed) => {
                lost()
            }
            // Another future of the owner may have waited for it in another session.
            Ok(_) if !writing.0.fence().is_held() => lost(),
            shared => Ok(ReadGuard { holding: shared? }),
        }
    }

    async fn wait(&self, word: &'static str) -> Result<QueuePlace> {
        line::in_a_session(&self.client, |session| self.wait_in(session, word)).await
    }

    async fn wait_in(&self, session: Session, word: &'static str) -> Result<QueuePlace> {
        loop {
            let line = PlaceSpec { path: &self.path, word, data: &self.data };
            let mut place = QueuePlace::take_for_turn(&session, line).await?;
            match place.turn(&[READ, WRITE], read_write_standing).await? {
                Turn::Ours => return Ok(place),
                Turn::Gone => place.forget(),
            }
        }
    }
}

fn read_write_standing<'n>(queue: &'n Queue, mine: &str) -> Position<'n> {
    debug_assert!(number(mine).is_some(), "{mine} is neither a reader nor a writer");
    match number_after(mine, WRITE) {
        Some(_) => writer_standing(queue, mine),
        None => reader_standing(queue, mine),
    }
}

/// The read lock, held. Dropped, it is released in the background.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct ReadGuard {
    holding: Arc<Reading>,
}

impl ReadGuard {
    /// What holding it means to servers and other stores. The token is for comparing with those of writers; readers
    /// that hold at the same time have different ones.
    pub fn fence(&self) -> &Fence {
        self.holding.0.fence()
    }

    /// [`Fence::is_held`].
    pub fn is_held(&self) -> bool {
        self.fence().is_held()
    }

    /// [`MutexGuard::revocation_requested`](super::MutexGuard::revocation_requested), for one of the lock's
    /// [`reader_nodes`](InterProcessReadWriteLock::reader_nodes).
    ///
    /// # Errors
    /// [`Error::NotHeld`] if it is lost before that; the client's errors.
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

/// The write lock, held. Dropped, it is released in the background.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct WriteGuard {
    holding: Arc<Writing>,
    owner: Owner,
    lock: InterProcessReadWriteLock,
}

impl WriteGuard {
    /// What holding it means to servers and other stores.
    pub fn fence(&self) -> &Fence {
        self.holding.0.fence()
    }

    /// A number that grows from writer to writer.
    pub fn token(&self) -> Token {
        self.fence().token()
    }

    /// [`Fence::is_held`].
    pub fn is_held(&self) -> bool {
        self.fence().is_held()
    }

    /// [`Fence::multi`].
    pub fn multi(&self) -> FencedMulti<'_> {
        self.fence().multi()
    }

    /// Takes the read lock as well, at once.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if the write lock is lost: others may have written since. The client's.
    pub async fn read(&self) -> Result<ReadGuard> {
        self.lock.read_while(&self.owner, &self.holding).await
    }

    /// Becomes a reader, with no other writer in between.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if the write lock is lost: others may have written since. The client's. If taking the read
    /// lock fails, the write lock is given up, too.
    pub async fn downgrade(self) -> Result<ReadGuard> {
        let reading = self.read().await?;
        self.release().await?;
        Ok(reading)
    }

    /// [`MutexGuard::revocation_requested`](super::MutexGuard::revocation_requested), for one of the lock's
    /// [`writer_nodes`](InterProcessReadWriteLock::writer_nodes).
    ///
    /// # Errors
    /// [`Error::NotHeld`] if it is lost before that; the client's errors.
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
