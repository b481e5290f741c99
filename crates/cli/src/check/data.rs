//! A quick look at the data: can the newest files be read, and who has written them? `ostler inspect repair` reads all.

use super::finding::{Finding, Level, Topic};
use ostler_inspect::{
    logs::{self, LogFinding},
    snapshot::{self, SnapshotEnd, SnapshotPart},
    view::DataForm,
};
use ostler_proto::id::{Epoch, Zxid};
use ostler_server::config::ServerConfig;
use ostler_storage::{
    disk::{Disk, OsDisk},
    epochs::{EpochFile, is_incomplete, read_epoch},
    folders::DataFolders,
    lock::FolderLock,
    names::{log_files, parse_log_name, parse_snapshot_name},
    snapshot::{SnapshotFile, find_snapshots},
};
use std::path::{Path, PathBuf};

/// Larger snapshots are only looked at, not read.
const READ_UP_TO: u64 = 256 << 20;

/// The facts that the files show.
#[derive(Debug, Clone, Default)]
struct DataFacts {
    folder: PathBuf,
    snapshots: usize,
    logs: usize,
    /// The newest snapshot that looks whole.
    newest: Option<Zxid>,
    /// Snapshots that are newer and not whole.
    broken: Vec<PathBuf>,
    /// The end of the newest snapshot, if it was read; the damage if it cannot be.
    read: Option<Result<SnapshotEnd, String>>,
    /// The findings in the newest log, beside its records.
    log_findings: Vec<LogFinding>,
    last_logged: Option<Zxid>,
    current_epoch: Option<Epoch>,
    bad_epochs: Vec<String>,
    incomplete: bool,
    /// Ostler has written here: its lock file or its mark is there.
    used_by_ostler: bool,
    /// A log in the folder of the snapshots, or the other way round.
    misplaced: Option<PathBuf>,
    is_member: bool,
    trust_empty: bool,
    may_be_empty: bool,
    /// A server runs on these files, and may be writing the last bytes.
    runs: bool,
}

pub(super) fn check(config: &ServerConfig, runs: bool) -> Vec<Finding> {
    match look(config, runs) {
        Ok(facts) => judge(&facts),
        Err(error) => vec![finding(Level::Error, error)],
    }
}

fn look(config: &ServerConfig, runs: bool) -> Result<DataFacts, String> {
    let disk: &dyn Disk = &OsDisk;
    let settings = &config.folders;
    let folders = DataFolders::at(&settings.data_dir, Some(&settings.data_log_dir));
    let text = |error: ostler_storage::StorageError| error.to_string();
    let mut facts = DataFacts {
        folder: folders.snapshots.clone(),
        is_member: config.ensemble.is_some(),
        trust_empty: settings.snapshot_trust_empty,
        may_be_empty: settings.db_autocreate || folders.has_initialize(disk).map_err(text)?,
        runs,
        used_by_ostler: FolderLock::has_file(&folders),
        ..DataFacts::default()
    };
    if folders.snapshots.is_dir() {
        let found = find_snapshots(disk, &folders.snapshots).map_err(text)?;
        facts.snapshots = found.len();
        let whole = found.iter().position(|file| file.problem.is_none());
        let newer = &found[..whole.unwrap_or(found.len())];
        facts.broken = newer.iter().map(|file| file.path.clone()).collect();
        if let Some(newest) = whole.map(|at| &found[at]) {
            facts.newest = Some(newest.zxid);
            facts.read = read(newest);
        }
        let mut bad_epochs = Vec::new();
        for which in [EpochFile::Accepted, EpochFile::Current] {
            match read_epoch(disk, &folders.snapshots, which) {
                Ok(epoch) if which == EpochFile::Current => facts.current_epoch = epoch,
                Ok(_) => {}
                Err(error) => bad_epochs.push(error.to_string()),
            }
        }
        facts.incomplete = is_incomplete(disk, &folders.snapshots).unwrap_or(false);
        facts.bad_epochs = bad_epochs;
    }
    if folders.logs.is_dir() {
        let files = log_files(disk, &folders.logs).map_err(text)?;
        facts.logs = files.len();
        if let Some(newest) = files.last() {
            let (found, totals) =
                logs::findings(disk, std::slice::from_ref(newest)).map_err(|error| error.to_string())?;
            facts.log_findings =
                found.into_iter().filter(|found| !matches!(found, LogFinding::File { .. })).collect();
            facts.last_logged = totals.range.map(|(_, last)| last);
        }
    }
    if folders.logs != folders.snapshots {
        let wrong = |dir: &Path, is_wrong: fn(&str) -> bool| {
            let names = disk.list(dir).unwrap_or_default();
            names.iter().find(|name| is_wrong(name)).map(|name| dir.join(name))
        };
        facts.misplaced = wrong(&folders.snapshots, |name| parse_log_name(name).is_some())
            .or_else(|| wrong(&folders.logs, |name| parse_snapshot_name(name).is_some()));
    }
    Ok(facts)
}

