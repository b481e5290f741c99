//! The settings that a server obeys, with their types and units.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use super::ensemble::{self, Deployment, EnsembleSettings, OwnLine};
use super::error::{ConfigError, NoteLevel};
use super::properties::Entry;
use super::session_passwords::SessionPasswords;
use super::settings::Settings;
use crate::admin::four_letter::Whitelist;
use ostler_server_core::auth::DigestAlgorithm;
use ostler_storage::{disk::PRIVATE, snapshot::body::LONGEST_FIELD};

/// The data folder of a server without a file, relative to the working directory.
pub const EMBEDDED_DATA_DIR: &str = "ostler-data";
/// The port of a server without a file.
pub const EMBEDDED_PORT: u16 = 2181;

const EMBEDDED_TICK_TIME_MS: i32 = 2000;
/// The least values of these settings. Upstream raises lower ones.
const MIN_SNAP_COUNT: u32 = 2;
const MIN_SNAP_RETAIN_COUNT: u32 = 3;

/// All settings that a server obeys. Names follow the keys of zoo.cfg, with units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address for clients. `[::]` stands for all interfaces, IPv4 included; on a machine without IPv6 bind 0.0.0.0
    /// instead.
    pub client_address: SocketAddr,
    /// `None` for the system's own number.
    pub client_port_listen_backlog: Option<u32>,
    /// Connections in all; `None` for no limit.
    pub max_cnxns: Option<u32>,
    /// Connections from one IP address; `None` for no limit.
    pub max_client_cnxns: Option<u32>,
    /// IPv6 addresses that have this number of first bits in common count as one.
    pub max_client_cnxns_ipv6_prefix: u8,
    pub client_tcp_keep_alive: bool,
    /// A connection without a session is closed after this time.
    pub sessionless_cnxn_timeout_ms: u32,
    /// The largest packet, and the largest field in one.
    pub jute_max_buffer: u32,

    /// Without `version-2`.
    pub data_dir: PathBuf,
    /// Without `version-2`; the same as `data_dir` unless set.
    pub data_log_dir: PathBuf,
    /// The mode of new files. A folder can be entered by those that may read its files.
    pub files_mode: u32,
    pub datadir_autocreate: bool,
    pub db_autocreate: bool,
    pub snapshot_trust_empty: bool,
    pub snap_count: u32,
    pub snap_size_limit_kb: Option<u64>,
    pub pre_alloc_size_kb: u64,
    pub txn_log_size_limit_kb: Option<u64>,
    pub force_sync: bool,
    pub fsync_warning_threshold_ms: u64,
    pub snap_retain_count: u32,
    /// `None` if old files are never purged.
    pub purge_interval_hours: Option<u32>,
    pub snapshot_compression: SnapshotCompression,
    pub serialize_last_processed_zxid: bool,
    pub close_session_txn_enabled: bool,
    pub digest_enabled: bool,

    pub tick_time_ms: i32,
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    pub global_outstanding_limit: u32,
    /// Bytes that the answers of all connections may take while they wait; `None` for a sixteenth of the memory.
    pub large_answers_max_bytes: Option<u64>,
    pub enforce_quota: bool,
    pub extended_types_enabled: bool,
    pub emulate_353_ttl_nodes: bool,
    pub containers: Containers,

    pub session_passwords: SessionPasswords,
    pub skip_acl: bool,
    pub digest_auth_enabled: bool,
    pub digest_auth_alg: DigestAlgorithm,
    /// `super:<hash>`: the digest id that becomes the super user.
    pub super_digest: Option<String>,
    /// True with `session_require_client_sasl_auth` too.
    pub enforce_auth_enabled: bool,
    /// Not empty when `enforce_auth_enabled`; `["sasl"]` with `session_require_client_sasl_auth`.
    pub enforce_auth_schemes: Vec<String>,
    pub session_require_client_sasl_auth: bool,
    pub allow_sasl_failed_clients: bool,

    pub four_letter_whitelist: Whitelist,
    pub readonly_mode_enabled: bool,
    pub reconfig_enabled: bool,
    /// `None` for a standalone server.
    pub ensemble: Option<Box<EnsembleSettings>>,
}

/// How empty containers and expired TTL znodes are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Containers {
    pub check_interval_ms: u64,
    pub max_per_minute: u32,
    /// `None` if a container that never had a child stays.
    pub max_never_used_interval_ms: Option<u64>,
}

/// `snapshot.compression.method`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotCompression {
    None,
    Gzip,
    Snappy,
}

