//! The effects of a step: the acts that the shell has to carry out.

use crate::{audit::AuditRecord, input::ConnId};
use alloc::{boxed::Box, vec::Vec};
use arcstr::ArcStr;
use ostler_proto::{
    connect::ConnectResponse,
    election::Notification,
    event::EventType,
    id::{Epoch, ServerId, Xid, Zxid},
    membership::{Membership, OtherEnsemble},
    quorum_packet::Packet,
    reply::Reply,
};
use ostler_tree::FrozenTree;
pub use ostler_zab::Record;
use ostler_zab::{PersistSeq, leading::LinkId};

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The client closed its session.
    ClosedByClient,
    /// The session has expired, or never existed.
    SessionExpired,
    /// The client has come back on another connection, here or at another server.
    SessionMoved,
    /// The session's password is made with a secret that this server does not have, so it cannot check it.
    PasswordUnknown,
    /// The client has seen a later zxid than this server has. It has to try another server.
    ClientAhead,
    /// Authentication has failed.
    AuthFailed,
    /// The client wants another ensemble than this one (scheme `ensemble`).
    OtherEnsemble,
    /// The client broke the protocol, or let too many notifications wait.
    Protocol,
    /// The server has lost its leader, or leads no more.
    NotServing,
    /// The server is read-only, and the client did not ask for a read-only session or has a global one.
    ReadOnly,
    /// Nothing has come for a whole session timeout. The client may have gone to another server.
    Silent,
    /// An operator has asked for it.
    ClosedByOperator,
}

/// The server that a learner connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialTarget {
    /// The leader, at its quorum port.
    Leader(ServerId),
    /// A follower as observer master, at its port for observers.
    Follower(ServerId),
}

/// Something that a member wants to have on disk.
#[derive(Debug)]
pub enum PersistOp {
    /// Append a transaction to the log.
    Append {
        /// The transaction's zxid.
        zxid: Zxid,
        /// The encoded transaction.
        record: Record,
    },
    /// Begin a new log file with the next transaction.
    RollLog,
    /// Note on disk that this server had no data and that a leader's history begins to come. If the server restarts
    /// before the next [`PersistOp::SaveCurrent`] is done, it finds [`EnsembleConfig::incomplete`] set.
    ///
    /// [`EnsembleConfig::incomplete`]: crate::EnsembleConfig::incomplete
    MarkIncomplete,
    /// Save the accepted epoch (`acceptedEpoch`).
    SaveAccepted(Epoch),
    /// Save the current epoch (`currentEpoch`).
    SaveCurrent(Epoch),
    /// Remove all transactions after `to` from the disk, logs and snapshots.
    Truncate {
        /// The last transaction that stays.
        to: Zxid,
        /// If the tree has transactions that go: read it again from disk, and pass it to the core as
        /// [`Input::Reloaded`](crate::Input::Reloaded) with this number.
        reload: Option<u64>,
    },
    /// Write a configuration into the files beside zoo.cfg.
    SaveConfig {
        /// The configuration.
        membership: Membership,
        /// True if it is in force, false if it is only proposed.
        active: bool,
    },
    /// Write the tree that has come from the leader as a snapshot, and remove all later transactions from the disk.
    Install(Box<FrozenTree>),
}

