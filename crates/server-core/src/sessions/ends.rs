//! The ends of connections and sessions at this server: the last ones are kept, with what is needed to explain them.

#[cfg(feature = "serde")]
pub(crate) mod hex;
mod places;
mod record;
mod recording;
pub mod verdict;

use alloc::{collections::VecDeque, vec::Vec};
use core::net::{IpAddr, SocketAddr};
use hashbrown::HashMap;
use ostler_proto::id::{ServerId, SessionId};
use record::RETURNS_MAX;
pub use record::{
    ActingOperator, EndCause, EndedConnection, EndedEphemerals, EndedPart, HostState, PassedPlace, Return,
    SessionEnd,
};
use rustc_hash::FxBuildHasher;

/// The most records that are kept.
const RECORDS_MAX: usize = 4096;
/// The most bytes that all records take.
const BYTES_MAX: usize = 8 << 20;
/// The most stretches of a kind that are kept.
const STRETCHES_MAX: usize = 64;
/// The most records in an answer.
pub const ANSWER_MAX: usize = 1000;

/// A time in which a server did not do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stretch {
    /// Its begin, in ms since 1970.
    pub from_ms: i64,
    /// Its end, in ms since 1970.
    pub to_ms: i64,
}

impl Stretch {
    /// Whether the stretch and the time from `from_ms` to `to_ms` have a moment in common.
    pub fn overlaps(&self, from_ms: i64, to_ms: i64) -> bool {
        self.from_ms <= to_ms && from_ms <= self.to_ms
    }
}

/// The records of ended connections and sessions, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct SessionEnds {
    records: VecDeque<SessionEnd>,
    bytes: usize,
    /// The last record of each session.
    last: HashMap<SessionId, u64, FxBuildHasher>,
    /// The number of the next record, less one.
    noted: u64,
    /// Times in which the process did not run.
    pauses: VecDeque<Stretch>,
    /// Times in which the disk took long.
    disk_stalls: VecDeque<Stretch>,
}

impl SessionEnds {
    /// Adds a record, and returns its number. Old records give way.
    fn add(&mut self, mut end: SessionEnd) -> u64 {
        self.noted += 1;
        end.number = self.noted;
        self.bytes += end.bytes();
        self.last.insert(end.session, end.number);
        self.records.push_back(end);
        while (self.records.len() > RECORDS_MAX || self.bytes > BYTES_MAX)
            && let Some(old) = self.records.pop_front()
        {
            self.bytes -= old.bytes();
            if self.last.get(&old.session) == Some(&old.number) {
                self.last.remove(&old.session);
            }
        }
        self.noted
    }

    fn get(&self, number: u64) -> Option<&SessionEnd> {
        self.records.get(self.place(number)?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut SessionEnd> {
        let place = self.place(number)?;
        self.records.get_mut(place)
    }

    /// Notes what the client's host did, in all records of a connection: if its session ended after it was closed, it
    /// has two.
    fn note_host(&mut self, conn: u64, host: HostState) {
        let connections = self.records.iter_mut().filter_map(|end| end.connection.as_mut());
        connections.filter(|of| of.number == conn).for_each(|of| of.host = host);
    }

    fn place(&self, number: u64) -> Option<usize> {
        let first = self.records.front()?.number;
        usize::try_from(number.checked_sub(first)?).ok()
    }

    /// The last record of a session.
    fn last_of(&self, session: SessionId) -> Option<&SessionEnd> {
        self.get(*self.last.get(&session)?)
    }

    /// Notes that a client has come back with a session.
    fn note_return(&mut self, session: SessionId, back: Return) {
        let Some(number) = self.last.get(&session).copied() else { return };
        if let Some(end) = self.get_mut(number).filter(|end| end.returns.len() < RETURNS_MAX) {
            end.returns.push(back);
        }
    }

    fn note_pause(&mut self, pause: Stretch) {
        note_stretch(&mut self.pauses, pause);
    }

    pub(crate) fn note_disk_stall(&mut self, stall: Stretch) {
        note_stretch(&mut self.disk_stalls, stall);
    }
}

fn note_stretch(stretches: &mut VecDeque<Stretch>, stretch: Stretch) {
    // All that waited for one slow sync is one stretch.
    if let Some(last) = stretches.back_mut().filter(|last| last.overlaps(stretch.from_ms, stretch.to_ms)) {
        last.from_ms = last.from_ms.min(stretch.from_ms);
        last.to_ms = last.to_ms.max(stretch.to_ms);
        return;
    }
    if stretches.len() == STRETCHES_MAX {
        stretches.pop_front();
    }
    stretches.push_back(stretch);
}

/// Which records somebody asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndsQuery {
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those of clients with this address; with port 0, whatever their port is.
    pub address: Option<SocketAddr>,
    /// Only those after the record with this number.
    pub after: u64,
    /// The most records in the answer; at most [`ANSWER_MAX`].
    pub limit: usize,
}

impl EndsQuery {
    /// The query for a session id or an address as an operator writes it: `0x100a3f...`, `10.0.0.5` or
    /// `10.0.0.5:41234`. `None` if it is neither.
    pub fn of(subject: &str) -> Option<EndsQuery> {
        let all = EndsQuery { limit: ANSWER_MAX, ..EndsQuery::default() };
        if let Some(session) = session_of(subject) {
            return Some(EndsQuery { session: Some(session), ..all });
        }
        let address = subject.parse::<SocketAddr>();
        let address = address.or_else(|_| subject.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0))).ok()?;
        Some(EndsQuery { address: Some(address), ..all })
    }

    /// Whether a record is one of those that are asked for.
    pub fn is_about(&self, end: &SessionEnd) -> bool {
        let session = self.session.is_none_or(|session| session == end.session);
        session
            && self
                .address
                .is_none_or(|wanted| end.connection.as_ref().is_some_and(|of| is_at(of.address, wanted)))
    }
}

