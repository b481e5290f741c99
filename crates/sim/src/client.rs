//! Simulated clients. They keep their sessions, send random requests without waiting for replies, lose their
//! connections and reconnect to other servers.

use crate::{
    acl_checks::{ExpectedAcl, IDENTITIES},
    chance::Chance,
    logins::Login,
    marks::Mark,
    network::{Caller, Conn, Parcel, Route},
    watching::{ClientWatches, WatchKind, WatchMode},
    wire::{self, WireRequest},
    world::{Event, World},
};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    connect::{ConnectRequest, Password},
    error::ErrorCode,
    event::EventType,
    id::{SessionId, Xid, Zxid},
    op::Op,
    password::password_of,
};
use ostler_server_core::{ConnId, Input};
use std::collections::VecDeque;

/// The purpose of a client's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Intent {
    Write(String),
    /// A write whose data is unique.
    MarkedWrite(String, Mark),
    Get(String, bool),
    Exists(String, bool),
    Children(String, bool),
    Acl(String),
    AddWatch(String, WatchMode),
    RemoveWatches {
        path: String,
        kind: WatchKind,
        /// The client drops the watches even if no server answers.
        local: bool,
    },
    CheckWatches(String, WatchKind),
    /// The client adds an identity to its connection.
    Auth,
    /// A token of the client's login.
    Sasl,
    Sync,
    Ping,
    Close,
    /// The client sets its watches again on a new connection.
    SetWatches,
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) struct SentRequest {
    pub(crate) xid: Xid,
    pub(crate) intent: Intent,
    /// The last write that had been acknowledged to any client when this was sent.
    pub(crate) floor: Zxid,
    /// The ACLs that must be logged for it.
    pub(crate) given: Vec<ExpectedAcl>,
}

impl SentRequest {
    /// Whether the server must refuse one of its ACLs.
    pub(crate) fn has_invalid_acl(&self) -> bool {
        self.given.iter().any(ExpectedAcl::is_invalid)
    }
}

/// A simulated client.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) session: Option<SessionId>,
    /// The password from the last handshake.
    pub(crate) password: Password,
    pub(crate) timeout_ms: u64,
    /// The client accepts a server that has no leader (read-only mode).
    pub(crate) reader: bool,
    /// The session was given by a server without a leader, and is not valid at any other server.
    pub(crate) has_read_only_session: bool,
    /// The session has requested an ephemeral znode.
    pub(crate) asked_for_ephemeral: bool,
    pub(crate) conn: Option<ConnId>,
    /// The handshake is done.
    pub(crate) open: bool,
    pub(crate) last_xid: i32,
    /// The client begins its xids anew on each connection, as kazoo does.
    pub(crate) restarts_xids: bool,
    /// The number of writes so far, for the next [`Mark`].
    pub(crate) mark_count: u64,
    /// The highest zxid of all replies to this session.
    pub(crate) seen: Zxid,
    /// The zxid of the last watch event on this connection.
    pub(crate) last_event: Zxid,
    /// Requests without an answer, in the order in which they were sent.
    pub(crate) sent: VecDeque<SentRequest>,
    /// Writes of this session whose connection was lost before the answer.
    pub(crate) unsettled: Vec<Mark>,
    /// The watches that the client has set.
    pub(crate) watching: ClientWatches,
    /// The client sets persistent watches.
    pub(crate) uses_persistent_watches: bool,
    /// The number of [`IDENTITIES`] that the client adds to each connection.
    pub(crate) identities: usize,
    /// The client's certificate, in runs that have certificates.
    pub(crate) certificate: Option<usize>,
    /// The user as whom the client logs in, in runs that have logins.
    pub(crate) sasl_user: Option<usize>,
    /// The login on the present connection.
    pub(crate) login: Login,
    /// Events that came on a new connection for changes before it.
    pub(crate) caught_up: Vec<(String, EventType)>,
    /// When the last packet from the server arrived.
    pub(crate) heard: u64,
    /// When the client last sent a request.
    pub(crate) spoke: u64,
    /// The client does nothing before this time.
    pub(crate) away_until: u64,
    /// The client sends no random request before this time.
    pub(crate) thinks_until: u64,
    /// The client never reconnects.
    pub(crate) retired: bool,
    /// A test decides what the client does.
    pub(crate) driven: bool,
    /// The last reply, for a test that waits for it.
    pub(crate) outcome: Option<ostler_proto::reply::Reply>,
}

