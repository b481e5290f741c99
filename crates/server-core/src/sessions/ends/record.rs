//! The records of connections and sessions that have ended.

use crate::report::live_sessions::shown_id;
use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use arcstr::ArcStr;
use core::{
    fmt,
    net::{IpAddr, SocketAddr},
};
use ostler_proto::{
    acl::Id,
    id::{ServerId, SessionId},
    jute::{Reader, Writer},
};

/// Why a connection or a session ended, as far as this server knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
pub enum EndCause {
    /// The client closed its session.
    ClosedByClient,
    /// This server ended the session, as nothing was heard of it for its timeout.
    Expired {
        /// The session's timeout, ms.
        timeout_ms: i32,
        /// For how long this server had heard nothing, ms. A lower limit if the client was connected elsewhere.
        silent_ms: u64,
    },
    /// The session was ended by a transaction of the leader; its record says why.
    EndedByLeader,
    /// An operator has ended the session, or closed the connection.
    ByOperator {
        /// The operator; `None` if this server does not know.
        #[cfg_attr(feature = "serde", serde(default))]
        by: Option<ActingOperator>,
    },
    /// The client has come back on another connection.
    Moved {
        /// The server to which the client has gone, if this server knows.
        to: Option<ServerId>,
    },
    /// The client came back with a session that had ended.
    SessionGone,
    /// This server follows, and closed the connection as nothing came for a whole timeout. The leader decides about the
    /// session.
    Silent {
        /// The session's timeout, ms.
        timeout_ms: i32,
        /// For how long nothing had come, ms.
        silent_ms: u64,
    },
    /// This server cannot check the session's password, as it lacks the secret.
    PasswordUnknown,
    /// The client has seen a later transaction than this server has.
    ClientAhead,
    /// A login or the required authentication failed.
    AuthFailed,
    /// The client asked for another ensemble.
    OtherEnsemble,
    /// The client sent what no client sends.
    Protocol,
    /// The client did not read its notifications, and too many of them waited.
    TooManyUnread,
    /// This server has lost its leader, or leads no more.
    LeaderLost,
    /// This server serves only read-only sessions now.
    ReadOnly,
    /// The client's side closed the TCP connection in order, without closing its session.
    ConnectionClosed,
    /// The client's side, or something on the way, reset the TCP connection.
    ConnectionReset,
    /// The client's host did not acknowledge what was sent, and TCP has given up.
    ConnectionTimedOut,
    /// The connection failed otherwise.
    ConnectionFailed {
        /// The system's message.
        error: String,
    },
    /// A frame had an impossible length.
    FrameLength {
        /// The length as sent.
        length: i64,
        /// The longest frame that this server takes (`jute.maxbuffer`).
        limit: u64,
    },
    /// The bytes of a frame were no request.
    BadFrame {
        /// The problem with them.
        problem: String,
    },
    /// The server was asked for more than a limit of its operator allows.
    OverLimit {
        /// The request or connection, and the key of the limit.
        limit: String,
    },
    /// The TLS connection failed.
    TlsFailed {
        /// The message of the library.
        error: String,
    },
    /// The client took nothing of its answers, while others waited for the memory that they take.
    SlowReader {
        /// For how long, ms.
        blocked_ms: u64,
    },
    /// The connection is gone, and nothing more is known.
    Lost,
}

impl EndCause {
    /// Whether the connection ended without an act of this server or a word of the client.
    pub fn is_lost_connection(&self) -> bool {
        matches!(
            self,
            EndCause::ConnectionClosed
                | EndCause::ConnectionReset
                | EndCause::ConnectionTimedOut
                | EndCause::ConnectionFailed { .. }
                | EndCause::TlsFailed { .. }
                | EndCause::Lost
        )
    }

    /// The bytes that it takes beside itself.
    fn bytes(&self) -> usize {
        match self {
            EndCause::ConnectionFailed { error } | EndCause::TlsFailed { error } => error.len(),
            EndCause::BadFrame { problem } => problem.len(),
            EndCause::OverLimit { limit } => limit.len(),
            EndCause::ByOperator { by: Some(by) } => by.name.len(),
            _ => 0,
        }
    }
}

/// An operator who acts on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ActingOperator {
    /// The identities, as `digest:ann`.
    pub name: String,
    /// The address.
    pub address: IpAddr,
}

/// The longest name that is kept, in characters.
const NAME_CHARS_MAX: usize = 256;
/// The beginning of the body of a closeSession that an operator has asked for at a learner. A client's has no body, and
/// ZooKeeper's leader does not look at it.
const BY_OPERATOR: &str = "by operator";

impl ActingOperator {
    /// An operator with these identities and this address. Those of the address are left out, unless there is no other.
    pub fn new(ids: &[Id], address: IpAddr) -> ActingOperator {
        let proven: Vec<&Id> = ids.iter().filter(|id| id.scheme != "ip").collect();
        let shown = if proven.is_empty() { ids.iter().collect() } else { proven };
        let all: Vec<String> = shown.into_iter().map(shown_id).collect();
        let name = all.join(", ").chars().take(NAME_CHARS_MAX).collect();
        ActingOperator { name, address: address.to_canonical() }
    }

    /// The body of a closeSession by which a learner asks its leader in the operator's name.
    pub(crate) fn to_body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.string(BY_OPERATOR);
        body.string(&self.name);
        body.string(&self.address.to_string());
        body
    }

    /// Reads such a body; `None` if it is none.
    pub(crate) fn of_body(body: &[u8]) -> Option<ActingOperator> {
        let mut r = Reader::new(body);
        let mut text = || r.string().ok().flatten();
        if text()? != BY_OPERATOR {
            return None;
        }
        let (name, address) = (text()?, text()?);
        Some(ActingOperator {
            name: name.chars().take(NAME_CHARS_MAX).collect(),
            address: address.parse().ok()?,
        })
    }
}

