//! The configuration of an ensemble and its text: lines in files, in votes, between leader and learners, and in
//! `/zookeeper/config`.

mod host_comparison;

pub use host_comparison::{HostComparison, OtherEnsemble};

use crate::id::ServerId;
use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec::Vec,
};
use core::{
    fmt::{self, Display},
    net::IpAddr,
};

/// The configuration of an ensemble: servers, groups and weights.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Membership {
    /// All servers, voters and observers.
    pub servers: BTreeMap<ServerId, Member>,
    /// The group of each voter; empty without groups.
    pub groups: BTreeMap<ServerId, u64>,
    /// The weights that are given. A voter without one has the weight 1.
    pub weights: BTreeMap<ServerId, u64>,
    /// The zxid of the transaction that made the configuration; 0 for the first one.
    pub version: u64,
}

/// A server of the ensemble. Its text is `host:port:port[:role][|…][;[host:]port]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The addresses at which the other servers reach it; at least one.
    pub addresses: Vec<PeerAddress>,
    /// Whether it is an observer, which does not vote.
    pub observer: bool,
    /// The address for its clients. `None` if the configuration has none.
    pub client: Option<ClientAddress>,
}

/// An address at which other servers reach a server. The host is resolved anew for each attempt to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerAddress {
    /// A host name or an IP address, without brackets.
    pub host: String,
    /// The port to which learners connect.
    pub quorum_port: u16,
    /// The port for votes.
    pub election_port: u16,
}

/// An address to which a server's clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAddress {
    /// A host name or an IP address, without brackets. 0.0.0.0 if the text names a port only.
    pub host: String,
    /// The client port.
    pub port: u16,
}

impl ClientAddress {
    /// Whether the server listens at all addresses of its machine. Then clients reach it by the machine's own name.
    pub fn is_wildcard(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
    }
}

/// The reason why a text is not a configuration of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// The key is none of a configuration.
    #[error("{0}: only server.N, group.N, weight.N and version can stand here")]
    Key(String),
    /// The value of a `server.N` line is malformed.
    #[error("{0}: must be host:port:port, then :observer or nothing, then ;clientPort or nothing")]
    Server(String),
    /// The addresses of one server have different roles.
    #[error("{0}: one server has one role, participant or observer")]
    Roles(String),
    /// A server id, group, weight or version is not a number.
    #[error("{0}: must be a number")]
    Number(String),
    /// There are groups or weights, and a voter is in no group.
    #[error("server.{0} is in no group; with groups every voter has one")]
    NoGroup(i64),
    /// No server votes.
    #[error("every server is an observer; at least one server has to vote")]
    NoVoters,
}

impl Membership {
    /// Reads and checks the text of a configuration. Empty lines and comments (`#`) are skipped.
    pub fn parse(text: &str) -> Result<Membership, MembershipError> {
        let mut read = Membership::default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let (key, value) = line.split_once('=').ok_or_else(|| MembershipError::Key(line.into()))?;
            read.take(key.trim(), value.trim())?;
        }
        read.check()?;
        Ok(read)
    }

    /// Adds the setting of one line.
    pub fn take(&mut self, key: &str, value: &str) -> Result<(), MembershipError> {
        let number = || MembershipError::Number(key.into());
        match key.split_once('.') {
            None if key == "version" => {
                self.version = u64::from_str_radix(value, 16).map_err(|_| number())?;
            }
            Some(("server", id)) => {
                let id = ServerId(id.parse().map_err(|_| number())?);
                self.servers.insert(id, Member::parse(key, value)?);
            }
            Some(("group", group)) => {
                let group = group.parse().map_err(|_| number())?;
                for id in value.split(':') {
                    self.groups.insert(ServerId(id.trim().parse().map_err(|_| number())?), group);
                }
            }
            Some(("weight", id)) => {
                let id = ServerId(id.parse().map_err(|_| number())?);
                // 32 bits, so that a sum of weights does not overflow.
                let weight: u32 = value.parse().map_err(|_| number())?;
                self.weights.insert(id, weight.into());
            }
            _ => return Err(MembershipError::Key(key.into())),
        }
        Ok(())
    }

    /// Checks that there is a voter, and with groups that each voter is in one.
    pub fn check(&self) -> Result<(), MembershipError> {
        if self.voters().next().is_none() {
            return Err(MembershipError::NoVoters);
        }
        let grouped = !self.groups.is_empty() || !self.weights.is_empty();
        match self.voters().find(|id| grouped && !self.groups.contains_key(id)) {
            Some(without) => Err(MembershipError::NoGroup(without.0)),
            None => Ok(()),
        }
    }

    /// The ids of the voters, in order.
    pub fn voters(&self) -> impl Iterator<Item = ServerId> {
        self.servers.iter().filter(|(_, member)| !member.observer).map(|(id, _)| *id)
    }

    /// Whether `server` is a voter of this configuration.
    pub fn votes(&self, server: ServerId) -> bool {
        self.servers.get(&server).is_some_and(|member| !member.observer)
    }

    /// The lines of the configuration, without the version.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.servers.iter().map(|(id, member)| alloc::format!("server.{}={member}", id.0)).collect();
        let mut groups: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (server, group) in &self.groups {
            groups.entry(*group).or_default().push(server.0.to_string());
        }
        lines.extend(groups.iter().map(|(group, of)| alloc::format!("group.{group}={}", of.join(":"))));
        lines.extend(self.weights.iter().map(|(id, weight)| alloc::format!("weight.{}={weight}", id.0)));
        lines
    }
}