impl Client {
    /// The n-th client that sends random requests.
    pub(crate) fn nth(n: usize, chance: &mut Chance) -> Client {
        Client {
            reader: n % 2 == 1,
            restarts_xids: n.is_multiple_of(3),
            uses_persistent_watches: chance.one_in(2),
            identities: chance.below(IDENTITIES.len() as u64 + 1) as usize,
            ..Client::default()
        }
    }
}

const PATHS: [&str; 9] = ["/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/c/x", "/d", "/a/x/1"];
/// Where clients set persistent watches.
const WATCHED: [&str; 6] = ["/", "/a", "/a/x", "/b", "/c", "/d"];
const LASTING_MAX: usize = 4;
const UNANSWERED_MAX: usize = 8;

impl World {
    /// A client's regular step: it connects, pings, or sends random requests. Schedules the next step.
    pub(crate) fn client_acts(&mut self, client: usize) {
        let pause = self.chance.between(5, 60);
        self.after(pause, Event::Client(client));
        let of = &self.clients[client];
        if of.retired || of.away_until > self.now {
            return;
        }
        // In a lull no client opens a session: that would be a transaction.
        let nobody_writes = self.idle_until > self.now;
        let lull = self.quiet_until > self.now || (nobody_writes && of.session.is_none());
        if lull && of.conn.is_none() {
            return;
        }
        if of.conn.is_none() {
            if !of.driven || self.quiet {
                let ids = self.ids();
                let member = self.chance.pick(&ids);
                self.connect(client, member);
            }
            return;
        }
        let (silent, idle) = (self.now - of.heard, self.now - of.spoke);
        if silent > (of.timeout_ms * 2 / 3).max(500) {
            return self.hang_up_client(client);
        }
        // A client says nothing else until it has logged in.
        if !of.open || of.login != Login::Done {
            return;
        }
        if idle > of.timeout_ms / 4 {
            return self.ask(client, Intent::Ping, wire::ping());
        }
        let closing = of.sent.iter().any(|sent| sent.intent == Intent::Close);
        if closing || of.driven || self.quiet || lull || of.sent.len() >= UNANSWERED_MAX {
            return;
        }
        if self.clients[client].thinks_until > self.now {
            return;
        }
        self.clients[client].thinks_until = self.now + self.chance.below(self.shape.pace_ms);
        if nobody_writes {
            let path = self.chance.pick(&PATHS);
            return self.ask(client, Intent::Get(path.into(), false), wire::get(path));
        }
        if self.shape.slow_readers && self.chance.one_in(40) {
            return self.read_slowly(client);
        }
        match self.chance.below(200) {
            0 => self.hang_up_client(client),
            1 => {
                self.trace(|| format!("client {client} goes away"));
                let timeout_ms = self.clients[client].timeout_ms;
                let away = self.chance.below(timeout_ms * 2);
                self.clients[client].away_until = self.now + away;
                if self.chance.one_in(2) {
                    self.hang_up_client(client);
                }
            }
            2 => self.ask(client, Intent::Close, wire::close_session()),
            3..=5 => {
                // Connects to another server while the old connection stays open.
                let ids = self.ids();
                let member = self.chance.pick(&ids);
                self.forget_connection(client);
                self.connect(client, member);
            }
            _ => {
                let many = if self.chance.one_in(10) { 5 } else { 1 };
                for _ in 0..many {
                    let (intent, ask) = self.some_intent(client);
                    self.ask(client, intent, ask);
                }
            }
        }
    }

    /// A client sends many requests and reads nothing for a while.
    fn read_slowly(&mut self, client: usize) {
        let (longest, conn) = (self.clients[client].timeout_ms / 2, self.clients[client].conn);
        let until = self.now + self.chance.below(longest);
        if let Some(lane) = conn.map(|conn| self.net.conns[&conn].down) {
            self.net.lanes.get_mut(&lane).unwrap().held_until = until;
        }
        while self.clients[client].sent.len() < UNANSWERED_MAX {
            let (intent, ask) = self.some_intent(client);
            self.ask(client, intent, ask);
        }
    }

