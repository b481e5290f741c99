//! The audit log: one thread makes lines of the core's records, and writes them to a file or to the journal.
//!
//! A record goes into a bounded queue under the core's lock, and nothing waits there. If the queue is full, because the
//! audit file cannot be written, records are lost. The alternatives are worse: to wait under the lock would stop the
//! heartbeats, and one full disk would cost the ensemble its leader; to refuse writes would let the disk of the audit
//! log decide whether the service runs. An operator has to be able to trust the log all the same, so no loss is silent:
//! the number of lost records is written into the audit log itself, at their place, and the server's own log has an
//! error, once a minute at most. There is room for some seconds of the heaviest load, and for a long time of a usual one.

mod file;
mod line;
mod os_user;
mod queue;
mod writer_thread;

use crate::{
    clock::Clock,
    config::{AuditSettings, AuditTarget},
    error::ServerError,
};
use file::RollingFile;
use line::LineMaker;
use ostler_server_core::audit::{AuditOperation, AuditRecord, AuditResult};
pub(crate) use queue::AuditQueue;
use std::{
    io,
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
};
use writer_thread::{AuditThread, AuditWriter};

/// Why the audit log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file cannot be opened.
    #[error(
        "cannot write the audit log {}: {source}; make its folder and let this user write to it, or correct \
         audit.log.file",
        .path.display()
    )]
    File {
        /// The audit file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Standard error does not go to the journal.
    #[error(
        "the audit log cannot go to the journal: standard error is not the stream of the journal that JOURNAL_STREAM \
         names; run the server as a service of systemd with StandardError=journal, or set audit.log.target=file"
    )]
    NoJournal,
}

/// The audit log of a running server. Its thread ends when this is dropped, after the records that wait.
#[derive(Debug)]
pub(crate) struct RunningAudit {
    queue: Arc<AuditQueue>,
    thread: Option<JoinHandle<()>>,
}

impl RunningAudit {
    /// Opens the audit log, and starts its thread. `mode` is the mode of new files.
    pub(crate) fn start(settings: &AuditSettings, mode: u32) -> Result<RunningAudit, ServerError> {
        let writer = match &settings.target {
            AuditTarget::File(path) => AuditWriter::File(
                RollingFile::open(path.clone(), mode, settings.max_file_bytes, settings.max_files)
                    .map_err(|source| AuditError::File { path: path.clone(), source })?,
            ),
            AuditTarget::Journald if is_journal() => AuditWriter::Journal,
            AuditTarget::Journald => return Err(AuditError::NoJournal.into()),
        };
        let queue = Arc::new(AuditQueue::default());
        let work = AuditThread { queue: queue.clone(), writer, lines: LineMaker::new(os_user::name()) };
        let builder = thread::Builder::new().name("audit".into());
        let thread = builder.spawn(|| work.run()).map_err(ServerError::Thread)?;
        Ok(RunningAudit { queue, thread: Some(thread) })
    }

    pub(crate) fn queue(&self) -> Arc<AuditQueue> {
        self.queue.clone()
    }

    /// Waits until the records that wait are written. A disk that fails ends the waiting, too.
    pub(crate) fn end(mut self) {
        self.queue.stop();
        // A panic aborts the process, so there is no error of the thread.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Drop for RunningAudit {
    fn drop(&mut self) {
        self.queue.stop();
    }
}

/// Records an event of the server itself.
pub(crate) fn note_server(queue: &AuditQueue, operation: AuditOperation, result: AuditResult) {
    let wall_ms = Clock::start().now().wall_ms;
    queue.push(Box::new(AuditRecord::of_server(wall_ms, operation, result)));
}

/// Whether standard error goes to the journal: systemd names its device and inode.
fn is_journal() -> bool {
    let Some(named) = std::env::var_os("JOURNAL_STREAM") else { return false };
    let Ok(stat) = rustix::fs::fstat(io::stderr()) else { return false };
    named.to_str() == Some(&*format!("{}:{}", stat.st_dev, stat.st_ino))
}