fn is_at(address: SocketAddr, wanted: SocketAddr) -> bool {
    let is_port = wanted.port() == 0 || wanted.port() == address.port();
    is_port && address.ip().to_canonical() == wanted.ip().to_canonical()
}

/// A session id as it is written: `0x` and hexadecimal digits.
pub fn session_of(text: &str) -> Option<SessionId> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let id = is_hex.then(|| u64::from_str_radix(digits, 16).ok())??;
    Some(SessionId(id as i64))
}

/// The part of a record by which records are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndKey {
    /// The number of the record.
    pub number: u64,
    /// The session.
    pub session: SessionId,
    /// When it ended, in ms since 1970.
    pub ended_ms: i64,
    /// The part that ended.
    pub part: EndedPart,
    /// The client's address, if a connection is recorded.
    pub address: Option<SocketAddr>,
}

/// A session that lives, as the answer about one session or address has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LivingSession {
    /// The session.
    #[cfg_attr(feature = "serde", serde(with = "hex"))]
    pub session: SessionId,
    /// Its timeout, ms.
    pub timeout_ms: i32,
    /// The client's address, if it is connected to this server.
    pub address: Option<SocketAddr>,
    /// When it connected to this server, in ms since 1970.
    pub established_ms: Option<i64>,
    /// The time since this server last heard of it on that connection, ms.
    pub silent_ms: Option<u64>,
}

/// A server's records, as `session_ends` gives them and [`verdict`] judges them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EndsReport {
    /// The server.
    pub server: ServerId,
    /// Its wall clock at the time of the answer, ms since 1970.
    pub now_ms: i64,
    /// When it started, ms since 1970. It knows nothing from before.
    pub started_ms: i64,
    /// Times in which the process did not run, the oldest first.
    pub pauses: Vec<Stretch>,
    /// Times in which its disk took long, the oldest first.
    pub disk_stalls: Vec<Stretch>,
    /// The records, the oldest first.
    pub ends: Vec<SessionEnd>,
    /// Sessions that live and that were asked for by their ids or addresses.
    pub living: Vec<LivingSession>,
    /// The value of `after` that asks for the rest; `None` if this is all.
    pub next: Option<u64>,
    /// Whether older records are not kept any more.
    pub has_forgotten: bool,
}

impl SessionEnds {
    fn keys(&self) -> Vec<EndKey> {
        let key = |end: &SessionEnd| EndKey {
            number: end.number,
            session: end.session,
            ended_ms: end.ended_ms,
            part: end.part,
            address: end.connection.as_ref().map(|of| of.address),
        };
        self.records.iter().map(key).collect()
    }

    /// The records that a query asks for, and the value of `after` for the rest.
    fn select(&self, query: &EndsQuery) -> (Vec<SessionEnd>, Option<u64>) {
        let limit = query.limit.clamp(1, ANSWER_MAX);
        let first = self.records.front().map_or(1, |end| end.number);
        let skipped =
            usize::try_from(query.after.saturating_add(1).saturating_sub(first)).unwrap_or(usize::MAX);
        let mut found = self.records.iter().skip(skipped).filter(|end| query.is_about(end));
        let ends: Vec<SessionEnd> = found.by_ref().take(limit).cloned().collect();
        let next = found.next().and_then(|_| ends.last()).map(|end| end.number);
        (ends, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_may_be_asked_for() {
        let query = EndsQuery { after: u64::MAX, limit: usize::MAX, ..EndsQuery::default() };
        assert_eq!(SessionEnds::default().select(&query), (Vec::new(), None));
    }
}
