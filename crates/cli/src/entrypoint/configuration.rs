//! From the environment of a container to the text of zoo.cfg.

use super::{
    error::EntryError,
    logins::{self, Logins},
    servers::{self, ServerLine},
    variables::Variables,
};

/// The first line of a zoo.cfg that was made from the environment. Such a file is made again at each start; a file
/// without this line is never touched.
pub(super) const MARK: &str = "# Made by `ostler entrypoint` from the environment, at each start. Without this line the file stays as it is.";

/// The file that a member names in zoo.cfg once the ensemble may change while it runs.
const DYNAMIC: &str = "dynamicConfigFile=";

/// The state of the folders before the start.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The text of zoo.cfg.
    pub(super) zoo_cfg: Option<String>,
    /// The text of the file that zoo.cfg names as its `dynamicConfigFile`.
    pub(super) dynamic: Option<String>,
    /// The text of `myid`.
    pub(super) my_id: Option<String>,
}

/// The folders of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folders {
    pub(super) conf: String,
    pub(super) data: String,
    /// `None` for the folder of the data.
    pub(super) logs: Option<String>,
}

impl Folders {
    /// Those of the variables, or those of the official image.
    pub(super) fn of(variables: &Variables) -> Folders {
        let or = |name, default: &str| variables.get(name).unwrap_or(default).to_owned();
        let logs = match variables.has("ZOO_DATA_LOG_DIR") {
            true => variables.get("ZOO_DATA_LOG_DIR").map(str::to_owned),
            false => Some("/datalog".to_owned()),
        };
        Folders { conf: or("ZOO_CONF_DIR", "/conf"), data: or("ZOO_DATA_DIR", "/data"), logs }
    }

    pub(super) fn zoo_cfg(&self) -> String {
        format!("{}/zoo.cfg", self.conf)
    }

    pub(super) fn jaas(&self) -> String {
        format!("{}/zoo_jaas.conf", self.conf)
    }
}

/// The files to write before the server starts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) zoo_cfg: Option<String>,
    pub(super) jaas: Option<String>,
    pub(super) my_id: Option<String>,
    /// Sentences for the log.
    pub(super) notes: Vec<String>,
}

/// The file that a zoo.cfg names as its `dynamicConfigFile`.
pub(super) fn dynamic_file(zoo_cfg: &str) -> Option<&str> {
    zoo_cfg.lines().find_map(|line| line.strip_prefix(DYNAMIC))
}

/// Decides what to write.
///
/// # Errors
/// An environment that cannot be obeyed.
pub(super) fn plan(variables: &Variables, folders: &Folders, found: &Found) -> Result<Plan, EntryError> {
    let mut notes = variables.without_effect();
    let id = servers::own_id(variables)?;
    let my_id = match &found.my_id {
        None => Some(format!("{id}\n")),
        Some(text) => {
            if text.trim() != id.to_string() && variables.first(&["ZOO_MY_ID", "ZOO_SERVER_ID"]).is_some() {
                notes.push(format!(
                    "the environment gives this server the id {id}, but {}/myid has {}, which counts",
                    folders.data,
                    text.trim()
                ));
            }
            None
        }
    };
    let id = found.my_id.as_ref().and_then(|text| text.trim().parse().ok()).unwrap_or(id);
    if found.zoo_cfg.as_ref().is_some_and(|text| !text.starts_with(MARK)) {
        notes.push(format!("{} is there, so the environment sets nothing in it", folders.zoo_cfg()));
        return Ok(Plan { my_id, notes, ..Plan::default() });
    }
    let Logins { jaas, keys: logins } = logins::read(variables)?;
    let mut lines = vec![MARK.to_owned()];
    lines.extend(general(variables, folders)?);
    lines.extend(tls(variables)?);
    lines.extend(logins);
    if !jaas.is_empty() {
        lines.push(format!("sasl.jaasFile={}", folders.jaas()));
    }
    lines.extend(ensemble(variables, id, found)?);
    lines.extend(variables.keys());
    for (at, extra) in (1..).zip(variables.get("ZOO_CFG_EXTRA").unwrap_or_default().split_whitespace()) {
        if extra.split_once('=').is_none_or(|(key, _)| key.is_empty()) {
            return Err(EntryError::Extra(at));
        }
        lines.push(extra.to_owned());
    }
    let jaas = Some(jaas).filter(|jaas| !jaas.is_empty());
    Ok(Plan { zoo_cfg: Some(lines.join("\n") + "\n"), jaas, my_id, notes })
}

