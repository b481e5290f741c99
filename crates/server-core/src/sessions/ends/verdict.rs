//! Judges why a session or its last connection ended, from the records of one or several servers. The verdict claims no
//! more than the records show: if they do not show enough, it says what is missing.

mod words;

use super::{
    ActingOperator, EndCause, EndedConnection, EndedPart, EndsReport, HostState, Return, SessionEnd, Stretch,
};
use alloc::{format, string::String, vec::Vec};
use ostler_proto::id::{ServerId, SessionId};

/// The side at which the cause lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum VerdictKind {
    /// Nothing has ended.
    Lives,
    /// The client closed its session.
    ClosedByClient,
    /// The client's program did not run, or was stuck.
    ClientPaused,
    /// The client's program ended, or closed its connection and did not come back.
    ClientGone,
    /// The client sent what a server refuses, or did not read its answers.
    ClientFault,
    /// The client's login failed.
    AuthFailed,
    /// The network, or the client's host as a whole.
    Network,
    /// A server was stopped, restarted or without a leader, or its disk stood still.
    Server,
    /// An operator.
    Operator,
    /// The client came back on another connection, and nothing was lost.
    Moved,
    /// The records do not show it.
    Unknown,
}

/// Why a session ended, or its last connection if it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Verdict {
    /// The session.
    #[cfg_attr(feature = "serde", serde(with = "super::hex"))]
    pub session: SessionId,
    /// Where the cause lies.
    pub kind: VerdictKind,
    /// Why this is so, in one sentence.
    pub reason: String,
    /// The recorded facts, in sentences, in the order of time.
    pub facts: Vec<String>,
}

impl Verdict {
    /// The verdict in one sentence, without a full stop.
    pub fn headline(&self) -> String {
        let side = match self.kind {
            VerdictKind::Lives | VerdictKind::Moved => "nothing was lost",
            VerdictKind::ClosedByClient => "the client ended it",
            VerdictKind::ClientPaused => "the client was paused",
            VerdictKind::ClientGone => "the client went away",
            VerdictKind::ClientFault => "the client was refused",
            VerdictKind::AuthFailed => "the client could not authenticate",
            VerdictKind::Network => "the network failed",
            VerdictKind::Server => "a server failed",
            VerdictKind::Operator => "an operator did it",
            VerdictKind::Unknown => return format!("the cause {}", self.reason),
        };
        format!("{side}: {}", self.reason)
    }
}

/// A record and the server that has it.
#[derive(Debug, Clone, Copy)]
struct Witness<'a> {
    report: &'a EndsReport,
    end: &'a SessionEnd,
}

/// The end of a connection of the session.
#[derive(Debug, Clone, Copy)]
struct LastConnection<'a> {
    witness: Witness<'a>,
    connection: &'a EndedConnection,
}

/// The records of one session.
struct Case<'a> {
    session: SessionId,
    reports: &'a [EndsReport],
    /// All records, in the order of time.
    records: Vec<Witness<'a>>,
}

/// The verdict about a session. `clock` writes a time, given in ms since 1970.
pub fn judge(session: SessionId, reports: &[EndsReport], clock: &dyn Fn(i64) -> String) -> Verdict {
    let case = Case::new(session, reports);
    let (kind, reason) = match case.end() {
        Some(end) => case.judge_end(end),
        None => case.judge_connection(),
    };
    Verdict { session, kind, reason, facts: words::facts(&case, clock) }
}

impl<'a> Case<'a> {
    fn new(session: SessionId, reports: &'a [EndsReport]) -> Case<'a> {
        let of = |report: &'a EndsReport| report.ends.iter().map(move |end| Witness { report, end });
        let mut records: Vec<Witness<'a>> = reports.iter().flat_map(of).collect();
        records.retain(|witness| witness.end.session == session);
        records.sort_by_key(|witness| (witness.end.ended_ms, witness.end.led));
        Case { session, reports, records }
    }

    /// The end of the session. The record of the server that decided comes before others.
    fn end(&self) -> Option<Witness<'a>> {
        let ends = || self.records.iter().filter(|witness| witness.end.part == EndedPart::Session);
        ends().find(|witness| witness.end.led).or_else(|| ends().next()).copied()
    }

