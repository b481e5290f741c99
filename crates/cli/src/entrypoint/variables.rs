//! The environment variables of the container image: those of the official `zookeeper` image and of Bitnami's.

use super::error::EntryError;
use std::collections::BTreeMap;

/// Variables that set something, each of which may be given as a file by the same name with `_FILE` behind it.
const OBEYED: [&str; 63] = [
    "ALLOW_ANONYMOUS_LOGIN",
    "ALLOW_EMPTY_PASSWORD",
    "OSTLER_ID_FROM_NAME",
    "OSTLER_OWN_SERVER",
    "ZOO_4LW_COMMANDS_WHITELIST",
    "ZOO_ADMINSERVER_ENABLED",
    "ZOO_ADMIN_SERVER_ADDRESS",
    "ZOO_ADMIN_SERVER_PORT_NUMBER",
    "ZOO_AUTOPURGE_INTERVAL",
    "ZOO_AUTOPURGE_PURGEINTERVAL",
    "ZOO_AUTOPURGE_RETAIN_COUNT",
    "ZOO_AUTOPURGE_SNAPRETAINCOUNT",
    "ZOO_CFG_EXTRA",
    "ZOO_CONF_DIR",
    "ZOO_DATA_DIR",
    "ZOO_DATA_LOG_DIR",
    "ZOO_ENABLE_ADMIN_SERVER",
    "ZOO_ENABLE_AUTH",
    "ZOO_ENABLE_PROMETHEUS_METRICS",
    "ZOO_ENABLE_QUORUM_AUTH",
    "ZOO_INIT_LIMIT",
    "ZOO_LISTEN_ALLIPS_ENABLED",
    "ZOO_MAX_CLIENT_CNXNS",
    "ZOO_MAX_CNXNS",
    "ZOO_MAX_SESSION_TIMEOUT",
    "ZOO_MY_ID",
    "ZOO_PEER_TYPE",
    "ZOO_PORT_NUMBER",
    "ZOO_PRE_ALLOC_SIZE",
    "ZOO_PROMETHEUS_METRICS_PORT_NUMBER",
    "ZOO_QUORUM_LEARNER_PASSWORD",
    "ZOO_QUORUM_LEARNER_USER",
    "ZOO_QUORUM_SERVER_PASSWORDS",
    "ZOO_QUORUM_SERVER_USERS",
    "ZOO_RECONFIG_ENABLED",
    "ZOO_SERVERS",
    "ZOO_SERVER_ID",
    "ZOO_SERVER_PASSWORDS",
    "ZOO_SERVER_USERS",
    "ZOO_SNAPCOUNT",
    "ZOO_STANDALONE_ENABLED",
    "ZOO_SYNC_LIMIT",
    "ZOO_TICK_TIME",
    "ZOO_TLS_CLIENT_AUTH",
    "ZOO_TLS_CLIENT_ENABLE",
    "ZOO_TLS_CLIENT_KEYSTORE_FILE",
    "ZOO_TLS_CLIENT_KEYSTORE_PASSWORD",
    "ZOO_TLS_CLIENT_KEYSTORE_TYPE",
    "ZOO_TLS_CLIENT_TRUSTSTORE_FILE",
    "ZOO_TLS_CLIENT_TRUSTSTORE_PASSWORD",
    "ZOO_TLS_CLIENT_TRUSTSTORE_TYPE",
    "ZOO_TLS_PORT_NUMBER",
    "ZOO_TLS_QUORUM_CLIENT_AUTH",
    "ZOO_TLS_QUORUM_ENABLE",
    "ZOO_TLS_QUORUM_KEYSTORE_FILE",
    "ZOO_TLS_QUORUM_KEYSTORE_PASSWORD",
    "ZOO_TLS_QUORUM_KEYSTORE_TYPE",
    "ZOO_TLS_QUORUM_TRUSTSTORE_FILE",
    "ZOO_TLS_QUORUM_TRUSTSTORE_PASSWORD",
    "ZOO_TLS_QUORUM_TRUSTSTORE_TYPE",
    // Of the client programs in Bitnami's image. The server does not need them.
    "ZOO_CLIENT_PASSWORD",
    "ZOO_CLIENT_USER",
    // Checks that are always on here.
    "ZOO_FIPS_MODE",
];

