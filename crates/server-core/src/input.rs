//! What happens in the world.

use alloc::{boxed::Box, vec::Vec};
use core::net::SocketAddr;
use ostler_proto::{
    connect::ConnectRequest,
    election::Notification,
    id::{ServerId, SessionId, Xid, Zxid},
    jute::Result,
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
}

impl Now {
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
}

impl<'a> ClientRequest<'a> {
    /// Decodes a frame's payload. Fails only where the header is not whole; a bad body is a request too.
    pub fn decode(payload: &'a [u8]) -> Result<Self> {
        let (header, body) = RequestHeader::read(payload)?;
        Ok(ClientRequest { xid: header.xid, request: Request::read(header.code, body), payload })
    }

    /// The operation number as sent.
    pub fn code(&self) -> i32 {
        RequestHeader::read(self.payload).map_or(0, |(header, _)| header.code)
    }
}

/// Everything that a member reacts to.
#[derive(Debug)]
pub enum Input<'a> {
    /// A client has connected.
    Accepted {
        /// Its connection.
        conn: ConnId,
        /// Where it comes from.
        peer: SocketAddr,
    },
    /// The first frame of a connection.
    Connect {
        /// Its connection.
        conn: ConnId,
        /// The handshake.
        request: ConnectRequest<'a>,
        /// Bits that nobody can foresee, for the id of a new session.
        chance: u64,
    },
    /// Any later frame.
    Request {
        /// Its connection.
        conn: ConnId,
        /// The request.
        request: ClientRequest<'a>,
    },
    /// Bytes came, or were taken, on a connection whose requests have to wait to be read: its session lives.
    Alive {
        /// Its connection.
        conn: ConnId,
    },
    /// The connection is gone.
    Disconnected {
        /// Its connection.
        conn: ConnId,
    },
    /// All persistent acts up to this one are on disk.
    Persisted(PersistSeq),
    /// The snapshot that was asked for is on disk, or was given up.
    SnapshotDone,
    /// The time that [`crate::Server::next_deadline`] named has come.
    Deadline,
    /// A session is to end now, as if its time were over. Only the server that leads can do that, or a local session's
    /// own server; elsewhere, and for a session that is not there, nothing happens.
    ExpireSession(SessionId),
    /// A connection is to end now; its session lives on.
    CloseConnection(ConnId),
    /// A vote has come.
    Vote {
        /// From whom.
        from: ServerId,
        /// What.
        notification: Notification,
    },
    /// A connection to a server's election port has come, is gone, or cannot be had.
    ElectionLink {
        /// Whose.
        peer: ServerId,
        /// Whether there is one.
        up: bool,
    },
    /// The leader that was dialled has answered.
    LeaderLink {
        /// Of the [`Effect::Dial`](crate::Effect::Dial).
        search_id: u64,
        /// The connection.
        link: LinkId,
    },
    /// The leader that was dialled did not answer.
    LeaderUnreachable {
        /// Of the [`Effect::Dial`](crate::Effect::Dial).
        search_id: u64,
    },
    /// Somebody has connected to the port for observers.
    ObserverCalls {
        /// The connection.
        link: LinkId,
    },
    /// Where a learner's connection comes from, beside the addresses that the configuration has for the server that it says
    /// to be. To be told before its first packet; without, nothing is known of it.
    LearnerFrom {
        /// The connection.
        link: LinkId,
        /// Where.
        place: AddressMatch,
    },
    /// A packet from a learner, or from the leader.
    Peer {
        /// On which connection.
        link: LinkId,
        /// What.
        packet: Packet<'a>,
    },
    /// A whole tree begins to come from the leader, which may take long.
    SnapBegins {
        /// On which connection.
        link: LinkId,
    },
    /// Bytes of a tree, or of a part of the log, go over a connection, and it will be long until there is a packet to say
    /// that its other end lives.
    StreamMoves {
        /// Which.
        link: LinkId,
    },
    /// A whole tree has come from the leader.
    Snap {
        /// On which connection.
        link: LinkId,
        /// The tree.
        tree: Box<Tree>,
    },
    /// The disk has taken back what a [`PersistOp::Truncate`](crate::PersistOp::Truncate) named; this is left.
    Reloaded {
        /// Of that act.
        search_id: u64,
        /// What is left.
        tree: Box<Tree>,
    },
    /// What an [`Effect::ReadLog`](crate::Effect::ReadLog) found.
    LogRead {
        /// The learner that lacks it.
        link: LinkId,
        /// Of the effect.
        search_id: u64,
        /// `None` if the log does not reach back so far, or a snapshot is less to send.
        read: Option<LogPart>,
    },
    /// A connection of the quorum port is gone.
    PeerGone {
        /// Which.
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
