//! Reads the lines that describe an ensemble: server.N, group.N and weight.N.

use super::error::ConfigError;
use super::properties::{self, Entry};
use super::sasl::QuorumSasl;
use super::settings::Settings;
use super::tls::KeySet;
use ostler_proto::id::ServerId;
use ostler_proto::membership::{ClientAddress, Member, Membership, MembershipError};
use ostler_proto::stat::ExtendedTypes;
use ostler_server_core::quorum::LocalSessions;
use ostler_tls::settings::TlsSettings;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The settings of a server that is in an ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnsembleSettings {
    /// This server.
    pub me: ServerId,
    /// All servers, and the quorums of their votes.
    pub membership: Membership,
    /// A configuration that was proposed when this server stopped.
    pub pending: Option<Membership>,
    /// Whether new sessions are made known to all servers.
    pub local_sessions: LocalSessions,
    /// The zoo.cfg.
    pub file: PathBuf,
    /// Ticks in which a learner has to connect and take over the leader's history.
    pub init_limit: u32,
    /// Ticks of silence after which a leader and a learner give each other up.
    pub sync_limit: u32,
    /// Committed records kept in memory for learners.
    pub commit_log_count: u32,
    /// A learner gets records from the log on disk if they are less than this part of a snapshot, in percent; `None` is
    /// never.
    pub snapshot_size_factor: Option<u32>,
    /// Votes of servers whose configuration is another ensemble's do not count.
    pub refuse_others: bool,
    /// How often this server tries again to listen for the others; `None` is without end.
    pub bind_retries: Option<u32>,
    /// `standaloneEnabled`: a single participant is a standalone server.
    pub standalone: bool,
    /// Members that have moved are called at the address that they name, if the configured one does not answer.
    pub call_moved: bool,
    /// The ports for other servers are opened on all addresses of the machine.
    pub listen_on_all: bool,
    /// The port at which followers serve observers; `None` if observers follow the leader.
    pub observer_master_port: Option<u16>,
    /// `observer.election.DelayMs`
    pub observer_election_delay_ms: u64,
    /// `observer.reconnectDelayMs`
    pub observer_reconnect_delay_ms: u64,
    /// How long connecting to another server may take, in milliseconds.
    pub connect_timeout_ms: u32,
    /// `fastleader.minNotificationInterval`
    pub notification_min_ms: u32,
    /// `fastleader.maxNotificationInterval`
    pub notification_max_ms: u32,
    /// TLS between the servers; `None` if no connection has it.
    pub tls: Option<QuorumTls>,
    /// Logins of the servers at each other; `None` if there are none.
    pub sasl: Option<QuorumSasl>,
}

/// TLS between the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumTls {
    /// The keys `ssl.quorum.*`.
    pub tls: TlsSettings,
    /// `sslQuorum`: this server's own connections have TLS.
    pub ssl_quorum: bool,
    /// `portUnification`: the ports take plain connections, too.
    pub port_unification: bool,
    /// Whether the certificates of servers that connect are compared with the server.N lines, too; true by default.
    pub client_hostname_verification: bool,
    /// How long a server that connects may take to begin; 5 s by default.
    pub detection_timeout: Duration,
}

impl QuorumTls {
    /// The certificates of callers are compared only if all are.
    pub(crate) fn checks_callers(&self) -> bool {
        self.tls.hostname_verification && self.client_hostname_verification
    }

    /// Reads the keys; `None` without `sslQuorum` and `portUnification`.
    pub(super) fn read(file: &str, settings: &mut Settings) -> Result<Option<QuorumTls>, ConfigError> {
        let (ssl_quorum, port_unification) = (settings.bool("sslQuorum"), settings.bool("portUnification"));
        if !ssl_quorum && !port_unification {
            let by_peers = settings.text("admin.peers").is_some_and(|peers| peers.contains("https://"));
            if !settings.bool("admin.forceHttps") && !settings.bool("admin.portUnification") && !by_peers {
                KeySet::QUORUM.note_unused(settings);
            }
            return Ok(None);
        }
        // Java raises values below 1 to the default.
        let detection = settings.limit("ssl.quorum.handshakeDetectionTimeoutMillis").unwrap_or(5_000);
        Ok(Some(QuorumTls {
            tls: KeySet::QUORUM.read(file, settings)?,
            ssl_quorum,
            port_unification,
            client_hostname_verification: settings.bool("ssl.quorum.clientHostnameVerification"),
            detection_timeout: Duration::from_millis(detection),
        }))
    }
}

/// This server's own server.N line, with its client part.
pub(super) struct OwnLine {
    pub(super) entry: Entry,
    pub(super) client: Option<ClientAddress>,
}

/// The kind of server that the server.N lines describe.
pub(super) enum Deployment {
    /// A standalone server without a server.N line.
    WithoutLine,
    /// A standalone server with a server.N line, and the hosts of that line.
    Standalone(OwnLine, Vec<String>),
    /// A member of an ensemble.
    Ensemble(Box<EnsembleSettings>, OwnLine),
}

