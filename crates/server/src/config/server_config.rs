//! The settings that a server obeys, with their types and units.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use super::admin::{AdminSettings, MetricsSettings, TraceSettings};
use super::audit::AuditSettings;
use super::ensemble::{self, Deployment, EnsembleSettings, OwnLine, QuorumTls};
use super::error::{ConfigError, NoteLevel};
use super::groups::{
    AuthSettings, ClientPortSettings, DataFolderSettings, MIN_SNAP_COUNT, MIN_SNAP_RETAIN_COUNT,
    RequestLimits, SecurePort, SessionSettings, SnapshotSettings, TreeSettings, TxnLogSettings,
};
use super::properties::Entry;
use super::sasl::{self, QuorumSasl};
use super::session_passwords::SessionPasswords;
use super::settings::Settings;
use super::throttles::ThrottleSettings;
use super::tls::KeySet;
use super::weaknesses::Weakness;
use super::written::KeyInForce;
use crate::admin::four_letter::Whitelist;
use ostler_storage::snapshot::body::LONGEST_FIELD;

/// The data folder of a server without a file, relative to the working directory.
pub const EMBEDDED_DATA_DIR: &str = "ostler-data";
/// The port of a server without a file.
pub const EMBEDDED_PORT: u16 = 2181;

const EMBEDDED_TICK_TIME_MS: i32 = 2000;

/// All settings of a server, in groups. Names follow the keys of zoo.cfg, with units.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// The length of a tick, the unit of session timeouts and of the limits of an ensemble; 3 s by default.
    pub tick_time_ms: i32,
    pub clients: ClientPortSettings,
    pub limits: RequestLimits,
    /// The limits of new connections and of requests, for all clients together.
    pub throttles: ThrottleSettings,
    pub folders: DataFolderSettings,
    pub log: TxnLogSettings,
    pub snapshots: SnapshotSettings,
    pub sessions: SessionSettings,
    pub tree: TreeSettings,
    pub auth: AuthSettings,
    /// The four-letter words that may run; `srvr` alone by default.
    pub four_letter_whitelist: Whitelist,
    /// Whether a server that looks for a leader serves clients that ask for read-only sessions; false by default.
    pub readonly_mode_enabled: bool,
    /// `security=strict`: the server does not start with a weakness; false by default.
    pub strict: bool,
    /// Whether reconfiguration requests are processed; false by default, which refuses them.
    pub reconfig_enabled: bool,
    /// After this number of transactions a leader begins the next epoch in place; 4,286,967,295 by default, 0 for never.
    pub epoch_length: u32,
    /// `None`, the default, if nothing is audited.
    pub audit: Option<AuditSettings>,
    /// The text of zoo.cfg, with the values of secrets masked.
    pub initial_configuration: String,
    /// All keys with their values and where these come from, without secrets.
    pub keys: Arc<[KeyInForce]>,
    /// `None` if `admin.enableServer` is false.
    pub admin: Option<AdminSettings>,
    /// `None`, the default, if there is no port for metrics.
    pub metrics: Option<MetricsSettings>,
    /// `None`, the default, if nothing is traced.
    pub traces: Option<TraceSettings>,
    /// `None` for a standalone server.
    pub ensemble: Option<Box<EnsembleSettings>>,
}

