//! A connection of the quorum port: packets in, to the core; what is queued, out.

use super::{strangers::Stranger, tree_stream};
use crate::driver::{Driver, Turn};
use ostler_proto::{
    id::Zxid,
    quorum_packet::{Packet, PacketSplit, split},
    stat::ExtendedTypes,
};
use ostler_server_core::{Input, PeerMessage, Record};
use ostler_tree::FrozenTree;
use ostler_zab::leading::LinkId;
use std::{
    borrow::Cow,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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

/// A learner that takes so little that this much waits for it is sent away: it will be brought up to date anew.
const WAITING_MAX: usize = 512 << 20;
const READ_SIZE: usize = 256 << 10;
/// Larger buffers are given back after use.
const KEEP_MAX: usize = 256 << 10;
/// A learner that does not say who it is by then is none.
const FIRST_WORD_WITHIN: Duration = Duration::from_secs(30);
/// Who it is takes no more bytes of data than this.
const FIRST_WORD_MAX: usize = 4 << 10;
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
}

impl PeerOutbox {
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
        if state.tail.len() > WAITING_MAX {
            *state = State { closed: true, overfull: true, ..State::default() };
            self.closing.notify_one();
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
                    segments.push(Segment::Bytes(std::mem::replace(&mut state.tail, next)));
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
    pub(super) types: ExtendedTypes,
}

impl Link {
    /// Serves a connection to its end. A learner is a stranger until its first packet.
    pub(super) async fn run(&self, stream: TcpStream, learner: Option<Stranger>) {
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

    async fn read(&self, mut read: OwnedReadHalf, learner: Option<Stranger>) -> io::Result<()> {
        let mut buffer = Vec::new();
        // A leader is watched by the core from the beginning, a learner from its first packet on.
        if let Some(stranger) = learner {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it did not say who it is");
            let first = self.more(&mut buffer, &mut read, FIRST_WORD_MAX);
            timeout(FIRST_WORD_WITHIN, first).await.map_err(late)??;
            drop(stranger);
        }
        buffer.reserve(READ_SIZE);
        while self.more(&mut buffer, &mut read, self.data_max).await? {}
        Ok(())
    }

    /// Waits for the next packets, of so many bytes of data at most, and takes them; false at the end.
    async fn more(
        &self,
        buffer: &mut Vec<u8>,
        read: &mut OwnedReadHalf,
        data_max: usize,
    ) -> io::Result<bool> {
        loop {
            if read.read_buf(buffer).await? == 0 {
                return Ok(false);
            }
            let before = buffer.len();
            self.packets(buffer, read, data_max).await?;
            if buffer.len() != before {
                return Ok(true);
            }
        }
    }

    /// Takes the whole packets off the front of `buffer`.
    async fn packets(
        &self,
        buffer: &mut Vec<u8>,
        read: &mut OwnedReadHalf,
        data_max: usize,
    ) -> io::Result<()> {
        let mut used = 0;
        loop {
            let taken = self.driver.peer_packets(self.id, |step| {
                take_packets(&buffer[used..], data_max, self.to_leader, step)
            })?;
            used += taken.used;
            match taken.stopped_at {
                None => break,
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
}

fn take_packets(
    bytes: &[u8],
    data_max: usize,
    to_leader: bool,
    mut step: impl FnMut(Packet<'_>) -> Turn,
) -> io::Result<Taken> {
    let mut used = 0;
    loop {
        match split(&bytes[used..], data_max, to_leader) {
            PacketSplit::Packet(Packet::Snap(zxid), size) => {
                return Ok(Taken { used: used + size, stopped_at: Some(StopAt::Tree(zxid)) });
            }
            PacketSplit::Packet(packet @ Packet::Trunc(_), size) => {
                step(packet);
                return Ok(Taken { used: used + size, stopped_at: Some(StopAt::Cut) });
            }
            PacketSplit::Packet(packet, size) => {
                let turn = step(packet);
                used += size;
                if turn == Turn::Over {
                    return Ok(Taken { used, stopped_at: Some(StopAt::Turn) });
                }
            }
            PacketSplit::Incomplete => return Ok(Taken { used, stopped_at: None }),
            PacketSplit::Bad(error) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string()));
            }
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
            outbox.lock().tail.reserve(1 << 20);
            Packet::Proposal { zxid, record: Cow::Borrowed(&record) }.write(&mut outbox.lock().tail);
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
}
