//! The few things that are done with files, as a trait: the real disk here, a faulty one in tests.

use crate::error::{IoContext, StorageError};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, chown},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, UNIX_EPOCH},
};

/// A file system. Paths are whole paths; nothing here follows a "current folder".
///
/// What survives a crash: bytes of a file after [`DiskFile::sync_data`]; its name (after a create, rename or
/// remove) after [`Disk::sync_dir`] of its folder. Everything else may or may not.
pub trait Disk: Send + Sync {
    /// An empty file to write: made, or emptied where it exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// An existing file, to read.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// An existing file, to read and change; not what a link stands for.
    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Whether a file is a plain one without a second name, so that what is done to its bytes concerns nobody else. Whoever
    /// keeps a copy of the folder by hard links has the same files under names of his own.
    fn is_only_here(&self, _path: &Path) -> io::Result<bool> {
        Ok(true)
    }
    /// Whether something of that name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Replaces `to`, if it exists.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// The same, but takes its time only as long as `go_on` says so: nobody is spared by it when the server ends.
    fn remove_while(&self, path: &Path, _go_on: &dyn Fn() -> bool) -> io::Result<()> {
        self.remove(path)
    }
    /// Names in a folder, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// The file that a path stands for, where that is a link.
    fn behind_links(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// Gives `to` the mode and the owner of `from`, as far as this process may.
    fn copy_access(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Makes a folder and those above it.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send {
    /// Which file this is, whatever its name.
    fn identity(&self) -> io::Result<FileIdentity>;
    /// Length in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Reads at most `into.len()` bytes; 0 at the end of the file.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes, making the file longer where needed.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file `size` bytes long with the new part reading as zeros, and reserves the space for it.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// Makes all of the file read as zeros and keeps its space. `false` where that cannot be done.
    fn clear(&self) -> io::Result<bool>;
    /// Cuts the file.
    fn truncate(&self, size: u64) -> io::Result<()>;
    /// Lets these bytes go to the disk in their own time, from now on. Says nothing of when they are durable.
    fn write_back(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Makes the file's bytes and size durable.
    fn sync_data(&self) -> io::Result<()>;
}

/// What tells a file from all others of its file system, also from a copy, and from one that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its number. A new file may get that of one that was removed.
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970; 0 where the file system does not say.
    pub born: u64,
}

/// The operating system's. What it makes is for this user alone; see [`SharedFiles`](crate::shared_files::SharedFiles).
#[derive(Debug, Clone, Copy, Default)]
pub struct OsDisk;

/// The mode of files that are for this user alone.
pub const PRIVATE: u32 = 0o600;

/// The same for a file of the system's. Where a link, or a file that has another name too, is in its place, that is replaced
/// and not written to: it may be anybody's.
pub(crate) fn create_with_mode(path: &Path, mode: u32) -> io::Result<Box<dyn DiskFile>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(mode).custom_flags(NOT_THROUGH_LINKS);
    match options.clone().create(true).open(path) {
        Ok(file) if is_only_here(&file.metadata()?) => {
            file.set_len(0)?;
            return Ok(Box::new(OsFile(file)));
        }
        Ok(_) => {}
        Err(error) if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) => {
            tracing::warn!(file = %path.display(), %error, "a link was in the place of this file, and was removed");
        }
        Err(error) => return Err(error),
    }
    fs::remove_file(path)?;
    Ok(Box::new(OsFile(options.create_new(true).open(path)?)))
}

/// Makes a folder and those above it. Who may read files with this mode may look into them.
pub(crate) fn make_folders_with_mode(dir: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode | (mode & 0o444) >> 2).create(dir)
}

/// Flags for whatever is opened to be changed.
pub(crate) const NOT_THROUGH_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

fn is_only_here(file: &fs::Metadata) -> bool {
    file.is_file() && file.nlink() == 1
}

