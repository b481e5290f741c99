//! The files of a server: what is on disk, what a purge would remove, and the acts of operators on them.

use super::{figures::Space, handle::AdminHandle, state::AdminState, whole};
use crate::snapshot_thread::{FailedSnapshot, WrittenSnapshot};
use axum::response::Response;
use ostler_data_dir::snapshots::{purge_as_planned, purge_plan};
use ostler_proto::{
    acl::{Id, Perms},
    id::Zxid,
};
use ostler_server_core::{
    Input, SnapshotTurn,
    audit::{AuditOperation, Operator},
};
use ostler_storage::{
    StorageError,
    names::log_files,
    retention::RETAIN_AT_LEAST,
    snapshot::{Problem, find_snapshots},
    txnlog::zxid_before,
};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The time between two looks whether a snapshot is written.
const LOOK: Duration = Duration::from_millis(50);

/// The files of a server.
#[derive(Debug, Clone)]
pub struct DiskReport {
    /// The folder of the snapshots.
    pub data: Folder,
    /// The folder of the logs.
    pub log: Folder,
    /// Whether both are on one file system.
    pub is_one_disk: bool,
    /// The snapshots, newest first.
    pub snapshots: Vec<SnapshotOnDisk>,
    /// The logs, newest first.
    pub logs: Vec<LogOnDisk>,
    /// The last snapshot that this server has written since its start.
    pub written: Option<WrittenSnapshot>,
    /// The last one that it could not write.
    pub failed: Option<FailedSnapshot>,
    /// The last transaction that the server has applied.
    pub last_zxid: Zxid,
    /// How long the start took, and how much it has read.
    pub start: LastStart,
    /// Transactions that a start would have to replay now.
    pub records_to_replay: u64,
    /// The number of snapshots that are kept (`autopurge.snapRetainCount`); `None` if nothing is purged.
    pub autopurge_keeps: Option<usize>,
    /// The files that a purge would remove.
    pub purge: Purge,
}

/// A folder and the space on its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The path.
    pub path: PathBuf,
    /// `None` if the system does not say it.
    pub space: Option<Space>,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotOnDisk {
    /// The name of the file.
    pub name: String,
    /// The last transaction in it, by its name.
    pub zxid: Zxid,
    /// The size of the file.
    pub bytes: u64,
    /// When it was written.
    pub at: Option<SystemTime>,
    /// Why no start can read it; `None` if the ends of the file are right, and the last start had no trouble with it.
    pub problem: Option<String>,
}

/// A log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOnDisk {
    /// The name of the file.
    pub name: String,
    /// The first transaction in it, by its name.
    pub from: Zxid,
    /// The last one, by the header of the next log; `None` if that does not say it.
    pub to: Option<Zxid>,
    /// The size of the file, with the space that is reserved for what comes.
    pub bytes: u64,
    /// Why no start can read it; `None` if its header is right.
    pub problem: Option<String>,
}

/// The time that the last start took to load the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastStart {
    /// For the snapshot; zero if there was none.
    pub snapshot: Duration,
    /// The size of that snapshot.
    pub snapshot_bytes: u64,
    /// For the log after it.
    pub log: Duration,
    /// The transactions that were replayed.
    pub records: u64,
}

/// The files that a purge would remove now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Purge {
    /// The number of snapshots that are kept.
    pub keep: usize,
    /// The names and sizes of the files, in the order in which they are removed.
    pub removes: Vec<(String, u64)>,
}

/// Why an operator's act was not done.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// The files cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A purge would remove other files by now.
    #[error("the files have changed meanwhile: a purge would remove others now")]
    OtherPlan,
    /// The identities have no such right.
    #[error("only a super user, or an identity with all permissions in the ACL of the root, may do this")]
    NoRight,
    /// `admin.snapshot.enabled` is false.
    #[error("snapshots for callers are switched off (admin.snapshot.enabled)")]
    SwitchedOff,
    /// A snapshot is being written.
    #[error("a snapshot is being written already")]
    Running,
    /// A snapshot was sent a short while ago.
    #[error(
        "a snapshot was sent a short while ago: admin.rateLimiterIntervalInMS is the least time between two"
    )]
    TooSoon,
    /// The server has no leader.
    #[error(
        "the server serves no leader's history now: its tree may have transactions that will be taken back"
    )]
    NotServing,
    /// The disk has not enough space.
    #[error("the disk has {free} free bytes, and a snapshot takes about {needed}")]
    NoSpace {
        /// Free bytes.
        free: u64,
        /// The size of the newest snapshot.
        needed: u64,
    },
    /// The snapshot was not written.
    #[error("the snapshot was not written: {0}")]
    Failed(String),
}

