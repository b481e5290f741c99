//! The simulated world: its servers, clients and network, virtual time, and the handling of events.

use crate::{
    agenda::Agenda,
    chance::Chance,
    client::Client,
    clock::Clock,
    contender::{Contender, HoldingCounts},
    disk::{MemberDisk, StartState},
    fingerprint::Fingerprint,
    history::History,
    logins::Exchanges,
    network::{MemberProcess, Net, PACKET_MAX, Parcel, Route},
    reference::ReferenceHistory,
    sessions::SignsOfLife,
    words,
};
use ostler_data_dir::recovery;
use ostler_proto::{
    connect::ConnectRequest,
    id::{Epoch, ServerId, SessionId, Xid, Zxid},
    membership::Membership,
    quorum_packet::{Packet, PacketSplit, split},
    request::Request,
    stat::ExtendedTypes,
};
use ostler_server_core::{
    ClientRequest, ConnId, CoreConfig, DialTarget, EnsembleConfig, Input, Now, Server,
    passwords::{NewPasswords, Passwords, Secret},
    quorum::{LocalSessions, MemberMode, ObserverOptions},
};
use ostler_zab::{
    ElectionTiming, EpochLength, HistoryLimits,
    leading::{LeadingTiming, LinkId},
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const TICK_MS: u64 = 100;
const START_MS: u64 = 1_000;
/// The usual time to read a log for a learner: shortest and longest, ms.
pub(crate) const LOG_MS: (u64, u64) = (1, 200);
/// More events than this in one millisecond are an endless loop.
const AT_ONCE_MAX: u64 = 1_000_000;
/// The most events that may be pending; some hundreds are usual.
const PENDING_MAX: usize = 200_000;

/// A future event. `id` and `life` name the server process that handles it: if that has ended, the event is dropped.
#[derive(Debug)]
pub(crate) enum Event {
    /// The first parcel of a lane is due.
    Lane(u64),
    /// The core's next deadline.
    Deadline { id: i64, life: u64 },
    /// The disk has done some of its operations.
    Sync { id: i64, life: u64 },
    /// A snapshot in the background is written.
    SnapshotDone { id: i64, life: u64 },
    /// The log was read for a learner.
    LogRead { id: i64, life: u64, search_id: u64, link: LinkId, after: Zxid, through: Zxid },
    /// A server tries to connect to a leader or an observer master.
    Dial { id: i64, life: u64, search_id: u64, to: DialTarget, since: u64 },
    /// A server tries to connect to an election port.
    DialElection { id: i64, life: u64, to: i64 },
    /// A server notices that a connection between election ports is open or broken.
    Election { id: i64, life: u64, peer: i64, up: bool },
    /// A server notices that a link has ended.
    Gone { id: i64, life: u64, link: LinkId },
    /// A part of a tree was sent or received.
    TreeMoves { id: i64, life: u64, link: LinkId, until: u64 },
    /// A server notices that a client connection has ended.
    ConnGone { conn: ConnId },
    /// The mechanism of logins has worked at a token.
    SaslWorked { id: i64, life: u64, conn: ConnId, xid: Xid, token: Vec<u8> },
    /// A pause ends.
    Resume { id: i64, life: u64 },
    /// The regular step of a contender.
    Contender(usize),
    /// A contender's connection attempt reaches a server.
    ContenderCalls { contender: usize, call: u64, member: i64 },
    /// The regular step of a client.
    Client(usize),
    /// An attempt of a session thief.
    SessionThief,
}

/// A member, up or down.
pub(crate) struct Node {
    pub(crate) server: Option<Server>,
    /// The number of its starts. Events for an earlier process are dropped.
    pub(crate) life: u64,
    pub(crate) disk: MemberDisk,
    pub(crate) clock: Clock,
    /// The server may start with an empty disk (`may_start_empty`), as servers of other makes always do.
    pub(crate) new_here: bool,
    /// The transactions on its disk once all queued operations are done.
    pub(crate) history: History,
    /// The transactions in the tree that it is receiving.
    pub(crate) incoming: Option<History>,
    pub(crate) paused_until: u64,
    /// Events that came while it was paused.
    missed: Vec<Event>,
    /// The longest time of a sync, ms.
    pub(crate) sync_ms: u64,
    pub(crate) syncing: bool,
    pub(crate) wake: Option<u64>,
    /// The last zxid at which its tree was checked.
    pub(crate) checked: Zxid,
    pub(crate) signs: SignsOfLife,
}

/// Epochs that do not end in a run.
pub(crate) const NO_END: EpochLength =
    EpochLength { in_place: None, enough: u32::MAX - 2_000_000, most: u32::MAX - 1_000_000 };

/// The parameters of a run that a seed decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) voters: i64,
    pub(crate) observers: i64,
    pub(crate) clients: usize,
    /// The number of processes that compete for locks and leaderships.
    pub(crate) contenders: usize,
    /// The number of committed records that a leader keeps in memory.
    pub(crate) history: usize,
    pub(crate) snapshot_txns: u64,
    pub(crate) epoch: EpochLength,
    pub(crate) observing: ObserverOptions,
    /// The longest pause of a client between requests.
    pub(crate) pace_ms: u64,
    pub(crate) local: LocalSessions,
    pub(crate) read_only_after_ms: Option<u64>,
    /// How long a server waits for each step until an epoch begins (`initLimit`).
    pub(crate) init_ms: u64,
    /// How long a leader or a follower goes on without a packet from the other (`syncLimit`).
    pub(crate) sync_limit_ms: u64,
    /// The space that is reserved beyond the log's end, bytes.
    pub(crate) prealloc_bytes: u64,
    /// Whether reconfigurations are allowed.
    pub(crate) reconfig: bool,
    /// The time to read the log for a learner: shortest and longest, ms.
    pub(crate) log_ms: (u64, u64),
    /// The time that a tree takes to arrive: shortest and longest, ms.
    pub(crate) tree_ms: (u64, u64),
    /// Clients ask for another timeout when they reconnect.
    pub(crate) timeouts_change: bool,
    /// The size of the data of some writes, bytes; 0 for none.
    pub(crate) large_bytes: usize,
    /// Some clients read replies slowly.
    pub(crate) slow_readers: bool,
    /// A server that has lost its disk may die while it is synchronized, and reconfigurations may be whole lists, with
    /// groups and weights.
    pub(crate) wide: bool,
    /// At the end no client writes before all servers are back.
    pub(crate) idle_end: bool,
    /// Session thieves ask for the sessions of others and guess the passwords.
    pub(crate) session_thieves: bool,
    /// Session passwords are made with a secret.
    pub(crate) secret: bool,
    /// Servers have certificates, which can be refused, and clients log in by certificates and by SASL.
    pub(crate) secured: bool,
    /// A server that cannot move on to another epoch in place whenever it starts for an odd number of times, as one of
    /// another make, or of an earlier version.
    pub(crate) lacks_moves: Option<i64>,
}

