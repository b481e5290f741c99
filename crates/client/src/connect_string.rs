//! Parses a connect string, `host1:2181,[::1]:2182/root`, into the servers and the client's root (chroot).

use crate::error::{Error, Result};
use ostler_client_core::Chroot;
use std::{fmt, str::FromStr};

/// The port of a server without one.
const PORT: u16 = 2181;

/// A server's address for its clients. A name is resolved anew at every attempt to connect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostPort {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// An address.
    pub fn new(host: impl Into<String>, port: u16) -> HostPort {
        HostPort { host: host.into(), port }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Reads one server of a connect string: `host`, `host:2181`, `[::1]:2181`. The port is 2181 by default.
impl FromStr for HostPort {
    type Err = Error;

    /// # Errors
    /// [`Error::ConnectString`].
    fn from_str(text: &str) -> Result<HostPort> {
        let server = text.trim();
        match server.contains([',', '/']) {
            true => Err("it should be one server"),
            false => host_port(server),
        }
        .map_err(|problem| Error::ConnectString { text: text.into(), problem })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ConnectString {
    pub(crate) hosts: Vec<HostPort>,
    pub(crate) chroot: Chroot,
}

pub(crate) fn parse(text: &str) -> Result<ConnectString> {
    let parsed = parse_any(text)?;
    match parsed.hosts.is_empty() {
        true => Err(Error::ConnectString { text: text.into(), problem: "it has no server" }),
        false => Ok(parsed),
    }
}

/// The same, and the text may have no server.
pub(crate) fn parse_any(text: &str) -> Result<ConnectString> {
    let wrong = |problem| Error::ConnectString { text: text.into(), problem };
    let (servers, root) = match text.find('/') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let chroot =
        Chroot::new(root).ok_or_else(|| wrong("the text after the servers is not a path of a znode"))?;
    let hosts = servers.split(',').map(str::trim).filter(|server| !server.is_empty());
    let hosts = hosts.map(|server| host_port(server).map_err(wrong)).collect::<Result<Vec<HostPort>>>()?;
    Ok(ConnectString { hosts, chroot })
}

fn host_port(server: &str) -> std::result::Result<HostPort, &'static str> {
    let (host, port) = match server.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("a [ has no matching ]")?;
            let port = match port {
                "" => None,
                _ => Some(port.strip_prefix(':').ok_or("something other than a port follows the ]")?),
            };
            (host, port)
        }
        // An IPv6 address without brackets has more than one colon, and no port.
        None if server.matches(':').count() > 1 => (server, None),
        None => match server.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (server, None),
        },
    };
    let port =
        port.map_or(Ok(PORT), |port| port.parse().map_err(|_| "a port is a number from 1 to 65535"))?;
    match host.is_empty() || port == 0 {
        true => Err("a server needs a name and a port above 0"),
        false => Ok(HostPort { host: host.to_owned(), port }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_root_are_separated() {
        for (text, servers, root) in [
            ("h", "h:2181", "/"),
            ("h:1,g:2", "h:1 g:2", "/"),
            ("h:1, g:2/a/b", "h:1 g:2", "/a/b"),
            ("[::1]:5,[::2],::3/", "[::1]:5 [::2]:2181 [::3]:2181", "/"),
        ] {
            let parsed = parse(text).unwrap();
            let hosts: Vec<String> = parsed.hosts.iter().map(HostPort::to_string).collect();
            assert_eq!((hosts.join(" ").as_str(), parsed.chroot.root()), (servers, root), "{text}");
        }
    }

    #[test]
    fn a_server_is_read_as_it_is_displayed() {
        for (text, server) in
            [("zk1", ("zk1", 2181)), ("zk1:5", ("zk1", 5)), ("[::1]:5", ("::1", 5)), ("::1", ("::1", 2181))]
        {
            let read: HostPort = text.parse().unwrap();
            assert_eq!(read, HostPort::new(server.0, server.1));
            assert_eq!(read.to_string().parse::<HostPort>().unwrap(), read);
        }
        for text in ["", "a,b", "a:1/root", "a:0", "a:x"] {
            assert!(text.parse::<HostPort>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn invalid_connect_strings_are_refused() {
        for text in ["", "/a", "h:x", "h:0", ":1", "[::1", "[::1]5", "h/a/", "h//a", "h:65536"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