impl ServerConfig {
    /// The settings of a server without a file: loopback only, ticks of 2 seconds, data in `data_dir` (see
    /// [`EMBEDDED_DATA_DIR`]), and for the rest the defaults of zoo.cfg.
    pub fn embedded(data_dir: impl Into<PathBuf>) -> ServerConfig {
        let client_address = SocketAddr::from((Ipv4Addr::LOCALHOST, EMBEDDED_PORT));
        let timeouts = SessionTimeouts::of_ticks(EMBEDDED_TICK_TIME_MS);
        assemble(&Settings::default(), client_address, data_dir.into(), timeouts, Vec::new())
    }
}

/// The settings of a zoo.cfg; `file` names it in messages.
pub(super) fn from_file(file: &str, settings: &mut Settings) -> Result<ServerConfig, ConfigError> {
    let data_dir = settings.text("dataDir").ok_or_else(|| ConfigError::Missing {
        file: file.into(),
        key: "dataDir",
        example: "dataDir=/var/lib/zookeeper",
    })?;
    let deployment = ensemble::deployment(file, settings, data_dir.as_ref())?;
    let client_address = client_address(file, settings, deployment.own())?;
    let timeouts = SessionTimeouts::from_settings(settings)?;
    let schemes = enforced_schemes(settings)?;
    if let Deployment::Standalone(own) = &deployment {
        note_standalone(settings, own);
    }
    note_lowered(settings, "jute.maxbuffer", LONGEST_FIELD as u32);
    note_raised(settings, "snapCount", MIN_SNAP_COUNT);
    note_raised(settings, "autopurge.snapRetainCount", MIN_SNAP_RETAIN_COUNT);
    let session_passwords = SessionPasswords::from_settings(settings)?;
    let mut config = assemble(settings, client_address, data_dir.into(), timeouts, schemes);
    config.session_passwords = session_passwords;
    if let Deployment::Ensemble(ensemble, _) = deployment {
        config.ensemble = Some(ensemble);
    }
    Ok(config)
}

fn digest_algorithm(settings: &Settings) -> DigestAlgorithm {
    let name = settings.text("DigestAuthenticationProvider.digestAlg");
    name.and_then(|name| DigestAlgorithm::from_name(&name)).unwrap_or_default()
}

fn assemble(
    settings: &Settings,
    client_address: SocketAddr,
    data_dir: PathBuf,
    timeouts: SessionTimeouts,
    enforce_auth_schemes: Vec<String>,
) -> ServerConfig {
    let limit_u32 = |name| settings.limit(name).and_then(|limit| u32::try_from(limit).ok());
    // A longer field could be written into a snapshot, and not be read again.
    let jute_max_buffer = settings.unsigned("jute.maxbuffer").min(LONGEST_FIELD as u32);
    let readonly_mode_enabled = settings.bool("readonlymode.enabled");
    let whitelist = settings.text("4lw.commands.whitelist");
    ServerConfig {
        client_address,
        client_port_listen_backlog: limit_u32("clientPortListenBacklog"),
        max_cnxns: limit_u32("maxCnxns"),
        max_client_cnxns: limit_u32("maxClientCnxns"),
        max_client_cnxns_ipv6_prefix: settings.unsigned("maxClientCnxns.ipv6Prefix").min(128) as u8,
        client_tcp_keep_alive: settings.bool("clientTcpKeepAlive"),
        sessionless_cnxn_timeout_ms: settings.unsigned("nio.sessionlessCnxnTimeout"),
        jute_max_buffer,
        data_log_dir: settings.text("dataLogDir").map_or_else(|| data_dir.clone(), PathBuf::from),
        data_dir,
        files_mode: files_mode(settings),
        datadir_autocreate: settings.bool("datadir.autocreate"),
        db_autocreate: settings.bool("db.autocreate"),
        snapshot_trust_empty: settings.bool("snapshot.trust.empty"),
        snap_count: settings.unsigned("snapCount").max(MIN_SNAP_COUNT),
        snap_size_limit_kb: settings.limit("snapSizeLimitInKb"),
        pre_alloc_size_kb: settings.unsigned("preAllocSize").into(),
        txn_log_size_limit_kb: settings.limit("txnLogSizeLimitInKb"),
        force_sync: settings.bool("forceSync"),
        fsync_warning_threshold_ms: settings.unsigned("fsync.warningthresholdms").into(),
        snap_retain_count: settings.unsigned("autopurge.snapRetainCount").max(MIN_SNAP_RETAIN_COUNT),
        purge_interval_hours: limit_u32("autopurge.purgeInterval"),
        snapshot_compression: snapshot_compression(settings),
        serialize_last_processed_zxid: settings.bool("serializeLastProcessedZxid.enabled"),
        close_session_txn_enabled: settings.bool("closeSessionTxn.enabled"),
        digest_enabled: settings.bool("digest.enabled"),
        tick_time_ms: timeouts.tick_time_ms,
        min_session_timeout_ms: timeouts.min_ms,
        max_session_timeout_ms: timeouts.max_ms,
        global_outstanding_limit: settings.unsigned("globalOutstandingLimit"),
        large_answers_max_bytes: settings.limit("largeAnswersMaxBytes"),
        enforce_quota: settings.bool("enforceQuota"),
        extended_types_enabled: settings.bool("extendedTypesEnabled"),
        emulate_353_ttl_nodes: settings.bool("emulate353TTLNodes"),
        containers: Containers {
            check_interval_ms: settings.unsigned("znode.container.checkIntervalMs").into(),
            max_per_minute: settings.unsigned("znode.container.maxPerMinute"),
            max_never_used_interval_ms: settings.limit("znode.container.maxNeverUsedIntervalMs"),
        },
        session_passwords: SessionPasswords::default(),
        skip_acl: settings.bool("skipACL"),
        digest_auth_enabled: settings.bool("DigestAuthenticationProvider.enabled"),
        digest_auth_alg: digest_algorithm(settings),
        super_digest: settings
            .text("DigestAuthenticationProvider.superDigest")
            .filter(|digest| !digest.is_empty()),
        enforce_auth_enabled: !enforce_auth_schemes.is_empty(),
        enforce_auth_schemes,
        session_require_client_sasl_auth: settings.bool("sessionRequireClientSASLAuth"),
        allow_sasl_failed_clients: settings.bool("allowSaslFailedClients"),
        four_letter_whitelist: Whitelist::new(whitelist.as_deref(), readonly_mode_enabled),
        readonly_mode_enabled,
        reconfig_enabled: settings.bool("reconfigEnabled"),
        ensemble: None,
    }
}

