//! The events that a member reacts to.

use crate::{
    requests::sasl::SaslAnswer,
    sessions::ends::{ActingOperator, EndCause, HostState},
};
use alloc::{boxed::Box, vec::Vec};
use core::net::SocketAddr;
use ostler_proto::{
    acl::Id,
    connect::ConnectRequest,
    election::Notification,
    id::{ServerId, SessionId, Xid, Zxid},
    jute::Result,
    op::Op,
    quorum_packet::Packet,
    request::{Request, RequestHeader},
};
use ostler_tree::{Tree, WatcherId};
pub use ostler_zab::Mono;
use ostler_zab::{
    PersistSeq, Record,
    leading::{AddressMatch, LinkId},
};

/// The time, passed in with every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// For all waiting.
    pub mono: Mono,
    /// Milliseconds since 1970, for the times in Stats only.
    pub wall_ms: i64,
    /// Microseconds since the last whole millisecond of `mono`, for measuring only.
    pub us: u16,
}

impl Now {
    /// The monotonic time in microseconds.
    pub fn mono_us(self) -> u64 {
        self.mono.0 * 1000 + u64::from(self.us)
    }

    /// Milliseconds since a moment on a wall clock, which may be another server's; 0 where that is ahead.
    pub(crate) fn since_wall(self, ms: i64) -> u64 {
        u64::try_from(self.wall_ms.saturating_sub(ms)).unwrap_or(0)
    }
}

/// A client's connection; the shell never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

impl ConnId {
    pub(crate) fn watcher(self) -> WatcherId {
        WatcherId(self.0)
    }
}

impl From<WatcherId> for ConnId {
    fn from(watcher: WatcherId) -> ConnId {
        ConnId(watcher.0)
    }
}

/// A request, decoded outside the lock and still borrowed from its frame.
#[derive(Debug, Clone)]
pub struct ClientRequest<'a> {
    /// The client's number.
    pub xid: Xid,
    /// The decoded body.
    pub request: Request<'a>,
    /// The whole payload: a request that has to wait is kept in this form.
    pub payload: &'a [u8],
    /// The time from when its bytes were read until the core took it, in microseconds; 0 if nobody measures it.
    pub waited_us: u32,
}

impl<'a> ClientRequest<'a> {
    /// Decodes a frame's payload. Fails only where the header is not whole; a bad body is a request too.
    pub fn decode(payload: &'a [u8]) -> Result<Self> {
        let (header, body) = RequestHeader::read(payload)?;
        Ok(ClientRequest {
            xid: header.xid,
            request: Request::read(header.code, body),
            payload,
            waited_us: 0,
        })
    }

    /// The operation number as sent.
    pub fn code(&self) -> i32 {
        RequestHeader::read(self.payload).map_or(0, |(header, _)| header.code)
    }

    pub(crate) fn head(&self, arrived: Mono) -> RequestHead {
        RequestHead { xid: self.xid, code: self.code(), arrived, waited_us: self.waited_us }
    }
}

/// The part of a request that is kept until it is answered, and counted with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) xid: Xid,
    /// The operation number as sent.
    pub(crate) code: i32,
    pub(crate) arrived: Mono,
    /// See [`ClientRequest::waited_us`].
    pub(crate) waited_us: u32,
}

impl RequestHead {
    /// The createSession of a handshake, which has no xid.
    pub(crate) fn of_handshake(arrived: Mono) -> RequestHead {
        RequestHead { xid: Xid(0), code: Op::CreateSession.code(), arrived, waited_us: 0 }
    }

    /// The time since the request came, in ms.
    pub(crate) fn age_ms(&self, now: Mono) -> u64 {
        now.0.saturating_sub(self.arrived.0)
    }
}

