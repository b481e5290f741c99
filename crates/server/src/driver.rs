//! The one place that locks the core and routes its effects. Routing only pushes to queues and never
//! blocks; nobody awaits while holding the lock.

mod throttling;

use crate::{
    audit::AuditQueue,
    client_effects::ClientEffects,
    clock::Clock,
    disk_thread::DiskQueue,
    fan_out::{Notification, Outboxes},
    host_probe::HostProbe,
    outbox::Outbox,
    peers::{AddressBook, ElectionDoor, ElectionLinkReport, PeerOutbox, QuorumDoor, WAITING_MAX},
    responses::Responses,
    room::Room,
    sasl_logins::SaslQueue,
    snapshot_thread::SnapshotQueue,
    throttle::{
        Throttles,
        new_sessions::NewSessions,
        requests::{Begin, RequestThrottle},
    },
    traces::TraceQueue,
    traffic::Traffic,
};
use ostler_proto::quorum_packet::Packet;
use ostler_server_core::{
    ConnId, Effect, Input, Server,
    input::{ClientRequest, Mono},
    quorum::MemberMode,
    report::ConnReport,
    sessions::ends::{EndCause, HostState},
    work::WORK_PER_HOLD,
};
use ostler_server_core::{Now, audit::AuditRecord, stats::traced::TracedRequest};
use ostler_zab::leading::LinkId;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use tokio::sync::{Notify, oneshot};

pub(crate) use throttling::{Batch, Held, Taken, Waits};

/// A caller waits for a state of the server.
struct Waiting {
    condition: Condition,
    met: oneshot::Sender<()>,
}

/// The state that a caller waits for. Checked after each step.
pub(crate) type Condition = Box<dyn FnMut(&Server) -> bool + Send>;

/// The connections with other servers.
type Links = BTreeMap<LinkId, Arc<PeerOutbox>>;

struct Core {
    server: Server,
    effects: Vec<Effect>,
    outboxes: Outboxes,
    links: Links,
    waiting: Vec<Waiting>,
    responses: Responses,
    /// The limit of requests under way; `None` if there is none.
    throttle: Option<RequestThrottle>,
    new_sessions: NewSessions,
    /// Connections whose handshake waits until this server serves clients.
    leaderless: HashSet<ConnId>,
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

/// The parts to which a driver passes the effects of its core.
pub(crate) struct DriverParts {
    pub(crate) disk: Arc<DiskQueue>,
    pub(crate) snapshots: Arc<SnapshotQueue>,
    /// `None` for a server that is in no ensemble.
    pub(crate) doors: Option<Doors>,
    pub(crate) room: Room,
    pub(crate) sasl: SaslQueue,
    /// `None` if nothing is audited.
    pub(crate) audit: Option<Arc<AuditQueue>>,
    /// `None` if nothing is traced.
    pub(crate) traces: Option<Arc<TraceQueue>>,
    pub(crate) throttles: Throttles,
    pub(crate) requests: Option<RequestThrottle>,
}

/// The core of a running server, with its lock and the parts that its effects go to.
pub(crate) struct Driver {
    /// A fair lock: a thread that has had it for a while hands it to one that waits. With the lock of std, a thread that
    /// works in parts would take the lock again before another thread is awake.
    core: Mutex<Core>,
    pub(crate) clock: Clock,
    disk: Arc<DiskQueue>,
    snapshots: Arc<SnapshotQueue>,
    /// The time until which the timer sleeps, in monotonic milliseconds.
    timer_until: AtomicU64,
    pub(crate) timer: Notify,
    next_conn: AtomicU64,
    doors: Option<Doors>,
    next_link: AtomicU64,
    /// Bytes that wait in all `links`.
    waiting_for_peers: Arc<AtomicUsize>,
    reloaded: Notify,
    pub(crate) traffic: Traffic,
    pub(crate) host_probe: HostProbe,
    pub(crate) room: Arc<Room>,
    sasl: SaslQueue,
    pub(crate) audit: Option<Arc<AuditQueue>>,
    traces: Option<Arc<TraceQueue>>,
    pub(crate) throttles: Throttles,
}

/// Bytes of output that wait for a connection at which a batch of its requests stops: the output goes out first.
const OUTBOX_PAUSE: usize = 256 << 10;
/// As [`OUTBOX_PAUSE`], while the answers of all connections take all their room. An answer up to this size is small
/// then.
const OUTBOX_PAUSE_WHEN_FULL: usize = 16 << 10;
/// A batch also stops when this number of bytes will wait as soon as a write commits.
const PROMISED_PAUSE: usize = 8 << 20;

/// Whether a batch may go on before others have had their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    GoesOn,
    Over,
}

