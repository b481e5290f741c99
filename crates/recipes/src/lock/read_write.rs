//! The read-write lock: many readers or one writer at a time, in the order of arrival.

use super::{
    owner::{Holdings, Owner},
    read_write_order::{READ, WRITE, downgraded_name, number, reader_position, writer_position},
    revocation,
};
use crate::{
    error::{Error, Result},
    fencing::Fence,
    queue_order::{Position, Queue, number_after},
    queue_place::{self, PlaceSpec, QueuePlace, Turn},
    session_retry,
};
use ostler_client::{Client, RecipeTag, Session, paths};
use ostler_planted::{self as planted, Bug};
use std::{ops::Deref, sync::Arc, time::Duration};
use tokio::time::timeout;

/// A lock that many readers or one writer hold at a time, in the order of arrival. A reader waits for the writers
/// before it; a writer waits for all readers and writers before it. This is Curator's `InterProcessReadWriteLock`, with
/// the same znodes.
///
/// Both sides are reentrant for an [`Owner`]. A writer can acquire the read lock as well, and keep it after it has
/// released the write lock ([`WriteGuard::downgrade`]); no other writer gets the lock in between. A reader cannot
/// become a writer: it would wait for itself.
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

    /// The data of the znodes of this handle's acquisitions; empty by default.
    #[must_use]
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> InterProcessReadWriteLock {
        self.data = data.into().into();
        self
    }

    /// Waits for the read lock.
    ///
    /// Each call is a contender of its own. So a task that holds the write lock and calls this waits for itself, and so
    /// does a task that holds the read lock while a writer waits. Use [`WriteGuard::acquire_read`], or
    /// [`acquire_read_as`](InterProcessReadWriteLock::acquire_read_as) with one [`Owner`].
    ///
    /// # Errors
    /// The client's errors: the server refuses the znode, or connection trouble lasts longer than the retry policy
    /// allows.
    pub async fn acquire_read(&self) -> Result<ReadGuard> {
        self.acquire_read_as(&Owner::new()).await
    }

    /// Waits for the read lock, at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// As [`acquire_read`](InterProcessReadWriteLock::acquire_read).
    pub async fn acquire_read_within(&self, limit: Duration) -> Result<Option<ReadGuard>> {
        timeout(limit, self.acquire_read()).await.ok().transpose()
    }

    /// Waits for the read lock. If this owner holds the read or the write lock already, this returns at once. If
    /// another future of this owner waits for the write lock, this waits for it and then acquires the read lock as
    /// well.
    ///
    /// # Errors
    /// As [`acquire_read`](InterProcessReadWriteLock::acquire_read).
    pub async fn acquire_read_as(&self, owner: &Owner) -> Result<ReadGuard> {
        let acquire = async {
            match self.writing.settled(owner).await {
                // The write lock is kept until the reader's znode exists, so that one of both is always held.
                Some(writing) => match self.read_in_place_of(&writing).await {
                    Err(error) if error.is_not_held() => self.wait(READ).await.map(Reading),
                    reading => reading,
                },
                None => self.wait(READ).await.map(Reading),
            }
        };
        Ok(ReadGuard { holding: self.reading.share(owner, acquire).await? })
    }

    /// [`acquire_read_as`](InterProcessReadWriteLock::acquire_read_as), at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds,
    /// unless the owner holds the lock already.
    ///
    /// # Errors
    /// As [`acquire_read`](InterProcessReadWriteLock::acquire_read).
    pub async fn acquire_read_as_within(&self, owner: &Owner, limit: Duration) -> Result<Option<ReadGuard>> {
        timeout(limit, self.acquire_read_as(owner)).await.ok().transpose()
    }

    /// Waits for the write lock. A task that holds the read or the write lock and calls this waits for itself: see
    /// [`acquire_write_as`](InterProcessReadWriteLock::acquire_write_as).
    ///
    /// # Errors
    /// As [`acquire_read`](InterProcessReadWriteLock::acquire_read).
    pub async fn acquire_write(&self) -> Result<WriteGuard> {
        self.acquire_write_as(&Owner::new()).await
    }

    /// Waits for the write lock, at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// As [`acquire_write`](InterProcessReadWriteLock::acquire_write).
    pub async fn acquire_write_within(&self, limit: Duration) -> Result<Option<WriteGuard>> {
        timeout(limit, self.acquire_write()).await.ok().transpose()
    }

    /// Waits for the write lock. If this owner holds it already, this returns at once.
    ///
    /// # Errors
    /// [`Error::WouldWaitForItself`] if the owner holds only the read lock, or waits for it. Otherwise as
    /// [`acquire_read`](InterProcessReadWriteLock::acquire_read).
    pub async fn acquire_write_as(&self, owner: &Owner) -> Result<WriteGuard> {
        if !self.writing.is_wanted(owner) && self.reading.is_wanted(owner) {
            return Err(Error::WouldWaitForItself { path: (*self.path).into() });
        }
        let acquire = async { self.wait(WRITE).await.map(Writing) };
        let holding = self.writing.share(owner, acquire).await?;
        Ok(WriteGuard { holding, owner: owner.clone(), lock: self.clone() })
    }

    /// [`acquire_write_as`](InterProcessReadWriteLock::acquire_write_as), at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds,
    /// unless the owner holds the lock already.
    ///
    /// # Errors
    /// As [`acquire_write_as`](InterProcessReadWriteLock::acquire_write_as).
    pub async fn acquire_write_as_within(
        &self,
        owner: &Owner,
        limit: Duration,
    ) -> Result<Option<WriteGuard>> {
        timeout(limit, self.acquire_write_as(owner)).await.ok().transpose()
    }

    /// The paths of the readers' znodes, in the order of the queue.
    ///
    /// # Errors
    /// The client's errors.
    pub async fn reader_nodes(&self) -> Result<Vec<String>> {
        queue_place::participant_nodes(&self.client, &self.path, READ).await
    }

    /// The paths of the writers' znodes, in the order of the queue.
    ///
    /// # Errors
    /// The client's errors.
    pub async fn writer_nodes(&self) -> Result<Vec<String>> {
        queue_place::participant_nodes(&self.client, &self.path, WRITE).await
    }

    /// A place in the queue with this word.
    fn spec<'a>(&'a self, word: &'a str) -> PlaceSpec<'a> {
        PlaceSpec { path: &self.path, word, data: &self.data, tag: RecipeTag::ReadWriteLock }
    }

    /// Creates the znode of a reader in the place of a writer, with the writer's number and token. A token of its own
    /// would be larger than those of writers that already wait. It fails if the writer's znode is gone: if another client
    /// has deleted it, the next writer may hold the lock already.
    async fn read_in_place_of(&self, writing: &Writing) -> Result<Reading> {
        let writer = &writing.0;
        if planted::is(Bug::DowngradeToTheEnd) {
            return self.reader_of_planted_bug(writer.session()).await;
        }
        let token = writer.fence().token();
        let path = paths::join(&self.path, &downgraded_name(writer.name(), token.0));
        let spec = self.spec(READ);
        let reader = QueuePlace::take_named(writer.session(), (&path, spec), token).await?;
        // Asked after the reader's znode exists: from then on no later writer becomes the holder.
        writer.fence().verify().await?;
        Ok(Reading(reader))
    }

    /// Creates the znode of a reader at the end of the queue.
    async fn reader_of_planted_bug(&self, session: &Session) -> Result<Reading> {
        let spec = self.spec(READ);
        Ok(Reading(QueuePlace::take(session, spec).await?))
    }

    /// The read lock for the owner of the write lock `writing`. It fails if that write lock is lost: other writers may
    /// have held the lock since.
    async fn read_with(&self, owner: &Owner, writing: &Writing) -> Result<ReadGuard> {
        let lost = || Err(writing.0.fence().not_held());
        if !writing.0.fence().is_held() {
            return lost();
        }
        match self.reading.share(owner, self.read_in_place_of(writing)).await {
            Err(Error::Client(error)) if error.is_session_over() => lost(),
            // Another future of the owner may have acquired it in another session.
            Ok(_) if !writing.0.fence().is_held() => lost(),
            shared => Ok(ReadGuard { holding: shared? }),
        }
    }

    async fn wait(&self, word: &'static str) -> Result<QueuePlace> {
        session_retry::in_a_session(&self.client, |session| self.wait_in(session, word)).await
    }

    async fn wait_in(&self, session: Session, word: &'static str) -> Result<QueuePlace> {
        loop {
            let spec = self.spec(word);
            let mut place = QueuePlace::take_for_turn(&session, spec).await?;
            match place.wait_for_turn(&[READ, WRITE], read_write_position).await? {
                Turn::Ours => return Ok(place),
                Turn::Gone => place.forget(),
            }
        }
    }
}

