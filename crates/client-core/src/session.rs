//! The session: its state, and the step that changes it.

mod auth;
mod handshake;
mod moving;
mod online;
mod requests;
mod sasl;

use crate::{
    config::Config,
    effect::{Effect, Effects, Failure},
    hosts::{Hosts, RankedHost},
    input::{AttemptId, Input, RequestId},
    liveness::Liveness,
    rearm,
    sent::{Purpose, Queued, Rearming, Sent, WatchChange},
    state::{ConnectionState, SessionState},
    time::Mono,
    watch_table::WatchTable,
};
use alloc::{
    boxed::Box,
    collections::{BTreeSet, VecDeque},
    vec::Vec,
};
use auth::Identities;
use core::time::Duration;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    connect::Password,
    id::{SessionId, Xid, Zxid},
};
use requests::SubmittedRequest;
use sasl::Exchange;

/// After a connection that lasted this long, the waits between attempts begin with the shortest again.
const SETTLED: Duration = Duration::from_secs(1);
/// The least time for one attempt to connect.
const ATTEMPT_MIN: Duration = Duration::from_millis(200);
/// A time that does not come: no server is known.
const NEVER: Mono = Mono(Duration::MAX);
/// The first and the longest wait between probes for a server that can write.
const PROBE_MIN: Duration = Duration::from_millis(100);
const PROBE_MAX: Duration = Duration::from_secs(60);

/// A client's session, with its connection, requests and watches.
#[derive(Debug)]
pub struct Session {
    config: Config,
    hosts: Hosts,
    link: Link,
    /// The server of the last attempt.
    dialed: usize,
    /// The session waits for answers before it moves to another server. It does so until this time.
    leaving: Option<Mono>,
    attempts: u64,
    /// The session at the servers, if there is one.
    granted: Option<Granted>,
    state: SessionState,
    ever_connected: bool,
    identities: Identities,
    watches: WatchTable,
    queue: VecDeque<Queued>,
    sent: VecDeque<Sent>,
    rearming: VecDeque<Rearming>,
    /// Paths with watches at this connection's server that are not needed, but cannot be removed yet.
    leftover: BTreeSet<Box<str>>,
    closing: Option<RequestId>,
    last_xid: i32,
    /// The newest zxid seen in a reply or an event. Servers that are behind it refuse the client, so that it never sees
    /// an older state.
    seen: Zxid,
    /// The newest zxid seen in a reply while all watches were set. A new connection sets the watches as of this zxid: a
    /// connection can be lost between the events of one change, so the zxid of an event does not count.
    replied: Zxid,
}

/// A session's id and password, by which a connection takes it over. `Debug` leaves out the password.
#[derive(Clone, Copy)]
pub struct Credentials {
    /// The session's id.
    pub session: SessionId,
    /// The password that the server has given it.
    pub password: Password,
}

impl core::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Credentials").field("session", &self.session).finish_non_exhaustive()
    }
}

/// The session as the server has granted it.
#[derive(Debug)]
struct Granted {
    id: SessionId,
    password: Password,
    liveness: Liveness,
    timeout: Duration,
    /// Whether a server that can write knows the session. A session of a read-only server is unknown to all others.
    read_write_seen: bool,
}

#[derive(Debug)]
enum Link {
    /// No connection; the next attempt begins at `until`.
    Waiting { until: Mono },
    /// The caller connects.
    Connecting { attempt: AttemptId, deadline: Mono },
    /// The handshake is sent.
    Handshake { attempt: AttemptId, asked: Mono, deadline: Mono },
    /// The session is attached, and the client authenticates by SASL.
    Sasl { attempt: AttemptId, deadline: Mono, read_only: bool, exchange: Exchange },
    /// Requests are sent.
    Online { attempt: AttemptId, since: Mono, probe: Option<Probe> },
    /// The client is closed. Every further request fails with this.
    Ended(Failure),
}

/// The next probe for a server that can write, at a read-only server.
#[derive(Debug, Clone, Copy)]
struct Probe {
    at: Mono,
    wait: Duration,
}

impl Session {
    /// A session that is not connected. Its first deadline is `now`.
    pub fn new(config: Config, now: Mono) -> Session {
        let rank = |host: usize| config.ranks.get(host).copied().unwrap_or_default();
        let servers = (0..config.hosts).map(|host| RankedHost { host, rank: rank(host) });
        Session {
            hosts: Hosts::new(servers, config.seed),
            link: Link::Waiting { until: if config.hosts == 0 { NEVER } else { now } },
            dialed: 0,
            leaving: None,
            attempts: 0,
            granted: None,
            state: SessionState { state: ConnectionState::Connecting, session: None },
            ever_connected: false,
            identities: Identities::new(&config.auth),
            watches: WatchTable::default(),
            queue: VecDeque::new(),
            sent: VecDeque::new(),
            rearming: VecDeque::new(),
            leftover: BTreeSet::new(),
            closing: None,
            last_xid: 0,
            seen: Zxid::ZERO,
            replied: Zxid::ZERO,
            config,
        }
    }