/// An act that the shell carries out, in the order in which the effects were appended. An act that has to wait for the
/// disk comes only after [`Input::Persisted`](crate::Input::Persisted).
#[derive(Debug)]
pub enum Effect {
    /// Answer a handshake. A refused client gets a session timeout of 0, then [`Effect::Close`].
    Connected {
        /// The client's connection.
        conn: ConnId,
        /// The answer to the handshake, which the shell sends as a frame.
        response: ConnectResponse,
    },
    /// Answer a request. Replies of one connection come in the order of its requests.
    Reply {
        /// The client's connection.
        conn: ConnId,
        /// The answer to the request, which the shell sends as a frame.
        reply: Reply,
    },
    /// Tell clients of a change that they watch. It comes before any reply that shows the change.
    Notify {
        /// The clients' connections, each of them once.
        conns: Vec<ConnId>,
        /// The transaction, or `None` for a change that a client missed while it was not connected.
        zxid: Option<Zxid>,
        /// The kind of change.
        kind: EventType,
        /// The path of the watched znode.
        path: ArcStr,
    },
    /// Give a client's SASL token to the mechanism, then report
    /// [`Input::SaslAnswered`](crate::Input::SaslAnswered). There is never more than one of a connection.
    SaslToken {
        /// The client's connection.
        conn: ConnId,
        /// The number of the request, for the report.
        xid: Xid,
        /// The token as the client has sent it.
        token: Vec<u8>,
    },
    /// Send everything that waits for a connection, then close it. Its requests are not taken any more.
    /// [`Input::Disconnected`](crate::Input::Disconnected) has to follow.
    Close {
        /// The client's connection.
        conn: ConnId,
        /// The reason, for the log and the counters.
        reason: CloseReason,
    },
    /// Do this on disk and sync it, in the order of the numbers, then report
    /// [`Input::Persisted`](crate::Input::Persisted). Many may share a sync. After an error nothing more is done or
    /// reported, and the server ends.
    Persist {
        /// The number of the act, one more than the last.
        seq: PersistSeq,
        /// The act that the disk carries out after all earlier ones.
        op: PersistOp,
    },
    /// Write this tree as a snapshot in the background, then report
    /// [`Input::SnapshotDone`](crate::Input::SnapshotDone). There is never more than one.
    Snapshot(Box<FrozenTree>),
    /// From now on the servers of these configurations have to be reachable, and others need not be. The first
    /// configuration is in force, a second one is proposed.
    Servers(Vec<Membership>),
    /// Send a vote to another server's election port. If it cannot be reached, report
    /// [`Input::ElectionLink`](crate::Input::ElectionLink).
    SendVote {
        /// The server to send it to.
        to: ServerId,
        /// The vote that the other server gets.
        notification: Notification,
    },
    /// Close the connection on which a server has just voted: its configuration belongs to another ensemble.
    RefuseVotes {
        /// The server that voted.
        of: ServerId,
        /// The difference between the configurations, for the log.
        why: OtherEnsemble,
    },
    /// Connect to the server that is to be followed, then report [`Input::LeaderLink`](crate::Input::LeaderLink), or
    /// [`Input::LeaderUnreachable`](crate::Input::LeaderUnreachable) if that fails for half a second.
    Dial {
        /// The number of the search, for the report.
        search_id: u64,
        /// The server, and at which of its ports.
        to: DialTarget,
    },
    /// Send a packet over the quorum port, in order behind those before it.
    ToPeer {
        /// The connection of the learner, or of the leader.
        link: LinkId,
        /// The packet, or several packets, in the order in which they go out.
        message: PeerMessage,
    },
    /// Read committed transactions from the log for a learner, then report [`Input::LogRead`](crate::Input::LogRead).
    ReadLog {
        /// The number of the search, for the report.
        search_id: u64,
        /// The connection of the learner that lacks them.
        link: LinkId,
        /// The last transaction that the learner has.
        after: Zxid,
        /// The last transaction that is wanted.
        through: Zxid,
    },
    /// Send everything that waits for a connection of the quorum port, then close it.
    HangUp(LinkId),
    /// Write this into the audit log, in the order of these effects. It comes only with [`CoreConfig::audit`].
    ///
    /// [`CoreConfig::audit`]: crate::CoreConfig::audit
    Audit(Box<AuditRecord>),
}

/// A message on the quorum port.
#[derive(Debug)]
pub enum PeerMessage {
    /// A single packet.
    Packet(Packet<'static>),
    /// PROPOSAL. All learners share the bytes.
    Proposal(Zxid, Record),
    /// INFORM: a proposal and its commit in one, for observers.
    Inform(Zxid, Record),
    /// PROPOSAL and COMMIT for each of these committed transactions, for a DIFF.
    History(Vec<(Zxid, Record)>),
    /// SNAP, then the whole tree.
    Snapshot(Box<FrozenTree>),
}
