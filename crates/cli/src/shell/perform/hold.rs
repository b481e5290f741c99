//! Somebody else's command, run while holding a lock or leading.
//!
//! As soon as that may be lost, the command is told to end, and killed if it does not: from then on another holder can
//! begin. What it has sent elsewhere before may still arrive, so it gets the holder's token, for stores that check it.

use super::super::{
    command::Held,
    desk::Desk,
    error::{ShellError, While},
    output::note,
    signals::{Signals, Told},
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
    process::ExitStatus,
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

/// How long a command has for its end once it was told to end.
const GRACE: Duration = Duration::from_secs(5);
/// The holder's token, a number that grows from holder to holder.
const TOKEN: &str = "OSTLER_TOKEN";
/// The znode by which it is held.
const NODE: &str = "OSTLER_NODE";

impl Desk {
    pub(crate) async fn hold(
        &mut self,
        what: Held,
        path: &str,
        command: &[Word],
        signals: &mut Signals,
    ) -> Result<(), ShellError> {
        let client = self.client()?;
        let holding = tokio::select! {
            holding = Holding::wait(what, &client, path) => holding?,
            _ = signals.next() => return Err(ShellError::Interrupted),
        };
        let ran = run(command, holding.fence(), signals).await;
        // If it takes longer, it goes on in the background, and ends with the session at the latest.
        let _ = timeout(GRACE, holding.end()).await;
        ran
    }
}

enum Holding {
    Lock(MutexGuard),
    Leadership(LeaderLatch, Fence),
}

impl Holding {
    async fn wait(what: Held, client: &Client, path: &str) -> Result<Holding, ShellError> {
        let me = format!("{}-{}", uname().nodename().to_string_lossy(), std::process::id());
        match what {
            Held::Lock => {
                let lock = InterProcessMutex::new(client, path).node_data(me);
                Ok(Holding::Lock(lock.acquire().await?))
            }
            Held::Leadership => {
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
            // If it fails it goes on in the background.
            Holding::Lock(guard) => drop(guard.release().await),
            Holding::Leadership(latch, _) => latch.close().await,
        }
    }
}

async fn run(command: &[Word], fence: &Fence, signals: &mut Signals) -> Result<(), ShellError> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let mut child = Command::new(OsStr::from_bytes(program.bytes()))
        .args(arguments.iter().map(|word| OsStr::from_bytes(word.bytes())))
        .env(TOKEN, fence.token().number().to_string())
        .env(NODE, fence.node())
        .kill_on_drop(true)
        .spawn()
        .map_err(|cause| ShellError::Program {
            program: String::from_utf8_lossy(program.bytes()).into_owned(),
            cause,
        })?;
    loop {
        tokio::select! {
            status = child.wait() => return told_by(status.during("cannot wait for the command")?),
            () = fence.lost() => {
                note(&format!("{} may be lost: ending the command", fence.node()));
                end(&mut child).await;
                return Err(ShellError::Refused(format!("{} was lost while the command ran", fence.node())));
            }
            told = signals.next() => match told {
                // The terminal has told the command, too.
                Told::Interrupt => {}
                Told::Terminate => tell(&child, Signal::TERM),
            },
        }
    }
}

async fn end(child: &mut Child) {
    tell(child, Signal::TERM);
    if timeout(GRACE, child.wait()).await.is_err() {
        // Nothing else can go wrong than that it has ended meanwhile.
        let _ = child.kill().await;
    }
}

fn tell(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(pid) = pid {
        // It may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

/// As shells tell it: 128 and the signal that has ended it.
fn told_by(status: ExitStatus) -> Result<(), ShellError> {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    match u8::try_from(code).unwrap_or(1) {
        0 => Ok(()),
        code => Err(ShellError::Ended(code)),
    }
}
