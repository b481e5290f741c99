//! One member with a disk and a clock that the test moves, and clients that speak bytes to it.
//!
//! Every step is checked for what must hold always: the server's own invariants, no answer or event ahead
//! of the disk, replies in the order of the requests, and the digest that was predicted.

use crate::{
    disk::{self, Disk},
    sight::Sight,
    wire::WireRequest,
};
use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    error::ErrorCode,
    id::{SessionId, Xid, Zxid},
    op::Op,
    password::password_of,
    reply::{Body, Reply},
    stat::ExtendedTypes,
};
use ostler_server_core::{
    ClientRequest, ConnId, CoreConfig, Effect, Input, Now, Record, Server, audit::AuditRecord, input::Mono,
};
use ostler_tree::{FrozenTree, Tree};
use std::collections::{BTreeMap, VecDeque};

/// A client on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) conn: ConnId,
    pub(crate) session: SessionId,
}

/// The client's end of a connection.
#[derive(Debug, Default)]
struct End {
    last_xid: i32,
    /// Requests sent; `true` for those that are answered out of order.
    unanswered: VecDeque<(Xid, bool)>,
    closed: bool,
}

pub(crate) struct Member {
    pub(crate) config: CoreConfig,
    pub(crate) server: Server,
    pub(crate) now: Now,
    pub(crate) disk: Disk,
    /// The disk as earlier runs left it.
    history: Vec<Record>,
    ends: BTreeMap<ConnId, End>,
    last_conn: u64,
    /// Drawn so far.
    chance: u64,
    /// All that went out to clients, in order.
    pub(crate) sights: Vec<(ConnId, Sight)>,
    /// The most steps of work that one input took since somebody looked.
    pub(crate) costliest: u64,
    /// Snapshots asked for.
    pub(crate) snapshots: Vec<FrozenTree>,
    /// Records for the audit log.
    pub(crate) audited: Vec<AuditRecord>,
    /// Tokens for the mechanism of SASL.
    pub(crate) tokens: Vec<(ConnId, Xid, Vec<u8>)>,
}

/// The session timeout of clients in tests where it does not matter.
pub(crate) const TIMEOUT_MS: i32 = 10_000;
const START: Now = Now { mono: Mono(1_000_000), wall_ms: 1_700_000_000_000, us: 0 };

impl Member {
    pub(crate) fn new() -> Member {
        Member::with(CoreConfig::default())
    }

    pub(crate) fn with(config: CoreConfig) -> Member {
        let tree = Tree::fresh(config.types);
        Member::over(config, tree)
    }

    /// One that starts with this tree.
    pub(crate) fn over(config: CoreConfig, tree: Tree) -> Member {
        let last = tree.last_processed();
        let server = Server::new(config.clone(), tree, 0, START);
        Member {
            config,
            server,
            now: START,
            disk: Disk::new(last),
            history: Vec::new(),
            ends: BTreeMap::new(),
            last_conn: 0,
            chance: 0,
            sights: Vec::new(),
            costliest: 0,
            snapshots: Vec::new(),
            audited: Vec::new(),
            tokens: Vec::new(),
        }
    }

    /// With TTL nodes.
    pub(crate) fn with_ttls(config: CoreConfig) -> Member {
        Member::with(CoreConfig { types: ExtendedTypes { enabled: true, emulate_353: false }, ..config })
    }

