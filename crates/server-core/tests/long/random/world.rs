//! A member and its clients in a random run, held against the model at every step.

use super::{
    model::{Answer, Event, Model, Stamp},
    stream::{self, Act, Dice, Intent},
    watchers::Watchers,
};
use crate::{disk, member::Member, sight::Sight};
use ostler_proto::{
    connect::ConnectRequest,
    id::{SessionId, Xid, Zxid},
    password::password_of,
    reply::Body,
    txn::{Txn, TxnRecord},
};
use ostler_server_core::{ConnId, CoreConfig, Input, Record};
use ostler_tree::FrozenTree;
use std::collections::{BTreeMap, VecDeque};

/// A request on its way.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) xid: Xid,
    pub(super) intent: Intent,
    /// For writes, once they are proposed: their place, and what the model answers.
    pub(super) due: Option<(Zxid, Answer)>,
    /// The last proposal at the time when it was sent.
    pub(super) after: Zxid,
    /// A setWatches whose events have begun to come.
    pub(super) begun: bool,
}

/// A connection whose end has not been seen.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) client: usize,
    pub(super) session: Option<SessionId>,
    pub(super) sent: VecDeque<Sent>,
    /// The last proposal when its session came back on it: nothing is answered before that commits.
    pub(super) behind: Zxid,
}

/// The state of a session; times on the wall clock.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) timeout_ms: i64,
    pub(super) touched_ms: i64,
    pub(super) conn: Option<ConnId>,
    pub(super) closing: bool,
    pub(super) expired: bool,
    /// The last zxid that its client was shown.
    pub(super) seen: Zxid,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Slot {
    pub(super) conn: Option<ConnId>,
    pub(super) session: Option<SessionId>,
}

/// The tree after a transaction, and what it tells watchers.
pub(super) struct State {
    pub(super) model: Model,
    pub(super) events: Vec<Event>,
}