fn is_over(server: &Server, began: u64) -> bool {
    server.work_done() - began >= WORK_PER_HOLD
}

/// A connection, for reports.
pub(crate) struct ShownConn {
    pub(crate) report: ConnReport,
    /// The number of notifications that it has got.
    pub(crate) notified: u64,
    pub(crate) has_tls: bool,
}

/// The knowledge that a connection's task has of its end.
pub(crate) struct Loss {
    pub(crate) cause: EndCause,
    pub(crate) host: HostState,
}

impl Driver {
    pub(crate) fn new(server: Server, clock: Clock, parts: DriverParts) -> Driver {
        let DriverParts { disk, snapshots, doors, room, sasl, audit, traces, throttles, requests } = parts;
        let core = Core {
            server,
            effects: Vec::new(),
            outboxes: Outboxes::default(),
            links: BTreeMap::new(),
            waiting: Vec::new(),
            responses: Responses::default(),
            throttle: requests,
            new_sessions: NewSessions::new(),
            leaderless: HashSet::new(),
            ended: false,
        };
        Driver {
            core: Mutex::new(core),
            clock,
            disk,
            snapshots,
            sasl,
            timer_until: AtomicU64::new(0),
            timer: Notify::new(),
            next_conn: AtomicU64::new(1),
            doors,
            next_link: AtomicU64::new(1),
            waiting_for_peers: Arc::default(),
            reloaded: Notify::new(),
            traffic: Traffic::default(),
            host_probe: HostProbe::default(),
            room: Arc::new(room),
            audit,
            traces,
            throttles,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock()
    }

    /// Gives the core one input.
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

    /// The server's mode in its ensemble; `None` for a standalone server.
    pub(crate) fn mode(&self) -> Option<MemberMode> {
        self.lock().server.mode()
    }

    /// Takes the requests of one connection under one lock, until their answers pile up or they have taken their share of
    /// the member's time.
    pub(crate) fn requests(&self, conn: ConnId, outbox: &Outbox, batch: Batch<'_>) -> Taken {
        let mut taken = Taken { count: 0, held: None };
        let Batch { requests, since_us, waits } = batch;
        let core = &mut *self.lock();
        let now = self.clock.now();
        let waited_us = u32::try_from(now.mono_us().saturating_sub(since_us)).unwrap_or(u32::MAX);
        let began = core.server.work_done();
        for (at, request) in requests.into_iter().enumerate() {
            let promised = core.server.reserved_bytes_of_all();
            if self.room.is_scarce(promised) {
                let size = core.server.answer_size(conn, &request.request);
                if size > OUTBOX_PAUSE_WHEN_FULL && !self.room.fits(size, promised) {
                    taken.held = Some(Held::ForRoom);
                    break;
                }
            }
            let begin = core.begin(now.mono, conn, &request.request, &waits.of(at));
            taken.held = Held::by(begin);
            if taken.held.is_some() {
                break;
            }
            let is_full = self.room.is_full(promised);
            outbox.count_request();
            let request = ClientRequest { waited_us, ..request };
            let input = match begin {
                Begin::Refuse => Input::Throttled { conn, request },
                _ => Input::Request { conn, request },
            };
            core.server.step(now, input, &mut core.effects);
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
        self.give_turns(core);
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

    /// A connection that is gone, and what is known of its end.
    pub(crate) fn disconnected(&self, conn: ConnId, loss: Loss) {
        let Loss { cause, host } = loss;
        let core = &mut *self.lock();
        let outbox = core.outboxes.remove(&conn);
        core.forget_requests(conn, outbox.as_deref());
        self.sasl.gone(conn);
        let now = self.clock.now();
        core.server.step(now, Input::ConnectionLost { conn, cause, host }, &mut core.effects);
        core.server.step(now, Input::Disconnected { conn }, &mut core.effects);
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

    /// Ends the audit log after the records that wait, and those of writes whose outcome is not known.
    pub(crate) fn end_audit(&self) {
        if let Some(audit) = &self.audit {
            let undecided = self.lock().server.undecided_audits(self.clock.now());
            undecided.into_iter().for_each(|record| audit.push(Box::new(record)));
            audit.stop();
        }
    }

    /// Records the act of an operator in the audit log, if there is one.
    pub(crate) fn audit(&self, record: AuditRecord) {
        if let Some(audit) = &self.audit {
            audit.push(Box::new(record));
        }
    }

    /// The time, as the core takes it.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Ends all waiting: nothing will change any more.
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

    /// The election connections to the other members; none of a standalone server.
    pub(crate) fn election_links(&self) -> Vec<ElectionLinkReport> {
        self.doors.as_ref().map_or_else(Vec::new, |doors| doors.election.links())
    }

    /// Looks at the core between steps.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        look(&self.lock().server)
    }

    /// As [`Driver::inspect`], with the counts of what has gone out to clients.
    pub(crate) fn inspect_with_responses<T>(&self, look: impl FnOnce(&Server, &Responses) -> T) -> T {
        let core = &*self.lock();
        look(&core.server, &core.responses)
    }

    /// As [`Driver::inspect`], with the outboxes of the clients.
    pub(crate) fn inspect_with_outboxes<T>(&self, look: impl FnOnce(&Server, &Outboxes) -> T) -> T {
        let core = &*self.lock();
        look(&core.server, &core.outboxes)
    }

    /// The answers to traced requests have been written out.
    pub(crate) fn traced_written(&self, requests: Vec<TracedRequest>) {
        if let Some(traces) = &self.traces {
            requests.into_iter().for_each(|request| traces.push(request));
        }
    }

    /// The answer to a slow request has been written out.
    pub(crate) fn slow_written(&self, number: u64) {
        self.lock().server.slow_request_written(self.clock.now(), number);
    }

    /// Counts a four-letter word that has come.
    pub(crate) fn count_word(&self, conn: ConnId) {
        self.lock().server.count_word(conn);
    }

    /// Counts the answer to a word, in this number of parts.
    pub(crate) fn count_word_answered(&self, conn: ConnId, parts: u64) {
        self.lock().server.count_word_answered(conn, parts);
    }

    /// Counts each request by path and client for this time.
    pub(crate) fn measure_hot_paths(&self, ms: u64) {
        self.lock().server.measure_hot_paths(self.clock.now(), ms);
    }

    /// Forgets the server's counts (`srst`).
    pub(crate) fn reset_stats(&self) {
        let core = &mut *self.lock();
        core.server.reset_stats();
        core.responses = Responses::default();
        self.traffic.reset();
        self.throttles.reset();
        core.reset_throttle();
    }

    /// Reports of those of these connections that are still there, each with the number of its notifications.
    pub(crate) fn connections(&self, numbers: &[ConnId]) -> Vec<ShownConn> {
        let core = &*self.lock();
        let shown = |report: ConnReport| {
            let outbox = core.outboxes.get(&report.conn);
            ShownConn {
                notified: outbox.map_or(0, |outbox| outbox.notified()),
                has_tls: outbox.is_some_and(|outbox| outbox.has_tls()),
                report,
            }
        };
        numbers.iter().filter_map(|conn| core.server.connection(*conn)).map(shown).collect()
    }

    /// Forgets the connections' counts (`crst`).
    pub(crate) fn reset_conn_stats(&self) {
        let core = &mut *self.lock();
        core.server.reset_conn_stats();
        core.outboxes.values().for_each(|outbox| outbox.reset_notified());
    }

    /// When the core next wants to be woken.
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

    /// Passes the effects of a step to the clients' connections, the disk, and the other servers.
    fn route(&self, core: &mut Core) {
        if let Some(traces) = &self.traces {
            for (conn, request) in core.server.take_traced() {
                match conn.and_then(|conn| core.outboxes.get(&conn)) {
                    Some(outbox) => outbox.add_traced(request),
                    None => traces.push(request),
                }
            }
        }
        for (conn, number) in core.server.take_slow_replies() {
            if let Some(outbox) = core.outboxes.get(&conn) {
                outbox.mark_slow(number);
            }
        }
        let Core { effects, outboxes, links, responses, new_sessions, .. } = core;
        let mut clients = ClientEffects::new(outboxes, responses, &self.traffic.refused_log);
        let doors = self.doors.as_ref();
        for effect in effects.drain(..) {
            match effect {
                Effect::Reply { conn, reply } => clients.reply(conn, &reply),
                Effect::Notify { conns, zxid, kind, path } => {
                    clients.notify(conns, Notification { zxid, kind, path: &path });
                }
                Effect::Connected { conn, response } => {
                    new_sessions.ended(conn);
                    clients.connected(conn, &response);
                }
                Effect::SaslToken { conn, xid, token } => self.sasl.put(conn, xid, token),
                Effect::Close { conn, reason } => clients.close(conn, reason),
                Effect::Audit(record) => {
                    if let Some(audit) = &self.audit {
                        audit.push(record);
                    }
                }
                Effect::Persist { seq, op } => self.disk.push(seq, op),
                Effect::Snapshot(frozen) => self.snapshots.push(frozen),
                Effect::ToPeer { link, message } => {
                    if let Some(outbox) = links.get(&link) {
                        outbox.push(message);
                    }
                    self.give_up_slowest(links);
                }
                Effect::HangUp(link) => {
                    if let Some(outbox) = links.remove(&link) {
                        outbox.close();
                    }
                }
                Effect::Servers(all) => on(doors, |doors| doors.book.replace(&all)),
                Effect::SendVote { to, notification } => {
                    on(doors, |doors| doors.election.send(to, &notification));
                }
                Effect::RefuseVotes { of, why } => on(doors, |doors| doors.election.refuse(of, &why)),
                Effect::Dial { search_id, to } => on(doors, |doors| doors.quorum.dial(search_id, to)),
                Effect::ReadLog { search_id, link, after, through } => {
                    on(doors, |doors| doors.quorum.read_log(search_id, link, after, through));
                }
            }
        }
        let answered = clients.finish();
        core.note_answered(answered);
        self.give_turns(core);
        if !core.waiting.is_empty() {
            core.tell_waiting();
        }
    }

    /// If too much waits for the other servers, gives up the link for which most waits.
    fn give_up_slowest(&self, links: &Links) {
        if self.waiting_for_peers.load(Ordering::Relaxed) > WAITING_MAX
            && let Some(most) = links.values().max_by_key(|outbox| outbox.waiting())
        {
            most.give_up();
        }
    }
}

/// Acts on the ways to the other servers. A standalone server has none.
fn on(doors: Option<&Doors>, act: impl FnOnce(&Doors)) {
    if let Some(doors) = doors {
        act(doors);
    }
}

impl Core {
    /// Ends the waiting of callers whose state has come, and forgets those that have given up.
    fn tell_waiting(&mut self) {
        let server = &self.server;
        let met = |waiting: &mut Waiting| waiting.met.is_closed() || (waiting.condition)(server);
        for waiting in self.waiting.extract_if(.., met) {
            let _ = waiting.met.send(());
        }
    }
}
