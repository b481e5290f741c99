//! Makes the records of ended connections and sessions, at the places where they end.

use super::{
    EndCause, EndKey, EndedConnection, EndedEphemerals, EndedPart, EndsQuery, EndsReport, HostState,
    LivingSession, PassedPlace, Return, SessionEnd, Stretch, is_at, places,
};
use crate::{
    connections::{Conn, Phase},
    effect::CloseReason,
    input::{ConnId, Now},
    server::Server,
    sessions::Owner,
    work,
};
use alloc::{format, vec::Vec};
use arcstr::ArcStr;
use core::net::SocketAddr;
use ostler_proto::id::{ServerId, SessionId};
use ostler_tree::{Change, TreeEvent};

/// The most paths of ephemerals in a record, and the most bytes of them.
const PATHS_MAX: usize = 16;
const PATHS_BYTES_MAX: usize = 16 << 10;
/// The most siblings that are looked at to find who is next in line, for one session.
const SIBLINGS_MAX: usize = 4096;
/// The shortest time without work that counts as a pause of the process, ms.
const PAUSE_MIN_MS: u64 = 300;

/// The session that ends, as known just before its end is applied.
pub(crate) struct EndingSession {
    session: SessionId,
    timeout_ms: i32,
    owner: Owner,
    conn: Option<ConnId>,
}

impl Server {
    /// Notes a pause of the process: the timer was due, and no step was taken.
    pub(crate) fn note_pauses(&mut self, now: Now) {
        let before = core::mem::replace(&mut self.last_step, now.mono);
        let idle_ms = now.mono.0.saturating_sub(before.0);
        if idle_ms < PAUSE_MIN_MS {
            return;
        }
        let due = self.next_deadline().0.max(before.0);
        let late_ms = now.mono.0.saturating_sub(due);
        if late_ms >= PAUSE_MIN_MS && due > 0 {
            let from_ms = now.wall_ms.saturating_sub(i64::try_from(late_ms).unwrap_or(0));
            self.ends.note_pause(Stretch { from_ms, to_ms: now.wall_ms });
        }
    }

    /// The shell has lost a connection, or gives it up.
    pub(crate) fn connection_lost(&mut self, now: Now, conn: ConnId, cause: EndCause, host: HostState) {
        let Some(state) = self.connections.get(conn) else { return };
        let was_closed = state.is_closed();
        match state.end {
            // It was closed by this server; now it is known what the client's host did.
            Some(_) if host != HostState::Unknown => {
                self.ends.note_host(conn.0, host);
            }
            Some(_) => {}
            // This server has closed it before it had a session, which leaves no record.
            None if was_closed => {}
            None => self.record_connection(now, conn, cause),
        }
    }

    /// A connection is about to be closed by this server.
    pub(crate) fn note_close(&mut self, now: Now, conn: ConnId, reason: CloseReason) {
        let Some(state) = self.connections.get(conn) else { return };
        if state.end.is_some() {
            return;
        }
        let session = state.session().and_then(|id| self.sessions.get(id));
        let (timeout_ms, silent_ms) =
            (session.map_or(0, |session| session.timeout_ms), state.gaps.silent_ms(now.mono));
        let cause = match reason {
            CloseReason::ClosedByClient => EndCause::ClosedByClient,
            CloseReason::SessionExpired => EndCause::SessionGone,
            CloseReason::SessionMoved => EndCause::Moved { to: self.moved_to(state) },
            CloseReason::PasswordUnknown => EndCause::PasswordUnknown,
            CloseReason::ClientAhead => EndCause::ClientAhead,
            CloseReason::AuthFailed => EndCause::AuthFailed,
            CloseReason::OtherEnsemble => EndCause::OtherEnsemble,
            CloseReason::Protocol => EndCause::Protocol,
            CloseReason::NotServing => EndCause::LeaderLost,
            CloseReason::ReadOnly => EndCause::ReadOnly,
            CloseReason::Silent => EndCause::Silent { timeout_ms, silent_ms },
            CloseReason::ClosedByOperator => EndCause::ByOperator { by: None },
        };
        self.record_connection(now, conn, cause);
    }

    /// The server to which the client of a connection has gone.
    fn moved_to(&self, state: &Conn) -> Option<ServerId> {
        match self.sessions.get(state.session()?)?.owner {
            Owner::Here => Some(self.config.server),
            Owner::Learner(link) => self.role.ensemble()?.learner_of(link),
            Owner::Nobody => None,
        }
    }

