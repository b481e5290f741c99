//! A connection of the quorum port: packets in, to the core; what is queued, out.

use super::{
    address_book::AddressBook,
    addresses,
    large_packets::{Held, LargePackets},
    tree_stream,
    unidentified::UnidentifiedPeer,
};
use crate::driver::{Driver, Turn};
use ostler_proto::{
    id::Zxid,
    quorum_packet::{Packet, PacketError, PacketSplit, split},
    stat::ExtendedTypes,
};
use ostler_server_core::{Input, PeerMessage, Record};
use ostler_tree::FrozenTree;
use ostler_zab::leading::{AddressMatch, LinkId};
use std::{
    borrow::Cow,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
    time::{sleep, timeout},
};

/// A learner that takes so little that this much waits for it is sent away: it will be brought up to date anew. So is the
/// one for which most waits, where this much waits for all together.
pub(crate) const WAITING_MAX: usize = 512 << 20;
const READ_SIZE: usize = 256 << 10;
/// A buffer for packets that has grown beyond this is given back.
const BUFFER_KEPT: usize = 2 << 20;
/// Larger buffers are given back after use.
const KEEP_MAX: usize = 256 << 10;
/// A learner that does not say who it is by then is none.
const FIRST_WORD_WITHIN: Duration = Duration::from_secs(10);
/// Who it is, and all that a learner says before it has the history, takes no more bytes of data than this.
const DATA_MAX_AT_FIRST: usize = 4 << 10;
/// Nor does what has come of it and is no whole packet, with all that is in it.
const BYTES_MAX_AT_FIRST: usize = 16 << 10;
/// What was said before a connection is given up may still go out. Who does not read is not waited for any longer.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How often the core is told that a tree goes on moving.
const MOVES_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum Segment {
    Bytes(Vec<u8>),
    Tree(Box<FrozenTree>),
    /// Committed records; encoded when they are sent, not while the core waits.
    History(Vec<(Zxid, Record)>),
}

#[derive(Debug, Default)]
struct State {
    /// What goes before `tail`; only a tree makes any.
    before: Vec<Segment>,
    tail: Vec<u8>,
    closed: bool,
    /// Too much waits: nothing of it is of use.
    overfull: bool,
}

/// What waits to be sent on one connection.
#[derive(Debug, Default)]
pub(crate) struct PeerOutbox {
    state: Mutex<State>,
    wake: Notify,
    /// For whoever waits for the end, whatever is being written.
    closing: Notify,
    /// What waits in this and all others.
    in_all: Arc<AtomicUsize>,
}

impl Drop for PeerOutbox {
    fn drop(&mut self) {
        let waiting = self.lock().tail.len();
        self.in_all.fetch_sub(waiting, Ordering::Relaxed);
    }
}

impl PeerOutbox {
    /// One of several.
    pub(crate) fn among(in_all: &Arc<AtomicUsize>) -> PeerOutbox {
        PeerOutbox {
            state: Mutex::default(),
            wake: Notify::new(),
            closing: Notify::new(),
            in_all: in_all.clone(),
        }
    }

