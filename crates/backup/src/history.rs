//! The history that a backup has: the parts put together, without what a server took back.

use crate::{
    error::{BackupError, Result},
    log_tail::follows,
    part::{Base, Part, Segment},
    store::Store,
    temporary::MemoryFile,
};
use ostler_proto::{
    id::{Epoch, Zxid},
    jute::Reader,
    txn::TxnHeader,
};
use ostler_storage::txnlog::{Advance, LogFileReader};
use std::path::Path;

/// A backup's history.
#[derive(Debug)]
pub struct History {
    parts: Vec<Part>,
    /// All segments, in order.
    segments: Vec<UsedSegment>,
}

/// A segment, and how much of it counts.
#[derive(Debug, Clone)]
pub struct UsedSegment {
    /// The segment.
    pub segment: Segment,
    /// Records above this zxid were taken back.
    pub through: Zxid,
    /// Whether the segment goes on after the one before. If not, the log in between was not copied.
    pub connects: bool,
}

/// The transaction to restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The last transaction that is known to be committed.
    Latest,
    /// This transaction.
    Zxid(Zxid),
    /// The last transaction before the first one with a later time, in ms since 1970.
    TimeMs(i64),
}

impl History {
    /// Reads all manifests of a backup.
    ///
    /// # Errors
    /// There is no backup, a manifest is damaged, or the store cannot be read.
    pub fn read(store: &Store) -> Result<History> {
        let parts = Part::read_all(store)?;
        if parts.is_empty() {
            return Err(BackupError::NoBackup { location: store.location().to_owned() });
        }
        Ok(History::of(parts))
    }

    /// The history of these parts, in order.
    pub fn of(parts: Vec<Part>) -> History {
        let mut segments: Vec<UsedSegment> = Vec::new();
        let mut kept: Vec<Part> = Vec::new();
        for mut part in parts {
            let mut connects = part.continues_after.is_some();
            if let Some(after) = part.continues_after {
                segments.retain(|used| used.segment.first <= after);
                segments.iter_mut().for_each(|used| used.through = used.through.min(after));
                // A base above it has transactions that were taken back.
                kept.retain(|earlier| earlier.base.zxid <= after);
            }
            for segment in std::mem::take(&mut part.segments) {
                segments.push(UsedSegment { through: segment.last, segment, connects });
                connects = true;
            }
            kept.push(part);
        }
        History { parts: kept, segments }
    }

    /// The parts whose bases count, without their segments.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The segments, in order.
    pub fn segments(&self) -> &[UsedSegment] {
        &self.segments
    }

    /// The last transaction that the backup has.
    pub fn last(&self) -> Zxid {
        let segments = self.segments.iter().map(|used| used.through);
        segments.chain(self.parts.iter().map(|part| part.base.zxid)).max().unwrap_or_default()
    }

    /// The last transaction that is known to be committed.
    pub fn confirmed_through(&self) -> Zxid {
        self.parts.last().map_or(Zxid::ZERO, |part| part.confirmed_through).min(self.last())
    }

    /// The highest epoch that the backup knows.
    pub fn highest_epoch(&self) -> Epoch {
        Epoch(self.parts.iter().map(|part| part.highest_epoch).max().unwrap_or(0)).max(self.last().epoch())
    }

    /// The bases from which `zxid` can be restored exactly, the newest first.
    pub fn bases(&self, zxid: Zxid) -> Vec<&Base> {
        let mut bases: Vec<&Base> = self.parts.iter().map(|part| &part.base).collect();
        bases.retain(|base| base.exact_from <= zxid);
        bases.sort_by_key(|base| std::cmp::Reverse(base.zxid));
        bases.dedup_by_key(|base| base.zxid);
        bases
    }

    /// The last transaction up to `through` that the log after this base reaches without a gap that is known.
    pub fn reach(&self, base: &Base, through: Zxid) -> Zxid {
        let mut last = base.zxid;
        for used in self.segments.iter().filter(|used| used.through > base.zxid) {
            let continues = used.connects || used.segment.first == last.next() || last == base.zxid;
            if used.segment.first > through || !continues {
                break;
            }
            last = used.through;
        }
        last.min(through)
    }

    /// Finds the transaction to restore.
    ///
    /// # Errors
    /// The backup does not have it, a segment is damaged, or the store cannot be read. [`BackupError::NotConfirmed`] if
    /// it is not known to be committed and `unconfirmed` is false.
    pub fn find(&self, store: &Store, target: Target, unconfirmed: bool) -> Result<Zxid> {
        let confirmed = self.confirmed_through();
        let zxid = match target {
            Target::Latest if unconfirmed => self.last(),
            Target::Latest => self.before_or_at(store, confirmed)?,
            Target::Zxid(zxid) if self.has(store, zxid)? => zxid,
            Target::Zxid(zxid) => {
                let before = self.before_or_at(store, zxid)?;
                let nearest =
                    format!("the last one before it is {before}, the last one of all {}", self.last());
                return Err(BackupError::NoSuchTransaction { wanted: zxid.to_string(), nearest });
            }
            Target::TimeMs(time_ms) => self.at_time(store, time_ms)?,
        };
        if zxid > confirmed && !unconfirmed {
            return Err(BackupError::NotConfirmed { wanted: zxid, confirmed });
        }
        Ok(zxid)
    }

