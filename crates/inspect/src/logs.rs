//! Reads log files record by record, and reports what their ends and the places between them show.

use crate::error::Result;
use ostler_proto::{id::Zxid, jute::JuteError, txn::TxnRecord};
use ostler_storage::{
    disk::Disk,
    names::LogFile,
    txnlog::{Advance, EndContext, LogFileReader, Verdict, follows, judge_end, synced_through},
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The transactions of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZxidRange {
    /// The first one.
    pub from: Zxid,
    /// The last one.
    pub through: Zxid,
}

impl Default for ZxidRange {
    fn default() -> Self {
        ZxidRange { from: Zxid::ZERO, through: Zxid(u64::MAX) }
    }
}

impl ZxidRange {
    /// Whether a transaction is of interest.
    pub fn has(self, zxid: Zxid) -> bool {
        (self.from..=self.through).contains(&zxid)
    }
}

/// A record of a log.
#[derive(Debug)]
pub struct LoggedTxn<'a> {
    /// The log file.
    pub file: &'a Path,
    /// The byte at which the record starts.
    pub offset: u64,
    /// The zxid, from the header of the record.
    pub zxid: Zxid,
    /// The transaction, or the reason why its bytes are none. Their checksum is right.
    pub record: std::result::Result<TxnRecord<'a>, JuteError>,
}

/// A fact about the logs beside their records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LogFinding {
    /// A log file begins.
    File {
        /// The log file.
        file: PathBuf,
        /// The zxid before the first record, as the header says it; zero if the writer did not say it, as Java.
        #[serde(serialize_with = "crate::view::zxid_text")]
        before: Zxid,
    },
    /// The end of a file has the remains of a write that a crash interrupted. A server that runs may be writing them.
    TornTail {
        /// The log file.
        file: PathBuf,
        /// The byte at which the remains start.
        offset: u64,
        /// The number of bytes.
        bytes: u64,
        /// The last whole transaction before.
        #[serde(serialize_with = "crate::view::zxid_text")]
        last_good: Zxid,
    },
    /// A file cannot be read to its end.
    Damage {
        /// The log file.
        file: PathBuf,
        /// The byte at which the first unreadable record starts.
        offset: u64,
        /// The damage, in words.
        reason: String,
        /// The last whole transaction before.
        #[serde(serialize_with = "crate::view::zxid_text")]
        last_good: Zxid,
    },
    /// Transactions are missing before this record.
    Gap {
        /// The log file.
        file: PathBuf,
        /// The byte at which the record starts.
        offset: u64,
        /// The last transaction before.
        #[serde(serialize_with = "crate::view::zxid_text")]
        last: Zxid,
        /// The transaction after the gap.
        #[serde(serialize_with = "crate::view::zxid_text")]
        found: Zxid,
    },
    /// No record was ever written to this file.
    Empty {
        /// The log file.
        file: PathBuf,
    },
}

impl LogFinding {
    /// Whether transactions are lost or unreadable.
    pub fn is_damage(&self) -> bool {
        matches!(self, LogFinding::Damage { .. } | LogFinding::Gap { .. })
    }
}

impl std::fmt::Display for LogFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LogFinding::File { file, before: Zxid::ZERO } => write!(f, "{}:", file.display()),
            LogFinding::File { file, before } => write!(f, "{}: (follows {before})", file.display()),
            LogFinding::TornTail { file, offset, bytes, last_good } => write!(
                f,
                "{}: torn tail at byte {offset}: the last {bytes} bytes are no whole transaction; the last one is \
                 {last_good}. A crash interrupted this write, or a server is writing now. A start cuts it",
                file.display()
            ),
            LogFinding::Damage { file, offset, reason, last_good } => write!(
                f,
                "{}: damaged at byte {offset}: {reason}. The last transaction before is {last_good}",
                file.display()
            ),
            LogFinding::Gap { file, offset, last, found } => write!(
                f,
                "{}: transactions are missing at byte {offset}: {found} comes after {last}. They are lost, or a \
                 leader has \
                 sent its whole tree in their place",
                file.display()
            ),
            LogFinding::Empty { file } => {
                write!(f, "{}: no transaction was ever written here", file.display())
            }
        }
    }
}

/// An item of the walk through the logs, in order.
#[derive(Debug)]
pub enum LogItem<'a> {
    /// A transaction.
    Txn(LoggedTxn<'a>),
    /// A fact about the files.
    Finding(LogFinding),
}

/// The sum of a walk through the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LogTotals {
    /// The number of files.
    pub files: usize,
    /// The number of whole records, also of those that are not of interest.
    pub transactions: u64,
    /// The first and the highest zxid.
    #[serde(serialize_with = "range_text")]
    pub range: Option<(Zxid, Zxid)>,
    /// The number of damaged places and gaps.
    pub damaged: u64,
}

