//! A client's counters.

use crate::operation_name::name;
use ostler_client_core::ConnectionState;
use ostler_proto::op::Op;
use rustc_hash::FxBuildHasher;
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// A client's counters since it was built. [`Client::metrics`](crate::Client::metrics) returns them, with the feature
/// `metrics`.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Metrics {
    /// Counters by operation, under ZooKeeper's names, such as `setData`.
    pub operations: BTreeMap<&'static str, OperationMetrics>,
    /// Bytes handed to the connection.
    pub bytes_sent: u64,
    /// Bytes of replies and events received.
    pub bytes_received: u64,
    /// Events delivered to watches.
    pub events: u64,
    /// Watches that are set now.
    pub watches: usize,
    /// Requests that have no reply yet.
    pub outstanding: usize,
    /// How often the connection was lost.
    pub suspended: u64,
    /// How often the session was lost.
    pub sessions_lost: u64,
}

/// Counters of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OperationMetrics {
    /// Replies, including those with an error code.
    pub replies: u64,
    /// Replies with an error code.
    pub errors: u64,
    /// Requests that ended without a reply.
    pub failures: u64,
    /// The sum of the times from request to reply.
    pub time: Duration,
    /// The longest time from request to reply.
    pub longest: Duration,
}

/// Collects the counters of a client.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    operations: HashMap<Op, OperationMetrics, FxBuildHasher>,
    bytes_received: u64,
    bytes_sent: u64,
    events: u64,
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

    pub(crate) fn received(&mut self, bytes: usize) {
        self.bytes_received += bytes as u64;
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.bytes_sent += bytes as u64;
    }

    pub(crate) fn delivered(&mut self, events: usize) {
        self.events += events as u64;
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
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            events: self.events,
            watches,
            outstanding,
            suspended: self.suspended,
            sessions_lost: self.lost,
        }
    }
}
