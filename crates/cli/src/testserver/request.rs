//! The bodies of requests, and the words in their paths.

use super::error::ControlError;
use ostler_proto::id::{ServerId, SessionId};
use ostler_testkit::TestOptions;
use serde::{Deserialize, de::DeserializeOwned};
use std::{collections::BTreeMap, time::Duration};

/// The largest ensemble.
pub(super) const SERVERS_MAX: usize = 9;
const TICK_MS_MAX: u64 = 60_000;
const SETTINGS_MAX: usize = 100;
/// Settings that `ostler testserver` makes itself: ports, folders and the list of servers.
const OWN_SETTINGS: [&str; 7] = [
    "dataDir",
    "dataLogDir",
    "clientPort",
    "clientPortAddress",
    "secureClientPort",
    "dynamicConfigFile",
    "standaloneEnabled",
];

/// Reads a body. An empty one is an object without members.
pub(super) fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ControlError> {
    let is_empty = bytes.iter().all(u8::is_ascii_whitespace);
    Ok(serde_json::from_slice(if is_empty { b"{}" } else { bytes })?)
}

/// The body of the call that starts an ensemble.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEnsemble {
    #[serde(default = "one")]
    servers: usize,
    #[serde(default)]
    observers: usize,
    tick_ms: Option<u64>,
    #[serde(default)]
    settings: BTreeMap<String, Setting>,
}

fn one() -> usize {
    1
}

/// The value of a line of zoo.cfg.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Setting {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl Setting {
    fn text(&self) -> String {
        match self {
            Setting::Text(text) => text.clone(),
            Setting::Number(number) => number.to_string(),
            Setting::Flag(flag) => flag.to_string(),
        }
    }
}

impl NewEnsemble {
    /// The number of servers, and their options.
    pub(super) fn checked(&self) -> Result<(usize, TestOptions), ControlError> {
        let NewEnsemble { servers, observers, tick_ms, settings } = self;
        if !(1..=SERVERS_MAX).contains(servers) {
            return Err(ControlError::Size { wanted: *servers, max: SERVERS_MAX });
        }
        if observers >= servers {
            return Err(ControlError::Observers { observers: *observers, servers: *servers });
        }
        let mut options = TestOptions::new().observers(*observers).client_proxies();
        if let Some(tick_ms) = *tick_ms {
            if !(1..=TICK_MS_MAX).contains(&tick_ms) {
                let wanted = "a tick takes 1 to 60000 ms";
                return Err(ControlError::Value { name: "tick_ms", value: tick_ms.to_string(), wanted });
            }
            options = options.tick(Duration::from_millis(tick_ms));
        }
        if settings.len() > SETTINGS_MAX {
            let wanted = "at most 100 settings are taken";
            return Err(ControlError::Value { name: "settings", value: settings.len().to_string(), wanted });
        }
        for (key, value) in settings {
            options = options.setting(key, checked_setting(key, &value.text())?);
        }
        Ok((*servers, options))
    }
}

/// The value of a setting. Refuses those that would move a server, or add a line of their own to zoo.cfg.
fn checked_setting(key: &str, value: &str) -> Result<String, ControlError> {
    if OWN_SETTINGS.contains(&key) || key.starts_with("server.") {
        return Err(ControlError::Setting(key.into()));
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
    if key.is_empty() || !key.chars().all(is_word) || value.chars().any(char::is_control) {
        let wanted = "a key of zoo.cfg and a value in one line are wanted";
        return Err(ControlError::Value { name: "settings", value: format!("{key}={value}"), wanted });
    }
    Ok(value.replace('\\', "\\\\"))
}

/// A server of an ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhichServer {
    Leader,
    Id(ServerId),
}

impl WhichServer {
    pub(super) fn parse(text: &str) -> Result<WhichServer, ControlError> {
        match (text, text.parse()) {
            ("leader", _) => Ok(WhichServer::Leader),
            (_, Ok(id)) => Ok(WhichServer::Id(ServerId(id))),
            _ => Err(ControlError::Value {
                name: "the server",
                value: text.into(),
                wanted: "an id, as in 1, or `leader` is wanted",
            }),
        }
    }
}

/// A session id in decimal, with or without a sign as clients have it, or in hexadecimal behind `0x`.
pub(super) fn session(text: &str) -> Result<SessionId, ControlError> {
    let unsigned = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    // Session ids above i64::MAX are negative in Java.
    let id = unsigned.map(u64::cast_signed).or_else(|_| text.parse());
    id.map(SessionId).map_err(|_| ControlError::Value {
        name: "the session",
        value: text.into(),
        wanted: "an id as clients have it is wanted, as in 72057594037927936 or 0x100000000000000",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(text: &str) -> Result<(usize, TestOptions), ControlError> {
        body::<NewEnsemble>(text.as_bytes()).and_then(|new| new.checked())
    }

    #[test]
    fn an_empty_body_means_one_server() {
        assert_eq!(new("").unwrap().0, 1);
        assert_eq!(new(r#"{"servers": 3}"#).unwrap().0, 3);
    }

    #[test]
    fn what_cannot_be_started_is_refused_with_a_reason() {
        for (text, reason) in [
            (r#"{"servers": 0}"#, "1 to 9 servers, not 0"),
            (r#"{"servers": 10}"#, "1 to 9 servers, not 10"),
            (r#"{"servers": 3, "observers": 3}"#, "at least one has to vote"),
            (r#"{"server": 3}"#, "unknown field `server`"),
            (r#"{"tick_ms": 0}"#, "a tick takes"),
            (r#"{"settings": {"dataDir": "/"}}"#, "dataDir is made by ostler testserver itself"),
            (r#"{"settings": {"server.1": "a:1:2"}}"#, "server.1 is made"),
            (r#"{"settings": {"a\nb": "c"}}"#, "a value in one line"),
            (r#"{"settings": {"a": "b\ndataDir=/"}}"#, "a value in one line"),
            ("[1]", "not the JSON"),
        ] {
            let error = new(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_session_id_is_read_as_clients_write_it() {
        assert_eq!(session("72057594037927936").unwrap(), SessionId(1 << 56));
        assert_eq!(session("0x100000000000000").unwrap(), SessionId(1 << 56));
        assert_eq!(session("-1").unwrap(), SessionId(-1));
        assert_eq!(session("0xffffffffffffffff").unwrap(), SessionId(-1));
        assert_eq!(session("18446744073709551615").unwrap(), SessionId(-1));
        assert!(session("leader").is_err());
    }

    #[test]
    fn a_server_is_named_by_its_id_or_as_the_leader() {
        assert_eq!(WhichServer::parse("leader").unwrap(), WhichServer::Leader);
        assert_eq!(WhichServer::parse("2").unwrap(), WhichServer::Id(ServerId(2)));
        assert!(WhichServer::parse("two").is_err());
    }
}
