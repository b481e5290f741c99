//! The queue of everything that has to be sent on one connection of the quorum port.

use ostler_proto::{id::Zxid, quorum_packet::Packet};
use ostler_server_core::{PeerMessage, Record};
use ostler_tree::FrozenTree;
use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::sleep};

/// Bytes that may wait. If more wait for one learner, its connection is closed, and it is synchronized anew when it
/// comes back. If more wait for all learners together, the connection with the longest queue is closed.
pub(crate) const WAITING_MAX: usize = 512 << 20;
/// After a connection is closed, messages that were queued before may still be sent for this long. A peer that does not
/// read is not waited for any longer.
const LAST_MESSAGES_WITHIN: Duration = Duration::from_millis(500);

/// A piece of the stream to a peer.
#[derive(Debug)]
pub(super) enum Segment {
    /// Encoded packets.
    Bytes(Vec<u8>),
    /// A tree. It is encoded while it is sent.
    Tree(Box<FrozenTree>),
    /// Committed records. They are encoded while they are sent, because the core would have to wait for it here.
    History(Vec<(Zxid, Record)>),
}

#[derive(Debug, Default)]
struct State {
    /// Segments that go out before `tail`. There are none unless a tree or a history was queued.
    before: Vec<Segment>,
    tail: Vec<u8>,
    closed: bool,
    /// The queue was dropped because it was too long. Nothing more is sent.
    overfull: bool,
}

/// Everything that waits to be sent on one connection.
#[derive(Debug, Default)]
pub(crate) struct PeerOutbox {
    state: Mutex<State>,
    /// Wakes the task that writes.
    wake: Notify,
    /// Wakes the task that waits for the end of the connection, even while a write is under way.
    closing: Notify,
    /// Bytes that wait in this outbox and all others of the server.
    waiting_in_all: Arc<AtomicUsize>,
}

impl Drop for PeerOutbox {
    fn drop(&mut self) {
        let waiting = self.lock().tail.len();
        self.waiting_in_all.fetch_sub(waiting, Ordering::Relaxed);
    }
}

impl PeerOutbox {
    /// An outbox whose bytes are counted in `waiting_in_all`, too.
    pub(crate) fn among(waiting_in_all: &Arc<AtomicUsize>) -> PeerOutbox {
        PeerOutbox {
            state: Mutex::default(),
            wake: Notify::new(),
            closing: Notify::new(),
            waiting_in_all: waiting_in_all.clone(),
        }
    }

    /// Bytes that wait to be sent, without trees and histories.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().tail.len()
    }

    /// Drops the queue, because it is too long, and closes the connection.
    pub(crate) fn give_up(&self) {
        self.end_overfull(&mut self.lock());
    }

    fn end_overfull(&self, state: &mut State) {
        self.waiting_in_all.fetch_sub(state.tail.len(), Ordering::Relaxed);
        *state = State { closed: true, overfull: true, ..State::default() };
        self.closing.notify_one();
    }

    /// Takes the encoded packets to send them, and leaves `next` as the buffer for those that follow.
    fn take_tail(&self, state: &mut State, next: Vec<u8>) -> Vec<u8> {
        self.waiting_in_all.fetch_sub(state.tail.len(), Ordering::Relaxed);
        std::mem::replace(&mut state.tail, next)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message. A closed outbox ignores it.
    pub(crate) fn push(&self, message: PeerMessage) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let idle = state.tail.is_empty() && state.before.is_empty();
        let before = state.tail.len();
        match message {
            PeerMessage::Packet(packet) => packet.write(&mut state.tail),
            PeerMessage::Proposal(zxid, record) => {
                Packet::Proposal { zxid, record: Cow::Borrowed(&record.0) }.write(&mut state.tail);
            }
            PeerMessage::Inform(zxid, record) => {
                Packet::Inform { zxid, record: Cow::Borrowed(&record.0) }.write(&mut state.tail);
            }
            PeerMessage::History(records) => {
                let head = std::mem::take(&mut state.tail);
                state.before.push(Segment::Bytes(head));
                state.before.push(Segment::History(records));
            }
            PeerMessage::Snapshot(frozen) => {
                Packet::Snap(frozen.zxid).write(&mut state.tail);
                let head = std::mem::take(&mut state.tail);
                state.before.push(Segment::Bytes(head));
                state.before.push(Segment::Tree(frozen));
            }
        }
        // The packets before a tree or a history are few. They are not counted.
        self.waiting_in_all.fetch_add(state.tail.len(), Ordering::Relaxed);
        self.waiting_in_all.fetch_sub(before, Ordering::Relaxed);
        if state.tail.len() > WAITING_MAX {
            self.end_overfull(&mut state);
        } else if idle {
            self.wake.notify_one();
        }
    }

    /// Closes the connection after the messages that are queued.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
        self.closing.notify_one();
    }

    /// Returns when the connection has to end although messages may still be queued: [`LAST_MESSAGES_WITHIN`] after it
    /// was closed, or at once if the queue was dropped.
    pub(super) async fn given_up(&self) {
        while !self.lock().closed {
            self.closing.notified().await;
        }
        if !self.lock().overfull {
            sleep(LAST_MESSAGES_WITHIN).await;
        }
    }

    /// Waits for something to send and appends it to `segments`. Returns false if the outbox is closed and empty.
    /// Packets that are queued later are encoded into `spare`.
    pub(super) async fn next(&self, segments: &mut Vec<Segment>, spare: &mut Vec<u8>) -> bool {
        loop {
            {
                let mut state = self.lock();
                segments.append(&mut state.before);
                if !state.tail.is_empty() {
                    let next = std::mem::take(spare);
                    segments.push(Segment::Bytes(self.take_tail(&mut state, next)));
                }
                if !segments.is_empty() {
                    return true;
                }
                if state.closed {
                    return false;
                }
            }
            self.wake.notified().await;
            // Lets other tasks that are ready queue their packets first. One write then sends a commit together with the
            // next proposal, for example.
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_in_all_is_the_sum_of_all_outboxes() {
        let waiting_in_all = Arc::new(AtomicUsize::new(0));
        let (one, other) = (PeerOutbox::among(&waiting_in_all), PeerOutbox::among(&waiting_in_all));
        let commit = |outbox: &PeerOutbox| outbox.push(PeerMessage::Packet(Packet::Commit(Zxid(1))));
        let in_all = || waiting_in_all.load(Ordering::Relaxed);
        (0..3).for_each(|_| commit(&one));
        commit(&other);
        assert_eq!(in_all(), one.waiting() + other.waiting());
        assert!(other.waiting() > 0);
        one.give_up();
        commit(&one);
        assert_eq!((one.waiting(), in_all()), (0, other.waiting()));
        other.push(PeerMessage::History(Vec::new()));
        assert_eq!(in_all(), 0, "the commit before the history is not counted");
        commit(&other);
        drop(other);
        assert_eq!(in_all(), 0);
    }
}
