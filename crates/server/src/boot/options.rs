//! The settings of zoo.cfg as the options of the server's parts.

use crate::{
    client_conn::ConnLimits,
    config::{
        ClientPortSettings, EnsembleSettings, ServerConfig, SnapshotCompression, SnapshotSettings,
        TxnLogSettings,
    },
    listener::ConnCounts,
};
use ostler_data_dir::{PersistenceOptions, recovery::RestoreOptions, snapshots::SnapshotOptions};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    id::{Epoch, ServerId, Zxid},
};
use ostler_server_core::{CoreConfig, EnsembleConfig, quorum::ObserverOptions};
use ostler_storage::{names::Compression, recover::RecoverOptions, txnlog::LogOptions};
use ostler_zab::{ElectionTiming, EpochLength, HistoryLimits, leading::LeadingTiming};
use std::time::{Duration, Instant};

/// `keeps_config`: the files of the configuration are where reconfigurations can be kept. `sasl`: clients can log in.
pub(super) fn core_config(config: &ServerConfig, keeps_config: bool, sasl: bool) -> CoreConfig {
    let mut schemes = config.auth.enforce_auth_schemes.clone();
    if !config.auth.enforce_auth_enabled {
        schemes.clear();
    }
    CoreConfig {
        // Upstream's standalone server has the number 1 in its session ids, whatever myid says.
        server: config.ensemble.as_ref().map_or(ServerId(1), |ensemble| ensemble.me),
        tick_time_ms: config.tick_time_ms as u64,
        session_timeout_min_ms: config.sessions.min_session_timeout_ms,
        session_timeout_max_ms: config.sessions.max_session_timeout_ms,
        types: config.tree.extended_types(),
        digest: config.tree.digest_enabled,
        super_digest: config.auth.super_digest.clone(),
        digest_algorithm: config.auth.digest_auth_alg,
        digest_auth: config.auth.digest_auth_enabled,
        x509_auth: config.clients.secure.is_some(),
        x509_super_user: config.auth.x509_super_user.clone(),
        sasl,
        sasl_acls: config.auth.sasl_acls,
        sasl_super_users: config.auth.sasl_super_users.clone(),
        let_any_sasl_user: config.auth.let_any_sasl_user.clone(),
        allow_sasl_failed_clients: config.auth.allow_sasl_failed_clients,
        ensemble_names: config.auth.ensemble_names.clone(),
        passwords: config.sessions.session_passwords.passwords(),
        first_root_acl: first_root_acl(config),
        skip_acl: config.auth.skip_acl,
        enforced_auth_schemes: schemes,
        enforce_quota: config.tree.enforce_quota,
        reconfig: config.reconfig_enabled,
        keeps_config,
        close_session_paths: config.sessions.close_session_txn_enabled,
        reaper_interval_ms: config.tree.containers.check_interval_ms,
        reaper_max_per_minute: config.tree.containers.max_per_minute,
        container_max_never_used_ms: config.tree.containers.max_never_used_interval_ms.unwrap_or(0) as i64,
        snapshot_txns: config.snapshots.snap_count.into(),
        snapshot_log_bytes: config.snapshots.snap_size_limit_kb.map(|kb| kb * 1024),
        slow_request_ms: config.limits.slow_request_ms,
        // Three quarters of what is taken at all.
        large_request_bytes: config.limits.jute_max_buffer as usize / 4 * 3,
        traced_one_in: config.traces.as_ref().map(|traces| traces.sampled_one_in),
        audit: config.audit.is_some(),
        audit_auth_failures: config.audit.as_ref().is_some_and(|audit| audit.auth_failures),
        seed: std::process::id().into(),
    }
}

/// At a strict server only the super user may write at the root.
fn first_root_acl(config: &ServerConfig) -> Option<Vec<Acl>> {
    let admin = config.auth.x509_super_user.as_ref().filter(|_| config.strict)?;
    Some(vec![
        Acl { perms: Perms::READ, id: Id::new("world", "anyone") },
        Acl { perms: Perms::ALL, id: Id::new("x509", admin.clone()) },
    ])
}

/// How much committed history is kept in memory for learners. Upstream's 500 records are gone in a moment under
/// load, and then every learner that was away reads from the disk or gets the whole tree.
const HISTORY_RECORDS: usize = 200_000;
const HISTORY_BYTES: usize = 64 << 20;

/// A server without a leader serves no client for a tick, and at least for this time. Most elections are over by then.
const READ_ONLY_AFTER_MIN_MS: u64 = 2_000;

/// The state of a member of an ensemble, as its data folder has it at the start; see [`EnsembleConfig`].
pub(super) struct MemberData {
    pub(super) may_start_empty: bool,
    pub(super) incomplete: bool,
    pub(super) accepted: Epoch,
    pub(super) current: Epoch,
    pub(super) log_from: Zxid,
}

pub(super) fn ensemble_config(
    config: &ServerConfig,
    ensemble: &EnsembleSettings,
    data: MemberData,
) -> EnsembleConfig {
    let tick = config.tick_time_ms as u64;
    EnsembleConfig {
        membership: ensemble.membership.clone(),
        pending: ensemble.pending.clone(),
        election: ElectionTiming {
            resend_min: ensemble.notification_min_ms.into(),
            resend_max: ensemble.notification_max_ms.into(),
            ..ElectionTiming::default()
        },
        timing: LeadingTiming {
            init: tick * u64::from(ensemble.init_limit),
            sync: tick * u64::from(ensemble.sync_limit),
        },
        refuse_others: ensemble.refuse_others,
        voters_min: if ensemble.standalone { 2 } else { 1 },
        observing: ObserverOptions {
            masters: ensemble.observer_master_port.is_some(),
            election_delay: ensemble.observer_election_delay_ms,
            reconnect_delay: ensemble.observer_reconnect_delay_ms,
        },
        epoch: epoch_length(config),
        history: HistoryLimits {
            records: HISTORY_RECORDS.max(ensemble.commit_log_count as usize),
            bytes: HISTORY_BYTES,
        },
        local_sessions: ensemble.local_sessions,
        read_only_after_ms: config.readonly_mode_enabled.then_some(tick.max(READ_ONLY_AFTER_MIN_MS)),
        may_start_empty: data.may_start_empty,
        incomplete: data.incomplete,
        accepted: data.accepted,
        current: data.current,
        log_from: data.log_from,
    }
}