fn files_mode(settings: &Settings) -> u32 {
    settings.text("files.mode").and_then(|digits| u32::from_str_radix(&digits, 8).ok()).unwrap_or(PRIVATE)
}

fn snapshot_compression(settings: &Settings) -> SnapshotCompression {
    match settings.text("snapshot.compression.method").as_deref() {
        Some("gz") => SnapshotCompression::Gzip,
        Some("snappy") => SnapshotCompression::Snappy,
        _ => SnapshotCompression::None,
    }
}

/// The address for clients. The client part of this server's server.N line wins over clientPort and clientPortAddress,
/// which must not contradict it.
fn client_address(file: &str, settings: &Settings, own: Option<&OwnLine>) -> Result<SocketAddr, ConfigError> {
    let written = written_client_address(settings)?;
    let of_server = own.and_then(|server| Some((&server.entry, server.client.as_ref()?)));
    let Some((entry, client)) = of_server else {
        return written.ok_or_else(|| ConfigError::Missing {
            file: file.into(),
            key: "clientPort",
            example: "clientPort=2181",
        });
    };
    let address = resolve(settings, entry, &client.host, client.port)?;
    match written {
        Some(written) if !covers(written, address) => Err(entry.refused(format!(
            "names the client address {address}, but clientPort and clientPortAddress name {written}; \
             remove one of the two"
        ))),
        _ => Ok(address),
    }
}

fn covers(general: SocketAddr, special: SocketAddr) -> bool {
    general.port() == special.port() && (general.ip().is_unspecified() || general.ip() == special.ip())
}

fn written_client_address(settings: &Settings) -> Result<Option<SocketAddr>, ConfigError> {
    let host = settings.entry("clientPortAddress").filter(|entry| !entry.value.is_empty());
    if settings.entry("clientPort").is_none() {
        return match host {
            Some(entry) => Err(entry.refused("needs a port; add a line such as clientPort=2181")),
            None => Ok(None),
        };
    }
    let port = u16::try_from(settings.int("clientPort")).expect("the range of clientPort is that of a port");
    match host {
        Some(entry) => resolve(settings, entry, &entry.value, port).map(Some),
        None => Ok(Some((IpAddr::V6(Ipv6Addr::UNSPECIFIED), port).into())),
    }
}

fn resolve(settings: &Settings, entry: &Entry, host: &str, port: u16) -> Result<SocketAddr, ConfigError> {
    let bare_host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let none = |reason: String| ConfigError::NoAddress {
        location: entry.location.clone(),
        key: entry.key.clone(),
        value: entry.value.clone(),
        reason,
        retries: ensemble::bind_retries(settings),
    };
    let mut addresses = (bare_host, port).to_socket_addrs().map_err(|error| none(error.to_string()))?;
    addresses.next().ok_or_else(|| none("the name stands for no address".into()))
}