    /// Handles an input at the time `now`, and adds what the caller has to do to `effects`.
    pub fn step(&mut self, now: Mono, input: Input<'_>, effects: &mut Effects) {
        match input {
            // A reply can prove that the session lives longer than was known, so it is handled before the check.
            Input::Frame { attempt, payload } => {
                self.frame(now, attempt, payload, effects);
                self.lose_if_due(now, effects);
                self.leave_if_answered(now, effects);
                return;
            }
            _ => self.lose_if_due(now, effects),
        }
        let proves = self.proves_holding();
        match input {
            Input::Request { id, session, request, watch } => {
                self.request(now, &SubmittedRequest { id, session, request, watch }, effects);
            }
            Input::Unwatch(watch) => {
                if let Some(unneeded) = self.watches.remove(watch) {
                    self.remove_at_server(now, unneeded, effects);
                }
            }
            Input::Hold(session) => {
                if let Some(liveness) = self.liveness_of(session).filter(|_| proves) {
                    liveness.on_hold(now);
                }
            }
            Input::Release(session) => {
                if let Some(liveness) = self.liveness_of(session) {
                    liveness.on_release();
                }
            }
            Input::AddAuth { id, auth } => self.add_auth(now, id, auth, effects),
            Input::Close(id) => self.close(now, id, effects),
            Input::Connected(attempt) => self.connected(now, attempt, effects),
            Input::SaslStep { attempt, step } => self.sasl_step(now, attempt, step, effects),
            Input::Disconnected(attempt) => {
                if self.attempt() == Some(attempt) {
                    self.drop_link(now, effects);
                }
            }
            Input::FoundReadWrite { host } => {
                if let Link::Online { probe: Some(_), .. } = self.link {
                    self.hosts.prefer(host);
                    self.drop_link(now, effects);
                }
            }
            Input::Servers { servers, on_change } => self.replace_servers(now, servers, on_change),
            Input::MoveOff => self.move_off(now),
            Input::Deadline => self.deadline(now, effects),
            Input::Frame { .. } => {}
        }
        self.leave_if_answered(now, effects);
    }

    /// When to step with [`Input::Deadline`], if no other input comes before; `None` once the client is closed.
    pub fn next_deadline(&self) -> Option<Mono> {
        let of_link = match &self.link {
            Link::Waiting { until } => *until,
            Link::Connecting { deadline, .. }
            | Link::Handshake { deadline, .. }
            | Link::Sasl { deadline, .. } => *deadline,
            Link::Online { probe, .. } => {
                let liveness = &self.granted.as_ref()?.liveness;
                let mut own = liveness.ping_at().min(liveness.silent_at());
                if let Some(proof) = liveness.proof_at().filter(|_| self.closing.is_none()) {
                    own = own.min(proof);
                }
                let leaving = self.leaving.filter(|_| self.closing.is_none());
                let own = leaving.map_or(own, |until| own.min(until));
                probe.map_or(own, |probe| own.min(probe.at))
            }
            Link::Ended(_) => return None,
        };
        let lost = self.granted.as_ref().map(|granted| granted.liveness.lost_at());
        let waiting = self.queue.front().map(|queued| queued.since);
        let unshown = self.identities.waiting_since().filter(|_| !self.is_online());
        let given_up = |since: Option<Mono>| since.map(|since| since + self.config.connection_timeout);
        [lost, given_up(waiting), given_up(unshown)].into_iter().flatten().chain([of_link]).min()
    }

    /// The last reported state.
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// Whether the session must be taken for lost and this was not reported yet. [`Input::Deadline`] reports it.
    pub fn is_overdue(&self, now: Mono) -> bool {
        self.granted.as_ref().is_some_and(|granted| now >= granted.liveness.lost_at())
    }

    /// The session at the time `now`. `None` if there is none, and as soon as a server may have expired it.
    pub fn session_at(&self, now: Mono) -> Option<SessionId> {
        self.granted.as_ref().filter(|_| !self.is_overdue(now)).map(|granted| granted.id)
    }

    /// Whether [`session_at`](Session::session_at) counts only answers that need a quorum, because something is held by
    /// this session ([`Input::Hold`]). False until the first write is answered, if the last one is too long ago.
    pub fn is_proven(&self, session: SessionId) -> bool {
        let of_session = self.granted.as_ref().filter(|granted| granted.id == session);
        of_session.is_some_and(|granted| granted.liveness.is_proven() || !self.proves_holding())
    }

