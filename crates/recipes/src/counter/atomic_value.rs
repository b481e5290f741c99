//! A value that is changed by compare and set.

use crate::counter::{
    CounterError, PromotedToLock, Result,
    swap::{self, Swap},
};
use ostler_client::{Bytes, Client, RetryPolicy, Stat};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The result of an attempt to change a value. `AtomicValue` in Curator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "it says whether the value was changed"]
#[non_exhaustive]
pub struct AtomicUpdate<T> {
    /// Whether the value was changed. If not, other writers were faster in all tries that the retry policy allows.
    pub succeeded: bool,
    /// The value before.
    pub before: T,
    /// The value after; the value before if it was not changed.
    pub after: T,
    /// The number of tries, and their time.
    pub stats: AtomicStats,
}

impl<T> AtomicUpdate<T> {
    pub(crate) fn try_map<U>(self, map: impl Fn(T) -> Result<U>) -> Result<AtomicUpdate<U>> {
        let AtomicUpdate { succeeded, before, after, stats } = self;
        Ok(AtomicUpdate { succeeded, before: map(before)?, after: map(after)?, stats })
    }
}

/// The tries of one change of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AtomicStats {
    /// The number of tries without the lock.
    pub optimistic_tries: u32,
    /// The number of tries under the lock.
    pub promoted_tries: u32,
    /// The time of the tries without the lock.
    pub optimistic_time: Duration,
    /// The time of the tries under the lock, including the wait for the lock.
    pub promoted_time: Duration,
}

/// A value that many processes change. Curator's `DistributedAtomicValue`.
///
/// A change is tried by the retry policy, first without a lock and then, with
/// [`promoted_to_lock`](DistributedAtomicValue::promoted_to_lock), under one.
#[derive(Debug, Clone)]
pub struct DistributedAtomicValue {
    client: Client,
    path: String,
    retry: RetryPolicy,
    promotion: Option<PromotedToLock>,
}

impl DistributedAtomicValue {
    /// The value in a znode. The first write creates the znode. `retry` says how often to try again when other writers
    /// are faster.
    pub fn new(client: &Client, path: &str, retry: RetryPolicy) -> DistributedAtomicValue {
        DistributedAtomicValue { client: client.clone(), path: path.to_owned(), retry, promotion: None }
    }

