//! The operations on files as a trait, [`Disk`], and the operating system's files, [`OsDisk`]. Tests have a faulty
//! disk.

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

/// A file system. All paths are absolute, so they do not depend on the current folder of the process.
///
/// A crash keeps the bytes of a file that [`DiskFile::sync_data`] has made durable, and the changes of names (create,
/// rename, remove) that [`Disk::sync_dir`] of the folder has made durable. It may keep or lose any other change.
pub trait Disk: Send + Sync {
    /// Opens an empty file for writing. A file that exists is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens an existing file for reading and writing. A symbolic link is an error.
    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Whether the path is a plain file without another hard link. Only such a file may be written over: an operator
    /// can have a copy of the folder that consists of hard links.
    fn is_only_here(&self, _path: &Path) -> io::Result<bool> {
        Ok(true)
    }
    /// Whether there is a file or folder at this path.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Gives a file another name. A file that has the new name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Frees the space of a large file slowly, so that other syncs are not held up.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a file, as [`Disk::remove`]. As soon as `go_on` returns false, as when the server ends, the rest of the
    /// space is freed at once.
    fn remove_while(&self, path: &Path, _go_on: &dyn Fn() -> bool) -> io::Result<()> {
        self.remove(path)
    }
    /// The names in a folder, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// The path of the file to which a symbolic link leads, or the path itself if it is no link.
    fn behind_links(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// Gives `to` the mode and the owner of `from`, as far as this process has the right to.
    fn copy_access(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Makes a folder and all missing folders above it.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send {
    /// The identity of the file, which does not depend on its name.
    fn identity(&self) -> io::Result<FileIdentity>;
    /// The size in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Reads at most `into.len()` bytes. Returns the number of bytes read, 0 at the end of the file.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes. The file becomes longer if needed.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file `size` bytes long and reserves the space. The new part reads as zeros.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// Makes the whole file read as zeros and keeps its space. Returns false if the file system cannot do that.
    fn clear(&self) -> io::Result<bool>;
    /// Cuts the file to `size` bytes.
    fn truncate(&self, size: u64) -> io::Result<()>;
    /// Lets the system start to write these bytes to the disk. Does not wait, and does not make them durable.
    fn write_back(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Makes the file's bytes and size durable.
    fn sync_data(&self) -> io::Result<()>;
}

/// The identity of a file in its file system. It differs for a copy of the file, and for a new file in the place of a
/// removed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// The inode number. A new file can get the number of a removed one.
    pub inode: u64,
    /// The time of creation, in nanoseconds since 1970; 0 if the file system does not have it.
    pub born: u64,
}

/// The files of the operating system. New files and folders are for this user only; for others see
/// [`SharedFiles`](crate::shared_files::SharedFiles).
#[derive(Debug, Clone, Copy, Default)]
pub struct OsDisk;

/// The mode of files that only this user may read and write.
pub const PRIVATE: u32 = 0o600;

/// [`Disk::create`] with a mode. A symbolic link at this path, or a file with another hard link, is replaced by a new
/// file and not written to: it may belong to another user.
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

/// Makes a folder and those above it. Users who can read files with this mode can open the folders.
pub(crate) fn make_folders_with_mode(dir: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode | (mode & 0o444) >> 2).create(dir)
}

/// The flags with which files are opened for writing: a symbolic link is an error.
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
        let file = OpenOptions::new().read(true).write(true).custom_flags(NOT_THROUGH_LINKS).open(path)?;
        Ok(Box::new(OsFile(file)))
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
        // Opening can fail for a file that may be removed but not written. Then it is removed at once.
        let open = OpenOptions::new().write(true).custom_flags(NOT_THROUGH_LINKS).open(path).ok();
        match (fs::remove_file(path), open) {
            // The file still has another hard link, so its space stays.
            (Ok(()), Some(file)) if file.metadata()?.nlink() > 0 => Ok(()),
            (Ok(()), Some(file)) => free_slowly(&file, go_on),
            // Some file systems cannot remove a file that is open.
            (Err(error), Some(file)) if error.kind() != io::ErrorKind::NotFound => {
                drop(file);
                fs::remove_file(path)
            }
            (done, _) => done,
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        // No file of the server has a name that is not UTF-8.
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
        // Only root may give a file to another user, so a failure is a warning.
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

/// The number of bytes that are freed at a time. A file system that tells its device of each freed block (`discard`)
/// holds up all syncs meanwhile: tens of milliseconds for a whole log file.
const FREED_AT_ONCE: u64 = 1 << 20;
const FREED_EVERY: Duration = Duration::from_millis(20);

/// Frees the space of a removed file piece by piece. As soon as `go_on` returns false, the rest is freed at once, when
/// the file is closed.
fn free_slowly(file: &File, go_on: &dyn Fn() -> bool) -> io::Result<()> {
    let mut size = file.metadata()?.len();
    while size > FREED_AT_ONCE && go_on() {
        size -= FREED_AT_ONCE;
        // On an error the space is freed when the file is closed.
        if file.set_len(size).is_err() {
            break;
        }
        thread::sleep(FREED_EVERY);
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
            // The file system cannot reserve space: the file gets longer without it, as in Java.
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
        // With this advice Linux starts to write the bytes.
        let advice = rustix::fs::Advice::DontNeed;
        Ok(rustix::fs::fadvise(&self.0, offset, std::num::NonZero::new(length), advice)?)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Replaces the text of a small file durably and atomically. A crash leaves the old text or the new one, and maybe a
/// `.tmp` file beside it. Upstream does the same.
///
/// An existing file keeps its mode and owner, and a symbolic link stays a link.
pub fn replace_text(disk: &dyn Disk, path: &Path, text: &str) -> Result<(), StorageError> {
    replace_text_like(disk, path, text, path)
}

/// As [`replace_text`]. The file gets the mode and owner of the file `like`, if that exists.
pub fn replace_text_like(disk: &dyn Disk, path: &Path, text: &str, like: &Path) -> Result<(), StorageError> {
    let path = &disk.behind_links(path).during("look at", path)?;
    let unfinished = unfinished(path);
    let file = disk.create(&unfinished).during("create", &unfinished)?;
    // Done before the text is written, so that no other user can read it.
    if disk.exists(like).during("look for", like)? {
        disk.copy_access(like, &unfinished).during("set the mode of", &unfinished)?;
    }
    file.write_all_at(text.as_bytes(), 0).during("write", &unfinished)?;
    file.sync_data().during("sync", &unfinished)?;
    disk.rename(&unfinished, path).during("rename", &unfinished)?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    sync_names(disk, dir)
}

/// Whether the error says that the file system does not have the operation (CIFS, vboxsf, 9p, some NFS). An operation
/// that fails gives other errors.
pub(crate) fn is_lacking(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let lacking = [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS];
    error.raw_os_error().is_some_and(|code| lacking.iter().any(|errno| errno.raw_os_error() == code))
}

/// Makes the names in a folder durable. If the file system cannot sync folders, this warns once and goes on: then a
/// loss of power may undo the last changes of names, for Java servers too.
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

/// [`DiskFile::write_back`]. A file system that does not have the operation is no error, since it is only advice.
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

/// The temporary file of [`replace_text`].
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// Reads until `into` is full or the file ends. Returns the number of bytes read.
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
    fn a_truncated_file_keeps_its_first_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, b"abcdef").unwrap();
        OsDisk.open_to_change(&path).unwrap().truncate(4).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcd");
    }

    #[test]
    fn space_is_freed_piece_by_piece_until_the_server_ends() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(5 * FREED_AT_ONCE).unwrap();
        let sizes = std::cell::RefCell::new(Vec::new());
        let go_on = || {
            sizes.borrow_mut().push(file.metadata().unwrap().len() / FREED_AT_ONCE);
            sizes.borrow().len() < 3
        };
        free_slowly(&file, &go_on).unwrap();
        assert_eq!(*sizes.borrow(), [5, 4, 3]);
    }
}