    /// The connection on which the client was last heard of. The one that a server sees may be one that the client
    /// has left.
    fn last_connection(&self) -> Option<LastConnection<'a>> {
        let with = self.records.iter().filter_map(|witness| {
            let connection = witness.end.connection.as_ref()?;
            Some(LastConnection { witness: *witness, connection })
        });
        with.max_by_key(|of| (of.connection.established_ms, of.connection.last_heard_ms))
    }

    /// The times at which the client came back, at any server.
    fn returns(&self) -> impl Iterator<Item = &'a Return> {
        self.records.iter().flat_map(|witness| &witness.end.returns)
    }

    fn report_of(&self, server: ServerId) -> Option<&'a EndsReport> {
        self.reports.iter().find(|report| report.server == server)
    }

    fn living(&self) -> bool {
        self.reports.iter().flat_map(|report| &report.living).any(|one| one.session == self.session)
    }

    /// Whether the client is connected now, by a connection made at this time or later.
    fn is_connected_since(&self, at_ms: i64) -> bool {
        let connected = self.reports.iter().flat_map(|report| &report.living);
        let mut established =
            connected.filter(|one| one.session == self.session).filter_map(|one| one.established_ms);
        established.any(|established| established >= at_ms)
    }

    /// Whether the session was taken up again at this time or later.
    fn taken_up(&self, at_ms: i64) -> bool {
        self.is_connected_since(at_ms)
            || self.returns().any(|back| back.refused.is_none() && back.at_ms >= at_ms)
    }

    /// The client has come back after the end of this connection.
    fn moved(&self, last: LastConnection<'a>) -> String {
        let server = last.witness.report.server.0;
        let how = match &last.witness.end.cause {
            EndCause::Moved { .. } | EndCause::Silent { .. } => "was closed when the client had left it",
            cause if cause.is_lost_connection() => "was ended by the client's side or on the way",
            _ => "was closed by the server",
        };
        format!("the connection to server {server} {how}, and the client came back in time")
    }

    fn judge_end(&self, end: Witness<'a>) -> (VerdictKind, String) {
        match &end.end.cause {
            EndCause::ClosedByClient => {
                (VerdictKind::ClosedByClient, "the client closed its session itself".into())
            }
            EndCause::ByOperator { by } => (
                VerdictKind::Operator,
                format!("an operator{} ended the session; it did not expire", words::named(by.as_ref())),
            ),
            EndCause::Expired { timeout_ms, silent_ms } => self.judge_expiry(end, *timeout_ms, *silent_ms),
            _ => (
                VerdictKind::Unknown,
                "cannot be known, because the leader that ended the session was not asked, or has no record of it \
                 any more"
                    .into(),
            ),
        }
    }

    fn judge_expiry(&self, end: Witness<'a>, timeout_ms: i32, silent_ms: u64) -> (VerdictKind, String) {
        let last = self.last_connection();
        let silent_from = match &last {
            Some(last) => last.connection.last_heard_ms,
            None => end.end.ended_ms.saturating_sub(i64::try_from(silent_ms).unwrap_or(i64::MAX)),
        };
        if let Some(reason) = self.server_at_fault(end, last, (silent_from, timeout_ms)) {
            return (VerdictKind::Server, reason);
        }
        let Some(last) = last else {
            return self.no_connection(end);
        };
        let elsewhere = end.end.served_by.filter(|server| *server != last.witness.report.server);
        if let Some(server) = elsewhere.filter(|server| self.report_of(*server).is_none()) {
            return (VerdictKind::Unknown, not_asked(server));
        }
        match &last.witness.end.cause {
            EndCause::Expired { .. } | EndCause::Silent { .. } | EndCause::EndedByLeader => {
                self.judge_silence(last)
            }
            cause => self.judge_loss(end, last, cause),
        }
    }

    /// Whether a server did not work for at least half of the timeout while the client was silent, or restarted.
    fn server_at_fault(
        &self,
        end: Witness<'a>,
        last: Option<LastConnection<'a>>,
        (silent_from, timeout_ms): (i64, i32),
    ) -> Option<String> {
        let ended_ms = end.end.ended_ms;
        let serving = last.map(|last| last.witness.report.server).or(end.end.served_by);
        let mut reports = serving.and_then(|server| self.report_of(server)).into_iter().chain([end.report]);
        let enough = i64::from(timeout_ms) / 2;
        let longest = |stretches: &[Stretch]| {
            let within = |one: &Stretch| one.to_ms.min(ended_ms) - one.from_ms.max(silent_from);
            stretches.iter().map(within).max().filter(|ms| *ms >= enough)
        };
        reports.find_map(|report| {
            let server = report.server.0;
            if let Some(ms) = longest(&report.pauses) {
                return Some(format!("server {server} did not run for {ms} ms of that time"));
            }
            if let Some(ms) = longest(&report.disk_stalls) {
                return Some(format!("the disk of server {server} stood still for {ms} ms of that time"));
            }
            let since_start = ended_ms - report.started_ms;
            let is_restarted = last.is_none_or(|last| last.connection.last_heard_ms < report.started_ms);
            let within = 0..=i64::from(timeout_ms) * 2;
            (is_restarted && within.contains(&since_start)).then(|| {
                format!(
                    "server {server} started {since_start} ms before the session expired, and the client did not come \
                     back to a server within the timeout"
                )
            })
        })
    }

    /// No server that was asked has a record of the client's last connection.
    fn no_connection(&self, end: Witness<'a>) -> (VerdictKind, String) {
        if end.end.server_left {
            let reason = "the server that the client was connected to had left the leader, and the client did not come back \
                          to another server in time";
            return (VerdictKind::Server, reason.into());
        }
        let reason = match end.end.served_by.filter(|server| *server != end.report.server) {
            Some(server) if self.report_of(server).is_none() => not_asked(server),
            _ => "cannot be known, because no server that was asked has a record of the client's last connection".into(),
        };
        (VerdictKind::Unknown, reason)
    }

    /// The connection was open to the end, and silent.
    fn judge_silence(&self, last: LastConnection<'a>) -> (VerdictKind, String) {
        match last.connection.host {
            HostState::Acknowledged => (
                VerdictKind::ClientPaused,
                "the connection was open and silent, and when the server closed it the client's host acknowledged that \
                 while its program did nothing: the program was stopped or stuck"
                    .into(),
            ),
            HostState::Closed => (
                VerdictKind::ClientPaused,
                "the connection was open and silent, and when the server closed it the client's program closed its side \
                 at once: the program was stuck until then, or does not send pings"
                    .into(),
            ),
            HostState::Silent => (
                VerdictKind::Network,
                "the connection was open and silent, and when the server closed it the client's host did not \
                 acknowledge that: the network, or the client's host as a whole, had failed"
                    .into(),
            ),
            HostState::Unknown => (
                VerdictKind::Unknown,
                "cannot be known, because the connection was open and silent, and the system did not tell whether the \
                 client's host still acknowledged anything: the client was paused, or the network failed"
                    .into(),
            ),
        }
    }

    /// The connection had ended before the session expired.
    fn judge_loss(
        &self,
        end: Witness<'a>,
        last: LastConnection<'a>,
        cause: &EndCause,
    ) -> (VerdictKind, String) {
        let server = last.witness.report.server.0;
        let ended_ms = last.witness.end.ended_ms;
        let late = self.returns().filter(|back| back.refused == Some(EndCause::SessionGone));
        let late = late.map(|back| back.at_ms - end.end.ended_ms).filter(|ms| *ms >= 0).min();
        if let Some((kind, fault)) = closed_by_server(cause, server) {
            return (kind, format!("{fault}, and the client did not come back with its session in time"));
        }
        match (cause, late) {
            (EndCause::ConnectionTimedOut, _) => (
                VerdictKind::Network,
                "the client's host acknowledged nothing any more, so TCP gave the connection up".into(),
            ),
            (_, Some(late_ms)) => (
                VerdictKind::Network,
                format!(
                    "the connection to server {server} was lost {} ms before the session expired, and the client came \
                     back {late_ms} ms too late: for this time it reached no server",
                    end.end.ended_ms - ended_ms
                ),
            ),
            (EndCause::ConnectionClosed, None) => (
                VerdictKind::ClientGone,
                "the client's side closed its connection without closing the session, as the system does for a program \
                 that ends, and did not come back"
                    .into(),
            ),
            (EndCause::ConnectionReset, None) => (
                VerdictKind::ClientGone,
                "the client's side reset its connection without closing the session, as the system does for a program \
                 that ends, and did not come back"
                    .into(),
            ),
            (EndCause::Moved { to }, None) => (
                VerdictKind::Unknown,
                match to {
                    Some(to) => format!(
                        "cannot be known, because the client had gone on to server {}, which has no record of it or was \
                         not asked",
                        to.0
                    ),
                    None => "cannot be known, because the client had gone on to a server that was not asked".into(),
                },
            ),
            _ => (
                VerdictKind::Unknown,
                "cannot be known, because the connection was lost without a word, and the client did not come back".into(),
            ),
        }
    }

    /// The session lives, or nothing is known of its end: judges the last end of a connection.
    fn judge_connection(&self) -> (VerdictKind, String) {
        let Some(last) = self.last_connection() else {
            if self.living() {
                return (
                    VerdictKind::Lives,
                    "the session lives, and no connection of it has ended here".into(),
                );
            }
            return (VerdictKind::Unknown, words::no_record(self.reports));
        };
        let server = last.witness.report.server.0;
        let cause = &last.witness.end.cause;
        let is_back = self.taken_up(last.connection.last_heard_ms);
        if let Some((kind, fault)) = closed_by_server(cause, server) {
            let end = if is_back { "; the client came back in time, so its session lives on" } else { "" };
            return (kind, format!("{fault}{end}"));
        }
        if self.is_connected_since(last.connection.last_heard_ms) {
            // The server that closed the silent connection had not heard of that.
            return (VerdictKind::Moved, self.moved(last));
        }
        match cause {
            EndCause::Moved { .. } => (VerdictKind::Moved, "the client came back on another connection".into()),
            EndCause::Silent { .. } => self.judge_silence(last),
            EndCause::ConnectionTimedOut => (
                VerdictKind::Network,
                "the client's host acknowledged nothing any more, so TCP gave the connection up".into(),
            ),
            _ if is_back => (VerdictKind::Moved, self.moved(last)),
            _ => (
                VerdictKind::Unknown,
                "cannot be known yet, because the connection is lost, and the session has neither expired nor come back \
                 at a server that was asked"
                    .into(),
            ),
        }
    }
}

