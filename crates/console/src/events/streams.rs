//! The streams of events that are open, and their bytes.

use super::{BEAT, LASTS, Newest, beat};
use crate::{
    error::{ApiError, Code},
    state::Console,
};
use axum::body::Bytes;
use futures_util::{Stream, stream};
use ostler_server::admin::logins::network;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, watch},
    time::{Interval, MissedTickBehavior, interval, sleep_until},
};

/// Streams at once, and those of one address.
const STREAMS_MAX: usize = 64;
const PER_ADDRESS_MAX: usize = 16;
/// A stream that has taken nothing for this time is slow: a reader takes at least the beats.
const SLOW_AFTER: Duration = Duration::from_secs(15);

/// The streams that are open.
#[derive(Default)]
pub(crate) struct Streams {
    open: Mutex<BTreeMap<u64, Open>>,
}

struct Open {
    /// The reader's address, or its network.
    address: IpAddr,
    /// When the stream took something last.
    taken: Instant,
    end: Arc<End>,
}

#[derive(Default)]
struct End {
    is_over: AtomicBool,
    notify: Notify,
}

/// A stream's place among those that are open. It is given back when it is dropped.
pub(super) struct Place {
    streams: Arc<Streams>,
    number: u64,
    end: Arc<End>,
}

impl Streams {
    /// Takes a place. If all are taken, or all of this address, the slowest stream of them is dropped.
    pub(super) fn enter(self: Arc<Self>, address: IpAddr, now: Instant) -> Result<Place, ApiError> {
        let (address, end) = (network(address), Arc::new(End::default()));
        let number = {
            let mut open = self.open();
            make_room(&mut open, address, now)?;
            let number = open.last_key_value().map_or(0, |(number, _)| number + 1);
            open.insert(number, Open { address, taken: now, end: end.clone() });
            number
        };
        Ok(Place { streams: self, number, end })
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the slowest stream if there is no place for another one of this address.
fn make_room(open: &mut BTreeMap<u64, Open>, address: IpAddr, now: Instant) -> Result<(), ApiError> {
    let near = open.values().filter(|stream| stream.address == address).count();
    let is_crowded = near >= PER_ADDRESS_MAX;
    if !is_crowded && open.len() < STREAMS_MAX {
        return Ok(());
    }
    let some = open.iter().filter(|(_, stream)| !is_crowded || stream.address == address);
    let slowest = some.min_by_key(|(_, stream)| stream.taken);
    let slow = slowest.filter(|(_, of)| now.saturating_duration_since(of.taken) >= SLOW_AFTER);
    let Some(number) = slow.map(|(number, _)| *number) else {
        let whose = if is_crowded { "pages of your address" } else { "pages" };
        return Err(ApiError::new(
            Code::TooMany,
            format!("Too many {whose} follow this server: close some, or load this page again by hand."),
        ));
    };
    if let Some(slow) = open.remove(&number) {
        slow.end.is_over.store(true, Ordering::Relaxed);
        slow.end.notify.notify_one();
    }
    Ok(())
}

impl Place {
    fn has_taken(&self) {
        if let Some(open) = self.streams.open().get_mut(&self.number) {
            open.taken = Instant::now();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The number of one that was dropped may be another's by now.
        if !self.end.is_over.load(Ordering::Relaxed) {
            self.streams.open().remove(&self.number);
        }
    }
}

/// One stream: the newest states of its topics, and beats.
pub(super) struct EventStream {
    console: Weak<Console>,
    topics: Vec<(&'static str, watch::Receiver<Newest>)>,
    place: Place,
    beats: Interval,
    until: tokio::time::Instant,
    /// The number of the next event.
    next: u64,
}

/// The next thing to send.
enum Next {
    State(&'static str, Arc<str>),
    Beat,
    End,
}

impl EventStream {
    pub(super) fn new(
        console: Weak<Console>,
        mut topics: Vec<(&'static str, watch::Receiver<Newest>)>,
        place: Place,
    ) -> EventStream {
        // A state that is there already is sent at the start.
        topics.iter_mut().for_each(|(_, newest)| newest.mark_changed());
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let until = tokio::time::Instant::now() + LASTS;
        EventStream { console, topics, place, beats, until, next: 0 }
    }

    /// The bytes to send.
    pub(super) fn bytes(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut of| async move {
            let bytes = of.next_event().await?;
            Some((Ok(bytes), of))
        })
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        self.place.has_taken();
        let (name, data) = match self.wait().await {
            Next::State(name, data) => (name, data),
            Next::Beat => ("beat", beat(&*self.console.upgrade()?).into()),
            Next::End => return None,
        };
        let number = self.next;
        self.next += 1;
        // The time after which a browser opens the next stream.
        let retry = if number == 0 { "retry: 2000\n" } else { "" };
        Some(format!("{retry}id: {number}\nevent: {name}\ndata: {data}\n\n").into())
    }

    /// Waits for a topic that has changed, or for the next beat.
    async fn wait(&mut self) -> Next {
        if self.place.end.is_over.load(Ordering::Relaxed) {
            return Next::End;
        }
        let changed = changed(&mut self.topics);
        tokio::select! {
            biased;
            () = self.place.end.notify.notified() => Next::End,
            () = sleep_until(self.until) => Next::End,
            changed = changed => changed,
            _ = self.beats.tick() => Next::Beat,
        }
    }
}

/// The first topic that has a new state.
async fn changed(topics: &mut [(&'static str, watch::Receiver<Newest>)]) -> Next {
    loop {
        let waiting = topics.iter_mut().map(|(name, newest)| {
            Box::pin(async move {
                match newest.changed().await {
                    Ok(()) => newest.borrow_and_update().clone().map(|state| Next::State(name, state)),
                    // Its task has ended, as the server does.
                    Err(_) => Some(Next::End),
                }
            })
        });
        let (first, _, _) = futures_util::future::select_all(waiting).await;
        if let Some(next) = first {
            return next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn the_slowest_stream_makes_room_and_a_quick_one_does_not() {
        let (streams, start) = (Arc::new(Streams::default()), Instant::now());
        let enter = |number: usize, now| streams.clone().enter(address(number as u32), now);
        let mut places: Vec<Place> =
            (0..STREAMS_MAX).map(|number| enter(number, start).ok().unwrap()).collect();
        assert!(enter(STREAMS_MAX, start).is_err(), "all are quick");
        let late = start + SLOW_AFTER;
        let slow = places.remove(7);
        for place in &places {
            streams.open().get_mut(&place.number).unwrap().taken = late;
        }
        let next = enter(STREAMS_MAX, late).ok().unwrap();
        assert!(slow.end.is_over.load(Ordering::Relaxed));
        assert_eq!(streams.open().len(), STREAMS_MAX);
        drop(slow);
        assert_eq!(streams.open().len(), STREAMS_MAX, "its place is another's");
        drop((next, places));
        assert_eq!(streams.open().len(), 0);
    }

    #[test]
    fn one_address_does_not_take_the_places_of_others() {
        let (streams, start) = (Arc::new(Streams::default()), Instant::now());
        let enter = |number, now| streams.clone().enter(address(number), now);
        let other = enter(2, start).ok().unwrap();
        let late = start + SLOW_AFTER;
        let mut places: Vec<Place> = (0..PER_ADDRESS_MAX).map(|_| enter(1, late).ok().unwrap()).collect();
        assert!(enter(1, late).is_err());
        places.push(enter(1, late + SLOW_AFTER).ok().unwrap());
        assert!(places[0].end.is_over.load(Ordering::Relaxed), "the slowest of this address");
        assert!(!other.end.is_over.load(Ordering::Relaxed));
        assert_eq!(streams.open().len(), 1 + PER_ADDRESS_MAX);
        assert!(enter(2, late).is_ok());
    }
}