    fn some_intent(&mut self, client: usize) -> (Intent, WireRequest) {
        if self.clients[client].uses_persistent_watches && self.chance.one_in(10) {
            return self.some_watch_intent(client);
        }
        let path = self.chance.pick(&PATHS);
        let watch = self.chance.one_in(3) && self.clients[client].watching.once.len() < 6;
        let of = &mut self.clients[client];
        of.mark_count += 1;
        let mark = Mark { client, count: of.mark_count };
        let mut data = mark.to_string().into_bytes();
        if self.shape.large_bytes > 0 && self.chance.one_in(12) {
            data.resize(self.shape.large_bytes, b' ');
        }
        let data = &*data;
        let version = if self.chance.one_in(3) { self.chance.below(4) as i32 } else { -1 };
        let write = |ask: WireRequest| (Intent::MarkedWrite(path.into(), mark), ask);
        match self.chance.below(18) {
            0 => write(wire::create(path).data(data).acl(&self.some_acl()).into()),
            1..=2 => write(wire::create(path).data(data).into()),
            3 => write(wire::create(path).data(data).with_stat().into()),
            4 if self.chance.one_in(3) => {
                self.clients[client].asked_for_ephemeral = true;
                write(wire::multi(&[
                    wire::set(path, data),
                    wire::create("/d/e-").ephemeral().sequential().into(),
                ]))
            }
            4 => {
                self.clients[client].asked_for_ephemeral = true;
                write(wire::create(&format!("/e{client}")).data(data).ephemeral().into())
            }
            5 => write(wire::create("/d/n-").data(data).sequential().into()),
            6 => {
                self.clients[client].asked_for_ephemeral = true;
                write(wire::create("/b/e-").data(data).ephemeral().sequential().with_stat().into())
            }
            7 => (Intent::Write(path.into()), wire::delete_at(path, version)),
            8 => write(wire::multi(&[
                wire::set(path, data),
                wire::create("/d/m-").sequential().into(),
                wire::create(path).into(),
            ])),
            9 => write(wire::multi(&[wire::set(path, data), wire::create("/d/m-").sequential().into()])),
            10..=11 => write(wire::set_at(path, Some(data), version)),
            12 => (
                Intent::Exists(path.into(), watch),
                if watch { wire::exists_and_watch(path) } else { wire::exists(path) },
            ),
            13 => (
                Intent::Children(path.into(), watch),
                if watch { wire::children_and_watch(path) } else { wire::children(path) },
            ),
            14 => (Intent::Sync, wire::sync(path)),
            15 if self.chance.one_in(2) => {
                (Intent::Write(path.into()), wire::set_acl(path, &self.some_acl(), version))
            }
            15 => (Intent::Acl(path.into()), wire::get_acl(path)),
            _ => (
                Intent::Get(path.into(), watch),
                if watch { wire::get_and_watch(path) } else { wire::get(path) },
            ),
        }
    }

    /// A request to add, remove or check a persistent watch.
    fn some_watch_intent(&mut self, client: usize) -> (Intent, WireRequest) {
        let path = self.chance.pick(&WATCHED);
        let lasting = &self.clients[client].watching.lasting;
        let act = self.chance.below(8);
        if act < 4 && lasting.len() < LASTING_MAX {
            let mode = self.chance.pick(&[WatchMode::Persistent, WatchMode::Recursive]);
            let ask = wire::watch_always(path, mode == WatchMode::Recursive);
            return (Intent::AddWatch(path.into(), mode), ask);
        }
        // Mostly the path of an existing watch.
        let one = lasting.iter().nth(self.chance.below(LASTING_MAX as u64) as usize);
        let path = one.map_or(path.to_owned(), |(path, _)| path.clone());
        let kind = self.chance.pick(&WatchKind::ALL);
        if act < 6 {
            let (local, ask) = (self.chance.one_in(2), wire::remove_watches(&path, kind as i32));
            return (Intent::RemoveWatches { path, kind, local }, ask);
        }
        let ask = wire::check_watches(&path, kind as i32);
        (Intent::CheckWatches(path, kind), ask)
    }

    /// A random ACL that allows everything to everybody, and differs from the default.
    fn some_acl(&mut self) -> Vec<Acl> {
        let user = format!("user{}:x", self.chance.below(6));
        let own = Acl { perms: Perms::READ, id: Id::new("digest", user) };
        let proven = Acl { perms: Perms::READ, id: Id::new("auth", "") };
        let world = Acl::world(Perms::ALL);
        match self.chance.below(6) {
            0 => vec![world.clone(), own, world],
            1 => vec![own, world],
            2 => vec![proven.clone(), world, own, proven],
            _ => vec![world, own],
        }
    }