fn read_write_position<'n>(queue: &'n Queue, mine: &str) -> Position<'n> {
    debug_assert!(number(mine).is_some(), "{mine} is neither a reader nor a writer");
    match number_after(mine, WRITE) {
        Some(_) => writer_position(queue, mine),
        None => reader_position(queue, mine),
    }
}

/// A held read lock. It is released in the background when its owner's last read guard is dropped.
///
/// It dereferences to its [`Fence`]. Compare its token with writers' tokens only: readers that hold at the same time
/// have different ones.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct ReadGuard {
    holding: Arc<Reading>,
}

impl Deref for ReadGuard {
    type Target = Fence;

    fn deref(&self) -> &Fence {
        self.fence()
    }
}

impl ReadGuard {
    /// The holder's fence. Compare its token with writers' tokens only: readers that hold at the same time have
    /// different ones.
    pub fn fence(&self) -> &Fence {
        self.holding.0.fence()
    }

    /// Waits until another process asks this reader to release the lock, by [`attempt_revoke`](super::attempt_revoke) on
    /// one of the lock's [`reader_nodes`](InterProcessReadWriteLock::reader_nodes). The lock stays held until the reader
    /// releases it.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if the lock is lost before that; the client's errors.
    pub async fn revocation_requested(&self) -> Result<()> {
        revocation::requested(self.fence()).await
    }

