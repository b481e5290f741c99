//! Commands about the ensemble.

use super::super::{
    answer::Answer,
    command::{Change, Reconfig},
    error::ShellError,
    session::ShellSession,
    watches::Watched,
};
use ostler_client::Bytes;
use ostler_proto::{membership::Membership, path::CONFIG};
use std::{io, path::Path};

impl ShellSession {
    pub(super) async fn config(
        &mut self,
        for_clients: bool,
        watch: bool,
        stat: bool,
    ) -> Result<(), ShellError> {
        let connection = self.connected()?;
        let client = connection.unrooted.clone();
        let (data, found) = match watch {
            false => client.get_config().await?,
            true => {
                let (read, changed) = client.get_data(CONFIG).watch().await?;
                connection.watches.once(CONFIG, Watched::Data, changed);
                read
            }
        };
        let text = match for_clients {
            true => for_clients_of(&data)?,
            false => text_of(&data),
        };
        self.answer(&Answer::Config { text, stat: stat.then_some(found) })
    }

    pub(super) async fn reconfig(&mut self, wanted: Reconfig) -> Result<(), ShellError> {
        let client = self.client()?;
        let (joining, leaving, members) = match wanted.change {
            Change::Members(members) => (None, None, Some(members)),
            Change::MembersOf(path) => (None, None, Some(members_of(&path)?)),
            Change::Step { joining, leaving } => (joining, leaving, None),
        };
        let mut change = client.reconfig().config_version(wanted.version);
        if let Some(joining) = &joining {
            change = change.joining(joining);
        }
        if let Some(leaving) = &leaving {
            change = change.leaving(leaving);
        }
        if let Some(members) = &members {
            change = change.members(members);
        }
        let (data, found) = change.await?;
        let text = format!("Committed new configuration:\n{}", text_of(&data));
        self.answer(&Answer::Config { text, stat: wanted.stat.then_some(found) })
    }
}

fn text_of(data: &Bytes) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// The version and the connect string, as zkCli.sh prints them. A standalone server has neither.
fn for_clients_of(data: &Bytes) -> Result<String, ShellError> {
    if data.trim_ascii().is_empty() {
        return Ok(String::new());
    }
    let config = Membership::parse(&text_of(data)).map_err(|cause| {
        ShellError::Refused(format!("the server's configuration makes no sense: {cause}"))
    })?;
    let clients = config.servers.values().filter_map(|member| member.client.as_ref());
    let addresses: Vec<String> = clients.map(|client| format!("{}:{}", client.host, client.port)).collect();
    Ok(format!("{:x} {}", config.version, addresses.join(",")))
}

/// The servers of a dynamic configuration file.
fn members_of(path: &Path) -> Result<String, ShellError> {
    let trouble = |cause| ShellError::File { path: path.to_owned(), cause };
    let text = std::fs::read_to_string(path).map_err(trouble)?;
    let config = Membership::parse(&text).map_err(|cause| trouble(io::Error::other(cause)))?;
    Ok(config.lines().join(","))
}
