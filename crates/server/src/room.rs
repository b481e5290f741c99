//! Limits the memory for answers and notifications that wait to be read by the clients of all connections.
//!
//! Answers: above the limit large reads wait for their turn, see `Driver::requests`. Bytes that several answers share
//! count once. Bytes that an answer shares with the tree count, too, because the tree may drop them at any time.
//! Notifications cannot wait, so a client that reads too few of them loses its connection.

use ostler_proto::{shared::SharedBytes, strings::StringParts};
use rustc_hash::FxBuildHasher;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::{Notify, futures::Notified};

/// By default the limit is this part of the machine's memory.
const PART_OF_MEMORY: u64 = 16;
/// The least default limit, in bytes.
const LEAST: u64 = 128 << 20;
/// Answers longer than that of one znode may not take the last quarter of the room. It is kept for reads of one znode.
const LONG: usize = 2 << 20;
/// The longest answer, in bytes.
const LONGEST: usize = 64 << 20;
/// The limit of one connection's unread notifications, in bytes.
const UNREAD_MAX: usize = 64 << 20;
/// Bytes of unread notifications that every connection may have, whatever the others have.
pub(crate) const UNREAD_LEAST: usize = 64 << 10;

/// The limit, and the memory that is in use.
#[derive(Debug)]
pub(crate) struct Room {
    max: usize,
    answers: AtomicUsize,
    notifications: AtomicUsize,
    /// The number of answers' chunks that hold the bytes at an address. No other bytes can have a held address.
    shared: Mutex<HashMap<usize, usize, FxBuildHasher>>,
    waiting: AtomicUsize,
    freed: Notify,
}

impl Room {
    pub(crate) fn new(max: Option<u64>) -> Room {
        let max = max.unwrap_or_else(|| (memory() / PART_OF_MEMORY).max(LEAST));
        Room {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            answers: AtomicUsize::new(0),
            notifications: AtomicUsize::new(0),
            shared: Mutex::default(),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// Whether answers use all the room, together with the `promised` bytes.
    pub(crate) fn is_full(&self, promised: usize) -> bool {
        self.answers.load(Ordering::Relaxed).saturating_add(promised) >= self.max
    }

    /// Whether an answer may have to wait for room. If not, its size need not be computed.
    pub(crate) fn is_scarce(&self, promised: usize) -> bool {
        self.is_beyond(self.max / 4 * 3, promised.saturating_add(LONGEST))
    }

    /// Whether an answer of about this number of bytes fits. An answer longer than the whole room fits if no other is there.
    pub(crate) fn fits(&self, size: usize, promised: usize) -> bool {
        let limit = if size > LONG { self.max / 4 * 3 } else { self.max };
        !self.is_beyond(limit, promised.saturating_add(size)) || !self.is_beyond(0, promised)
    }

    fn is_beyond(&self, limit: usize, more: usize) -> bool {
        self.answers.load(Ordering::Relaxed).saturating_add(more) > limit
    }

    /// Whether a large read waits for a turn.
    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits until an answer is dropped.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// The limit of a connection's unread notifications, in bytes. It falls as those of others grow.
    pub(crate) fn unread_max(&self) -> usize {
        let left = self.max.saturating_sub(self.notifications.load(Ordering::Relaxed));
        (left / 4).clamp(UNREAD_LEAST, UNREAD_MAX)
    }

    fn shared(&self) -> MutexGuard<'_, HashMap<usize, usize, FxBuildHasher>> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, bytes: usize) {
        self.answers.fetch_sub(bytes, Ordering::Relaxed);
        if self.is_wanted() {
            self.freed.notify_one();
        }
    }
}

/// Bytes that an answer shares with the tree and with other answers.
pub(crate) trait Shared {
    /// The same address for all answers that share the bytes.
    fn address(&self) -> usize;
    /// The number of bytes.
    fn size(&self) -> usize;
}

impl Shared for SharedBytes {
    fn address(&self) -> usize {
        self.as_ptr() as usize
    }

    fn size(&self) -> usize {
        self.len()
    }
}

impl Shared for Arc<StringParts> {
    fn address(&self) -> usize {
        Arc::as_ptr(self) as usize
    }

    fn size(&self) -> usize {
        StringParts::size(self)
    }
}

/// Shared bytes, counted until they are dropped.
#[derive(Debug)]
pub(crate) struct Lent<S: Shared> {
    shared: S,
    room: Arc<Room>,
}

impl<S: Shared> Lent<S> {
    pub(crate) fn new(shared: S, room: &Arc<Room>) -> Lent<S> {
        let holders = &mut *room.shared();
        match holders.entry(shared.address()) {
            Entry::Occupied(mut of_others) => *of_others.get_mut() += 1,
            Entry::Vacant(first) => {
                first.insert(1);
                room.answers.fetch_add(shared.size(), Ordering::Relaxed);
            }
        }
        Lent { shared, room: room.clone() }
    }