impl Disk for OsDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        create_with_mode(path, PRIVATE)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OsFile(File::open(path)?)))
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let opened = OpenOptions::new().read(true).write(true).custom_flags(NOT_THROUGH_LINKS).open(path);
        match opened {
            Ok(file) => Ok(Box::new(OsFile(file))),
            Err(_) if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) => {
                Err(io::Error::other(
                    "it is a link, and what it stands for is not changed; put the file itself there",
                ))
            }
            Err(error) => Err(error),
        }
    }

    fn is_only_here(&self, path: &Path) -> io::Result<bool> {
        Ok(is_only_here(&fs::symlink_metadata(path)?))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.remove_while(path, &|| true)
    }

    fn remove_while(&self, path: &Path, go_on: &dyn Fn() -> bool) -> io::Result<()> {
        // Some file systems remove no file that is open, and some files may be removed and not written.
        let open = OpenOptions::new().write(true).custom_flags(NOT_THROUGH_LINKS).open(path).ok();
        match (fs::remove_file(path), open) {
            // Under another name it is still there.
            (Ok(()), Some(file)) if file.metadata()?.nlink() > 0 => Ok(()),
            (Ok(()), Some(file)) => give_back(&file, go_on),
            (Err(error), Some(file)) if error.kind() != io::ErrorKind::NotFound => {
                drop(file);
                fs::remove_file(path)
            }
            (done, _) => done,
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        // A name that is not UTF-8 is none of ours.
        fs::read_dir(dir)?
            .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
            .collect()
    }

    fn behind_links(&self, path: &Path) -> io::Result<PathBuf> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => fs::canonicalize(path),
            _ => Ok(path.to_path_buf()),
        }
    }

    fn copy_access(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, own) = (fs::metadata(from)?, fs::metadata(to)?);
        // Only the system's administrator may give a file away.
        let gives = (from.uid(), from.gid()) != (own.uid(), own.gid());
        if gives && let Err(error) = chown(to, Some(from.uid()), Some(from.gid())) {
            tracing::warn!(file = %to.display(), %error, "this file gets another owner than the one that it replaces");
        }
        match fs::set_permissions(to, from.permissions()) {
            Err(error) if is_lacking(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::warn!(file = %to.display(), %error, "this file gets another mode than the one that it replaces");
                Ok(())
            }
            done => done,
        }
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        make_folders_with_mode(dir, PRIVATE)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

/// Space that is given back at once: a file system that tells its device of each freed block (`discard`)
/// makes everybody's syncs wait meanwhile, for tens of milliseconds per log file.
const GIVEN_BACK_AT_ONCE: u64 = 1 << 20;
const GIVEN_BACK_EVERY: Duration = Duration::from_millis(20);

/// Frees a nameless file's space bit by bit, and what is left of it at once when that may not go on.
fn give_back(file: &File, go_on: &dyn Fn() -> bool) -> io::Result<()> {
    let mut size = file.metadata()?.len();
    while size > GIVEN_BACK_AT_ONCE && go_on() {
        size -= GIVEN_BACK_AT_ONCE;
        // Its name is gone: the space goes with the handle at the latest.
        if file.set_len(size).is_err() {
            break;
        }
        thread::sleep(GIVEN_BACK_EVERY);
    }
    Ok(())
}

struct OsFile(File);

