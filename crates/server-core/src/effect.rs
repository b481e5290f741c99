//! What the world shall do.

use crate::input::ConnId;
use alloc::{boxed::Box, vec::Vec};
use arcstr::ArcStr;
use ostler_proto::{
    connect::ConnectResponse,
    election::Notification,
    event::EventType,
    id::{Epoch, ServerId, Zxid},
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
    /// The client said goodbye.
    ClosedByClient,
    /// Its session expired or was never there.
    SessionExpired,
    /// The session came back on another connection.
    SessionMoved,
    /// The session's password is made with a secret, and this server does not know that this is the one.
    PasswordUnknown,
    /// The client has seen a later state than this server has.
    ClientAhead,
    /// It could not prove who it is.
    AuthFailed,
    /// It sent what no client sends.
    Protocol,
    /// This server has no leader at the moment.
    NotServing,
    /// This server serves only clients that are content to read, and no session that all servers know.
    ReadOnly,
    /// It said nothing for as long as its session may be silent. Its client may have gone to another server.
    Silent,
    /// Whoever runs the server wanted it so.
    ClosedByOperator,
}

/// Whom a learner follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialTarget {
    /// The leader, at its quorum port.
    Leader(ServerId),
    /// A follower, at its port for observers.
    Follower(ServerId),
}

/// A persistent act.
#[derive(Debug)]
pub enum PersistOp {
    /// Append a record to the log.
    Append {
        /// The record's zxid.
        zxid: Zxid,
        /// Its bytes.
        record: Record,
    },
    /// Start a new log file with the next record.
    RollLog,
    /// Note that there was nothing on disk, and that a leader's history begins to come. Until the next
    /// [`PersistOp::SaveCurrent`] is done, a start finds [`EnsembleConfig::incomplete`].
    ///
    /// [`EnsembleConfig::incomplete`]: crate::EnsembleConfig::incomplete
    MarkIncomplete,
    /// Save the accepted epoch.
    SaveAccepted(Epoch),
    /// Save the current epoch.
    SaveCurrent(Epoch),
    /// Take everything after `to` off the disk. With `reload`, read the tree anew then, for [`Input::Reloaded`].
    ///
    /// [`Input::Reloaded`]: crate::Input::Reloaded
    Truncate {
        /// The last transaction that stays.
        to: Zxid,
        /// The server's [`Effect::Dial`]'s search, if the tree has some of what goes.
        reload: Option<u64>,
    },
    /// Write a configuration into the files beside zoo.cfg: the one in force, or one that may come to be.
    SaveConfig {
        /// Which.
        membership: Membership,
        /// It is in force.
        active: bool,
    },
    /// Write a tree that has come from the leader, and take everything after it off the disk.
    Install(Box<FrozenTree>),
}

/// Everything that a member asks for.
#[derive(Debug)]
pub enum Effect {
    /// Answer a handshake.
    Connected {
        /// To whom.
        conn: ConnId,
        /// The answer.
        response: ConnectResponse,
    },
    /// Answer a request.
    Reply {
        /// To whom.
        conn: ConnId,
        /// The answer.
        reply: Reply,
    },
    /// Tell watchers of a change.
    Notify {
        /// Whom; none of them twice.
        conns: Vec<ConnId>,
        /// The transaction, or `None` for what a reconnected client had missed.
        zxid: Option<Zxid>,
        /// What happened.
        kind: EventType,
        /// Where.
        path: ArcStr,
    },
    /// Send what is queued for a connection, then close it.
    Close {
        /// Which.
        conn: ConnId,
        /// Why.
        reason: CloseReason,
    },
    /// Make something durable, in order of the numbers.
    Persist {
        /// Its number.
        seq: PersistSeq,
        /// What.
        op: PersistOp,
    },
    /// Write a snapshot, in the background.
    Snapshot(Box<FrozenTree>),
    /// These are the servers that may have to be reached from now on. The first configuration is in force.
    Servers(Vec<Membership>),
    /// Send a vote.
    SendVote {
        /// To whom.
        to: ServerId,
        /// What.
        notification: Notification,
    },
    /// Close the connection on which a server has just voted: it is of another ensemble.
    RefuseVotes {
        /// Whose.
        of: ServerId,
        /// How that shows.
        why: OtherEnsemble,
    },
    /// Connect to whom this server is to follow, for [`Input::LeaderLink`] or [`Input::LeaderUnreachable`].
    ///
    /// [`Input::LeaderLink`]: crate::Input::LeaderLink
    /// [`Input::LeaderUnreachable`]: crate::Input::LeaderUnreachable
    Dial {
        /// To be given back with the answer.
        search_id: u64,
        /// Whom.
        to: DialTarget,
    },
    /// Send something to a learner, or to the leader.
    ToPeer {
        /// On which connection.
        link: LinkId,
        /// What.
        message: PeerMessage,
    },
    /// Read committed records from the log on disk, for [`Input::LogRead`].
    ///
    /// [`Input::LogRead`]: crate::Input::LogRead
    ReadLog {
        /// To be given back with the answer.
        search_id: u64,
        /// The learner that lacks them.
        link: LinkId,
        /// The last that it has.
        after: Zxid,
        /// The last that is wanted.
        through: Zxid,
    },
    /// Close a connection of the quorum port once what is queued is sent.
    HangUp(LinkId),
}

/// What is sent on the quorum port.
#[derive(Debug)]
pub enum PeerMessage {
    /// A packet.
    Packet(Packet<'static>),
    /// A proposal, whose bytes all learners share.
    Proposal(Zxid, Record),
    /// A proposal and its commit in one.
    Inform(Zxid, Record),
    /// Committed records: a proposal and a commit for each.
    History(Vec<(Zxid, Record)>),
    /// SNAP and the tree.
    Snapshot(Box<FrozenTree>),
}