impl AdminHandle {
    /// The files of this server. Names, sizes, and the ends and headers of the files are read, and no more. It may take a
    /// while: call it where a thread may wait.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn disk(&self, keep: Option<usize>) -> Result<DiskReport, StorageError> {
        let (state, reports) = (&self.state, &self.state.reports);
        let settings = &state.snapshots;
        let folder = |path: &Path| Folder {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            space: Space::of(path),
        };
        let device = |path: &Path| fs::metadata(path).map(|of| of.dev()).ok();
        let (data, log) = (&settings.folders.snapshots, &settings.folders.logs);
        let (last_zxid, records_to_replay) =
            self.inspect(|server| (server.tree().last_processed(), server.records_since_snapshot()));
        let last = reports.snapshots.last();
        let keep = keep.or(settings.keep()).unwrap_or(0).max(RETAIN_AT_LEAST);
        Ok(DiskReport {
            data: folder(data),
            log: folder(log),
            is_one_disk: device(data) == device(log),
            snapshots: snapshots(state)?,
            logs: logs(state, last_zxid)?,
            written: last.written,
            failed: last.failed,
            last_zxid,
            start: last_start(state),
            records_to_replay,
            autopurge_keeps: settings.keep(),
            purge: purge_of(state, keep)?,
        })
    }

    /// Removes the files that a purge with this `keep` removes, if they are those of the plan that the operator has seen.
    /// Returns the names and sizes of the removed files.
    ///
    /// # Errors
    /// The plan is another one by now, or a file cannot be removed.
    pub fn purge(&self, keep: usize, planned: &[String], operator: Operator<'_>) -> Result<Purge, NotDone> {
        let done = self.purge_unaudited(keep, planned);
        self.state.audit(operator, AuditOperation::Purge, done.is_ok());
        if let Ok(purged) = &done
            && !purged.removes.is_empty()
        {
            let removed: Vec<&str> = purged.removes.iter().map(|(name, _)| &**name).collect();
            tracing::info!(files = removed.join(" "), "old files were removed for an operator");
        }
        done
    }

    fn purge_unaudited(&self, keep: usize, planned: &[String]) -> Result<Purge, NotDone> {
        let keep = keep.max(RETAIN_AT_LEAST);
        let seen = purge_of(&self.state, keep)?;
        let removed = purge_as_planned(&self.state.snapshots, keep, planned)?.ok_or(NotDone::OtherPlan)?;
        let size = |name: &str| seen.removes.iter().find(|(of, _)| of == name).map_or(0, |(_, bytes)| *bytes);
        let names = removed.iter().filter_map(|path| name_of(path));
        Ok(Purge { keep, removes: names.map(|name| (name.to_owned(), size(name))).collect() })
    }

    /// Takes a snapshot, and waits until it is written, or for this time. `None`: it goes on. The server writes it slowly,
    /// so that clients do not notice.
    ///
    /// # Errors
    /// It cannot begin, or has failed.
    pub async fn take_snapshot(
        &self,
        within: Duration,
        operator: Operator<'_>,
    ) -> Result<Option<WrittenSnapshot>, NotDone> {
        let taken = self.take_snapshot_unaudited(within).await;
        self.state.audit(operator, AuditOperation::TakeSnapshot, taken.is_ok());
        taken
    }

    async fn take_snapshot_unaudited(&self, within: Duration) -> Result<Option<WrittenSnapshot>, NotDone> {
        match self.inspect(|server| server.snapshot_turn()) {
            SnapshotTurn::Free => {}
            SnapshotTurn::Running => return Err(NotDone::Running),
            SnapshotTurn::NotServing => return Err(NotDone::NotServing),
        }
        self.has_space()?;
        let queue = &self.state.reports.snapshots;
        let before = queue.last();
        self.state.driver.step(Input::TakeSnapshot);
        let ended = async {
            loop {
                tokio::time::sleep(LOOK).await;
                let last = queue.last();
                if last.ended > before.ended {
                    return last;
                }
            }
        };
        let Ok(last) = tokio::time::timeout(within, ended).await else { return Ok(None) };
        match (last.failed, last.written) {
            (Some(failed), _) if before.failed.as_ref() != Some(&failed) => {
                Err(NotDone::Failed(failed.error))
            }
            (_, Some(written)) if before.written != Some(written) => Ok(Some(written)),
            _ => Err(NotDone::Failed("the log was cut meanwhile, or the server ends".into())),
        }
    }

    /// A snapshot of this moment as an answer with the file as its body. The rights, the limit and the file are those of the
    /// command `snapshot`.
    ///
    /// # Errors
    /// The identities may not, one was sent a short while ago, or it cannot be written.
    pub async fn send_snapshot(&self, operator: Operator<'_>) -> Result<Response, NotDone> {
        let sent = self.send_snapshot_unaudited(operator.ids).await;
        self.state.audit(operator, AuditOperation::SendSnapshot, sent.is_ok());
        sent
    }

    async fn send_snapshot_unaudited(&self, ids: &[Id]) -> Result<Response, NotDone> {
        if !self.inspect(|server| server.operator_may(ids, Perms::ALL)) {
            return Err(NotDone::NoRight);
        }
        if !self.state.settings.snapshot_enabled {
            return Err(NotDone::SwitchedOff);
        }
        self.has_space()?;
        whole::sent_snapshot(self.state.clone()).await
    }

    /// Checks that there is room for one more snapshot like the newest.
    fn has_space(&self) -> Result<(), NotDone> {
        let folder = &self.state.snapshots.folders.snapshots;
        let newest = whole::newest_snapshot(folder).and_then(|(_, path)| path.metadata().ok());
        let needed = newest.map_or(0, |file| file.len());
        match Space::of(folder) {
            Some(Space { free_bytes: free, .. }) if free < needed => Err(NotDone::NoSpace { free, needed }),
            _ => Ok(()),
        }
    }
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn size_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

