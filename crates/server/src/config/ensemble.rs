//! The lines that describe an ensemble.

use super::error::ConfigError;
use super::properties::{self, Entry};
use super::settings::Settings;
use ostler_proto::id::ServerId;
use ostler_zab::Quorum;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;

/// A server's part in an ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnsembleSettings {
    /// This server.
    pub me: ServerId,
    /// All servers, by their ids.
    pub servers: Vec<EnsembleServer>,
    /// Who votes, and what a vote weighs.
    pub quorum: Quorum,
    /// Ticks for a learner to connect and take over the leader's history.
    pub init_limit: u32,
    /// Ticks between two words of leader and learner.
    pub sync_limit: u32,
    /// Committed records kept in memory for learners.
    pub commit_log_count: u32,
    /// A learner gets records from the log on disk if they are less than this part of a snapshot; `None` is never.
    pub snapshot_size_factor: Option<u32>,
    /// How long connecting to another server may take.
    pub connect_timeout_ms: u32,
    /// `fastleader.minNotificationInterval`
    pub notification_min_ms: u32,
    /// `fastleader.maxNotificationInterval`
    pub notification_max_ms: u32,
}

/// `server.N = host:port:port[:role][|…][;[host:]port]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnsembleServer {
    pub id: ServerId,
    pub addresses: Vec<PeerAddress>,
    pub observer: bool,
    pub client: Option<ClientPart>,
}

/// Where other servers reach a server. The name is looked up anew at each attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    pub host: String,
    pub quorum_port: u16,
    pub election_port: u16,
}

/// Where a server's clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientPart {
    pub host: String,
    pub port: u16,
}

/// A host as it stands before a port.
struct Bracketed<'a>(&'a str);

impl Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') { write!(f, "[{}]", self.0) } else { f.write_str(self.0) }
    }
}

impl Display for EnsembleServer {
    /// As upstream writes it in a configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = if self.observer { "observer" } else { "participant" };
        for (at, address) in self.addresses.iter().enumerate() {
            let PeerAddress { host, quorum_port, election_port } = address;
            let bar = if at > 0 { "|" } else { "" };
            write!(f, "{bar}{}:{quorum_port}:{election_port}:{role}", Bracketed(host))?;
        }
        match &self.client {
            Some(client) => write!(f, ";{}:{}", Bracketed(&client.host), client.port),
            None => Ok(()),
        }
    }
}

impl EnsembleSettings {
    /// A server by its id.
    pub fn server(&self, id: ServerId) -> Option<&EnsembleServer> {
        self.servers.iter().find(|server| server.id == id)
    }

    /// Whether this server does not vote.
    pub fn is_observer(&self) -> bool {
        self.server(self.me).is_some_and(|server| server.observer)
    }

    /// The configuration as servers send it each other, and as `/zookeeper/config` has it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for server in &self.servers {
            text += &format!("server.{}={server}\n", server.id.0);
        }
        if let Quorum::Groups { groups, weights } = &self.quorum {
            let mut members: BTreeMap<u64, Vec<String>> = BTreeMap::new();
            for (server, group) in groups {
                members.entry(*group).or_default().push(server.0.to_string());
            }
            for (group, members) in members {
                text += &format!("group.{group}={}\n", members.join(":"));
            }
            for (server, weight) in weights {
                text += &format!("weight.{}={weight}\n", server.0);
            }
        }
        text + "version=0"
    }
}

/// The line of the only server, if there is one, with its client part.
pub(super) struct OnlyServer {
    pub(super) entry: Entry,
    pub(super) client: Option<ClientPart>,
}

/// What the server.N lines ask for.
pub(super) enum Asked {
    /// One node, with no such line.
    Nothing,
    /// One node that has one.
    One(OnlyServer),
    /// An ensemble, and this server's own line.
    Ensemble(Box<EnsembleSettings>, OnlyServer),
}

impl Asked {
    /// This server's own line.
    pub(super) fn own(&self) -> Option<&OnlyServer> {
        match self {
            Asked::Nothing => None,
            Asked::One(own) | Asked::Ensemble(_, own) => Some(own),
        }
    }
}

/// Reads the lines, here or in the `dynamicConfigFile`, and for an ensemble the number in `dataDir/myid`.
pub(super) fn asked(settings: &Settings, data_dir: &Path) -> Result<Asked, ConfigError> {
    let lines = lines(settings)?;
    let servers = lines.servers.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    match (lines.servers.as_slice(), servers.as_slice()) {
        ([], _) => without_servers(settings).map(|()| Asked::Nothing),
        ([entry], [server]) if !server.observer && settings.bool("standaloneEnabled") => {
            Ok(Asked::One(OnlyServer { entry: entry.clone(), client: server.client.clone() }))
        }
        _ => ensemble(settings, &lines, servers, data_dir),
    }
}

