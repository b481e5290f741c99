//! A disk in memory that can crash and fail.
//!
//! A crash keeps what was synced. Each other sector and each other change of a name is kept or lost at random, in any
//! combination, as on real disks. After a failed sync the system takes the sectors for synced: another sync does
//! nothing for them until they are written again.

use ostler_storage::disk::{Disk, DiskFile, FileIdentity};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

const SECTOR: usize = 512;

/// The disk. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The names as the running system has them, and as a crash leaves them.
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// The files by number. Files are never removed, only their names.
    files: Vec<Content>,
    fault: Option<Fault>,
    changes: usize,
}

#[derive(Default, Clone)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// The sectors whose sync has failed.
    given_up: BTreeSet<usize>,
    written_back: usize,
}

/// A failure of the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The number of the change (write, sync, create, ...) that fails, counted from 0.
    pub at: usize,
    /// Whether all later changes fail too.
    pub lasting: bool,
    /// The kind of the error.
    pub kind: io::ErrorKind,
}

impl FaultyDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Counts changes from 0 again and lets one of them fail.
    pub(crate) fn fail(&self, fault: Option<Fault>) {
        let mut state = self.state();
        state.fault = fault;
        state.changes = 0;
    }

    /// The number of changes since [`FaultyDisk::fail`].
    pub(crate) fn changes(&self) -> usize {
        self.state().changes
    }

    /// A loss of power. `choose(n)` returns a number below n.
    pub(crate) fn crash(&self, mut choose: impl FnMut(usize) -> usize) {
        let mut state = self.state();
        let all: Vec<PathBuf> = state.names.keys().chain(state.durable_names.keys()).cloned().collect();
        let mut names = state.durable_names.clone();
        for path in all {
            let (now, durable) = (state.names.get(&path).copied(), state.durable_names.get(&path).copied());
            if now != durable && choose(2) == 0 {
                match now {
                    Some(file) => names.insert(path, file),
                    None => names.remove(&path),
                };
            }
        }
        for file in &mut state.files {
            file.crash(&mut choose);
        }
        state.names = names.clone();
        state.durable_names = names;
    }

    /// A file's bytes.
    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.files[state.names[path]].now.clone()
    }

    /// Puts a file on the disk, durably.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let file = state.files.len();
        state.files.push(Content { now: bytes.to_vec(), synced: bytes.to_vec(), ..Content::default() });
        state.names.insert(path.to_path_buf(), file);
        state.durable_names.insert(path.to_path_buf(), file);
    }

    /// Damages a file's bytes. The file keeps its identity.
    pub(crate) fn rot(&self, path: &Path, rot: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let file = state.names[path];
        let content = &mut state.files[file];
        rot(&mut content.now);
        content.synced.clone_from(&content.now);
    }

    /// Drops a file's pages from memory: from `offset` on it reads as it is on the disk.
    pub(crate) fn evict(&self, path: &Path, offset: usize) {
        let mut state = self.state();
        let file = state.names[path];
        let Content { now, synced, .. } = &mut state.files[file];
        for (at, byte) in now.iter_mut().enumerate().skip(offset) {
            *byte = synced.get(at).copied().unwrap_or(0);
        }
    }

    /// The number of times that a file was written back, without waiting for it.
    pub(crate) fn written_back(&self, path: &Path) -> usize {
        let state = self.state();
        state.files[state.names[path]].written_back
    }

    /// All names.
    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }
}

impl Content {
    fn crash(&mut self, choose: &mut impl FnMut(usize) -> usize) {
        if self.now == self.synced {
            return;
        }
        let longer = self.now.len().saturating_sub(self.synced.len());
        let size = match choose(3) {
            0 => self.now.len(),
            1 if longer > 0 => self.synced.len() + choose(longer),
            _ => self.synced.len(),
        };
        let mut left = self.synced.clone();
        left.resize(size, 0);
        for (at, sector) in left.chunks_mut(SECTOR).enumerate() {
            let start = at * SECTOR;
            let Some(new) = self.now.get(start..self.now.len().min(start + sector.len())) else { continue };
            if choose(2) == 0 {
                sector[..new.len()].copy_from_slice(new);
            }
        }
        *self = Content { now: left.clone(), synced: left, ..Content::default() };
    }

    fn sector(&self, at: usize) -> Option<&[u8]> {
        self.now.get(at * SECTOR..self.now.len().min((at + 1) * SECTOR))
    }

    fn sync(&mut self) {
        let mut synced = self.now.clone();
        for at in &self.given_up {
            for (at, byte) in synced.iter_mut().enumerate().skip(at * SECTOR).take(SECTOR) {
                *byte = self.synced.get(at).copied().unwrap_or(0);
            }
        }
        self.synced = synced;
    }

    fn fail_to_sync(&mut self) {
        let old = Content { now: self.synced.clone(), ..Content::default() };
        let all = 0..self.now.len().div_ceil(SECTOR);
        let lost: Vec<usize> = all.filter(|at| self.sector(*at) != old.sector(*at)).collect();
        self.given_up.extend(lost);
    }
}

impl State {
    fn change(&mut self) -> io::Result<()> {
        let this = self.changes;
        self.changes += 1;
        match self.fault {
            Some(fault) if this == fault.at || (fault.lasting && this > fault.at) => Err(fault.kind.into()),
            _ => Ok(()),
        }
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

struct OpenFile {
    disk: FaultyDisk,
    file: usize,
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.change()?;
        let file = match state.names.get(path) {
            Some(file) => *file,
            None => {
                state.files.push(Content::default());
                let file = state.files.len() - 1;
                state.names.insert(path.to_path_buf(), file);
                file
            }
        };
        state.files[file].now.clear();
        Ok(Box::new(OpenFile { disk: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = self.state().file(path)?;
        Ok(Box::new(OpenFile { disk: self.clone(), file }))
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        Ok(state.names.keys().any(|name| name.starts_with(path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let file = state.file(from)?;
        state.names.remove(from);
        state.names.insert(to.to_path_buf(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.file(path)?;
        state.names.remove(path);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        let here = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        self.state().change()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let state = &mut *state;
        state.durable_names.retain(|path, _| path.parent() != Some(dir));
        let here = state.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        state.durable_names.extend(here.map(|(path, file)| (path.clone(), *file)));
        Ok(())
    }
}

impl DiskFile for OpenFile {
    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity { inode: self.file as u64, born: 0 })
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.file].now.len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let rest = state.files[self.file].now.get(offset as usize..).unwrap_or_default();
        let size = rest.len().min(into.len());
        into[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let done = state.change();
        // A failed write can be half done.
        let bytes = if done.is_err() { &bytes[..bytes.len() / 2] } else { bytes };
        let now = &mut state.files[self.file].now;
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        now.resize(now.len().max(end), 0);
        now[start..end].copy_from_slice(bytes);
        state.files[self.file].given_up.retain(|at| !(start / SECTOR..end.div_ceil(SECTOR)).contains(at));
        done
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.change()?;
        let now = &mut state.files[self.file].now;
        now.resize(now.len().max(size as usize), 0);
        Ok(())
    }

    fn clear(&self) -> io::Result<bool> {
        let mut state = self.disk.state();
        state.change()?;
        state.files[self.file].now.fill(0);
        Ok(true)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.change()?;
        state.files[self.file].now.truncate(size as usize);
        Ok(())
    }

    fn write_back(&self, _: u64, _: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.change()?;
        state.files[self.file].written_back += 1;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let done = state.change();
        match done {
            Ok(()) => state.files[self.file].sync(),
            Err(_) => state.files[self.file].fail_to_sync(),
        }
        done
    }
}
