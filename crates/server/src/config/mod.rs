//! zoo.cfg: the settings of a server, read once at the start.
//!
//! [`keys`] is the table of all keys; `settings` checks the lines of a file against it; [`ServerConfig`] has the values
//! for the server.

mod admin;
mod admin_peers;
mod audit;
mod ensemble;
mod error;
mod groups;
mod jvm_flags;
pub mod keys;
mod properties;
mod sasl;
mod server_config;
mod session_passwords;
mod settings;
mod throttles;
mod tls;
mod values;
mod weaknesses;

#[cfg(test)]
mod documentation_tests;
#[cfg(test)]
mod load_tests;

use std::path::Path;

pub use admin::{ADMIN_PORT, AdminHttps, AdminSettings, MetricsSettings, TraceSettings};
pub use admin_peers::AdminPeer;
pub use audit::{AuditSettings, AuditTarget};
pub use ensemble::{EnsembleSettings, QuorumTls};
pub use error::{ConfigError, Note, NoteLevel, SettingLocation};
pub use groups::{
    AuthSettings, ClientPortSettings, Containers, DataFolderSettings, RequestLimits, SecurePort,
    SessionSettings, SnapshotCompression, SnapshotSettings, TreeSettings, TxnLogSettings,
};
pub use jvm_flags::JVM_FLAG_VARIABLES;
pub use sasl::{JaasSection, PrincipalSettings, QuorumSasl, SaslSettings};
pub use server_config::{EMBEDDED_DATA_DIR, EMBEDDED_PORT, ServerConfig};
pub use session_passwords::SessionPasswords;
pub use throttles::{
    ConnectionThrottleSettings, ConnectionWeights, DropSettings, LargeRequestSettings,
    RequestThrottleSettings, ThrottleSettings,
};
pub use values::Kind;
pub use weaknesses::Weakness;

use settings::Settings;

/// A configuration, and the messages about it for the operator.
#[derive(Debug)]
pub struct Loaded {
    pub config: ServerConfig,
    pub notes: Vec<Note>,
}

/// Reads a zoo.cfg.
pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    load_with_flags(path, &[])
}

/// Reads a zoo.cfg on top of the `-D` properties in `jvm_flags`, pairs of an environment variable's name
/// ([`JVM_FLAG_VARIABLES`]) and its text. The file wins over them, a later pair over an earlier one.
pub fn load_with_flags(path: &Path, jvm_flags: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    let mut settings = Settings::default();
    settings.take(jvm_flags::entries(jvm_flags))?;
    settings.take(properties::read_file(path)?)?;
    let mut config = server_config::from_file(&path.display().to_string(), &mut settings)?;
    config.initial_configuration = masked(&std::fs::read_to_string(path).unwrap_or_default());
    Ok(Loaded { config, notes: settings.notes })
}

/// The text of a configuration, without the values of secrets.
fn masked(text: &str) -> String {
    let is_secret = |key: &str| {
        let key = key.trim().to_ascii_lowercase();
        key.ends_with("password") || key.ends_with("superdigest") || key.contains("secret")
    };
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        match line.split_once(['=', ':']) {
            Some((key, _)) if is_secret(key) => {
                out += key;
                out += "=****";
            }
            _ => out += line,
        }
        out.push('\n');
    }
    out
}

/// The location of a key in a file, for errors that show only when the value is used. `None` if the file cannot be read
/// again or does not set the key.
pub fn location_of(path: &Path, key: &str) -> Option<SettingLocation> {
    let entries = properties::read_file(path).ok()?;
    entries.into_iter().rfind(|entry| entry.name() == key).map(|entry| entry.location)
}
