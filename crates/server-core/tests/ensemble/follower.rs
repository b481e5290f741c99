//! A member that follows, and a client of it.

use crate::member::{Member, SESSION, at, config};
use ostler_proto::{
    connect::ConnectRequest,
    id::{SessionId, Zxid},
    jute::Writer,
    op::Op,
    password::password_of,
    quorum_packet::Packet,
    stat::ExtendedTypes,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_server_core::{ClientRequest, ConnId, Effect, EnsembleConfig, Input};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

pub(crate) const TIMEOUT_MS: i32 = 10_000;
/// Of every request.
pub(crate) const XID: i32 = 1;

/// A follower of a leader that answers for a session at once, as Java's does.
pub(crate) struct Follower {
    pub(crate) member: Member,
    pub(crate) leader: LinkId,
    /// The client's.
    pub(crate) session: SessionId,
}

impl Follower {
    /// The session is there already.
    pub(crate) fn start() -> Follower {
        let mut follower = Follower::start_with(|_| {});
        follower.hears_of(at(2, 1), 0, Txn::CreateSession { timeout_ms: TIMEOUT_MS });
        follower.commits(at(2, 1));
        follower
    }

    /// No session is there yet, and nothing has been proposed in the leader's epoch, which is the second.
    pub(crate) fn start_with(adjust: impl FnOnce(&mut EnsembleConfig)) -> Follower {
        let ensemble = config(&[1, 2, 3], at(1, 0));
        let fresh = Tree::fresh(ExtendedTypes::default());
        let mut member = Member::start_with(&ensemble, None, fresh, 1, adjust);
        let leader = member.follows(&[2, 3], &ensemble, 2);
        member.hears(leader, Packet::Diff(at(0, 0)));
        member.hears_new_leader(leader, 2, &ensemble);
        member.hears(leader, Packet::UpToDate);
        Follower { member, leader, session: SESSION }
    }

    pub(crate) fn hears_of(&mut self, zxid: Zxid, cxid: i32, txn: Txn<'_>) {
        let header = TxnHeader { session: self.session, cxid, zxid, time_ms: 0, code: txn.code() };
        let mut bytes = Vec::new();
        TxnRecord { header, txn, digest: None }.write(&mut bytes);
        self.member.hears_proposal(self.leader, zxid, bytes);
    }

    /// A write of the session, which makes this version.
    pub(crate) fn hears_of_write(&mut self, zxid: Zxid, version: i32) {
        let txn = Txn::SetData { reconfig: false, path: "/".into(), data: None, version };
        self.hears_of(zxid, XID, txn);
    }

    pub(crate) fn commits(&mut self, zxid: Zxid) {
        self.member.hears(self.leader, Packet::Commit(zxid));
    }

    /// The session's client is here from now on.
    pub(crate) fn reconnect(&mut self, conn: u64) -> ConnId {
        let conn = self.ask_for_session(conn);
        self.hears_that_it_lives();
        conn
    }

    pub(crate) fn hears_that_it_lives(&mut self) {
        self.member.hears(self.leader, Packet::Revalidated { session: self.session, valid: true });
    }

    pub(crate) fn ask_for_session(&mut self, conn: u64) -> ConnId {
        let conn = ConnId(conn);
        self.member.step(Input::Accepted { conn, peer: ([127, 0, 0, 1], 5_000).into() });
        self.connects(conn, self.session, Zxid::ZERO);
        conn
    }

    /// A client without a session has one from now on.
    pub(crate) fn connect_for_new_session(&mut self, conn: u64) -> ConnId {
        let conn = ConnId(conn);
        self.member.step(Input::Accepted { conn, peer: ([127, 0, 0, 1], 5_000).into() });
        self.connects(conn, SessionId::NONE, Zxid::ZERO);
        self.session = self.session_of(conn).unwrap_or(SessionId::NONE);
        conn
    }

    pub(crate) fn connects(&mut self, conn: ConnId, session: SessionId, seen: Zxid) {
        let password = password_of(session);
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: seen.to_wire(),
            timeout_ms: TIMEOUT_MS,
            session,
            password: Some(&password),
            read_only: Some(false),
        };
        self.member.step(Input::Connect { conn, request, chance: conn.0 });
    }

    /// The session that a connection was told of.
    pub(crate) fn session_of(&self, conn: ConnId) -> Option<SessionId> {
        self.member.effects.iter().find_map(|effect| match effect {
            Effect::Connected { conn: to, response } if *to == conn => Some(response.session),
            _ => None,
        })
    }

    pub(crate) fn request_read(&mut self, conn: ConnId) {
        let mut body = Vec::new();
        body.string("/");
        body.bool(false);
        self.request(conn, Op::GetData, &body);
    }

    pub(crate) fn request_write(&mut self, conn: ConnId) {
        let mut body = Vec::new();
        body.string("/");
        body.buffer(None);
        body.i32(-1);
        self.request(conn, Op::SetData, &body);
    }

    pub(crate) fn request(&mut self, conn: ConnId, op: Op, body: &[u8]) {
        let mut payload = Vec::new();
        payload.i32(XID);
        payload.i32(op.code());
        payload.extend_from_slice(body);
        let request = ClientRequest::decode(&payload).unwrap();
        self.member.step(Input::Request { conn, request });
    }

    /// At which transactions a connection's requests were answered.
    pub(crate) fn answers(&self, conn: ConnId) -> Vec<Zxid> {
        let answer = |effect: &Effect| match effect {
            Effect::Reply { conn: to, reply } if *to == conn => reply.zxid,
            _ => None,
        };
        self.member.effects.iter().filter_map(answer).collect()
    }

    pub(crate) fn has_closed(&self, conn: ConnId) -> bool {
        self.member
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Close { conn: of, .. } if *of == conn))
    }
}
