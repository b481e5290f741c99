//! Fuzzes whole connections: bytes become frames, and frames become steps of a server with a simulated disk.
//!
//! The input is a script of what clients, disk and clock do. The server's invariants must hold after every step. At the
//! end its log must give the same tree again.

mod client;
mod crafted;

use crate::{
    restored::{TYPES, check_tree, restored_from},
    script::Script,
};
use client::Client;
use ostler_proto::{frame, id::Zxid, txn::TxnRecord};
use ostler_server_core::{
    ClientRequest, ConnId, CoreConfig, Effect, Input, Now, PersistOp, Record, Server, input::Mono,
    sessions::Scope,
};
use ostler_tree::Tree;
use ostler_zab::PersistSeq;
use std::{collections::VecDeque, net::SocketAddr};

const CLIENTS: usize = 4;
const FRAME_MAX: usize = 4096;
const STEPS_MAX: usize = 3000;
const START_WALL_MS: i64 = 1_700_000_000_000;

/// Runs the script.
pub fn check(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut world = World::new(config(script.byte()));
    while !script.is_over() && world.steps < STEPS_MAX {
        world.act(&mut script);
    }
    world.settle();
}

fn config(choices: u8) -> CoreConfig {
    let on = |bit: u8| choices >> bit & 1 != 0;
    CoreConfig {
        types: TYPES,
        enforce_quota: on(0),
        skip_acl: on(1),
        close_session_paths: !on(2),
        enforced_auth_schemes: if on(3) { vec!["digest".into()] } else { Vec::new() },
        container_max_never_used_ms: if on(4) { 1000 } else { 0 },
        // SHA-1 of "super:fuzz".
        super_digest: on(5).then(|| "super:PpJYQIh8CZiU7MLBLuTllgjebgA=".into()),
        snapshot_txns: if on(6) { 4 } else { 1000 },
        reaper_interval_ms: 5000,
        ..CoreConfig::default()
    }
}

struct World {
    server: Server,
    now: Now,
    effects: Vec<Effect>,
    clients: [Option<Client>; CLIENTS],
    next_conn: u64,
    /// Operations that the disk has not done yet.
    pending: VecDeque<(PersistSeq, Option<Record>)>,
    log: Vec<Record>,
    last_seq: PersistSeq,
    last_zxid: Zxid,
    snapshot_running: bool,
    steps: usize,
}

impl World {
    fn new(config: CoreConfig) -> Self {
        let now = Now { mono: Mono(1000), wall_ms: START_WALL_MS, us: 0 };
        World {
            server: Server::new(config, Tree::fresh(TYPES), 0, now),
            now,
            effects: Vec::new(),
            clients: [const { None }; CLIENTS],
            next_conn: 1,
            pending: VecDeque::new(),
            log: Vec::new(),
            last_seq: PersistSeq(0),
            last_zxid: Zxid::ZERO,
            snapshot_running: false,
            steps: 0,
        }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        let choice = script.byte();
        let who = usize::from(choice >> 4) % CLIENTS;
        match choice & 15 {
            0 => self.receive_raw(who, script),
            1 => self.receive_framed(who, script),
            2 => self.shake_hands(who, script),
            3 => self.come_back(who, script),
            4 => self.persist(1 + usize::from(choice >> 4)),
            5 => self.pass_time(u64::from(script.short()) * 16),
            6 => self.disconnect(who),
            7 if choice & 0x80 == 0 => self.finish_snapshot(),
            7 => self.meddle(who, choice & 0x40 == 0),
            _ => self.receive_crafted(who, choice, script),
        }
    }

    /// Receives arbitrary bytes, in pieces of any size.
    fn receive_raw(&mut self, who: usize, script: &mut Script<'_>) {
        let size = usize::from(script.byte());
        let bytes = script.take(size).to_vec();
        self.receive(who, &bytes);
    }