impl Shape {
    fn passwords(&self) -> Passwords {
        let secret = Secret::new(b"what all members know");
        if self.secret {
            Passwords { new: NewPasswords::Secret, secrets: secret.into_iter().collect() }
        } else {
            Passwords::default()
        }
    }

    /// The configuration that the ensemble begins with.
    pub(crate) fn membership(&self) -> Membership {
        let lines = (1..=self.voters + self.observers).map(|id| line(id, id > self.voters) + "\n");
        Membership::parse(&lines.collect::<String>()).unwrap()
    }
}

/// A server's line in a configuration.
pub(crate) fn line(id: i64, observer: bool) -> String {
    let role = if observer { "observer" } else { "participant" };
    format!("server.{id}=h{id}:1:2:{role};h{id}:3")
}

pub(crate) struct World {
    pub(crate) shape: Shape,
    pub(crate) chance: Chance,
    pub(crate) now: u64,
    events: Agenda<Event>,
    pub(crate) nodes: BTreeMap<i64, Node>,
    pub(crate) net: Net,
    pub(crate) clients: Vec<Client>,
    pub(crate) reference: ReferenceHistory,
    /// The last write that was acknowledged to any client.
    pub(crate) acknowledged: Zxid,
    /// No more faults are injected.
    pub(crate) calm: bool,
    /// Clients only keep their sessions.
    pub(crate) quiet: bool,
    pub(crate) quiet_until: u64,
    /// Until this time clients keep their sessions and read, but do not write.
    pub(crate) idle_until: u64,
    pub(crate) tally: BTreeMap<&'static str, u64>,
    /// Whether events are printed.
    pub(crate) traced: bool,
    pub(crate) fingerprint: Fingerprint,
    /// A server whose disk was spoilt, until it has its data again. No other fault is injected meanwhile.
    pub(crate) ailing: Option<i64>,
    /// A test: the log can never be read for a learner, and the attempt takes long.
    pub(crate) logs_unread: bool,
    pub(crate) contenders: Vec<Contender>,
    /// The holders of each resource.
    pub(crate) holding_counts: HoldingCounts,
    /// Sessions that an operator has ended. Their clients cannot know that yet.
    pub(crate) condemned: BTreeSet<SessionId>,
    pub(crate) exchanges: Exchanges,
}

