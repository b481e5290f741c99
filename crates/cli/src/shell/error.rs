//! The errors of commands. Each is one sentence that says what to do.

use super::{command::CommandError, words::QuoteError};
use crate::tls_options::UnreadableFile;
use ostler_client::{Error, ErrorCode, paths};
use std::{io, path::PathBuf};

/// The reason why a command was not done, or only in part.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShellError {
    #[error(transparent)]
    Quote(#[from] QuoteError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("{}", sentence(.0))]
    Client(#[from] Error),
    #[error("{0}")]
    Recipe(ostler_recipes::Error),
    #[error("Not connected: connect HOST:PORT opens a session")]
    NotConnected,
    #[error("{0}")]
    Refused(String),
    #[error("{failed} of {all} znodes: {first}")]
    Partly { failed: usize, all: usize, first: Box<ShellError> },
    /// The connection was lost after some writes of the command were done.
    #[error("{cause}; by then it may have been done in part")]
    InPart { cause: Box<ShellError> },
    #[error("{}: {cause}", .path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{what}: {cause}")]
    Io { what: &'static str, cause: io::Error },
    #[error("cannot write to the output: {0}")]
    Output(io::Error),
    #[error("cannot start {program}: {cause}")]
    Program { program: String, cause: io::Error },
    #[error("the command has ended with {0}")]
    Ended(u8),
    /// A signal ends this program, after the program that it has started. The exit code is that of the other program.
    #[error("told to end")]
    Stopped(u8),
    #[error("interrupted")]
    Interrupted,
}

impl From<UnreadableFile> for ShellError {
    fn from(UnreadableFile { path, cause }: UnreadableFile) -> ShellError {
        ShellError::File { path, cause }
    }
}

/// Adds to an error of the operating system what was being done.
pub(crate) trait While<T> {
    fn during(self, what: &'static str) -> Result<T, ShellError>;
}

impl<T> While<T> for io::Result<T> {
    fn during(self, what: &'static str) -> Result<T, ShellError> {
        self.map_err(|cause| ShellError::Io { what, cause })
    }
}

/// The exit codes, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// The server has refused a request, or something else failed.
    Failed,
    /// The command is not valid, and nothing was sent.
    Usage,
    /// There was no connection, and nothing was done.
    NoConnection,
    /// The connection was lost before the reply: the command may be done, or done in part.
    Unknown,
    /// Ctrl-C, SIGTERM or SIGHUP.
    Interrupted,
    /// The exit code of the program that ran under a lock.
    Of(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NoConnection => 3,
            Exit::Unknown => 4,
            Exit::Interrupted => 130,
            Exit::Of(code) => code,
        }
    }
}

impl ShellError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            ShellError::Quote(_) | ShellError::Command(_) => Exit::Usage,
            ShellError::Client(error) => exit_of(error),
            ShellError::NotConnected => Exit::NoConnection,
            ShellError::Partly { first, .. } => first.exit(),
            ShellError::InPart { .. } => Exit::Unknown,
            ShellError::Ended(code) | ShellError::Stopped(code) => Exit::Of(*code),
            // As in other shells: 127 if there is no such program, 126 if it cannot be run.
            ShellError::Program { cause, .. } if cause.kind() == io::ErrorKind::NotFound => Exit::Of(127),
            ShellError::Program { .. } => Exit::Of(126),
            ShellError::Interrupted => Exit::Interrupted,
            _ => Exit::Failed,
        }
    }

    /// The error of a command that has sent `writes` writes with success before.
    pub(crate) fn after(self, writes: u64) -> ShellError {
        match self.exit() {
            Exit::NoConnection | Exit::Unknown if writes > 0 => ShellError::InPart { cause: Box::new(self) },
            _ => self,
        }
    }

    /// Whether the reader of the output is gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, ShellError::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether the program ends without a message: the reader is gone, or another program has printed the error.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_broken_pipe() || matches!(self, ShellError::Ended(_))
    }
}

impl From<ostler_recipes::Error> for ShellError {
    fn from(error: ostler_recipes::Error) -> ShellError {
        match error {
            ostler_recipes::Error::Client(error) => ShellError::Client(error),
            other => ShellError::Recipe(other),
        }
    }
}

