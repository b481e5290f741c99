//! The shell at a terminal: a prompt, editing, completion and history.

use super::{
    announcement::prompt_state,
    answer::OutputStyle,
    completion::Completion,
    connection::ConnectOptions,
    error::{Exit, ShellError, While},
    output::{Output, Teller, note},
    session::{Flow, Input, ShellSession},
    signals::Signals,
};
use ostler_client::ConnectionState;
use rustyline::{Config, Editor, config::CompletionType, error::ReadlineError, history::FileHistory};
use std::{fs, path::PathBuf, time::Duration};
use tokio::runtime::Runtime;

/// How long the first prompt waits for a session.
const FIRST_WAIT: Duration = Duration::from_secs(3);
const HISTORY_MAX: usize = 2000;
/// The variable that names another file for the history.
const HISTORY_FILE: &str = "OSTLER_HISTORY";

type Lines = Editor<Completion, FileHistory>;

/// Reads lines and does what they ask for, until there are no more.
pub(crate) fn run(
    servers: &str,
    options: ConnectOptions,
    style: OutputStyle,
    runtime: &Runtime,
) -> Result<Exit, ShellError> {
    let mut lines = editor(runtime).map_err(terminal)?;
    let history = history_file();
    if let Some(file) = &history {
        // The first time there is no file.
        let _ = lines.load_history(file);
    }
    let printer = lines.create_external_printer().map_err(terminal)?;
    let teller = Teller::new(style).above_prompt(Box::new(printer));
    let mut shell = ShellSession::new(servers, options, Output::new(style), teller).input_is(Input::Keyboard);
    let mut signals = {
        let _entered = runtime.enter();
        Signals::interrupts().during("cannot listen for signals")?
    };
    println!(
        "Ostler shell {}: help lists the commands, Tab completes, Ctrl-D ends",
        env!("CARGO_PKG_VERSION")
    );
    runtime.block_on(begin(&mut shell))?;
    let exit = loop {
        if let Some(helper) = lines.helper_mut() {
            helper.client = shell.connection().map(|connection| connection.client.clone());
        }
        let line = match lines.readline(&prompt(&shell)) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break Exit::Done,
            Err(other) => return Err(terminal(other)),
        };
        remember(&mut lines, history.as_ref(), &line);
        signals.forget_interrupts();
        if let Some(exit) = runtime.block_on(all(&mut shell, &line, &mut signals)) {
            break exit;
        }
    };
    if shell.writes_waiting().is_some_and(|writes| writes > 0) {
        note("the transaction that was begun was not committed, so nothing of it was done");
    }
    runtime.block_on(shell.close());
    Ok(exit)
}

fn editor(runtime: &Runtime) -> rustyline::Result<Lines> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY_MAX)?
        .history_ignore_dups(true)?
        .build();
    let mut lines = Editor::with_config(config)?;
    lines.set_helper(Some(Completion { client: None, runtime: runtime.handle().clone() }));
    Ok(lines)
}

fn terminal(error: ReadlineError) -> ShellError {
    ShellError::Refused(format!("cannot use the terminal: {error}"))
}

/// Opens a session. If no server answers in time, the prompt comes without a connection.
async fn begin(shell: &mut ShellSession) -> Result<(), ShellError> {
    shell.connect(None, false).await?;
    let Some(connection) = shell.connection() else { return Ok(()) };
    // After an error no session comes; the commands return it.
    if let Ok(false) = connection.client.wait_connected_within(FIRST_WAIT).await {
        note(&format!("{} has not answered yet; the search for a server goes on", connection.servers));
    }
    shell.seen().await
}

/// Carries out a typed line, or several pasted lines. Returns the exit code if the program is to end.
async fn all(shell: &mut ShellSession, lines: &str, signals: &mut Signals) -> Option<Exit> {
    for line in lines.lines() {
        match shell.line(line, signals).await {
            Ok(Flow::Goes) => {}
            Ok(Flow::Ends) => return Some(Exit::Done),
            Err(error) => {
                note(&error.to_string());
                if let ShellError::Stopped(_) = error {
                    return Some(error.exit());
                }
            }
        }
    }
    None
}

/// The prompt of zkCli.sh, with the number of writes that wait for `commit`.
fn prompt(shell: &ShellSession) -> String {
    let (servers, state) = match shell.connection() {
        Some(connection) => (&*connection.servers, connection.client.state().state),
        None => ("", ConnectionState::Closed),
    };
    let writes = shell.writes_waiting().map_or_else(String::new, |writes| format!(" multi:{writes}"));
    format!("[zk: {servers}({}) {}{writes}] ", prompt_state(state), shell.next_number())
}

/// Adds a line to the history, unless it has a secret.
fn remember(lines: &mut Lines, file: Option<&PathBuf>, line: &str) {
    let secret = line.lines().any(|line| line.trim_start().starts_with("addauth"));
    if secret || line.trim().is_empty() {
        return;
    }
    // A line is carried out even if the history cannot be written.
    let added = lines.add_history_entry(line).is_ok_and(|added| added);
    if let (true, Some(file)) = (added, file) {
        let _ = lines.append_history(file);
    }
}

fn history_file() -> Option<PathBuf> {
    if let Some(file) = std::env::var_os(HISTORY_FILE) {
        return (!file.is_empty()).then(|| file.into());
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let folder = state.or_else(home)?.join("ostler");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("shell-history"))
}
