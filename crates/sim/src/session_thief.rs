//! Strangers: they name sessions of others, and try to guess a password. Nobody may notice.

use crate::{
    chance::Chance,
    network::{Caller, Parcel},
    world::{Event, World},
};
use ostler_proto::{connect::ConnectRequest, id::SessionId, password::password_of, quorum_packet::Packet};
use ostler_server_core::{CloseReason, ConnId, Effect, Input, PeerMessage};

/// How long they wait between two attempts.
const PAUSE_MS: (u64, u64) = (20, 500);

impl World {
    /// For the id of a session that a handshake on this connection may ask for. Not of the run's own chance, which goes
    /// the same way whether somebody asks for a session or comes back with one.
    pub(crate) fn bits_for(&self, conn: ConnId) -> u64 {
        let mut chance = Chance::new(conn.0 ^ (self.shape.history as u64) << 40);
        (0..4).fold(0, |bits, _| bits << 16 | chance.below(1 << 16))
    }

    /// Once in a while, at any member.
    pub(crate) fn session_thief_acts(&mut self) {
        let pause = self.chance.between(PAUSE_MS.0, PAUSE_MS.1);
        self.after(pause, Event::SessionThief);
        let mut known: Vec<SessionId> = self.clients.iter().filter_map(|client| client.session).collect();
        known.extend(self.truth.model.sessions.keys());
        if known.is_empty() {
            return;
        }
        let (session, ids) = (self.chance.pick(&known), self.ids());
        let member = self.chance.pick(&ids);
        self.session_thief_calls(member, session);
    }

    /// A stranger names a session at a member, with a password that is not its own.
    pub(crate) fn session_thief_calls(&mut self, member: i64, session: SessionId) {
        let Some((conn, up)) = self.open(Caller::SessionThief, member) else { return };
        let right = password_of(session);
        let mut almost = right;
        almost[self.chance.below(16) as usize] ^= 1 << self.chance.below(8);
        let neighbours = password_of(SessionId(session.0.wrapping_add(1)));
        // What follows from the id is no password where there is a secret.
        let derived = if session.has_secret() { &right[..] } else { &right[..15] };
        let wrong: [Option<&[u8]>; 5] =
            [None, Some(&[0; 16]), Some(&almost), Some(derived), Some(&neighbours)];
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms: self.chance.between(100, 20_000) as i32,
            session,
            password: self.chance.pick(&wrong),
            read_only: Some(self.chance.one_in(2)),
        };
        let mut frame = Vec::new();
        request.write_frame(&mut frame);
        self.trace(|| format!("a stranger names {session} at {member}, {conn:?}"));
        self.count("stranger");
        self.send(up, Parcel::Connect(frame[4..].into()));
    }

    /// The stranger's connection that an input is about, if it is one of a stranger.
    pub(crate) fn session_thief_of(&self, input: &Input<'_>) -> Option<ConnId> {
        let (Input::Connect { conn, .. } | Input::Disconnected { conn }) = input else { return None };
        self.net.conns.get(conn).filter(|of| matches!(of.caller, Caller::SessionThief)).map(|_| *conn)
    }

    /// What a member does about a stranger concerns nobody but the stranger.
    pub(crate) fn assert_nobody_else_notices(&self, id: i64, stranger: ConnId, effects: &[Effect]) {
        for effect in effects {
            let harm = match effect {
                Effect::Connected { conn, response } => *conn != stranger || response.timeout_ms != 0,
                // An epoch may end in the same step, and with it all connections.
                Effect::Close { conn, reason } => *conn != stranger && *reason != CloseReason::NotServing,
                Effect::Reply { conn, .. } => *conn != stranger,
                Effect::ToPeer { message: PeerMessage::Packet(packet), .. } => {
                    matches!(packet, Packet::Revalidate { .. } | Packet::Request { .. })
                }
                _ => false,
            };
            assert!(!harm, "[stranger] {id} does {effect:?} for {stranger:?}, which has no right password");
        }
    }
}
