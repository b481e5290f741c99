//! The format of the transaction log, and the rules for the end of a log. A file is named `log.<zxid of its first
//! record>`.
//!
//! ```text
//! file   = header record* zeros*
//! header = "ZKLG" version:i32=2 before:i64
//! record = adler32:i64 length:i32 entry:[length bytes] 'B'
//! entry  = TxnHeader txn TxnDigest?          (this crate looks at the header only)
//! ```
//!
//! Numbers are big-endian. The checksum covers the entry, and its upper 32 bits are 0. Files are made longer ahead of
//! the data, so the data of a file normally end at a length of 0.
//!
//! `before` is the zxid before the file's first record. Upstream calls the field dbid, shows it in its log tools only,
//! and writes 0, which means "not known" here. With each epoch the counter starts again. So without this field nothing
//! would show that whole files between two others are lost, as after a disk that reports a sync as done and has not
//! done it.
//!
//! # The end of a log
//!
//! A batch of records is acknowledged after it is synced, and the next batch is written after that. So a crash can
//! damage only the last batch, which was not acknowledged. Everything before it must be read as it was written.
//!
//! A mark beside the log says how far it was synced (`synced.rs`). If a record before that point is damaged or missing,
//! the log is corrupt. Behind that point, or without a mark, the bytes at the place of a record decide:
//!
//! | file | bytes | verdict |
//! |---|---|---|
//! | any | zeros to the end, or nothing | clean end |
//! | any | damage, and no whole record after it | torn tail |
//! | any | the same, but the damaged record is there to its end byte, without a hole (an unwritten sector) | corrupt |
//! | any | damage with a hole, whole records after it | torn tail |
//! | any | damage without a hole, whole records after it | corrupt |
//! | any | damage more than one batch ([`BATCH_LIMIT`]) before the last data | corrupt |
//! | older | wrong checksum, impossible length, bad header | corrupt |
//!
//! A torn tail is reported, and recovery cuts it. Corruption is an error that names file and offset.
//!
//! In the fourth row a crash and a disk error can look alike. A disk writes the sectors of a batch in any order. So
//! after a power cut a sector in the middle can be unwritten while later ones are written. It reads as zeros, since log
//! files are never overwritten ([`SpareLog`] clears and syncs a file before it is used again). If a synced sector were
//! missing instead, the disk would have lost a whole synced write. It could then lose the very last one too, which no
//! reader can see. So a hole within one batch of the end is a torn tail, and the writer keeps its batches below that
//! bound. Any other damage before whole records was not made by a crash. It is corruption, since the records after it
//! may have been acknowledged.
//!
//! An older file can have a torn tail, because Java does not cut it and continues in a new file. Within an epoch the
//! new file must continue where the older one ends; otherwise it is a gap. From one epoch to the next Java's files do
//! not show that a record is missing. So damage in an older file that is no torn tail is always corruption.

mod cut;
mod file;
mod image;
mod reader;
mod spare;
mod synced;
mod tail;
mod writer;

pub use cut::{Truncated, truncate_after};
pub(crate) use cut::{cut_torn_tail, is_whole_file, remove};
pub use file::{Advance, FileEnd, LogFileReader, LogRecord, zxid_before};
pub use image::LogImage;
pub use reader::{EndContext, LogReader, TornTail, ZxidStep, follows, judge_end, synced_through};
pub use spare::SpareLog;
pub(crate) use synced::note_durably;
pub use tail::Verdict;
pub use writer::{LogOptions, TxnLog};

/// "ZKLG", version 2.
const MAGIC: [u8; 8] = *b"ZKLG\0\0\0\x02";
/// The size of a file's header.
const HEADER: usize = 16;
/// The size of checksum and length, in front of an entry.
const PREFIX: usize = 12;
/// The byte behind an entry.
const END_BYTE: u8 = b'B';
/// The size of prefix and end byte.
const FRAMING: usize = PREFIX + 1;

/// The largest batch in bytes, if it is not a single longer record. The writer syncs after each batch, so a crash can
/// damage no more than this.
pub const BATCH_LIMIT: usize = 4 << 20;