/// An event outside the core. The shell passes each one to [`Server::step`](crate::Server::step), in the order in which it
/// happened, and carries out the effects before the next step.
#[derive(Debug)]
pub enum Input<'a> {
    /// A client has opened a TCP connection. It is the first input of that connection. Nothing is answered yet.
    Accepted {
        /// The new connection. Its number was never used before.
        conn: ConnId,
        /// The client's address, for ACLs of scheme `ip` and for `cons`.
        peer: SocketAddr,
    },
    /// A client has proven identities outside the core, such as by the certificate of its connection. They count from now
    /// on, as those of a successful auth request do.
    Identified {
        /// The client's connection.
        conn: ConnId,
        /// The identities: at least one.
        ids: Vec<Id>,
    },
    /// The answer to [`Effect::SaslToken`](crate::Effect::SaslToken).
    SaslAnswered {
        /// The client's connection in the effect.
        conn: ConnId,
        /// The number of the request in the effect.
        xid: Xid,
        /// The result of the mechanism.
        answer: SaslAnswer,
    },
    /// The first frame of a connection has come: the client opens a session, or comes back to one. The answer is
    /// [`Effect::Connected`](crate::Effect::Connected), perhaps after a quorum has the new session, or
    /// [`Effect::Close`](crate::Effect::Close).
    Connect {
        /// The connection on which the frame came.
        conn: ConnId,
        /// The decoded handshake.
        request: ConnectRequest<'a>,
        /// 56 random bits for the id of a new session. Nobody may be able to predict them.
        chance: u64,
    },
    /// A later frame of a connection has come. Each request gets one [`Effect::Reply`](crate::Effect::Reply), in the
    /// order in which the requests came, unless its connection is closed first.
    Request {
        /// The connection on which the frame came.
        conn: ConnId,
        /// The decoded request.
        request: ClientRequest<'a>,
    },
    /// As `Request`, for a request that has waited too long before it came here: it is not carried out, but answered in
    /// its place with [`ErrorCode::ThrottledOp`](ostler_proto::error::ErrorCode::ThrottledOp).
    Throttled {
        /// The connection on which the frame came.
        conn: ConnId,
        /// The decoded request.
        request: ClientRequest<'a>,
    },
    /// The client sends bytes or takes answers, but its requests cannot be read now because too much of it waits. The
    /// session counts as alive, as if a ping had been read.
    Alive {
        /// The client's connection.
        conn: ConnId,
    },
    /// The shell knows why a client's connection ends, or what became of one that the core has closed. It comes before
    /// [`Input::Disconnected`], at most once, and only serves to explain the end.
    ConnectionLost {
        /// The client's connection.
        conn: ConnId,
        /// Why it ends; without effect if the core has closed it.
        cause: EndCause,
        /// The acts of the client's host, as TCP saw them.
        host: HostState,
    },
    /// A client's connection is gone. The session lives on until it expires or the client comes back. No effect names
    /// this connection any more.
    Disconnected {
        /// The client's connection that is gone.
        conn: ConnId,
    },
    /// All acts of [`Effect::Persist`](crate::Effect::Persist) up to and including this number are on disk. Only now
    /// acknowledgements and answers that depend on them leave the core. After a failed write or sync it never comes
    /// again.
    Persisted(PersistSeq),
    /// The snapshot of [`Effect::Snapshot`](crate::Effect::Snapshot) is on disk, or was given up. The core may ask for
    /// the next one.
    SnapshotDone,
    /// The time that [`Server::next_deadline`](crate::Server::next_deadline) named has come. An earlier or a repeated one
    /// does no harm.
    Deadline,
    /// An operator or a test wants a session to expire now. The leader proposes the end of a global session, and a local
    /// session's own server ends it. On another server, and for a session that does not exist, nothing happens.
    ExpireSession(SessionId),
    /// An operator ends a session as if it had expired. A server that does not lead asks its leader to end a global one.
    /// Without such a session nothing happens.
    EndSession {
        /// The session to end.
        session: SessionId,
        /// The operator, for the record of the end.
        by: ActingOperator,
    },
    /// An operator wants a client's connection closed. The session lives on.
    CloseConnection(ConnId),
    /// A vote has come over the election port.
    Vote {
        /// The server that sent it.
        from: ServerId,
        /// The decoded vote, with the configuration of its sender.
        notification: Notification,
    },
    /// The connection to another server's election port has been made or lost, or could not be made. An election that
    /// waits for this server's vote waits no longer if it cannot be reached.
    ElectionLink {
        /// The other server.
        peer: ServerId,
        /// True if there is a connection now.
        up: bool,
    },
    /// The connection that [`Effect::Dial`](crate::Effect::Dial) asked for is made. If the search is over, the core
    /// hangs up.
    LeaderLink {
        /// The number in the effect.
        search_id: u64,
        /// The new connection.
        link: LinkId,
    },
    /// The connection that [`Effect::Dial`](crate::Effect::Dial) asked for could not be made. The core asks again, or
    /// looks for another leader.
    LeaderUnreachable {
        /// The number in the effect.
        search_id: u64,
    },
    /// A server has connected to the port for observers (`observerMasterPort`).
    ObserverCalls {
        /// The new connection.
        link: LinkId,
    },
    /// A comparison of a learner's address with its id. It comes before the learner's first packet. If two learners have
    /// one id, it helps to decide between them.
    LearnerFrom {
        /// The learner's connection.
        link: LinkId,
        /// How its address compares with those that the configuration has for its id.
        place: AddressMatch,
    },
    /// A packet has come over the quorum port, from a learner or from the leader.
    Peer {
        /// The connection on which it came.
        link: LinkId,
        /// The decoded packet. Its bytes are borrowed from the buffer of the connection.
        packet: Packet<'a>,
    },
    /// The leader begins to send a whole tree, which may take long. [`Input::Snap`] or [`Input::PeerGone`] follows.
    SnapBegins {
        /// The leader's connection.
        link: LinkId,
    },
    /// Bytes of a tree, or of a part of the log, are on their way over a connection. No packet can come meanwhile, so
    /// these count as a sign of life of the other side.
    StreamMoves {
        /// The connection on which bytes move.
        link: LinkId,
    },
    /// The leader's whole tree has come. It takes the place of this server's tree.
    Snap {
        /// The leader's connection.
        link: LinkId,
        /// The leader's tree.
        tree: Box<Tree>,
    },
    /// An operator asks a standalone server to put other data in the place of its own. A member of an ensemble ignores
    /// this. [`Server::restorations`](crate::Server::restorations) says when it is on disk.
    Restore {
        /// The new data.
        tree: Box<Tree>,
    },
    /// The disk has cut the log as [`PersistOp::Truncate`](crate::PersistOp::Truncate) with `reload` asked, and has read
    /// the tree again.
    Reloaded {
        /// The number in `reload`.
        search_id: u64,
        /// The tree without what was cut.
        tree: Box<Tree>,
    },
    /// The answer to [`Effect::ReadLog`](crate::Effect::ReadLog).
    LogRead {
        /// The learner's connection in the effect.
        link: LinkId,
        /// The number in the effect.
        search_id: u64,
        /// `None` if the log does not go back far enough, or if a whole tree takes fewer bytes. Then the learner gets the
        /// whole tree.
        read: Option<LogPart>,
    },
    /// A connection of the quorum port is gone. A learner that loses its leader looks for a new one. A leader that loses
    /// its quorum steps down.
    PeerGone {
        /// The connection that is gone.
        link: LinkId,
    },
}

/// A part of the log on disk.
#[derive(Debug)]
pub struct LogPart {
    /// The newest record at or below the zxid that was asked for.
    pub before: Option<Zxid>,
    /// All after it, without a gap.
    pub records: Vec<(Zxid, Record)>,
}