    /// Releases the lock, and waits until the znode is deleted. If the owner has other guards of this kind, the lock stays
    /// held.
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

/// A held write lock. It is released in the background when its owner's last write guard is dropped.
///
/// It dereferences to its [`Fence`], with token and transactions.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct WriteGuard {
    holding: Arc<Writing>,
    owner: Owner,
    lock: InterProcessReadWriteLock,
}

impl Deref for WriteGuard {
    type Target = Fence;

    fn deref(&self) -> &Fence {
        self.fence()
    }
}

impl WriteGuard {
    /// The holder's fence.
    pub fn fence(&self) -> &Fence {
        self.holding.0.fence()
    }

    /// Acquires the read lock as well, without a wait.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if the write lock is lost: other writers may have held the lock since. The client's errors.
    pub async fn acquire_read(&self) -> Result<ReadGuard> {
        self.lock.read_with(&self.owner, &self.holding).await
    }

    /// Acquires the read lock and releases the write lock. No other writer holds the lock in between.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if the write lock is lost: other writers may have held the lock since. The client's errors.
    /// If the read lock cannot be acquired, the write lock is released, too.
    pub async fn downgrade(self) -> Result<ReadGuard> {
        let reading = self.acquire_read().await?;
        self.release().await?;
        Ok(reading)
    }

    /// Waits until another process asks this writer to release the lock, by [`attempt_revoke`](super::attempt_revoke) on
    /// one of the lock's [`writer_nodes`](InterProcessReadWriteLock::writer_nodes). The lock stays held until the writer
    /// releases it.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if the lock is lost before that; the client's errors.
    pub async fn revocation_requested(&self) -> Result<()> {
        revocation::requested(self.fence()).await
    }

    /// Releases the lock, and waits until the znode is deleted. If the owner has other guards of this kind, the lock stays
    /// held.
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
