//! The settings of the core.

use crate::{requests::auth::DigestAlgorithm, sessions::passwords::Passwords};
use alloc::{string::String, vec::Vec};
use core::num::NonZeroU64;
use ostler_proto::{acl::Acl, id::ServerId, stat::ExtendedTypes};

/// Settings of one member; times in milliseconds.
#[derive(Debug, Clone)]
pub struct CoreConfig {
    /// This server's id (`myid`); a standalone server is 1.
    pub server: ServerId,
    /// Sessions expire in steps of this time (`tickTime`).
    pub tick_time_ms: u64,
    /// The shortest session timeout granted.
    pub session_timeout_min_ms: i32,
    /// The longest session timeout granted.
    pub session_timeout_max_ms: i32,
    /// Whether TTL znodes exist (`extendedTypesEnabled`), and how they are stored.
    pub types: ExtendedTypes,
    /// Whether transactions carry the tree's digest.
    pub digest: bool,
    /// The digest id that may do everything.
    pub super_digest: Option<String>,
    /// The hash in ids of the scheme `digest`.
    pub digest_algorithm: DigestAlgorithm,
    /// Whether the digest scheme exists.
    pub digest_auth: bool,
    /// Whether the scheme `x509` exists: clients may have certificates.
    pub x509_auth: bool,
    /// The subject of the client certificate whose owner may do everything (`X509AuthenticationProvider.superUser`).
    pub x509_super_user: Option<String>,
    /// Whether clients can log in by SASL: the shell has a mechanism.
    pub sasl: bool,
    /// Whether ACLs may have the scheme `sasl` (`authProvider.N` with the SASLAuthenticationProvider).
    pub sasl_acls: bool,
    /// The users of SASL that may do everything (`superUser` and `superUser.N`).
    pub sasl_super_users: Vec<String>,
    /// ACL entries of the scheme `sasl` with this id are for every user of SASL (`letAnySaslUserDoX`).
    pub let_any_sasl_user: Option<String>,
    /// Whether a client whose login fails may stay without it.
    pub allow_sasl_failed_clients: bool,
    /// The names by which clients may call this ensemble (`ensembleAuthName`); a client that calls it by another name is
    /// at the wrong ensemble. `None`: the scheme `ensemble` does not exist.
    pub ensemble_names: Option<Vec<String>>,
    /// How session passwords are made and judged.
    pub passwords: Passwords,
    /// The ACL that the root gets with the first transaction of a new ensemble. `None`: it stays open, as upstream's.
    pub first_root_acl: Option<Vec<Acl>>,
    /// Whether no ACL is checked (`skipACL`).
    pub skip_acl: bool,
    /// A connection must have an identity of one of these schemes before its requests are served. Empty: none is
    /// needed.
    pub enforced_auth_schemes: Vec<String>,
    /// Whether hard quotas refuse writes.
    pub enforce_quota: bool,
    /// Whether `reconfig` is allowed at all.
    pub reconfig: bool,
    /// Whether the server can write a changed configuration to its files, so that the next start finds it.
    pub keeps_config: bool,
    /// Whether closeSession transactions have the list of the session's ephemerals.
    pub close_session_paths: bool,
    /// The time between two searches for containers and TTL znodes to delete (`znode.container.checkIntervalMs`).
    pub reaper_interval_ms: u64,
    /// The most containers and TTL znodes that are deleted in a minute.
    pub reaper_max_per_minute: u32,
    /// The time after which a container is deleted that never had a child; 0 keeps it.
    pub container_max_never_used_ms: i64,
    /// Transactions between snapshots, within a factor of two (`snapCount`).
    pub snapshot_txns: u64,
    /// Bytes of log between snapshots, within a factor of two (`snapSizeLimitInKb`); `None` is no limit.
    pub snapshot_log_bytes: Option<u64>,
    /// Requests that take this time or more, in ms, are kept and logged with their stages; `None`: none are.
    pub slow_request_ms: Option<u64>,
    /// Requests of this number of bytes or more are noted with the client's address.
    pub large_request_bytes: usize,
    /// One request in this number is traced ([`Server::take_traced`](crate::Server::take_traced)); `None`: none are.
    pub traced_one_in: Option<NonZeroU64>,
    /// Whether clients' writes and the ends of ephemerals are recorded ([`Effect::Audit`]).
    ///
    /// [`Effect::Audit`]: crate::Effect::Audit
    pub audit: bool,
    /// Whether failed authentications are recorded, too.
    pub audit_auth_failures: bool,
    /// A random number that differs between servers, so that they do not write snapshots at the same time.
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
            x509_auth: false,
            x509_super_user: None,
            sasl: false,
            sasl_acls: false,
            sasl_super_users: Vec::new(),
            let_any_sasl_user: None,
            allow_sasl_failed_clients: false,
            ensemble_names: None,
            passwords: Passwords::default(),
            first_root_acl: None,
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
            slow_request_ms: Some(1000),
            large_request_bytes: usize::MAX,
            traced_one_in: None,
            audit: false,
            audit_auth_failures: true,
            seed: 1,
        }
    }
}
