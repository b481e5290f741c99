//! The settings of the audit log.

use super::error::{ConfigError, NoteLevel};
use super::server_config::is_strict;
use super::settings::Settings;
use std::path::{Path, PathBuf};

/// The only class of Java's whose lines can be written.
const LOGGER_CLASS: &str = "org.apache.zookeeper.audit.Slf4jAuditLogger";
/// The name of the audit file in the data folder, which is that of ZooKeeper's logback.xml.
const FILE_NAME: &str = "zookeeper_audit.log";
/// Keys that count only with `audit.enable`.
const DEPENDENT: [&str; 6] = [
    "audit.impl.class",
    "audit.log.target",
    "audit.log.file",
    "audit.log.maxFileSize",
    "audit.log.maxFiles",
    "audit.log.authFailures",
];

/// The audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// Where the lines go.
    pub target: AuditTarget,
    /// The size in bytes at which another file is begun; 10 MiB by default.
    pub max_file_bytes: u64,
    /// The number of older files that are kept, 10 by default.
    pub max_files: u32,
    /// Whether failed authentications are recorded, too; true by default.
    pub auth_failures: bool,
}

/// Where the lines of the audit log go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// To this file; `zookeeper_audit.log` in dataDir by default.
    File(PathBuf),
    /// To standard error, for systemd's journal, each line with its priority.
    Journald,
}

impl AuditSettings {
    /// `None` if nothing is audited.
    pub(super) fn from_settings(
        settings: &mut Settings,
        data_dir: &Path,
    ) -> Result<Option<AuditSettings>, ConfigError> {
        // A strict server audits unless a line says otherwise, and then it does not start.
        let by_default = is_strict(settings) && settings.entry("audit.enable").is_none();
        if !settings.bool("audit.enable") && !by_default {
            note_dependent(settings);
            return Ok(None);
        }
        if let Some(class) = settings.entry("audit.impl.class").filter(|class| class.value != LOGGER_CLASS) {
            return Err(class.refused(format!(
                "Java classes cannot be loaded here; remove the line, or write {LOGGER_CLASS}"
            )));
        }
        let file = settings.text("audit.log.file").map_or_else(|| data_dir.join(FILE_NAME), PathBuf::from);
        let target = match settings.text("audit.log.target").as_deref() {
            Some("journald") => AuditTarget::Journald,
            _ => AuditTarget::File(file),
        };
        Ok(Some(AuditSettings {
            target,
            max_file_bytes: u64::from(settings.unsigned("audit.log.maxFileSize")) << 20,
            max_files: settings.unsigned("audit.log.maxFiles"),
            auth_failures: settings.bool("audit.log.authFailures"),
        }))
    }
}

fn note_dependent(settings: &mut Settings) {
    for key in DEPENDENT {
        if let Some(entry) = settings.entry(key).cloned() {
            let text = format!("{key} has no effect without audit.enable=true");
            settings.note(NoteLevel::Warning, &entry.location, text);
        }
    }
}
