//! The state of the shell between commands: connection, transaction, history.

use super::{
    answer::Answer,
    command::{Action, ParsedLine, Write, parse},
    connection::{ConnectOptions, Connection},
    error::ShellError,
    output::{Output, Teller, note},
    signals::Signals,
    stat_text::Context,
    words::{self, Word},
};
use ostler_client::Client;
use std::time::{SystemTime, UNIX_EPOCH};

/// The operations that change something, by their names in the client's metrics.
const WRITES: [&str; 9] =
    ["create", "create2", "createContainer", "createTTL", "delete", "setData", "setACL", "multi", "reconfig"];

/// Whether the shell goes on after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Goes,
    Ends,
}

/// The use of the program's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// Commands may read data from it.
    Free,
    /// Its lines are commands.
    Commands,
    /// Commands are typed at a terminal.
    Keyboard,
}

/// The state of the shell between commands.
#[derive(Debug)]
pub(crate) struct ShellSession {
    pub(super) options: ConnectOptions,
    pub(super) servers: String,
    pub(super) connection: Option<Connection>,
    /// The writes of a transaction that was begun and not yet committed.
    pub(super) transaction: Option<Vec<Write<Vec<u8>>>>,
    pub(super) history: Vec<String>,
    pub(super) teller: Teller,
    pub(super) output: Output,
    pub(super) input: Input,
}

impl ShellSession {
    pub(crate) fn new(
        servers: &str,
        options: ConnectOptions,
        output: Output,
        teller: Teller,
    ) -> ShellSession {
        ShellSession {
            options,
            servers: servers.to_owned(),
            connection: None,
            transaction: None,
            history: Vec::new(),
            teller,
            output,
            input: Input::Free,
        }
    }

    /// Sets the use of the standard input.
    pub(crate) fn input_is(self, input: Input) -> ShellSession {
        ShellSession { input, ..self }
    }

    /// Opens a session, and ends the one before.
    pub(crate) async fn connect(&mut self, servers: Option<&str>, wait: bool) -> Result<(), ShellError> {
        self.close().await;
        if let Some(servers) = servers {
            self.servers = servers.to_owned();
        }
        self.connection = Some(Connection::open(&self.servers, &self.options, &self.teller, wait).await?);
        Ok(())
    }

    /// Ends the session.
    pub(crate) async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
    }

    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// The number of writes that wait for `commit`, if a transaction was begun.
    pub(crate) fn writes_waiting(&self) -> Option<usize> {
        self.transaction.as_ref().map(Vec::len)
    }

    /// The number of the next command.
    pub(crate) fn next_number(&self) -> usize {
        self.history.len()
    }

    pub(super) fn client(&self) -> Result<Client, ShellError> {
        Ok(self.connection.as_ref().ok_or(ShellError::NotConnected)?.client.clone())
    }

    pub(super) fn connected(&self) -> Result<&Connection, ShellError> {
        self.connection.as_ref().ok_or(ShellError::NotConnected)
    }

    pub(super) fn answer(&mut self, answer: &Answer) -> Result<(), ShellError> {
        let own_session = self.connection.as_ref().and_then(|connection| connection.client.session_id());
        self.output.answer(answer, Context { now_ms: now_ms(), own_session })
    }

    /// Carries out a line, and adds it to the history.
    pub(crate) async fn line(&mut self, line: &str, signals: &mut Signals) -> Result<Flow, ShellError> {
        let done = self.counted(line, signals).await;
        self.seen().await?;
        done
    }

    async fn counted(&mut self, line: &str, signals: &mut Signals) -> Result<Flow, ShellError> {
        let words = words::split(line);
        if words.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(Flow::Goes);
        }
        // Failed lines are counted, too: the prompt and redo use these numbers, as in zkCli.sh.
        let number = self.history.len();
        self.history.push(line.trim().to_owned());
        let words = words?;
        let Some((name, rest)) = words.split_first() else { return Ok(Flow::Goes) };
        match parse(name, rest)? {
            ParsedLine { action: Action::Redo { number: wanted }, .. } if wanted < number => {
                let earlier = self.history[wanted].clone();
                self.history[number].clone_from(&earlier);
                self.words(&words::split(&earlier)?, signals).await
            }
            ParsedLine { action: Action::Redo { number: wanted }, .. } => Err(ShellError::Refused(format!(
                "no command before this one has the number {wanted}; history shows them"
            ))),
            parsed => self.act(parsed, signals).await,
        }
    }

    /// Carries out the command of these words, if there are any.
    pub(crate) async fn words(&mut self, words: &[Word], signals: &mut Signals) -> Result<Flow, ShellError> {
        let Some((name, rest)) = words.split_first() else { return Ok(Flow::Goes) };
        self.act(parse(name, rest)?, signals).await
    }

    async fn act(
        &mut self,
        ParsedLine { action, outdated }: ParsedLine,
        signals: &mut Signals,
    ) -> Result<Flow, ShellError> {
        if let Some(outdated) = outdated {
            note(outdated);
        }
        match action {
            Action::Command(command) => {
                let client = self.connection.as_ref().map(|connection| connection.client.clone());
                let before = client.as_ref().map_or(0, writes_answered);
                let done = tokio::select! {
                    done = self.perform(command) => done,
                    _ = signals.next() => Err(ShellError::Interrupted),
                };
                done.map_err(|error| error.after(client.as_ref().map_or(0, writes_answered) - before))
            }
            Action::Hold { kind, path, command } => self.hold(kind, &path, &command, signals).await,
            // `counted` has replaced a `redo` by the line that it repeats; here that line is a `redo`.
            Action::Redo { .. } => {
                Err(ShellError::Refused("redo repeats an earlier line, and not another redo".into()))
            }
        }
    }

    /// Prints everything that has come so far: watch events before the answer that may show their changes.
    pub(crate) async fn seen(&mut self) -> Result<(), ShellError> {
        if let Some(connection) = &self.connection {
            connection.watches.printed().await;
        }
        self.output.flush()
    }
}

/// The number of write requests that were answered without an error. A transaction that was not done counts, too: its
/// errors are in the body of the answer.
fn writes_answered(client: &Client) -> u64 {
    let operations = client.metrics().operations;
    let counts = WRITES.iter().filter_map(|name| operations.get(name));
    counts.map(|counts| counts.replies - counts.errors).sum()
}

/// This machine's wall clock.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}