fn not_asked(server: ServerId) -> String {
    format!(
        "cannot be known, because the client was connected to server {}, which was not asked or did not answer",
        server.0
    )
}

/// The verdict about a connection that a server closed for a reason of its own, and the reason.
fn closed_by_server(cause: &EndCause, server: i64) -> Option<(VerdictKind, String)> {
    let (kind, why) = match cause {
        EndCause::FrameLength { length, limit } => (
            VerdictKind::ClientFault,
            format!("the client sent a frame of {length} bytes, and the limit (jute.maxbuffer) is {limit}"),
        ),
        EndCause::BadFrame { problem } => (VerdictKind::ClientFault, format!("the client sent {problem}")),
        EndCause::OverLimit { limit } => (VerdictKind::Server, format!("a limit was reached: {limit}")),
        EndCause::Protocol => (VerdictKind::ClientFault, "the client sent what no client sends".into()),
        EndCause::TooManyUnread => (
            VerdictKind::ClientFault,
            "the client did not read its notifications, and too many waited".into(),
        ),
        EndCause::SlowReader { blocked_ms } => {
            (VerdictKind::ClientFault, format!("the client read nothing of its answers for {blocked_ms} ms"))
        }
        EndCause::TlsFailed { error } => (VerdictKind::ClientFault, format!("TLS failed: {error}")),
        EndCause::OtherEnsemble => {
            (VerdictKind::ClientFault, "the client asked for another ensemble (ensembleAuthName)".into())
        }
        EndCause::AuthFailed => (VerdictKind::AuthFailed, "the client's authentication failed".into()),
        EndCause::LeaderLost => (VerdictKind::Server, format!("server {server} had no leader any more")),
        EndCause::ReadOnly => {
            (VerdictKind::Server, format!("server {server} only served read-only sessions"))
        }
        EndCause::ByOperator { .. } => {
            (VerdictKind::Operator, format!("an operator closed the connection at server {server}"))
        }
        _ => return None,
    };
    Some((kind, why))
}
