//! Reads all files of a folder, and names what is wrong with each.

use super::{Action, Drops, Problem, Start, is_problem};
use crate::{
    error::Result,
    logs::{self, LogFinding, LogItem},
    state,
};
use ostler_proto::id::Zxid;
use ostler_storage::{
    disk::{Disk, OsDisk},
    epochs::{EpochFile, is_incomplete, read_epoch},
    error::IoContext,
    folders::DataFolders,
    names::{LogFile, log_files},
    snapshot::{SnapshotFile, find_snapshots},
    txnlog::follows,
};
use std::path::{Path, PathBuf};

/// A snapshot, read to its end.
#[derive(Debug)]
pub(super) struct ReadSnapshot {
    pub(super) file: SnapshotFile,
    /// The reason why it cannot be used.
    pub(super) bad: Option<String>,
    /// The highest transaction of which it can have effects, as far as the file says it.
    pub(super) through: Zxid,
}

/// The state of all files of a folder.
#[derive(Debug)]
pub(super) struct Diagnosis {
    /// Newest first.
    pub(super) snapshots: Vec<ReadSnapshot>,
    /// Oldest first.
    pub(super) logs: Vec<LogFile>,
    /// The index of the newest log that is not empty.
    pub(super) newest: usize,
    pub(super) findings: Vec<LogFinding>,
    /// The zxid of each readable record, counted by `drops`. Kept as runs, since zxids follow each other.
    runs: Vec<(Zxid, Zxid)>,
    leftovers: Vec<PathBuf>,
    others: Vec<Problem>,
    highest: Zxid,
}

impl Diagnosis {
    pub(super) fn of(folders: &DataFolders) -> Result<Diagnosis> {
        let disk = &OsDisk;
        let snapshots: Vec<ReadSnapshot> =
            find_snapshots(disk, &folders.snapshots)?.into_iter().map(|file| read(disk, file)).collect();
        let logs = log_files(disk, &folders.logs)?;
        let newest = logs::newest_with_data(disk, &logs)?;
        let (mut findings, mut runs) = (Vec::new(), Vec::<(Zxid, Zxid)>::new());
        logs::walk(disk, &logs, &mut |item| {
            match item {
                LogItem::Finding(finding) => findings.push(finding),
                LogItem::Txn(txn) => {
                    match &txn.record {
                        Ok(_) => {}
                        Err(error) => findings.push(LogFinding::Damage {
                            file: txn.file.to_path_buf(),
                            offset: txn.offset,
                            reason: format!("transaction {} cannot be decoded: {error}", txn.zxid),
                            last_good: txn.zxid.previous(),
                        }),
                    }
                    match runs.last_mut() {
                        Some((_, last)) if last.next() == txn.zxid => *last = txn.zxid,
                        Some((first, last)) if (*first..=*last).contains(&txn.zxid) => {}
                        _ => runs.push((txn.zxid, txn.zxid)),
                    }
                }
            }
            Ok(())
        })?;
        let in_logs = runs.iter().map(|(_, last)| *last);
        let in_snapshots = snapshots.iter().map(|snapshot| snapshot.file.zxid);
        let highest = in_logs.chain(in_snapshots).max().unwrap_or(Zxid::ZERO);
        let leftovers = leftovers(disk, folders)?;
        let mut found =
            Diagnosis { snapshots, logs, newest, findings, runs, leftovers, others: Vec::new(), highest };
        found.others = found.of_epochs(disk, &folders.snapshots);
        Ok(found)
    }

    /// The problems, one sentence each.
    pub(super) fn problems(&self, before: &Start) -> Vec<Problem> {
        let starts = !matches!(before, Start::Refused { .. });
        let problem =
            |file: &Path, problem: String| Problem { file: file.to_path_buf(), problem, repaired: false };
        let mut problems = Vec::new();
        for snapshot in &self.snapshots {
            if let Some(reason) = &snapshot.bad {
                let follows = if starts { "a start does without it" } else { "it cannot be used" };
                problems.push(problem(&snapshot.file.path, format!("{reason}; {follows}")));
            }
        }
        for finding in self.findings.iter().filter(|finding| is_problem(finding) && !self.is_bridged(finding))
        {
            let follows = match finding.is_damage() && starts {
                true => "; a start does not need this part: a newer snapshot has it",
                false => "",
            };
            problems.push(problem(file_of(finding), format!("{}{follows}", without_file(finding))));
        }
        for file in &self.leftovers {
            problems.push(problem(file, "the rest of a write that a crash interrupted".to_owned()));
        }
        problems.extend(self.others.iter().cloned());
        problems
    }

    /// Whether a good snapshot stands in a gap of the logs: a leader has sent its tree in place of these transactions.
    fn is_bridged(&self, finding: &LogFinding) -> bool {
        let LogFinding::Gap { last, found, .. } = finding else { return false };
        let good = self.snapshots.iter().filter(|snapshot| snapshot.bad.is_none());
        good.map(|snapshot| snapshot.file.zxid)
            .any(|zxid| zxid > *last && zxid < *found && follows(zxid, *found))
    }