impl fmt::Display for ActingOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.name, self.address)
    }
}

/// Whether the client's host acknowledged the last bytes of the connection, as TCP saw it a moment after this server
/// had closed it. The host's kernel does that, also for a program that is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum HostState {
    /// Not looked at, or not to be found out.
    #[default]
    Unknown,
    /// The host acknowledged the end of the connection, and its program closed its side.
    Closed,
    /// The host acknowledged the end of the connection; its program did nothing.
    Acknowledged,
    /// The host acknowledged nothing.
    Silent,
}

/// The part of a session's life that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum EndedPart {
    /// A connection; the session may have lived on.
    Connection,
    /// The session.
    Session,
}

/// A lock or a place in a queue that went to another session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PassedPlace {
    /// The znode that was the first of its parent's sequential znodes.
    pub from: ArcStr,
    /// The znode that is first now.
    pub to: ArcStr,
    /// The session that has it.
    #[cfg_attr(feature = "serde", serde(with = "super::hex"))]
    pub session: SessionId,
}

/// The ephemeral znodes that went with a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EndedEphemerals {
    /// Their number.
    pub count: u64,
    /// The first of their paths.
    pub paths: Vec<ArcStr>,
    /// Where another session is first now.
    pub passed: Vec<PassedPlace>,
}

/// Something that happened here to the session after its connection had ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Return {
    /// When, in ms since 1970.
    pub at_ms: i64,
    /// The client's address.
    pub address: SocketAddr,
    /// `None` if the session was taken up again; else why the client was refused.
    pub refused: Option<EndCause>,
}

/// The connection of an end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EndedConnection {
    /// Its number at this server.
    pub number: u64,
    /// The client's address.
    pub address: SocketAddr,
    /// When it was made, in ms since 1970.
    pub established_ms: i64,
    /// When something last came, in ms since 1970.
    pub last_heard_ms: i64,
    /// The last gaps between its requests in ms, the oldest first.
    pub gaps_ms: Vec<u32>,
    /// The longest gap of all, ms.
    pub longest_gap_ms: u32,
    /// Requests that came.
    pub requests: u64,
    /// Requests that were not answered.
    pub unanswered: usize,
    /// The acts of the client's host, as TCP saw them.
    pub host: HostState,
}

/// A connection or a session that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SessionEnd {
    /// The number of the record; each is greater than the one before.
    pub number: u64,
    /// The session.
    #[cfg_attr(feature = "serde", serde(with = "super::hex"))]
    pub session: SessionId,
    /// The part that ended.
    pub part: EndedPart,
    /// When, in ms since 1970.
    pub ended_ms: i64,
    /// The cause of the end.
    pub cause: EndCause,
    /// Whether this server led or was alone, so that it decided about sessions.
    pub led: bool,
    /// The session's timeout, ms.
    pub timeout_ms: i32,
    /// The connection: that which ended, or that which the session had here when it ended.
    pub connection: Option<EndedConnection>,
    /// The record of the session's last connection here, if that had ended before the session.
    pub earlier: Option<u64>,
    /// The server that the client was connected to, as a leader knew it.
    pub served_by: Option<ServerId>,
    /// At a leader: the client was connected to a learner that has left the leader since.
    pub server_left: bool,
    /// The ephemeral znodes that went with the session.
    pub ephemerals: EndedEphemerals,
    /// The client's first returns to this server afterwards.
    pub returns: Vec<Return>,
}

impl SessionEnd {
    /// About the bytes of memory that the record takes.
    pub(super) fn bytes(&self) -> usize {
        let paths = self.ephemerals.paths.iter().map(|path| path.len() + 40).sum::<usize>();
        let passed =
            self.ephemerals.passed.iter().map(|one| one.from.len() + one.to.len() + 100).sum::<usize>();
        size_of::<SessionEnd>() + paths + passed + self.cause.bytes() + 32 + RETURNS_MAX * size_of::<Return>()
    }
}

/// The most returns that a record has.
pub(super) const RETURNS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_named_to_the_leader() {
        let ids = [Id::new("ip", "10.0.0.9"), Id::new("digest", "ann:hash"), Id::new("x509", "CN=ann")];
        let ann = ActingOperator::new(&ids, IpAddr::from([10, 0, 0, 9]));
        assert_eq!(ann.to_string(), "digest:ann, x509:CN=ann from 10.0.0.9");
        assert_eq!(ActingOperator::of_body(&ann.to_body()), Some(ann));
        let nobody = ActingOperator::new(&ids[..1], IpAddr::from([10, 0, 0, 9]));
        assert_eq!(nobody.name, "ip:10.0.0.9");
    }

    #[test]
    fn any_other_body_is_no_operators() {
        let body = ActingOperator::new(&[Id::new("digest", "ann:h")], IpAddr::from([127, 0, 0, 1])).to_body();
        for length in 0..body.len() {
            assert_eq!(ActingOperator::of_body(&body[..length]), None, "{length}");
        }
        let mut wrong = body.clone();
        wrong[5] ^= 1;
        assert_eq!(ActingOperator::of_body(&wrong), None);
        let long = ActingOperator { name: "x".repeat(9999), address: IpAddr::from([127, 0, 0, 1]) };
        assert_eq!(ActingOperator::of_body(&long.to_body()).map(|by| by.name.len()), Some(NAME_CHARS_MAX));
    }
}
