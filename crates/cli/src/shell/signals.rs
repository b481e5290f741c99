//! Ctrl-C, and being told to end.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Interrupt,
    Terminate,
}

/// Signals that end a command instead of the program.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    /// At a prompt SIGTERM keeps its meaning: nobody could wait for it there.
    terminate: Option<Signal>,
}

impl Signals {
    /// Listens for Ctrl-C alone.
    pub(crate) fn interrupts() -> io::Result<Signals> {
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: None })
    }

    /// Listens for Ctrl-C and SIGTERM.
    pub(crate) fn all() -> io::Result<Signals> {
        Ok(Signals { terminate: Some(signal(SignalKind::terminate())?), ..Signals::interrupts()? })
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self) -> Told {
        let Signals { interrupt, terminate } = self;
        let terminated = async {
            match terminate {
                Some(terminate) => terminate.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => Told::Interrupt,
            _ = terminated => Told::Terminate,
        }
    }
}