impl World {
    pub(crate) fn new(mut chance: Chance, shape: Shape) -> World {
        let membership = shape.membership();
        let node = |id: i64| Node {
            server: None,
            life: 0,
            disk: MemberDisk::new(ServerId(id), &membership, shape.prealloc_bytes),
            clock: Clock::of(id),
            new_here: false,
            history: History::default(),
            incoming: None,
            paused_until: 0,
            missed: Vec::new(),
            sync_ms: 10,
            syncing: false,
            wake: None,
            checked: Zxid::ZERO,
            signs: SignsOfLife::default(),
        };
        let mut world = World {
            shape,
            now: START_MS,
            events: Agenda::new(START_MS),
            nodes: (1..=shape.voters + shape.observers).map(|id| (id, node(id))).collect(),
            net: Net::default(),
            clients: (0..shape.clients).map(|n| Client::nth(n, &mut chance)).collect(),
            reference: ReferenceHistory::new(membership.clone()),
            acknowledged: Zxid::ZERO,
            calm: false,
            quiet: false,
            quiet_until: 0,
            idle_until: 0,
            tally: BTreeMap::new(),
            traced: std::env::var("SIM_TRACE").is_ok(),
            fingerprint: Fingerprint::default(),
            ailing: None,
            logs_unread: false,
            contenders: Contender::all(&shape, &mut chance),
            holding_counts: HoldingCounts::default(),
            condemned: BTreeSet::new(),
            exchanges: Exchanges::default(),
            chance,
        };
        if shape.secured {
            world.choose_logins();
        }
        world
    }