    /// How much waits to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().tail.len()
    }

    /// Too much waits: nothing of it is sent any more.
    pub(crate) fn give_up(&self) {
        self.end_overfull(&mut self.lock());
    }

    fn end_overfull(&self, state: &mut State) {
        self.in_all.fetch_sub(state.tail.len(), Ordering::Relaxed);
        *state = State { closed: true, overfull: true, ..State::default() };
        self.closing.notify_one();
    }

    /// What was gathered, which is to be sent now.
    fn take_tail(&self, state: &mut State, next: Vec<u8>) -> Vec<u8> {
        self.in_all.fetch_sub(state.tail.len(), Ordering::Relaxed);
        std::mem::replace(&mut state.tail, next)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
        // What goes before a tree is little, and not counted.
        self.in_all.fetch_add(state.tail.len(), Ordering::Relaxed);
        self.in_all.fetch_sub(before, Ordering::Relaxed);
        if state.tail.len() > WAITING_MAX {
            self.end_overfull(&mut state);
        } else if idle {
            self.wake.notify_one();
        }
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
        self.closing.notify_one();
    }

    /// Returns some time after the end: at once if there is nothing more to say.
    async fn given_up(&self) {
        while !self.lock().closed {
            self.closing.notified().await;
        }
        if !self.lock().overfull {
            sleep(LAST_WORDS).await;
        }
    }

    /// What to send next, into `segments`; false at the end. What comes after it is gathered in `spare`.
    async fn next(&self, segments: &mut Vec<Segment>, spare: &mut Vec<u8>) -> bool {
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
            // What others who are ready have to say goes along: a commit with the next proposal, for one.
            tokio::task::yield_now().await;
        }
    }
}

/// A connection as its task knows it.
pub(super) struct Link {
    pub(super) id: LinkId,
    pub(super) address: SocketAddr,
    pub(super) outbox: Arc<PeerOutbox>,
    pub(super) driver: Arc<Driver>,
    /// Whether the other side is a learner.
    pub(super) to_leader: bool,
    /// Bytes of data in a packet.
    pub(super) data_max: usize,
    pub(super) large: Arc<LargePackets>,
    pub(super) book: Arc<AddressBook>,
    pub(super) types: ExtendedTypes,
}

