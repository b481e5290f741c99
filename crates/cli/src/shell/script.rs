//! Commands without a terminal: one from the program's arguments, or many from its input.

use super::{
    desk::{Desk, Flow},
    error::{Exit, ShellError},
    output::note,
    signals::Signals,
    words::Word,
};
use std::io::{self, BufRead, Read};
use tokio::runtime::Runtime;

/// More than any request can hold.
const LINE_MAX: u64 = 64 << 20;

/// Does one command.
pub(crate) fn once(mut desk: Desk, words: &[Word], runtime: &Runtime) -> Result<Exit, ShellError> {
    runtime.block_on(async {
        let mut signals = Signals::all().map_err(ShellError::Input)?;
        connect(&mut desk, &mut signals).await?;
        let done = desk.words(words, &mut signals).await;
        let seen = desk.seen().await;
        desk.close().await;
        seen?;
        match done? {
            Flow::Goes => Ok(Exit::Done),
            Flow::Ends(exit) => Ok(exit),
        }
    })
}

/// Does what the input's lines ask for. It goes on after one that fails, unless told otherwise; the first failure is
/// what the program ends with.
pub(crate) fn from_input(
    mut desk: Desk,
    stop_at_failure: bool,
    runtime: &Runtime,
) -> Result<Exit, ShellError> {
    let mut signals = {
        let _entered = runtime.enter();
        Signals::all().map_err(ShellError::Input)?
    };
    runtime.block_on(connect(&mut desk, &mut signals))?;
    let mut input = io::stdin().lock();
    let mut exit = Exit::Done;
    for number in 1_u64.. {
        let done = match line(&mut input) {
            Ok(None) => break,
            Ok(Some(line)) => runtime.block_on(desk.line(&line, &mut signals)),
            Err(error) => Err(error),
        };
        let error = match done {
            Ok(Flow::Goes) => continue,
            Ok(Flow::Ends(ends)) => {
                exit = if exit == Exit::Done { ends } else { exit };
                break;
            }
            Err(error) if error.is_broken_pipe() => return Err(error),
            Err(error) => error,
        };
        note(&format!("line {number}: {error}"));
        exit = if exit == Exit::Done { error.exit() } else { exit };
        if stop_at_failure || matches!(error, ShellError::Interrupted | ShellError::Input(_)) {
            break;
        }
    }
    if desk.writes_waiting().is_some_and(|writes| writes > 0) {
        note("the transaction that was begun was not committed, so nothing of it was done");
        exit = if exit == Exit::Done { Exit::Failed } else { exit };
    }
    runtime.block_on(desk.close());
    Ok(exit)
}

async fn connect(desk: &mut Desk, signals: &mut Signals) -> Result<(), ShellError> {
    tokio::select! {
        connected = desk.connect(None, true) => connected,
        _ = signals.next() => Err(ShellError::Interrupted),
    }
}

fn line(input: &mut impl BufRead) -> Result<Option<String>, ShellError> {
    let mut bytes = Vec::new();
    input.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes).map_err(ShellError::Input)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() as u64 == LINE_MAX {
        return Err(ShellError::Input(io::Error::other("a line is longer than 64 MiB")));
    }
    match String::from_utf8(bytes) {
        Ok(line) => Ok(Some(line)),
        Err(_) => Err(ShellError::Refused("the line is no UTF-8 text; $'\\xHH' writes any byte".into())),
    }
}