impl Deployment {
    /// This server's own line, if there is one.
    pub(super) fn own(&self) -> Option<&OwnLine> {
        match self {
            Deployment::WithoutLine => None,
            Deployment::Standalone(own, _) | Deployment::Ensemble(_, own) => Some(own),
        }
    }
}

/// Reads the lines, in zoo.cfg or in the `dynamicConfigFile`, and for an ensemble the number in `dataDir/myid`.
pub(super) fn deployment(
    file: &str,
    settings: &Settings,
    data_dir: &Path,
) -> Result<Deployment, ConfigError> {
    let lines = lines(settings)?;
    let servers = lines.servers.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    match (lines.servers.as_slice(), servers.as_slice()) {
        ([], _) => without_servers(settings).map(|()| Deployment::WithoutLine),
        ([entry], [(_, server)]) if !server.observer && settings.bool("standaloneEnabled") => {
            let hosts = server.addresses.iter().map(|address| address.host.clone()).collect();
            Ok(Deployment::Standalone(OwnLine { entry: entry.clone(), client: server.client.clone() }, hosts))
        }
        _ => ensemble(file, settings, &lines, data_dir),
    }
}

fn without_servers(settings: &Settings) -> Result<(), ConfigError> {
    match settings.entry("standaloneEnabled") {
        Some(entry) if !settings.bool("standaloneEnabled") => Err(entry.refused(
            "asks for an ensemble, but there is no server.N line; add such lines, or remove this one",
        )),
        _ => Ok(()),
    }
}

fn ensemble(
    file: &str,
    settings: &Settings,
    lines: &Lines,
    data_dir: &Path,
) -> Result<Deployment, ConfigError> {
    let first = &lines.servers[0];
    let mut membership = membership(lines)?;
    membership.version = version(settings);
    let me = my_id(first, data_dir)?;
    let key = format!("server.{}", me.0);
    let (Some(own), Some(entry)) =
        (membership.servers.get(&me), lines.servers.iter().find(|entry| entry.key.ends_with(&key)))
    else {
        return Err(first.refused(format!(
            "no server.N line is for {}, the number in {}; add the line or correct that file",
            me.0,
            data_dir.join("myid").display()
        )));
    };
    let types = extended_types(settings);
    if let (Some(of), Some(max)) =
        (lines.servers.iter().find(|entry| !allowed(types, entry)), types.server_id_max())
    {
        return Err(of.refused(format!(
            "no server may have an id above {max} where TTL znodes are enabled: ids of its sessions would look like \
             marks of TTL znodes, and its ephemerals would outlive them. Give that server another id, in its \
             myid and at all servers, or set extendedTypesEnabled=false at all servers"
        )));
    }
    let own = OwnLine { entry: entry.clone(), client: own.client.clone() };
    let positive = |name: &str| u32::try_from(settings.int(name)).unwrap_or(0);
    let settings = EnsembleSettings {
        me,
        membership,
        pending: settings.bool("reconfigEnabled").then(|| pending(file)).flatten(),
        local_sessions: local_sessions(settings),
        file: file.into(),
        init_limit: positive("initLimit").max(1),
        sync_limit: positive("syncLimit").max(1),
        commit_log_count: positive("commitLogCount"),
        snapshot_size_factor: percent(settings.text("snapshotSizeFactor")),
        refuse_others: settings.bool("election.refuseOtherEnsembles"),
        bind_retries: bind_retries(settings),
        standalone: settings.bool("standaloneEnabled"),
        call_moved: settings.bool("election.callMovedServers"),
        listen_on_all: settings.bool("quorumListenOnAllIPs"),
        observer_master_port: u16::try_from(settings.int("observerMasterPort")).ok().filter(|port| *port > 0),
        observer_election_delay_ms: settings.limit("observer.election.DelayMs").unwrap_or(0),
        observer_reconnect_delay_ms: settings.limit("observer.reconnectDelayMs").unwrap_or(0),
        connect_timeout_ms: positive("cnxTimeout").max(1),
        notification_min_ms: positive("fastleader.minNotificationInterval").max(1),
        notification_max_ms: positive("fastleader.maxNotificationInterval").max(1),
        tls: None,
        sasl: None,
    };
    Ok(Deployment::Ensemble(Box::new(settings), own))
}

/// How often the server tries again to listen at an address, or to look up its name; `None` is without end.
pub(super) fn bind_retries(settings: &Settings) -> Option<u32> {
    const DEFAULT: u32 = 3;
    match settings.int("electionPortBindRetry") {
        0 => None,
        // Upstream replaces a negative number by the default.
        number => Some(u32::try_from(number).unwrap_or(DEFAULT)),
    }
}

/// How the owner field of a znode is read.
pub(super) fn extended_types(settings: &Settings) -> ExtendedTypes {
    ExtendedTypes {
        enabled: settings.bool("extendedTypesEnabled"),
        emulate_353: settings.bool("emulate353TTLNodes"),
    }
}

