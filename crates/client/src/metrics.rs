//! Counts of what a client has done.

use ostler_client_core::ConnectionState;
use ostler_proto::op::Op;
use rustc_hash::FxBuildHasher;
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// Counts of what a client has done since it was made.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// By operation, in ZooKeeper's words.
    pub operations: BTreeMap<&'static str, OperationMetrics>,
    /// Bytes handed to the connection.
    pub bytes_sent: u64,
    /// Bytes of replies and events.
    pub bytes_received: u64,
    /// Events delivered to watches.
    pub events: u64,
    /// Watches set now.
    pub watches: usize,
    /// Requests without a reply now.
    pub outstanding: usize,
    /// Connections lost.
    pub suspended: u64,
    /// Sessions lost.
    pub sessions_lost: u64,
}

/// Counts of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationMetrics {
    /// Replies, those with an error included.
    pub replies: u64,
    /// Replies with an error code.
    pub errors: u64,
    /// Requests that never had a reply.
    pub failures: u64,
    /// From request to reply, all together.
    pub time: Duration,
    /// The longest of them.
    pub longest: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    operations: HashMap<Op, OperationMetrics, FxBuildHasher>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) events: u64,
    suspended: u64,
    lost: u64,
}

impl Recorder {
    pub(crate) fn answered(&mut self, op: Op, took: Duration, error: i32) {
        let counts = self.operations.entry(op).or_default();
        counts.replies += 1;
        counts.errors += u64::from(error != 0);
        counts.time += took;
        counts.longest = counts.longest.max(took);
    }

    pub(crate) fn failed(&mut self, op: Op) {
        self.operations.entry(op).or_default().failures += 1;
    }

    pub(crate) fn state(&mut self, state: ConnectionState) {
        match state {
            ConnectionState::Suspended => self.suspended += 1,
            ConnectionState::Lost => self.lost += 1,
            _ => {}
        }
    }

    pub(crate) fn report(&self, watches: usize, outstanding: usize) -> Metrics {
        Metrics {
            operations: self.operations.iter().map(|(op, counts)| (name(*op), *counts)).collect(),
            bytes_sent: self.bytes_out,
            bytes_received: self.bytes_in,
            events: self.events,
            watches,
            outstanding,
            suspended: self.suspended,
            sessions_lost: self.lost,
        }
    }
}

/// An operation in ZooKeeper's words.
pub(crate) fn name(op: Op) -> &'static str {
    match op {
        Op::Create => "create",
        Op::Delete => "delete",
        Op::Exists => "exists",
        Op::GetData => "getData",
        Op::SetData => "setData",
        Op::GetAcl => "getACL",
        Op::SetAcl => "setACL",
        Op::GetChildren => "getChildren",
        Op::Sync => "sync",
        Op::Ping => "ping",
        Op::GetChildren2 => "getChildren2",
        Op::Check => "check",
        Op::Multi => "multi",
        Op::Create2 => "create2",
        Op::Reconfig => "reconfig",
        Op::CheckWatches => "checkWatches",
        Op::RemoveWatches => "removeWatches",
        Op::CreateContainer => "createContainer",
        Op::DeleteContainer => "deleteContainer",
        Op::CreateTtl => "createTTL",
        Op::MultiRead => "multiRead",
        Op::Auth => "addAuth",
        Op::SetWatches => "setWatches",
        Op::Sasl => "sasl",
        Op::GetEphemerals => "getEphemerals",
        Op::GetAllChildrenNumber => "getAllChildrenNumber",
        Op::SetWatches2 => "setWatches2",
        Op::AddWatch => "addWatch",
        Op::WhoAmI => "whoAmI",
        Op::CreateSession => "createSession",
        Op::CloseSession => "closeSession",
    }
}
