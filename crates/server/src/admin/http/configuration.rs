//! The configuration in force, for the console.

use super::handle::AdminHandle;
use crate::config::KeyInForce;
use ostler_proto::{membership::Membership, path};
use std::sync::Arc;

/// The configuration of the ensemble in the tree, which is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamicConfiguration {
    /// The zxid of the change that made it; 0 for the one of the files.
    pub version: u64,
    /// Its lines, without the version.
    pub members: Vec<String>,
}

impl AdminHandle {
    /// The keys in force, without secrets.
    pub fn keys(&self) -> Arc<[KeyInForce]> {
        self.state.keys.clone()
    }

    /// The configuration of the ensemble; `None` for a standalone server.
    pub fn dynamic_configuration(&self) -> Option<DynamicConfiguration> {
        self.id()?;
        let text = self.inspect(|server| {
            let data = server.tree().get(path::CONFIG)?.data.as_deref()?;
            Some(String::from_utf8_lossy(data).into_owned())
        })?;
        let version = Membership::parse(&text).map_or(0, |membership| membership.version);
        let lines = text.lines().filter(|line| !line.starts_with("version="));
        Some(DynamicConfiguration { version, members: lines.map(str::to_owned).collect() })
    }
}
