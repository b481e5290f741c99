//! The settings in groups, one for each part of the server.
//!
//! Fields have the names of the keys of zoo.cfg, with units. The defaults named here are those of a zoo.cfg that does
//! not have the key.

use super::sasl::{self, SaslSettings};
use super::session_passwords::SessionPasswords;
use super::settings::Settings;
use ostler_proto::stat::ExtendedTypes;
use ostler_server_core::auth::DigestAlgorithm;
use ostler_storage::{disk::PRIVATE, snapshot::body::LONGEST_FIELD};
use ostler_tls::settings::TlsSettings;
use std::{net::SocketAddr, path::PathBuf};

/// Java raises lower values of `snapCount` to this one.
pub(super) const MIN_SNAP_COUNT: u32 = 2;
/// Java raises lower values of `autopurge.snapRetainCount` to this one.
pub(super) const MIN_SNAP_RETAIN_COUNT: u32 = 3;

/// The port for clients, and the limits of their connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientPortSettings {
    /// The address for clients. `[::]` stands for all interfaces, IPv4 included; on a machine without IPv6 bind 0.0.0.0
    /// instead. `None` if clients have the secure port only.
    pub client_address: Option<SocketAddr>,
    /// TLS for clients; `None` if there is none.
    pub secure: Option<Box<SecurePort>>,
    /// Connections that wait to be accepted. `None`, the default, for the system's own number.
    pub client_port_listen_backlog: Option<u32>,
    /// Connections in all. `None`, the default, for no limit.
    pub max_cnxns: Option<u32>,
    /// Connections from one IP address, 60 by default. `None` for no limit.
    pub max_client_cnxns: Option<u32>,
    /// IPv6 addresses that have this number of first bits in common count as one address; 64 by default.
    pub max_client_cnxns_ipv6_prefix: u8,
    /// Whether TCP probes idle connections; false by default.
    pub client_tcp_keep_alive: bool,
    /// A connection without a session is closed after this time, 10 s by default.
    pub sessionless_cnxn_timeout_ms: u32,
}

/// TLS for clients: a port of its own, or the same port, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurePort {
    /// `secureClientPort` and `secureClientPortAddress`. `None` if only the plain port takes TLS.
    pub address: Option<SocketAddr>,
    /// Whether the plain port takes TLS, too (`client.portUnification`).
    pub unification: bool,
    /// The keys `ssl.*`.
    pub tls: TlsSettings,
}

/// How much clients may ask for at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of the largest packet, and of the largest field in one; 1,048,575 by default.
    pub jute_max_buffer: u32,
    /// Unanswered requests of a connection at which the server stops reading from the connection; 1000 by default.
    pub global_outstanding_limit: u32,
    /// Bytes that the answers of all connections may take while they wait. `None`, the default, for a part of the
    /// machine's memory.
    pub large_answers_max_bytes: Option<u64>,
    /// Requests that take this time or more, in ms, are logged with their stages; 1 s by default, `None` for none.
    pub slow_request_ms: Option<u64>,
}

/// The folders with the data, and what may be missing in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFolderSettings {
    /// The folder of snapshots, without `version-2`.
    pub data_dir: PathBuf,
    /// The folder of logs, without `version-2`; the same as `data_dir` by default.
    pub data_log_dir: PathBuf,
    /// The mode of new files, 0600 by default. A folder can be entered by those that the mode lets read its files.
    pub files_mode: u32,
    /// Whether missing folders are made at the start; true by default.
    pub datadir_autocreate: bool,
    /// Whether the server starts with an empty tree if there are no files; true by default.
    pub db_autocreate: bool,
    /// Whether the server starts from logs although there is no snapshot; false by default.
    pub snapshot_trust_empty: bool,
}

/// The transaction log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnLogSettings {
    /// KiB by which a file is extended ahead of writing; 65,536 by default.
    pub pre_alloc_size_kb: u64,
    /// KiB after which a new file is begun. `None`, the default, for no limit.
    pub txn_log_size_limit_kb: Option<u64>,
    /// Whether writes are on disk before they are answered; true by default. If false, a power failure loses writes.
    pub force_sync: bool,
    /// A disk write that takes longer is logged as slow; 1 s by default.
    pub fsync_warning_threshold_ms: u64,
}

/// The times and the form of snapshots, and the number that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// Transactions after which a snapshot is taken; 100,000 by default, at least 2.
    pub snap_count: u32,
    /// KiB of log after which a snapshot is taken; 4 GiB by default. `None` for no limit.
    pub snap_size_limit_kb: Option<u64>,
    /// Snapshots that a purge keeps; 3 by default and at least.
    pub snap_retain_count: u32,
    /// Hours between purges; 1 by default. `None`: old files are never purged.
    pub purge_interval_hours: Option<u32>,
    /// None by default.
    pub snapshot_compression: SnapshotCompression,
    /// Whether a snapshot ends with the last zxid in it; true by default.
    pub serialize_last_processed_zxid: bool,
}

