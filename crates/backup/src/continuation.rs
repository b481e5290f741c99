//! Where a new part of a backup goes on, and which base it has.

use crate::{
    base,
    error::{BackupError, Result},
    history::History,
    log_tail::last_up_to,
    part::{Base, Confirmation, LastRecord, Part},
    store::{Store, stored},
};
use ostler_proto::id::Zxid;
use ostler_storage::folders::DataFolders;
use std::path::Path;

/// The end of a backup, at which a new part goes on.
pub(crate) struct Earlier {
    pub(crate) last: Zxid,
    pub(crate) last_record: Option<LastRecord>,
    pub(crate) confirmed: (Zxid, Confirmation),
    pub(crate) highest_epoch: u32,
    pub(crate) base: Base,
    pub(crate) number: u32,
    /// The last transaction before the epoch of `last`. `None` if it is not known.
    pub(crate) before_epoch: Option<Zxid>,
}

/// The end of the backup so far. `None` if there is none.
pub(crate) fn earlier(store: &Store) -> Result<Option<Earlier>> {
    let history = History::of(Part::read_all(store)?);
    let last = history.last();
    Ok(history.parts().last().map(|part| Earlier {
        last,
        last_record: part.last_record.clone().filter(|record| record.zxid == last),
        confirmed: (part.confirmed_through, part.confirmed_by),
        highest_epoch: part.highest_epoch,
        base: part.base.clone(),
        number: part.part,
        before_epoch: history.before_epoch(store, last),
    }))
}

/// The transaction after which a new part goes on. `None` if the log does not reach back to the end of the backup.
/// `broke_off`: the log was read up to the end of the backup, and cannot be read on from there.
pub(crate) fn connection(
    store: &Store,
    folders: &DataFolders,
    (earlier, broke_off): (&Earlier, bool),
    snapshot: Zxid,
) -> Result<Option<Zxid>> {
    let (last, confirmed) = (earlier.last, earlier.confirmed.0);
    let found = last_up_to(&folders.logs, last)?;
    let is_last =
        |record: &[u8]| earlier.last_record.as_ref().is_none_or(|own| own.sha256 == stored(record).sha256);
    // Whether the log has the last transaction, and whether it is the same one.
    let same = found.as_ref().filter(|(zxid, _)| *zxid == last).map(|(_, record)| is_last(record));
    let common = match same {
        Some(true) if !broke_off => return Ok(Some(last)),
        // Also with a newer snapshot: it is the snapshot of another history.
        Some(false) if confirmed >= last => {
            let found = format!("has another transaction {last}");
            return Err(taken_back(store, folders, confirmed, found));
        }
        // Logs were removed, or a leader's tree took their place.
        _ if snapshot > last => return Ok(None),
        Some(true) => {
            let reason =
                "it is damaged there, or files are missing, and there is no newer snapshot".to_owned();
            return Err(BackupError::Stuck { folder: folders.logs.clone(), last, reason });
        }
        // The server took transactions back. From the last one that is surely the same the log is copied again.
        Some(false) => confirmed,
        None => found.map_or(snapshot, |(zxid, _)| snapshot.max(zxid)),
    };
    if common >= confirmed {
        return Ok(Some(common));
    }
    Err(taken_back(store, folders, confirmed, format!("goes on after {common}")))
}

fn taken_back(store: &Store, folders: &DataFolders, confirmed: Zxid, found: String) -> BackupError {
    let (location, folder) = (store.location().to_owned(), folders.logs.clone());
    BackupError::HistoryTakenBack { location, folder, confirmed, found }
}

/// Copies a base, or names the one of the part before if it is the same file. `None` if it was removed meanwhile.
pub(crate) fn take_base(
    store: &Store,
    number: u32,
    found: &base::Found,
    logs: &Path,
    known: Option<&Base>,
) -> Result<Option<Base>> {
    if let Some(known) = known.filter(|known| known.zxid == found.file.zxid)
        && base::is_copy(&found.file, known)?
    {
        return Ok(Some(known.clone()));
    }
    base::copy(store, &format!("{number:08}"), found, logs)
}