fn without_servers(settings: &Settings) -> Result<(), ConfigError> {
    match settings.entry("standaloneEnabled") {
        Some(entry) if !settings.bool("standaloneEnabled") => {
            Err(entry
                .refused("asks for an ensemble, but there is no server.N line; add them or remove this one"))
        }
        _ => Ok(()),
    }
}

fn ensemble(
    settings: &Settings,
    lines: &Lines,
    mut servers: Vec<EnsembleServer>,
    data_dir: &Path,
) -> Result<Asked, ConfigError> {
    let first = &lines.servers[0];
    let me = my_id(first, data_dir)?;
    let Some(at) = servers.iter().position(|server| server.id == me) else {
        return Err(first.refused(format!(
            "no server.N line is for {}, the number in {}; add the line or correct that file",
            me.0,
            data_dir.join("myid").display()
        )));
    };
    let own = OnlyServer { entry: lines.servers[at].clone(), client: servers[at].client.clone() };
    servers.sort_by_key(|server| server.id);
    if servers.iter().all(|server| server.observer) {
        return Err(first.refused("every server is an observer; somebody has to vote"));
    }
    let quorum = quorum(lines, &servers)?;
    let positive = |name: &str| u32::try_from(settings.int(name)).unwrap_or(0);
    let settings = EnsembleSettings {
        me,
        servers,
        quorum,
        init_limit: positive("initLimit").max(1),
        sync_limit: positive("syncLimit").max(1),
        commit_log_count: positive("commitLogCount"),
        snapshot_size_factor: percent(settings.text("snapshotSizeFactor")),
        connect_timeout_ms: positive("cnxTimeout").max(1),
        notification_min_ms: positive("fastleader.minNotificationInterval").max(1),
        notification_max_ms: positive("fastleader.maxNotificationInterval").max(1),
    };
    Ok(Asked::Ensemble(Box::new(settings), own))
}

/// A part of one in percent; `None` below zero.
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

/// Majority, unless groups or weights are given.
fn quorum(lines: &Lines, servers: &[EnsembleServer]) -> Result<Quorum, ConfigError> {
    let voters = || servers.iter().filter(|server| !server.observer).map(|server| server.id);
    let Some(any) = lines.groups.first().or(lines.weights.first()) else {
        return Ok(Quorum::majority(voters()));
    };
    let mut groups = BTreeMap::new();
    for entry in &lines.groups {
        let group = number(entry)?;
        for member in entry.value.split(':') {
            let id = member.trim().parse().map_err(|_| entry.bad_value("server ids joined by colons"))?;
            if groups.insert(ServerId(id), group).is_some() {
                return Err(entry.bad_value("servers that are in no other group"));
            }
        }
    }
    let mut weights = BTreeMap::new();
    for entry in &lines.weights {
        let weight = entry.value.trim().parse().map_err(|_| entry.bad_value("a number, the weight"))?;
        weights.insert(ServerId(number(entry)? as i64), weight);
    }
    if let Some(without) = voters().find(|id| !groups.contains_key(id)) {
        return Err(
            any.refused(format!("leaves server.{} in no group; with groups every voter has one", without.0))
        );
    }
    groups.retain(|id, _| voters().any(|voter| voter == *id));
    Ok(Quorum::Groups { groups, weights })
}

