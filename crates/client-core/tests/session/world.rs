//! A session and a simulated server, with a simulated network and clock.

use ostler_client_core::{
    AttemptId, Config, ConnectionState, Effect, Effects, EventKind, Failure, Input, Mono, RequestId, Session,
    WatchId,
};
use ostler_proto::{
    connect::ConnectRequest,
    event,
    frame::{Split, split},
    id::{SessionId, Xid},
    request::Request,
    stat::ExtendedTypes,
};
use ostler_server_core::{self as server_core, ClientRequest, ConnId, CoreConfig, Now, Server};
use ostler_tree::Tree;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    time::Duration,
};

pub(crate) const TIMEOUT_MS: u64 = 6000;
/// The connection of another client, which changes znodes.
const OTHER: ConnId = ConnId(1 << 40);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Reply(i32),
    Failed(Failure),
}

enum ToClient {
    Frame(Vec<u8>),
    Hangup,
}

pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) client: Session,
    effects: Effects,
    pub(crate) server: Server,
    chance: SplitMix64,
    /// Longest time on the way, ms.
    pub(crate) delay_max: u64,
    /// Messages are lost without notice to either side.
    pub(crate) partitioned: bool,
    dialing: Option<(u64, AttemptId)>,
    link: Option<Link>,
    /// Messages that have arrived, in both directions.
    pub(crate) delivered: usize,
    /// Watch events among them.
    pub(crate) notified: usize,
    /// Lose the connection after this number of them.
    pub(crate) cut_after: Option<usize>,
    pub(crate) outcomes: BTreeMap<u64, Vec<Outcome>>,
    pub(crate) events: Vec<(u64, EventKind, String)>,
    pub(crate) states: Vec<(u64, ConnectionState, Option<SessionId>)>,
    /// When the server forgot each session.
    pub(crate) expired: BTreeMap<SessionId, u64>,
    alive: Vec<SessionId>,
}

