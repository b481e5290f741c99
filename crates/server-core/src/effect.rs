//! What the world shall do.

use crate::input::ConnId;
use alloc::{boxed::Box, vec::Vec};
use arcstr::ArcStr;
use ostler_proto::{connect::ConnectResponse, event::EventType, id::Zxid, reply::Reply};
use ostler_tree::FrozenTree;
use ostler_zab::PersistSeq;
pub use ostler_zab::Record;

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The client said goodbye.
    ClosedByClient,
    /// Its session expired or was never there.
    SessionExpired,
    /// The session came back on another connection.
    SessionMoved,
    /// The client has seen a later state than this server has.
    ClientAhead,
    /// It could not prove who it is.
    AuthFailed,
    /// It sent what no client sends.
    Protocol,
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
}