    fn proves_holding(&self) -> bool {
        self.config.prove_holding && !planted::is(Bug::PingsProve)
    }

    fn liveness_of(&mut self, session: SessionId) -> Option<&mut Liveness> {
        self.granted.as_mut().filter(|granted| granted.id == session).map(|granted| &mut granted.liveness)
    }

    /// The failure of every further request, if the client is closed.
    pub fn failure(&self) -> Option<Failure> {
        match self.link {
            Link::Ended(failure) => Some(failure),
            _ => None,
        }
    }

    /// The session timeout that the server has granted.
    pub fn timeout(&self) -> Option<Duration> {
        self.granted.as_ref().map(|granted| granted.timeout)
    }

    /// By which another connection can take over the session. `None` without one, or if only a read-only server knows it.
    pub fn credentials(&self) -> Option<Credentials> {
        let granted = self.granted.as_ref().filter(|granted| granted.read_write_seen)?;
        Some(Credentials { session: granted.id, password: granted.password })
    }

    /// The zxid of the newest change that this client has seen.
    pub fn last_zxid(&self) -> Zxid {
        self.seen
    }

    /// The number of registered watches.
    pub fn watchers(&self) -> usize {
        self.watches.len()
    }

    fn attempt(&self) -> Option<AttemptId> {
        match self.link {
            Link::Connecting { attempt, .. }
            | Link::Handshake { attempt, .. }
            | Link::Sasl { attempt, .. }
            | Link::Online { attempt, .. } => Some(attempt),
            Link::Waiting { .. } | Link::Ended(_) => None,
        }
    }

    fn is_online(&self) -> bool {
        matches!(self.link, Link::Online { .. })
    }

    fn set_state(&mut self, state: ConnectionState, effects: &mut Effects) {
        let session = self.granted.as_ref().map(|granted| granted.id);
        let next = SessionState { state, session: session.or(self.state.session) };
        if next != self.state {
            self.state = next;
            effects.push(Effect::State(next));
        }
    }

    fn deadline(&mut self, now: Mono, effects: &mut Effects) {
        match &self.link {
            Link::Waiting { until } if now >= *until => self.dial(now, effects),
            Link::Connecting { deadline, .. }
            | Link::Handshake { deadline, .. }
            | Link::Sasl { deadline, .. }
                if now >= *deadline =>
            {
                self.drop_link(now, effects);
            }
            Link::Online { .. } => self.online_deadline(now, effects),
            _ => {}
        }
        let limit = self.config.connection_timeout;
        while self.queue.front().is_some_and(|queued| now >= queued.since + limit) {
            if let Some(queued) = self.queue.pop_front() {
                self.fail_queued(queued, Failure::NotConnected, effects);
            }
        }
        if !self.is_online() && self.identities.waiting_since().is_some_and(|since| now >= since + limit) {
            for id in self.identities.give_up(now - limit) {
                effects.push(Effect::Failed { id, failure: Failure::NotConnected });
            }
        }
    }

    /// Asks for a connection to the next server.
    fn dial(&mut self, now: Mono, effects: &mut Effects) {
        self.attempts += 1;
        let attempt = AttemptId(self.attempts);
        let timeout = self.timeout().unwrap_or(self.config.session_timeout);
        // If the first of two servers accepts the connection and never answers, there must be time for the second before
        // the session is lost, and before waiting requests time out. ZooKeeper's client gives a single server all of
        // the session's time.
        let all = timeout.min(self.config.connection_timeout);
        let deadline = now + ATTEMPT_MIN.max(all / self.hosts.len().max(2) as u32);
        self.link = Link::Connecting { attempt, deadline };
        self.dialed = self.hosts.take();
        effects.bytes.clear();
        effects.push(Effect::Connect { attempt, host: self.dialed });
    }

    /// The attempt has failed, or the connection is lost or given up.
    fn drop_link(&mut self, now: Mono, effects: &mut Effects) {
        let Some(attempt) = self.attempt() else { return };
        let was_online = match self.link {
            Link::Online { since, .. } => {
                if now.since(since) >= SETTLED {
                    self.hosts.settled(self.dialed);
                }
                self.identities.on_disconnected(now);
                true
            }
            _ => false,
        };
        effects.bytes.clear();
        effects.push(Effect::Hangup(attempt));
        self.link = Link::Waiting { until: now + self.hosts.wait() };
        self.leaving = None;
        if let Some(granted) = &mut self.granted {
            granted.liveness.on_disconnected();
        }
        self.fail_sent(effects);
        if self.closing.is_some() {
            return self.end(Failure::Closed, effects);
        }
        if was_online {
            self.set_state(ConnectionState::Suspended, effects);
        }
        if self.hosts.is_round_over() {
            effects.push(Effect::EachServerFailed);
        }
    }