    /// Tries again under a lock when the retry policy gives up.
    #[must_use]
    pub fn promoted_to_lock(mut self, promotion: PromotedToLock) -> Self {
        self.promotion = Some(promotion);
        self
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Reads the value; `None` if the znode does not exist.
    ///
    /// # Errors
    /// Those of getData, except `NoNode`.
    pub async fn get(&self) -> Result<Option<Bytes>> {
        Ok(self.read().await?.map(|(value, _)| value))
    }

    /// Sets the value unconditionally.
    ///
    /// # Errors
    /// Those of setData and create. After connection trouble the value may be set or not.
    pub async fn force_set(&self, value: impl AsRef<[u8]>) -> Result<()> {
        let value = value.as_ref();
        self.client.create(&self.path, value).creating_container_parents().or_set_data().await?;
        Ok(())
    }

    /// Sets the value if it is `expected`. Tries once. If the znode does not exist, nothing is set.
    ///
    /// # Errors
    /// Those of getData and setData. After connection loss the value may be set or not.
    pub async fn compare_and_set(
        &self,
        expected: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<AtomicUpdate<Option<Bytes>>> {
        self.set_if(|data| Ok(data[..] == *expected.as_ref()), value.as_ref()).await
    }

    /// Sets the value if `is_expected` is true for the present one.
    pub(crate) async fn set_if(
        &self,
        is_expected: impl Fn(&Bytes) -> Result<bool>,
        value: &[u8],
    ) -> Result<AtomicUpdate<Option<Bytes>>> {
        let found = self.read().await?;
        let stats = AtomicStats { optimistic_tries: 1, ..AtomicStats::default() };
        let before = found.as_ref().map(|(data, _)| data.clone());
        let succeeded = match &found {
            Some((data, stat)) if is_expected(data)? => {
                swap::set(&self.client, &self.path, value, stat.version).await? != Swap::Lost
            }
            _ => false,
        };
        let after = if succeeded { Some(Bytes::copy_from_slice(value)) } else { before.clone() };
        Ok(AtomicUpdate { succeeded, before, after, stats })
    }

    /// Sets the value, and returns the value before, unlike [`force_set`](DistributedAtomicValue::force_set).
    ///
    /// # Errors
    /// Those of [`update`](DistributedAtomicValue::update).
    pub async fn try_set(&self, value: impl AsRef<[u8]>) -> Result<AtomicUpdate<Option<Bytes>>> {
        let value = Bytes::copy_from_slice(value.as_ref());
        self.update(|_| Ok(value.clone())).await
    }

    /// Creates the znode with this value; false if there is one already.
    ///
    /// # Errors
    /// Those of create. After connection loss the znode may be created or not.
    pub async fn initialize(&self, value: impl AsRef<[u8]>) -> Result<bool> {
        Ok(swap::create(&self.client, &self.path, value.as_ref()).await? != Swap::Lost)
    }

    /// Changes the value to the result of `make`, which gets the present value and can be called several times. An error
    /// of `make` ends the change and leaves the value; [`CounterError::refused`] makes one of any reason.
    ///
    /// # Errors
    /// Those of getData, setData, create and `make`. After connection loss the value may be changed or not.
    /// [`CounterError::Lock`], [`CounterError::Refused`]: the value was not changed.
    pub async fn update(
        &self,
        make: impl Fn(Option<&Bytes>) -> Result<Bytes>,
    ) -> Result<AtomicUpdate<Option<Bytes>>> {
        let mut stats = AtomicStats::default();
        let begun = Instant::now();
        let mut tried = self.try_often(&make, self.retry, &mut stats.optimistic_tries).await?;
        stats.optimistic_time = begun.elapsed();
        if let Some(promotion) = self.promotion.as_ref().filter(|_| !tried.succeeded) {
            let begun = Instant::now();
            let held = promotion.lock.acquire_within(promotion.limit).await.map_err(CounterError::Lock)?;
            if let Some(held) = held {
                tried = self.try_often(&make, promotion.retry, &mut stats.promoted_tries).await?;
                drop(held);
            }
            stats.promoted_time = begun.elapsed();
        }
        Ok(AtomicUpdate { stats, ..tried })
    }

    async fn try_often(
        &self,
        make: &impl Fn(Option<&Bytes>) -> Result<Bytes>,
        policy: RetryPolicy,
        tries: &mut u32,
    ) -> Result<AtomicUpdate<Option<Bytes>>> {
        let begun = Instant::now();
        loop {
            let tried = self.try_once(make).await?;
            *tries += 1;
            if tried.succeeded {
                return Ok(tried);
            }
            let Some(wait) = policy.next_wait(*tries, begun.elapsed(), begun.elapsed().subsec_nanos().into())
            else {
                return Ok(tried);
            };
            sleep(wait).await;
        }
    }

    async fn try_once(
        &self,
        make: &impl Fn(Option<&Bytes>) -> Result<Bytes>,
    ) -> Result<AtomicUpdate<Option<Bytes>>> {
        let found = self.read().await?;
        let before = found.as_ref().map(|(data, _)| data.clone());
        let value = make(before.as_ref())?;
        let swapped = match &found {
            Some((_, stat)) => swap::set(&self.client, &self.path, &value, stat.version).await?,
            None => swap::create(&self.client, &self.path, &value).await?,
        };
        let succeeded = swapped != Swap::Lost;
        let after = if succeeded { Some(value) } else { before.clone() };
        Ok(AtomicUpdate { succeeded, before, after, stats: AtomicStats::default() })
    }

    async fn read(&self) -> Result<Option<(Bytes, Stat)>> {
        match self.client.get_data(&self.path).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_no_node() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
