//! The end of the command: by signals, and by the end of standard input.

use super::error::StartError;
use std::{io, thread};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

pub(super) struct Ending {
    signals: [Signal; 3],
    /// `None` if the end of standard input does not matter.
    stdin: Option<oneshot::Receiver<()>>,
}

impl Ending {
    pub(super) fn listen(with_stdin: bool) -> Result<Ending, StartError> {
        let listen = || {
            let [term, interrupt, hangup] =
                [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
            let stdin = if with_stdin { Some(stdin_end()?) } else { None };
            Ok(Ending { signals: [term?, interrupt?, hangup?], stdin })
        };
        listen()
            .map_err(|cause| StartError::Io { what: "cannot listen for signals and standard input", cause })
    }

    /// Waits for a signal.
    pub(super) async fn signalled(&mut self) {
        let [term, interrupt, hangup] = &mut self.signals;
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }

    /// Waits for a signal or the end of standard input.
    pub(super) async fn received(&mut self) {
        match self.stdin.take() {
            Some(stdin) => tokio::select! {
                () = self.signalled() => {}
                _ = stdin => {}
            },
            None => self.signalled().await,
        }
    }
}

/// Resolves when standard input ends. Its bytes are not used.
fn stdin_end() -> io::Result<oneshot::Receiver<()>> {
    let (ended, end) = oneshot::channel();
    // A thread that the end of the program does not wait for.
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = ended.send(());
    })?;
    Ok(end)
}