/// Variables that have no effect here, each with the reason.
const WITHOUT_EFFECT: [(&str, &str); 8] = [
    ("ZOOCFGDIR", "ZOO_CONF_DIR names the folder of zoo.cfg"),
    ("ZOO_HC_TIMEOUT", "probes ask /livez and /readyz"),
    ("ZOO_HEAP_SIZE", "there is no Java machine; limit the memory of the container"),
    ("ZOO_LOG4J_PROP", "the log goes to standard error; RUST_LOG sets its level"),
    ("ZOO_LOGBACK_FILE", "the log goes to standard error; RUST_LOG sets its level"),
    ("ZOO_LOG_DIR", "the log goes to standard error"),
    ("ZOO_LOG_FILE", "the log goes to standard error"),
    ("ZOO_LOG_LEVEL", "RUST_LOG sets the level of the log, for example RUST_LOG=warn"),
];

/// The variables that only users of Bitnami's image set.
const OF_BITNAMI: [&str; 6] = [
    "ALLOW_ANONYMOUS_LOGIN",
    "ALLOW_EMPTY_PASSWORD",
    "ZOO_ENABLE_AUTH",
    "ZOO_PORT_NUMBER",
    "ZOO_SERVER_ID",
    "ZOO_TLS_CLIENT_ENABLE",
];

/// The end of the name of a variable that names a file with the value.
const FILE: &str = "_FILE";
/// The beginning of variables that are keys of zoo.cfg, with `_` for each dot.
const KEY: &str = "ZOO_CFG_";