/// Reads a snapshot, if it is not too large. `None` if it is.
fn read(file: &SnapshotFile) -> Option<Result<SnapshotEnd, String>> {
    let size = std::fs::metadata(&file.path).map(|found| found.len());
    if size.is_ok_and(|size| size > READ_UP_TO) {
        return None;
    }
    let mut last = None;
    let done = snapshot::dump(&OsDisk, file, DataForm::Size, &mut |part| {
        last = Some(part);
        Ok(())
    });
    Some(match (done, last) {
        (Ok(true), Some(SnapshotPart::End(end))) => Ok(end),
        (Ok(_), Some(part)) => Err(part.to_string()),
        (Ok(_), None) => Err(format!("{}: it is empty", file.path.display())),
        (Err(error), _) => Err(error.to_string()),
    })
}

fn finding(level: Level, text: String) -> Finding {
    Finding::new(level, Topic::Data, text)
}

const REPAIR: &str = "run ostler inspect repair on the folder for the ways out";

fn judge(facts: &DataFacts) -> Vec<Finding> {
    let folder = facts.folder.display();
    let mut findings = Vec::new();
    if let Some(file) = &facts.misplaced {
        let text = "is in the folder of the other kind of files: dataDir and dataLogDir are swapped, or it was \
        copied wrongly";
        findings.push(finding(Level::Error, format!("{} {text}; move it", file.display())));
    }
    findings.extend(facts.bad_epochs.iter().map(|error| finding(Level::Error, error.clone())));
    if facts.snapshots == 0 && facts.logs == 0 {
        findings.push(judge_empty(facts));
        return findings;
    }
    if facts.newest.is_none() {
        let level = if facts.logs > 0 && facts.trust_empty { Level::Warning } else { Level::Error };
        let text = "there are logs and no whole snapshot. If the logs go back to the first transaction (ZooKeeper \
        3.4), start \
                    once with snapshot.trust.empty=true; otherwise put a snapshot back";
        findings.push(finding(level, format!("{folder}: {text}")));
    }
    for file in &facts.broken {
        let text = "this snapshot is not whole; a start uses the one before it and the log, if they have all";
        findings.push(finding(Level::Warning, format!("{}: {text}; {REPAIR}", file.display())));
    }
    match &facts.read {
        Some(Err(damage)) => findings.push(finding(Level::Error, format!("{damage}; {REPAIR}"))),
        Some(Ok(end)) => {
            findings.push(finding(Level::Fact, format!("{folder}: {}", SnapshotPart::End(*end))));
            findings.extend(judge_writer(facts, end));
        }
        None => {}
    }
    findings.extend(facts.log_findings.iter().filter_map(|found| judge_log(found, facts.runs)));
    if let (Some(last), Some(current)) = (facts.last_logged.max(facts.newest), facts.current_epoch)
        && current < last.epoch()
    {
        findings.push(finding(
            Level::Warning,
            format!(
                "{folder}: currentEpoch is {current}, and the last transaction is {last} of epoch {}: one of the \
                 files was put \
                 back from another time; Java does not start with that",
                last.epoch()
            ),
        ));
    }
    if facts.incomplete {
        let text = "the first copy of the ensemble's data has not ended here; start the server beside the others, \
        and it goes on";
        findings.push(finding(Level::Note, format!("{folder}: {text}")));
    }
    findings
}

fn judge_empty(facts: &DataFacts) -> Finding {
    let folder = facts.folder.display();
    match (facts.may_be_empty, facts.is_member) {
        (false, _) => finding(
            Level::Error,
            format!(
                "{folder} has no data, and db.autocreate=false: if the server is new, make the file initialize in \
                 dataLogDir; if \
                 its data are gone, restore them"
            ),
        ),
        (true, true) => finding(
            Level::Note,
            format!(
                "{folder} has no data: this member copies the tree from the others, and does not vote while they \
                 have data; in a \
                 new ensemble it begins with them"
            ),
        ),
        (true, false) => {
            finding(Level::Note, format!("{folder} has no data: the server starts with an empty tree"))
        }
    }
}

