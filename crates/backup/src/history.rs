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
    /// The number of its part.
    pub part: u32,
    /// The base of its part.
    pub base: Zxid,
}

impl UsedSegment {
    /// Whether the segment has what comes after `last`, where the log before it, or a base, ends.
    fn goes_on_after(&self, last: Zxid) -> bool {
        self.connects || self.segment.first <= last.next() || self.base == last
    }
}

/// A place at which the log was not copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogGap {
    /// The last transaction before it.
    pub before: Zxid,
    /// The base with which the backup goes on.
    pub base: Zxid,
    /// The first transaction after the gap that can be restored.
    pub exact_from: Zxid,
    /// A time at or after that of the base, in ms since 1970, if it is known.
    pub time_ms: Option<i64>,
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
                let (through, base) = (segment.last, part.base.zxid);
                segments.push(UsedSegment { through, segment, connects, part: part.part, base });
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

    /// The places at which the log was not copied, in order: bases that no log reaches.
    pub fn gaps(&self) -> Vec<LogGap> {
        let gaps = self.parts.iter().enumerate().skip(1).filter_map(|(at, part)| {
            let Base { zxid: base, exact_from, time_ms, .. } = part.base;
            let leads_there = |used: &&UsedSegment| {
                used.part < part.part || (used.part == part.part && used.segment.first <= base)
            };
            let ends = self.segments.iter().filter(leads_there).map(|used| used.through);
            let before = ends.chain(self.parts[..at].iter().map(|part| part.base.zxid)).max()?;
            (base > before).then_some(LogGap { before, base, exact_from, time_ms })
        });
        gaps.collect()
    }

    /// The first gap between two transactions.
    fn gap_between(&self, after: Zxid, through: Zxid) -> Option<LogGap> {
        self.gaps().into_iter().find(|gap| gap.base > after && gap.before < through)
    }

    /// The last transaction before the epoch of `last`, if the log since then was copied whole.
    pub(crate) fn before_epoch(&self, store: &Store, last: Zxid) -> Option<Zxid> {
        let border = Zxid::new(last.epoch(), 0);
        // A damaged segment is a matter of a restore. Here less is known then.
        let before = self.before_or_at(store, border).ok()?;
        (self.gap_between(before, last).is_none() && before > Zxid::ZERO).then_some(before)
    }

    /// The last transaction that is known to be committed.
    pub fn confirmed_through(&self) -> Zxid {
        self.parts.last().map_or(Zxid::ZERO, |part| part.confirmed_through).min(self.last())
    }

    /// The last transaction that is known to be committed among those that the log connects with `zxid`.
    ///
    /// A confirmation from behind a gap says nothing of the log before it: that can end with transactions that a later leader
    /// has replaced, by a tree that the backup has as the base behind the gap.
    fn confirmed_around(&self, zxid: Zxid) -> Zxid {
        let gap = self.gaps().into_iter().find(|gap| zxid <= gap.before);
        let end = gap.map_or(self.last(), |gap| gap.before);
        let known = self.parts.iter().map(|part| part.confirmed_through).filter(|known| *known <= end);
        known.max().unwrap_or_default()
    }

    /// The last transaction that is known to be committed and can be restored.
    fn last_confirmed(&self, store: &Store) -> Result<Zxid> {
        let mut confirmed = self.confirmed_through();
        loop {
            // Before a gap, if the base behind it is not exact yet.
            let last = self.before_or_at(store, confirmed)?;
            confirmed = self.confirmed_around(last);
            if last <= confirmed {
                return Ok(last);
            }
        }
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
        let through = self.gap_between(base.zxid, through).map_or(through, |gap| gap.before);
        let mut last = base.zxid;
        for used in &self.segments {
            if used.segment.first > through || !used.goes_on_after(last) {
                break;
            }
            last = last.max(used.through);
        }
        last.min(through)
    }

    /// Finds the transaction to restore.
    ///
    /// # Errors
    /// The backup does not have it, a segment is damaged, or the store cannot be read. [`BackupError::NotConfirmed`] if
    /// it is not known to be committed and `unconfirmed` is false.
    pub fn find(&self, store: &Store, target: Target, unconfirmed: bool) -> Result<Zxid> {
        let zxid = match target {
            Target::Latest if unconfirmed => self.last(),
            Target::Latest => self.last_confirmed(store)?,
            Target::Zxid(zxid) if self.has(store, zxid)? => zxid,
            Target::Zxid(zxid) => {
                let before = self.before_or_at(store, zxid)?;
                let nearest =
                    format!("the last one before it is {before}, the last one of all {}", self.last());
                return Err(BackupError::NoSuchTransaction { wanted: zxid.to_string(), nearest });
            }
            Target::TimeMs(time_ms) => self.at_time(store, time_ms)?,
        };
        let confirmed = self.confirmed_around(zxid);
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
                    if own > zxid {
                        return Ok(false);
                    }
                    found = found.max(own);
                    Ok(true)
                })?;
            }
        }
        Ok(found)
    }

    /// The last transaction before the first one with a later time.
    fn at_time(&self, store: &Store, time_ms: i64) -> Result<Zxid> {
        let first_base = self.parts.first().map(|part| &part.base);
        let is_before = |base: &&Base| base.time_ms.is_some_and(|own| own <= time_ms);
        let found =
            self.last_record_at(store, time_ms)?.or(first_base.filter(is_before).map(|base| base.zxid));
        let Some(mut found) = found else {
            let first = self.segments.first().map(|used| used.segment.first.to_string());
            let nearest = format!("its log begins later, with {}", first.unwrap_or("nothing".into()));
            return Err(BackupError::NoSuchTransaction {
                wanted: format!("at the time {time_ms} ms"),
                nearest,
            });
        };
        for gap in self.gaps() {
            if gap.before != found {
                continue;
            }
            if gap.time_ms.is_none_or(|own| own > time_ms) {
                return Err(BackupError::TimeInGap { time_ms, before: found, after: gap.exact_from });
            }
            found = gap.base;
        }
        Ok(found)
    }

    /// The last record before the first one with a later time.
    fn last_record_at(&self, store: &Store, time_ms: i64) -> Result<Option<Zxid>> {
        let mut found = None;
        for used in &self.segments {
            if used.segment.latest_ms <= time_ms {
                found = Some(used.through);
                continue;
            }
            let mut is_later = false;
            read_segment(store, used, &mut |zxid, record| {
                is_later = time_of(record).is_some_and(|own| own > time_ms);
                found = if is_later { found } else { Some(zxid) };
                Ok(!is_later)
            })?;
            if is_later {
                break;
            }
            found = Some(used.through);
        }
        Ok(found)
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
        if let Some(gap) = self.gap_between(after, through) {
            return Err(BackupError::Gap { after: gap.before, found: gap.base });
        }
        let (mut last, mut records) = (after, 0);
        for used in &self.segments {
            if used.through <= after {
                continue;
            }
            if used.segment.first > through {
                break;
            }
            if !used.goes_on_after(last) {
                return Err(BackupError::Gap { after: last, found: used.segment.first });
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
