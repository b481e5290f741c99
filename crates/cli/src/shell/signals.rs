//! Signals: Ctrl-C, SIGTERM and SIGHUP.

use rustix::{process::getpgrp, termios::tcgetpgrp};
use std::{
    fs,
    fs::File,
    io,
    task::{Context, Poll, Waker},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
};

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Interrupt,
    Terminate,
    HangUp,
}

impl StopSignal {
    /// The signal to pass on to another program.
    pub(crate) fn signal(self) -> rustix::process::Signal {
        match self {
            StopSignal::Interrupt => rustix::process::Signal::INT,
            StopSignal::Terminate => rustix::process::Signal::TERM,
            StopSignal::HangUp => rustix::process::Signal::HUP,
        }
    }

    /// Whether this is, as far as can be known, a Ctrl-C at this program's terminal. Then the terminal has sent it to
    /// the
    /// running command, too.
    pub(crate) fn by_terminal(self) -> bool {
        self == StopSignal::Interrupt && is_in_foreground()
    }
}

/// Signals that end a command and not the program.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Listener,
    ends: Ends,
}

/// SIGTERM and SIGHUP.
#[derive(Debug)]
enum Ends {
    Listened(EndListeners),
    /// They end the program, as at a prompt, where nothing waits for them.
    EndTheProgram,
    /// They end the program by this task: once a program listens for a signal, its default effect does not come back.
    ByHand(JoinHandle<()>),
}

#[derive(Debug)]
struct EndListeners {
    terminate: Listener,
    hang_up: Listener,
}

/// Listens for one signal. A signal that was ignored when the program started, as with nohup, stays ignored.
#[derive(Debug)]
struct Listener(Option<Signal>);

impl Listener {
    fn new(kind: SignalKind) -> io::Result<Listener> {
        Ok(Listener(if is_ignored(kind) { None } else { Some(signal(kind)?) }))
    }

    async fn told(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }
}

impl EndListeners {
    fn new() -> io::Result<EndListeners> {
        Ok(EndListeners {
            terminate: Listener::new(SignalKind::terminate())?,
            hang_up: Listener::new(SignalKind::hangup())?,
        })
    }

    async fn told(&mut self) -> StopSignal {
        tokio::select! {
            () = self.terminate.told() => StopSignal::Terminate,
            () = self.hang_up.told() => StopSignal::HangUp,
        }
    }
}

impl Signals {
    /// Listens for Ctrl-C alone.
    pub(crate) fn interrupts() -> io::Result<Signals> {
        Ok(Signals { interrupt: Listener::new(SignalKind::interrupt())?, ends: Ends::EndTheProgram })
    }

    /// Listens for Ctrl-C, SIGTERM and SIGHUP.
    pub(crate) fn all() -> io::Result<Signals> {
        let ends = Ends::Listened(EndListeners::new()?);
        Ok(Signals { ends, ..Signals::interrupts()? })
    }

    /// Listens for SIGTERM and SIGHUP, too. Returns whether that is new. While another program runs under a lock, no
    /// signal may end this program alone.
    pub(crate) fn take_ends(&mut self) -> io::Result<bool> {
        if let Ends::Listened(_) = self.ends {
            return Ok(false);
        }
        let listeners = EndListeners::new()?;
        if let Ends::ByHand(task) = std::mem::replace(&mut self.ends, Ends::Listened(listeners)) {
            task.abort();
        }
        Ok(true)
    }

    /// SIGTERM and SIGHUP have again the effect that they had before [`take_ends`](Signals::take_ends).
    pub(crate) fn leave_ends(&mut self) {
        if let Ends::Listened(mut listeners) = std::mem::replace(&mut self.ends, Ends::EndTheProgram) {
            self.ends = Ends::ByHand(tokio::spawn(async move {
                let told = listeners.told().await;
                std::process::exit(128 + told.signal().as_raw());
            }));
        }
    }

    /// Forgets each Ctrl-C that came before: it was for the command that ran then. That command got it from the
    /// terminal,
    /// too, and may have ended before this program noticed the signal.
    pub(crate) fn forget_interrupts(&mut self) {
        let mut at_once = Context::from_waker(Waker::noop());
        if let Some(signal) = &mut self.interrupt.0 {
            while let Poll::Ready(Some(())) = signal.poll_recv(&mut at_once) {}
        }
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> StopSignal {
        let Signals { interrupt, ends } = self;
        let ended = async {
            match ends {
                Ends::Listened(listeners) => listeners.told().await,
                Ends::EndTheProgram | Ends::ByHand(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = interrupt.told() => StopSignal::Interrupt,
            told = ended => told,
        }
    }
}

/// Whether the signal is ignored. Listening for it would end that. Without /proc a signal counts as not ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, kind.as_raw_value())
}

fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

/// Whether this program is in the foreground of its terminal: then it gets the keys, and so do its children.
fn is_in_foreground() -> bool {
    let foreground = File::open("/dev/tty").ok().and_then(|terminal| tcgetpgrp(terminal).ok());
    foreground == Some(getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, kill_process};
    use std::pin::pin;

    #[tokio::test]
    async fn an_earlier_ctrl_c_is_forgotten() {
        // Also if SIGINT was ignored when the tests were started.
        let interrupt = Listener(Some(signal(SignalKind::interrupt()).unwrap()));
        let mut signals = Signals { interrupt, ends: Ends::EndTheProgram };
        let mut witness = signal(SignalKind::interrupt()).unwrap();
        let come = async |witness: &mut Signal| {
            kill_process(getpid(), rustix::process::Signal::INT).unwrap();
            witness.recv().await.unwrap();
        };
        come(&mut witness).await;
        signals.forget_interrupts();
        let mut at_once = Context::from_waker(Waker::noop());
        assert!(pin!(signals.next()).poll(&mut at_once).is_pending());
        come(&mut witness).await;
        assert_eq!(signals.next().await, StopSignal::Interrupt);
    }

    #[test]
    fn ignored_signals_are_found_in_the_process_status() {
        let status = "Name:\tostler\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores(status, 15));
        assert!(!ignores("", 1));
    }
}
