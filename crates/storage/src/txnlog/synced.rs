//! The mark that says how far the newest log was synced: the file `log-synced` beside it.
//!
//! After a crash the bytes of a log do not show whether a bad record was acknowledged: a sector that a power cut left
//! unwritten looks like data of zeros. The mark shows it. It is written after each batch that was synced. So everything
//! before that point was acknowledged, or could have been, and any fault there is damage.
//!
//! The mark is not synced with each batch, so after a power cut it can be some batches old. Then it is a lower bound,
//! and the rules of `tail.rs` judge the bytes behind it.
//!
//! ```text
//! mark = "OSTSYNC1" first:u64 inode:u64 born:u64 through:u64 adler32:u32
//! ```
//!
//! The mark counts only for its own file. The log with the zxid `first` in its name must have the same inode and time
//! of creation, and be at least `through` bytes long. A copy is another file, so a folder that was copied while a
//! server ran is judged by its bytes alone. A backup that is written into the same file looks damaged; the error says
//! what to do. A log that Java has cut is shorter. Java ignores the mark, because its name does not begin with `log.`.

use crate::{
    disk::{Disk, DiskFile, FileIdentity, read_full, sync_names, write_back},
    error::{IoContext, Result},
};
use ostler_proto::id::Zxid;
use simd_adler32::adler32;
use std::{
    io,
    path::{Path, PathBuf},
};

const NAME: &str = "log-synced";
const MAGIC: [u8; 8] = *b"OSTSYNC1";
/// The size of the mark. It is less than a sector, so a disk writes all of it or nothing.
const SIZE: usize = MAGIC.len() + 4 * 8 + 4;
/// The number of bytes that are written: a whole page, so that the system does not have to read the rest of it first.
const PAGE: usize = 4096;
/// The bytes of the log, and the number of marks, after which the mark is sent to the disk. It is durable with the next
/// sync of the log, which also empties the disk's cache.
const SENT_AFTER: (u64, u32) = (1 << 20, 256);

/// The mark: how far a log file was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyncedMark {
    /// The zxid in the log's name.
    pub(super) first: Zxid,
    /// The log file to which the mark belongs.
    pub(super) file: FileIdentity,
    /// The file is synced up to this byte.
    pub(super) through: u64,
}

impl SyncedMark {
    /// The byte up to which the log that starts with `first` was synced; 0 if the mark belongs to another file.
    pub(super) fn synced_of(&self, file: &dyn DiskFile, first: Zxid) -> io::Result<u64> {
        let fits = first == self.first && file.identity()? == self.file && file.size()? >= self.through;
        Ok(if fits { self.through } else { 0 })
    }

    fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let (body, checksum) = bytes.split_at_mut(SIZE - 4);
        let FileIdentity { inode, born } = self.file;
        let numbers = [self.first.0, inode, born, self.through].map(u64::to_be_bytes);
        body.copy_from_slice(&[&MAGIC[..], numbers.as_flattened()].concat());
        checksum.copy_from_slice(&adler32(&&*body).to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8; SIZE]) -> Option<SyncedMark> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (numbers, _) = rest.as_chunks();
        let [first, inode, born, through] = *numbers.first_chunk()?;
        let [first, inode, born, through] = [first, inode, born, through].map(u64::from_be_bytes);
        let mark = SyncedMark { first: Zxid(first), file: FileIdentity { inode, born }, through };
        (*magic == MAGIC && mark.encode() == *bytes).then_some(mark)
    }

    /// Reads the mark in a folder of logs. `None` if there is none, or if it is damaged.
    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<SyncedMark>> {
        let path = dir.join(NAME);
        if !disk.exists(&path).during("look for", &path)? {
            return Ok(None);
        }
        let file = disk.open(&path).during("open", &path)?;
        let mut bytes = [0; SIZE];
        let size = read_full(&*file, &mut bytes, 0).during("read", &path)?;
        Ok(SyncedMark::decode(&bytes).filter(|_| size == SIZE))
    }

    /// Removes the mark durably, before the log is cut: a later file can get the name and inode of a removed one.
    pub(super) fn remove(disk: &dyn Disk, dir: &Path) -> Result<()> {
        let path = dir.join(NAME);
        if disk.exists(&path).during("look for", &path)? { super::remove(disk, &path) } else { Ok(()) }
    }
}

/// Notes durably that a log is synced up to its byte `through`.
pub(crate) fn note_durably(
    disk: &dyn Disk,
    dir: &Path,
    (log, first): (&Path, Zxid),
    through: u64,
) -> Result<()> {
    let file = disk.open(log).during("open", log)?;
    let mark = SyncedMark { first, file: file.identity().during("look at", log)?, through };
    if SyncedMark::read(disk, dir)? == Some(mark) {
        return Ok(());
    }
    let marks = MarkFile::open(disk, dir)?;
    marks.write(&mark)?;
    marks.file.sync_data().during("sync", &marks.path)
}

/// The file that holds the mark, open to be written again and again.
pub(super) struct MarkFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// `through` of the mark that was last sent to the disk.
    sent_through: u64,
    /// The number of marks since then.
    unsent: u32,
}

impl MarkFile {
    /// Opens the file. If it does not exist, it is made durably, so that later only its bytes change.
    pub(super) fn open(disk: &dyn Disk, dir: &Path) -> Result<MarkFile> {
        let path = dir.join(NAME);
        let is_there = disk.exists(&path).during("look for", &path)?;
        if is_there && disk.is_only_here(&path).during("look at", &path)? {
            let file = disk.open_to_change(&path).during("open", &path)?;
            return Ok(MarkFile { path, file, sent_through: 0, unsent: 0 });
        }
        let file = disk.create(&path).during("create", &path)?;
        file.write_all_at(&[0; PAGE], 0).during("write", &path)?;
        file.sync_data().during("sync", &path)?;
        sync_names(disk, dir)?;
        Ok(MarkFile { path, file, sent_through: 0, unsent: 0 })
    }

    /// Writes the mark. It becomes durable later, see [`SENT_AFTER`].
    pub(super) fn note(&mut self, mark: &SyncedMark) -> Result<()> {
        self.write(mark)?;
        self.unsent += 1;
        let (bytes, marks) = SENT_AFTER;
        if mark.through.abs_diff(self.sent_through) >= bytes || self.unsent >= marks {
            write_back(&*self.file, 0, PAGE as u64).during("write", &self.path)?;
            (self.sent_through, self.unsent) = (mark.through, 0);
        }
        Ok(())
    }

    fn write(&self, mark: &SyncedMark) -> Result<()> {
        let mut page = [0; PAGE];
        page[..SIZE].copy_from_slice(&mark.encode());
        self.file.write_all_at(&page, 0).during("write", &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_with_any_bit_changed_is_ignored() {
        let mark = SyncedMark {
            first: Zxid(0x5_0000_0001),
            file: FileIdentity { inode: 77, born: 8 },
            through: 4711,
        };
        let bytes = mark.encode();
        assert_eq!(SyncedMark::decode(&bytes), Some(mark));
        for at in 0..SIZE {
            for bit in 0..8 {
                let mut changed = bytes;
                changed[at] ^= 1 << bit;
                assert_eq!(SyncedMark::decode(&changed), None, "byte {at}, bit {bit}");
            }
        }
        assert_eq!(SyncedMark::decode(&[0; SIZE]), None);
    }
}