    /// The actions that lose nothing: they remove what a start leaves out.
    pub(super) fn harmless_actions(&self, before: &Start) -> Vec<Action> {
        let mut actions: Vec<Action> =
            self.leftovers.iter().map(|file| Action::Move { file: file.clone() }).collect();
        if !matches!(before, Start::Works { .. }) {
            return actions;
        }
        let bad = self.snapshots.iter().filter(|snapshot| snapshot.bad.is_some());
        actions.extend(bad.map(|snapshot| Action::Move { file: snapshot.file.path.clone() }));
        let newest = self.logs.get(self.newest).map(|log| &log.path);
        for finding in &self.findings {
            match finding {
                LogFinding::Empty { file } => actions.push(Action::Move { file: file.clone() }),
                LogFinding::TornTail { file, offset, .. } if newest == Some(file) => {
                    actions.push(cut(file, *offset));
                }
                _ => {}
            }
        }
        actions
    }

    /// The loss if everything after `zxid` is dropped.
    pub(super) fn drops(&self, zxid: Zxid) -> Drops {
        let above = |(first, last): &(Zxid, Zxid)| match *last > zxid {
            true => last.0 - (*first).max(zxid.next()).0 + 1,
            false => 0,
        };
        Drops { after: zxid, through: self.highest, readable: self.runs.iter().map(above).sum() }
    }

    fn of_epochs(&self, disk: &dyn Disk, dir: &Path) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |file: &str, problem: String| {
            problems.push(Problem { file: dir.join(file), problem, repaired: false });
        };
        let accepted = read_epoch(disk, dir, EpochFile::Accepted);
        let current = read_epoch(disk, dir, EpochFile::Current);
        for (name, read) in [("acceptedEpoch", &accepted), ("currentEpoch", &current)] {
            if let Err(error) = read {
                add(
                    name,
                    format!("{error}. A promise to a leader may stand in it, so no tool writes it anew"),
                );
            }
        }
        if let (Ok(accepted), Ok(Some(current))) = (&accepted, &current) {
            if accepted.is_none_or(|accepted| accepted < *current) {
                add(
                    "acceptedEpoch",
                    format!("it is lower than currentEpoch ({current}); Java refuses to start with it"),
                );
            }
            if *current < self.highest.epoch() {
                add(
                    "currentEpoch",
                    format!(
                        "it is {current}, and the files have transactions of epoch {}; a file was put back from \
                         another \
                         time",
                        self.highest.epoch()
                    ),
                );
            }
        }
        if is_incomplete(disk, dir).unwrap_or(false) {
            add(
                "historyIncomplete",
                "this server was empty, and its first synchronization with a leader has not ended; start it beside \
                 the others, and it copies the rest"
                    .to_owned(),
            );
        }
        problems
    }
}

/// The action that cuts a file. If no record is left, the file is moved away.
pub(super) fn cut(file: &Path, size: u64) -> Action {
    const HEADER: u64 = 16;
    let file = file.to_path_buf();
    if size > HEADER { Action::Cut { file, size } } else { Action::Move { file } }
}

fn read(disk: &dyn Disk, file: SnapshotFile) -> ReadSnapshot {
    let read = match &file.problem {
        Some(ostler_storage::snapshot::Problem::Incomplete) => Err("it is incomplete".to_owned()),
        Some(ostler_storage::snapshot::Problem::Unreadable(reason)) => Err(reason.clone()),
        None => state::check_snapshot(disk, &file).map_err(|error| match error {
            ostler_storage::StorageError::BadSnapshot { offset, reason, .. } => {
                format!("damaged at byte {offset}: {reason}")
            }
            other => other.to_string(),
        }),
    };
    match read {
        Ok(trailer) => {
            let digest = trailer.digest.map(|digest| digest.zxid);
            let known = [Some(file.zxid), trailer.last_processed, digest];
            let through = known.into_iter().flatten().max().unwrap_or(file.zxid);
            let older = trailer.last_processed.filter(|zxid| *zxid < file.zxid);
            let bad = older.map(|zxid| format!("it holds an older tree, of {zxid}"));
            ReadSnapshot { file, bad, through }
        }
        Err(reason) => ReadSnapshot { through: file.zxid, file, bad: Some(reason) },
    }
}

/// Files that a crash has left half-written.
fn leftovers(disk: &dyn Disk, folders: &DataFolders) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let dirs = if folders.logs == folders.snapshots {
        vec![&folders.logs]
    } else {
        vec![&folders.logs, &folders.snapshots]
    };
    for dir in dirs {
        for name in disk.list(dir).during("list", dir)? {
            let is_half =
                name.starts_with("unfinished.") || name == "acceptedEpoch.tmp" || name == "currentEpoch.tmp";
            if is_half {
                found.push(dir.join(name));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn file_of(finding: &LogFinding) -> &Path {
    match finding {
        LogFinding::File { file, .. }
        | LogFinding::TornTail { file, .. }
        | LogFinding::Damage { file, .. }
        | LogFinding::Gap { file, .. }
        | LogFinding::Empty { file } => file,
    }
}

/// The text of a finding without the file in front of it.
fn without_file(finding: &LogFinding) -> String {
    let text = finding.to_string();
    let prefix = format!("{}: ", file_of(finding).display());
    text.strip_prefix(&prefix).map_or(text.clone(), str::to_owned)
}