    /// Records the end of a connection, unless the client only tried to open a session.
    fn record_connection(&mut self, now: Now, conn: ConnId, cause: EndCause) {
        let Some(state) = self.connections.get(conn).filter(|state| state.end.is_none()) else { return };
        let Some(session) = state.session() else { return };
        if matches!(state.phase, Phase::Opening { .. }) {
            return;
        }
        let of = self.ended_connection(now, conn, state);
        let live = self.sessions.get(session);
        let end = SessionEnd {
            timeout_ms: live.map_or(0, |live| live.timeout_ms),
            connection: Some(of),
            ..self.new_end(now, session, EndedPart::Connection, cause)
        };
        let number = self.ends.add(end);
        if let Some(state) = self.connections.get_mut(conn) {
            state.end = Some(number);
        }
    }

    /// A client was refused that came back with a session. Only what is known of the session's end grows by it, so
    /// nobody can fill the records with sessions that never were.
    pub(crate) fn note_refused_return(
        &mut self,
        now: Now,
        conn: ConnId,
        session: SessionId,
        cause: EndCause,
    ) {
        if let Some(state) = self.connections.get(conn) {
            let back = Return { at_ms: now.wall_ms, address: state.peer, refused: Some(cause) };
            self.ends.note_return(session, back);
        }
    }

    /// A client has taken up its session again on this connection.
    pub(crate) fn note_taken_up(&mut self, now: Now, conn: ConnId, session: SessionId) {
        if let Some(state) = self.connections.get(conn) {
            let back = Return { at_ms: now.wall_ms, address: state.peer, refused: None };
            self.ends.note_return(session, back);
        }
    }

    /// Gathers the facts of a session just before its end is applied.
    pub(crate) fn ending_session(&self, session: SessionId) -> EndingSession {
        let live = self.sessions.get(session);
        EndingSession {
            session,
            timeout_ms: live.map_or(0, |live| live.timeout_ms),
            owner: live.map_or(Owner::Nobody, |live| live.owner),
            conn: live.and_then(|live| live.conn),
        }
    }

    /// Records the end of a session, if this server had to do with it: it led, or had a connection of the session.
    pub(crate) fn record_session_end(
        &mut self,
        now: Now,
        ending: &EndingSession,
        is_by_client: bool,
        ephemerals: EndedEphemerals,
    ) {
        let &EndingSession { session, timeout_ms, owner, conn } = ending;
        let earlier = self.ends.last_of(session);
        let noted = self.ending.remove(&session);
        if !self.leads() && conn.is_none() && earlier.is_none() {
            return;
        }
        let earlier =
            earlier.filter(|_| conn.is_none()).map(|end| (end.number, end.ended_ms, end.connection.as_ref()));
        let last_heard = earlier.and_then(|(_, _, of)| of).map(|of| of.last_heard_ms);
        let earlier = earlier.map(|(number, ..)| number);
        let cause = match noted {
            _ if is_by_client => EndCause::ClosedByClient,
            Some(EndCause::Expired { timeout_ms, silent_ms }) => {
                let heard_here =
                    last_heard.filter(|_| owner == Owner::Here).map(|heard| now.since_wall(heard));
                EndCause::Expired { timeout_ms, silent_ms: heard_here.unwrap_or(silent_ms).max(silent_ms) }
            }
            Some(cause) => cause,
            None => EndCause::EndedByLeader,
        };
        let served_by = match owner {
            Owner::Learner(link) => self.role.ensemble().and_then(|ensemble| ensemble.learner_of(link)),
            Owner::Here => Some(self.config.server),
            Owner::Nobody => None,
        };
        let server_left = matches!(owner, Owner::Learner(_)) && served_by.is_none();
        let open = conn.and_then(|conn| Some((conn, self.connections.get(conn)?)));
        let connection = open.map(|(conn, state)| self.ended_connection(now, conn, state));
        let end = SessionEnd {
            timeout_ms,
            connection,
            earlier,
            served_by,
            server_left,
            ephemerals,
            ..self.new_end(now, session, EndedPart::Session, cause)
        };
        let number = self.ends.add(end);
        if let Some(state) = conn.and_then(|conn| self.connections.get_mut(conn)) {
            state.end = Some(number);
        }
    }

    /// Notes why the end of a session is proposed, until it is applied.
    pub(crate) fn note_ending(&mut self, session: SessionId, cause: EndCause) {
        self.ending.insert(session, cause);
    }

    /// The cause of a session that expires now.
    pub(crate) fn expired_cause(&self, now: Now, session: SessionId) -> EndCause {
        let live = self.sessions.get(session);
        let timeout_ms = live.map_or(0, |live| live.timeout_ms);
        let conn = live.and_then(|live| self.connections.get(live.conn?));
        let silent_ms = match conn {
            Some(state) => state.gaps.silent_ms(now.mono),
            None => live.map_or(0, |live| live.silent_at_least_ms(now.mono)),
        };
        EndCause::Expired { timeout_ms, silent_ms }
    }