fn allowed(types: ExtendedTypes, entry: &Entry) -> bool {
    let id = entry.key.rsplit_once('.').and_then(|(_, id)| id.parse().ok());
    id.is_none_or(|id| types.allows_server(id))
}

fn local_sessions(settings: &Settings) -> LocalSessions {
    match (settings.bool("localSessionsEnabled"), settings.bool("localSessionsUpgradingEnabled")) {
        (false, _) => LocalSessions::Off,
        (true, false) => LocalSessions::Fixed,
        (true, true) => LocalSessions::Upgradeable,
    }
}

/// The version of a dynamic file is the end of its name.
fn version(settings: &Settings) -> u64 {
    let file = settings.text("dynamicConfigFile").unwrap_or_default();
    let version = file.rsplit_once('.').and_then(|(_, version)| u64::from_str_radix(version, 16).ok());
    version.unwrap_or(0)
}

/// The configuration that was proposed when this server stopped. One that cannot be read was never acknowledged.
fn pending(file: &str) -> Option<Membership> {
    let text = std::fs::read_to_string(format!("{file}.dynamic.next")).ok()?;
    Membership::parse(&text).ok()
}

fn membership(lines: &Lines) -> Result<Membership, ConfigError> {
    let mut membership = Membership::default();
    for entry in lines.servers.iter().chain(&lines.groups).chain(&lines.weights) {
        membership.take(entry.name(), &entry.value).map_err(|error| refusal(entry, &error))?;
    }
    let first = lines.groups.first().or(lines.weights.first()).unwrap_or(&lines.servers[0]);
    membership.check().map_err(|error| refusal(first, &error))?;
    Ok(membership)
}

fn refusal(entry: &Entry, error: &MembershipError) -> ConfigError {
    match error {
        MembershipError::Server(_) => {
            entry.bad_value("host:port:port, then :observer or nothing, then ;clientPort or nothing")
        }
        MembershipError::Roles(_) => entry.bad_value("one server with one role, participant or observer"),
        MembershipError::Number(_) => entry.bad_value("numbers where numbers belong"),
        other => entry.refused(other.to_string()),
    }
}

/// A part of one, in percent; `None` if it is negative.
fn percent(text: Option<String>) -> Option<u32> {
    let part: f64 = text?.parse().ok()?;
    (part >= 0.0).then_some((part * 100.0) as u32)
}

fn my_id(entry: &Entry, data_dir: &Path) -> Result<ServerId, ConfigError> {
    let file = data_dir.join("myid");
    let text = std::fs::read_to_string(&file).map_err(|error| {
        entry.refused(format!(
            "describes an ensemble, so {} must hold this server's number: {error}",
            file.display()
        ))
    })?;
    let id = text.trim().parse().map_err(|_| {
        entry.refused(format!("describes an ensemble, and {} holds no number", file.display()))
    })?;
    Ok(ServerId(id))
}

/// The lines of each kind.
#[derive(Default)]
struct Lines {
    servers: Vec<Entry>,
    groups: Vec<Entry>,
    weights: Vec<Entry>,
}

fn lines(settings: &Settings) -> Result<Lines, ConfigError> {
    let family = |name| settings.family(name).cloned().collect::<Vec<Entry>>();
    let own = Lines { servers: family("server.N"), groups: family("group.N"), weights: family("weight.N") };
    let Some(file) = settings.text("dynamicConfigFile") else { return Ok(own) };
    if let Some(entry) = own.servers.iter().chain(&own.groups).chain(&own.weights).next() {
        return Err(entry.refused(format!("must stand in {file}, as dynamicConfigFile names that file")));
    }
    let mut lines = Lines::default();
    for entry in properties::read_file(file.as_ref())? {
        match entry.key.split_once('.') {
            Some(("server", _)) => lines.servers.push(entry),
            Some(("group", _)) => lines.groups.push(entry),
            Some(("weight", _)) => lines.weights.push(entry),
            _ => return Err(entry.refused("only server.N, group.N and weight.N can stand in this file")),
        }
    }
    Ok(lines)
}

/// A server's line.
fn parse(entry: &Entry) -> Result<(ServerId, Member), ConfigError> {
    let id = entry.key.rsplit_once('.').and_then(|(_, id)| id.parse().ok()).map(ServerId);
    let id = id.ok_or_else(|| entry.refused("the part behind server. must be a number, the server's id"))?;
    Ok((id, Member::parse(&entry.key, &entry.value).map_err(|error| refusal(entry, &error))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_server_line_is_named_in_the_error() {
        for (line, expected) in [
            (
                "server.one=zk1:1:2",
                "zoo.cfg:1: server.one: the part behind server. must be a number, the server's id",
            ),
            ("server.1=zk1:1", "server.1 must be host:port:port, then :observer or nothing"),
            ("server.1=a:1:2:observer|b:1:2", "server.1 must be one server with one role"),
        ] {
            let entries = properties::parse("zoo.cfg", line.as_bytes()).unwrap();
            let error = parse(&entries[0]).unwrap_err().to_string();
            assert!(error.starts_with("zoo.cfg:1: ") && error.contains(expected), "{error}");
        }
    }
}