/// Which program has written the data, as far as it matters for a start.
fn judge_writer(facts: &DataFacts, end: &SnapshotEnd) -> Option<Finding> {
    let folder = facts.folder.display();
    if facts.used_by_ostler {
        return None;
    }
    let writer = match (end.digest, end.last_processed) {
        (_, Some(_)) => "3.9 or later",
        (Some(_), None) => "3.6 to 3.8",
        (None, None) => "3.5 or earlier, or one without a digest",
    };
    Some(finding(
        Level::Note,
        format!(
            "{folder}: this data is of Java ZooKeeper ({writer}); Ostler reads it as it is, and Java reads what \
             Ostler writes; keep \
             a copy of the folder for the way back"
        ),
    ))
}

fn judge_log(found: &LogFinding, runs: bool) -> Option<Finding> {
    match found {
        LogFinding::TornTail { .. } if runs => None,
        LogFinding::Empty { .. } if runs => None,
        LogFinding::TornTail { .. } | LogFinding::Empty { .. } => {
            Some(finding(Level::Note, found.to_string()))
        }
        LogFinding::Damage { .. } | LogFinding::Gap { .. } => {
            Some(finding(Level::Error, format!("{found}; {REPAIR}")))
        }
        LogFinding::File { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end() -> SnapshotEnd {
        SnapshotEnd {
            zxid: Zxid(5),
            last_processed: Some(Zxid(5)),
            digest: Some(7),
            digest_zxid: Some(Zxid(5)),
            sessions: 0,
            znodes: 4,
            data_bytes: 9,
        }
    }

    fn facts() -> DataFacts {
        DataFacts {
            folder: "/data/version-2".into(),
            snapshots: 1,
            logs: 1,
            newest: Some(Zxid(5)),
            read: Some(Ok(end())),
            last_logged: Some(Zxid(9)),
            used_by_ostler: true,
            may_be_empty: true,
            ..DataFacts::default()
        }
    }

    fn levels(facts: &DataFacts) -> Vec<Level> {
        judge(facts).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn good_data_give_facts_only_and_data_of_java_a_note() {
        assert_eq!(levels(&facts()), [Level::Fact]);
        let java = judge(&DataFacts { used_by_ostler: false, ..facts() });
        assert!(java[1].text.contains("3.9 or later"), "{java:?}");
    }

    #[test]
    fn an_empty_folder_is_an_error_only_without_permission_to_be_empty() {
        let empty = DataFacts { snapshots: 0, logs: 0, newest: None, read: None, ..facts() };
        assert_eq!(levels(&empty), [Level::Note]);
        let refused = judge(&DataFacts { may_be_empty: false, ..empty });
        assert!(refused[0].level == Level::Error && refused[0].text.contains("initialize"), "{refused:?}");
    }

    #[test]
    fn damage_is_an_error_and_a_torn_tail_is_none_while_a_server_writes() {
        let torn = LogFinding::TornTail { file: "/l".into(), offset: 9, bytes: 3, last_good: Zxid(8) };
        let damage =
            LogFinding::Damage { file: "/l".into(), offset: 9, reason: "x".into(), last_good: Zxid(8) };
        assert_eq!(
            levels(&DataFacts { log_findings: vec![torn.clone()], ..facts() }),
            [Level::Fact, Level::Note]
        );
        assert_eq!(levels(&DataFacts { log_findings: vec![torn], runs: true, ..facts() }), [Level::Fact]);
        assert_eq!(levels(&DataFacts { log_findings: vec![damage], ..facts() }), [Level::Fact, Level::Error]);
        assert_eq!(levels(&DataFacts { read: Some(Err("bad".into())), ..facts() }), [Level::Error]);
        assert_eq!(levels(&DataFacts { newest: None, read: None, ..facts() }), [Level::Error]);
    }

    #[test]
    fn a_current_epoch_below_that_of_the_data_is_told() {
        let old =
            DataFacts { last_logged: Some(Zxid(3 << 32 | 1)), current_epoch: Some(Epoch(2)), ..facts() };
        assert_eq!(levels(&old), [Level::Fact, Level::Warning]);
    }
}
