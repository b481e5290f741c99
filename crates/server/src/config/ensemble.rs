//! The lines that describe an ensemble. This build runs one node, so they are read to find out whether one
//! node is what they ask for.

use super::error::ConfigError;
use super::properties::{self, Entry};
use super::settings::Settings;

const ONE_NODE: &str = "this build runs one node; ensembles are not part of it yet; \
                        remove the server.N lines or start a single node";

/// `server.N = host:port:port[:role][|…][;[host:]port]`, as far as a single node cares.
#[derive(Debug, PartialEq)]
struct Server {
    id: i64,
    observer: bool,
    client: Option<ClientPart>,
}

/// Where the server's clients connect.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClientPart {
    pub(super) host: String,
    pub(super) port: u16,
}

/// The line of the only server, if there is one, with its client part.
pub(super) struct OnlyServer {
    pub(super) entry: Entry,
    pub(super) client: Option<ClientPart>,
}

/// Follows `dynamicConfigFile` and makes sure that no ensemble is asked for.
pub(super) fn only_server(settings: &Settings) -> Result<Option<OnlyServer>, ConfigError> {
    let entries = server_entries(settings)?;
    let servers = entries.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    match (entries.as_slice(), servers.as_slice()) {
        ([], _) => without_servers(settings).map(|()| None),
        ([entry], [server]) if !server.observer && settings.bool("standaloneEnabled") => {
            Ok(Some(OnlyServer { entry: entry.clone(), client: server.client.clone() }))
        }
        (entries, _) => Err(entries[entries.len().min(2) - 1].refused(ONE_NODE)),
    }
}

fn without_servers(settings: &Settings) -> Result<(), ConfigError> {
    match settings.entry("standaloneEnabled") {
        Some(entry) if !settings.bool("standaloneEnabled") => {
            Err(entry.refused("asks for an ensemble, which is not part of this build yet; remove the line"))
        }
        _ => Ok(()),
    }
}

fn server_entries(settings: &Settings) -> Result<Vec<Entry>, ConfigError> {
    let own: Vec<Entry> = settings.family("server.N").cloned().collect();
    let Some(file) = settings.text("dynamicConfigFile") else { return Ok(own) };
    let groups = settings.family("group.N").chain(settings.family("weight.N"));
    if let Some(entry) = own.first().or_else(|| groups.into_iter().next()) {
        return Err(entry.refused(format!("must stand in {file}, as dynamicConfigFile names that file")));
    }
    let mut servers = Vec::new();
    for entry in properties::read_file(file.as_ref())? {
        match entry.key.split_once('.') {
            Some(("server", _)) => servers.push(entry),
            Some(("group" | "weight", _)) => {}
            _ => return Err(entry.refused("only server.N, group.N and weight.N can stand in this file")),
        }
    }
    Ok(servers)
}

fn parse(entry: &Entry) -> Result<Server, ConfigError> {
    let id = entry.key.rsplit_once('.').and_then(|(_, id)| id.parse().ok());
    let id = id.ok_or_else(|| entry.refused("the part behind server. must be a number, the server's id"))?;
    let (addresses, client) = match entry.value.split_once(';') {
        Some((addresses, client)) => (addresses, Some(parse_client(client).ok_or_else(|| malformed(entry))?)),
        None => (entry.value.as_str(), None),
    };
    let roles: Option<Vec<bool>> = addresses.split('|').map(parse_address).collect();
    let roles = roles.ok_or_else(|| malformed(entry))?;
    let observer = roles[0];
    if roles.iter().any(|&role| role != observer) {
        return Err(entry.bad_value("one server with one role, participant or observer"));
    }
    Ok(Server { id, observer, client })
}

fn malformed(entry: &Entry) -> ConfigError {
    entry.bad_value("host:port:port, then :observer or nothing, then ;clientPort or nothing")
}

/// Whether the server at this address is an observer.
fn parse_address(text: &str) -> Option<bool> {
    let (_host, rest) = split_host(text.trim())?;
    let parts: Vec<&str> = rest.split(':').collect();
    let (ports, role) = match parts.as_slice() {
        [quorum, election] => ([quorum, election], "participant"),
        [quorum, election, role] => ([quorum, election], *role),
        _ => return None,
    };
    let [quorum_port, election_port] = ports.map(|port| port.parse::<u16>().ok());
    if quorum_port? == election_port? {
        return None;
    }
    match role.trim().to_ascii_lowercase().as_str() {
        "participant" => Some(false),
        "observer" => Some(true),
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

    fn server(value: &str) -> Result<Server, String> {
        let entries = properties::parse("zoo.cfg", format!("server.1={value}").as_bytes()).unwrap();
        parse(&entries[0]).map_err(|error| error.to_string())
    }

    fn client(host: &str, port: u16) -> Option<ClientPart> {
        Some(ClientPart { host: host.into(), port })
    }

    #[test]
    fn all_forms_of_a_server_line_are_understood() {
        let participant = |client| Ok(Server { id: 1, observer: false, client });
        assert_eq!(server("zk1:2888:3888"), participant(None));
        assert_eq!(server("zk1:2888:3888:Participant"), participant(None));
        assert_eq!(server("zk1:2888:3888;2181"), participant(client("0.0.0.0", 2181)));
        assert_eq!(
            server("zk1:2888:3888:participant;127.0.0.1:2181"),
            participant(client("127.0.0.1", 2181))
        );
        assert_eq!(server("[::1]:2888:3888;[::1]:2181"), participant(client("::1", 2181)));
        assert_eq!(server("a:2888:3888|b:2889:3889;2181"), participant(client("0.0.0.0", 2181)));
        assert_eq!(server("zk1:2888:3888:observer"), Ok(Server { id: 1, observer: true, client: None }));
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