impl Link {
    /// Serves a connection to its end. A learner is a stranger until its first packet.
    pub(super) async fn run(&self, stream: TcpStream, learner: Option<UnidentifiedPeer>) {
        let (read, write) = stream.into_split();
        let ended = tokio::select! {
            ended = self.read(read, learner) => ended,
            ended = speak(&self.outbox, write, self.moving()) => ended,
        };
        let (link, address) = (self.id.0, self.address);
        match ended {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(link, %address, %error, "a connection of the quorum port was closed");
            }
            Err(error) => tracing::info!(link, %address, %error, "a connection of the quorum port ended"),
            Ok(()) => {}
        }
        self.driver.peer_gone(self.id);
    }

    /// To be called whenever a piece of something long has come or gone: tells the core so now and then.
    fn moving(&self) -> impl FnMut() {
        let (driver, link, mut told) = (self.driver.clone(), self.id, Instant::now());
        move || {
            if told.elapsed() >= MOVES_EVERY {
                told = Instant::now();
                driver.step(Input::StreamMoves { link });
            }
        }
    }

    async fn read(&self, mut read: OwnedReadHalf, learner: Option<UnidentifiedPeer>) -> io::Result<()> {
        let mut buffer = Vec::new();
        let mut incoming = Incoming { is_known: !self.to_leader, held: self.large.nothing() };
        // A leader is watched by the core from the beginning, a learner from its first packet on.
        if let Some(stranger) = learner {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it did not say who it is");
            let first = self.first_word(&mut buffer, &mut read);
            tokio::select! {
                // Who has said it is not turned away for those who say nothing.
                biased;
                first = timeout(FIRST_WORD_WITHIN, first) => first.map_err(late)??,
                () = stranger.gives_way() => return Ok(()),
            }
            self.tell_place(&buffer).await;
            drop(stranger);
            self.packets(&mut buffer, &mut read, &mut incoming).await?;
        }
        loop {
            if incoming.is_known {
                buffer.reserve(READ_SIZE.saturating_sub(buffer.len()));
            }
            if read.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            self.packets(&mut buffer, &mut read, &mut incoming).await?;
            if buffer.capacity() > BUFFER_KEPT && buffer.len() < READ_SIZE {
                buffer.shrink_to(READ_SIZE);
            }
            incoming.held.fit(buffer.len()).await;
        }
    }

    /// Waits for the first whole packet, or what is none.
    async fn first_word(&self, buffer: &mut Vec<u8>, read: &mut OwnedReadHalf) -> io::Result<()> {
        while let PacketSplit::Incomplete = split(buffer, DATA_MAX_AT_FIRST, self.to_leader) {
            if buffer.len() > BYTES_MAX_AT_FIRST {
                return Err(too_much());
            }
            if read.read_buf(buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Tells the core where the server should be that a learner says it is.
    async fn tell_place(&self, first: &[u8]) {
        let info = match split(first, DATA_MAX_AT_FIRST, self.to_leader) {
            PacketSplit::Packet(Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. }, _) => {
                info
            }
            _ => return,
        };
        let member = info.server.filter(|id| self.book.is_member(*id)).and_then(|id| self.book.find(id));
        let place = match member {
            Some(member) => addresses::place(&member, self.address.ip()).await,
            None => AddressMatch::Unclear,
        };
        self.driver.step(Input::LearnerFrom { link: self.id, place });
    }

    /// Takes the whole packets off the front of `buffer`.
    async fn packets(
        &self,
        buffer: &mut Vec<u8>,
        read: &mut OwnedReadHalf,
        incoming: &mut Incoming,
    ) -> io::Result<()> {
        let mut used = 0;
        loop {
            let data_max = if incoming.is_known { self.data_max } else { DATA_MAX_AT_FIRST };
            let taken = self
                .driver
                .peer_packets(self.id, |step| take_packets(&buffer[used..], data_max, self.to_leader, step));
            used += taken.used;
            match taken.stopped_at {
                None if !incoming.is_known && buffer.len() - used > BYTES_MAX_AT_FIRST => {
                    incoming.is_known = self.driver.has_joined(self.id);
                    if !incoming.is_known {
                        return Err(too_much());
                    }
                }
                None => break,
                Some(StopAt::Bad(PacketError::Length(_)))
                    if !incoming.is_known && self.driver.has_joined(self.id) =>
                {
                    incoming.is_known = true;
                }
                Some(StopAt::Bad(error)) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string()));
                }
                Some(StopAt::Tree(zxid)) => {
                    let rest = buffer.split_off(used);
                    buffer.clear();
                    used = 0;
                    self.driver.step(Input::SnapBegins { link: self.id });
                    let (tree, after) =
                        tree_stream::receive(rest, read, zxid, self.types, self.moving()).await?;
                    self.driver.step(Input::Snap { link: self.id, tree: Box::new(tree) });
                    *buffer = after;
                }
                // What follows is about the tree that is left.
                Some(StopAt::Cut) => self.driver.until_reloaded().await,
                Some(StopAt::Turn) => tokio::task::yield_now().await,
            }
        }
        buffer.drain(..used);
        Ok(())
    }
}

/// What may come on a connection.
struct Incoming {
    /// The other side is known to be a learner that has the history, or was dialled as the leader.
    is_known: bool,
    held: Held,
}

fn too_much() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it sends more than a learner that has not the history yet")
}

/// How far a buffer was read.
pub(crate) struct Taken {
    used: usize,
    stopped_at: Option<StopAt>,
}

/// What has to be dealt with before the next packet.
enum StopAt {
    Tree(Zxid),
    Cut,
    /// Others come first.
    Turn,
    Bad(PacketError),
}

