//! Which transactions a folder can be brought back to, and what has to go for that.

use super::{
    Action, Start,
    diagnose::{Diagnosis, cut},
    planned, try_start,
};
use crate::error::Result;
use ostler_proto::id::Zxid;
use ostler_storage::{
    disk::OsDisk,
    folders::DataFolders,
    txnlog::{Advance, EndContext, LogFileReader, LogReader, Verdict, judge_end, synced_through},
};
use std::{collections::BTreeSet, path::Path};

/// The actions that drop everything after `zxid`: later logs and snapshots go, newest first, then the log with the next
/// transaction is cut. A snapshot that can have effects of later transactions goes too.
pub(super) fn actions_to_drop(
    folders: &DataFolders,
    diagnosis: &Diagnosis,
    zxid: Zxid,
) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    let snapshots = diagnosis.snapshots.iter();
    let above = snapshots
        .filter(|snapshot| snapshot.file.zxid > zxid || snapshot.through > zxid || snapshot.bad.is_some());
    actions.extend(above.map(|snapshot| Action::Move { file: snapshot.file.path.clone() }));
    let mut touches_logs = false;
    for (number, log) in diagnosis.logs.iter().enumerate().rev() {
        if log.first > zxid {
            actions.push(Action::Move { file: log.path.clone() });
            touches_logs = true;
            continue;
        }
        let is_newest = number >= diagnosis.newest;
        if let Some(offset) = end_of(&folders.logs, (&log.path, log.first, is_newest), zxid)? {
            actions.push(cut(&log.path, offset));
            touches_logs = true;
        }
        // Older files end before the next one begins.
        break;
    }
    let mark = folders.logs.join("log-synced");
    if touches_logs && mark.exists() {
        // It says how far the newest log was synced, and would call the cut one damaged.
        actions.insert(0, Action::Move { file: mark });
    }
    Ok(actions)
}

/// The byte at which a log has to be cut so that it ends with `zxid` at the latest; `None` if it does already.
fn end_of(dir: &Path, (path, first, is_newest): (&Path, Zxid, bool), zxid: Zxid) -> Result<Option<u64>> {
    let mut file = LogFileReader::open(&OsDisk, path)?;
    let mut last = Zxid::ZERO;
    loop {
        match file.advance()? {
            Advance::Record(found) if found > zxid => return Ok(file.record().map(|record| record.offset)),
            Advance::Record(found) => last = last.max(found),
            Advance::End(end) => {
                let synced = synced_through(&OsDisk, dir, &file, first)?;
                let verdict = judge_end(&file, end, EndContext { is_newest, last, synced })?;
                return Ok((verdict != Verdict::Clean).then(|| file.offset()));
            }
        }
    }
}

/// The highest transaction to which a server can be brought back by dropping what comes after it. `None` if there is
/// none: then no snapshot can be read.
pub(super) fn best(folders: &DataFolders, diagnosis: &Diagnosis) -> Result<Option<Zxid>> {
    let mut found = BTreeSet::new();
    for snapshot in diagnosis.snapshots.iter().filter(|snapshot| snapshot.bad.is_none()) {
        found.extend(reached_from(folders, diagnosis, snapshot.file.zxid)?);
    }
    for zxid in found.into_iter().rev() {
        let actions = actions_to_drop(folders, diagnosis, zxid)?;
        let start = try_start(folders, &planned(&actions))?;
        if matches!(start, Start::Works { zxid: reached, .. } if reached == zxid) {
            return Ok(Some(zxid));
        }
    }
    Ok(None)
}

/// The transactions at which a replay after the snapshot of `zxid` can end: where the logs end or are damaged, and
/// before each snapshot that is lost, since a leader's tree may have taken the place of records there.
fn reached_from(folders: &DataFolders, diagnosis: &Diagnosis, zxid: Zxid) -> Result<Vec<Zxid>> {
    let lost: BTreeSet<Zxid> = diagnosis
        .snapshots
        .iter()
        .filter(|snapshot| snapshot.bad.is_some() && snapshot.file.zxid > zxid)
        .map(|snapshot| snapshot.file.zxid)
        .collect();
    let mut reached = vec![zxid];
    let mut last = zxid;
    let Ok(mut log) = LogReader::open(&OsDisk, &folders.logs, zxid) else { return Ok(reached) };
    while let Ok(Some(record)) = log.next_record() {
        if lost.range(last.next()..record.zxid).next().is_some() {
            reached.push(last);
        }
        last = last.max(record.zxid);
    }
    reached.push(last);
    Ok(reached)
}