impl Display for Membership {
    /// The text as upstream writes it: the version in hex in the last line, which has no line end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(f, "{line}")?;
        }
        write!(f, "version={:x}", self.version)
    }
}

impl Member {
    /// Reads the value of a `server.N` line; `key` stands for the server in errors.
    pub fn parse(key: &str, value: &str) -> Result<Member, MembershipError> {
        let malformed = || MembershipError::Server(key.into());
        let (addresses, client) = match value.split_once(';') {
            Some((addresses, client)) => (addresses, Some(parse_client(client).ok_or_else(malformed)?)),
            None => (value, None),
        };
        let parsed: Option<Vec<(PeerAddress, bool)>> = addresses.split('|').map(parse_address).collect();
        let parsed = parsed.ok_or_else(malformed)?;
        let observer = parsed[0].1;
        if parsed.iter().any(|(_, role)| *role != observer) {
            return Err(MembershipError::Roles(key.into()));
        }
        Ok(Member { addresses: parsed.into_iter().map(|(address, _)| address).collect(), observer, client })
    }

    /// Whether two servers have a port at the same host, so that only one of them could listen there.
    pub fn collides(&self, other: &Member) -> bool {
        // These hosts mean another machine for each server, or several servers of one machine that listen everywhere.
        let shared = |host: &str| matches!(host, "0.0.0.0" | "::" | "127.0.0.1" | "::1" | "localhost");
        let ports = |member: &Member| -> Vec<(String, u16)> {
            let peers = member.addresses.iter().flat_map(|address| {
                [(address.host.clone(), address.quorum_port), (address.host.clone(), address.election_port)]
            });
            let client = member.client.iter().map(|client| (client.host.clone(), client.port));
            peers.chain(client).filter(|(host, _)| !shared(host)).collect()
        };
        let theirs = ports(other);
        ports(self).iter().any(|own| theirs.contains(own))
    }
}

impl Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = if self.observer { "observer" } else { "participant" };
        for (at, PeerAddress { host, quorum_port, election_port }) in self.addresses.iter().enumerate() {
            let bar = if at > 0 { "|" } else { "" };
            write!(f, "{bar}{}:{quorum_port}:{election_port}:{role}", Bracketed(host))?;
        }
        match &self.client {
            Some(client) => write!(f, ";{}:{}", Bracketed(&client.host), client.port),
            None => Ok(()),
        }
    }
}

/// A host as it is written before a port: an IPv6 address in brackets.
struct Bracketed<'a>(&'a str);

impl Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') { write!(f, "[{}]", self.0) } else { f.write_str(self.0) }
    }
}

