//! The parts of the server that requests of the admin server need.

use super::{access::Exposure, temporary_folder};
use crate::{
    admin::{logins::Logins, prometheus::Exporter, reports::Reports},
    config::{AdminSettings, KeyInForce, ServerConfig},
    driver::Driver,
};
use ostler_data_dir::snapshots::SnapshotSettings;
use ostler_server_core::audit::{AuditOperation, AuditRecord, AuditResult, Operator};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The state that all requests share.
pub(crate) struct AdminState {
    pub(super) driver: Arc<Driver>,
    pub(super) reports: Arc<Reports>,
    pub(super) exporter: Arc<Exporter>,
    pub(super) snapshots: SnapshotSettings,
    pub(super) settings: AdminSettings,
    pub(super) exposure: Exposure,
    /// zoo.cfg as it was at the start, without its secrets.
    pub(super) configuration: String,
    /// The keys in force.
    pub(super) keys: Arc<[KeyInForce]>,
    pub(super) logins: Logins,
    pub(super) snapshot_limit: RateLimit,
    pub(super) restore_limit: RateLimit,
    /// Held while a snapshot is written: two would be written into one folder.
    pub(super) snapshot_turn: Arc<tokio::sync::Mutex<()>>,
    /// The same for one that comes.
    pub(super) restore_turn: tokio::sync::Mutex<()>,
}

impl AdminState {
    pub(crate) fn new(
        config: &ServerConfig,
        settings: &AdminSettings,
        parts: (Arc<Driver>, Arc<Reports>, SnapshotSettings),
    ) -> AdminState {
        let (driver, reports, snapshots) = parts;
        let exposure = match settings {
            settings if settings.is_local() => Exposure::Loopback,
            settings if settings.open_to_all => Exposure::Open,
            _ => Exposure::Guarded,
        };
        temporary_folder::remove_all_left(&snapshots.folders.snapshots);
        AdminState {
            exporter: Arc::new(Exporter::new(driver.clone(), reports.clone(), true)),
            driver,
            reports,
            snapshots,
            exposure,
            configuration: config.initial_configuration.clone(),
            keys: config.keys.clone(),
            logins: Logins::default(),
            snapshot_limit: RateLimit::every(Duration::from_millis(settings.rate_limiter_interval_ms)),
            restore_limit: RateLimit::every(Duration::from_millis(settings.rate_limiter_interval_ms)),
            snapshot_turn: Arc::default(),
            restore_turn: tokio::sync::Mutex::default(),
            settings: settings.clone(),
        }
    }

    /// Notes an operator's act on the server as a whole in the audit log.
    pub(super) fn audit(&self, operator: Operator<'_>, operation: AuditOperation, is_done: bool) {
        if let Some(audit) = &self.driver.audit {
            let result = if is_done { AuditResult::Success } else { AuditResult::Failure };
            let wall_ms = self.driver.clock.now().wall_ms;
            audit.push(Box::new(AuditRecord::of_operator(wall_ms, operator, operation, result)));
        }
    }
}

/// Lets something happen once in an interval.
pub(super) struct RateLimit {
    interval: Duration,
    last: Mutex<Option<Instant>>,
}

impl RateLimit {
    fn every(interval: Duration) -> RateLimit {
        RateLimit { interval, last: Mutex::new(None) }
    }

    /// Takes the slot of this interval. Returns false if it is taken.
    pub(super) fn take(&self, now: Instant) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| now.saturating_duration_since(last) < self.interval) {
            return false;
        }
        *last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_each_interval() {
        let limit = RateLimit::every(Duration::from_secs(300));
        let start = Instant::now();
        assert!(limit.take(start));
        assert!(!limit.take(start + Duration::from_secs(299)));
        assert!(limit.take(start + Duration::from_secs(300)));
    }
}
