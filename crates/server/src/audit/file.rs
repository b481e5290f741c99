//! The audit file, and the files with older lines beside it.
//!
//! `FILE.1` is the newest of the older files. When the file is full, `FILE.1` becomes `FILE.2` and so on, the last one
//! is removed, and the file becomes `FILE.1`. If another program has moved the file away (logrotate), a new one is
//! begun.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The file that grows.
#[derive(Debug)]
pub(super) struct RollingFile {
    path: PathBuf,
    mode: u32,
    /// The size at which the next line begins another file.
    max_bytes: u64,
    /// The number of older files that are kept.
    max_files: u32,
    file: File,
    size: u64,
}

fn open_for_append(path: &Path, mode: u32) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(mode).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

impl RollingFile {
    pub(super) fn open(path: PathBuf, mode: u32, max_bytes: u64, max_files: u32) -> io::Result<RollingFile> {
        let (file, size) = open_for_append(&path, mode)?;
        Ok(RollingFile { path, mode, max_bytes, max_files, file, size })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Begins the file anew if another program has moved it away.
    pub(super) fn follow_path(&mut self) -> io::Result<()> {
        let is_same = match fs::metadata(&self.path) {
            Ok(named) => {
                let own = self.file.metadata()?;
                // Another program may also have cut it.
                self.size = own.len();
                (named.dev(), named.ino()) == (own.dev(), own.ino())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_same {
            (self.file, self.size) = open_for_append(&self.path, self.mode)?;
        }
        Ok(())
    }

    /// Whether lines of this length go into this file. One that has no lines takes any.
    pub(super) fn accepts(&self, length: usize) -> bool {
        self.size == 0 || self.has_room_for(length)
    }

    /// Whether the file is not too large with lines of this length.
    pub(super) fn has_room_for(&self, length: usize) -> bool {
        self.size + length as u64 <= self.max_bytes
    }

    /// Begins another file.
    pub(super) fn roll(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        for number in (1..self.max_files).rev() {
            rename_if_there(&self.older(number), &self.older(number + 1))?;
        }
        rename_if_there(&self.path, &self.older(1))?;
        (self.file, self.size) = open_for_append(&self.path, self.mode)?;
        Ok(())
    }

    fn older(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    /// Appends bytes. Returns the number of those that are written; fewer than all only with an error.
    pub(super) fn append(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    written += count;
                    self.size += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn append(file: &mut RollingFile, line: &str) {
        file.follow_path().unwrap();
        if !file.accepts(line.len()) {
            file.roll().unwrap();
        }
        file.append(line.as_bytes()).1.unwrap();
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_else(|_| "-".into())
    }

    #[test]
    fn a_full_file_becomes_the_first_of_the_older_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let mut file = RollingFile::open(path.clone(), 0o640, 8, 2).unwrap();
        for line in ["aaa\n", "bbb\n", "ccc\n", "ddd\n", "eee\n", "longer than a file\n", "f\n"] {
            append(&mut file, line);
        }
        assert_eq!(read(&path), "f\n");
        assert_eq!(read(&file.older(1)), "longer than a file\n", "a line is never divided");
        assert_eq!(read(&file.older(2)), "eee\n");
        assert_eq!(read(&file.older(3)), "-", "older files are removed");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o137, 0, "as files.mode says");
        let again = RollingFile::open(path, 0o640, 8, 2).unwrap();
        assert_eq!(again.size, 2, "a start goes on in the same file");
    }

    #[test]
    fn a_file_that_was_moved_away_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let mut file = RollingFile::open(path.clone(), 0o600, 100, 2).unwrap();
        append(&mut file, "a\n");
        fs::rename(&path, dir.path().join("moved")).unwrap();
        append(&mut file, "b\n");
        assert_eq!((read(&path), read(&dir.path().join("moved"))), ("b\n".into(), "a\n".into()));
    }
}