impl DiskFile for OsFile {
    fn identity(&self) -> io::Result<FileIdentity> {
        let metadata = self.0.metadata()?;
        let born = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let born = born.map_or(0, |since| since.as_nanos() as u64);
        Ok(FileIdentity { inode: metadata.ino(), born })
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(into, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let now = self.size()?;
        if size <= now {
            return Ok(());
        }
        let mode = rustix::fs::FallocateFlags::empty();
        match rustix::io::retry_on_intr(|| rustix::fs::fallocate(&self.0, mode, now, size - now)) {
            Ok(()) => Ok(()),
            // A file system without reservations: a longer file with a hole, as Java makes it.
            Err(error) if is_lacking(&error.into()) => self.0.set_len(size),
            Err(error) => Err(error.into()),
        }
    }

    fn clear(&self) -> io::Result<bool> {
        let (mode, size) = (rustix::fs::FallocateFlags::ZERO_RANGE, self.size()?);
        match rustix::io::retry_on_intr(|| rustix::fs::fallocate(&self.0, mode, 0, size)) {
            Ok(()) => Ok(true),
            Err(error) if is_lacking(&error.into()) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn write_back(&self, offset: u64, length: u64) -> io::Result<()> {
        // Linux starts to write what is to be dropped from memory.
        let advice = rustix::fs::Advice::DontNeed;
        Ok(rustix::fs::fadvise(&self.0, offset, std::num::NonZero::new(length), advice)?)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Gives a small file this text, durably and all at once: a crash leaves the old text or the new one, and maybe what
/// its `.tmp` file beside it. Upstream does it so too.
///
/// A file that exists keeps its mode and owner, and a link stays a link.
pub fn replace_text(disk: &dyn Disk, path: &Path, text: &str) -> Result<(), StorageError> {
    replace_text_like(disk, path, text, path)
}

/// The same for a file that gets the mode and owner of another one, `like`, if that exists.
pub fn replace_text_like(disk: &dyn Disk, path: &Path, text: &str, like: &Path) -> Result<(), StorageError> {
    let path = &disk.behind_links(path).during("look at", path)?;
    let unfinished = unfinished(path);
    let file = disk.create(&unfinished).during("create", &unfinished)?;
    // Before there is anything in it to be read.
    if disk.exists(like).during("look for", like)? {
        disk.copy_access(like, &unfinished).during("set the mode of", &unfinished)?;
    }
    file.write_all_at(text.as_bytes(), 0).during("write", &unfinished)?;
    file.sync_data().during("sync", &unfinished)?;
    disk.rename(&unfinished, path).during("rename", &unfinished)?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    sync_names(disk, dir)
}

/// What a file system lacks by nature gives one of these errors (CIFS, vboxsf, 9p, some NFS); what fails gives another.
pub(crate) fn is_lacking(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let lacking = [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS];
    error.raw_os_error().is_some_and(|code| lacking.iter().any(|errno| errno.raw_os_error() == code))
}

/// Makes the names in a folder durable, as far as the file system can: on one that cannot sync folders, a loss of power
/// may take back the last changes of names, with Java's servers as well.
pub(crate) fn sync_names(disk: &dyn Disk, dir: &Path) -> Result<(), StorageError> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    match disk.sync_dir(dir) {
        Err(error) if is_lacking(&error) => {
            if !WARNED.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    dir = %dir.display(), %error,
                    "this file system cannot sync a folder: a loss of power may take back the last new names of files. \
                     Use a local file system for the data, such as ext4 or xfs"
                );
            }
            Ok(())
        }
        done => done.during("sync", dir),
    }
}

/// Lets bytes go to the disk in their own time. It is advice: where there is no such thing nothing is lost.
pub(crate) fn write_back(file: &dyn DiskFile, offset: u64, length: u64) -> io::Result<()> {
    match file.write_back(offset, length) {
        Err(error) if is_lacking(&error) => Ok(()),
        done => done,
    }
}

/// Makes an empty file, durably.
pub(crate) fn create_empty(disk: &dyn Disk, path: &Path) -> Result<(), StorageError> {
    let file = disk.create(path).during("create", path)?;
    file.sync_data().during("sync", path)?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    sync_names(disk, dir)
}

/// Where [`replace_text`] writes first.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// Fills `into` from `offset` on; fewer bytes only at the end of the file.
pub(crate) fn read_full(file: &dyn DiskFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_ends_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, b"abcdef").unwrap();
        OsDisk.open_to_change(&path).unwrap().truncate(4).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcd");
    }

    /// A little at a time, for as long as that may go on.
    #[test]
    fn space_is_given_back_bit_by_bit() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(5 * GIVEN_BACK_AT_ONCE).unwrap();
        let sizes = std::cell::RefCell::new(Vec::new());
        let go_on = || {
            sizes.borrow_mut().push(file.metadata().unwrap().len() / GIVEN_BACK_AT_ONCE);
            sizes.borrow().len() < 3
        };
        give_back(&file, &go_on).unwrap();
        assert_eq!(*sizes.borrow(), [5, 4, 3]);
    }
}