impl ServerConfig {
    /// The settings of a server without a file: loopback only, ticks of 2 seconds, data in `data_dir` (see
    /// [`EMBEDDED_DATA_DIR`]), no admin server, and for the rest the defaults of zoo.cfg.
    pub fn embedded(data_dir: impl Into<PathBuf>) -> ServerConfig {
        let client_address = SocketAddr::from((Ipv4Addr::LOCALHOST, EMBEDDED_PORT));
        let timeouts = SessionTimeouts::of_ticks(EMBEDDED_TICK_TIME_MS);
        let (settings, data_dir) = (Settings::default(), data_dir.into());
        let mut keys = settings.in_force();
        let mut is = |name: &str, value: String| {
            keys.iter_mut().filter(|key| key.key == name).for_each(|key| key.value = Some(value.clone()));
        };
        is("dataDir", data_dir.display().to_string());
        is("tickTime", EMBEDDED_TICK_TIME_MS.to_string());
        is("clientPort", EMBEDDED_PORT.to_string());
        is("clientPortAddress", Ipv4Addr::LOCALHOST.to_string());
        let config = assemble(&settings, Some(client_address), data_dir, timeouts, Vec::new());
        ServerConfig { keys: keys.into(), ..config }
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
    let secure = secure_port(file, settings)?;
    let client_address = client_address(settings, deployment.own())?;
    if client_address.is_none() && secure.as_ref().is_none_or(|secure| secure.address.is_none()) {
        return Err(ConfigError::Missing {
            file: file.into(),
            key: "clientPort",
            example: "clientPort=2181",
        });
    }
    let timeouts = SessionTimeouts::from_settings(settings)?;
    let schemes = enforced_schemes(settings)?;
    if let Deployment::Standalone(own, _) = &deployment {
        note_standalone(settings, own);
    }
    note_lowered(settings, "jute.maxbuffer", LONGEST_FIELD as u32);
    note_raised(settings, "snapCount", MIN_SNAP_COUNT);
    note_raised(settings, "autopurge.snapRetainCount", MIN_SNAP_RETAIN_COUNT);
    sasl::check_providers(settings)?;
    sasl::check_rules(settings)?;
    let session_passwords = SessionPasswords::from_settings(settings)?;
    let audit = AuditSettings::from_settings(settings, data_dir.as_ref())?;
    let mut admin = AdminSettings::from_settings(file, settings)?;
    // A member learns the hosts of all members; a standalone server has only its own line.
    if let (Some(admin), Deployment::Standalone(_, hosts)) = (&mut admin, &deployment) {
        admin.host_names.extend_from_slice(hosts);
    }
    let metrics = MetricsSettings::from_settings(settings)?;
    let mut config = assemble(settings, client_address, data_dir.into(), timeouts, schemes);
    config.sessions.session_passwords = session_passwords;
    config.audit = audit;
    config.admin = admin;
    config.metrics = metrics;
    config.traces = TraceSettings::from_settings(settings)?;
    config.clients.secure = secure.map(Box::new);
    if let Deployment::Ensemble(mut ensemble, _) = deployment {
        ensemble.tls = QuorumTls::read(file, settings)?;
        ensemble.sasl = QuorumSasl::read(settings)?;
        config.ensemble = Some(ensemble);
    }
    refuse_weaknesses(settings, &config)?;
    Ok(config)
}

/// The words of a strict server: monitoring needs them, and they show little.
const STRICT_WORDS: &str = "srvr,ruok";

pub(super) fn is_strict(settings: &Settings) -> bool {
    settings.text("security").as_deref() == Some("strict")
}

/// A strict server does not start with a weakness. Session passwords are left to the operator: Java servers know no
/// others.
fn refuse_weaknesses(settings: &Settings, config: &ServerConfig) -> Result<(), ConfigError> {
    let Some(entry) = settings.entry("security").filter(|_| config.strict) else { return Ok(()) };
    let weaknesses = config.weaknesses();
    match weaknesses.iter().find(|weakness| **weakness != Weakness::DerivedSessionPasswords) {
        Some(weakness) => Err(entry.refused(format!("asks for strict, but {weakness}"))),
        None => Ok(()),
    }
}

fn assemble(
    settings: &Settings,
    client_address: Option<SocketAddr>,
    data_dir: PathBuf,
    timeouts: SessionTimeouts,
    enforce_auth_schemes: Vec<String>,
) -> ServerConfig {
    let readonly_mode_enabled = settings.bool("readonlymode.enabled");
    let strict = is_strict(settings);
    let default_words = strict.then(|| STRICT_WORDS.to_owned());
    let whitelist = settings.text("4lw.commands.whitelist").or(default_words);
    ServerConfig {
        tick_time_ms: timeouts.tick_time_ms,
        clients: ClientPortSettings::read(settings, client_address),
        limits: RequestLimits::read(settings),
        throttles: ThrottleSettings::read(settings),
        folders: DataFolderSettings::read(settings, data_dir),
        log: TxnLogSettings::read(settings),
        snapshots: SnapshotSettings::read(settings),
        sessions: SessionSettings {
            min_session_timeout_ms: timeouts.min_ms,
            max_session_timeout_ms: timeouts.max_ms,
            session_passwords: SessionPasswords::default(),
            close_session_txn_enabled: settings.bool("closeSessionTxn.enabled"),
        },
        tree: TreeSettings::read(settings),
        auth: AuthSettings::read(settings, enforce_auth_schemes),
        four_letter_whitelist: Whitelist::new(whitelist.as_deref(), readonly_mode_enabled),
        readonly_mode_enabled,
        strict,
        reconfig_enabled: settings.bool("reconfigEnabled"),
        epoch_length: settings.unsigned("epochLength"),
        audit: None,
        initial_configuration: String::new(),
        keys: Arc::default(),
        admin: None,
        metrics: None,
        traces: None,
        ensemble: None,
    }
}

/// The address for clients. The client part of this server's server.N line wins over clientPort and clientPortAddress,
/// which must not contradict it.
fn client_address(settings: &Settings, own: Option<&OwnLine>) -> Result<Option<SocketAddr>, ConfigError> {
    let written = written_address(settings, "clientPort", "clientPortAddress")?;
    let of_server = own.and_then(|server| Some((&server.entry, server.client.as_ref()?)));
    let Some((entry, client)) = of_server else {
        return Ok(written);
    };
    let address = resolve(settings, entry, &client.host, client.port)?;
    match written {
        Some(written) if !covers(written, address) => Err(entry.refused(format!(
            "names the client address {address}, but clientPort and clientPortAddress name {written}; \
             remove one of the two"
        ))),
        _ => Ok(Some(address)),
    }
}

fn covers(general: SocketAddr, special: SocketAddr) -> bool {
    general.port() == special.port() && (general.ip().is_unspecified() || general.ip() == special.ip())
}

/// TLS for clients, if any port takes it.
fn secure_port(file: &str, settings: &mut Settings) -> Result<Option<SecurePort>, ConfigError> {
    let address = written_address(settings, "secureClientPort", "secureClientPortAddress")?;
    let unification = settings.bool("client.portUnification");
    if address.is_none() && !unification {
        KeySet::CLIENTS.note_unused(settings);
        return Ok(None);
    }
    Ok(Some(SecurePort { address, unification, tls: KeySet::CLIENTS.read(file, settings)? }))
}

/// The address that a key for the port and a key for the host name; `None` without a port.
fn written_address(
    settings: &Settings,
    port_key: &str,
    host_key: &str,
) -> Result<Option<SocketAddr>, ConfigError> {
    let host = settings.entry(host_key).filter(|entry| !entry.value.is_empty());
    if settings.entry(port_key).is_none() {
        return match host {
            Some(entry) => Err(entry.refused(format!("needs a port; add a line such as {port_key}=2181"))),
            None => Ok(None),
        };
    }
    let port = u16::try_from(settings.int(port_key)).expect("the range of the key is that of a port");
    match host {
        Some(entry) => resolve(settings, entry, &entry.value, port).map(Some),
        None => Ok(Some((IpAddr::V6(Ipv6Addr::UNSPECIFIED), port).into())),
    }
}

pub(super) fn resolve(
    settings: &Settings,
    entry: &Entry,
    host: &str,
    port: u16,
) -> Result<SocketAddr, ConfigError> {
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
    note_unenforced(settings);
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

/// Warns of schemes that the operator takes to be enforced, and that are not.
fn note_unenforced(settings: &mut Settings) {
    if settings.text("enforce.auth.schemes").is_none_or(|schemes| schemes.trim().is_empty()) {
        return;
    }
    let says = if settings.bool("sessionRequireClientSASLAuth") {
        "has no effect beside sessionRequireClientSASLAuth=true, which enforces sasl alone; remove one of them"
    } else if settings.bool("enforce.auth.enabled") {
        return;
    } else {
        "has no effect without enforce.auth.enabled=true, so connections without one of these schemes are served; add \
         that line"
    };
    let Some(entry) = settings.entry("enforce.auth.schemes").cloned() else { return };
    settings.note(NoteLevel::Warning, &entry.location, format!("{} {says}", entry.key));
}

fn check_scheme(settings: &mut Settings, entry: &Entry, scheme: &str) -> Result<(), ConfigError> {
    match scheme {
        "ip" => Ok(()),
        "digest" if settings.bool("DigestAuthenticationProvider.enabled") => Ok(()),
        "sasl" if sasl::has_provider(settings) => Ok(()),
        "sasl" => Err(entry.refused(
            "the scheme sasl needs a line authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        )),
        "x509" if settings.entry("secureClientPort").is_some() || settings.bool("client.portUnification") => {
            Ok(())
        }
        "x509" => Err(entry.refused("the scheme x509 needs a secureClientPort")),
        _ => Err(entry.refused(format!("the scheme {scheme} is not available; there are digest, ip, sasl and x509"))),
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