    /// The ephemerals that a transaction has deleted, and where another session is first now.
    pub(crate) fn ended_ephemerals(&self, events: &[TreeEvent]) -> EndedEphemerals {
        let deleted = events.iter().filter(|event| event.change == Change::Deleted);
        let mut ended = EndedEphemerals::default();
        let (mut bytes, mut siblings) = (0, 0);
        for event in deleted {
            ended.count += 1;
            bytes += event.path.len();
            if ended.paths.len() == PATHS_MAX || bytes > PATHS_BYTES_MAX {
                continue;
            }
            ended.paths.push(event.path.clone());
            if let Some(passed) = self.passed_place(&event.path, &mut siblings) {
                ended.passed.push(passed);
            }
        }
        ended
    }

    /// The sibling that is first now, if the deleted sequential znode was.
    fn passed_place(&self, gone: &ArcStr, looked_at: &mut usize) -> Option<PassedPlace> {
        places::sequence(gone)?;
        let (parent, _) = places::split(gone)?;
        let siblings = self.tree.children(parent).inspect(|_| *looked_at += 1);
        let first = places::next_in_line(gone, siblings.take(SIBLINGS_MAX))?;
        self.work.add(*looked_at / work::NAMES);
        if *looked_at >= SIBLINGS_MAX {
            return None;
        }
        let to = if parent == "/" { format!("/{first}") } else { format!("{parent}/{first}") };
        let session = SessionId(self.tree.get(&to)?.stat.ephemeral_owner.0);
        self.sessions.get(session)?;
        Some(PassedPlace { from: gone.clone(), to: to.into(), session })
    }

    fn ended_connection(&self, now: Now, conn: ConnId, state: &Conn) -> EndedConnection {
        let silent_ms = i64::try_from(state.gaps.silent_ms(now.mono)).unwrap_or(i64::MAX);
        EndedConnection {
            number: conn.0,
            address: state.peer,
            established_ms: state.stats.established_wall_ms,
            last_heard_ms: now.wall_ms.saturating_sub(silent_ms),
            gaps_ms: state.gaps.last_ms(),
            longest_gap_ms: state.gaps.longest_ms(),
            requests: state.stats.received,
            unanswered: state.queue.len(),
            host: HostState::Unknown,
        }
    }

    fn new_end(&self, now: Now, session: SessionId, part: EndedPart, cause: EndCause) -> SessionEnd {
        SessionEnd {
            number: 0,
            session,
            part,
            ended_ms: now.wall_ms,
            cause,
            led: self.leads(),
            timeout_ms: 0,
            connection: None,
            earlier: None,
            served_by: None,
            server_left: false,
            ephemerals: EndedEphemerals::default(),
            returns: Vec::new(),
        }
    }

    /// The records of ended connections and sessions that a query asks for. If it asks for an address, the living sessions
    /// are left to [`Server::living_at`], because there may be very many connections.
    pub fn session_ends(&self, now: Now, query: &EndsQuery) -> EndsReport {
        let (ends, next) = self.ends.select(query);
        let living = query.session.and_then(|session| self.living_session(now, session));
        EndsReport { ends, living: living.into_iter().collect(), next, ..self.ends_report(now) }
    }

    /// The keys of all records, the oldest first. There are at most 4,096.
    pub fn end_keys(&self) -> Vec<EndKey> {
        self.ends.keys()
    }

    /// The records with these numbers, as far as they are kept.
    pub fn ends_numbered(&self, now: Now, numbers: &[u64]) -> EndsReport {
        let ends = numbers.iter().filter_map(|number| self.ends.get(*number)).cloned().collect();
        EndsReport { ends, ..self.ends_report(now) }
    }

    /// A report without records.
    fn ends_report(&self, now: Now) -> EndsReport {
        EndsReport {
            server: self.config.server,
            now_ms: now.wall_ms,
            started_ms: self.started_ms,
            pauses: self.ends.pauses.iter().copied().collect(),
            disk_stalls: self.ends.disk_stalls.iter().copied().collect(),
            has_forgotten: self.ends.records.front().is_some_and(|first| first.number > 1),
            ..EndsReport::default()
        }
    }

    /// The living sessions among these connections whose clients have this address.
    pub fn living_at(&self, now: Now, wanted: SocketAddr, conns: &[ConnId]) -> Vec<LivingSession> {
        let all = conns.iter().filter_map(|conn| self.connections.get(*conn));
        let open = all.filter(|state| !state.is_closed() && is_at(state.peer, wanted));
        open.filter_map(|state| self.living_session(now, state.session()?)).collect()
    }

    fn living_session(&self, now: Now, session: SessionId) -> Option<LivingSession> {
        let live = self.sessions.get(session).filter(|live| !live.closing)?;
        let conn = live.conn.and_then(|conn| self.connections.get(conn));
        Some(LivingSession {
            session,
            timeout_ms: live.timeout_ms,
            address: conn.map(|conn| conn.peer),
            established_ms: conn.map(|conn| conn.stats.established_wall_ms),
            silent_ms: conn.map(|conn| conn.gaps.silent_ms(now.mono)),
        })
    }
}