    /// Receives a frame with an arbitrary payload.
    fn receive_framed(&mut self, who: usize, script: &mut Script<'_>) {
        let size = usize::from(script.byte());
        let payload = script.take(size);
        let frame = [&(payload.len() as u32).to_be_bytes(), payload].concat();
        self.receive(who, &frame);
    }

    fn receive_crafted(&mut self, who: usize, choice: u8, script: &mut Script<'_>) {
        if !self.clients[who].as_ref().is_some_and(|client| client.shaken_hands) {
            self.receive(who, &crafted::handshake(4000, None));
        }
        let Some(client) = &mut self.clients[who] else { return };
        client.next_xid += 1;
        let frame = crafted::request(client.next_xid, choice & 7, script);
        self.receive(who, &frame);
    }

    fn shake_hands(&mut self, who: usize, script: &mut Script<'_>) {
        let timeout_ms = i32::from(script.short() as i16) * 4;
        self.receive(who, &crafted::handshake(timeout_ms, None));
    }

    /// A client takes over the session that another client has or had.
    fn come_back(&mut self, who: usize, script: &mut Script<'_>) {
        let other = usize::from(script.byte()) % CLIENTS;
        let session = self.clients[other].as_ref().and_then(|client| client.session);
        self.disconnect(who);
        self.receive(who, &crafted::handshake(8000, session));
    }

    /// Does with bytes what a connection's task does.
    fn receive(&mut self, who: usize, bytes: &[u8]) {
        self.connect(who);
        let Some(client) = &mut self.clients[who] else { return };
        client.partial.extend_from_slice(bytes);
        while self.steps < STEPS_MAX {
            let Some(client) = &mut self.clients[who] else { return };
            let partial = std::mem::take(&mut client.partial);
            let used = match frame::split(&partial, FRAME_MAX) {
                frame::Split::Frame { payload, used } => match self.receive_payload(who, payload) {
                    true => used,
                    false => return self.disconnect(who),
                },
                frame::Split::Incomplete { .. } => {
                    if let Some(client) = &mut self.clients[who] {
                        client.partial = partial;
                    }
                    return;
                }
                frame::Split::BadLength(_) => return self.disconnect(who),
            };
            let Some(client) = &mut self.clients[who] else { return };
            client.partial = partial[used..].to_vec();
        }
    }

    /// Handles a frame's payload. False if the server must close the connection because of it.
    fn receive_payload(&mut self, who: usize, payload: &[u8]) -> bool {
        let Some(client) = &mut self.clients[who] else { return false };
        let conn = client.conn;
        if !client.shaken_hands {
            let Ok(request) = ostler_proto::connect::ConnectRequest::read(payload) else { return false };
            client.shaken_hands = true;
            self.step(Input::Connect { conn, request, chance: conn.0 });
            return true;
        }
        let Ok(request) = ClientRequest::decode(payload) else { return false };
        client.expect(&request);
        self.step(Input::Request { conn, request });
        true
    }

    fn connect(&mut self, who: usize) {
        if self.clients[who].is_some() {
            return;
        }
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        self.clients[who] = Some(Client::new(conn));
        self.step(Input::Accepted { conn, peer: SocketAddr::from(([127, 0, 0, who as u8], 1)) });
    }

    fn disconnect(&mut self, who: usize) {
        if let Some(client) = self.clients[who].take() {
            self.step(Input::Disconnected { conn: client.conn });
        }
    }

    /// An operator ends the client's session or its connection.
    fn meddle(&mut self, who: usize, session: bool) {
        let Some(client) = &self.clients[who] else { return };
        let conn = client.conn;
        let of_conn = self.server.connections().into_iter().find(|report| report.conn == conn);
        match of_conn.and_then(|report| report.session) {
            Some((id, _)) if session => self.step(Input::ExpireSession(id)),
            _ => self.step(Input::CloseConnection(conn)),
        }
    }

    /// The disk does the given number of operations.
    fn persist(&mut self, count: usize) {
        let count = count.min(self.pending.len());
        let mut reached = None;
        for (seq, record) in self.pending.drain(..count) {
            reached = Some(seq);
            self.log.extend(record);
        }
        if let Some(seq) = reached {
            self.step(Input::Persisted(seq));
        }
    }

