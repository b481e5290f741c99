//! What waits to be written to one connection.
//!
//! Everything for a client goes through its outbox, pushed while the core is locked: that alone gives each
//! connection its order, a notification before any reply that shows the change.

use ostler_proto::{
    connect::ConnectResponse,
    id::Zxid,
    jute::Writer as _,
    reply::{Body, Reply, ReplyHeader},
    shared::SharedBytes,
    stat::Stat,
};
use ostler_server_core::CloseReason;
use std::{
    io::IoSlice,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;

/// Data from here on is not copied into the buffer but shared with the znode until it is written.
const SHARE_FROM: usize = 16 << 10;
/// A client that reads no notifications is dropped when so much of them waits.
const UNREAD_MAX: usize = 64 << 20;
/// Buffers larger than this are given back after use: most connections are idle most of the time.
const KEEP_MAX: usize = 16 << 10;

#[derive(Debug)]
enum Chunk {
    Own(Vec<u8>),
    Shared(SharedBytes),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Own(bytes) => bytes,
            Chunk::Shared(bytes) => bytes,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Whole chunks before `tail`; only large data makes any.
    full: Vec<Chunk>,
    tail: Vec<u8>,
    len: usize,
    close: Option<CloseReason>,
    /// Notifications pushed.
    notified: u64,
}

impl State {
    /// Writes a successful reply's frame length and header; a body of so many bytes follows.
    fn begin(&mut self, reply: &Reply, body: usize) {
        self.tail.length(ReplyHeader::SIZE + body);
        self.tail.i32(reply.xid.0);
        self.tail.i64(reply.zxid.map_or(-1, Zxid::to_wire));
        self.tail.i32(0);
    }

    fn share(&mut self, bytes: &SharedBytes) {
        let head = std::mem::take(&mut self.tail);
        self.full.push(Chunk::Own(head));
        self.full.push(Chunk::Shared(bytes.clone()));
    }
}

/// The queue, and the call that wakes the connection's task.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    wake: Notify,
    unanswered: AtomicUsize,
    holds_back: AtomicBool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends through `write`, and returns how many bytes; wakes the task if nothing waited before.
    fn push(&self, write: impl FnOnce(&mut State)) -> usize {
        let mut state = self.lock();
        let before = state.len;
        let was_idle = state.len == 0 && state.close.is_none();
        write(&mut state);
        let full: usize = state.full.iter().map(|chunk| chunk.bytes().len()).sum();
        state.len = full + state.tail.len();
        let pushed = state.len.saturating_sub(before);
        drop(state);
        if was_idle {
            self.wake.notify_one();
        }
        pushed
    }

    pub(crate) fn connected(&self, response: &ConnectResponse) {
        self.push(|state| response.write_frame(&mut state.tail));
    }

    /// Returns the size of the frame.
    pub(crate) fn reply(&self, reply: &Reply) -> usize {
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        self.holds_back.store(false, Ordering::Relaxed);
        self.push(|state| match &reply.result {
            Ok(Body::Data(Some(data), stat)) if data.len() >= SHARE_FROM => {
                state.begin(reply, 4 + data.len() + Stat::SIZE);
                state.tail.length(data.len());
                state.share(data);
                stat.write(&mut state.tail);
            }
            Ok(Body::Children(names)) if names.len() >= SHARE_FROM => {
                state.begin(reply, names.len());
                state.share(names);
            }
            Ok(Body::ChildrenStat(names, stat)) if names.len() >= SHARE_FROM => {
                state.begin(reply, names.len() + Stat::SIZE);
                state.share(names);
                stat.write(&mut state.tail);
            }
            _ => reply.write_frame(&mut state.tail),
        })
    }

    /// So many encoded notifications. True when the client has let too many of them wait.
    pub(crate) fn notify(&self, frames: &[u8], count: u64) -> bool {
        let mut overfull = false;
        self.push(|state| {
            overfull = state.len > UNREAD_MAX;
            if overfull {
                state.close = Some(CloseReason::Protocol);
            } else {
                state.tail.raw(frames);
                state.notified += count;
            }
        });
        if overfull {
            self.wake.notify_one();
        }
        overfull
    }

    /// Wakes the task even while it waits for a client that reads nothing.
    pub(crate) fn close(&self, reason: CloseReason) {
        self.push(|state| state.close = state.close.or(Some(reason)));
        self.wake.notify_one();
    }

    /// Whether the connection is to be closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.lock().close.is_some()
    }

    /// Text that is no frame (four-letter words).
    pub(crate) fn raw(&self, bytes: &[u8]) {
        self.push(|state| state.tail.raw(bytes));
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().len
    }

    /// Requests handed to the core and not answered yet.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.load(Ordering::Relaxed)
    }

    pub(crate) fn count_request(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    /// No more requests are to be taken until something is answered.
    pub(crate) fn hold_back(&self) {
        self.holds_back.store(true, Ordering::Relaxed);
    }

    pub(crate) fn holds_back(&self) -> bool {
        self.holds_back.load(Ordering::Relaxed)
    }

    /// Notifications given out so far.
    pub(crate) fn notified(&self) -> u64 {
        self.lock().notified
    }

    pub(crate) fn reset_notified(&self) {
        self.lock().notified = 0;
    }

    /// Waits until something is pushed.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Takes all that waits into `sending`, and says whether the connection is to be closed after it.
    pub(crate) fn take(&self, sending: &mut Sending) -> Option<CloseReason> {
        let mut state = self.lock();
        if state.len > 0 {
            sending.chunks.append(&mut state.full);
            let spare = std::mem::take(&mut sending.spare);
            sending.chunks.push(Chunk::Own(std::mem::replace(&mut state.tail, spare)));
            state.len = 0;
        }
        state.close
    }
}

