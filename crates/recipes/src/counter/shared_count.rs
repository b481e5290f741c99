//! A number that many processes share and follow.

use crate::{
    counter::{
        AtomicNumber, Result, SharedValue, ValueChanges,
        atomic_number::{decode, encode},
    },
    versioned::VersionedValue,
};
use futures_util::Stream;
use ostler_client::{Bytes, Client};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A number that many processes share: each sees the changes of all. Curator's `SharedCount`.
///
/// It behaves as [`SharedValue`] does. Clones are the same count: it is followed until the last of them is dropped, or
/// one of them is closed.
#[derive(Debug, Clone)]
#[must_use = "a count that is dropped is not followed any more"]
pub struct SharedCount {
    value: Arc<SharedValue>,
    path: String,
}

/// The changes of a [`SharedCount`], for one reader.
#[derive(Debug, Clone)]
pub struct CountChanges {
    changes: ValueChanges,
    path: String,
}

impl CountChanges {
    /// Waits for a change since the last call, and returns the newest count; `None` once the count or the client is
    /// closed.
    pub async fn next(&mut self) -> Option<Result<VersionedValue<i32>>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<VersionedValue<i32>>>> {
        let changed = ready!(self.changes.poll(cx));
        Poll::Ready(changed.map(|changed| number(&self.path, changed)))
    }

    /// The count now. [`next`](CountChanges::next) then waits for a later change.
    pub(crate) fn now(&mut self) -> Result<i32> {
        number(&self.path, self.changes.now()).map(|count| count.value)
    }
}

impl Stream for CountChanges {
    type Item = Result<VersionedValue<i32>>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<VersionedValue<i32>>>> {
        self.poll(cx)
    }
}

fn number(path: &str, value: VersionedValue<Bytes>) -> Result<VersionedValue<i32>> {
    let count = decode(path, &value.value)?;
    Ok(value.map(|_| count))
}

impl SharedCount {
    /// Creates the znode with `seed` if it does not exist, and reads it.
    ///
    /// # Errors
    /// Those of [`SharedValue::start`].
    pub async fn start(client: &Client, path: &str, seed: i32) -> Result<SharedCount> {
        let value = SharedValue::start(client, path, encode(seed)).await?;
        Ok(SharedCount { value: Arc::new(value), path: path.to_owned() })
    }

    /// The count as it was last seen.
    ///
    /// # Errors
    /// [`Corrupt`](crate::counter::CounterError::Corrupt).
    pub fn count(&self) -> Result<i32> {
        Ok(self.versioned_value()?.value)
    }

    /// The count as it was last seen, and its znode's Stat.
    ///
    /// # Errors
    /// [`Corrupt`](crate::counter::CounterError::Corrupt).
    pub fn versioned_value(&self) -> Result<VersionedValue<i32>> {
        number(&self.path, self.value.versioned_value())
    }

    /// Sets the count unconditionally.
    ///
    /// # Errors
    /// Those of [`SharedValue::set`].
    pub async fn set(&self, count: i32) -> Result<()> {
        self.value.set(encode(count)).await
    }

    /// Sets the count if it has not been set since `previous` was read. Returns false if it has.
    ///
    /// # Errors
    /// Those of [`SharedValue::try_set`].
    pub async fn try_set(&self, previous: &VersionedValue<i32>, count: i32) -> Result<bool> {
        let previous = previous.clone().map(|count| Bytes::copy_from_slice(count.to_bytes().as_ref()));
        self.value.try_set(&previous, encode(count)).await
    }

    /// The changes from now on. The present count does not come first: read it by [`count`](SharedCount::count) after this
    /// call.
    pub fn changes(&self) -> CountChanges {
        CountChanges { changes: self.value.changes(), path: self.path.clone() }
    }

    /// Stops following the znode, and waits for that: see [`SharedValue::close`].
    pub async fn close(&self) {
        self.value.close().await;
    }
}
