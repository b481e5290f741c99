//! Where answers and announcements go.

use super::{
    announcement::Announcement,
    answer::{Answer, Look},
    error::ShellError,
    stat_text::Context,
};
use ostler_client::ConnectionState;
use rustyline::ExternalPrinter;
use std::{
    fmt,
    io::{self, BufWriter, Stdout, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

/// The program's output, for one command after the other.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) look: Look,
    out: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new(look: Look) -> Output {
        Output { look, out: BufWriter::new(io::stdout()) }
    }

    /// Writes an answer; it may be seen only after [`Output::flush`].
    pub(crate) fn answer(&mut self, answer: &Answer, context: Context) -> Result<(), ShellError> {
        self.out.write_all(&answer.shown(self.look, context)).map_err(ShellError::Output)
    }

    pub(crate) fn flush(&mut self) -> Result<(), ShellError> {
        self.out.flush().map_err(ShellError::Output)
    }
}

/// A sentence beside the answers, for whoever looks on.
pub(crate) fn note(text: &str) {
    // Whoever read this may be gone.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Tells what happens, at any time: above the prompt while a line is being written.
#[derive(Clone)]
pub(crate) struct Teller {
    look: Look,
    changes_wanted: Arc<AtomicBool>,
    states_wanted: bool,
    above_prompt: Option<Arc<Mutex<Box<dyn ExternalPrinter + Send>>>>,
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teller").field("look", &self.look).finish_non_exhaustive()
    }
}

impl Teller {
    /// Tells on the output, and only of changes.
    pub(crate) fn new(look: Look) -> Teller {
        let changes_wanted = Arc::new(AtomicBool::new(true));
        Teller { look, changes_wanted, states_wanted: false, above_prompt: None }
    }

    /// Tells above a prompt, and of the connection's states as well.
    pub(crate) fn above_prompt(self, printer: Box<dyn ExternalPrinter + Send>) -> Teller {
        Teller { states_wanted: true, above_prompt: Some(Arc::new(Mutex::new(printer))), ..self }
    }

    pub(crate) fn want_changes(&self, wanted: bool) {
        self.changes_wanted.store(wanted, SeqCst);
    }

    pub(crate) fn changes_wanted(&self) -> bool {
        self.changes_wanted.load(SeqCst)
    }

    pub(crate) fn tell(&self, announcement: &Announcement) {
        let wanted = match announcement {
            // The prompt says so.
            Announcement::State { state: ConnectionState::Connecting, .. } => false,
            Announcement::State { .. } => self.states_wanted,
            _ => self.changes_wanted(),
        };
        if !wanted {
            return;
        }
        let text = announcement.shown(self.look);
        let Some(printer) = &self.above_prompt else {
            let mut out = io::stdout().lock();
            // The next answer finds out that nobody reads.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            return;
        };
        // The same if the terminal is gone.
        let _ = printer.lock().unwrap_or_else(PoisonError::into_inner).print(text);
    }
}
