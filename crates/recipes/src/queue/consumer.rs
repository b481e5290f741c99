//! The consumer of a queue's items.

use crate::{
    background::BackgroundTask,
    claim::Claim,
    queue::{
        ErrorMode, items,
        kinds::Queue,
        names::{self, Kind},
        set_aside::SetAside,
    },
    until_answered::{fired, is_transient, pause, until_answered},
};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use ostler_client::{Client, Error, Result, Stat, Version, Watch, paths};
use std::{
    panic::AssertUnwindSafe,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// Takes items out of a queue until it is closed or dropped.
///
/// [`close`](Consumer::close) lets it end its present item. When it is dropped, it stops in the middle of the item in
/// hand. With a [lock path](crate::queue::QueueBuilder::lock_path) that item goes to another consumer; without one it is
/// lost.
#[derive(Debug)]
#[must_use = "a consumer that is dropped stops"]
pub struct Consumer {
    stop: watch::Sender<bool>,
    work: BackgroundTask,
}

/// Says whether the consumer is to stop after its present item.
#[derive(Debug, Clone)]
struct Stop(watch::Receiver<bool>);

impl Stop {
    fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    async fn asked(mut self) {
        // An error means that the consumer was dropped, which stops the task.
        let _ = self.0.wait_for(|asked| *asked).await;
    }
}

struct Consumption {
    queue: Queue,
    /// Of items that others are consuming: should those fail, the items are ours.
    locked: FuturesUnordered<Watch>,
    aside: SetAside,
}

/// The result for an item.
enum Handled {
    /// It is gone, or others are consuming it.
    Done,
    /// It is in the queue under another name.
    PutBack,
    /// It must be looked at again: no event will tell of it.
    Unknown,
    /// It is left for a while.
    Refused,
}

impl Consumer {
    pub(crate) fn start<F, Fut, E>(queue: Queue, mut consume: F) -> Consumer
    where
        F: FnMut(Bytes) -> Fut + Send + 'static,
        Fut: Future<Output = std::result::Result<(), E>> + Send,
        E: std::fmt::Display + Send,
    {
        let client = queue.client.clone();
        let mut work = Consumption { queue, locked: FuturesUnordered::new(), aside: SetAside::default() };
        let (stop, asked) = watch::channel(false);
        let asked = Stop(asked);
        let work = async move {
            let mut tries = 0;
            while !asked.is_asked() {
                match work.round(&mut consume, &asked).await {
                    Ok(()) => tries = 0,
                    Err(error) if error.is_closed() => return,
                    Err(error) => {
                        tracing::warn!(path = work.queue.path, %error, "trouble with a queue");
                        tries += 1;
                        tokio::select! {
                            () = pause(tries) => {}
                            () = asked.clone().asked() => {}
                        }
                    }
                }
            }
        };
        Consumer { stop, work: BackgroundTask::spawn(&client, work) }
    }

    /// Takes no more items, and waits for the end of the present one: it is consumed, and deleted or put back. Without a
    /// connection this waits for one. If the future is dropped, the consumer stops after its item nevertheless.
    pub async fn close(&self) {
        self.stop.send_replace(true);
        self.work.ended().await;
    }
}

impl Consumption {
    /// Takes the items that are there, and waits for more. Returns early if the consumer is to stop.
    async fn round<F, Fut, E>(&mut self, consume: &mut F, stop: &Stop) -> Result<()>
    where
        F: FnMut(Bytes) -> Fut,
        Fut: Future<Output = std::result::Result<(), E>>,
        E: std::fmt::Display,
    {
        let client = self.queue.client.clone();
        let look = until_answered(&client, || client.get_children(&self.queue.path).watch());
        let (names, mut changed) = tokio::select! {
            found = look => found?,
            () = stop.clone().asked() => return Ok(()),
        };
        self.locked.clear();
        self.aside.retain(&names);
        let (mut delay, mut taken) = (None, 0);
        for name in names::in_order(self.queue.kind, names) {
            if stop.is_asked() {
                return Ok(());
            }
            let enough =
                matches!(self.queue.kind, Kind::Priority { before_refresh } if taken >= before_refresh);
            if enough {
                if let Some(event) = now(&mut changed).await {
                    return fired(event);
                }
            }
            let left_ms = names::delay_ms(self.queue.kind, &name, now_ms());
            if left_ms > 0 {
                delay = sooner(delay, Some(Duration::from_millis(left_ms)));
                break;
            }
            if let Some(left) = self.aside.left(&name) {
                delay = sooner(delay, Some(left));
                continue;
            }
            match self.handle(&name, consume).await? {
                Handled::Done => taken += 1,
                // Not counted: it may be the first again in a newer list, and keep the rest waiting for ever.
                Handled::PutBack => {}
                Handled::Unknown => return Ok(()),
                Handled::Refused => {
                    self.aside.add(name.clone());
                    delay = sooner(delay, self.aside.left(&name));
                }
            }
        }
        tokio::select! {
            event = changed => fired(event)?,
            Some(gone) = self.locked.next() => fired(gone)?,
            () = stop.clone().asked() => {}
            () = tokio::time::sleep(delay.unwrap_or_default()), if delay.is_some() => {}
        }
        Ok(())
    }

    /// Consumes an item, if it is to be had.
    async fn handle<F, Fut, E>(&mut self, name: &str, consume: &mut F) -> Result<Handled>
    where
        F: FnMut(Bytes) -> Fut,
        Fut: Future<Output = std::result::Result<(), E>>,
        E: std::fmt::Display,
    {
        let handled = match self.queue.lock_path.clone() {
            Some(lock_path) => self.under_lock(&lock_path, name, consume).await,
            None => self.at_once(name, consume).await,
        };
        match handled {
            Err(error) if error.code().is_some() || matches!(error, Error::TooLarge { .. }) => {
                let path = paths::join(&self.queue.path, name);
                tracing::warn!(path, %error, "a queue item is left for a while");
                Ok(Handled::Refused)
            }
            handled => handled,
        }
    }

    /// Deletes an item, and consumes it if this was who deleted it.
    async fn at_once<F, Fut, E>(&self, name: &str, consume: &mut F) -> Result<Handled>
    where
        F: FnMut(Bytes) -> Fut,
        Fut: Future<Output = std::result::Result<(), E>>,
        E: std::fmt::Display,
    {
        if let Some(data) = claim(&self.queue, name).await? {
            consume_all(name, &data, consume).await;
        }
        Ok(Handled::Done)
    }

    /// Consumes an item while there is a znode that says so.
    async fn under_lock<F, Fut, E>(&mut self, lock_path: &str, name: &str, consume: &mut F) -> Result<Handled>
    where
        F: FnMut(Bytes) -> Fut,
        Fut: Future<Output = std::result::Result<(), E>>,
        E: std::fmt::Display,
    {
        let (client, item) = (self.queue.client.clone(), paths::join(&self.queue.path, name));
        let lock = paths::join(lock_path, name);
        let Some(claim) = Claim::take(&client, &lock).await? else {
            let (held, gone) = until_answered(&client, || client.exists(&lock).watch()).await?;
            if held.is_some() {
                self.locked.push(gone);
                return Ok(Handled::Done);
            }
            let is_gone = until_answered(&client, || client.exists(&item)).await?.is_none();
            return Ok(if is_gone { Handled::Done } else { Handled::Unknown });
        };
        let data = match until_answered(&client, || client.get_data(&item)).await {
            Ok((data, _)) => data,
            Err(error) if error.is_no_node() => {
                let released = claim.release(|multi| multi).await?;
                return Ok(if released { Handled::Done } else { Handled::Unknown });
            }
            Err(error) => return Err(error),
        };
        let done = consume_all(name, &data, consume).await;
        let put_back = !done && self.queue.error_mode == ErrorMode::Requeue;
        let again = put_back.then(|| names::put_back(self.queue.kind, name, SystemTime::now()));
        let again = again.map(|name| paths::join(&self.queue.path, &name));
        let end = claim.release(|multi| {
            let multi = multi.delete(&item).and();
            match &again {
                Some(path) => multi.create(path, &data).sequential().and(),
                None => multi,
            }
        });
        Ok(match end.await? {
            true if put_back => Handled::PutBack,
            true => Handled::Done,
            false => Handled::Unknown,
        })
    }
}

/// The event, if it has come already.
async fn now(watch: &mut Watch) -> Option<Result<ostler_client::WatchedEvent>> {
    tokio::select! {
        biased;
        event = watch => Some(event),
        () = std::future::ready(()) => None,
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// Consumes the items of a znode; false if the consumer has failed or panicked. An item that cannot be decoded is
/// dropped, as Curator does.
async fn consume_all<F, Fut, E>(name: &str, data: &Bytes, consume: &mut F) -> bool
where
    F: FnMut(Bytes) -> Fut,
    Fut: Future<Output = std::result::Result<(), E>>,
    E: std::fmt::Display,
{
    let items = match items::decode(data) {
        Ok(items) => items,
        Err(error) => {
            tracing::error!(name, %error, "a queue item whose data is not in the format of items is deleted");
            return true;
        }
    };
    for item in items {
        // Its panic ends what it does with the item, and not the consumer.
        match AssertUnwindSafe(async { consume(item).await }).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(name, %error, "the consumer of an item has failed");
                return false;
            }
            Err(_) => {
                tracing::error!(name, "the consumer of an item has panicked");
                return false;
            }
        }
    }
    true
}

/// Deletes an item; gives its data if this was who deleted it.
async fn claim(queue: &Queue, name: &str) -> Result<Option<Bytes>> {
    let (client, path) = (&queue.client, paths::join(&queue.path, name));
    let (data, stat) = match until_answered(client, || client.get_data(&path)).await {
        Err(error) if error.is_no_node() => return Ok(None),
        read => read?,
    };
    Ok(delete(client, &path, &stat).await?.then_some(data))
}

/// Deletes a znode; true if this was who did it. If the reply is lost and the znode is gone, it is not known who was
/// it, and delivering it could be the second time.
async fn delete(client: &Client, path: &str, stat: &Stat) -> Result<bool> {
    let mut unknown = false;
    loop {
        match client.delete(path).version(Version::Exactly(stat.version)).await {
            Ok(()) => return Ok(true),
            Err(error) if error.is_no_node() || error.is_bad_version() => {
                if unknown {
                    tracing::warn!(path, "the connection was lost while an item was taken; it may be lost");
                }
                return Ok(false);
            }
            Err(error) if is_transient(&error) => {
                unknown |= error.is_outcome_unknown();
                client.wait_connected().await?;
                until_answered(client, || client.sync(path)).await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Removes an item that nobody is consuming; true if this was who did it.
pub(crate) async fn take(queue: &Queue, name: &str) -> Result<bool> {
    let Some(lock_path) = &queue.lock_path else { return Ok(claim(queue, name).await?.is_some()) };
    let item = paths::join(&queue.path, name);
    let claim = Claim::take(&queue.client, &paths::join(lock_path, name)).await?;
    let Some(claim) = claim else { return Ok(false) };
    let there = until_answered(&queue.client, || queue.client.exists(&item)).await?.is_some();
    let released = claim.release(|multi| if there { multi.delete(&item).and() } else { multi }).await?;
    Ok(there && released)
}
