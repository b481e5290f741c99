//! What a line asks for.

mod asked;

use super::{
    acl_text::AclTextError,
    catalogue,
    options::{self, OptionError, Syntax},
    value_text::Form,
    words::{NoText, Word},
};
use asked::Asked;
use ostler_client::{Acl, AddWatchMode, CreateMode, WatcherType};
use ostler_tree::quota::QuotaNumbers;
use std::path::PathBuf;

/// A command, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Ls { path: String, stat: bool, watch: bool, recursive: bool },
    Get { path: String, stat: bool, watch: bool, form: Form },
    Stat { path: String, watch: bool },
    GetAcl { path: String, stat: bool },
    GetAllChildrenNumber { path: String },
    GetEphemerals { prefix: String },
    Tree { path: String, depth: Option<usize>, sizes: bool },
    Find { path: String, depth: Option<usize>, wanted: Wanted },
    Du { path: String, depth: usize },
    Write(Write<Data>),
    DeleteAll { path: String, batch: usize },
    SetAcl { path: String, acl: Vec<Acl>, version: i32, stat: bool, recursive: bool },
    Begin,
    Commit,
    Abort,
    Watch { path: String, recursive: bool, count: Option<u64> },
    AddWatch { path: String, mode: AddWatchMode },
    RemoveWatches { path: String, kind: WatcherType, here: bool },
    PrintWatches(Option<bool>),
    SetQuota { path: String, limits: QuotaNumbers },
    ListQuota { path: String },
    DelQuota { path: String, which: Limits },
    Config { for_clients: bool, watch: bool, stat: bool },
    Reconfig(Reconfig),
    Sync { path: String },
    AddAuth { scheme: String, auth: Vec<u8> },
    WhoAmI,
    Connect { servers: Option<String> },
    Close,
    History,
    Version,
    Help { command: Option<&'static Syntax> },
    Quit,
}

/// What can be part of a transaction. `D` is how its data is known: named first, then read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write<D> {
    Create(Create<D>),
    Set { path: String, data: D, version: i32, stat: bool },
    Delete { path: String, version: i32 },
    Check { path: String, version: i32 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Create<D> {
    pub(crate) path: String,
    pub(crate) data: Option<D>,
    pub(crate) mode: CreateMode,
    /// By default everybody may do everything.
    pub(crate) acl: Option<Vec<Acl>>,
    pub(crate) parents: bool,
}

impl<D> Write<D> {
    /// The same with other data.
    pub(crate) async fn with_data<T, E>(
        self,
        read: impl AsyncFnOnce(D) -> Result<T, E>,
    ) -> Result<Write<T>, E> {
        Ok(match self {
            Write::Create(Create { path, data, mode, acl, parents }) => {
                let data = match data {
                    Some(data) => Some(read(data).await?),
                    None => None,
                };
                Write::Create(Create { path, data, mode, acl, parents })
            }
            Write::Set { path, data, version, stat } => {
                Write::Set { path, data: read(data).await?, version, stat }
            }
            Write::Delete { path, version } => Write::Delete { path, version },
            Write::Check { path, version } => Write::Check { path, version },
        })
    }
}

/// Data to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Data {
    Given(Vec<u8>),
    /// In a file.
    File(PathBuf),
    /// From the program's input.
    Input,
}

/// Which znodes `find` shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    /// The last part of the path is like this.
    pub(crate) name: Option<String>,
    /// More bytes of data than this.
    pub(crate) larger: Option<i32>,
    pub(crate) ephemeral: bool,
}

/// Limits of a quota, by their options. None means all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    pub(crate) count: bool,
    pub(crate) bytes: bool,
    pub(crate) count_hard: bool,
    pub(crate) bytes_hard: bool,
}

/// A change of the ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reconfig {
    pub(crate) change: Change,
    /// Only from the configuration of this version; -1 for any.
    pub(crate) version: i64,
    pub(crate) stat: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Members(String),
    /// As in a dynamic configuration file.
    MembersOf(PathBuf),
    Step {
        joining: Option<String>,
        leaving: Option<String>,
    },
}

/// What is held while a command of somebody else runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Lock,
    Leadership,
}

/// Why a line is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("Command not found {name}{}", hint(.nearest))]
    NotFound { name: String, nearest: Option<&'static str> },
    #[error("{}: {option}; it is written: {} {}", .syntax.name, .syntax.name, .syntax.usage)]
    Option { syntax: &'static Syntax, option: OptionError },
    #[error("it is written: {} {}", .0.name, .0.usage)]
    Usage(&'static Syntax),
    #[error("{command}: {value:?} is no {what}")]
    Value { command: &'static str, value: String, what: &'static str },
    #[error("{command}: {problem}")]
    Conflict { command: &'static str, problem: &'static str },
    #[error(transparent)]
    Acl(#[from] AclTextError),
    #[error(transparent)]
    NoText(#[from] NoText),
}

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Command(Command),
    /// Another line once more.
    Redo {
        number: usize,
    },
    /// Somebody else's command, run while something is held.
    Hold {
        what: Held,
        path: String,
        command: Vec<Word>,
    },
}

/// A line, and what is to be said about how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Understood {
    pub(crate) line: Line,
    pub(crate) outdated: Option<&'static str>,
}

fn hint(nearest: &Option<&str>) -> String {
    nearest.map_or("; help lists all".into(), |nearest| format!("; did you mean {nearest}?"))
}

/// Understands a line's words: the first is the command's name.
pub(crate) fn understand(name: &Word, rest: &[Word]) -> Result<Understood, CommandError> {
    let name = String::try_from(name)?;
    let not_found = || CommandError::NotFound { name: name.clone(), nearest: catalogue::nearest(&name) };
    let syntax = catalogue::find(&name).ok_or_else(not_found)?;
    let given = options::read(syntax, rest).map_err(|option| CommandError::Option { syntax, option })?;
    Asked::new(syntax, given).understand()
}

#[cfg(test)]
mod tests;