/// The variables that concern the image, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    /// Takes those of the image from an environment. `read` reads a file that a variable names.
    ///
    /// # Errors
    /// A file that cannot be read, and a value with a line break or another control character.
    pub(super) fn new(
        environment: impl IntoIterator<Item = (String, String)>,
        read: impl Fn(&str) -> std::io::Result<String>,
    ) -> Result<Variables, EntryError> {
        let mut values = BTreeMap::new();
        let mut files = Vec::new();
        for (name, value) in environment {
            match name.strip_suffix(FILE) {
                Some(of) if OBEYED.contains(&of) && !value.is_empty() => {
                    files.push((of.to_owned(), name, value))
                }
                _ if name.starts_with("ZOO") || OBEYED.contains(&&*name) => drop(values.insert(name, value)),
                _ => {}
            }
        }
        for (of, variable, file) in files {
            let text = read(&file).map_err(|source| EntryError::File { variable, file, source })?;
            values.insert(of, text.trim_end_matches(['\n', '\r']).to_owned());
        }
        let lists = ["ZOO_CFG_EXTRA", "ZOO_SERVERS"];
        let is_refused = |c: char, list: bool| c.is_control() && !(list && c.is_whitespace());
        for (name, value) in &values {
            let list = lists.contains(&&**name) || name.ends_with("USERS") || name.ends_with("PASSWORDS");
            if value.chars().any(|c| is_refused(c, list)) {
                return Err(EntryError::ControlCharacter { variable: name.clone() });
            }
        }
        Ok(Variables { values })
    }

    /// The value of a variable that is set and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Whether a variable is set, even to nothing.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value of the first of these variables that is set.
    pub(super) fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// A switch, in the words of both images; `None` if it is not set.
    ///
    /// # Errors
    /// [`EntryError::NotASwitch`] for any other word.
    pub(super) fn switch(&self, name: &'static str) -> Result<Option<bool>, EntryError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.to_ascii_lowercase().as_str() {
            "yes" | "true" | "1" => Ok(Some(true)),
            "no" | "false" | "0" => Ok(Some(false)),
            _ => Err(EntryError::NotASwitch { variable: name, value: value.to_owned() }),
        }
    }

    /// Whether the variables are those of Bitnami's image, which has other defaults.
    pub(super) fn are_of_bitnami(&self) -> bool {
        OF_BITNAMI.iter().any(|name| self.get(name).is_some())
    }

    /// Keys of zoo.cfg that are variables of their own (`ZOO_CFG_snapCount`, `ZOO_CFG_ssl_protocol`), as lines.
    pub(super) fn keys(&self) -> Vec<String> {
        let own = self.values.iter().filter(|(name, _)| !OBEYED.contains(&&***name));
        let keys = own.filter_map(|(name, value)| Some((name.strip_prefix(KEY)?, value)));
        keys.map(|(key, value)| format!("{}={value}", key.replace('_', "."))).collect()
    }

    /// Sentences about the variables that have no effect.
    pub(super) fn without_effect(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for name in self.values.keys().filter(|name| !OBEYED.contains(&&***name) && !name.starts_with(KEY)) {
            let reason = WITHOUT_EFFECT.iter().find(|(known, _)| known == name);
            sentences.push(match reason {
                Some((_, reason)) => format!("{name} has no effect: {reason}"),
                None => format!("{name} is not known, and has no effect"),
            });
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Result<Variables, EntryError> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Variables::new(pairs, |file| match file {
            "/run/secrets/words" => Ok("one,two\n".into()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        })
    }

    #[test]
    fn a_file_gives_the_value_of_its_variable() {
        let of_file = variables(&[("ZOO_SERVER_PASSWORDS_FILE", "/run/secrets/words")]).unwrap();
        assert_eq!(of_file.get("ZOO_SERVER_PASSWORDS"), Some("one,two"));
        // A variable whose own name ends with _FILE is no such file.
        let store = variables(&[("ZOO_TLS_CLIENT_KEYSTORE_FILE", "/keys.p12")]).unwrap();
        assert_eq!(store.get("ZOO_TLS_CLIENT_KEYSTORE_FILE"), Some("/keys.p12"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused() {
        let error = variables(&[("ZOO_SERVER_PASSWORDS_FILE", "/gone")]).unwrap_err();
        assert!(error.to_string().starts_with("ZOO_SERVER_PASSWORDS_FILE=/gone cannot be read"), "{error}");
    }

    #[test]
    fn a_line_break_in_a_value_is_refused_but_not_in_a_list() {
        let error = variables(&[("ZOO_TICK_TIME", "2000\nskipACL=yes")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ZOO_TICK_TIME has a line break or another control character; remove it"
        );
        assert!(variables(&[("ZOO_SERVERS", "server.1=a:1:2;3\nserver.2=b:1:2;3")]).is_ok());
    }

    #[test]
    fn a_switch_has_the_words_of_both_images() {
        let all = variables(&[
            ("ZOO_ENABLE_AUTH", "Yes"),
            ("ZOO_STANDALONE_ENABLED", "false"),
            ("ZOO_RECONFIG_ENABLED", ""),
            ("ZOO_TLS_CLIENT_ENABLE", "on"),
        ]);
        let all = all.unwrap();
        assert_eq!(all.switch("ZOO_ENABLE_AUTH").unwrap(), Some(true));
        assert_eq!(all.switch("ZOO_STANDALONE_ENABLED").unwrap(), Some(false));
        assert_eq!(all.switch("ZOO_RECONFIG_ENABLED").unwrap(), None);
        let error = all.switch("ZOO_TLS_CLIENT_ENABLE").unwrap_err();
        assert_eq!(error.to_string(), "ZOO_TLS_CLIENT_ENABLE=on is not allowed; write yes or no");
    }

    #[test]
    fn variables_without_effect_are_named() {
        let all = variables(&[
            ("ZOO_HEAP_SIZE", "1024"),
            ("ZOO_TIK_TIME", "1"),
            ("PATH", "/bin"),
            ("ZOO_CFG_snapCount", "9"),
        ]);
        let all = all.unwrap();
        assert_eq!(
            all.without_effect(),
            [
                "ZOO_HEAP_SIZE has no effect: there is no Java machine; limit the memory of the container",
                "ZOO_TIK_TIME is not known, and has no effect"
            ]
        );
        assert_eq!(all.keys(), ["snapCount=9"]);
    }
}