    /// Fails all requests that were sent on the lost connection. The server has removed its watches.
    fn fail_sent(&mut self, effects: &mut Effects) {
        self.rearming.clear();
        self.leftover.clear();
        for sent in core::mem::take(&mut self.sent) {
            if let Purpose::Application { id, watch_change } = sent.purpose {
                if let Some(WatchChange::Registering(registering)) = watch_change.as_deref() {
                    self.watches.abandon(&registering.registration);
                }
                effects.push(Effect::Failed { id, failure: Failure::ConnectionLoss });
            }
        }
    }

    fn fail_queued(&mut self, queued: Queued, failure: Failure, effects: &mut Effects) {
        if let Some(WatchChange::Registering(registering)) = queued.watch_change.as_deref() {
            self.watches.abandon(&registering.registration);
        }
        effects.push(Effect::Failed { id: queued.id, failure });
    }

    fn lose_if_due(&mut self, now: Mono, effects: &mut Effects) {
        if self.granted.as_ref().is_some_and(|granted| now >= granted.liveness.lost_at()) {
            self.lose_session(now, effects);
        }
    }

    /// The session is lost: the server has said so, or may have expired it.
    fn lose_session(&mut self, now: Mono, effects: &mut Effects) {
        // An attempt before its handshake can go on and request a new session.
        if !matches!(self.link, Link::Connecting { .. }) {
            self.drop_link(now, effects);
        }
        let Some(lost) = self.granted.as_ref().map(|granted| granted.id) else { return };
        self.set_state(ConnectionState::Lost, effects);
        self.granted = None;
        for queued in core::mem::take(&mut self.queue) {
            self.fail_queued(queued, Failure::SessionExpired, effects);
        }
        for id in self.identities.give_up_all() {
            effects.push(Effect::Failed { id, failure: Failure::SessionExpired });
        }
        if matches!(self.link, Link::Ended(_)) {
            return;
        }
        if !self.config.new_session_after_loss {
            return self.end(Failure::SessionExpired, effects);
        }
        let ended = self.watches.end(Some(lost));
        if !ended.is_empty() {
            effects.push(Effect::WatchesEnded(ended));
        }
        if let Link::Waiting { until } = &mut self.link {
            *until = now;
        }
    }

    /// The server of the connection that is established.
    pub fn server(&self) -> Option<usize> {
        self.is_online().then_some(self.dialed)
    }

    /// Closes the client. Further requests fail with `failure`.
    fn end(&mut self, failure: Failure, effects: &mut Effects) {
        if matches!(self.link, Link::Ended(_)) {
            return;
        }
        if let Some(attempt) = self.attempt() {
            effects.bytes.clear();
            effects.push(Effect::Hangup(attempt));
        }
        self.link = Link::Ended(failure);
        self.fail_sent(effects);
        for queued in core::mem::take(&mut self.queue) {
            self.fail_queued(queued, failure, effects);
        }
        for id in self.identities.give_up_all() {
            effects.push(Effect::Failed { id, failure });
        }
        let ended = self.watches.end(None);
        if !ended.is_empty() {
            effects.push(Effect::WatchesEnded(ended));
        }
        if let Some(id) = self.closing.take() {
            effects.push(Effect::Reply { id, asked: Mono::START, zxid: None, error: 0 });
        }
        let session = self.granted.take().map(|granted| granted.id);
        self.set_state(ConnectionState::Closed, effects);
        effects.push(Effect::Ended { session });
    }

    fn close(&mut self, now: Mono, id: RequestId, effects: &mut Effects) {
        if matches!(self.link, Link::Ended(_)) || self.closing.is_some() {
            effects.push(Effect::Reply { id, asked: now, zxid: None, error: 0 });
            return;
        }
        self.closing = Some(id);
        if self.is_online() {
            self.send_own(now, &ostler_proto::request::Request::CloseSession, Purpose::Close, effects);
        } else {
            self.end(Failure::Closed, effects);
        }
    }

    /// The xid of the next request: from 1 to `i32::MAX`, then 1 again.
    fn next_xid(&mut self) -> Xid {
        self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
        Xid(self.last_xid)
    }

    /// Sets all watches again on a new connection.
    fn rearm(&mut self, now: Mono, effects: &mut Effects) {
        for chunk in rearm::chunks(&self.watches, self.replied, self.config.packet_max) {
            let request = ostler_proto::request::Request::SetWatches(chunk.request);
            request.write_frame(Xid::SET_WATCHES, &mut effects.bytes);
            self.rearming.push_back(Rearming { at: now, gaps: chunk.gaps });
        }
    }

    fn queued_in_order(&mut self) -> Vec<Queued> {
        core::mem::take(&mut self.queue).into()
    }
}
