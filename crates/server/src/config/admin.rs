//! The settings of the admin server and of the port for metrics.

use super::admin_peers::{self, AdminPeer};
use super::error::{ConfigError, NoteLevel};
use super::server_config::resolve;
use super::settings::Settings;
use super::tls::KeySet;
use ostler_proto::acl::Id;
use ostler_tls::settings::{ClientAuth, TlsSettings};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;

/// The port of the admin server by default.
pub const ADMIN_PORT: u16 = 8080;
/// The class whose metrics Ostler has.
const PROMETHEUS: &str = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";
/// Classes that export nothing.
const NO_EXPORT: [&str; 2] = [
    "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider",
    "org.apache.zookeeper.metrics.impl.NullMetricsProvider",
];

/// The admin server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// `admin.serverAddress` and `admin.serverPort`; 127.0.0.1:8080 by default.
    pub address: SocketAddr,
    /// Whether a line of the configuration names the address or the port. Without one, the server starts without its
    /// admin server if the port is in use.
    pub is_written: bool,
    /// `admin.commandURL`, the path above the commands; `/commands` by default.
    pub command_url: String,
    /// `admin.idleTimeout`: a connection without a request is closed after this time; 30 s by default.
    pub idle_timeout_ms: u32,
    /// TLS; `None`, the default, for plain HTTP.
    pub https: Option<Box<AdminHttps>>,
    /// `admin.rateLimiterIntervalInMS`: the least time between two snapshots, and between two restores; 5 min by default.
    pub rate_limiter_interval_ms: u64,
    /// `admin.snapshot.enabled`, true by default.
    pub snapshot_enabled: bool,
    /// `admin.restore.enabled`, true by default.
    pub restore_enabled: bool,
    /// `admin.readOnly`, Ostler's own: the console changes nothing; true by default.
    pub read_only: bool,
    /// `admin.viewers`, Ostler's own: the identities that may see the console's pages about the server. Empty, the default:
    /// everybody whom the commands are shown to.
    pub viewers: Vec<Id>,
    /// `admin.operators`, Ostler's own: the identities that may act on the server in the console, beside super users.
    /// Empty, the default: those with all permissions in the ACL of the root.
    pub operators: Vec<Id>,
    /// `admin.openToAll`, Ostler's own: who reaches the port may read, without TLS and without an identity; false by
    /// default.
    pub open_to_all: bool,
    /// `admin.hostNames`, Ostler's own: names by which browsers reach the console, beside those that the server knows; and the
    /// name in `admin.serverAddress`, if it is one.
    pub host_names: Vec<String>,
    /// `admin.peers`, Ostler's own: the admin servers of other members, where they are not at this server's own port.
    pub peers: Vec<AdminPeer>,
    /// The keys `ssl.quorum.*` for calls to admin servers with TLS; `None` if none is called by TLS, or if the keys do not
    /// suffice for it.
    pub peer_tls: Option<Box<TlsSettings>>,
}

/// TLS at the admin server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminHttps {
    /// Whether the port takes plain HTTP, too (`admin.portUnification` without `admin.forceHttps`).
    pub unification: bool,
    /// The keys `ssl.quorum.*`, as in Java, with the check of clients that `admin.needClientAuth` asks for.
    pub tls: TlsSettings,
}

/// Traces for OpenTelemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// `otlp.endpoint`: the collector's URL, without the path.
    pub endpoint: String,
    /// `otlp.sampledOneIn`: one request in this number is traced; 1,000 by default.
    pub sampled_one_in: NonZeroU64,
}

impl TraceSettings {
    /// `None` without an endpoint.
    pub(super) fn from_settings(settings: &Settings) -> Result<Option<TraceSettings>, ConfigError> {
        let Some(entry) = settings.entry("otlp.endpoint").filter(|entry| !entry.value.is_empty()) else {
            return Ok(None);
        };
        if !entry.value.starts_with("http://") {
            return Err(entry.refused(
                "traces are sent by plain HTTP, as to http://127.0.0.1:4318; run a collector on this machine, and let it \
                 pass them on",
            ));
        }
        let sampled_one_in = NonZeroU64::new(settings.unsigned("otlp.sampledOneIn").into());
        let sampled_one_in = sampled_one_in.unwrap_or(NonZeroU64::MIN);
        Ok(Some(TraceSettings { endpoint: entry.value.clone(), sampled_one_in }))
    }
}

