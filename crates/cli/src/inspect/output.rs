//! The output: lines of text or of JSON, buffered.

use serde::Serialize;
use std::{
    fmt::Display,
    io::{self, BufWriter, Stdout, Write},
};

/// The standard output.
pub(super) struct Output {
    out: BufWriter<Stdout>,
}

impl Output {
    pub(super) fn new() -> Output {
        Output { out: BufWriter::with_capacity(1 << 16, io::stdout()) }
    }

    /// Writes a line of text.
    pub(super) fn text(&mut self, line: impl Display) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// Writes an object of JSON as one line.
    pub(super) fn json(&mut self, object: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, object)?;
        self.out.write_all(b"\n")
    }

    /// Writes a thing that has both forms.
    pub(super) fn either<T: Display + Serialize>(&mut self, json: bool, thing: &T) -> io::Result<()> {
        if json { self.json(thing) } else { self.text(thing) }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
