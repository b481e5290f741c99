//! A value that is changed by compare and set.

use crate::counter::{
    CounterError, PromotedToLock, Result,
    swap::{self, Swap},
};
use ostler_client::{Bytes, Client, RetryPolicy, Stat};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What became of an attempt to change a value. `AtomicValue` in Curator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "it says whether the value was changed"]
pub struct AtomicUpdate<T> {
    /// Whether it was changed. If not, others were faster, as often as the retry policy allowed.
    pub succeeded: bool,
    /// The value before.
    pub before: T,
    /// The value after; without success the value before.
    pub after: T,
    /// What it took.
    pub stats: AtomicStats,
}

impl<T> AtomicUpdate<T> {
    pub(crate) fn try_map<U>(self, map: impl Fn(T) -> Result<U>) -> Result<AtomicUpdate<U>> {
        let AtomicUpdate { succeeded, before, after, stats } = self;
        Ok(AtomicUpdate { succeeded, before: map(before)?, after: map(after)?, stats })
    }
}

/// What it took to change a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtomicStats {
    /// Tries without the lock.
    pub optimistic_tries: u32,
    /// Tries under the lock.
    pub promoted_tries: u32,
    /// How long it was tried without the lock.
    pub optimistic_time: Duration,
    /// How long it took with the lock, waiting for it included.
    pub promoted_time: Duration,
}

/// A value that many processes change. Curator's `DistributedAtomicValue`.
///
/// A change is tried as the retry policy says: first without a lock, and then, if that was asked for, under one.
#[derive(Debug, Clone)]
pub struct DistributedAtomicValue {
    client: Client,
    path: String,
    retry: RetryPolicy,
    promotion: Option<PromotedToLock>,
}

impl DistributedAtomicValue {
    /// The value of a znode, which is created when it is first set. `retry` is for when others are faster.
    pub fn new(client: &Client, path: &str, retry: RetryPolicy) -> DistributedAtomicValue {
        DistributedAtomicValue { client: client.clone(), path: path.to_owned(), retry, promotion: None }
    }

    /// Goes on under a lock when the retry policy gives up.
    #[must_use]
    pub fn promoted_to_lock(mut self, promotion: PromotedToLock) -> Self {
        self.promotion = Some(promotion);
        self
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The value now; `None` if there is none.
    ///
    /// # Errors
    /// Those of getData but `NoNode`.
    pub async fn get(&self) -> Result<Option<Bytes>> {
        Ok(self.read().await?.map(|(value, _)| value))
    }

    /// Sets the value, whatever it is.
    ///
    /// # Errors
    /// Those of setData and create; connection trouble: it may be set or not.
    pub async fn force_set(&self, value: impl AsRef<[u8]>) -> Result<()> {
        let value = value.as_ref();
        self.client.create(&self.path, value).creating_container_parents().or_set_data().await?;
        Ok(())
    }

    /// Sets the value if it is `expected`. Tries once; a value that is not there is not set.
    ///
    /// # Errors
    /// Those of getData and setData; connection loss: it may be set or not.
    pub async fn compare_and_set(
        &self,
        expected: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<AtomicUpdate<Option<Bytes>>> {
        self.set_if(|data| Ok(data[..] == *expected.as_ref()), value.as_ref()).await
    }

    /// Sets the value if what is there `is_expected`.
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

    /// Sets the value. Unlike [`force_set`](DistributedAtomicValue::force_set) it tells what was there before.
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
    /// Those of create; connection loss: it may be created or not.
    pub async fn initialize(&self, value: impl AsRef<[u8]>) -> Result<bool> {
        Ok(swap::create(&self.client, &self.path, value.as_ref()).await? != Swap::Lost)
    }

    /// Changes the value to what `make` makes of it, which can be called several times.
    ///
    /// # Errors
    /// Those of getData, setData and create, and of `make`; connection loss: it may be changed or not.
    /// [`CounterError::Lock`]: it is not changed.
    pub async fn update(
        &self,
        make: impl Fn(Option<&Bytes>) -> Result<Bytes>,
    ) -> Result<AtomicUpdate<Option<Bytes>>> {
        let mut stats = AtomicStats::default();
        let begun = Instant::now();
        let mut tried = self.try_often(&make, self.retry, &mut stats.optimistic_tries).await?;
        stats.optimistic_time = begun.elapsed();
        if !tried.succeeded
            && let Some(promotion) = &self.promotion
        {
            let begun = Instant::now();
            let held = promotion.lock.acquire(promotion.limit).await.map_err(CounterError::Lock)?;
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
            let Some(wait) = policy.wait(*tries, begun.elapsed(), begun.elapsed().subsec_nanos().into())
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