/// An address, and whether the server there is an observer.
fn parse_address(text: &str) -> Option<(PeerAddress, bool)> {
    let (host, rest) = split_host(text.trim())?;
    let mut parts = rest.split(':');
    let mut port = || parts.next()?.trim().parse::<u16>().ok();
    let address = PeerAddress { host: host.into(), quorum_port: port()?, election_port: port()? };
    let observer = match parts.next().map(str::trim) {
        None => false,
        Some(role) if role.eq_ignore_ascii_case("participant") => false,
        Some(role) if role.eq_ignore_ascii_case("observer") => true,
        Some(_) => return None,
    };
    (parts.next().is_none() && address.quorum_port != address.election_port).then_some((address, observer))
}

fn parse_client(text: &str) -> Option<ClientAddress> {
    let text = text.trim();
    if let Ok(port) = text.parse() {
        return Some(ClientAddress { host: "0.0.0.0".into(), port });
    }
    let (host, port) = split_host(text)?;
    Some(ClientAddress { host: host.into(), port: port.parse().ok()? })
}

/// Splits `host:rest` or `[host]:rest`. A host with a bracket or a space is refused: it could not be written and read
/// again.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once("]:")?,
        None => text.split_once(':')?,
    };
    let host = host.trim();
    let unfit = |c: char| c.is_whitespace() || matches!(c, '[' | ']');
    (!host.is_empty() && !host.contains(unfit)).then_some((host, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(value: &str) -> Result<Member, MembershipError> {
        Member::parse("server.1", value)
    }

    #[test]
    fn all_forms_of_a_server_are_understood_and_written_as_java_does() {
        for (value, written) in [
            ("zk1:2888:3888", "zk1:2888:3888:participant"),
            ("zk1:2888:3888:Participant", "zk1:2888:3888:participant"),
            ("zk1:2888:3888;2181", "zk1:2888:3888:participant;0.0.0.0:2181"),
            ("zk1:2888:3888:observer;127.0.0.1:2181", "zk1:2888:3888:observer;127.0.0.1:2181"),
            ("[::1]:1:2|b:3:4;[::1]:5", "[::1]:1:2:participant|b:3:4:participant;[::1]:5"),
        ] {
            assert_eq!(member(value).map(|member| member.to_string()), Ok(written.to_string()), "{value}");
        }
    }

    #[test]
    fn malformed_servers_are_errors() {
        let malformed = [
            "",
            "zk1",
            "zk1:2888",
            "zk1:2888:x",
            "zk1:2888:2888",
            "zk1:1:2:boss",
            "zk1:1:2;x",
            "[::1:1:2",
            "[[a]:1:2",
            "a b:1:2",
            "a:1:2;[[b]:5",
            ":1:2",
            "a:1:2|",
        ];
        for value in malformed {
            assert_eq!(member(value), Err(MembershipError::Server("server.1".into())), "{value}");
        }
        assert_eq!(member("a:1:2:observer|b:1:2"), Err(MembershipError::Roles("server.1".into())));
    }

    #[test]
    fn a_configuration_is_read_as_it_was_written_or_refused() {
        let text = "server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:participant\nserver.3=c:1:2:observer\n\
                    group.1=1\ngroup.2=2\nweight.2=3\nversion=100000000";
        let read = Membership::parse(text).unwrap();
        assert_eq!(read.version, 1 << 32);
        assert!(read.voters().eq([ServerId(1), ServerId(2)]));
        assert_eq!(read.to_string(), text);
        assert_eq!(Membership::parse("server.1=a:1:2:observer"), Err(MembershipError::NoVoters));
        assert_eq!(
            Membership::parse("server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1"),
            Err(MembershipError::NoGroup(2))
        );
        let heavy = "server.1=a:1:2\ngroup.1=1\nweight.1=4294967296";
        assert!(Membership::parse(heavy).is_err(), "sums of weights must not overflow");
        assert_eq!(Membership::parse("clientPort=2181"), Err(MembershipError::Key("clientPort".into())));
    }

    #[test]
    fn servers_with_a_common_host_and_port_collide_unless_the_host_is_a_wildcard_or_loopback() {
        let collide = |a: &str, b: &str| member(a).unwrap().collides(&member(b).unwrap());
        assert!(collide("h:1:2", "h:3:2"));
        assert!(collide("h:1:2;g:3", "k:1:2;g:3"));
        assert!(!collide("h:1:2;2181", "k:1:2;2181"));
        assert!(!collide("127.0.0.1:1:2", "127.0.0.1:1:2"));
    }
}