pub(super) struct World {
    pub(super) m: Member,
    pub(super) slots: [Slot; stream::CLIENTS],
    pub(super) lines: BTreeMap<ConnId, Line>,
    pub(super) lives: BTreeMap<SessionId, Life>,
    pub(super) watchers: Watchers,
    /// By zxid, from the last one applied on.
    pub(super) states: BTreeMap<Zxid, State>,
    pub(super) applied: Zxid,
    /// Snapshots, and what they must hold.
    pub(super) snapshots: Vec<(FrozenTree, Model)>,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let mut dice = Dice::new(seed ^ 0xc0f1);
        let config = CoreConfig {
            snapshot_txns: if dice.below(4) == 0 { 10 + dice.below(40) } else { 1000 },
            close_session_paths: dice.below(4) > 0,
            digest: dice.below(8) > 0,
            seed,
            ..CoreConfig::default()
        };
        let fresh = State { model: Model::new(), events: Vec::new() };
        World {
            m: Member::with(config),
            slots: Default::default(),
            lines: BTreeMap::new(),
            lives: BTreeMap::new(),
            watchers: Watchers::default(),
            states: [(Zxid::ZERO, fresh)].into(),
            applied: Zxid::ZERO,
            snapshots: Vec::new(),
        }
    }

    pub(super) fn act(&mut self, act: &Act) {
        match *act {
            Act::Join { client, timeout_ms } => self.join(client, timeout_ms),
            Act::Rejoin { client, right_password } => self.rejoin(client, right_password),
            Act::HangUp { client } => self.hang_up(client),
            Act::Send { client, seed } => {
                let intent = stream::intent(seed, self.latest(), self.applied.to_wire());
                self.send(client, intent);
            }
            Act::Close { client } => self.send(client, Intent::Close),
            Act::Disk { acts } => self.m.disk_does(acts),
            Act::Pass { ms } => self.m.pass(ms),
            Act::SnapshotDone => self.m.step(Input::SnapshotDone),
            Act::Crash { unreported, with_snapshot } => return self.crash(unreported, with_snapshot),
        }
        self.absorb();
    }

    /// Everything settles; then the member dies once more.
    pub(super) fn finish(&mut self) {
        self.m.flush();
        self.absorb();
        for (conn, line) in &self.lines {
            assert!(line.sent.is_empty(), "{conn:?} was never answered: {:?}", line.sent);
        }
        self.latest().assert_is(self.m.server.tree());
        // Whatever has been written since they were taken.
        for (frozen, model) in &self.snapshots {
            model.assert_is(&disk::restore(frozen, self.m.config.types));
        }
        self.crash(0, false);
    }

    fn latest(&self) -> &Model {
        &self.states.last_key_value().unwrap().1.model
    }

    fn dial(&mut self, client: usize, session: Option<SessionId>) -> ConnId {
        let conn = self.m.dial();
        let behind = session.map_or(Zxid::ZERO, |_| *self.states.last_key_value().unwrap().0);
        self.lines.insert(conn, Line { client, session, sent: VecDeque::new(), behind });
        self.slots[client].conn = Some(conn);
        conn
    }

    fn shake_hands(&mut self, conn: ConnId, timeout_ms: i32, session: SessionId, password: &[u8]) {
        let seen = self.lives.get(&session).map_or(Zxid::ZERO, |life| life.seen);
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: seen.to_wire(),
            timeout_ms,
            session,
            password: Some(password),
            read_only: Some(false),
        };
        self.m.shake_hands_as(conn, request);
    }

    fn join(&mut self, client: usize, timeout_ms: i32) {
        self.hang_up(client);
        self.slots[client] = Slot::default();
        let conn = self.dial(client, None);
        self.shake_hands(conn, timeout_ms, SessionId::NONE, &[0; 16]);
    }

    fn rejoin(&mut self, client: usize, right_password: bool) {
        let Some(session) = self.slots[client].session else { return };
        let password = if right_password { password_of(session) } else { [1; 16] };
        let conn = self.dial(client, Some(session));
        let welcome = right_password && self.lives.get(&session).is_some_and(|life| !life.closing);
        let timeout_ms = self.lives.get(&session).map_or(5000, |life| life.timeout_ms as i32);
        self.shake_hands(conn, timeout_ms, session, &password);
        let answer = self.m.sights.iter().find_map(|(to, sight)| match sight {
            Sight::Connected(response) if *to == conn => Some(response.timeout_ms),
            _ => None,
        });
        assert_eq!(answer, Some(if welcome { timeout_ms } else { 0 }));
        if welcome {
            self.touch(session);
        }
    }

    fn hang_up(&mut self, client: usize) {
        let Some(conn) = self.slots[client].conn.take() else { return };
        let line = self.lines.remove(&conn);
        self.watchers.leave(conn);
        if let Some(life) = line.and_then(|line| line.session).and_then(|id| self.lives.get_mut(&id))
            && life.conn == Some(conn)
        {
            life.conn = None;
        }
        let session = SessionId::NONE;
        self.m.hang_up(crate::member::Client { conn, session });
    }

    pub(super) fn touch(&mut self, session: SessionId) {
        let now = self.m.now.wall_ms;
        if let Some(life) = self.lives.get_mut(&session).filter(|life| !life.closing) {
            life.touched_ms = now;
        }
    }

    fn send(&mut self, client: usize, intent: Intent) {
        let Some(conn) = self.slots[client].conn else { return self.join(client, 10_000) };
        let ask = intent.ask();
        let after = self.m.disk.last();
        let line = &self.lines[&conn];
        // Nothing is taken from a session that ends. Requests that come before the handshake's answer are held.
        let alive = line.session.is_none_or(|id| self.lives.get(&id).is_some_and(|life| !life.closing))
            && !line.sent.iter().any(|sent| matches!(sent.intent, Intent::Close));
        if let Some(session) = line.session.filter(|session| self.slots[client].session == Some(*session)) {
            self.touch(session);
        }
        let xid = self.m.send(conn, ask);
        if alive {
            let sent = Sent { xid, intent, due: None, after, begun: false };
            self.lines.get_mut(&conn).unwrap().sent.push_back(sent);
        }
    }

    fn crash(&mut self, unreported: usize, with_snapshot: bool) {
        match self.snapshots.last() {
            // A snapshot of an earlier life is good too: the log goes on after it.
            Some((frozen, _)) if with_snapshot => self.m.crash_with_snapshot(unreported, frozen),
            _ => self.m.crash(unreported),
        }
        self.applied = self.m.applied();
        self.states.retain(|zxid, _| *zxid <= self.m.applied());
        let latest = self.latest();
        latest.assert_is(self.m.server.tree());
        let now = self.m.now.wall_ms;
        let life = |(id, timeout_ms): (&SessionId, &i32)| {
            let seen = self.lives.get(id).map_or(Zxid::ZERO, |life| life.seen);
            assert!(seen <= self.applied, "a client has seen what is lost");
            let timeout_ms = i64::from(*timeout_ms);
            (*id, Life { timeout_ms, touched_ms: now, conn: None, closing: false, expired: false, seen })
        };
        self.lives = latest.sessions.iter().map(life).collect();
        self.lines.clear();
        self.watchers.clear();
        self.slots.iter_mut().for_each(|slot| slot.conn = None);
    }

    /// Holds everything that came of the last act against the model.
    fn absorb(&mut self) {
        let last = *self.states.last_key_value().unwrap().0;
        let new = self.m.disk.records().filter(|(zxid, _)| *zxid > last);
        let new: Vec<Record> = new.map(|(_, record)| record.clone()).collect();
        for record in new {
            self.proposed(&TxnRecord::read(&record.0).unwrap());
        }
        let sights = std::mem::take(&mut self.m.sights);
        for (n, (conn, sight)) in sights.iter().enumerate() {
            if self.lines.contains_key(conn) {
                self.seen(*conn, sight, &sights[n + 1..]);
            }
        }
        self.advance(self.m.disk.durable());
        assert_eq!(self.m.applied(), self.applied, "what is on disk is applied");
        self.watchers.assert_nobody_waits();
        self.assert_nobody_waits_for_nothing();
        self.assert_nobody_outlives_its_time();
        for frozen in std::mem::take(&mut self.m.snapshots) {
            let model = self.states[&frozen.zxid].model.clone();
            self.snapshots.push((frozen, model));
        }
        let applied = self.applied;
        self.states.retain(|zxid, _| *zxid >= applied);
    }

    /// A record goes to the disk: the model takes the same step.
    fn proposed(&mut self, record: &TxnRecord<'_>) {
        let header = &record.header;
        let at = Stamp { zxid: header.zxid, time_ms: header.time_ms, session: header.session };
        let (mut model, mut events) = (self.latest().clone(), Vec::new());
        match &record.txn {
            Txn::CreateSession { timeout_ms } => {
                model.open_session(at.session, *timeout_ms);
                self.session_proposed(at, *timeout_ms);
            }
            Txn::CloseSession(_) => {
                model.close_session(at.zxid, at.session, &mut events);
                self.end_proposed(at, header.cxid);
            }
            txn => {
                let sent = self.waiting_write(at.session, header.cxid);
                let Intent::Write(write) = &sent.intent else { panic!("{sent:?} became {txn:?}") };
                let answer = model.write(at, write, &mut events);
                let logged = if let Txn::Error(code) = txn { Some(*code) } else { None };
                assert_eq!(
                    logged,
                    answer.as_ref().err().map(|error| error.code()),
                    "{write:?} became {txn:?}"
                );
                sent.due = Some((at.zxid, answer));
            }
        }
        self.states.insert(at.zxid, State { model, events });
    }

    fn session_proposed(&mut self, at: Stamp, timeout_ms: i32) {
        let newest = self.lines.iter_mut().rev().find(|(_, line)| line.session.is_none());
        let conn = newest.map(|(conn, line)| {
            line.session = Some(at.session);
            *conn
        });
        let timeout_ms = i64::from(timeout_ms);
        let life = Life {
            timeout_ms,
            touched_ms: at.time_ms,
            conn,
            closing: false,
            expired: false,
            seen: Zxid::ZERO,
        };
        self.lives.insert(at.session, life);
    }

    fn end_proposed(&mut self, at: Stamp, cxid: i32) {
        let tick_ms = self.m.config.tick_time_ms as i64;
        let life = self.lives.get_mut(&at.session).unwrap();
        assert!(!life.closing, "a session ends once");
        life.closing = true;
        if cxid == 0 {
            life.expired = true;
            let idle = at.time_ms - life.touched_ms;
            let limits = life.timeout_ms..=life.timeout_ms + tick_ms;
            assert!(limits.contains(&idle), "expired after {idle} ms of {}", life.timeout_ms);
        } else {
            self.waiting_write(at.session, cxid).due = Some((at.zxid, Ok(Body::None)));
        }
    }

    /// The request on the session's connection that has become a proposal.
    fn waiting_write(&mut self, session: SessionId, cxid: i32) -> &mut Sent {
        let conn = self.lives[&session].conn.expect("nobody writes without a connection");
        let line = self.lines.get_mut(&conn).unwrap();
        let is_write = |sent: &&mut Sent| matches!(sent.intent, Intent::Write(_) | Intent::Close);
        let next = line.sent.iter_mut().filter(is_write).find(|sent| sent.due.is_none()).unwrap();
        assert_eq!(next.xid.0, cxid, "writes are proposed in the order sent");
        next
    }

    /// Transactions up to `zxid` have committed.
    pub(super) fn advance(&mut self, zxid: Zxid) {
        assert!(zxid >= self.applied, "{zxid} was shown after {}", self.applied);
        while self.applied < zxid {
            self.applied = self.applied.next();
            for event in &self.states[&self.applied].events {
                self.watchers.fire(self.applied, event);
            }
        }
    }

    /// A request is answered in the step in which nothing is left that it has to wait for.
    fn assert_nobody_waits_for_nothing(&self) {
        let outstanding = self.m.disk.waiting() > 0;
        for line in
            self.lines.values().filter(|line| line.session.is_some_and(|id| self.lives[&id].conn.is_some()))
        {
            let Some(front) = line.sent.front() else { continue };
            let granted = self.slots[line.client].session == line.session;
            let waits = match &front.intent {
                _ if !granted => true,
                Intent::Write(_) | Intent::Close => {
                    front.due.as_ref().is_some_and(|(due, _)| *due > self.applied)
                }
                Intent::Sync(_) => outstanding,
                _ => line.behind > self.applied,
            };
            assert!(waits, "{front:?} waits for nothing at {}", self.applied);
        }
    }

    fn assert_nobody_outlives_its_time(&self) {
        let tick_ms = self.m.config.tick_time_ms as i64;
        for (id, life) in self.lives.iter().filter(|(_, life)| !life.closing) {
            let idle = self.m.now.wall_ms - life.touched_ms;
            assert!(idle <= life.timeout_ms + tick_ms, "session {id} lives {idle} ms of {}", life.timeout_ms);
        }
    }
}