    /// Sends a request on the client's connection, if there is one.
    pub(crate) fn ask(&mut self, client: usize, intent: Intent, ask: WireRequest) {
        let (now, floor) = (self.now, self.acknowledged);
        self.trace(|| format!("client {client} asks {}: {intent:?}", self.clients[client].last_xid + 1));
        let of = &mut self.clients[client];
        let Some(conn) = of.conn else { return };
        let xid = match Op::from_code(ask.code) {
            Some(Op::Ping) => Xid::PING,
            Some(Op::SetWatches | Op::SetWatches2) => Xid::SET_WATCHES,
            Some(Op::Auth) => Xid::AUTH,
            _ => {
                of.last_xid += 1;
                Xid(of.last_xid)
            }
        };
        of.spoke = now;
        let identities = of.ids();
        let given: Vec<ExpectedAcl> =
            ask.acls.iter().map(|(path, acl)| ExpectedAcl::new(path, acl, &identities)).collect();
        if let Some(session) = of.session {
            self.reference.asked.ask(session, xid.0, &given);
        }
        of.sent.push_back(SentRequest { xid, intent, floor, given });
        let payload = ask.payload(xid);
        let lane = self.net.conns[&conn].up;
        self.send(lane, Parcel::Request(payload));
    }

    /// Opens a connection to a member: its id, and the lane towards the member. `None` if the member is down.
    pub(crate) fn open(&mut self, caller: Caller, member: i64) -> Option<(ConnId, u64)> {
        let (now, certificate) = (self.time_of(member), self.certificate_of(caller));
        let server = self.nodes.get_mut(&member)?.server.as_mut()?;
        let conn = ConnId(self.net.number());
        // The kernel accepts the connection even if the process is paused.
        server.step(now, Input::Accepted { conn, peer: ([10, 0, 0, 1], 40_000).into() }, &mut Vec::new());
        if let Some(id) = certificate {
            server.step(now, Input::Identified { conn, ids: vec![id] }, &mut Vec::new());
        }
        let process = (member, self.nodes[&member].life);
        let up = self.net.lane(Route::ToServer(conn), None, Some(process));
        let down = self.net.lane(Route::ToClient(conn), Some(process), None);
        let of = Conn {
            caller,
            member: process,
            up,
            down,
            shown: None,
            returns: false,
            closing: false,
            sealed: false,
            gone: false,
        };
        self.net.conns.insert(conn, of);
        Some((conn, up))
    }

