//! A value that many processes share and follow.

use crate::{
    background::BackgroundTask,
    counter::{
        CounterError, Result,
        swap::{self, Swap},
    },
    polled::PolledWatch,
    until_answered::{pause, until_answered},
    versioned::VersionedValue,
};
use futures_util::Stream;
use ostler_client::{Bytes, Client, Error, ErrorCode, Stat, Watch, WatchedEvent, Zxid};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::watch;

/// A value that many processes share: each sees the changes of all. Curator's `SharedValue`.
///
/// [`value`](SharedValue::value) can be a little old; [`try_set`](SharedValue::try_set) writes only if the value is
/// still the newest. Without a connection the last value stays, and after the reconnect it is read again. If the znode
/// is deleted, or may not be read any more, the last value stays until there is a new one. When this is dropped, it stops
/// following the znode, and streams end.
#[derive(Debug)]
#[must_use = "a value that is dropped is not followed any more"]
pub struct SharedValue {
    client: Client,
    path: String,
    current: Arc<watch::Sender<KnownValue>>,
    work: BackgroundTask,
}

/// The newest value that this client knows.
#[derive(Debug)]
struct KnownValue {
    value: VersionedValue<Bytes>,
    /// The value or the client is closed, so no change comes any more.
    ended: bool,
}

/// The changes of a [`SharedValue`], for one reader.
#[derive(Debug, Clone)]
pub struct ValueChanges {
    current: PolledWatch<KnownValue>,
    /// The zxid of the value that the reader got last.
    known: Zxid,
}

impl ValueChanges {
    /// Waits for a change since the last call, and returns the newest value. Earlier changes are left out. `None` once
    /// the value or the client is closed.
    pub async fn next(&mut self) -> Option<VersionedValue<Bytes>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<VersionedValue<Bytes>>> {
        loop {
            let (newest, ended) = {
                let current = self.current.borrow_and_update();
                (current.value.zxid(), current.ended)
            };
            if newest != self.known {
                return Poll::Ready(Some(self.now()));
            }
            if ended || ready!(self.current.poll_changed(cx)).is_none() {
                return Poll::Ready(None);
            }
        }
    }

    /// The value now. [`next`](ValueChanges::next) then waits for a later change.
    pub(crate) fn now(&mut self) -> VersionedValue<Bytes> {
        let value = self.current.borrow_and_update().value.clone();
        self.known = value.zxid();
        value
    }
}

impl Stream for ValueChanges {
    type Item = VersionedValue<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<VersionedValue<Bytes>>> {
        self.poll(cx)
    }
}

impl SharedValue {
    /// Creates the znode with `seed` if it does not exist, and reads it.
    ///
    /// # Errors
    /// Those of create and getData; `NotReadOnly` from a server that is cut off from the others.
    pub async fn start(client: &Client, path: &str, seed: impl AsRef<[u8]>) -> Result<SharedValue> {
        let seed = seed.as_ref();
        let first = loop {
            let create = || async {
                match client.create(path, seed).creating_container_parents().await {
                    // The server is cut off. This can last, so the caller gets the error.
                    Err(error) if error.code() == Some(ErrorCode::NotReadOnly) => Ok(Err(error)),
                    made => made.map(Ok),
                }
            };
            match until_answered(client, create).await {
                Ok(refused) => drop(refused?),
                Err(error) if error.is_node_exists() => {}
                Err(error) => return Err(error.into()),
            }
            match until_answered(client, || client.get_data(path)).await {
                // Another client has deleted the znode: it is created again.
                Err(error) if error.is_no_node() => {}
                read => break versioned(read?),
            }
        };
        let current = Arc::new(watch::Sender::new(KnownValue { value: first, ended: false }));
        let work = BackgroundTask::spawn(client, follow(client.clone(), path.to_owned(), current.clone()));
        Ok(SharedValue { client: client.clone(), path: path.to_owned(), current, work })
    }

    /// The value as it was last seen.
    pub fn value(&self) -> Bytes {
        self.current.borrow().value.value.clone()
    }

    /// The value as it was last seen, and its znode's Stat.
    pub fn versioned_value(&self) -> VersionedValue<Bytes> {
        self.current.borrow().value.clone()
    }

    /// Sets the value unconditionally.
    ///
    /// # Errors
    /// `NoNode` if the znode was deleted. [`Error::ConnectionLoss`]: the value may be set or not.
    pub async fn set(&self, value: impl AsRef<[u8]>) -> Result<()> {
        let value = value.as_ref();
        let stat = self.client.set_data(&self.path, value).await?;
        update(&self.current, versioned((Bytes::copy_from_slice(value), stat)));
        Ok(())
    }