fn purge_of(state: &AdminState, keep: usize) -> Result<Purge, StorageError> {
    let plan = purge_plan(&state.snapshots, keep)?;
    let removes = plan.paths().filter_map(|path| Some((name_of(path)?.to_owned(), size_of(path))));
    Ok(Purge { keep, removes: removes.collect() })
}

fn snapshots(state: &AdminState) -> Result<Vec<SnapshotOnDisk>, StorageError> {
    let settings = &state.snapshots;
    let found = find_snapshots(&*settings.disk, &settings.folders.snapshots)?;
    let shown = found.into_iter().map(|file| {
        let of = file.path.metadata().ok();
        let problem = match file.problem {
            Some(Problem::Incomplete) => {
                Some("its end is not that of a snapshot: it was never completed".into())
            }
            Some(Problem::Unreadable(error)) => Some(error),
            None if settings.unreadable().contains(&file.path) => {
                Some("the last start could not read it".into())
            }
            None => None,
        };
        SnapshotOnDisk {
            name: name_of(&file.path).unwrap_or_default().to_owned(),
            zxid: file.zxid,
            bytes: of.as_ref().map_or(0, fs::Metadata::len),
            at: of.and_then(|of| of.modified().ok()),
            problem,
        }
    });
    Ok(shown.collect())
}

/// Each log ends where the header of the next one says it.
fn logs(state: &AdminState, last: Zxid) -> Result<Vec<LogOnDisk>, StorageError> {
    let disk = &*state.snapshots.disk;
    let mut shown: Vec<LogOnDisk> = Vec::new();
    let mut ends = Some(last);
    for file in log_files(disk, &state.snapshots.folders.logs)?.into_iter().rev() {
        let (before, problem) = match zxid_before(disk, &file.path) {
            Ok(Some(before)) => (Some(before), None),
            Ok(None) => (None, Some("it does not begin as a log does".to_owned())),
            Err(error) => (None, Some(error.to_string())),
        };
        shown.push(LogOnDisk {
            name: name_of(&file.path).unwrap_or_default().to_owned(),
            from: file.first,
            to: ends.filter(|to| *to >= file.first),
            bytes: size_of(&file.path),
            problem,
        });
        // Zero: the writer did not know it. Within an epoch there is no gap.
        let counted = (file.first.counter() > 1).then(|| file.first.previous());
        ends = before.filter(|before| *before != Zxid::ZERO).or(counted);
    }
    Ok(shown)
}

fn last_start(state: &AdminState) -> LastStart {
    let loaded = &state.reports.loaded;
    let snapshot = loaded.snapshot.unwrap_or_default();
    LastStart {
        snapshot,
        snapshot_bytes: loaded.snapshot_bytes,
        log: loaded.took.saturating_sub(snapshot),
        records: loaded.records,
    }
}
