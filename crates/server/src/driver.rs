//! The one place that locks the core and routes its effects. Routing only pushes to queues and never
//! blocks; nobody awaits while holding the lock.

use crate::{
    disk_thread::DiskQueue,
    fan_out::{FanOut, Outboxes},
    outbox::Outbox,
    peers::{AddressBook, ElectionDoor, PeerOutbox, QuorumDoor, WAITING_MAX},
    responses::Responses,
    room::Room,
    snapshot_thread::SnapshotQueue,
};
use ostler_proto::{id::Xid, quorum_packet::Packet};
use ostler_server_core::{
    ClientRequest, CloseReason, ConnId, Effect, Input, Now, Server, ensemble::MemberMode, input::Mono,
    report::ConnReport, work::WORK_PER_HOLD,
};
use ostler_zab::leading::LinkId;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{Notify, oneshot};

/// The machine's clocks.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: self.mono(), wall_ms: wall.as_millis() as i64 }
    }

    pub(crate) fn mono(&self) -> Mono {
        Mono(self.start.elapsed().as_millis() as u64)
    }

    pub(crate) fn instant(&self, mono: Mono) -> Instant {
        self.start + std::time::Duration::from_millis(mono.0)
    }
}

/// Somebody waits for a state.
struct Waiting {
    condition: Condition,
    met: oneshot::Sender<()>,
}

/// What is waited for. Asked after each step.
pub(crate) type Condition = Box<dyn FnMut(&Server) -> bool + Send>;

struct Core {
    server: Server,
    effects: Vec<Effect>,
    outboxes: Outboxes,
    links: BTreeMap<LinkId, Arc<PeerOutbox>>,
    waiting: Vec<Waiting>,
    responses: Responses,
    /// Nothing will change any more.
    ended: bool,
}

/// The ways to the other servers.
#[derive(Clone)]
pub(crate) struct Doors {
    pub(crate) election: Arc<ElectionDoor>,
    pub(crate) quorum: Arc<QuorumDoor>,
    pub(crate) book: Arc<AddressBook>,
}

/// A member that runs.
pub(crate) struct Driver {
    /// A fair lock: who has had it for a while hands it to whoever waits. With std's the one who works in parts would take
    /// it again before another thread is awake.
    core: Mutex<Core>,
    pub(crate) clock: Clock,
    disk: Arc<DiskQueue>,
    snapshots: Arc<SnapshotQueue>,
    /// What the timer sleeps until, in monotonic milliseconds.
    timer_until: AtomicU64,
    pub(crate) timer: Notify,
    next_conn: AtomicU64,
    doors: Option<Doors>,
    next_link: AtomicU64,
    /// Bytes that wait in all `links`.
    waiting_for_peers: Arc<AtomicUsize>,
    reloaded: Notify,
    pub(crate) traffic: Traffic,
    pub(crate) room: Arc<Room>,
}

/// Counts of clients' connections since the start or `srst`.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) bytes_received: AtomicU64,
    /// Closed by a client without a word.
    pub(crate) dropped: AtomicU64,
    /// Refused for there being too many.
    pub(crate) rejected: AtomicU64,
    /// Closed for want of a handshake.
    pub(crate) without_session: AtomicU64,
}