    /// Whether the backup has this transaction, or a base that is exactly at it.
    fn has(&self, store: &Store, zxid: Zxid) -> Result<bool> {
        Ok(self.before_or_at(store, zxid)? == zxid)
    }

    /// The last transaction at or before `zxid`.
    fn before_or_at(&self, store: &Store, zxid: Zxid) -> Result<Zxid> {
        let bases = self.parts.iter().map(|part| &part.base).filter(|base| base.exact_from <= zxid);
        let mut found = bases.map(|base| base.zxid).max().unwrap_or_default();
        if let Some(used) = self.segments.iter().rfind(|used| used.segment.first <= zxid) {
            if used.through <= zxid {
                // The cap of a segment that was cut need not be one of its records, but the transaction was common.
                found = found.max(used.through);
            } else {
                read_segment(store, used, &mut |own, _| {
                    if own <= zxid {
                        found = found.max(own);
                    }
                    Ok(own < zxid)
                })?;
            }
        }
        Ok(found)
    }

    /// The last transaction before the first one with a later time.
    fn at_time(&self, store: &Store, time_ms: i64) -> Result<Zxid> {
        let mut found = None;
        let mut later = None;
        for used in &self.segments {
            if used.segment.latest_ms <= time_ms {
                found = Some(used.through);
                continue;
            }
            read_segment(store, used, &mut |zxid, record| {
                let is_later = time_of(record).is_some_and(|own| own > time_ms);
                later = is_later.then_some(zxid);
                found = if is_later { found } else { Some(zxid) };
                Ok(!is_later)
            })?;
            if later.is_some() {
                break;
            }
        }
        // Before the first transaction of the log only a base is left, whose time is not known.
        found.ok_or_else(|| {
            let first = self.segments.first().map(|used| used.segment.first.to_string());
            let nearest = format!("its log begins later, with {}", first.unwrap_or("nothing".into()));
            BackupError::NoSuchTransaction { wanted: format!("at the time {time_ms} ms"), nearest }
        })
    }

    /// Passes the records above `after` up to `through` to `take`, in order.
    ///
    /// # Errors
    /// [`BackupError::Gap`] if the log in between is not complete; a segment is damaged; the store cannot be read; or
    /// `take` fails.
    pub fn replay(
        &self,
        store: &Store,
        (after, through): (Zxid, Zxid),
        take: &mut dyn FnMut(Zxid, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let (mut last, mut records) = (after, 0);
        for used in &self.segments {
            if used.through <= after {
                continue;
            }
            if used.segment.first > through {
                break;
            }
            if !used.connects && used.segment.first > last.next() {
                let base = self.parts.iter().any(|part| part.base.zxid == last && last == after);
                if !base {
                    return Err(BackupError::Gap { after: last, found: used.segment.first });
                }
            }
            read_segment(store, used, &mut |zxid, record| {
                if zxid > through {
                    return Ok(false);
                }
                if zxid > last {
                    if !follows(last, zxid) {
                        return Err(BackupError::Gap { after: last, found: zxid });
                    }
                    take(zxid, record)?;
                    (last, records) = (zxid, records + 1);
                }
                Ok(true)
            })?;
        }
        if last < through {
            return Err(BackupError::Gap { after: last, found: through });
        }
        Ok(records)
    }
}

/// The time of a record in ms since 1970.
pub(crate) fn time_of(record: &[u8]) -> Option<i64> {
    TxnHeader::read(&mut Reader::new(record)).ok().map(|header| header.time_ms)
}

/// Reads a segment and checks its SHA-256 and the checksum of each record. Stops when `take` returns false.
pub(crate) fn read_segment(
    store: &Store,
    used: &UsedSegment,
    take: &mut dyn FnMut(Zxid, &[u8]) -> Result<bool>,
) -> Result<()> {
    let segment = &used.segment;
    let bytes = store.get_checked(&segment.object, &segment.stored())?;
    let mut reader = LogFileReader::over(Box::new(MemoryFile(bytes.into())), Path::new(&segment.object))?;
    let mut records = 0;
    loop {
        match reader.advance()? {
            Advance::Record(zxid) => {
                records += 1;
                let Some(record) = reader.record() else { break };
                if zxid <= used.through && !take(zxid, record.bytes)? {
                    return Ok(());
                }
            }
            Advance::End(_) if records == segment.records => break,
            Advance::End(end) => {
                let reason = format!("{} after record {records} of {}", end.reason(), segment.records);
                return Err(store.damaged(&segment.object, &reason));
            }
        }
    }
    Ok(())
}
