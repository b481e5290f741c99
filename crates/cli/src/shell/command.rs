//! The commands of the shell, and how a line becomes one.

pub(crate) mod forms;
mod reader;

use super::{
    acl_text::AclTextError,
    catalogue,
    options::{self, OptionError, Syntax},
    value_text::Form,
    words::{NotUtf8, Word},
};
use ostler_client::{Acl, AddWatchMode, CreateMode, WatcherType};
use ostler_tree::quota::QuotaNumbers;
use reader::CommandReader;
use std::path::PathBuf;

/// A command with its arguments.
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

/// A write that can be part of a transaction. `D` is the type of its data: first [`Data`], which names the source, then
/// the bytes that were read from it.
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
    /// `None`: everybody may do everything.
    pub(crate) acl: Option<Vec<Acl>>,
    pub(crate) parents: bool,
}

impl<D> Write<D> {
    /// Replaces the data by what `read` makes of it.
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

/// The source of the data to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Data {
    Given(Vec<u8>),
    /// The content of a file.
    File(PathBuf),
    /// The program's standard input.
    Input,
}

/// The conditions of `find`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    /// A pattern for the last part of the path.
    pub(crate) name: Option<String>,
    /// A znode must have more bytes of data than this.
    pub(crate) larger: Option<i32>,
    pub(crate) ephemeral: bool,
}

/// Limits of a quota that `delquota` removes. If no field is set, all limits are removed.
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
    /// The version that the current configuration must have; -1 for any.
    pub(crate) version: i64,
    pub(crate) stat: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Members(String),
    /// A file in the format of a dynamic configuration file.
    MembersOf(PathBuf),
    Step {
        joining: Option<String>,
        leaving: Option<String>,
    },
}

/// The thing that is held while another program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldKind {
    Lock,
    Leadership,
}

/// The reason why a line cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("Command not found {name}{}", hint(.nearest))]
    NotFound { name: String, nearest: Option<&'static str> },
    #[error("{}: {option}; usage: {} {}", .syntax.name, .syntax.name, .syntax.usage)]
    Option { syntax: &'static Syntax, option: OptionError },
    #[error("usage: {} {}", .0.name, .0.usage)]
    Usage(&'static Syntax),
    #[error("{command}: {value:?} is not a valid {what}")]
    Value { command: &'static str, value: String, what: &'static str },
    #[error("{command}: {problem}")]
    Conflict { command: &'static str, problem: &'static str },
    #[error(transparent)]
    Acl(#[from] AclTextError),
    #[error(transparent)]
    NotUtf8(#[from] NotUtf8),
}

/// The action that a line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Command(Command),
    /// Repeat an earlier line.
    Redo {
        number: usize,
    },
    /// Run another program while a lock or a leadership is held.
    Hold {
        kind: HoldKind,
        path: String,
        command: Vec<Word>,
    },
}

impl From<Command> for Action {
    fn from(command: Command) -> Action {
        Action::Command(command)
    }
}

/// A line that was read, with a note for the user if it has a form of old versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParsedLine {
    pub(crate) action: Action,
    pub(crate) outdated: Option<&'static str>,
}

fn hint(nearest: &Option<&str>) -> String {
    nearest.map_or("; help lists all".into(), |nearest| format!("; did you mean {nearest}?"))
}

/// Reads the words of a line: the command's name, and the rest.
pub(crate) fn parse(name: &Word, rest: &[Word]) -> Result<ParsedLine, CommandError> {
    let name = String::try_from(name)?;
    let not_found = || CommandError::NotFound { name: name.clone(), nearest: catalogue::nearest(&name) };
    let syntax = catalogue::find(&name).ok_or_else(not_found)?;
    let arguments = options::read(syntax, rest).map_err(|option| CommandError::Option { syntax, option })?;
    CommandReader::new(syntax, arguments).read()
}

#[cfg(test)]
mod tests;