    /// Connects to a member. Nothing happens if the member is down.
    pub(crate) fn connect(&mut self, client: usize, member: i64) {
        let Some((conn, up)) = self.open(Caller::Client(client), member) else { return };
        let asked_ms = self.chance.between(8, 30) as i32 * 100;
        let of = &mut self.clients[client];
        if std::mem::take(&mut of.has_read_only_session) {
            // `seen` stays: the next server must not be older.
            (of.session, of.last_xid) = (None, 0);
        } else if of.session.is_none() {
            (of.seen, of.last_xid) = (Zxid::ZERO, 0);
        }
        if of.session.is_none() {
            (of.timeout_ms, of.asked_for_ephemeral) = (asked_ms as u64, false);
            of.watching.clear();
            of.unsettled.clear();
        } else if self.shape.timeouts_change && asked_ms % 400 == 0 {
            of.timeout_ms = asked_ms as u64;
        }
        if of.restarts_xids {
            of.last_xid = 0;
        }
        (of.conn, of.open, of.heard, of.spoke) = (Some(conn), false, self.now, self.now);
        of.login = Login::Done;
        let session = of.session.unwrap_or(SessionId::NONE);
        let password = if of.session.is_some() { of.password } else { [0; 16] };
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: of.seen.to_wire(),
            timeout_ms: of.timeout_ms as i32,
            session,
            password: Some(&password),
            read_only: Some(of.reader),
        };
        let mut frame = Vec::new();
        request.write_frame(&mut frame);
        self.trace(|| format!("client {client} connects to {member} as {session:?}, {conn:?}"));
        self.send(up, Parcel::Connect(frame[4..].into()));
    }

    pub(crate) fn hang_up_client(&mut self, client: usize) {
        if let Some(conn) = self.clients[client].conn {
            let up = self.net.conns[&conn].up;
            self.send(up, Parcel::End);
        }
        self.forget_connection(client);
    }

    /// Drops the connection. Requests without an answer may or may not happen.
    pub(crate) fn forget_connection(&mut self, client: usize) {
        let of = &mut self.clients[client];
        (of.conn, of.open) = (None, false);
        for sent in of.sent.drain(..) {
            if let Intent::MarkedWrite(_, mark) = sent.intent {
                of.unsettled.push(mark);
            }
            if let Intent::RemoveWatches { path, kind, local: true } = &sent.intent {
                of.watching.remove(path, *kind);
            }
        }
        of.watching.loses_connection();
        of.last_event = Zxid::ZERO;
        of.caught_up.clear();
    }

    /// Sends the first requests on a new connection of a session: its identities, and its watches.
    fn introduce(&mut self, client: usize) {
        for (proof, _) in &IDENTITIES[..self.clients[client].identities] {
            self.ask(client, Intent::Auth, wire::auth("digest", proof.as_bytes()));
        }
        let of = &self.clients[client];
        if of.watching.is_empty() {
            return;
        }
        let [data, exist, child] = [
            of.watching.paths(|watch| !watch.of_children && !watch.for_creation),
            of.watching.paths(|watch| watch.for_creation),
            of.watching.paths(|watch| watch.of_children),
        ]
        .map(|paths| paths.into_iter().collect::<Vec<_>>());
        let [persistent, recursive] =
            [WatchMode::Persistent, WatchMode::Recursive].map(|mode| of.watching.lasting_paths(mode));
        let watched = wire::WatchedPaths {
            data: &data,
            exist: &exist,
            child: &child,
            persistent: &persistent,
            recursive: &recursive,
        };
        // Without persistent watches clients use the older request, which every server knows.
        let set = if of.watching.lasting.is_empty() { wire::set_one_shot_watches } else { wire::set_watches };
        let ask = set(of.seen.to_wire(), &watched);
        self.ask(client, Intent::SetWatches, ask);
    }

    /// A parcel has arrived on a client connection.
    pub(crate) fn client_gets(&mut self, conn: ConnId, parcel: Parcel) {
        let client = match self.net.conns[&conn].caller {
            Caller::Client(client) => client,
            Caller::Contender(contender) => return self.contender_gets(contender, conn, parcel),
            Caller::SessionThief => return,
        };
        if self.clients[client].conn != Some(conn) {
            return;
        }
        self.clients[client].heard = self.now;
        match parcel {
            Parcel::Connected(response) if response.timeout_ms == 0 => {
                self.count("session refused");
                let session = self.clients[client].session.take();
                assert!(session.is_some(), "a new session is not refused");
                self.forget_connection(client);
            }
            Parcel::Connected(response) => {
                let of = &mut self.clients[client];
                let before = of.session.replace(response.session);
                assert!(before.is_none_or(|before| before == response.session));
                let is_derived = response.password == password_of(response.session);
                assert!(
                    is_derived != response.session.has_secret(),
                    "[session thief] a password that everybody knows"
                );
                of.password = response.password;
                of.timeout_ms = response.timeout_ms as u64;
                of.open = true;
                if of.restarts_xids {
                    self.reference.restarts_xids(response.session);
                }
                let read_only = response.read_only == Some(true);
                assert!(
                    of.reader || !read_only,
                    "a client that does not accept read-only mode gets a server without a leader"
                );
                of.has_read_only_session = read_only && before.is_none();
                self.count(if before.is_some() { "session back" } else { "session" });
                self.trace(|| format!("client {client} has {:?}", response.session));
                self.begin_login(client);
                if self.clients[client].login == Login::Done {
                    self.introduce(client);
                }
            }
            Parcel::Reply(reply) if !self.clients[client].open => {
                assert_eq!((reply.xid, &reply.result), (Xid(0), &Err(ErrorCode::NotReadOnly)));
                self.count("no session without a leader");
            }
            Parcel::Reply(reply) if self.clients[client].login != Login::Done => {
                if self.login_answered(client, &reply) {
                    self.introduce(client);
                }
            }
            Parcel::Reply(reply) => self.client_answered(client, &reply),
            Parcel::Event { zxid, kind, path } => self.client_notified(client, zxid, kind, &path),
            Parcel::End => self.forget_connection(client),
            parcel => panic!("a client gets {parcel:?}"),
        }
    }
}
