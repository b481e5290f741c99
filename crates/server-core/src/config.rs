//! What the core needs to know of its configuration.

use crate::{auth::DigestAlgorithm, passwords::Passwords};
use alloc::{string::String, vec::Vec};
use ostler_proto::{id::ServerId, stat::ExtendedTypes};

/// Settings of one member; times in milliseconds.
#[derive(Debug, Clone)]
pub struct CoreConfig {
    /// This server's number; a standalone server is 1.
    pub server: ServerId,
    /// Sessions expire in steps of this.
    pub tick_time_ms: u64,
    /// The shortest session timeout granted.
    pub session_timeout_min_ms: i32,
    /// The longest session timeout granted.
    pub session_timeout_max_ms: i32,
    /// Whether TTL nodes exist, and how they are stored.
    pub types: ExtendedTypes,
    /// Whether transactions carry the tree's digest.
    pub digest: bool,
    /// The digest id that may do everything.
    pub super_digest: Option<String>,
    /// The hash in ids of the scheme `digest`.
    pub digest_algorithm: DigestAlgorithm,
    /// Whether the digest scheme exists.
    pub digest_auth: bool,
    /// How session passwords are made and judged.
    pub passwords: Passwords,
    /// Nobody's ACL is checked.
    pub skip_acl: bool,
    /// Schemes of which a connection must have one before it may ask for anything.
    pub enforced_auth_schemes: Vec<String>,
    /// Whether hard quotas refuse writes.
    pub enforce_quota: bool,
    /// Whether `reconfig` is allowed at all.
    pub reconfig: bool,
    /// Whether the configuration that a `reconfig` makes could be kept for the next start.
    pub keeps_config: bool,
    /// Write the list of ephemerals into closeSession transactions.
    pub close_session_paths: bool,
    /// How often containers and TTL nodes are looked at.
    pub reaper_interval_ms: u64,
    /// How many of them are deleted a minute at most.
    pub reaper_max_per_minute: u32,
    /// Delete containers that never had a child after this; 0 keeps them.
    pub container_max_never_used_ms: i64,
    /// Transactions between snapshots, within a factor of two.
    pub snapshot_txns: u64,
    /// Bytes of log between snapshots, within a factor of two; `None` is no limit.
    pub snapshot_log_bytes: Option<u64>,
    /// Spreads the snapshots of several servers.
    pub seed: u64,
}

impl Default for CoreConfig {
    fn default() -> Self {
        CoreConfig {
            server: ServerId(1),
            tick_time_ms: 2000,
            session_timeout_min_ms: 4000,
            session_timeout_max_ms: 40_000,
            types: ExtendedTypes::default(),
            digest: true,
            super_digest: None,
            digest_algorithm: DigestAlgorithm::default(),
            digest_auth: true,
            passwords: Passwords::default(),
            skip_acl: false,
            enforced_auth_schemes: Vec::new(),
            enforce_quota: false,
            reconfig: false,
            keeps_config: true,
            close_session_paths: true,
            reaper_interval_ms: 60_000,
            reaper_max_per_minute: 10_000,
            container_max_never_used_ms: 0,
            snapshot_txns: 100_000,
            snapshot_log_bytes: Some(4 << 30),
            seed: 1,
        }
    }
}