    /// Sets the value if it has not been set since `previous` was read. Returns false if it has. Then the newest value is
    /// read, so a loop of [`versioned_value`](SharedValue::versioned_value) and `try_set` makes progress.
    ///
    /// # Errors
    /// [`CounterError::VersionUnusable`]. [`Error::ConnectionLoss`]: the value may be set or not.
    pub async fn try_set(&self, previous: &VersionedValue<Bytes>, value: impl AsRef<[u8]>) -> Result<bool> {
        let value = value.as_ref();
        // A transaction writes a znode's data at most once, so equal zxids mean equal data.
        if previous.zxid() != self.current.borrow().value.zxid() {
            return Ok(false);
        }
        match swap::set(&self.client, &self.path, value, previous.stat.version).await? {
            Swap::Done(stat) => {
                update(&self.current, versioned((Bytes::copy_from_slice(value), stat)));
                Ok(true)
            }
            Swap::Lost => {
                let read = self.client.get_data(&self.path).await.map_err(CounterError::Client)?;
                update(&self.current, versioned(read));
                Ok(false)
            }
        }
    }

    /// The changes from now on. The present value does not come first: read it by [`value`](SharedValue::value) after this
    /// call.
    pub fn changes(&self) -> ValueChanges {
        let current = self.current.subscribe();
        let known = current.borrow().value.zxid();
        ValueChanges { current: PolledWatch::new(current), known }
    }

    /// Stops following the znode, and waits for that. The last value stays, and streams end. The value can still be set.
    /// Further callers wait for the same.
    pub async fn close(&self) {
        self.work.stop().await;
        self.current.send_modify(|current| current.ended = true);
    }
}

fn versioned((value, stat): (Bytes, Stat)) -> VersionedValue<Bytes> {
    VersionedValue { value, stat }
}

/// Takes `next` if it is newer than the known value. Results of reads and of own writes come in any order.
fn update(current: &watch::Sender<KnownValue>, next: VersionedValue<Bytes>) {
    current.send_if_modified(|current| {
        let newer = next.zxid() > current.value.zxid();
        if newer {
            current.value = next;
        }
        newer
    });
}

/// Reads the value at each change, until the client is closed.
async fn follow(client: Client, path: String, current: Arc<watch::Sender<KnownValue>>) {
    let mut refused = 0;
    loop {
        match read_and_watch(&client, &path, &current).await {
            Ok(changed) => {
                refused = 0;
                if ended(changed.await) {
                    break;
                }
            }
            Err(error) if error.is_closed() => break,
            // The server refuses the read. No event comes when it allows the read again.
            Err(error) => {
                if refused == 0 {
                    tracing::warn!(path, %error, "a shared value cannot be read");
                }
                refused += 1;
                pause(refused).await;
            }
        }
    }
    current.send_modify(|current| current.ended = true);
}

/// Whether the client is closed, by the end of a watch. A watch that was removed is set again.
fn ended(changed: ostler_client::Result<WatchedEvent>) -> bool {
    changed.is_err_and(|error| error.is_closed() || matches!(error, Error::SessionExpired { .. }))
}

/// Reads the value, if the znode exists. Returns the watch for the next change.
async fn read_and_watch(
    client: &Client,
    path: &str,
    current: &watch::Sender<KnownValue>,
) -> ostler_client::Result<Watch> {
    loop {
        match until_answered(client, || client.get_data(path).watch()).await {
            Ok((read, changed)) => {
                update(current, versioned(read));
                return Ok(changed);
            }
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
        if let (None, created) = until_answered(client, || client.exists(path).watch()).await? {
            return Ok(created);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CURATOR-688: a value with the version -2,147,483,648 is newer than one with 2,147,483,647. CURATOR-329: so is a value
    /// with the version 0 in a new znode.
    #[test]
    fn curator_688_the_zxid_and_not_the_version_shows_the_newer_value() {
        let at = |zxid, version, value: &str| VersionedValue {
            value: Bytes::copy_from_slice(value.as_bytes()),
            stat: Stat { mzxid: Zxid(zxid), version, ..Stat::default() },
        };
        for (now, next, expected) in [
            (at(5, i32::MAX, "a"), at(6, i32::MIN, "b"), "b"),
            (at(5, 3, "a"), at(6, 0, "b"), "b"),
            (at(5, -1, "a"), at(6, 0, "b"), "b"),
            (at(6, i32::MIN, "b"), at(5, i32::MAX, "a"), "b"),
            (at(6, 2, "b"), at(6, 2, "b"), "b"),
        ] {
            let current = watch::Sender::new(KnownValue { value: now, ended: false });
            update(&current, next);
            assert_eq!(current.borrow().value.value, expected);
        }
    }
}
