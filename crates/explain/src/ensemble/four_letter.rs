//! The state of a server by its four-letter words `srvr`, `mntr` and `conf`: for Java's servers, and for those whose admin
//! port is closed.

use super::state::{ServerState, kind_of, version_of};
use ostler_proto::{id::Zxid, membership::Membership};

/// The answers; empty if the server does not allow the word.
#[derive(Debug, Clone, Default)]
pub struct Words {
    /// `srvr`.
    pub srvr: String,
    /// `mntr`.
    pub mntr: String,
    /// `conf`.
    pub conf: String,
}

/// Java's text for a server that has no leader.
const NOT_SERVING: &str = "not currently serving requests";
/// The most figures that are taken of `mntr`.
const FIGURES_MAX: usize = 1_000;

impl Words {
    /// The state; `None` if no answer is one of a server. The number of the server is 0 if `conf` does not tell it.
    pub fn state(&self) -> Option<ServerState> {
        let is_looking = self.srvr.contains(NOT_SERVING);
        let version = value(&self.srvr, "Zookeeper version: ");
        if version.is_none() && !is_looking {
            return None;
        }
        let version = version.unwrap_or_default();
        let mut state = ServerState {
            id: self.server_id().unwrap_or(0),
            kind: kind_of(version),
            version: version_of(version),
            mode: value(&self.srvr, "Mode: ").unwrap_or_default().to_owned(),
            stage: if is_looking { "election".into() } else { String::new() },
            serves: !is_looking,
            zxid: value(&self.srvr, "Zxid: ").and_then(zxid).unwrap_or_default(),
            ..ServerState::default()
        };
        if state.serves {
            state.stage = "broadcast".into();
        }
        for (figure, label) in [("num_alive_connections", "Connections: "), ("znode_count", "Node count: ")] {
            let number = value(&self.srvr, label).and_then(|text| text.parse().ok());
            state.figures.extend(number.map(|number: f64| (figure.to_owned(), number)));
        }
        state.figures.extend(self.mntr.lines().filter_map(figure).take(FIGURES_MAX));
        self.add_membership(&mut state);
        Some(state)
    }

    /// The number that the server says it has.
    pub fn server_id(&self) -> Option<i64> {
        value(&self.conf, "serverId=").and_then(|text| text.parse().ok())
    }

    fn add_membership(&self, state: &mut ServerState) {
        let lines = self.conf.lines().filter(|line| {
            ["server.", "group.", "weight.", "version="].iter().any(|start| line.starts_with(start))
        });
        let lines: Vec<&str> = lines.collect();
        let Ok(membership) = Membership::parse(&lines.join("\n")) else { return };
        state.set_membership(&membership);
    }
}

impl ServerState {
    /// Notes the configuration in force.
    pub fn set_membership(&mut self, membership: &Membership) {
        for (id, member) in &membership.servers {
            let address = member.addresses.first().map(|at| (&at.host, at.quorum_port));
            let text = address.map_or_else(String::new, |(host, port)| host_and_port(host, port));
            let of = if member.observer { &mut self.observers } else { &mut self.voters };
            of.insert(id.0, text);
        }
        self.config_version = Some(format!("0x{:x}", membership.version));
    }
}

/// An address as one text, with brackets for IPv6.
pub fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn value<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(label)).map(str::trim)
}

fn zxid(text: &str) -> Option<Zxid> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok().map(Zxid)
}

fn figure(line: &str) -> Option<(String, f64)> {
    let (key, value) = line.strip_prefix("zk_")?.split_once('\t')?;
    let number: f64 = value.trim().parse().ok()?;
    number.is_finite().then(|| (key.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::ServerKind;

    const SRVR: &str = "Zookeeper version: 3.9.4-7246445ec281f3dbf53dc54e970c914f39713903, built on 2025-08-19 19:53 UTC\n\
        Latency min/avg/max: 0/0.0/0\nReceived: 3\nSent: 2\nConnections: 4\nOutstanding: 0\nZxid: 0x10000000a\n\
        Mode: follower\nNode count: 5\n";

    #[test]
    fn a_java_server_is_read_from_its_words() {
        let mntr = "zk_version\t3.9.4\nzk_server_state\tfollower\nzk_num_alive_connections\t7\nzk_avg_latency\t0.5\n";
        let conf = "clientPort=2181\nserverId=3\nmembership: \n\
                    server.1=h1:2888:3888:participant;0.0.0.0:2181\nserver.3=h3:2888:3888:participant\n\
                    server.4=h4:2888:3888:observer\nversion=100000000\n";
        let words = Words { srvr: SRVR.into(), mntr: mntr.into(), conf: conf.into() };
        let state = words.state().unwrap();
        assert_eq!((state.id, state.kind, state.role()), (3, ServerKind::Java, Some("following")));
        assert_eq!(state.version, "3.9.4-7246445ec281f3dbf53dc54e970c914f39713903");
        assert_eq!((state.zxid, state.count("num_alive_connections")), (Zxid(0x1_0000_000a), Some(7)));
        assert_eq!(state.voters.keys().copied().collect::<Vec<i64>>(), [1, 3]);
        assert_eq!(state.observers[&4], "h4:2888");
        assert_eq!(state.config_version.as_deref(), Some("0x100000000"));
    }

    #[test]
    fn srvr_alone_is_enough_and_other_texts_are_no_server() {
        let words =
            Words { srvr: SRVR.into(), mntr: "mntr is not executed because".into(), ..Words::default() };
        let state = words.state().unwrap();
        assert_eq!(
            (state.id, state.count("num_alive_connections"), state.count("znode_count")),
            (0, Some(4), Some(5))
        );
        let looking = "This ZooKeeper instance is not currently serving requests\n";
        let state = Words { srvr: looking.into(), ..Words::default() }.state().unwrap();
        assert_eq!((state.serves, state.role()), (false, Some("looking")));
        for other in
            ["", "HTTP/1.1 400 Bad Request", "srvr is not executed because it is not in the whitelist."]
        {
            assert!(Words { srvr: other.into(), ..Words::default() }.state().is_none(), "{other}");
        }
    }
}
