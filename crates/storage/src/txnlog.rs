//! The transaction log: files named `log.<zxid of the first record>`.
//!
//! ```text
//! file   = header record* zeros*
//! header = "ZKLG" version:i32=2 before:i64
//! record = adler32:i64 length:i32 entry:[length bytes] 'B'
//! entry  = TxnHeader txn TxnDigest?          (this crate looks at the header only)
//! ```
//!
//! Numbers are big-endian; the checksum covers the entry and its upper 32 bits are 0. Files are made longer
//! ahead of the data, so a length of 0 is where a file's data normally ends.
//!
//! `before` is the zxid that the file's first record follows. Upstream calls the field dbid, writes 0 (here: not
//! known), and shows it in its log tools only. From one epoch to the next the count starts again, and nothing else
//! shows that whole files between two are gone, as after a disk that says it has synced and has not.
//!
//! # The end of a log
//!
//! A batch of records is acknowledged after it is synced, and the next batch is written after that. A crash
//! can therefore damage the last, unacknowledged batch only; everything before it must read back as written.
//! How far a log was synced is noted beside it (`synced.rs`). If a record that lies before that does not check out, or
//! nothing is there, that is corruption. Behind it, or where there is no such note, what stands where a record should be
//! and does not check out is judged by its bytes:
//!
//! | file | what is there | verdict |
//! |---|---|---|
//! | any | zeros to the end, or nothing | clean end |
//! | any | damage, and no whole record after it | torn tail |
//! | any | the same, but the damaged record is there to its end byte, without a hole (an unwritten sector) | corrupt |
//! | any | damage with a hole, whole records after it | torn tail |
//! | any | damage without a hole, whole records after it | corrupt |
//! | any | damage more than one batch ([`BATCH_LIMIT`]) before the last data | corrupt |
//! | older | wrong checksum, impossible length, bad header | corrupt |
//!
//! A torn tail is reported and, by recovery, cut; corruption is an error that names file and offset. The
//! fourth row is the one where a crash and a disk error can look alike. A disk writes the sectors of a batch
//! in any order, so after a power cut a sector in the middle may never have been written while later ones
//! were. Such a sector reads as zeros, since log files are never overwritten (one that is used again, [`SpareLog`], is cleared and
//! synced first). To blame a synced sector for it,
//! the disk would have to lose a whole synced write, and then it could as well lose the very last one, which
//! no reader can see. So a hole counts as torn, within one batch of the end; the writer keeps its batches below
//! that bound. Any other damage in front of whole records was not made by a crash, and is refused: what follows
//! may have been acknowledged.
//!
//! Older files may have torn tails because Java does not cut one, it goes on with a new file. Within an epoch that
//! one must continue where the older one ends, else it is a gap; from one epoch to the next Java's files do not show
//! that a record is missing, so damage that is no torn tail must be seen as such.

mod cut;
mod file;
mod reader;
mod spare;
mod synced;
mod tail;
mod writer;

pub use cut::{Truncated, truncate_after};
pub(crate) use cut::{cut_torn_tail, remove, takes_all};
pub use file::{Advance, FileEnd, LogFileReader, LogRecord};
pub use reader::{LogReader, TornTail, ZxidStep};
pub use spare::SpareLog;
pub(crate) use synced::note_durably;
pub use writer::{LogOptions, TxnLog};

/// "ZKLG", version 2.
const MAGIC: [u8; 8] = *b"ZKLG\0\0\0\x02";
/// How long a file's header is.
const HEADER: usize = 16;
/// Checksum and length in front of an entry.
const PREFIX: usize = 12;
/// Behind an entry.
const END_BYTE: u8 = b'B';
/// Prefix and end byte.
const FRAMING: usize = PREFIX + 1;

/// The writer syncs at least once per so many bytes, so a crash leaves no more than this in doubt (or one
/// record, if that is longer).
pub const BATCH_LIMIT: usize = 4 << 20;