    pub(crate) fn get(&self) -> &S {
        &self.shared
    }
}

impl<S: Shared> Drop for Lent<S> {
    fn drop(&mut self) {
        let is_last = match self.room.shared().entry(self.shared.address()) {
            Entry::Occupied(entry) if *entry.get() == 1 => {
                entry.remove();
                true
            }
            Entry::Occupied(mut of_others) => {
                *of_others.get_mut() -= 1;
                false
            }
            Entry::Vacant(_) => false,
        };
        if is_last {
            self.room.give_back(self.shared.size());
        }
    }
}

/// Bytes of one answer, counted until they are dropped.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) bytes: Vec<u8>,
    room: Arc<Room>,
    counted: usize,
}

impl Copied {
    pub(crate) fn new(bytes: Vec<u8>, room: &Arc<Room>) -> Copied {
        let counted = bytes.len();
        room.answers.fetch_add(counted, Ordering::Relaxed);
        Copied { bytes, room: room.clone(), counted }
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.room.give_back(self.counted);
    }
}

/// A connection's notifications that are not read yet.
#[derive(Debug)]
pub(crate) struct Unread {
    room: Arc<Room>,
    bytes: usize,
}

impl Unread {
    pub(crate) fn none(room: &Arc<Room>) -> Unread {
        Unread { room: room.clone(), bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.room.notifications.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes all of them, for the task that sends them.
    pub(crate) fn take(&mut self) -> Unread {
        std::mem::replace(self, Unread::none(&self.room))
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.room.notifications.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// A read that waits for its turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiter(Arc<Room>);

impl Waiter {
    pub(crate) fn at(room: &Arc<Room>) -> Waiter {
        room.waiting.fetch_add(1, Ordering::Relaxed);
        Waiter(room.clone())
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The machine's memory, or the limit of this process if that is less, in bytes.
fn memory() -> u64 {
    let machine = rustix::system::sysinfo();
    let of_machine = machine.totalram.saturating_mul(u64::from(machine.mem_unit).max(1));
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max");
    let limit = limit.ok().and_then(|text| text.trim().parse().ok());
    limit.map_or(of_machine, |limit: u64| limit.min(of_machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_bytes_count_once_until_the_last_answer_is_dropped() {
        let room = Arc::new(Room::new(Some(100)));
        let (one, other) = (SharedBytes::from(&[1; 60][..]), SharedBytes::from(&[1; 60][..]));
        let twice = [Lent::new(one.clone(), &room), Lent::new(one.clone(), &room)];
        assert!(!room.is_full(0) && room.is_full(40));
        let more = Lent::new(other.clone(), &room);
        assert!(room.is_full(0));
        drop(more);
        let copied = Copied::new(vec![0; 40], &room);
        assert!(room.is_full(0));
        drop(copied);
        let [first, second] = twice;
        drop(first);
        assert!(room.is_full(40), "the second answer still holds the bytes");
        drop(second);
        assert!(!room.is_full(99) && room.shared().is_empty());
    }

    #[test]
    fn long_answers_leave_room_for_others() {
        const MB: usize = 1 << 20;
        let room = Arc::new(Room::new(Some(100 << 20)));
        assert!(room.fits(64 * MB, 0) && room.fits(200 * MB, 0), "no other answer is there");
        let taken = Copied::new(vec![0; 60 * MB], &room);
        assert!(room.is_scarce(0) && room.fits(15 * MB, 0) && !room.fits(16 * MB, 0));
        assert!(room.fits(MB, 39 * MB) && !room.fits(MB, 40 * MB));
        drop(taken);
        assert!(!room.is_scarce(10 * MB));
    }

    #[test]
    fn the_limit_of_unread_notifications_falls_as_those_of_others_grow() {
        let room = Arc::new(Room::new(Some(400 << 20)));
        assert_eq!(room.unread_max(), UNREAD_MAX);
        let mut deaf = Unread::none(&room);
        deaf.add(360 << 20);
        assert_eq!(room.unread_max(), 10 << 20);
        deaf.add(60 << 20);
        assert_eq!(room.unread_max(), UNREAD_LEAST);
        let sent = deaf.take();
        assert_eq!((deaf.bytes(), room.unread_max()), (0, UNREAD_LEAST));
        drop(sent);
        assert_eq!(room.unread_max(), UNREAD_MAX);
    }

    #[test]
    fn the_default_limit_is_a_part_of_the_memory() {
        let room = Room::new(None);
        assert!(room.max as u64 >= LEAST && (room.max as u64) <= memory().max(LEAST));
    }
}
