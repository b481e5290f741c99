//! Where a setting stands, and what can be wrong with it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a setting was written: a line of a file, or an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    origin: Arc<str>,
    line: Option<usize>,
}

impl Place {
    pub(super) fn in_file(file: &Arc<str>, line: usize) -> Place {
        Place { origin: Arc::clone(file), line: Some(line) }
    }

    pub(super) fn in_variable(name: &str) -> Place {
        Place { origin: name.into(), line: None }
    }

    /// The line number, for a place in a file.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.origin),
            None => f.write_str(&self.origin),
        }
    }
}

/// Why a configuration cannot be used. Each text is one sentence that says where and what to write instead.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },

    #[error("{place}: this line is not in the form key=value of a Java properties file: {reason}")]
    Syntax { place: Place, reason: String },

    #[error("{place}: {key}={value} is not allowed; {key} must be {allowed}")]
    BadValue { place: Place, key: String, value: String, allowed: String },

    #[error(
        "{place}: {key}={value} is not allowed; {key} must be a host name or address that can be resolved ({reason})"
    )]
    NoAddress {
        place: Place,
        key: String,
        value: String,
        reason: String,
        /// How often it may be tried again, as the file has it; `None` is for ever.
        retries: Option<u32>,
    },

    #[error("{file}: {key} is missing; add a line such as {example}")]
    Missing { file: String, key: &'static str, example: &'static str },

    #[error("{place}: {key}: {reason}")]
    Refused { place: Place, key: String, reason: String },
}

/// Something to tell the operator about a configuration that can be used all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub level: NoteLevel,
    pub place: Place,
    pub text: String,
}

/// How loudly to tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteLevel {
    /// The setting has no work to do here, and nothing is lost by that.
    Info,
    /// The server does something else than the file seems to ask for.
    Warning,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}