/// The least `epochLength`: shorter epochs would end before learners have joined them.
const EPOCH_LENGTH_MIN: u32 = 1_000;

pub(super) fn epoch_length(config: &ServerConfig) -> EpochLength {
    let default = EpochLength::default();
    let in_place = (config.epoch_length > 0).then(|| config.epoch_length.max(EPOCH_LENGTH_MIN));
    let times = |factor| in_place.map_or(u32::MAX, |count| count.saturating_mul(factor));
    EpochLength { in_place, enough: default.enough.min(times(2)), most: default.most.min(times(3)) }
}

pub(super) fn backlog(clients: &ClientPortSettings) -> i32 {
    // All clients of a leader that has died come at once; one that finds no place tries again a second later. The
    // system takes less (net.core.somaxconn).
    const BACKLOG: i32 = 16_384;
    clients.client_port_listen_backlog.map_or(BACKLOG, |backlog| backlog as i32)
}

fn log_options(log: &TxnLogSettings) -> LogOptions {
    LogOptions {
        prealloc_bytes: log.pre_alloc_size_kb * 1024,
        size_limit_bytes: log.txn_log_size_limit_kb.map(|kb| kb * 1024),
        sync: log.force_sync,
    }
}

pub(super) fn conn_limits(config: &ServerConfig) -> ConnLimits {
    ConnLimits {
        frame_max: config.limits.jute_max_buffer as usize,
        unanswered_max: config.limits.global_outstanding_limit.max(1) as usize,
        sessionless: Duration::from_millis(config.clients.sessionless_cnxn_timeout_ms.into()),
    }
}

pub(super) fn keeping_options(config: &ServerConfig) -> PersistenceOptions {
    let beside = |ensemble: &EnsembleSettings| (ensemble.file.clone(), ensemble.me);
    PersistenceOptions {
        restoring: RestoreOptions {
            recover: RecoverOptions {
                trust_empty: config.folders.snapshot_trust_empty,
                db_autocreate: config.folders.db_autocreate,
                ..RecoverOptions::default()
            },
            types: config.tree.extended_types(),
            reads_ahead: true,
            clock: Some(Instant::now),
        },
        log: log_options(&config.log),
        snapshots: SnapshotOptions {
            compression: match config.snapshots.snapshot_compression {
                SnapshotCompression::None => Compression::None,
                SnapshotCompression::Gzip => Compression::Gz,
                SnapshotCompression::Snappy => Compression::Snappy,
            },
            digest: config.tree.digest_enabled,
            last_processed: config.snapshots.serialize_last_processed_zxid,
            keep: config.snapshots.purge_interval_hours.map(|_| config.snapshots.snap_retain_count as usize),
        },
        reconfigurable: config.ensemble.as_deref().filter(|_| config.reconfig_enabled).map(beside),
        is_member: config.ensemble.is_some(),
    }
}

pub(super) fn conn_counts(clients: &ClientPortSettings) -> ConnCounts {
    ConnCounts {
        per_address: clients.max_client_cnxns,
        ipv6_prefix: clients.max_client_cnxns_ipv6_prefix,
        total: clients.max_cnxns,
        keep_alive: clients.client_tcp_keep_alive,
    }
}

/// The time between purges; `None` if old files are never purged.
pub(super) fn purge_every(snapshots: &SnapshotSettings) -> Option<Duration> {
    snapshots.purge_interval_hours.map(|hours| Duration::from_secs(3600 * u64::from(hours.max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_server_core::auth::authenticate;

    /// The digest of `super:test` by each hash, from upstream's tests.
    #[test]
    fn the_hash_of_the_scheme_digest_is_the_one_that_zoo_cfg_names() {
        for (algorithm, hash) in [
            ("SHA1", "D/InIHSb7yEEbrWz8b9l71RjZJU="),
            ("SHA-256", "wjySwxg860UATFtciuZ1lpzrCHrPeov6SPu/ZD56uig="),
            (
                "SHA-512",
                "cMAGk13FCMtJkaVQImGEKhjqoGELCiVjYdIhiD8stB1FnIpdGeFvKwAHh5mf4tUYmBR2ZY9181dZTXEHMlkVhg==",
            ),
            ("SHA3-256", "cRy/KPYuDpW/dtsepniTMpuiuupnWgdU9txltIfv3hA="),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("zoo.cfg");
            let text = format!(
                "dataDir=/d\nclientPort=2181\nDigestAuthenticationProvider.digestAlg={algorithm}\n\
                 DigestAuthenticationProvider.superDigest=super:{hash}\n"
            );
            std::fs::write(&file, text).unwrap();
            let config = crate::config::load(&file).unwrap_or_else(|error| panic!("{error}")).config;
            let ids = authenticate(
                &core_config(&config, true, false),
                [127, 0, 0, 1].into(),
                Some("digest"),
                Some(b"super:test"),
            );
            let ids: Vec<String> = ids.unwrap().iter().map(|id| format!("{} {}", id.scheme, id.id)).collect();
            assert_eq!(ids, ["super ".to_owned(), format!("digest super:{hash}")], "{algorithm}");
        }
    }
}
