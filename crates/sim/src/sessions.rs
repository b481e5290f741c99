//! Checks that no session ends early: the leader lets it live for its timeout after the last sign of life, and a
//! follower reports every sign of life. A packet that arrived while a server was paused counts, even if it is not read
//! yet.

use crate::{client::Intent, network::Caller, world::World};
use ostler_proto::{
    id::{SessionId, Zxid},
    quorum_packet::Packet,
    txn::{Txn, TxnRecord},
};
use ostler_server_core::{ConnId, Input, Record, quorum::MemberMode};
use std::collections::{BTreeMap, BTreeSet};

/// The signs of life of sessions that a server has got since it has its role.
#[derive(Debug, Default)]
pub(crate) struct SignsOfLife {
    /// The begin of the role, by the server's own clock.
    since: u64,
    heard: BTreeMap<SessionId, u64>,
    /// At a leader: timeouts of sessions whose clients have reconnected.
    timeouts: BTreeMap<SessionId, i32>,
    /// At a follower: sessions with a sign of life since its last answer to the leader's ping.
    unsaid: BTreeSet<SessionId>,
    /// Sessions that the operator ends.
    condemned: BTreeSet<SessionId>,
}

impl World {
    fn mono_of(&self, id: i64) -> u64 {
        self.time_of(id).mono.0
    }

    /// Notes that a server has a new role.
    pub(crate) fn new_role(&mut self, id: i64) {
        let since = self.mono_of(id);
        self.node(id).signs = SignsOfLife { since, ..SignsOfLife::default() };
    }

    fn heard_of(&mut self, id: i64, session: SessionId) {
        let now = self.mono_of(id);
        self.node(id).signs.heard.insert(session, now);
    }

    /// Notes a request on a client's connection.
    pub(crate) fn client_spoke(&mut self, id: i64, conn: ConnId) {
        let of = &self.net.conns[&conn];
        let Caller::Client(client) = of.caller else { return };
        let client = &self.clients[client];
        let Some(session) = client.session.filter(|_| client.conn == Some(conn) && client.open) else {
            return;
        };
        let ends = client.sent.iter().any(|sent| sent.intent == Intent::Close);
        if of.closing || of.gone || ends {
            return;
        }
        self.heard_of(id, session);
        if self.reference.has_session(session, Zxid(u64::MAX)) {
            self.node(id).signs.unsaid.insert(session);
        }
    }

    /// Notes the signs of life in a learner's packet to its leader.
    pub(crate) fn learner_spoke(&mut self, id: i64, packet: &Packet<'_>) {
        if self.mode(id) != Some(MemberMode::Leader) {
            return;
        }
        match packet {
            Packet::Ping { touched: Some(touched), .. } => {
                touched.iter().for_each(|(session, _)| self.heard_of(id, *session));
            }
            Packet::Request { session, .. } => self.heard_of(id, *session),
            Packet::Revalidate { session, timeout_ms } => self.session_is_back(id, *session, *timeout_ms),
            _ => {}
        }
    }

    /// Notes at a leader that a client has reconnected, here or at a learner. From now on the session has the timeout
    /// that the client gets in the handshake.
    pub(crate) fn session_is_back(&mut self, id: i64, session: SessionId, timeout_ms: i32) {
        if self.mode(id) == Some(MemberMode::Leader) {
            self.heard_of(id, session);
            self.node(id).signs.timeouts.insert(session, timeout_ms);
        }
    }

    /// Checks a follower's answer to the leader's ping: it must name all sessions with a sign of life.
    pub(crate) fn follower_answers(&mut self, id: i64, packet: &Packet<'_>) {
        let Packet::Ping { touched: Some(touched), .. } = packet else { return };
        let said: BTreeSet<SessionId> = touched.iter().map(|(session, _)| *session).collect();
        let ended = &self.reference.ended;
        let signs = &self.nodes[&id].signs;
        let missing =
            signs.unsaid.iter().find(|session| !said.contains(session) && !ended.contains_key(session));
        assert!(missing.is_none(), "[session early] {id} does not tell its leader of {missing:?}");
        self.node(id).signs.unsaid.clear();
    }

    /// An operator ends a session at a server.
    pub(crate) fn condemn(&mut self, id: i64, session: SessionId) {
        self.condemned.insert(session);
        self.node(id).signs.condemned.insert(session);
        self.step(id, Input::ExpireSession(session));
    }

    /// Whether bytes have waited unread on a session's connection to a server since before this moment.
    fn has_unread(&self, id: i64, session: SessionId) -> bool {
        let open = self.clients.iter().filter(|client| client.session == Some(session) && client.open);
        let mut conns = open.filter_map(|client| self.net.conns.get(&client.conn?));
        conns.any(|of| of.member.0 == id && !of.closing && !of.gone && self.waits_to_be_read(of.up))
    }

    /// Checks a leader's proposal: a session that it ends must not have had a sign of life within its timeout.
    pub(crate) fn check_session_end(&mut self, id: i64, record: &Record) {
        let Ok(record) = TxnRecord::read(&record.0) else { return };
        let session = record.header.session;
        match record.txn {
            Txn::CreateSession { .. } => {
                self.heard_of(id, session);
                // A client that came back before its local session was made global was told that the session is unknown.
                self.node(id).signs.timeouts.remove(&session);
            }
            Txn::CloseSession(_) if record.header.cxid == 0 => {
                let (now, signs) = (self.mono_of(id), &self.nodes[&id].signs);
                let last = signs.heard.get(&session).copied().unwrap_or(0).max(signs.since);
                let known = signs.timeouts.get(&session).or(self.reference.model.sessions.get(&session));
                let Some(timeout_ms) = known else { return };
                let early = now < last + *timeout_ms as u64 && !signs.condemned.contains(&session);
                assert!(
                    !early,
                    "[session early] {id} ends {session}, of {timeout_ms} ms, {} ms after its last sign",
                    now - last
                );
                let unread = self.has_unread(id, session) && !signs.condemned.contains(&session);
                assert!(
                    !unread,
                    "[session early] {id} ends {session} and has not read a packet of its client"
                );
            }
            _ => {}
        }
    }
}
