//! Prints answers and announcements.

use super::{
    announcement::Announcement,
    answer::{Answer, OutputStyle},
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

/// The standard output, for the answers of commands.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) style: OutputStyle,
    out: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new(style: OutputStyle) -> Output {
        Output { style, out: BufWriter::new(io::stdout()) }
    }

    /// Writes an answer. [`Output::flush`] makes it visible.
    pub(crate) fn answer(&mut self, answer: &Answer, context: Context) -> Result<(), ShellError> {
        self.out.write_all(&answer.shown(self.style, context)).map_err(ShellError::Output)
    }

    pub(crate) fn flush(&mut self) -> Result<(), ShellError> {
        self.out.flush().map_err(ShellError::Output)
    }
}

/// Prints a sentence for the user on the error output, beside the answers.
pub(crate) fn note(text: &str) {
    // The reader may be gone.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints announcements at any time; at a prompt, above the line that is being typed.
#[derive(Clone)]
pub(crate) struct Teller {
    style: OutputStyle,
    changes_wanted: Arc<AtomicBool>,
    states_wanted: bool,
    above_prompt: Option<Arc<Mutex<Box<dyn ExternalPrinter + Send>>>>,
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teller").field("style", &self.style).finish_non_exhaustive()
    }
}

impl Teller {
    /// Prints watch events on the standard output, and no states of the connection.
    pub(crate) fn new(style: OutputStyle) -> Teller {
        let changes_wanted = Arc::new(AtomicBool::new(true));
        Teller { style, changes_wanted, states_wanted: false, above_prompt: None }
    }

    /// Prints above the prompt, states of the connection too.
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
            // The prompt shows this state.
            Announcement::State { state: ConnectionState::Connecting, .. } => false,
            Announcement::State { .. } => self.states_wanted,
            _ => self.changes_wanted(),
        };
        if !wanted {
            return;
        }
        let text = announcement.shown(self.style);
        let Some(printer) = &self.above_prompt else {
            let mut out = io::stdout().lock();
            // If the reader is gone, the next answer reports it.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            return;
        };
        // The same if the terminal is gone.
        let _ = printer.lock().unwrap_or_else(PoisonError::into_inner).print(text);
    }
}