/// `snapshot.compression.method`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotCompression {
    None,
    Gzip,
    Snappy,
}

/// How long sessions live without their clients, their passwords, and how they end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// The shortest timeout that a client gets; 2 ticks by default.
    pub min_session_timeout_ms: i32,
    /// The longest timeout that a client gets; 20 ticks by default.
    pub max_session_timeout_ms: i32,
    /// By default the ones of ZooKeeper, which are derived from the session's id.
    pub session_passwords: SessionPasswords,
    /// Whether the end of a session lists the session's ephemerals in the log; true by default.
    pub close_session_txn_enabled: bool,
}

/// The features of the tree, and the deletion of its containers and TTL znodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeSettings {
    /// Whether transactions and snapshots have the digest of the tree; true by default.
    pub digest_enabled: bool,
    /// Whether writes over a hard quota fail; false by default.
    pub enforce_quota: bool,
    /// Whether TTL znodes can be created; false by default.
    pub extended_types_enabled: bool,
    /// Whether TTL znodes are marked as ZooKeeper 3.5.3 did; false by default.
    pub emulate_353_ttl_nodes: bool,
    pub containers: Containers,
}

/// How empty containers and expired TTL znodes are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Containers {
    /// Time between looks for empty containers and expired TTL znodes; 1 minute by default.
    pub check_interval_ms: u64,
    /// Containers and TTL znodes that are deleted in a minute at most; 10,000 by default.
    pub max_per_minute: u32,
    /// A container that never had a child is deleted after this time. `None`, the default: it stays.
    pub max_never_used_interval_ms: Option<u64>,
}

/// ACLs, and how clients authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// Whether ACLs are not checked, so that every client may do everything; false by default.
    pub skip_acl: bool,
    /// Whether the scheme digest can be used; true by default.
    pub digest_auth_enabled: bool,
    /// The hash of the scheme digest; SHA1 by default.
    pub digest_auth_alg: DigestAlgorithm,
    /// `super:<hash>`: the digest id that becomes the super user. None by default.
    pub super_digest: Option<String>,
    /// The subject of the client certificate whose owner may do everything. None by default.
    pub x509_super_user: Option<String>,
    /// SASL logins of clients. None by default.
    pub sasl: Option<SaslSettings>,
    /// The names by which clients may call this ensemble (`ensembleAuthName`, with a line `authProvider.N` for the
    /// EnsembleAuthenticationProvider). None by default.
    pub ensemble_names: Option<Vec<String>>,
    /// Whether ACLs may have the scheme `sasl`; false by default.
    pub sasl_acls: bool,
    /// The users of SASL that may do everything. None by default.
    pub sasl_super_users: Vec<String>,
    /// ACL entries of the scheme `sasl` with this id are for every user of SASL. None by default.
    pub let_any_sasl_user: Option<String>,
    /// Whether connections need one of `enforce_auth_schemes`; false by default. True with
    /// `session_require_client_sasl_auth` too.
    pub enforce_auth_enabled: bool,
    /// Not empty when `enforce_auth_enabled`; `["sasl"]` with `session_require_client_sasl_auth`.
    pub enforce_auth_schemes: Vec<String>,
    /// As `enforce_auth_enabled` with the one scheme sasl; false by default.
    pub session_require_client_sasl_auth: bool,
    /// Whether a client whose SASL exchange fails may stay; false by default.
    pub allow_sasl_failed_clients: bool,
}

fn limit_u32(settings: &Settings, name: &str) -> Option<u32> {
    settings.limit(name).and_then(|limit| u32::try_from(limit).ok())
}

impl ClientPortSettings {
    pub(super) fn read(settings: &Settings, client_address: Option<SocketAddr>) -> ClientPortSettings {
        ClientPortSettings {
            client_address,
            secure: None,
            client_port_listen_backlog: limit_u32(settings, "clientPortListenBacklog"),
            max_cnxns: limit_u32(settings, "maxCnxns"),
            max_client_cnxns: limit_u32(settings, "maxClientCnxns"),
            max_client_cnxns_ipv6_prefix: settings.unsigned("maxClientCnxns.ipv6Prefix").min(128) as u8,
            client_tcp_keep_alive: settings.bool("clientTcpKeepAlive"),
            sessionless_cnxn_timeout_ms: settings.unsigned("nio.sessionlessCnxnTimeout"),
        }
    }
}