/// A line whose value may have any characters: properties files are in Latin-1 and read backslashes as escapes.
fn property(key: &str, value: &str) -> String {
    let mut line = format!("{key}=");
    let mut units = [0; 2];
    for c in value.chars() {
        match c {
            '\\' => line.push_str("\\\\"),
            ' '..='~' => line.push(c),
            _ => c.encode_utf16(&mut units).iter().for_each(|unit| line.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    line
}

/// The lines about folders, times and limits.
fn general(variables: &Variables, folders: &Folders) -> Result<Vec<String>, EntryError> {
    let mut lines = vec![property("dataDir", &folders.data)];
    lines.extend(folders.logs.as_ref().map(|logs| property("dataLogDir", logs)));
    // The images differ in these.
    let (init, sync, words) =
        if variables.are_of_bitnami() { ("10", "5", Some("srvr,mntr")) } else { ("5", "2", None) };
    let numbers: [(&str, &[&str], Option<&str>); 14] = [
        ("tickTime", &["ZOO_TICK_TIME"], Some("2000")),
        ("initLimit", &["ZOO_INIT_LIMIT"], Some(init)),
        ("syncLimit", &["ZOO_SYNC_LIMIT"], Some(sync)),
        ("maxClientCnxns", &["ZOO_MAX_CLIENT_CNXNS"], Some("60")),
        ("maxCnxns", &["ZOO_MAX_CNXNS"], None),
        ("maxSessionTimeout", &["ZOO_MAX_SESSION_TIMEOUT"], None),
        ("preAllocSize", &["ZOO_PRE_ALLOC_SIZE"], None),
        ("snapCount", &["ZOO_SNAPCOUNT"], None),
        ("autopurge.purgeInterval", &["ZOO_AUTOPURGE_PURGEINTERVAL", "ZOO_AUTOPURGE_INTERVAL"], None),
        ("autopurge.snapRetainCount", &["ZOO_AUTOPURGE_SNAPRETAINCOUNT", "ZOO_AUTOPURGE_RETAIN_COUNT"], None),
        ("4lw.commands.whitelist", &["ZOO_4LW_COMMANDS_WHITELIST"], words),
        ("admin.serverAddress", &["ZOO_ADMIN_SERVER_ADDRESS"], None),
        ("admin.serverPort", &["ZOO_ADMIN_SERVER_PORT_NUMBER"], None),
        ("peerType", &["ZOO_PEER_TYPE"], None),
    ];
    for (key, names, default) in numbers {
        lines.extend(variables.first(names).or(default).map(|value| property(key, value)));
    }
    let switches: [(&str, &'static str); 5] = [
        ("standaloneEnabled", "ZOO_STANDALONE_ENABLED"),
        ("admin.enableServer", "ZOO_ADMINSERVER_ENABLED"),
        ("admin.enableServer", "ZOO_ENABLE_ADMIN_SERVER"),
        ("reconfigEnabled", "ZOO_RECONFIG_ENABLED"),
        ("quorumListenOnAllIPs", "ZOO_LISTEN_ALLIPS_ENABLED"),
    ];
    for (key, name) in switches {
        lines.extend(variables.switch(name)?.map(|on| format!("{key}={on}")));
    }
    if variables.switch("ZOO_ENABLE_PROMETHEUS_METRICS")?.unwrap_or(false) {
        let port = variables.get("ZOO_PROMETHEUS_METRICS_PORT_NUMBER").unwrap_or("7000");
        lines.push(
            "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
                .into(),
        );
        lines.push(property("metricsProvider.httpPort", port));
    }
    // The names of other containers may come later than this one.
    lines.push("electionPortBindRetry=0".into());
    Ok(lines)
}

/// The lines about TLS, of Bitnami's variables.
fn tls(variables: &Variables) -> Result<Vec<String>, EntryError> {
    let mut lines = Vec::new();
    for (switch, of, prefix, auth) in [
        ("ZOO_TLS_CLIENT_ENABLE", "CLIENT", "ssl.", "ZOO_TLS_CLIENT_AUTH"),
        ("ZOO_TLS_QUORUM_ENABLE", "QUORUM", "ssl.quorum.", "ZOO_TLS_QUORUM_CLIENT_AUTH"),
    ] {
        if !variables.switch(switch)?.unwrap_or(false) {
            continue;
        }
        lines.push(match of {
            "CLIENT" => property("secureClientPort", variables.get("ZOO_TLS_PORT_NUMBER").unwrap_or("3181")),
            _ => "sslQuorum=true".to_owned(),
        });
        for (store, key) in [("KEYSTORE", "keyStore"), ("TRUSTSTORE", "trustStore")] {
            let file = format!("ZOO_TLS_{of}_{store}_FILE");
            let location = variables.get(&file).ok_or_else(|| EntryError::Missing(file.clone(), switch))?;
            lines.push(property(&format!("{prefix}{key}.location"), location));
            for (part, name) in [("PASSWORD", "password"), ("TYPE", "type")] {
                let value = variables.get(&format!("ZOO_TLS_{of}_{store}_{part}"));
                lines.extend(value.map(|value| property(&format!("{prefix}{key}.{name}"), value)));
            }
        }
        lines.extend(variables.get(auth).map(|value| property(&format!("{prefix}clientAuth"), value)));
    }
    Ok(lines)
}

/// The lines about the servers, and the port for clients.
fn ensemble(variables: &Variables, id: u64, found: &Found) -> Result<Vec<String>, EntryError> {
    let tls = variables.switch("ZOO_TLS_CLIENT_ENABLE")?.unwrap_or(false);
    let port = variables.get("ZOO_PORT_NUMBER").unwrap_or("2181");
    let mut servers = servers::read(variables)?;
    let is_official = variables.get("ZOO_SERVERS").is_some_and(|text| text.contains('='));
    if let Some(open) = servers.iter().find(|server| tls && server.has_client_port()) {
        return Err(EntryError::PlainPort(open.line()));
    }
    if !is_official && !tls {
        servers.iter_mut().for_each(|server| server.value += &format!(";{port}"));
    }
    let own = variables.get("OSTLER_OWN_SERVER").map(|value| observer(id, value));
    if let (Some(zoo_cfg), Some(dynamic)) = (&found.zoo_cfg, &found.dynamic) {
        let mut lines = of_dynamic(id, dynamic, dynamic_file(zoo_cfg).unwrap_or_default(), own)?;
        let key = format!("server.{id}=");
        let mut listed = dynamic.lines().chain(lines.iter().map(String::as_str));
        if !tls && !listed.any(|line| line.trim_start().starts_with(&key) && line.contains(';')) {
            lines.push(property("clientPort", port));
        }
        return Ok(lines);
    }
    // One server of Bitnami's is no ensemble.
    if servers.is_empty() || (!is_official && servers.len() == 1) {
        return Ok(if tls { Vec::new() } else { vec![property("clientPort", port)] });
    }
    if !servers.iter().any(|server| server.id == id) {
        servers.push(own.ok_or(EntryError::NotListed { id })?);
    }
    let own_port = servers.iter().any(|server| server.id == id && server.has_client_port());
    let mut lines: Vec<String> = servers.iter().map(ServerLine::line).collect();
    if !own_port && !tls {
        lines.push(property("clientPort", port));
    }
    Ok(lines)
}

/// The line of a server that joins an ensemble: it has no vote until a `reconfig` gives it one. So servers without data
/// can never make up an ensemble of their own.
fn observer(id: u64, value: &str) -> ServerLine {
    let (peers, client) =
        value.split_once(';').map_or((value, None), |(peers, client)| (peers, Some(client)));
    let peers = peers.strip_suffix(":participant").unwrap_or(peers);
    let role = if peers.ends_with(":observer") { "" } else { ":observer" };
    let client = client.map(|client| format!(";{client}")).unwrap_or_default();
    ServerLine { id, value: format!("{peers}{role}{client}") }
}

/// The lines of an ensemble that has changed while it ran, which count instead of `ZOO_SERVERS`.
fn of_dynamic(
    id: u64,
    dynamic: &str,
    file: &str,
    own: Option<ServerLine>,
) -> Result<Vec<String>, EntryError> {
    let key = format!("server.{id}=");
    if dynamic.lines().any(|line| line.trim_start().starts_with(&key)) {
        return Ok(vec![format!("{DYNAMIC}{file}")]);
    }
    // Removed meanwhile: it may come again, without a vote.
    let own = own.ok_or_else(|| EntryError::Removed { id, file: file.to_owned() })?;
    let lines = dynamic.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
    Ok(lines.chain([own.line()]).collect())
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;