    pub(crate) fn step(&mut self, input: Input<'_>) {
        let mut effects = Vec::new();
        let before = self.server.work_done();
        self.server.step(self.now, input, &mut effects);
        self.costliest = self.costliest.max(self.server.work_done() - before);
        for effect in effects {
            self.carry_out(effect);
        }
        self.server.invariants();
        assert_eq!(self.server.tree().digest_mismatches(), 0, "the tree is what prepare predicted");
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Connected { conn, response } => self.show(conn, Sight::Connected(response)),
            Effect::Reply { conn, reply } => {
                self.count_answer(conn, reply.xid);
                self.show(conn, Sight::Reply(reply));
            }
            Effect::Notify { conns, zxid, kind, path } => {
                for conn in conns {
                    self.show(conn, Sight::Event { zxid, kind, path: path.to_string() });
                }
            }
            Effect::Close { conn, reason } => {
                if let Some(end) = self.ends.get_mut(&conn) {
                    end.closed = true;
                }
                self.show(conn, Sight::Closed(reason));
            }
            Effect::Persist { seq, op } => self.disk.push(seq, op),
            Effect::Snapshot(frozen) => self.snapshots.push(*frozen),
            Effect::Audit(record) => self.audited.push(*record),
            Effect::SaslToken { conn, xid, token } => self.tokens.push((conn, xid, token)),
            other => panic!("a standalone server has nobody to {other:?}"),
        }
    }

    fn show(&mut self, conn: ConnId, sight: Sight) {
        let zxid = match &sight {
            Sight::Reply(Reply { zxid, .. }) | Sight::Event { zxid, .. } => *zxid,
            Sight::Connected(_) | Sight::Closed(_) => None,
        };
        let durable = self.disk.durable();
        assert!(zxid <= Some(durable), "{sight:?} went out when the disk was at {durable}");
        self.sights.push((conn, sight));
    }

    fn count_answer(&mut self, conn: ConnId, xid: Xid) {
        let Some(end) = self.ends.get_mut(&conn) else { return };
        let outside = end.unanswered.iter().position(|(sent, at_once)| *sent == xid && *at_once);
        let next = outside.or_else(|| end.unanswered.iter().position(|(_, at_once)| !at_once));
        let answered = next.and_then(|at| end.unanswered.remove(at)).map(|(sent, _)| sent);
        assert_eq!(answered, Some(xid), "replies come in the order of the requests");
    }

    /// A new connection.
    pub(crate) fn dial(&mut self) -> ConnId {
        self.last_conn += 1;
        let conn = ConnId(self.last_conn);
        self.ends.insert(conn, End::default());
        self.step(Input::Accepted { conn, peer: ([10, 0, 0, 1], 40_000).into() });
        conn
    }

    pub(crate) fn shake_hands(&mut self, conn: ConnId, timeout_ms: i32, session: SessionId, password: &[u8]) {
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms,
            session,
            password: Some(password),
            read_only: Some(false),
        };
        let mut frame = Vec::new();
        request.write_frame(&mut frame);
        let request = ConnectRequest::read(&frame[4..]).unwrap();
        self.shake_hands_as(conn, request);
    }

    pub(crate) fn shake_hands_as(&mut self, conn: ConnId, request: ConnectRequest<'_>) {
        // Each odd multiplier meets every number once.
        self.chance = self.chance.wrapping_add(1);
        let chance = self.chance.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.step(Input::Connect { conn, request, chance });
    }

    /// A client with a new session, which is on disk.
    pub(crate) fn join(&mut self) -> Client {
        self.join_for(TIMEOUT_MS)
    }

    pub(crate) fn join_for(&mut self, timeout_ms: i32) -> Client {
        let conn = self.dial();
        self.shake_hands(conn, timeout_ms, SessionId::NONE, &[0; 16]);
        self.flush();
        let response = self.connected(conn).expect("a new session is granted");
        Client { conn, session: response.session }
    }

    /// The client comes back on another connection.
    pub(crate) fn rejoin(&mut self, client: Client, timeout_ms: i32) -> Client {
        let conn = self.dial();
        self.shake_hands(conn, timeout_ms, client.session, &password_of(client.session));
        let response = self.connected(conn).expect("a session that is alive can come back");
        assert_eq!((response.session, response.password), (client.session, password_of(client.session)));
        Client { conn, ..client }
    }

    /// Takes the answer to a handshake.
    pub(crate) fn connected(&mut self, conn: ConnId) -> Option<ConnectResponse> {
        let at =
            self.sights.iter().position(|(to, seen)| *to == conn && matches!(seen, Sight::Connected(_)))?;
        let (_, Sight::Connected(response)) = self.sights.remove(at) else { return None };
        (response.timeout_ms != 0).then_some(response)
    }

    pub(crate) fn hang_up(&mut self, client: Client) {
        self.ends.remove(&client.conn);
        self.step(Input::Disconnected { conn: client.conn });
    }

    /// Sends a request; pings, auth packets and setWatches have numbers of their own.
    pub(crate) fn send(&mut self, conn: impl Into<ConnId>, ask: impl Into<WireRequest>) -> Xid {
        let (conn, ask) = (conn.into(), ask.into());
        let end = self.ends.get_mut(&conn).expect("nobody sends on a connection that is gone");
        let op = Op::from_code(ask.code);
        let xid = match op {
            Some(Op::Ping) => Xid::PING,
            Some(Op::Auth) => Xid::AUTH,
            Some(Op::SetWatches2) => Xid::SET_WATCHES,
            _ => {
                end.last_xid += 1;
                Xid(end.last_xid)
            }
        };
        end.unanswered.push_back((xid, matches!(op, Some(Op::Auth | Op::Sasl))));
        let payload = ask.payload(xid);
        let request = ClientRequest::decode(&payload).unwrap();
        self.step(Input::Request { conn, request });
        xid
    }

    /// The disk does this number of acts.
    pub(crate) fn disk_does(&mut self, acts: usize) {
        if acts > 0 && self.disk.waiting() > 0 {
            let seq = self.disk.advance(acts);
            self.step(Input::Persisted(seq));
        }
    }

    /// The disk does all that was asked of it, and what comes of that.
    pub(crate) fn flush(&mut self) {
        for _ in 0..1000 {
            self.go_on();
            if self.disk.waiting() == 0 {
                return;
            }
            self.disk_does(usize::MAX);
        }
        panic!("the member never stops writing");
    }

    /// The member does what it has left for later.
    pub(crate) fn go_on(&mut self) {
        for _ in 0..100_000 {
            if !self.server.has_backlog() {
                return;
            }
            self.step(Input::Deadline);
        }
        panic!("the member is never done");
    }

    /// The most steps of work that one input took since this was last asked.
    pub(crate) fn take_costliest(&mut self) -> u64 {
        std::mem::take(&mut self.costliest)
    }

    /// Time passes; the member is woken when it asks to be.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = Mono(self.now.mono.0 + ms);
        for _ in 0..100_000 {
            let deadline = self.server.next_deadline();
            if deadline > end {
                self.set_time(end);
                return;
            }
            self.set_time(deadline.max(self.now.mono));
            self.step(Input::Deadline);
            self.go_on();
            assert!(self.server.next_deadline() > self.now.mono, "a deadline that was met is over");
        }
        panic!("the member wants to be woken without end");
    }

    /// Time passes while the process does not run.
    pub(crate) fn pause(&mut self, ms: u64) {
        self.set_time(Mono(self.now.mono.0 + ms));
    }

    fn set_time(&mut self, mono: Mono) {
        self.now.wall_ms += (mono.0 - self.now.mono.0) as i64;
        self.now.mono = mono;
    }

    /// The process dies and starts again. `unreported` acts had reached the disk without its knowing.
    pub(crate) fn crash(&mut self, unreported: usize) {
        self.history.extend(self.disk.left_by_crash(unreported));
        let tree = disk::replay(Tree::fresh(self.config.types), &self.history);
        self.start_with(tree);
    }

    /// The same, with a snapshot found on disk.
    pub(crate) fn crash_with_snapshot(&mut self, unreported: usize, snapshot: &FrozenTree) {
        self.history.extend(self.disk.left_by_crash(unreported));
        let tree = disk::replay(disk::restore(snapshot, self.config.types), &self.history);
        self.start_with(tree);
    }

    fn start_with(&mut self, tree: Tree) {
        self.set_time(Mono(self.now.mono.0 + 1000));
        self.disk = Disk::new(tree.last_processed());
        self.server = Server::new(self.config.clone(), tree, 0, self.now);
        self.ends.clear();
    }

    /// Sends a request, lets the disk work, and takes its reply out of what has been seen.
    pub(crate) fn ask(&mut self, client: Client, ask: impl Into<WireRequest>) -> Result<Body, ErrorCode> {
        let xid = self.send(client, ask);
        self.flush();
        self.reply(client, xid).result
    }

    /// Takes a reply that has arrived.
    pub(crate) fn reply(&mut self, client: Client, xid: Xid) -> Reply {
        let is_it = |(to, seen): &(ConnId, Sight)| {
            *to == client.conn && matches!(seen, Sight::Reply(reply) if reply.xid == xid)
        };
        let at = self.sights.iter().position(is_it).expect("the request has been answered");
        let (_, Sight::Reply(reply)) = self.sights.remove(at) else { panic!("it is a reply") };
        reply
    }

    /// The replies and events of a client since the last call, a line each.
    pub(crate) fn seen(&mut self, conn: impl Into<ConnId>) -> Vec<String> {
        let conn = conn.into();
        let mine = self.sights.extract_if(.., |(to, _)| *to == conn);
        mine.map(|(_, sight)| sight.line()).collect()
    }

    /// Forgets what has been seen so far.
    pub(crate) fn forget(&mut self) {
        self.sights.clear();
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.server.tree().get(path).is_some()
    }

    pub(crate) fn data(&self, path: &str) -> Option<String> {
        let node = self.server.tree().get(path)?;
        node.data.as_ref().map(|data| String::from_utf8_lossy(data).into_owned())
    }

    pub(crate) fn applied(&self) -> Zxid {
        self.server.tree().last_processed()
    }

    /// Everything in the tree, as text.
    pub(crate) fn contents(&self) -> BTreeMap<String, String> {
        disk::contents(&self.server.tree().freeze())
    }
}

impl From<Client> for ConnId {
    fn from(client: Client) -> ConnId {
        client.conn
    }
}