fn take_packets(
    bytes: &[u8],
    data_max: usize,
    to_leader: bool,
    mut step: impl FnMut(Packet<'_>) -> Turn,
) -> Taken {
    let mut used = 0;
    loop {
        match split(&bytes[used..], data_max, to_leader) {
            // A tree is the leader's to send: on a learner's word none is read.
            PacketSplit::Packet(Packet::Snap(zxid), size) if !to_leader => {
                return Taken { used: used + size, stopped_at: Some(StopAt::Tree(zxid)) };
            }
            PacketSplit::Packet(packet @ Packet::Trunc(_), size) => {
                step(packet);
                return Taken { used: used + size, stopped_at: Some(StopAt::Cut) };
            }
            PacketSplit::Packet(packet, size) => {
                let turn = step(packet);
                used += size;
                if turn == Turn::Over {
                    return Taken { used, stopped_at: Some(StopAt::Turn) };
                }
            }
            PacketSplit::Incomplete => return Taken { used, stopped_at: None },
            PacketSplit::Bad(error) => return Taken { used, stopped_at: Some(StopAt::Bad(error)) },
        }
    }
}

/// Each with its commit, some at a time.
async fn write_history(
    records: &[(Zxid, Record)],
    write: &mut OwnedWriteHalf,
    mut moved: impl FnMut(),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for some in records.chunks(500) {
        bytes.clear();
        for (zxid, record) in some {
            Packet::Proposal { zxid: *zxid, record: Cow::Borrowed(&record.0) }.write(&mut bytes);
            Packet::Commit(*zxid).write(&mut bytes);
        }
        write.write_all(&bytes).await?;
        moved();
    }
    Ok(())
}

/// Says what is to be said, as long as the connection is not given up.
async fn speak(outbox: &PeerOutbox, write: OwnedWriteHalf, moved: impl FnMut()) -> io::Result<()> {
    tokio::select! {
        ended = write_all(outbox, write, moved) => ended,
        () = outbox.given_up() => Ok(()),
    }
}

async fn write_all(
    outbox: &PeerOutbox,
    mut write: OwnedWriteHalf,
    mut moved: impl FnMut(),
) -> io::Result<()> {
    let (mut segments, mut spare) = (Vec::new(), Vec::new());
    while outbox.next(&mut segments, &mut spare).await {
        for segment in segments.drain(..) {
            match segment {
                Segment::Bytes(mut bytes) => {
                    write.write_all(&bytes).await?;
                    bytes.clear();
                    spare = if bytes.capacity() <= KEEP_MAX { bytes } else { Vec::new() };
                }
                Segment::Tree(frozen) => tree_stream::send(frozen, &mut write, &mut moved).await?,
                Segment::History(records) => write_history(&records, &mut write, &mut moved).await?,
            }
        }
    }
    write.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A connection, and its other end, at which nobody reads.
    async fn deaf() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (caller, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn who_does_not_read_is_given_up() {
        let (stream, _deaf) = deaf().await;
        let outbox = Arc::new(PeerOutbox::default());
        let record = vec![7; 1 << 20];
        for counter in 0..64 {
            let zxid = Zxid(counter);
            outbox.push(PeerMessage::Proposal(zxid, Record(record.as_slice().into())));
        }
        let (speaking, said) = (outbox.clone(), stream.into_split().1);
        let speaking = tokio::spawn(async move { speak(&speaking, said, || {}).await });
        // Until it has begun, and stands.
        while !outbox.lock().tail.is_empty() {
            tokio::task::yield_now().await;
        }
        outbox.close();
        timeout(Duration::from_secs(60), speaking).await.unwrap().unwrap().unwrap();
    }

    #[test]
    fn what_waits_in_all_is_known() {
        let in_all = Arc::new(AtomicUsize::new(0));
        let (one, other) = (PeerOutbox::among(&in_all), PeerOutbox::among(&in_all));
        let say = |outbox: &PeerOutbox| outbox.push(PeerMessage::Packet(Packet::Commit(Zxid(1))));
        let waits = || in_all.load(Ordering::Relaxed);
        (0..3).for_each(|_| say(&one));
        say(&other);
        assert_eq!(waits(), one.waiting() + other.waiting());
        assert!(other.waiting() > 0);
        one.give_up();
        say(&one);
        assert_eq!((one.waiting(), waits()), (0, other.waiting()));
        other.push(PeerMessage::History(Vec::new()));
        assert_eq!(waits(), 0, "it is on its way");
        say(&other);
        drop(other);
        assert_eq!(waits(), 0);
    }
}
