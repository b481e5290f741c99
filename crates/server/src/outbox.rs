//! [`Outbox`]: the bytes that wait to be written to one connection.
//!
//! Everything for a client goes through its outbox, pushed while the core is locked: that alone gives each
//! connection its order, a notification before any reply that shows the change.

use crate::{
    room::{Copied, Lent, Room, Unread},
    sending::{Chunk, KEEP_MAX, Sending, take_spare},
};
use ostler_proto::{
    connect::ConnectResponse,
    jute::Writer as _,
    reply::{Body, OpResult, Reply, ReplyHeader},
    request::MultiHeader,
    shared::SharedBytes,
    stat::Stat,
    strings::SharedStrings,
};
use ostler_server_core::CloseReason;
use ostler_server_core::stats::traced::TracedRequest;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};
use tokio::sync::Notify;

/// Data from here on is not copied into the buffer but shared with the znode until it is written.
const SHARE_FROM: usize = 16 << 10;
#[derive(Debug)]
struct State {
    /// Whole chunks before `tail`. There are some only if the output is large.
    full: Vec<Chunk>,
    full_len: usize,
    tail: Vec<u8>,
    close: Option<CloseReason>,
    /// The connection is to be closed because too many notifications wait here. The core does not know of it.
    is_overfull: bool,
    unread: Unread,
    /// Notifications pushed.
    notified: u64,
}

impl State {
    fn len(&self) -> usize {
        self.full_len + self.tail.len()
    }

    /// Writes the frame length and header of a successful reply whose body has this number of bytes.
    fn begin(&mut self, reply: &Reply, body: usize) {
        self.tail.length(ReplyHeader::SIZE + body);
        reply.write_header(&mut self.tail);
    }

    fn share(&mut self, bytes: &SharedBytes, room: &Arc<Room>) {
        self.end_chunk(room);
        self.full_len += bytes.len();
        self.full.push(Chunk::Shared(Lent::new(bytes.clone(), room)));
    }

    /// Appends names, shared if there are many.
    fn names(&mut self, names: &SharedStrings, room: &Arc<Room>) {
        match names {
            SharedStrings::Whole(bytes) if bytes.len() >= SHARE_FROM => self.share(bytes, room),
            SharedStrings::Parts(list) if list.size() >= SHARE_FROM => {
                self.tail.length(list.count());
                self.end_chunk(room);
                self.full_len += list.size() - 4;
                let lent = Arc::new(Lent::new(list.clone(), room));
                let parts = 0..list.parts().len();
                self.full.extend(parts.map(|part| Chunk::Listed { list: lent.clone(), part }));
            }
            short => short.write(&mut self.tail),
        }
    }

    fn end_chunk(&mut self, room: &Arc<Room>) {
        let tail = std::mem::take(&mut self.tail);
        self.full_len += tail.len();
        let is_large = tail.len() > KEEP_MAX;
        self.full.push(if is_large { Chunk::Copied(Copied::new(tail, room)) } else { Chunk::Own(tail) });
    }