fn number(entry: &Entry) -> Result<u64, ConfigError> {
    let number = entry.key.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
    number.ok_or_else(|| entry.refused("the part behind the dot must be a number"))
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

fn parse(entry: &Entry) -> Result<EnsembleServer, ConfigError> {
    let id = entry.key.rsplit_once('.').and_then(|(_, id)| id.parse().ok()).map(ServerId);
    let id = id.ok_or_else(|| entry.refused("the part behind server. must be a number, the server's id"))?;
    let (addresses, client) = match entry.value.split_once(';') {
        Some((addresses, client)) => (addresses, Some(parse_client(client).ok_or_else(|| malformed(entry))?)),
        None => (entry.value.as_str(), None),
    };
    let parsed: Option<Vec<(PeerAddress, bool)>> = addresses.split('|').map(parse_address).collect();
    let parsed = parsed.ok_or_else(|| malformed(entry))?;
    let observer = parsed[0].1;
    if parsed.iter().any(|(_, role)| *role != observer) {
        return Err(entry.bad_value("one server with one role, participant or observer"));
    }
    let addresses = parsed.into_iter().map(|(address, _)| address).collect();
    Ok(EnsembleServer { id, addresses, observer, client })
}

fn malformed(entry: &Entry) -> ConfigError {
    entry.bad_value("host:port:port, then :observer or nothing, then ;clientPort or nothing")
}

/// An address, and whether the server there is an observer.
fn parse_address(text: &str) -> Option<(PeerAddress, bool)> {
    let (host, rest) = split_host(text.trim())?;
    let parts: Vec<&str> = rest.split(':').collect();
    let (ports, role) = match parts.as_slice() {
        [quorum, election] => ([quorum, election], "participant"),
        [quorum, election, role] => ([quorum, election], *role),
        _ => return None,
    };
    let [quorum_port, election_port] = ports.map(|port| port.parse::<u16>().ok());
    let address = PeerAddress { host: host.into(), quorum_port: quorum_port?, election_port: election_port? };
    if address.quorum_port == address.election_port {
        return None;
    }
    match role.trim().to_ascii_lowercase().as_str() {
        "participant" => Some((address, false)),
        "observer" => Some((address, true)),
        _ => None,
    }
}

fn parse_client(text: &str) -> Option<ClientPart> {
    let text = text.trim();
    if let Ok(port) = text.parse() {
        return Some(ClientPart { host: "0.0.0.0".into(), port });
    }
    let (host, port) = split_host(text)?;
    Some(ClientPart { host: host.into(), port: port.parse().ok()? })
}

/// `host:rest` or `[host]:rest`.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once("]:")?,
        None => text.split_once(':')?,
    };
    (!host.is_empty()).then_some((host, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Result<EnsembleServer, String> {
        let entries = properties::parse("zoo.cfg", format!("server.1={value}").as_bytes()).unwrap();
        parse(&entries[0]).map_err(|error| error.to_string())
    }

    fn server(value: &str) -> Result<(bool, Option<ClientPart>), String> {
        parsed(value).map(|server| (server.observer, server.client))
    }

    #[test]
    fn a_server_is_written_as_java_writes_it() {
        for (value, written) in [
            ("zk1:2888:3888", "zk1:2888:3888:participant"),
            ("zk1:2888:3888:observer;2181", "zk1:2888:3888:observer;0.0.0.0:2181"),
            ("[::1]:1:2|b:3:4;[::1]:5", "[::1]:1:2:participant|b:3:4:participant;[::1]:5"),
        ] {
            assert_eq!(parsed(value).unwrap().to_string(), written);
        }
    }

    fn client(host: &str, port: u16) -> Option<ClientPart> {
        Some(ClientPart { host: host.into(), port })
    }

    #[test]
    fn all_forms_of_a_server_line_are_understood() {
        let participant = |client| Ok((false, client));
        assert_eq!(server("zk1:2888:3888"), participant(None));
        assert_eq!(server("zk1:2888:3888:Participant"), participant(None));
        assert_eq!(server("zk1:2888:3888;2181"), participant(client("0.0.0.0", 2181)));
        assert_eq!(
            server("zk1:2888:3888:participant;127.0.0.1:2181"),
            participant(client("127.0.0.1", 2181))
        );
        assert_eq!(server("[::1]:2888:3888;[::1]:2181"), participant(client("::1", 2181)));
        assert_eq!(server("a:2888:3888|b:2889:3889;2181"), participant(client("0.0.0.0", 2181)));
        assert_eq!(server("zk1:2888:3888:observer"), Ok((true, None)));
    }

    #[test]
    fn malformed_server_lines_are_errors() {
        for value in [
            "",
            "zk1",
            "zk1:2888",
            "zk1:2888:x",
            "zk1:2888:2888",
            "zk1:1:2:boss",
            "zk1:1:2;x",
            "[::1:1:2",
            ":1:2",
            "a:1:2|",
        ] {
            let error = server(value).unwrap_err();
            assert!(error.contains("server.1 must be host:port:port"), "{value}: {error}");
        }
        assert!(server("a:1:2:observer|b:1:2").unwrap_err().contains("one role"));
    }

    #[test]
    fn the_id_must_be_a_number() {
        let entries = properties::parse("zoo.cfg", b"server.one=zk1:1:2").unwrap();
        let error = parse(&entries[0]).unwrap_err().to_string();
        assert_eq!(error, "zoo.cfg:1: server.one: the part behind server. must be a number, the server's id");
    }
}
