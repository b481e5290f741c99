//! The errors and notes about a configuration, with the location of the setting that each is about.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The location of a setting: a line of a file, or an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingLocation {
    origin: Arc<str>,
    line: Option<usize>,
}

impl SettingLocation {
    pub(super) fn in_file(file: &Arc<str>, line: usize) -> SettingLocation {
        SettingLocation { origin: Arc::clone(file), line: Some(line) }
    }

    pub(super) fn in_variable(name: &str) -> SettingLocation {
        SettingLocation { origin: name.into(), line: None }
    }

    /// The line number; `None` for an environment variable.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for SettingLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.origin),
            None => f.write_str(&self.origin),
        }
    }
}

/// Why a configuration cannot be used. Each text is one sentence that names the location and what is allowed there.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },

    #[error("{location}: this line is not in the form key=value of a Java properties file: {reason}")]
    Syntax { location: SettingLocation, reason: String },

    #[error("{location}: {key}={value} is not allowed; {key} must be {allowed}")]
    BadValue { location: SettingLocation, key: String, value: String, allowed: String },

    #[error(
        "{location}: {key}={value} is not allowed; {key} must be a host name or address that can be resolved ({reason})"
    )]
    NoAddress {
        location: SettingLocation,
        key: String,
        value: String,
        reason: String,
        /// How often the lookup may be repeated, by `electionPortBindRetry`; `None` is without end.
        retries: Option<u32>,
    },

    #[error("{file}: {key} is missing; add a line such as {example}")]
    Missing { file: String, key: &'static str, example: &'static str },

    #[error("{file}: {why}")]
    Contradiction { file: String, why: String },

    #[error("{location}: {key}: {reason}")]
    Refused { location: SettingLocation, key: String, reason: String },
}

/// A message for the operator about a configuration that can be used all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub level: NoteLevel,
    pub location: SettingLocation,
    pub text: String,
}

/// The importance of a [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteLevel {
    /// The setting has no effect here, and nothing is lost by that.
    Info,
    /// The server does not do what the file seems to ask for.
    Warning,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.text)
    }
}