    /// Writes a reply whose long data and names are shared, each by itself.
    fn multi(&mut self, reply: &Reply, results: &[OpResult], room: &Arc<Room>) {
        let (chunk, at) = (self.full.len(), self.tail.len());
        self.tail.i32(0);
        let before = self.len();
        reply.write_header(&mut self.tail);
        for result in results {
            match result {
                OpResult::GetData(Some(data), _) if data.len() >= SHARE_FROM => {
                    result.write_before(&mut self.tail);
                    self.share(data, room);
                    result.write_after(&mut self.tail);
                }
                OpResult::GetChildren(names) => {
                    result.write_before(&mut self.tail);
                    self.names(names, room);
                }
                _ => result.write(&mut self.tail),
            }
        }
        MultiHeader::END.write(&mut self.tail);
        let length = i32::try_from(self.len() - before).expect("a frame's length fits in 31 bits");
        // The length stands in the buffer that was the last one when the frame began.
        let first = self.full.get_mut(chunk).map_or(Some(&mut self.tail[..]), Chunk::own);
        let first = first.expect("what is shared comes behind its frame's header");
        first[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// The queue, and the call that wakes the connection's task.
#[derive(Debug)]
pub(crate) struct Outbox {
    room: Arc<Room>,
    /// Whether the connection has TLS, for reports.
    has_tls: AtomicBool,
    state: Mutex<State>,
    wake: Notify,
    unanswered: AtomicUsize,
    holds_back: AtomicBool,
    /// The number of the last slow request whose answer waits here; 0 for none.
    slow: AtomicU64,
    /// Traced requests whose answers wait here, each with the time since when.
    traced: Mutex<Vec<(Instant, TracedRequest)>>,
    has_traced: AtomicBool,
}

impl Outbox {
    pub(crate) fn new(room: Arc<Room>) -> Outbox {
        let state = State {
            full: Vec::new(),
            full_len: 0,
            tail: Vec::new(),
            close: None,
            is_overfull: false,
            unread: Unread::none(&room),
            notified: 0,
        };
        Outbox {
            room,
            has_tls: AtomicBool::new(false),
            state: Mutex::new(state),
            wake: Notify::new(),
            unanswered: AtomicUsize::new(0),
            holds_back: AtomicBool::new(false),
            slow: AtomicU64::new(0),
            traced: Mutex::default(),
            has_traced: AtomicBool::new(false),
        }
    }

    /// Notes that the connection has TLS.
    pub(crate) fn note_tls(&self) {
        self.has_tls.store(true, Ordering::Relaxed);
    }

    /// Whether the connection has TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.has_tls.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends through `write`, and returns the number of bytes. Wakes the task if nothing waited before. `None` if the
    /// connection is to be closed: an answer after an event that was dropped would have the client believe that it knows
    /// of the change.
    fn push(&self, write: impl FnOnce(&mut State)) -> Option<usize> {
        let mut state = self.lock();
        if state.close.is_some() {
            return None;
        }
        let before = state.len();
        if state.tail.capacity() == 0 {
            state.tail = take_spare();
        }
        write(&mut state);
        if state.tail.len() > KEEP_MAX {
            state.end_chunk(&self.room);
        }
        let pushed = state.len() - before;
        drop(state);
        if before == 0 {
            self.wake.notify_one();
        }
        Some(pushed)
    }

    pub(crate) fn connected(&self, response: &ConnectResponse) {
        self.push(|state| response.write_frame(&mut state.tail));
    }

    /// Returns the size of the frame.
    pub(crate) fn reply(&self, reply: &Reply) -> usize {
        self.holds_back.store(false, Ordering::Relaxed);
        let pushed = self.push(|state| {
            self.write_reply(state, reply);
            // Under the lock: a thread that sees no unanswered request finds all answers.
            self.unanswered.fetch_sub(1, Ordering::Relaxed);
        });
        if pushed.is_none() {
            self.unanswered.fetch_sub(1, Ordering::Relaxed);
        }
        pushed.unwrap_or(0)
    }

    fn write_reply(&self, state: &mut State, reply: &Reply) {
        let room = &self.room;
        match &reply.result {
            Ok(Body::Data(Some(data), stat)) if data.len() >= SHARE_FROM => {
                state.begin(reply, 4 + data.len() + Stat::SIZE);
                state.tail.length(data.len());
                state.share(data, room);
                stat.write(&mut state.tail);
            }
            Ok(Body::Children(names) | Body::Paths(names)) => {
                state.begin(reply, names.size());
                state.names(names, room);
            }
            Ok(Body::ChildrenStat(names, stat)) => {
                state.begin(reply, names.size() + Stat::SIZE);
                state.names(names, room);
                stat.write(&mut state.tail);
            }
            Ok(Body::Multi(results) | Body::BrokenMultiRead(results)) => state.multi(reply, results, room),
            _ => reply.write_frame(&mut state.tail),
        }
    }

    /// Appends a number of encoded notifications. Returns true if the client has let too many of them wait. Then these
    /// are dropped, and the connection is closed. Answers that wait do not count; no more of them are made until they are read.
    pub(crate) fn notify(&self, frames: &[u8], count: u64) -> bool {
        let mut overfull = false;
        self.push(|state| {
            overfull = state.unread.bytes() + frames.len() > self.room.unread_max();
            if overfull {
                (state.close, state.is_overfull) = (Some(CloseReason::Protocol), true);
            } else {
                state.tail.raw(frames);
                state.unread.add(frames.len());
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
        self.push(|state| state.close = Some(reason));
        self.wake.notify_one();
    }

    /// Whether the connection is to be closed because too many notifications wait here.
    pub(crate) fn is_overfull(&self) -> bool {
        self.lock().is_overfull
    }

    /// Why the connection is to be closed, if it is.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.lock().close
    }

    /// Appends bytes as they are.
    #[cfg(test)]
    pub(crate) fn raw(&self, bytes: &[u8]) {
        self.push(|state| state.tail.raw(bytes));
    }

    /// The number of bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The next answer is that of a slow request with this number.
    pub(crate) fn mark_slow(&self, number: u64) {
        self.slow.store(number, Ordering::Relaxed);
    }

    /// The next answer is that of a traced request.
    pub(crate) fn add_traced(&self, request: TracedRequest) {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), request));
        self.has_traced.store(true, Ordering::Relaxed);
    }

    /// Takes the traced requests whose answers waited here, if there are any.
    pub(crate) fn take_traced(&self) -> Vec<TracedRequest> {
        if !self.has_traced.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.has_traced.store(false, Ordering::Relaxed);
        let all = std::mem::take(&mut *self.traced.lock().unwrap_or_else(PoisonError::into_inner));
        let written = |(since, mut request): (Instant, TracedRequest)| {
            request.request.stages.write_us = Some(since.elapsed().as_micros() as u64);
            request
        };
        all.into_iter().map(written).collect()
    }

    /// Takes the number of the slow request whose answer waited here, if there is one.
    pub(crate) fn take_slow(&self) -> Option<u64> {
        if self.slow.load(Ordering::Relaxed) == 0 {
            return None;
        }
        Some(self.slow.swap(0, Ordering::Relaxed)).filter(|number| *number > 0)
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

    /// Wakes the task of the connection.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until something is pushed, or the connection is woken.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Moves all that waits into `sending`, which is empty. Returns why the connection is to be closed after these bytes,
    /// if it is.
    pub(crate) fn take(&self, sending: &mut Sending) -> Option<CloseReason> {
        let mut state = self.lock();
        if state.len() > 0 {
            sending.chunks.append(&mut state.full);
            if !state.tail.is_empty() {
                sending.chunks.push(Chunk::Own(std::mem::take(&mut state.tail)));
            }
            state.full_len = 0;
            if state.unread.bytes() > 0 {
                sending.unread = Some(state.unread.take());
            }
        }
        state.close
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::id::{Xid, Zxid};

    const UNREAD_MAX: usize = 64 << 20;

    impl Default for Outbox {
        fn default() -> Outbox {
            Outbox::new(Arc::new(Room::new(Some(1 << 40))))
        }
    }

    fn in_parts(len: usize) -> SharedStrings {
        SharedStrings::of_parts(9, (0..9).map(|_| Arc::new(vec![9; len / 9])).collect())
    }

    fn replies(len: usize) -> [Reply; 6] {
        let bytes = SharedBytes::from(&vec![7; len][..]);
        let stat = Stat::default();
        let bodies = [
            Body::Data(Some(bytes.clone()), stat),
            Body::Children(SharedStrings::Whole(bytes.clone())),
            Body::Paths(in_parts(len)),
            Body::ChildrenStat(in_parts(len), stat),
            Body::Multi(parts(&bytes)),
            Body::BrokenMultiRead(parts(&bytes)),
        ];
        bodies.map(|body| Reply { xid: Xid(1), zxid: Some(Zxid(2)), result: Ok(body) })
    }

    fn parts(bytes: &SharedBytes) -> Vec<OpResult> {
        let (data, stat) = (Some(bytes.clone()), Stat::default());
        let long = OpResult::GetData(Some(SharedBytes::from(&[8; SHARE_FROM][..])), stat);
        let short = OpResult::GetData(Some(SharedBytes::from(&[8; 100][..])), stat);
        let names = OpResult::GetChildren(SharedStrings::Whole(bytes.clone()));
        let many = OpResult::GetChildren(in_parts(bytes.len()));
        let mut all = vec![OpResult::Error(-101), OpResult::GetData(None, stat), short.clone()];
        all.extend([OpResult::GetData(data.clone(), stat), OpResult::GetData(data, stat), names, many, long]);
        all.extend(vec![short; 300]);
        all
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
