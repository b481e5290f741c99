//! The shell without a terminal: one command from the arguments, or many from the standard input.

use super::{
    error::{Exit, ShellError, While},
    output::note,
    session::{Flow, ShellSession},
    signals::Signals,
    words::Word,
};
use std::{
    io::{self, BufRead, Read},
    thread,
};
use tokio::{runtime::Runtime, sync::mpsc};

/// More bytes than any request can have.
const LINE_MAX: u64 = 64 << 20;
const INPUT: &str = "cannot read the input";

/// Carries out one command.
pub(crate) fn once(mut shell: ShellSession, words: &[Word], runtime: &Runtime) -> Result<Exit, ShellError> {
    runtime.block_on(async {
        let mut signals = Signals::all().during("cannot listen for signals")?;
        connect(&mut shell, &mut signals).await?;
        let done = shell.words(words, &mut signals).await;
        let seen = shell.seen().await;
        shell.close().await;
        seen?;
        done.map(|_| Exit::Done)
    })
}

/// Carries out the lines of the input. By default the next line follows a failed one, too. The first failure decides
/// the exit code.
pub(crate) fn from_input(
    mut shell: ShellSession,
    stop_at_failure: bool,
    runtime: &Runtime,
) -> Result<Exit, ShellError> {
    runtime.block_on(async {
        let mut signals = Signals::all().during("cannot listen for signals")?;
        connect(&mut shell, &mut signals).await?;
        let done = lines(&mut shell, stop_at_failure, &mut signals).await;
        shell.close().await;
        let (exit, waiting) = (done?, shell.writes_waiting().is_some_and(|writes| writes > 0));
        if waiting {
            note("the transaction that was begun was not committed, so nothing of it was done");
        }
        Ok(if waiting && exit == Exit::Done { Exit::Failed } else { exit })
    })
}

async fn lines(
    shell: &mut ShellSession,
    stop_at_failure: bool,
    signals: &mut Signals,
) -> Result<Exit, ShellError> {
    let mut input = input()?;
    let mut exit = Exit::Done;
    for number in 1_u64.. {
        let line = tokio::select! {
            line = input.recv() => line,
            _ = signals.next() => Some(Err(ShellError::Interrupted)),
        };
        let done = match line {
            None => break,
            Some(Ok(line)) => shell.line(&line, signals).await,
            Some(Err(error)) => Err(error),
        };
        let error = match done {
            Ok(Flow::Goes) => continue,
            Ok(Flow::Ends) => break,
            Err(error) if error.is_broken_pipe() => return Err(error),
            Err(error) => error,
        };
        note(&format!("line {number}: {error}"));
        exit = if exit == Exit::Done { error.exit() } else { exit };
        let ends = matches!(error, ShellError::Interrupted | ShellError::Stopped(_) | ShellError::Io { .. });
        if stop_at_failure || ends {
            break;
        }
    }
    Ok(exit)
}

/// The lines of the input. A thread of its own reads them, so that waiting for a line can be interrupted.
fn input() -> Result<mpsc::Receiver<Result<String, ShellError>>, ShellError> {
    let (to, lines) = mpsc::channel(1);
    let read = move || {
        let mut input = io::stdin().lock();
        while let Some(line) = line(&mut input).transpose() {
            let readable = !matches!(line, Err(ShellError::Io { .. }));
            if to.blocking_send(line).is_err() || !readable {
                return;
            }
        }
    };
    thread::Builder::new().name("input".into()).spawn(read).during("cannot start")?;
    Ok(lines)
}

async fn connect(shell: &mut ShellSession, signals: &mut Signals) -> Result<(), ShellError> {
    tokio::select! {
        connected = shell.connect(None, true) => connected,
        _ = signals.next() => Err(ShellError::Interrupted),
    }
}

fn line(input: &mut impl BufRead) -> Result<Option<String>, ShellError> {
    let mut bytes = Vec::new();
    input.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes).during(INPUT)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() as u64 == LINE_MAX {
        return Err(io::Error::other("a line is longer than 64 MiB")).during(INPUT);
    }
    match String::from_utf8(bytes) {
        Ok(line) => Ok(Some(line)),
        Err(_) => Err(ShellError::Refused("the line is no UTF-8 text; $'\\xHH' writes any byte".into())),
    }
}