/// The port for Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsSettings {
    /// `metricsProvider.httpHost` and `metricsProvider.httpPort`; all addresses and port 7000 by default, as in Java.
    pub address: SocketAddr,
    /// `metricsProvider.exportJvmInfo`: the figures of the process are shown, under the JVM's names, too; true by
    /// default.
    pub export_jvm_info: bool,
}

impl AdminSettings {
    /// Plain HTTP on loopback, with the defaults of the keys.
    pub fn loopback() -> AdminSettings {
        AdminSettings {
            address: (Ipv4Addr::LOCALHOST, ADMIN_PORT).into(),
            is_written: false,
            command_url: "/commands".into(),
            idle_timeout_ms: 30_000,
            https: None,
            rate_limiter_interval_ms: 300_000,
            snapshot_enabled: true,
            restore_enabled: true,
            open_to_all: false,
            read_only: true,
            viewers: Vec::new(),
            operators: Vec::new(),
            host_names: Vec::new(),
            peers: Vec::new(),
            peer_tls: None,
        }
    }

    /// Whether only this machine reaches the port.
    pub fn is_local(&self) -> bool {
        self.address.ip().is_loopback()
    }

    /// `None` if `admin.enableServer` is false.
    pub(super) fn from_settings(
        file: &str,
        settings: &mut Settings,
    ) -> Result<Option<AdminSettings>, ConfigError> {
        if !settings.bool("admin.enableServer") {
            return Ok(None);
        }
        let https = match AdminHttps::from_settings(file, settings) {
            Ok(https) => https,
            // As in Java: the server runs on without its admin server.
            Err(error) => {
                let asked = ["admin.forceHttps", "admin.portUnification"];
                let entry = asked.iter().find_map(|key| settings.entry(key)).cloned();
                let Some(entry) = entry else { return Err(error) };
                let text = format!("the admin server is not started: {error}");
                settings.note(NoteLevel::Warning, &entry.location, text);
                return Ok(None);
            }
        };
        let port = settings.int("admin.serverPort") as u16;
        let ip = match settings.entry("admin.serverAddress").filter(|entry| !entry.value.is_empty()) {
            Some(entry) => resolve(settings, entry, &entry.value, port)?.ip(),
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let open_to_all = settings.bool("admin.openToAll");
        if let Some(entry) = settings.entry("admin.serverAddress").cloned()
            && !ip.is_loopback()
            && https.is_none()
            && !open_to_all
        {
            let text = "the admin server has no TLS here: other machines get /livez, /readyz and ruok, and the rest only \
                        with an identity (Authorization: digest USER:PASSWORD); set admin.forceHttps=true with \
                        ssl.quorum.*, or admin.openToAll=true if a firewall protects the port";
            settings.note(NoteLevel::Warning, &entry.location, text.into());
        }
        let is_written =
            ["admin.serverAddress", "admin.serverPort"].iter().any(|key| settings.entry(key).is_some());
        let is_forced = https.as_ref().is_some_and(|https| !https.unification);
        let peers = admin_peers::read(settings, is_forced)?;
        let peer_tls = peer_tls(file, settings, is_forced || peers.iter().any(|peer| peer.https));
        Ok(Some(AdminSettings {
            address: (ip, port).into(),
            is_written,
            command_url: command_url(settings),
            idle_timeout_ms: settings.unsigned("admin.idleTimeout"),
            https: https.map(Box::new),
            rate_limiter_interval_ms: settings.int("admin.rateLimiterIntervalInMS").max(0) as u64,
            snapshot_enabled: settings.bool("admin.snapshot.enabled"),
            restore_enabled: settings.bool("admin.restore.enabled"),
            open_to_all,
            read_only: settings.bool("admin.readOnly"),
            viewers: identities(settings, "admin.viewers")?,
            operators: identities(settings, "admin.operators")?,
            host_names: host_names(settings)?,
            peers,
            peer_tls,
        }))
    }
}

/// The keys for calls by TLS. The server serves without them, and its pages say what is missing.
fn peer_tls(file: &str, settings: &mut Settings, is_needed: bool) -> Option<Box<TlsSettings>> {
    if !is_needed {
        return None;
    }
    match KeySet::QUORUM.read_to_call(file, settings) {
        Ok(tls) => Some(Box::new(tls)),
        Err(error) => {
            let asked = ["admin.peers", "admin.forceHttps"];
            if let Some(entry) = asked.iter().find_map(|key| settings.entry(key)).cloned() {
                let text =
                    format!("the pages about the ensemble cannot ask the other members by TLS: {error}");
                settings.note(NoteLevel::Warning, &entry.location, text);
            }
            None
        }
    }
}

/// Identities as `scheme:id`, parted by semicolons: names of certificates have commas.
fn identities(settings: &Settings, key: &str) -> Result<Vec<Id>, ConfigError> {
    let Some(entry) = settings.entry(key) else { return Ok(Vec::new()) };
    let written = entry.value.split(';').map(str::trim).filter(|text| !text.is_empty());
    let read = |text: &str| match text.split_once(':') {
        Some((scheme @ ("digest" | "x509" | "sasl"), id)) if !id.is_empty() => Ok(Id::new(scheme, id)),
        _ => Err(entry.refused("an identity is digest:USER:HASH, x509:NAME or sasl:NAME")),
    };
    written.map(read).collect()
}

/// Names of this server, parted by semicolons.
fn host_names(settings: &Settings) -> Result<Vec<String>, ConfigError> {
    let is_name = |text: &String| !text.is_empty() && text.parse::<IpAddr>().is_err();
    let address = settings.text("admin.serverAddress").filter(is_name);
    let Some(entry) = settings.entry("admin.hostNames") else { return Ok(address.into_iter().collect()) };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let read = |name: &str| {
        match name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err(entry.refused(format!(
            "{name} is no name of a host; write names such as zk.example.com, without https:// and without a port, parted \
             by semicolons"
        ))),
    }
    };
    let written = entry.value.split(';').map(str::trim).filter(|name| !name.is_empty());
    written.map(read).chain(address.map(Ok)).collect()
}

