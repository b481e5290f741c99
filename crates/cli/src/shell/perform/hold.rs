//! Runs another program while the shell holds a lock or leads.
//!
//! As soon as the lock or the leadership may be lost, the program gets SIGTERM, and SIGKILL if it does not end: from
//! then on another holder can begin. Requests that the program has sent may still arrive elsewhere. So the program gets
//! the fencing token, for stores that check it.

use super::super::{
    command::HoldKind,
    error::{ShellError, While},
    output::note,
    session::{Flow, Input, ShellSession},
    signals::{Signals, StopSignal},
    words::Word,
};
use ostler_client::Client;
use ostler_recipes::{
    fencing::Fence,
    leader::LeaderLatch,
    lock::{InterProcessMutex, MutexGuard},
};
use rustix::{
    process::{Pid, Signal, kill_process},
    system::uname,
};
use std::{
    ffi::OsStr,
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// The exit code if a signal ends the shell while it waits.
const INTERRUPTED: u8 = 130;
const CANNOT_WAIT: &str = "cannot wait for the command";
/// The variable with the fencing token, which grows from holder to holder.
const TOKEN: &str = "OSTLER_TOKEN";
/// The variable with the path of the holder's znode.
const NODE: &str = "OSTLER_NODE";

impl ShellSession {
    pub(crate) async fn hold(
        &mut self,
        kind: HoldKind,
        path: &str,
        command: &[Word],
        signals: &mut Signals,
    ) -> Result<Flow, ShellError> {
        let taken = signals.take_ends().during("cannot listen for signals")?;
        let held = self.held(kind, path, command, signals).await;
        if taken {
            signals.leave_ends();
        }
        held
    }

    async fn held(
        &mut self,
        kind: HoldKind,
        path: &str,
        command: &[Word],
        signals: &mut Signals,
    ) -> Result<Flow, ShellError> {
        let client = self.client()?;
        let holding = tokio::select! {
            holding = Holding::wait(kind, &client, path) => holding?,
            told = signals.next() => return Err(match told {
                StopSignal::Interrupt => ShellError::Interrupted,
                StopSignal::Terminate | StopSignal::HangUp => ShellError::Stopped(INTERRUPTED),
            }),
        };
        let ran = run(command, self.input, holding.fence(), signals).await;
        // A release that takes longer goes on in the background. The znode ends with the session at the latest.
        let _ = timeout(GRACE, holding.end()).await;
        ran
    }
}

enum Holding {
    Lock(MutexGuard),
    Leadership(LeaderLatch, Fence),
}

impl Holding {
    async fn wait(kind: HoldKind, client: &Client, path: &str) -> Result<Holding, ShellError> {
        let me = format!("{}-{}", uname().nodename().to_string_lossy(), std::process::id());
        match kind {
            HoldKind::Lock => {
                let lock = InterProcessMutex::new(client, path).node_data(me);
                Ok(Holding::Lock(lock.acquire().await?))
            }
            HoldKind::Leadership => {
                let latch = LeaderLatch::new(client, path, &me);
                latch.start();
                let fence = latch.wait_for_leadership().await?;
                Ok(Holding::Leadership(latch, fence))
            }
        }
    }

    fn fence(&self) -> &Fence {
        match self {
            Holding::Lock(guard) => guard.fence(),
            Holding::Leadership(_, fence) => fence,
        }
    }

    async fn end(self) {
        match self {
            // A release that fails is repeated in the background.
            Holding::Lock(guard) => drop(guard.release().await),
            Holding::Leadership(latch, _) => latch.close().await,
        }
    }
}

async fn run(
    command: &[Word],
    input: Input,
    fence: &Fence,
    signals: &mut Signals,
) -> Result<Flow, ShellError> {
    let Some((program, arguments)) = command.split_first() else { return Ok(Flow::Goes) };
    let stdin = match input {
        // The lines of the input are commands of the shell.
        Input::Commands => Stdio::null(),
        Input::Free | Input::Keyboard => Stdio::inherit(),
    };
    let mut child = Command::new(OsStr::from_bytes(program.bytes()))
        .args(arguments.iter().map(|word| OsStr::from_bytes(word.bytes())))
        .env(TOKEN, fence.token().number().to_string())
        .env(NODE, fence.node())
        .stdin(stdin)
        .kill_on_drop(true)
        .spawn()
        .map_err(|cause| ShellError::Program {
            program: String::from_utf8_lossy(program.bytes()).into_owned(),
            cause,
        })?;
    let mut lost = pin!(fence.lost());
    loop {
        tokio::select! {
            biased;
            status = child.wait() => return result_of(status.during(CANNOT_WAIT)?).map(|()| Flow::Goes),
            () = &mut lost => {
                note(&format!("{} may be lost: ending the command", fence.node()));
                end(&mut child, Signal::TERM, GRACE).await?;
                return Err(ShellError::Refused(format!("{} was lost while the command ran", fence.node())));
            }
            told = signals.next() => {
                // The program has got it from the terminal, and decides what to do.
                if told.by_terminal() {
                    continue;
                }
                // The lock is held until the program has ended: no other holder may begin before.
                return match result_of(end(&mut child, told.signal(), GRACE).await?) {
                    Err(ShellError::Ended(code)) => Err(ShellError::Stopped(code)),
                    ended => ended.map(|()| Flow::Ends),
                };
            }
        }
    }
}

/// Sends a signal, waits for `grace`, and kills the program if it has not ended by then.
async fn end(child: &mut Child, signal: Signal, grace: Duration) -> Result<ExitStatus, ShellError> {
    tell(child, signal);
    match timeout(grace, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            note("the command has not ended when told to: killing it");
            // The only possible error is that the program has ended meanwhile.
            let _ = child.start_kill();
            child.wait().await
        }
    }
    .during(CANNOT_WAIT)
}

fn tell(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(pid) = pid {
        // The program may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

/// The result by the program's exit status. As in other shells, the code after a signal is 128 plus its number.
fn result_of(status: ExitStatus) -> Result<(), ShellError> {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    match u8::try_from(code).unwrap_or(1) {
        0 => Ok(()),
        code => Err(ShellError::Ended(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader};

    /// Starts a script of sh, and waits until it has printed a line.
    async fn started(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut String::new()).await.unwrap();
        child
    }

    async fn ended(script: &str, grace: Duration) -> Option<u8> {
        let mut child = started(script).await;
        // Kept open: the script waits for it.
        let _input = child.stdin.take();
        match result_of(end(&mut child, Signal::TERM, grace).await.unwrap()) {
            Ok(()) => None,
            Err(ShellError::Ended(code)) => Some(code),
            Err(other) => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn a_command_is_killed_if_it_does_not_end() {
        let deaf = "trap '' TERM; echo; exec cat";
        assert_eq!(ended(deaf, Duration::from_millis(10)).await, Some(128 + 9));
        let willing = "echo; exec cat";
        assert_eq!(ended(willing, Duration::from_secs(60)).await, Some(128 + 15));
    }
}