struct Link {
    attempt: AttemptId,
    conn: ConnId,
    shaken: bool,
    /// Something was lost on it, so nothing that follows arrives either.
    torn: bool,
    to_server: VecDeque<(u64, Vec<u8>)>,
    to_client: VecDeque<(u64, ToClient)>,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        // Both are the one simulated server.
        let mut config = Config::new(2, seed);
        config.session_timeout = Duration::from_millis(TIMEOUT_MS);
        config.connection_timeout = Duration::from_secs(60);
        config.tick_time = Some(Duration::from_secs(1));
        let core = CoreConfig { tick_time_ms: 1000, session_timeout_min_ms: 1000, ..CoreConfig::default() };
        let tree = Tree::fresh(ExtendedTypes::default());
        let mut world = World {
            now: 1000,
            client: Session::new(config, at(1000)),
            effects: Effects::default(),
            server: Server::new(core, tree, 0, server_now(1000)),
            chance: SplitMix64::seed_from_u64(seed),
            delay_max: 1,
            partitioned: false,
            dialing: None,
            link: None,
            delivered: 0,
            notified: 0,
            cut_after: None,
            outcomes: BTreeMap::new(),
            events: Vec::new(),
            states: Vec::new(),
            expired: BTreeMap::new(),
            alive: Vec::new(),
        };
        world.open_other();
        world
    }

    fn open_other(&mut self) {
        self.serve(server_core::Input::Accepted { conn: OTHER, peer: peer() });
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms: 1_000_000,
            session: SessionId::NONE,
            password: Some(&[0; 16]),
            read_only: Some(false),
        };
        self.serve(server_core::Input::Connect { conn: OTHER, request, chance: OTHER.0 });
    }

    /// Runs a request of the other client at once.
    pub(crate) fn other(&mut self, request: &Request<'_>) {
        let mut frame = Vec::new();
        request.write_frame(Xid(1), &mut frame);
        let request = ClientRequest::decode(&frame[4..]).unwrap();
        self.serve(server_core::Input::Request { conn: OTHER, request });
    }

    pub(crate) fn ask(&mut self, id: u64, request: &Request<'_>, watch: Option<u64>) {
        self.step(Input::Request { id: RequestId(id), session: None, request, watch: watch.map(WatchId) });
    }

    /// Moves to the other server.
    pub(crate) fn move_off(&mut self) {
        self.step(Input::MoveOff);
    }

    pub(crate) fn unwatch(&mut self, watch: u64) {
        self.step(Input::Unwatch(WatchId(watch)));
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.chance.next_u64() % limit
    }

    fn delay(&mut self) -> u64 {
        1 + self.below(self.delay_max)
    }

    /// Lets the world go on up to `until`.
    pub(crate) fn run(&mut self, until: u64) {
        while let Some(next) = self.next_moment().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.process_next();
        }
        self.now = self.now.max(until);
    }

    fn next_moment(&self) -> Option<u64> {
        let deadline = self.client.next_deadline().map(|at| at.0.as_nanos().div_ceil(1_000_000) as u64);
        let server = Some(self.server.next_deadline().0).filter(|at| *at != u64::MAX);
        let dialing = self.dialing.map(|(at, _)| at);
        let link = self.link.as_ref();
        let to_server = link.and_then(|link| link.to_server.front().map(|(at, _)| *at));
        let to_client = link.and_then(|link| link.to_client.front().map(|(at, _)| *at));
        [deadline, server, dialing, to_server, to_client].into_iter().flatten().min()
    }

    fn process_next(&mut self) {
        let now = self.now;
        if let Some((_, attempt)) = self.dialing.take_if(|(at, _)| *at <= now) {
            self.dialled(attempt);
        }
        let arrived = |at: &u64| *at <= now;
        if let Some(link) = &mut self.link
            && link.to_server.front().is_some_and(|(at, _)| arrived(at))
            && let Some((_, frame)) = link.to_server.pop_front()
        {
            let (conn, first) = (link.conn, !std::mem::replace(&mut link.shaken, true));
            self.arrive(conn, first, &frame);
            self.count_delivery();
        }
        if let Some(link) = &mut self.link
            && link.to_client.front().is_some_and(|(at, _)| arrived(at))
            && let Some((_, message)) = link.to_client.pop_front()
        {
            let attempt = link.attempt;
            match message {
                ToClient::Frame(frame) => {
                    self.notified += usize::from(frame[4..8] == Xid::NOTIFICATION.0.to_be_bytes());
                    self.step(Input::Frame { attempt, payload: &frame[4..] });
                    self.count_delivery();
                }
                ToClient::Hangup => self.step(Input::Disconnected(attempt)),
            }
        }
        if self.server.next_deadline().0 <= now {
            self.serve(server_core::Input::Deadline);
        }
        if self.client.next_deadline().is_some_and(|deadline| deadline <= at(now)) {
            self.step(Input::Deadline);
        }
    }

    fn count_delivery(&mut self) {
        self.delivered += 1;
        if self.cut_after == Some(self.delivered) {
            self.cut();
        }
    }

    /// The connection is lost, and both sides notice.
    pub(crate) fn cut(&mut self) {
        if let Some(link) = self.link.take() {
            self.serve(server_core::Input::Disconnected { conn: link.conn });
            self.step(Input::Disconnected(link.attempt));
        }
    }

    fn dialled(&mut self, attempt: AttemptId) {
        if self.partitioned {
            // The attempt is not answered. The client gives it up after its timeout.
            return;
        }
        let conn = ConnId(attempt.0);
        let queues = (VecDeque::new(), VecDeque::new());
        let link =
            Link { attempt, conn, shaken: false, torn: false, to_server: queues.0, to_client: queues.1 };
        self.link = Some(link);
        self.serve(server_core::Input::Accepted { conn, peer: peer() });
        self.step(Input::Connected(attempt));
    }

    fn arrive(&mut self, conn: ConnId, first: bool, frame: &[u8]) {
        if first {
            let request = ConnectRequest::read(&frame[4..]).unwrap();
            self.serve(server_core::Input::Connect { conn, request, chance: conn.0 });
        } else {
            let request = ClientRequest::decode(&frame[4..]).unwrap();
            self.serve(server_core::Input::Request { conn, request });
        }
    }

    fn step(&mut self, input: Input<'_>) {
        self.client.step(at(self.now), input, &mut self.effects);
        for effect in std::mem::take(&mut self.effects.list) {
            match effect {
                Effect::Connect { attempt, .. } => {
                    let delay = self.delay();
                    self.dialing = Some((self.now + delay, attempt));
                }
                Effect::Hangup(_) => {
                    self.dialing = None;
                    // The server notices only where the network lets it.
                    if let Some(link) = self.link.take().filter(|link| !link.torn && !self.partitioned) {
                        self.serve(server_core::Input::Disconnected { conn: link.conn });
                    }
                }
                Effect::Reply { id, error, .. } => {
                    self.outcomes.entry(id.0).or_default().push(Outcome::Reply(error));
                }
                Effect::Failed { id, failure } => {
                    self.outcomes.entry(id.0).or_default().push(Outcome::Failed(failure));
                }
                Effect::Event { watchers, kind, path, .. } => {
                    self.events.extend(watchers.into_iter().map(|watch| (watch.0, kind, path.clone())));
                }
                Effect::State(next) => self.states.push((self.now, next.state, next.session)),
                Effect::WatchesEnded(_)
                | Effect::WatchesRemoved(_)
                | Effect::Ended { .. }
                | Effect::SaslToken { .. }
                | Effect::EachServerFailed
                | Effect::ProbeReadWrite { .. } => {}
            }
        }
        self.send();
    }

    fn send(&mut self) {
        let bytes = std::mem::take(&mut self.effects.bytes);
        let mut rest = &bytes[..];
        while let Split::Frame { used, .. } = split(rest, 1 << 30) {
            let at = self.now + self.delay();
            if let Some(link) = &mut self.link {
                link.torn |= self.partitioned;
                let at = link.to_server.back().map_or(at, |(last, _)| at.max(*last));
                if !link.torn {
                    link.to_server.push_back((at, rest[..used].to_vec()));
                }
            }
            rest = &rest[used..];
        }
    }

    fn serve(&mut self, input: server_core::Input<'_>) {
        let mut effects = Vec::new();
        self.server.step(server_now(self.now), input, &mut effects);
        let mut persisted = None;
        for effect in effects {
            match effect {
                server_core::Effect::Persist { seq, .. } => persisted = Some(seq),
                server_core::Effect::Connected { conn, response } => {
                    let mut frame = Vec::new();
                    response.write_frame(&mut frame);
                    self.depart(conn, ToClient::Frame(frame));
                }
                server_core::Effect::Reply { conn, reply } => {
                    let mut frame = Vec::new();
                    reply.write_frame(&mut frame);
                    self.depart(conn, ToClient::Frame(frame));
                }
                server_core::Effect::Notify { conns, zxid, kind, path } => {
                    let mut frame = Vec::new();
                    event::write_frame(&mut frame, zxid, kind, &path);
                    for conn in conns {
                        self.depart(conn, ToClient::Frame(frame.clone()));
                    }
                }
                server_core::Effect::Close { conn, .. } => self.depart(conn, ToClient::Hangup),
                _ => {}
            }
        }
        self.note_sessions();
        if let Some(seq) = persisted {
            self.serve(server_core::Input::Persisted(seq));
        }
    }

    fn depart(&mut self, conn: ConnId, message: ToClient) {
        let at = self.now + self.delay();
        let partitioned = self.partitioned;
        let Some(link) = self.link.as_mut().filter(|link| link.conn == conn) else { return };
        link.torn |= partitioned;
        if !link.torn {
            let at = link.to_client.back().map_or(at, |(last, _)| at.max(*last));
            link.to_client.push_back((at, message));
        }
    }

    fn note_sessions(&mut self) {
        let alive: Vec<SessionId> = self.server.tree().sessions().map(|(session, _)| session).collect();
        for gone in self.alive.iter().filter(|session| !alive.contains(session)) {
            self.expired.insert(*gone, self.now);
        }
        self.alive = alive;
    }
}

fn peer() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

fn at(ms: u64) -> Mono {
    Mono(Duration::from_millis(ms))
}

fn server_now(ms: u64) -> Now {
    Now { mono: server_core::input::Mono(ms), wall_ms: ms as i64, us: 0 }
}
