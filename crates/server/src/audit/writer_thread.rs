//! The thread that writes the audit log.

use super::{
    file::RollingFile,
    line::{Level, LineMaker},
    queue::{AuditEntry, AuditQueue},
};
use crate::log_throttle::LogThrottle;
use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};
use time::OffsetDateTime;

/// The time between two tries to write after an error.
const RETRY: Duration = Duration::from_secs(1);
/// About the most bytes that are written at a time.
const BATCH_BYTES: usize = 64 << 10;
/// Bytes after which a line is cut in the journal. The journal divides longer ones (LineMax, 48 KiB), and the second
/// part could look like a line of its own.
const JOURNAL_LINE_MAX: usize = 40 << 10;

/// Where lines go.
#[derive(Debug)]
pub(super) enum AuditWriter {
    File(RollingFile),
    /// Standard error, which is the journal's.
    Journal,
}

/// The parts of the thread.
#[derive(Debug)]
pub(crate) struct AuditThread {
    pub(super) queue: Arc<AuditQueue>,
    pub(super) writer: AuditWriter,
    pub(super) lines: LineMaker,
}

impl AuditThread {
    /// Runs until the queue is stopped.
    pub(crate) fn run(mut self) {
        let (mut entries, mut line, mut batch) = (Vec::new(), String::new(), String::new());
        let mut throttle = LogThrottle::default();
        while self.queue.take(&mut entries) {
            for entry in entries.drain(..) {
                self.make_line(&mut line, &entry);
                let is_over = self.is_batch_over(batch.len(), line.len());
                if is_over && !self.write(&mut batch, &mut throttle) {
                    return log_end();
                }
                batch.push_str(&line);
            }
            if !self.write(&mut batch, &mut throttle) {
                return log_end();
            }
            // A large record must not keep its memory for ever.
            batch.shrink_to(BATCH_BYTES);
            line.shrink_to(BATCH_BYTES);
        }
        if let AuditWriter::File(file) = &self.writer
            && let Err(error) = file.sync()
        {
            tracing::error!(path = %file.path().display(), %error, "the audit log may not be on disk");
        }
    }

    fn make_line(&mut self, line: &mut String, entry: &AuditEntry) {
        line.clear();
        self.lines.append(line, entry, OffsetDateTime::now_utc);
        if let AuditWriter::Journal = self.writer {
            *line = journal_line(entry, line);
        }
    }

    /// Whether a batch of this length is written before a line of this length is added. All of a batch goes into one
    /// file.
    fn is_batch_over(&self, batch: usize, line: usize) -> bool {
        let is_full = match &self.writer {
            AuditWriter::File(file) => !file.has_room_for(batch + line),
            AuditWriter::Journal => false,
        };
        batch > 0 && (is_full || batch + line > BATCH_BYTES)
    }

    /// Writes a batch of lines, again and again until that succeeds, and empties it. Returns false if the server ends
    /// before.
    fn write(&mut self, batch: &mut String, throttle: &mut LogThrottle) -> bool {
        let mut rest = batch.as_bytes();
        loop {
            let result = match &mut self.writer {
                AuditWriter::File(file) => {
                    let is_whole = rest.len() == batch.len();
                    let (written, result) = append(file, rest, is_whole);
                    rest = &rest[written..];
                    result
                }
                AuditWriter::Journal => io::stderr().lock().write_all(rest),
            };
            let Err(error) = result else {
                batch.clear();
                return true;
            };
            if throttle.take_turn() {
                self.log(&error);
            }
            if self.queue.pause(RETRY) {
                return false;
            }
        }
    }

    fn log(&self, error: &io::Error) {
        match &self.writer {
            AuditWriter::File(file) => tracing::error!(
                path = %file.path().display(),
                %error,
                "the audit log cannot be written; its records wait, and are lost when there is no more room for them"
            ),
            AuditWriter::Journal => tracing::error!(%error, "the audit log cannot be written to the journal"),
        }
    }
}

fn log_end() {
    tracing::error!("the audit log could not be written before the server ended; its last lines are missing");
}

/// Appends a batch of lines, or the rest of one that is written in part.
fn append(file: &mut RollingFile, bytes: &[u8], is_whole: bool) -> (usize, io::Result<()>) {
    // The rest of a batch goes where its beginning is.
    if is_whole {
        let ready =
            file.follow_path().and_then(|()| if file.accepts(bytes.len()) { Ok(()) } else { file.roll() });
        if let Err(error) = ready {
            return (0, Err(error));
        }
    }
    file.append(bytes)
}

/// The line with its priority in front, as the journal reads it.
fn journal_line(entry: &AuditEntry, text: &str) -> String {
    let priority = match Level::of(entry) {
        Level::Info => 5,
        Level::Error => 3,
    };
    if text.len() <= JOURNAL_LINE_MAX {
        return format!("<{priority}>{text}");
    }
    let end = text.floor_char_boundary(JOURNAL_LINE_MAX);
    format!("<{priority}>{}[cut, {} bytes]\n", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_server_core::audit::{AuditOperation, AuditRecord, AuditResult};

    fn started(dir: &std::path::Path) -> (Arc<AuditQueue>, std::thread::JoinHandle<()>) {
        let queue = Arc::new(AuditQueue::default());
        let file = RollingFile::open(dir.join("audit.log"), 0o600, 400, 10).unwrap();
        let writer = AuditWriter::File(file);
        let thread = AuditThread { queue: queue.clone(), writer, lines: LineMaker::new("me".into()) };
        (queue, std::thread::spawn(|| thread.run()))
    }

    fn record(result: AuditResult) -> Box<AuditRecord> {
        Box::new(AuditRecord::of_server(0, AuditOperation::ServerStart, result))
    }

    #[test]
    fn all_records_before_the_stop_are_in_the_files() {
        let dir = tempfile::tempdir().unwrap();
        let (queue, thread) = started(dir.path());
        for _ in 0..10 {
            queue.push(record(AuditResult::Success));
        }
        queue.stop();
        thread.join().unwrap();
        let mut lines = 0;
        for file in std::fs::read_dir(dir.path()).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(text.len() <= 400 && text.ends_with("user=me\toperation=serverStart\tresult=success\n"));
            lines += text.lines().count();
        }
        assert_eq!(lines, 10);
    }

    #[test]
    fn a_file_that_cannot_be_written_gets_its_lines_later() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("logs");
        std::fs::create_dir(&folder).unwrap();
        let (queue, thread) = started(&folder);
        std::fs::rename(&folder, dir.path().join("away")).unwrap();
        queue.push(record(AuditResult::Success));
        while !queue.is_empty() {
            std::thread::yield_now();
        }
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("audit.log");
        while std::fs::read_to_string(&file).unwrap_or_default().is_empty() {
            std::thread::yield_now();
        }
        queue.stop();
        thread.join().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
    }

    #[test]
    fn the_journal_reads_a_priority_and_no_line_is_divided_there() {
        let failure = AuditEntry::Record(record(AuditResult::Failure));
        assert_eq!(journal_line(&failure, "text\n"), "<3>text\n");
        assert_eq!(journal_line(&AuditEntry::Record(record(AuditResult::Success)), "text\n"), "<5>text\n");
        let long = "ä".repeat(30 << 10) + "\n";
        let line = journal_line(&failure, &long);
        assert!(line.len() < 48 << 10 && line.ends_with("ä[cut, 61441 bytes]\n"));
    }
}