/// Bytes taken from an outbox and partly written.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    chunks: Vec<Chunk>,
    /// Of the first chunk, already written.
    written: usize,
    spare: Vec<u8>,
}

impl Sending {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// What to write next, in one call.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let first = self.chunks.iter().take(1).map(|chunk| &chunk.bytes()[self.written..]);
        let rest = self.chunks.iter().skip(1).take(63).map(Chunk::bytes);
        first.chain(rest).map(IoSlice::new).collect()
    }

    /// The single chunk that nearly every write is.
    pub(crate) fn single(&self) -> Option<&[u8]> {
        match &self.chunks[..] {
            [one] => Some(&one.bytes()[self.written..]),
            _ => None,
        }
    }

    /// `n` bytes were written.
    pub(crate) fn advance(&mut self, n: usize) {
        self.written += n;
        let mut done = 0;
        for chunk in &self.chunks {
            let len = chunk.bytes().len();
            if self.written < len {
                break;
            }
            self.written -= len;
            done += 1;
        }
        for chunk in self.chunks.drain(..done) {
            if let Chunk::Own(mut bytes) = chunk
                && bytes.capacity() <= KEEP_MAX
            {
                bytes.clear();
                self.spare = bytes;
            }
        }
    }

    /// The connection has been idle: no buffer is kept for it.
    pub(crate) fn shrink(&mut self) {
        self.spare = Vec::new();
        self.chunks.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::id::Xid;

    fn replies(len: usize) -> [Reply; 3] {
        let bytes = SharedBytes::from(&vec![7; len][..]);
        let stat = Stat::default();
        let bodies = [
            Body::Data(Some(bytes.clone()), stat),
            Body::Children(bytes.clone()),
            Body::ChildrenStat(bytes, stat),
        ];
        bodies.map(|body| Reply { xid: Xid(1), zxid: Some(Zxid(2)), result: Ok(body) })
    }

    #[test]
    fn shared_data_makes_the_same_bytes_as_copied() {
        for len in [0, SHARE_FROM - 1, SHARE_FROM, SHARE_FROM * 3] {
            let (mut expected, outbox, mut sending) = (Vec::new(), Outbox::default(), Sending::default());
            for reply in replies(len) {
                reply.write_frame(&mut expected);
                outbox.count_request();
                outbox.reply(&reply);
            }
            assert_eq!(outbox.len(), expected.len());
            assert_eq!((outbox.take(&mut sending), outbox.unanswered()), (None, 0));
            let mut written: Vec<u8> = Vec::new();
            while !sending.is_empty() {
                let step: Vec<u8> = sending.slices().iter().flat_map(|slice| slice.iter().copied()).collect();
                let n = step.len().min(1000);
                written.extend(&step[..n]);
                sending.advance(n);
            }
            assert!(written == expected, "{len} bytes of data");
        }
    }

    fn taken(outbox: &Outbox) -> (Vec<u8>, Option<CloseReason>) {
        let mut sending = Sending::default();
        let close = outbox.take(&mut sending);
        (sending.slices().iter().flat_map(|slice| slice.to_vec()).collect(), close)
    }

    fn small(xid: i32) -> Reply {
        Reply { xid: Xid(xid), zxid: Some(Zxid(9)), result: Ok(Body::None) }
    }

    #[test]
    fn answers_that_wait_are_no_reason_to_drop_an_event() {
        let outbox = Outbox::default();
        let [large, ..] = replies(1 << 20);
        for _ in 0..90 {
            outbox.count_request();
            outbox.reply(&large);
        }
        let before = outbox.len();
        assert!(!outbox.notify(b"an event", 1));
        assert_eq!(outbox.len(), before + 8);
    }

    /// An answer that went out after a lost event would have the client believe that it knows of the change.
    #[test]
    fn nothing_goes_out_after_a_dropped_event() {
        let outbox = Outbox::default();
        let event = vec![1; 1 << 20];
        let kept = (0..).take_while(|_| !outbox.notify(&event, 1)).count();
        assert_eq!(kept << 20, UNREAD_MAX);
        outbox.count_request();
        outbox.reply(&small(7));
        outbox.notify(b"later", 1);
        outbox.raw(b"later");
        assert_eq!(outbox.unanswered(), 0);
        let (bytes, close) = taken(&outbox);
        assert_eq!((bytes.len(), close), (UNREAD_MAX, Some(CloseReason::Protocol)));
    }
}