fn exit_of(error: &Error) -> Exit {
    match error {
        error if error.is_outcome_unknown() => Exit::Unknown,
        Error::NotConnected { .. }
        | Error::SessionExpired { .. }
        | Error::SessionChanged { .. }
        | Error::Unreachable { .. }
        | Error::Closed => Exit::NoConnection,
        Error::BadPath { .. } | Error::ConnectString { .. } | Error::Tls { .. } => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// A sentence that begins as in zkCli.sh, and says what to do.
pub(crate) fn sentence(error: &Error) -> String {
    match error {
        Error::Server { code, operation, path } => refusal(*code, operation, path),
        Error::Multi { code, index, operation, path } => {
            let said = refusal(*code, operation, path);
            format!(
                "nothing was done, because of operation {} of the transaction ({operation} {path}): {said}",
                index + 1
            )
        }
        other => other.to_string(),
    }
}

fn refusal(code: ErrorCode, operation: &str, path: &str) -> String {
    let (said, remedy) = match code {
        ErrorCode::NoNode if operation == "create" => {
            let parent = paths::parent(path).unwrap_or("/");
            let remedy = format!("create {parent} first, or let create -p make what is missing");
            return format!("Node does not exist: {path}; {remedy}");
        }
        ErrorCode::NoNode => ("Node does not exist", ""),
        ErrorCode::NodeExists => ("Node already exists", "set changes its data"),
        ErrorCode::NotEmpty => ("Node not empty", "deleteall deletes what is below as well"),
        ErrorCode::BadVersion if operation == "reconfig" => {
            ("version No is not valid ", "the configuration has another version, in the last line of config")
        }
        ErrorCode::BadVersion => {
            ("version No is not valid ", "the znode has another version, which stat shows")
        }
        ErrorCode::NoAuth => ("Insufficient permission ", "getAcl shows who may; addauth shows who you are"),
        ErrorCode::NoChildrenForEphemerals => ("Ephemerals cannot have children", "choose another parent"),
        ErrorCode::InvalidAcl => (
            "Acl is not valid ",
            "auth:: needs an addauth first, and other schemes must be known to the server",
        ),
        ErrorCode::NotReadOnly => {
            ("Not a read-only call", "the server has no quorum; it takes writes again when it has")
        }
        ErrorCode::QuotaExceeded => ("Quota has exceeded ", "listquota shows limits and usage"),
        ErrorCode::BadArguments => ("Arguments are not valid ", "the server's log may say more"),
        ErrorCode::EphemeralOnLocalSession => (
            "Unable to create ephemeral node on a local session",
            "see localSessionsUpgradingEnabled in zoo.cfg",
        ),
        ErrorCode::NoWatcher => ("No watch of this kind", "watches go when they fire, addWatch's stay"),
        ErrorCode::ThrottledOp => ("The server is busy", "try again later"),
        ErrorCode::SessionMoved => ("The session has moved to another server", "try again"),
        ErrorCode::ReconfigInProgress => {
            ("Another reconfiguration is in progress", "try again when it has ended")
        }
        ErrorCode::NewConfigNoQuorum => {
            ("No quorum of new config is connected", "start the new servers, and wait until they follow")
        }
        ErrorCode::ReconfigDisabled => {
            ("Reconfiguration is off", "reconfigEnabled=true in zoo.cfg allows it")
        }
        ErrorCode::Unimplemented => match operation {
            "create" => {
                ("The server has no such znodes", "extendedTypesEnabled=true in zoo.cfg allows a TTL")
            }
            _ => ("The server does not know this operation", "it may be older than it"),
        },
        ErrorCode::AuthFailed => ("The server refuses the identity", "look at scheme and secret"),
        ErrorCode::SessionClosedRequireSaslAuth => {
            ("The server wants SASL", "--sasl-user and --sasl-password-file say who you are")
        }
        other => return format!("{operation} {path}: {other} ({})", other.name()),
    };
    let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
    format!("{said}: {path}{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: ErrorCode, operation: &'static str) -> ShellError {
        Error::Server { code, operation, path: "/a/b".into() }.into()
    }

    #[test]
    fn refusals_begin_as_in_zkcli_and_say_what_to_do() {
        let said = |code, operation| server(code, operation).to_string();
        assert_eq!(said(ErrorCode::NoNode, "getData"), "Node does not exist: /a/b");
        assert_eq!(
            said(ErrorCode::NoNode, "create"),
            "Node does not exist: /a/b; create /a first, or let create -p make what is missing"
        );
        let upstream = [
            (ErrorCode::NoChildrenForEphemerals, "Ephemerals cannot have children: /a/b"),
            (ErrorCode::NodeExists, "Node already exists: /a/b"),
            (ErrorCode::NotEmpty, "Node not empty: /a/b"),
            (ErrorCode::NotReadOnly, "Not a read-only call: /a/b"),
            (ErrorCode::InvalidAcl, "Acl is not valid : /a/b"),
            (ErrorCode::NoAuth, "Insufficient permission : /a/b"),
            (ErrorCode::BadArguments, "Arguments are not valid : /a/b"),
            (ErrorCode::BadVersion, "version No is not valid : /a/b"),
            (ErrorCode::QuotaExceeded, "Quota has exceeded : /a/b"),
        ];
        for (code, begin) in upstream {
            let said = said(code, "setData");
            assert!(said.starts_with(&format!("{begin}; ")), "{said}");
        }
    }

    #[test]
    fn a_transaction_names_the_operation() {
        let code = ErrorCode::BadVersion;
        let error = Error::Multi { code, index: 1, operation: "check", path: "/a".into() };
        assert_eq!(
            ShellError::from(error).to_string(),
            "nothing was done, because of operation 2 of the transaction (check /a): \
             version No is not valid : /a; the znode has another version, which stat shows"
        );
    }

    #[test]
    fn exit_codes_distinguish_refused_invalid_unsent_and_unknown() {
        let lost = Error::ConnectionLoss { operation: "create", path: "/a".into() };
        let unsent = Error::NotConnected { operation: "create", path: "/a".into() };
        assert_eq!(server(ErrorCode::NoNode, "getData").exit().code(), 1);
        assert_eq!(ShellError::from(QuoteError::Unclosed('"')).exit().code(), 2);
        assert_eq!(ShellError::from(unsent).exit().code(), 3);
        assert_eq!(ShellError::from(lost).exit().code(), 4);
    }

    #[test]
    fn an_unsent_request_after_writes_gives_an_unknown_outcome() {
        let unsent = || ShellError::from(Error::NotConnected { operation: "delete", path: "/a".into() });
        assert_eq!(unsent().after(0).exit().code(), 3);
        let begun = unsent().after(1);
        assert_eq!(begun.exit().code(), 4);
        assert!(
            begun.to_string().ends_with("it was not sent; by then it may have been done in part"),
            "{begun}"
        );
        assert_eq!(server(ErrorCode::NoAuth, "delete").after(1).exit().code(), 1);
    }
}