impl Traffic {
    pub(crate) fn count_bytes(&self, received: usize) {
        self.bytes_received.fetch_add(received as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_without_session(&self) {
        self.without_session.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        for count in [&self.bytes_received, &self.dropped, &self.rejected, &self.without_session] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

/// A batch stops when so much output waits for its connection: it goes out first.
const OUTBOX_PAUSE: usize = 256 << 10;
/// The same while the answers of all connections take all the room that they have, and what is a small answer then.
const OUTBOX_PAUSE_WHEN_FULL: usize = 16 << 10;
/// And when so much will wait as soon as a write commits.
const PROMISED_PAUSE: usize = 8 << 20;

/// Whether more may be asked of the member before others have had their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    GoesOn,
    Over,
}

fn is_over(server: &Server, began: u64) -> bool {
    server.work_done() - began >= WORK_PER_HOLD
}

/// What became of a connection's requests.
pub(crate) struct Taken {
    /// Fewer than all if their answers pile up, or will, or when they have taken their share of the member's time.
    pub(crate) count: usize,
    /// The next one is a large read that waits until other connections' answers have gone.
    pub(crate) waits_for_room: bool,
}

impl Driver {
    pub(crate) fn new(
        server: Server,
        clock: Clock,
        disk: Arc<DiskQueue>,
        snapshots: Arc<SnapshotQueue>,
        doors: Option<Doors>,
        room: Room,
    ) -> Driver {
        let core = Core {
            server,
            effects: Vec::new(),
            outboxes: Outboxes::default(),
            links: BTreeMap::new(),
            waiting: Vec::new(),
            responses: Responses::default(),
            ended: false,
        };
        Driver {
            core: Mutex::new(core),
            clock,
            disk,
            snapshots,
            timer_until: AtomicU64::new(0),
            timer: Notify::new(),
            next_conn: AtomicU64::new(1),
            doors,
            next_link: AtomicU64::new(1),
            waiting_for_peers: Arc::default(),
            reloaded: Notify::new(),
            traffic: Traffic::default(),
            room: Arc::new(room),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock()
    }

    /// Takes one input.
    pub(crate) fn step(&self, input: Input<'_>) {
        let reloaded = matches!(input, Input::Reloaded { .. });
        {
            let core = &mut *self.lock();
            core.server.step(self.clock.now(), input, &mut core.effects);
            self.route(core);
            self.mind_timer(core);
        }
        if reloaded {
            self.reloaded.notify_waiters();
        }
    }

    /// Takes packets of one connection of the quorum port under one lock. `work` hands them over one by one, and stops when
    /// the answer is [`Turn::Over`].
    pub(crate) fn peer_packets<T>(
        &self,
        link: LinkId,
        work: impl FnOnce(&mut dyn FnMut(Packet<'_>) -> Turn) -> T,
    ) -> T {
        let core = &mut *self.lock();
        let now = self.clock.now();
        let (server, effects) = (&mut core.server, &mut core.effects);
        let began = server.work_done();
        let done = work(&mut |packet| {
            server.step(now, Input::Peer { link, packet }, effects);
            if is_over(server, began) { Turn::Over } else { Turn::GoesOn }
        });
        self.route(core);
        self.mind_timer(core);
        done
    }

    /// Whether the other end of a connection of the quorum port is known to take its part.
    pub(crate) fn has_joined(&self, link: LinkId) -> bool {
        self.lock().server.has_joined(link)
    }

    /// Waits until the disk has read the tree anew, if it is doing that.
    pub(crate) async fn until_reloaded(&self) {
        loop {
            let reloaded = self.reloaded.notified();
            tokio::pin!(reloaded);
            // Counts from here on, also before it is waited for.
            reloaded.as_mut().enable();
            if !self.lock().server.is_reloading() {
                return;
            }
            reloaded.await;
        }
    }

    /// A new connection of the quorum port.
    pub(crate) fn add_link(&self) -> (LinkId, Arc<PeerOutbox>) {
        let id = LinkId(self.next_link.fetch_add(1, Ordering::Relaxed));
        let outbox = Arc::new(PeerOutbox::among(&self.waiting_for_peers));
        self.lock().links.insert(id, outbox.clone());
        (id, outbox)
    }

    /// A connection of the quorum port is gone.
    pub(crate) fn peer_gone(&self, link: LinkId) {
        self.lock().links.remove(&link);
        self.step(Input::PeerGone { link });
    }

    /// What this server does for clients; `None` for a lone one.
    pub(crate) fn mode(&self) -> Option<MemberMode> {
        self.lock().server.mode()
    }

    /// Takes the requests of one connection under one lock, until their answers pile up or they have taken their share of
    /// the member's time.
    pub(crate) fn requests(&self, conn: ConnId, outbox: &Outbox, requests: Vec<ClientRequest<'_>>) -> Taken {
        let mut taken = Taken { count: 0, waits_for_room: false };
        let core = &mut *self.lock();
        let now = self.clock.now();
        let began = core.server.work_done();
        for request in requests {
            let promised = core.server.reserved_bytes_of_all();
            if self.room.is_scarce(promised) {
                let size = core.server.answer_size(conn, &request.request);
                if size > OUTBOX_PAUSE_WHEN_FULL && !self.room.fits(size, promised) {
                    taken.waits_for_room = true;
                    break;
                }
            }
            let is_full = self.room.is_full(promised);
            outbox.count_request();
            core.server.step(now, Input::Request { conn, request }, &mut core.effects);
            self.route(core);
            taken.count += 1;
            if core.server.reserved_bytes(conn) > PROMISED_PAUSE {
                outbox.hold_back();
                break;
            }
            let pause = if is_full { OUTBOX_PAUSE_WHEN_FULL } else { OUTBOX_PAUSE };
            if outbox.len() > pause || is_over(&core.server, began) {
                break;
            }
        }
        self.mind_timer(core);
        taken
    }

    /// A new connection.
    pub(crate) fn accept(&self, peer: std::net::SocketAddr) -> (ConnId, Arc<Outbox>) {
        let conn = ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed));
        let outbox = Arc::new(Outbox::new(self.room.clone()));
        let core = &mut *self.lock();
        core.outboxes.insert(conn, outbox.clone());
        core.server.step(self.clock.now(), Input::Accepted { conn, peer }, &mut core.effects);
        self.route(core);
        (conn, outbox)
    }

    /// A connection that is gone.
    pub(crate) fn disconnected(&self, conn: ConnId) {
        let core = &mut *self.lock();
        core.outboxes.remove(&conn);
        core.server.step(self.clock.now(), Input::Disconnected { conn }, &mut core.effects);
        self.route(core);
        self.mind_timer(core);
    }

    /// Waits until a condition holds, now or after a step. An error once the server has ended.
    pub(crate) fn until(&self, condition: Condition) -> oneshot::Receiver<()> {
        let (met, told) = oneshot::channel();
        let core = &mut *self.lock();
        if !core.ended {
            core.waiting.push(Waiting { condition, met });
            core.tell_waiting();
        }
        told
    }

    /// Nobody needs to wait any more.
    pub(crate) fn ended(&self) {
        let core = &mut *self.lock();
        core.ended = true;
        core.waiting.clear();
    }

    /// Ends all connections with other servers.
    pub(crate) async fn leave_peers(&self) {
        if let Some(doors) = &self.doors {
            doors.election.close().await;
            doors.quorum.close().await;
        }
    }

    /// Looks at the member between steps.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        look(&self.lock().server)
    }

    /// The same, with what went out to clients up to then.
    pub(crate) fn inspect_with_responses<T>(&self, look: impl FnOnce(&Server, &Responses) -> T) -> T {
        let core = &*self.lock();
        look(&core.server, &core.responses)
    }

    /// A four-letter word has come.
    pub(crate) fn count_word(&self, conn: ConnId) {
        self.lock().server.count_word(conn);
    }

    /// It is answered, in this number of parts.
    pub(crate) fn count_word_answered(&self, conn: ConnId, parts: u64) {
        self.lock().server.count_word_answered(conn, parts);
    }

    /// Forgets the server's counts (`srst`).
    pub(crate) fn reset_stats(&self) {
        let core = &mut *self.lock();
        core.server.reset_stats();
        core.responses = Responses::default();
        self.traffic.reset();
    }

    /// Those of these connections that are there, each with the notifications that it has been given.
    pub(crate) fn connections(&self, numbers: &[ConnId]) -> Vec<(ConnReport, u64)> {
        let core = &*self.lock();
        let notified = |conn| core.outboxes.get(&conn).map_or(0, |outbox| outbox.notified());
        let reports = numbers.iter().filter_map(|conn| core.server.connection(*conn));
        reports
            .map(|report| {
                let count = notified(report.conn);
                (report, count)
            })
            .collect()
    }

    /// Forgets the connections' counts (`crst`).
    pub(crate) fn reset_conn_stats(&self) {
        let core = &mut *self.lock();
        core.server.reset_conn_stats();
        core.outboxes.values().for_each(|outbox| outbox.reset_notified());
    }

    /// When the member next wants to be woken.
    pub(crate) fn next_deadline(&self) -> Mono {
        // Under the lock: a step that brings it forward must see what the timer is about to sleep until.
        let core = self.lock();
        let deadline = core.server.next_deadline();
        self.timer_until.store(deadline.0, Ordering::Relaxed);
        deadline
    }

    fn mind_timer(&self, core: &Core) {
        if core.server.next_deadline().0 < self.timer_until.load(Ordering::Relaxed) {
            self.timer.notify_one();
        }
    }

    fn route(&self, core: &mut Core) {
        let mut fan = FanOut::default();
        for effect in core.effects.drain(..) {
            match effect {
                Effect::Reply { conn, reply } => {
                    fan.before_others_to(conn, &core.outboxes);
                    if let Some(outbox) = core.outboxes.get(&conn) {
                        let size = outbox.reply(&reply);
                        core.responses.count_reply(size, !matches!(reply.xid, Xid::PING | Xid::AUTH));
                    }
                }
                Effect::Notify { conns, zxid, kind, path } => {
                    let told = conns.len();
                    let size = fan.add(conns, (zxid, kind, &path), &core.outboxes);
                    core.responses.count_notification(size, told);
                }
                Effect::Connected { conn, response } => {
                    fan.before_others_to(conn, &core.outboxes);
                    if let Some(outbox) = core.outboxes.get(&conn) {
                        outbox.connected(&response);
                    }
                }
                Effect::Close { conn, reason } => {
                    fan.before_others_to(conn, &core.outboxes);
                    if let Some(outbox) = core.outboxes.get(&conn) {
                        outbox.close(reason);
                    }
                    log_close(conn, reason);
                }
                Effect::Persist { seq, op } => self.disk.push(seq, op),
                Effect::Snapshot(frozen) => self.snapshots.push(frozen),
                Effect::ToPeer { link, message } => {
                    if let Some(outbox) = core.links.get(&link) {
                        outbox.push(message);
                    }
                    if self.waiting_for_peers.load(Ordering::Relaxed) > WAITING_MAX
                        && let Some(most) = core.links.values().max_by_key(|outbox| outbox.waiting())
                    {
                        most.give_up();
                    }
                }
                Effect::HangUp(link) => {
                    if let Some(outbox) = core.links.remove(&link) {
                        outbox.close();
                    }
                }
                Effect::Servers(all) => {
                    if let Some(doors) = &self.doors {
                        doors.book.replace(&all);
                    }
                }
                Effect::SendVote { to, notification } => {
                    if let Some(doors) = &self.doors {
                        doors.election.send(to, &notification);
                    }
                }
                Effect::RefuseVotes { of, why } => {
                    if let Some(doors) = &self.doors {
                        doors.election.refuse(of, &why);
                    }
                }
                Effect::Dial { search_id, to } => {
                    if let Some(doors) = &self.doors {
                        doors.quorum.dial(search_id, to);
                    }
                }
                Effect::ReadLog { search_id, link, after, through } => {
                    if let Some(doors) = &self.doors {
                        doors.quorum.read_log(search_id, link, after, through);
                    }
                }
            }
        }
        fan.send(&core.outboxes);
        if !core.waiting.is_empty() {
            core.tell_waiting();
        }
    }
}

impl Core {
    /// Those whose state has come, and those who have given up, wait no more.
    fn tell_waiting(&mut self) {
        let server = &self.server;
        let met = |waiting: &mut Waiting| waiting.met.is_closed() || (waiting.condition)(server);
        for waiting in self.waiting.extract_if(.., met) {
            let _ = waiting.met.send(());
        }
    }
}

fn log_close(conn: ConnId, reason: CloseReason) {
    match reason {
        CloseReason::ClosedByClient => tracing::debug!(?conn, "closed by its client"),
        CloseReason::SessionExpired => tracing::info!(?conn, "closed: its session has expired"),
        CloseReason::SessionMoved => tracing::info!(?conn, "closed: its session came back elsewhere"),
        CloseReason::ClientAhead => tracing::warn!(
            ?conn,
            "refused: the client has seen a later zxid than this server has; is this the right data folder?"
        ),
        CloseReason::PasswordUnknown => tracing::info!(
            ?conn,
            "refused: this server cannot judge the password of the session; the client may try another server"
        ),
        CloseReason::AuthFailed => tracing::warn!(?conn, "closed: authentication failed"),
        CloseReason::ReadOnly => {
            tracing::debug!(
                ?conn,
                "refused: this server has no leader, and serves only who is content to read"
            );
        }
        CloseReason::Silent => {
            tracing::info!(?conn, "closed: it was silent for as long as its session may be")
        }
        CloseReason::NotServing => tracing::debug!(?conn, "closed: this server has no leader"),
        CloseReason::ClosedByOperator => tracing::info!(?conn, "closed on demand"),
        CloseReason::Protocol => tracing::warn!(?conn, "closed: it sent what no client sends"),
    }
}
