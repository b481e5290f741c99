//! The list of servers in `ZOO_SERVERS`, in the form of either image.

use super::{error::EntryError, variables::Variables};

/// A server of the ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerLine {
    pub(super) id: u64,
    /// The text behind `server.ID=`.
    pub(super) value: String,
}

impl ServerLine {
    /// Whether the line names a port for clients.
    pub(super) fn has_client_port(&self) -> bool {
        self.value.contains(';')
    }

    /// The line of zoo.cfg.
    pub(super) fn line(&self) -> String {
        format!("server.{}={}", self.id, self.value)
    }
}

/// Reads `ZOO_SERVERS`. Empty without the variable. Lines of Bitnami's form have no port for clients.
///
/// # Errors
/// A part that is no server, and a number that is there twice.
pub(super) fn read(variables: &Variables) -> Result<Vec<ServerLine>, EntryError> {
    let text = variables.get("ZOO_SERVERS").unwrap_or_default();
    let servers = match text.contains('=') {
        true => text.split_whitespace().map(official).collect::<Result<Vec<_>, _>>()?,
        false => bitnami(text)?,
    };
    for (at, server) in servers.iter().enumerate() {
        if servers[..at].iter().any(|other| other.id == server.id) {
            return Err(EntryError::ServerTwice(server.id));
        }
    }
    Ok(servers)
}

/// `server.1=zoo1:2888:3888;2181`. The server itself checks what is behind the equals sign.
fn official(text: &str) -> Result<ServerLine, EntryError> {
    let parts = text.strip_prefix("server.").and_then(|rest| rest.split_once('='));
    let server =
        parts.and_then(|(id, value)| Some(ServerLine { id: id.parse().ok()?, value: value.to_owned() }));
    server.filter(|server| server.value.contains(':')).ok_or_else(|| EntryError::Server(text.to_owned()))
}

/// `zoo1:2888:3888::1`, or `zoo1:2888:3888` for the numbers from 1 on, separated by commas, semicolons or spaces.
fn bitnami(text: &str) -> Result<Vec<ServerLine>, EntryError> {
    let is_separator = |c: char| c == ',' || c == ';' || c.is_whitespace();
    let parts = text.split(is_separator).filter(|part| !part.is_empty());
    let has_ids = text.contains("::");
    let server = |(at, part): (u64, &str)| {
        let (value, id) = match part.rsplit_once("::") {
            Some((value, id)) if has_ids => (value, id.parse().ok()),
            None if !has_ids => (part, Some(at)),
            _ => (part, None),
        };
        let words: Vec<&str> = value.split(':').collect();
        let is_server = match words.as_slice() {
            [host, peers, election] | [host, peers, election, "participant" | "observer"] => {
                !host.is_empty() && [peers, election].iter().all(|port| port.parse::<u16>().is_ok())
            }
            _ => false,
        };
        let id = id.filter(|_| is_server).ok_or_else(|| EntryError::Server(part.to_owned()))?;
        Ok(ServerLine { id, value: value.to_owned() })
    };
    (1..).zip(parts).map(server).collect()
}

/// The id of this server: of `ZOO_MY_ID` or `ZOO_SERVER_ID`, or of the name of its pod; 1 without any of them.
///
/// # Errors
/// A value that is no number, or a name without one.
pub(super) fn own_id(variables: &Variables) -> Result<u64, EntryError> {
    for variable in ["ZOO_MY_ID", "ZOO_SERVER_ID"] {
        if let Some(value) = variables.get(variable) {
            let refused = || EntryError::NotANumber { variable, value: value.to_owned(), from: 0, to: 255 };
            return value.parse().ok().filter(|id| *id <= 255).ok_or_else(refused);
        }
    }
    let Some(name) = variables.get("OSTLER_ID_FROM_NAME") else { return Ok(1) };
    let ordinal = name.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse::<u8>().ok());
    // A pod's numbers begin with 0, those of servers with 1, as in all charts for ZooKeeper.
    match ordinal.and_then(|ordinal| ordinal.checked_add(1)) {
        Some(id) => Ok(id.into()),
        None => Err(EntryError::NoNumberInName(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn variables(name: &str, value: &str) -> Variables {
        let none = |_: &str| Err(io::ErrorKind::NotFound.into());
        Variables::new([(name.to_owned(), value.to_owned())], none).unwrap()
    }

    fn lines(text: &str) -> Result<Vec<String>, String> {
        let servers = read(&variables("ZOO_SERVERS", text)).map_err(|error| error.to_string())?;
        Ok(servers.iter().map(ServerLine::line).collect())
    }

    #[test]
    fn lists_of_the_official_image_are_taken_as_they_are() {
        assert_eq!(
            lines("server.1=zoo1:2888:3888;2181 server.2=zoo2:2888:3888:observer;10.0.0.2:2181").unwrap(),
            ["server.1=zoo1:2888:3888;2181", "server.2=zoo2:2888:3888:observer;10.0.0.2:2181"]
        );
        assert_eq!(lines("").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn lists_of_bitnami_have_ids_or_count_from_one() {
        assert_eq!(
            lines("a:2888:3888,b:2888:3888;c:2888:3888:observer").unwrap(),
            ["server.1=a:2888:3888", "server.2=b:2888:3888", "server.3=c:2888:3888:observer"]
        );
        assert_eq!(
            lines("a:2888:3888::7 b:2888:3888:participant::9").unwrap(),
            ["server.7=a:2888:3888", "server.9=b:2888:3888:participant"]
        );
    }

    #[test]
    fn a_part_that_is_no_server_is_refused() {
        for text in [
            "zoo1",
            "a:2888",
            "a:2888:3888::1,b:2888:3888",
            "a:x:3888",
            "server.x=a:1:2",
            "skipACL=yes",
            ":1:2",
        ] {
            assert!(lines(text).unwrap_err().contains("is no server"), "{text}");
        }
        assert_eq!(lines("a:1:2::3,b:1:2::3").unwrap_err(), "ZOO_SERVERS: server 3 is there twice");
    }

    #[test]
    fn the_id_comes_from_a_number_or_from_the_name_of_a_pod() {
        for (name, value, id) in [
            ("ZOO_MY_ID", "5", 5),
            ("ZOO_SERVER_ID", "7", 7),
            ("OSTLER_ID_FROM_NAME", "my-ostler-0", 1),
            ("OSTLER_ID_FROM_NAME", "zk-12", 13),
            ("PATH", "/bin", 1),
        ] {
            assert_eq!(own_id(&variables(name, value)).unwrap(), id, "{name}={value}");
        }
        for (name, value) in [
            ("ZOO_MY_ID", "one"),
            ("ZOO_MY_ID", "256"),
            ("OSTLER_ID_FROM_NAME", "ostler"),
            ("OSTLER_ID_FROM_NAME", "o-255"),
        ] {
            assert!(own_id(&variables(name, value)).is_err(), "{name}={value}");
        }
    }
}