struct SessionTimeouts {
    tick_time_ms: i32,
    min_ms: i32,
    max_ms: i32,
}

impl SessionTimeouts {
    fn of_ticks(tick_time_ms: i32) -> SessionTimeouts {
        SessionTimeouts { tick_time_ms, min_ms: tick_time_ms * 2, max_ms: tick_time_ms * 20 }
    }

    fn from_settings(settings: &Settings) -> Result<SessionTimeouts, ConfigError> {
        let int =
            |name| i32::try_from(settings.int(name)).expect("the ranges of the timeouts are those of an int");
        let of_ticks = SessionTimeouts::of_ticks(int("tickTime"));
        let timeouts = SessionTimeouts {
            min_ms: Some(int("minSessionTimeout")).filter(|&ms| ms != -1).unwrap_or(of_ticks.min_ms),
            max_ms: Some(int("maxSessionTimeout")).filter(|&ms| ms != -1).unwrap_or(of_ticks.max_ms),
            ..of_ticks
        };
        if timeouts.min_ms <= timeouts.max_ms {
            return Ok(timeouts);
        }
        let (min_ms, max_ms) = (timeouts.min_ms, timeouts.max_ms);
        match (settings.entry("minSessionTimeout"), settings.entry("maxSessionTimeout")) {
            (_, Some(max)) => Err(max.bad_value(format!("at least minSessionTimeout, which is {min_ms}"))),
            (Some(min), None) => {
                Err(min.bad_value(format!("at most maxSessionTimeout, which is {max_ms} (20 ticks)")))
            }
            (None, None) => Ok(timeouts),
        }
    }
}

/// The schemes of which every connection must have one; empty if none is enforced. A server does not start with a scheme
/// that no client can have, as upstream: it would lock everybody out.
fn enforced_schemes(settings: &mut Settings) -> Result<Vec<String>, ConfigError> {
    let (schemes, entry) = if settings.bool("sessionRequireClientSASLAuth") {
        (vec!["sasl".to_string()], settings.entry("sessionRequireClientSASLAuth"))
    } else if settings.bool("enforce.auth.enabled") {
        let list = settings.text("enforce.auth.schemes").unwrap_or_default();
        let schemes =
            list.split(',').map(str::trim).filter(|scheme| !scheme.is_empty()).map(String::from).collect();
        (schemes, settings.entry("enforce.auth.schemes").or(settings.entry("enforce.auth.enabled")))
    } else {
        return Ok(Vec::new());
    };
    let entry = entry.expect("authentication is enforced only by a setting").clone();
    if schemes.is_empty() {
        return Err(entry.refused("needs a scheme; add a line such as enforce.auth.schemes=digest"));
    }
    for scheme in &schemes {
        check_scheme(settings, &entry, scheme)?;
    }
    Ok(schemes)
}

fn check_scheme(settings: &mut Settings, entry: &Entry, scheme: &str) -> Result<(), ConfigError> {
    let sasl_provider = |entry: &Entry| entry.value.ends_with("SASLAuthenticationProvider");
    match scheme {
        "ip" => Ok(()),
        "digest" if settings.bool("DigestAuthenticationProvider.enabled") => Ok(()),
        "sasl" if settings.family("authProvider.*").any(sasl_provider) => {
            let text = format!(
                "{}: SASL logins are not part of this build, so no client gets in by sasl",
                entry.key
            );
            settings.note(NoteLevel::Warning, &entry.location, text);
            Ok(())
        }
        _ => Err(entry.refused(format!("the scheme {scheme} is not available; there are digest and ip"))),
    }
}

fn note_standalone(settings: &mut Settings, OwnLine { entry, .. }: &OwnLine) {
    let text = format!(
        "{}: the only server runs as a single node; its quorum and election ports are not used",
        entry.key
    );
    settings.note(NoteLevel::Info, &entry.location, text);
}

fn note_raised(settings: &mut Settings, name: &'static str, minimum: u32) {
    if settings.int(name) < minimum.into() {
        note_counted(settings, name, minimum, "least");
    }
}

fn note_lowered(settings: &mut Settings, name: &'static str, maximum: u32) {
    if settings.int(name) > maximum.into() {
        note_counted(settings, name, maximum, "greatest");
    }
}

fn note_counted(settings: &mut Settings, name: &'static str, counts: u32, as_the: &str) {
    let Some(Entry { location, value, .. }) = settings.entry(name).cloned() else { return };
    let text = format!("{name}={value} counts as {counts}, the {as_the} possible");
    settings.note(NoteLevel::Warning, &location, text);
}
