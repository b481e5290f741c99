//! The handshake, from a connection to an attached session.

use super::{Granted, Link, PROBE_MIN, Probe, Session};
use crate::{
    effect::{Effect, Effects, Failure},
    input::AttemptId,
    liveness::Liveness,
    sent::{Purpose, Sent, WatchChange},
    state::ConnectionState,
    time::Mono,
};
use alloc::vec::Vec;
use core::time::Duration;
use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    id::SessionId,
};

impl Session {
    pub(super) fn connected(&mut self, now: Mono, attempt: AttemptId, effects: &mut Effects) {
        let Link::Connecting { attempt: current, deadline } = self.link else { return };
        if current != attempt {
            return;
        }
        // A session of a read-only server is unknown to other servers, so it is not named here.
        let known = self.granted.as_ref().filter(|granted| granted.read_write_seen);
        ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: self.seen.to_wire(),
            timeout_ms: i32::try_from(self.config.session_timeout.as_millis()).unwrap_or(i32::MAX),
            session: known.map_or(SessionId::NONE, |granted| granted.id),
            password: Some(known.map_or(&[0; 16], |granted| &granted.password)),
            read_only: Some(self.config.read_only),
        }
        .write_frame(&mut effects.bytes);
        self.link = Link::Handshake { attempt, asked: now, deadline };
    }

    /// The first frame of a connection.
    pub(super) fn handshake_reply(&mut self, now: Mono, asked: Mono, payload: &[u8], effects: &mut Effects) {
        let Link::Handshake { attempt, deadline, .. } = self.link else { return };
        // A read-only server that cannot create a session answers with an error reply instead of a handshake.
        let Ok(response) = ConnectResponse::read(payload) else { return self.drop_link(now, effects) };
        let known = self.granted.as_ref().filter(|granted| granted.read_write_seen).map(|granted| granted.id);
        let Some(timeout) = u32::try_from(response.timeout_ms).ok().filter(|timeout| *timeout > 0) else {
            return match known {
                Some(_) => self.lose_session(now, effects),
                None => self.drop_link(now, effects),
            };
        };
        if known.is_some_and(|known| known != response.session) {
            return self.drop_link(now, effects);
        }
        let timeout = Duration::from_millis(timeout.into());
        let read_only = response.read_only == Some(true);
        let earlier = self.granted.as_ref().filter(|_| known.is_some()).map(|granted| &granted.liveness);
        let proof = earlier.map(Liveness::proof);
        let liveness = Liveness::new(timeout, self.config.tick_time, asked, now, proof);
        let liveness = match earlier.filter(|_| read_only) {
            Some(earlier) => liveness.at_most(earlier.lost_at()),
            None => liveness,
        };
        self.end_replaced(response.session, effects);
        self.granted = Some(Granted {
            id: response.session,
            password: response.password,
            liveness,
            timeout,
            read_write_seen: known.is_some() || !read_only,
        });
        match &self.config.sasl {
            Some(_) => self.begin_sasl(attempt, deadline, read_only, effects),
            None => self.online(now, attempt, read_only, effects),
        }
    }

    /// Ends the watches of a read-only server's session that is replaced by another one. It is never reported as lost.
    fn end_replaced(&mut self, by: SessionId, effects: &mut Effects) {
        let Some(former) = self.granted.as_ref().map(|granted| granted.id).filter(|id| *id != by) else {
            return;
        };
        let ended = self.watches.end(Some(former));
        if !ended.is_empty() {
            effects.push(Effect::WatchesEnded(ended));
        }
    }

    pub(super) fn online(&mut self, now: Mono, attempt: AttemptId, read_only: bool, effects: &mut Effects) {
        let probe = read_only.then(|| Probe { at: now + PROBE_MIN, wait: PROBE_MIN });
        self.link = Link::Online { attempt, since: now, probe };
        self.attached(now, read_only, effects);
    }

    /// Sends everything that waited for a connection: identities, watches, requests.
    fn attached(&mut self, now: Mono, read_only: bool, effects: &mut Effects) {
        let state = match (read_only, self.ever_connected) {
            (true, _) => ConnectionState::ReadOnly,
            (false, true) => ConnectionState::Reconnected,
            (false, false) => ConnectionState::Connected,
        };
        self.ever_connected = true;
        self.set_state(state, effects);
        self.send_identities(effects);
        self.rearm(now, effects);
        let current = self.granted.as_ref().map(|granted| granted.id);
        // Requests of an earlier session fail first, so that their watches are abandoned.
        let (of_others, ours): (Vec<_>, Vec<_>) =
            self.queued_in_order().into_iter().partition(|q| q.bound.is_some() && q.bound != current);
        for queued in of_others {
            self.fail_queued(queued, Failure::SessionChanged, effects);
        }
        for queued in ours {
            let xid = self.next_xid();
            let start = effects.bytes.len();
            effects.bytes.extend_from_slice(&queued.frame);
            effects.bytes[start + 4..start + 8].copy_from_slice(&xid.0.to_be_bytes());
            let taken = queued.watch_change.as_deref().and_then(WatchChange::replaced_entries);
            let purpose = Purpose::Application { id: queued.id, watch_change: queued.watch_change };
            self.sent.push_back(Sent { xid, at: now, writes: queued.writes, purpose });
            if let Some((path, entries)) = taken {
                self.renew(now, &path, entries, effects);
            }
        }
    }

    /// Probes the next server if a probe is due.
    pub(super) fn probe(&mut self, now: Mono, effects: &mut Effects) {
        let Link::Online { probe: Some(probe), .. } = &mut self.link else { return };
        if now < probe.at {
            return;
        }
        *probe = Probe { at: now + probe.wait, wait: super::PROBE_MAX.min(probe.wait * 2) };
        if self.hosts.len() > 1 {
            effects.push(Effect::ProbeReadWrite { host: self.hosts.take() });
        }
    }
}