impl RequestLimits {
    pub(super) fn read(settings: &Settings) -> RequestLimits {
        RequestLimits {
            // A longer field could be written into a snapshot, and not be read again.
            jute_max_buffer: settings.unsigned("jute.maxbuffer").min(LONGEST_FIELD as u32),
            global_outstanding_limit: settings.unsigned("globalOutstandingLimit"),
            large_answers_max_bytes: settings.limit("largeAnswersMaxBytes"),
            slow_request_ms: u64::try_from(settings.int("slowRequestThresholdMs")).ok(),
        }
    }
}

impl DataFolderSettings {
    pub(super) fn read(settings: &Settings, data_dir: PathBuf) -> DataFolderSettings {
        let mode = settings.text("files.mode").and_then(|digits| u32::from_str_radix(&digits, 8).ok());
        DataFolderSettings {
            data_log_dir: settings.text("dataLogDir").map_or_else(|| data_dir.clone(), PathBuf::from),
            data_dir,
            files_mode: mode.unwrap_or(PRIVATE),
            datadir_autocreate: settings.bool("datadir.autocreate"),
            db_autocreate: settings.bool("db.autocreate"),
            snapshot_trust_empty: settings.bool("snapshot.trust.empty"),
        }
    }
}

impl TxnLogSettings {
    pub(super) fn read(settings: &Settings) -> TxnLogSettings {
        TxnLogSettings {
            pre_alloc_size_kb: settings.unsigned("preAllocSize").into(),
            txn_log_size_limit_kb: settings.limit("txnLogSizeLimitInKb"),
            force_sync: settings.bool("forceSync"),
            fsync_warning_threshold_ms: settings.unsigned("fsync.warningthresholdms").into(),
        }
    }
}

impl SnapshotSettings {
    pub(super) fn read(settings: &Settings) -> SnapshotSettings {
        SnapshotSettings {
            snap_count: settings.unsigned("snapCount").max(MIN_SNAP_COUNT),
            snap_size_limit_kb: settings.limit("snapSizeLimitInKb"),
            snap_retain_count: settings.unsigned("autopurge.snapRetainCount").max(MIN_SNAP_RETAIN_COUNT),
            purge_interval_hours: limit_u32(settings, "autopurge.purgeInterval"),
            snapshot_compression: match settings.text("snapshot.compression.method").as_deref() {
                Some("gz") => SnapshotCompression::Gzip,
                Some("snappy") => SnapshotCompression::Snappy,
                _ => SnapshotCompression::None,
            },
            serialize_last_processed_zxid: settings.bool("serializeLastProcessedZxid.enabled"),
        }
    }
}

impl TreeSettings {
    pub(super) fn read(settings: &Settings) -> TreeSettings {
        TreeSettings {
            digest_enabled: settings.bool("digest.enabled"),
            enforce_quota: settings.bool("enforceQuota"),
            extended_types_enabled: settings.bool("extendedTypesEnabled"),
            emulate_353_ttl_nodes: settings.bool("emulate353TTLNodes"),
            containers: Containers {
                check_interval_ms: settings.unsigned("znode.container.checkIntervalMs").into(),
                max_per_minute: settings.unsigned("znode.container.maxPerMinute"),
                max_never_used_interval_ms: settings.limit("znode.container.maxNeverUsedIntervalMs"),
            },
        }
    }

    /// The kinds of znodes that can be created, as the parts below the server take them.
    pub(crate) fn extended_types(&self) -> ExtendedTypes {
        ExtendedTypes { enabled: self.extended_types_enabled, emulate_353: self.emulate_353_ttl_nodes }
    }
}

impl AuthSettings {
    /// `enforced` are the schemes of which each connection needs one; empty if connections need none.
    pub(super) fn read(settings: &Settings, enforced: Vec<String>) -> AuthSettings {
        let algorithm = settings.text("DigestAuthenticationProvider.digestAlg");
        AuthSettings {
            skip_acl: settings.bool("skipACL"),
            digest_auth_enabled: settings.bool("DigestAuthenticationProvider.enabled"),
            digest_auth_alg: algorithm.and_then(|name| DigestAlgorithm::from_name(&name)).unwrap_or_default(),
            super_digest: settings
                .text("DigestAuthenticationProvider.superDigest")
                .filter(|digest| !digest.is_empty()),
            x509_super_user: settings
                .text("X509AuthenticationProvider.superUser")
                .filter(|subject| !subject.is_empty()),
            sasl: SaslSettings::read(settings),
            ensemble_names: sasl::ensemble_names(settings),
            sasl_acls: sasl::has_provider(settings),
            sasl_super_users: sasl::super_users(settings),
            let_any_sasl_user: settings.text("letAnySaslUserDoX").filter(|name| !name.is_empty()),
            enforce_auth_enabled: !enforced.is_empty(),
            enforce_auth_schemes: enforced,
            session_require_client_sasl_auth: settings.bool("sessionRequireClientSASLAuth"),
            allow_sasl_failed_clients: settings.bool("allowSaslFailedClients"),
        }
    }
}