    pub(crate) fn trace(&self, line: impl FnOnce() -> String) {
        if self.traced {
            println!("{:>7.3}  {}", (self.now - START_MS) as f64 / 1000.0, line());
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    pub(crate) fn after(&mut self, delay: u64, event: Event) {
        self.events.add(self.now + delay, event);
    }

    /// Virtual time since the beginning, ms.
    pub(crate) fn elapsed(&self) -> u64 {
        self.now - START_MS
    }

    pub(crate) fn node(&mut self, id: i64) -> &mut Node {
        self.nodes.get_mut(&id).unwrap()
    }

    pub(crate) fn ids(&self) -> Vec<i64> {
        self.nodes.keys().copied().collect()
    }

    pub(crate) fn lives(&self, (id, life): MemberProcess) -> bool {
        self.nodes[&id].life == life && self.nodes[&id].server.is_some()
    }

    pub(crate) fn time_of(&self, id: i64) -> Now {
        self.nodes[&id].clock.at(self.now)
    }

    /// Starts a server on its disk. False if the server refuses to start.
    pub(crate) fn boot(&mut self, id: i64) -> bool {
        let (now, shape) = (self.time_of(id), self.shape);
        let seed = self.chance.below(1 << 40);
        let node = self.node(id);
        node.life += 1;
        (node.syncing, node.wake, node.paused_until) = (false, None, 0);
        node.missed.clear();
        node.checked = Zxid::ZERO;
        node.disk.set_binary(seed);
        let found = match node.disk.start() {
            Ok(found) => found,
            Err(error) => {
                node.disk.stop();
                self.count("start refused");
                self.trace(|| format!("server {id} does not start: {error}"));
                return false;
            }
        };
        if !found.membership.servers.contains_key(&ServerId(id)) {
            node.disk.stop();
            self.trace(|| format!("server {id} does not start: it is in no configuration"));
            return false;
        }
        let StartState { tree, replayed, history, .. } = found;
        let needed = self.reference.before(found.current);
        assert!(
            !found.whole || history.has_all_of(&needed),
            "[current epoch] server {id} has saved {:?}, and lacks earlier commits: it has {history:?}",
            found.current
        );
        let node = self.node(id);
        node.history = history;
        let lacks_moves = shape.lacks_moves == Some(id) && node.life % 2 == 1;
        let in_place = shape.epoch.in_place.filter(|_| !lacks_moves);
        let core = CoreConfig {
            server: ServerId(id),
            tick_time_ms: TICK_MS,
            session_timeout_min_ms: 300,
            session_timeout_max_ms: 10_000,
            snapshot_txns: shape.snapshot_txns,
            reconfig: shape.reconfig,
            skip_acl: shape.reconfig,
            passwords: shape.passwords(),
            seed,
            audit: true,
            x509_auth: shape.secured,
            sasl: shape.secured,
            sasl_acls: shape.secured,
            ..CoreConfig::default()
        };
        let ensemble = EnsembleConfig {
            membership: found.membership,
            pending: found.pending.filter(|_| shape.reconfig),
            election: ElectionTiming::default(),
            timing: LeadingTiming { init: shape.init_ms, sync: shape.sync_limit_ms },
            refuse_others: true,
            voters_min: 2,
            observing: shape.observing,
            epoch: EpochLength { in_place, ..shape.epoch },
            history: HistoryLimits { records: shape.history, bytes: 1 << 20 },
            local_sessions: shape.local,
            read_only_after_ms: shape.read_only_after_ms,
            may_start_empty: node.new_here,
            incomplete: found.incomplete,
            accepted: found.accepted,
            current: found.current,
            log_from: found.log_from,
        };
        let (last, life) = (tree.last_processed(), node.life);
        node.server = Some(Server::member(core, ensemble, tree, replayed, now));
        self.trace(|| format!("server {id} starts for the {life}. time, with all up to {last}"));
        self.schedule_deadline(id);
        true
    }

    pub(crate) fn schedule_deadline(&mut self, id: i64) {
        let (now, node) = (self.now, self.node(id));
        let Some(server) = &node.server else { return };
        let next = server.next_deadline();
        let due = node.clock.when(next).max(now);
        if due < u64::MAX && node.wake.is_none_or(|wake| wake > due) {
            node.wake = Some(due);
            let life = node.life;
            self.after(due - now, Event::Deadline { id, life });
        }
    }

    pub(crate) fn run(&mut self, ms: u64) {
        let until = self.now + ms;
        let mut at_once = 0;
        while let Some((at, number, event)) = self.events.next(until) {
            at_once = if at > self.now { 0 } else { at_once + 1 };
            assert!(at_once < AT_ONCE_MAX, "[progress] events come without end and time stands still");
            assert!(
                self.events.len() < PENDING_MAX,
                "[progress] the number of pending events grows without end"
            );
            self.now = at;
            self.fingerprint.number(at ^ number << 32);
            self.handle(event);
        }
        self.now = until;
    }

    /// Runs until a condition holds. False if it does not hold within `ms`.
    pub(crate) fn run_until(&mut self, ms: u64, is_so: impl Fn(&World) -> bool) -> bool {
        let until = self.now + ms;
        while self.now < until {
            if is_so(self) {
                return true;
            }
            self.run(5);
        }
        is_so(self)
    }

    fn process_of(&self, event: &Event) -> Option<MemberProcess> {
        match event {
            Event::Deadline { id, life }
            | Event::Sync { id, life }
            | Event::SnapshotDone { id, life, .. }
            | Event::LogRead { id, life, .. }
            | Event::Dial { id, life, .. }
            | Event::DialElection { id, life, .. }
            | Event::Election { id, life, .. }
            | Event::Gone { id, life, .. }
            | Event::SaslWorked { id, life, .. }
            | Event::TreeMoves { id, life, .. } => Some((*id, *life)),
            Event::Lane(lane) => self.net.lanes.get(lane)?.to,
            Event::ConnGone { conn } => self.net.conns.get(conn).map(|of| of.member),
            Event::Resume { .. }
            | Event::Client(_)
            | Event::SessionThief
            | Event::Contender(_)
            | Event::ContenderCalls { .. } => None,
        }
    }

    fn handle(&mut self, event: Event) {
        if let Some(process) = self.process_of(&event) {
            if !self.lives(process) {
                return;
            }
            // A paused process gets the event when it runs again.
            if self.nodes[&process.0].paused_until > self.now {
                return self.node(process.0).missed.push(event);
            }
        }
        match event {
            Event::Lane(lane) => self.lane_due(lane),
            Event::Deadline { id, .. } => self.woken(id),
            Event::Sync { id, .. } => self.synced(id),
            Event::SnapshotDone { id, .. } => {
                self.node(id).disk.finish_snapshot();
                self.step(id, Input::SnapshotDone);
            }
            Event::LogRead { id, search_id, link, after, through, .. } => {
                let lucky = !self.chance.one_in(5) && !self.logs_unread;
                let read = self.node(id).disk.log_part(after, through).filter(|_| lucky);
                self.count(if read.is_some() { "log read" } else { "log unread" });
                self.step(id, Input::LogRead { link, search_id, read });
            }
            Event::Dial { id, search_id, to, since, .. } => self.dial(id, search_id, to, since),
            Event::DialElection { id, to, .. } => self.dial_election(id, to),
            Event::Election { id, peer, up, .. } => self.election_link(id, peer, up),
            Event::Gone { id, link, .. } => self.link_gone(id, link),
            Event::TreeMoves { id, life, link, until } => self.tree_moves((id, life), link, until),
            Event::ConnGone { conn } => self.conn_gone(conn),
            Event::SaslWorked { id, conn, xid, token, .. } => self.token_worked(id, conn, xid, &token),
            Event::Client(client) => self.client_acts(client),
            Event::SessionThief => self.session_thief_acts(),
            Event::Contender(contender) => self.contender_acts(contender),
            Event::ContenderCalls { contender, call, member } => {
                self.contender_calls(contender, call, member);
            }
            Event::Resume { id, life } => {
                if self.lives((id, life)) && self.nodes[&id].paused_until <= self.now {
                    self.resume(id);
                }
            }
        }
    }

    /// Ends the pause of a process. It gets all events that came meanwhile.
    pub(crate) fn resume(&mut self, id: i64) {
        let now = self.now;
        let node = self.node(id);
        node.paused_until = node.paused_until.min(now);
        for event in std::mem::take(&mut node.missed) {
            self.after(0, event);
        }
    }

    fn woken(&mut self, id: i64) {
        let now = self.now;
        let node = self.node(id);
        if node.wake.is_some_and(|wake| wake <= now) {
            node.wake = None;
        }
        let mono = node.clock.at(now).mono;
        if node.server.as_ref().is_some_and(|server| server.next_deadline() <= mono) {
            self.step(id, Input::Deadline);
            while self.nodes[&id].server.as_ref().is_some_and(Server::has_backlog) {
                self.step(id, Input::Deadline);
            }
            let server = self.nodes[&id].server.as_ref().unwrap();
            assert!(
                server.next_deadline() > mono,
                "[progress] server {id} is woken and wants to be woken again at once"
            );
        }
        self.schedule_deadline(id);
    }

    /// Handles a parcel that has arrived.
    pub(crate) fn arrived(&mut self, lane: u64, route: Route, to: Option<MemberProcess>, parcel: Parcel) {
        let id = to.map_or(0, |(id, _)| id);
        self.fingerprint.parcel(lane, &parcel);
        match (route, parcel) {
            (Route::Vote { from }, Parcel::Vote(notification)) => {
                self.step(id, Input::Vote { from: ServerId(from), notification });
            }
            (Route::Peer { link, to_leader }, Parcel::Packet(bytes)) => {
                let PacketSplit::Packet(packet, size) = split(&bytes, PACKET_MAX, to_leader) else {
                    panic!("a packet that was sent cannot be read: {bytes:?}");
                };
                assert_eq!(size, bytes.len());
                self.trace(|| {
                    let of = &self.net.links[&link];
                    let from = if to_leader { of.learner.0 } else { of.leader.0 };
                    format!("server {id} gets from {from}: {}", words::packet(&packet))
                });
                let cuts = matches!(packet, Packet::Trunc(_));
                self.note_sync(id, link, &packet);
                self.learner_spoke(id, &packet);
                self.step(id, Input::Peer { link, packet });
                if cuts && let Some(of) = self.net.lanes.get_mut(&lane) {
                    of.held = true;
                }
            }
            (Route::Peer { link, .. }, Parcel::Tree { zxid, digest, bytes, history }) => {
                self.trace(|| format!("server {id} gets a tree of {zxid} on {}", link.0));
                let (tree, rest) = recovery::read_stream(&bytes[..], zxid, ExtendedTypes::default()).unwrap();
                assert!(
                    rest.is_empty() && tree.digest() == digest,
                    "[digest] the received tree differs from the sent one"
                );
                let tree = Box::new(tree);
                self.node(id).incoming = Some(history);
                self.step(id, Input::SnapBegins { link });
                self.step(id, Input::Snap { link, tree });
            }
            (Route::Peer { to_leader, .. }, Parcel::Part(of, bytes)) => {
                self.count("part of a packet");
                assert!(
                    of.is_incomplete(&bytes, to_leader),
                    "[frames] a part of a message is taken for a whole message"
                );
            }
            (Route::Peer { link, .. }, Parcel::Call) => {
                self.count("observer calls");
                self.step(id, Input::ObserverCalls { link });
            }
            (Route::Peer { link, .. }, Parcel::End) => self.link_gone(id, link),
            (Route::ToServer(conn), Parcel::Connect(payload)) => {
                let request = ConnectRequest::read(&payload).unwrap();
                self.net.conns.get_mut(&conn).unwrap().returns = request.session != SessionId::NONE;
                let chance = self.bits_for(conn);
                self.step(id, Input::Connect { conn, request, chance });
            }
            (Route::ToServer(conn), Parcel::Request(payload)) => {
                let request = ClientRequest::decode(&payload).unwrap();
                // An auth request is no sign of life.
                if !matches!(request.request, Request::Auth { .. } | Request::Sasl(_)) {
                    self.client_spoke(id, conn);
                }
                self.step(id, Input::Request { conn, request });
            }
            (Route::ToServer(conn), Parcel::End) => self.conn_gone(conn),
            (Route::ToClient(conn), parcel) => self.client_gets(conn, parcel),
            (route, parcel) => panic!("{parcel:?} on {route:?}"),
        }
    }

    pub(crate) fn mode(&self, id: i64) -> Option<MemberMode> {
        self.nodes[&id].server.as_ref().and_then(Server::mode)
    }

    /// The member that leads the latest epoch.
    pub(crate) fn leader(&self) -> Option<i64> {
        let leading = |id: &i64| self.mode(*id) == Some(MemberMode::Leader);
        self.nodes.keys().copied().filter(leading).max_by_key(|id| self.epoch_of(*id))
    }

    pub(crate) fn epoch_of(&self, id: i64) -> Epoch {
        let server = self.nodes[&id].server.as_ref();
        server.map_or(Epoch::default(), |server| server.tree().last_processed().epoch())
    }

    /// Whether a member serves clients that write.
    pub(crate) fn serves(&self, id: i64) -> bool {
        self.mode(id).is_some_and(|mode| !matches!(mode, MemberMode::Looking | MemberMode::ReadOnly))
    }
}