fn range_text<S: serde::Serializer>(
    range: &Option<(Zxid, Zxid)>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    range.map(|(first, last)| [first.to_string(), last.to_string()]).serialize(to)
}

/// Reads `files`, oldest first, and passes transactions and findings to `take`. After damage the walk goes on with the
/// next file: each file is readable by itself. Stops when `take` fails.
pub fn walk(
    disk: &dyn Disk,
    files: &[LogFile],
    take: &mut dyn FnMut(LogItem<'_>) -> Result<()>,
) -> Result<LogTotals> {
    let mut totals = LogTotals { files: files.len(), ..LogTotals::default() };
    let newest = newest_with_data(disk, files)?;
    for (number, file) in files.iter().enumerate() {
        walk_file(disk, (file, number >= newest), &mut totals, take)?;
    }
    Ok(totals)
}

/// Whether a file has a part of a header and nothing else: a crash came when it was made.
fn is_header_begun(verdict: &Verdict, offset: u64) -> bool {
    const HEADER: u64 = 16;
    offset == 0 && matches!(verdict, Verdict::Torn { bytes } if *bytes < HEADER)
}

/// The index of the newest file that is not empty. A crash can leave empty ones after it.
pub(crate) fn newest_with_data(disk: &dyn Disk, files: &[LogFile]) -> Result<usize> {
    for (number, log) in files.iter().enumerate().rev() {
        let mut file = LogFileReader::open(disk, &log.path)?;
        let Advance::End(end) = file.advance()? else { return Ok(number) };
        let context = EndContext { is_newest: true, last: Zxid::ZERO, synced: 0 };
        let verdict = judge_end(&file, end, context)?;
        if verdict != Verdict::Clean && !is_header_begun(&verdict, file.offset()) {
            return Ok(number);
        }
    }
    Ok(0)
}

fn walk_file(
    disk: &dyn Disk,
    (log, is_newest): (&LogFile, bool),
    totals: &mut LogTotals,
    take: &mut dyn FnMut(LogItem<'_>) -> Result<()>,
) -> Result<()> {
    let mut file = LogFileReader::open(disk, &log.path)?;
    let before = file.before()?.unwrap_or(Zxid::ZERO);
    take(LogItem::Finding(LogFinding::File { file: log.path.clone(), before }))?;
    let mut is_first = true;
    loop {
        match file.advance()? {
            Advance::Record(zxid) => {
                let Some(record) = file.record() else { return Ok(()) };
                let last = totals.range.map(|(_, last)| last);
                if let Some(last) = last.filter(|last| !follows(*last, zxid) || (is_first && before > *last))
                {
                    totals.damaged += 1;
                    let (file, offset) = (log.path.clone(), record.offset);
                    take(LogItem::Finding(LogFinding::Gap { file, offset, last, found: zxid }))?;
                }
                is_first = false;
                let (first, last) = totals.range.unwrap_or((zxid, zxid));
                totals.range = Some((first, last.max(zxid)));
                totals.transactions += 1;
                take(LogItem::Txn(LoggedTxn {
                    file: &log.path,
                    offset: record.offset,
                    zxid,
                    record: TxnRecord::read(record.bytes),
                }))?;
            }
            Advance::End(end) => {
                let last = totals.range.map_or(Zxid::ZERO, |(_, last)| last);
                let dir = log.path.parent().unwrap_or(Path::new("."));
                let synced = synced_through(disk, dir, &file, log.first)?;
                let context = EndContext { is_newest, last, synced };
                let verdict = judge_end(&file, end, context)?;
                let (path, offset) = (log.path.clone(), file.offset());
                if is_header_begun(&verdict, offset) {
                    return take(LogItem::Finding(LogFinding::Empty { file: path }));
                }
                return match finding(verdict, path, offset, last) {
                    Some(found) => {
                        totals.damaged += u64::from(found.is_damage());
                        take(LogItem::Finding(found))
                    }
                    None if is_first => take(LogItem::Finding(LogFinding::Empty { file: log.path.clone() })),
                    None => Ok(()),
                };
            }
        }
    }
}

fn finding(verdict: Verdict, file: PathBuf, offset: u64, last_good: Zxid) -> Option<LogFinding> {
    match verdict {
        Verdict::Clean => None,
        Verdict::Torn { bytes } => Some(LogFinding::TornTail { file, offset, bytes, last_good }),
        Verdict::Corrupt { reason } => Some(LogFinding::Damage { file, offset, reason, last_good }),
    }
}

/// The findings of a walk alone.
pub fn findings(disk: &dyn Disk, files: &[LogFile]) -> Result<(Vec<LogFinding>, LogTotals)> {
    let mut found = Vec::new();
    let totals = walk(disk, files, &mut |item| {
        if let LogItem::Finding(finding) = item {
            found.push(finding);
        }
        Ok(())
    })?;
    Ok((found, totals))
}