/// The path above the commands: it begins with a slash and does not end with one.
fn command_url(settings: &Settings) -> String {
    let written = settings.text("admin.commandURL").unwrap_or_default();
    let bare = written.trim_matches('/');
    if bare.is_empty() { "/commands".into() } else { format!("/{bare}") }
}

impl AdminHttps {
    fn from_settings(file: &str, settings: &Settings) -> Result<Option<AdminHttps>, ConfigError> {
        let forced = settings.bool("admin.forceHttps");
        if !forced && !settings.bool("admin.portUnification") {
            return Ok(None);
        }
        let needed = settings.bool("admin.needClientAuth");
        let client_auth = if needed { ClientAuth::Need } else { ClientAuth::None };
        let tls = KeySet::QUORUM.read_with(file, settings, client_auth)?;
        Ok(Some(AdminHttps { unification: !forced, tls }))
    }
}

impl MetricsSettings {
    /// `None` if nothing asks for a port.
    pub(super) fn from_settings(settings: &mut Settings) -> Result<Option<MetricsSettings>, ConfigError> {
        let Some(class) = settings.entry("metricsProvider.className").filter(|class| !class.value.is_empty())
        else {
            return Ok(None);
        };
        match &*class.value {
            PROMETHEUS => {}
            other if NO_EXPORT.contains(&other) => return Ok(None),
            _ => {
                return Err(class.refused(format!(
                    "Java classes cannot be loaded here; remove the line, or write {PROMETHEUS}"
                )));
            }
        }
        let port = settings.int("metricsProvider.httpPort") as u16;
        let ip = match settings.entry("metricsProvider.httpHost").filter(|entry| !entry.value.is_empty()) {
            Some(entry) => resolve(settings, entry, &entry.value, port)?.ip(),
            None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        Ok(Some(MetricsSettings {
            address: (ip, port).into(),
            export_jvm_info: settings.bool("metricsProvider.exportJvmInfo"),
        }))
    }
}
