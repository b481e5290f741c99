//! Session thieves: callers that ask for the sessions of others, and guess the passwords. No other client may notice.

use crate::{
    chance::Chance,
    network::{Caller, Parcel},
    world::{Event, World},
};
use ostler_proto::{connect::ConnectRequest, id::SessionId, password::password_of, quorum_packet::Packet};
use ostler_server_core::{CloseReason, ConnId, Effect, Input, PeerMessage};

/// The shortest and the longest pause between two attempts.
const PAUSE_MS: (u64, u64) = (20, 500);

impl World {
    /// Random bits for the session id that a handshake on this connection may need. They do not come from the run's own
    /// random numbers, so those do not depend on whether the handshake opens a session or returns to one.
    pub(crate) fn bits_for(&self, conn: ConnId) -> u64 {
        let mut chance = Chance::new(conn.0 ^ (self.shape.history as u64) << 40);
        (0..4).fold(0, |bits, _| bits << 16 | chance.below(1 << 16))
    }

    /// Makes an attempt at a random member, and schedules the next one.
    pub(crate) fn session_thief_acts(&mut self) {
        let pause = self.chance.between(PAUSE_MS.0, PAUSE_MS.1);
        self.after(pause, Event::SessionThief);
        let mut known: Vec<SessionId> = self.clients.iter().filter_map(|client| client.session).collect();
        known.extend(self.reference.model.sessions.keys());
        if known.is_empty() {
            return;
        }
        let (session, ids) = (self.chance.pick(&known), self.ids());
        let member = self.chance.pick(&ids);
        self.session_thief_calls(member, session);
    }

    /// A session thief asks a member for a session, with a wrong password.
    pub(crate) fn session_thief_calls(&mut self, member: i64, session: SessionId) {
        let Some((conn, up)) = self.open(Caller::SessionThief, member) else { return };
        let right = password_of(session);
        let mut almost = right;
        almost[self.chance.below(16) as usize] ^= 1 << self.chance.below(8);
        let neighbours = password_of(SessionId(session.0.wrapping_add(1)));
        // If passwords are made with a secret, the password that is derived from the id alone is wrong, too.
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
        self.trace(|| format!("a session thief asks {member} for {session}, {conn:?}"));
        self.count("session thief");
        self.send(up, Parcel::Connect(frame[4..].into()));
    }

    /// The connection that an input concerns, if it belongs to a session thief.
    pub(crate) fn session_thief_of(&self, input: &Input<'_>) -> Option<ConnId> {
        let (Input::Connect { conn, .. } | Input::Disconnected { conn }) = input else { return None };
        self.net.conns.get(conn).filter(|of| matches!(of.caller, Caller::SessionThief)).map(|_| *conn)
    }

    /// Asserts that a member's effects concern no connection but the session thief's, and that no leader is asked.
    pub(crate) fn assert_nobody_else_notices(&self, id: i64, thief: ConnId, effects: &[Effect]) {
        for effect in effects {
            let harm = match effect {
                Effect::Connected { conn, response } => *conn != thief || response.timeout_ms != 0,
                // An epoch may end in the same step, and with it all connections.
                Effect::Close { conn, reason } => *conn != thief && *reason != CloseReason::NotServing,
                Effect::Reply { conn, .. } => *conn != thief,
                Effect::ToPeer { message: PeerMessage::Packet(packet), .. } => {
                    matches!(packet, Packet::Revalidate { .. } | Packet::Request { .. })
                }
                _ => false,
            };
            assert!(!harm, "[session thief] {id} does {effect:?} for {thief:?}, which has a wrong password");
        }
    }
}