    fn pass_time(&mut self, ms: u64) {
        self.now.mono.0 += ms;
        self.now.wall_ms += ms as i64;
        if self.server.next_deadline() <= self.now.mono {
            self.step(Input::Deadline);
            while self.server.has_backlog() {
                self.step(Input::Deadline);
            }
            assert!(self.server.next_deadline() > self.now.mono, "the same deadline comes again and again");
        }
    }

    fn finish_snapshot(&mut self) {
        if std::mem::take(&mut self.snapshot_running) {
            self.step(Input::SnapshotDone);
        }
    }

    fn step(&mut self, input: Input<'_>) {
        self.steps += 1;
        self.server.step(self.now, input, &mut self.effects);
        self.server.invariants();
        for effect in std::mem::take(&mut self.effects) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Connected { conn, response } => self.client(conn).connected(&response),
            Effect::Reply { conn, reply } => self.client(conn).answered(&reply),
            Effect::Notify { conns, path, .. } => {
                let mut seen = conns.clone();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), conns.len(), "a connection gets two events of {path}");
                for conn in conns {
                    self.client(conn);
                }
            }
            Effect::Close { conn, .. } => {
                self.client(conn);
            }
            Effect::Persist { seq, op } => self.keep(seq, op),
            Effect::Snapshot(frozen) => {
                assert!(!std::mem::replace(&mut self.snapshot_running, true), "two snapshots at once");
                assert!(frozen.zxid <= self.server.tree().last_processed());
                assert_eq!(restored_from(&frozen).digest(), frozen.digest);
            }
            other => panic!("a standalone server has no peer for {other:?}"),
        }
    }

    /// The client of a connection. An effect for a closed connection is an error.
    fn client(&mut self, conn: ConnId) -> &mut Client {
        let client = self.clients.iter_mut().flatten().find(|client| client.conn == conn);
        client.unwrap_or_else(|| panic!("an effect for {conn:?}, which is gone"))
    }

    fn keep(&mut self, seq: PersistSeq, op: PersistOp) {
        assert_eq!(seq.0, self.last_seq.0 + 1, "numbers of disk operations have no gaps");
        self.last_seq = seq;
        let record = match op {
            PersistOp::RollLog => None,
            PersistOp::Append { zxid, record } => {
                assert_eq!(zxid, self.last_zxid.next(), "zxids have no gaps");
                self.last_zxid = zxid;
                Some(record)
            }
            other => panic!("{other:?} is for members of an ensemble"),
        };
        self.pending.push_back((seq, record));
    }

    /// Lets the disk do everything. Then the log must give the server's tree again.
    fn settle(&mut self) {
        while !self.pending.is_empty() {
            self.persist(usize::MAX);
        }
        let tree = self.server.tree();
        assert_eq!(tree.last_processed(), self.last_zxid);
        assert_eq!(tree.digest_mismatches(), 0, "a transaction was applied differently than it was prepared");
        check_tree(tree);

        let mut replayed = Tree::fresh(TYPES);
        for record in &self.log {
            let record = TxnRecord::read(&record.0).expect("the server encoded the record");
            replayed.apply(&record, &mut Vec::new());
        }
        let summary = |tree: &Tree| {
            let sessions: Vec<_> = tree.sessions().collect();
            let special =
                (tree.ephemeral_count(), tree.containers_after("").count(), tree.ttls_after("").count());
            (tree.digest(), tree.node_count(), tree.data_size(), sessions, special)
        };
        assert_eq!(summary(tree), summary(&replayed));
        assert_eq!(replayed.digest_mismatches(), 0);
        // Reports must not panic either.
        self.server.summary();
        self.server.connections();
        self.server.session_buckets(Scope::Global);
        for (conn, _) in self.server.watchers() {
            self.server.watched_after(conn, None, usize::MAX);
        }
        self.server.ephemerals();
    }
}
