//! Counts of clients' connections.

use crate::log_throttle::SharedLogBudget;
use std::{
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering},
};

/// Counts of clients' connections since the start or `srst`, and the limits of the log lines about them.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) bytes_received: AtomicU64,
    /// Connections that their clients have closed.
    pub(crate) dropped: AtomicU64,
    /// Connections that were refused as there were too many.
    pub(crate) rejected: AtomicU64,
    /// Connections that were closed as no handshake came in time.
    pub(crate) without_session: AtomicU64,
    /// TLS handshakes that failed.
    pub(crate) failed_handshakes: AtomicU64,
    /// Connections that were closed before their TLS handshake, as there were too many of them.
    pub(crate) handshakes_exceeded: AtomicU64,
    /// Connections without TLS from this machine; not reset.
    pub(crate) plain_local: AtomicU64,
    /// Connections without TLS from elsewhere; not reset.
    pub(crate) plain_remote: AtomicU64,
    /// Limits the log lines about connections that no client makes.
    pub(crate) closed_log: SharedLogBudget,
    /// Limits the log lines about clients that were refused.
    pub(crate) refused_log: SharedLogBudget,
}

impl Traffic {
    pub(crate) fn count_bytes(&self, received: usize) {
        self.bytes_received.fetch_add(received as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_without_session(&self) {
        self.without_session.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_failed_handshake(&self) {
        self.failed_handshakes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_handshake_exceeded(&self) {
        self.handshakes_exceeded.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection without TLS.
    pub(crate) fn count_plain(&self, from: IpAddr) {
        let count = if from.to_canonical().is_loopback() { &self.plain_local } else { &self.plain_remote };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        let counts = [
            &self.bytes_received,
            &self.dropped,
            &self.rejected,
            &self.without_session,
            &self.failed_handshakes,
            &self.handshakes_exceeded,
        ];
        for count in counts {
            count.store(0, Ordering::Relaxed);
        }
    }
}
