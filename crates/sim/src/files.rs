//! A file system in memory with faults: lost writes, failing calls, flipped bits, and syncs that do nothing.
//!
//! A loss of power keeps what was synced. Every other sector and every other change of a name is kept or lost at
//! random, as on real disks. So a write can be torn, and a later write can be kept where an earlier one is lost.

use crate::chance::Chance;
use ostler_storage::disk::{Disk, DiskFile, FileIdentity};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

const SECTOR: usize = 512;
const EIO: i32 = 5;

/// Whole paths as bytes, because comparing paths part by part is slow.
type Names = BTreeMap<OsString, usize>;

/// A path relative to a folder, if it is anywhere below it.
fn within<'a>(folder: &Path, name: &'a OsStr) -> Option<&'a [u8]> {
    name.as_encoded_bytes().strip_prefix(folder.as_os_str().as_encoded_bytes())?.strip_prefix(b"/")
}

/// A path relative to a folder, if it is directly in it.
fn own_name<'a>(folder: &Path, name: &'a OsStr) -> Option<&'a [u8]> {
    within(folder, name).filter(|rest| !rest.contains(&b'/'))
}

fn is_in(folder: &Path, name: &OsStr) -> bool {
    own_name(folder, name).is_some()
}

/// The file system. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct SimFiles(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Names as the running system sees them (`names`), and as a loss of power certainly leaves them (`durable_names`).
    names: Names,
    durable_names: Names,
    /// By file number. A file without a name is emptied to free its memory.
    files: Vec<Content>,
    fault: Option<DiskFault>,
    /// Syncs report success and do nothing.
    lies: bool,
    /// Calls since the trouble was set.
    calls: u64,
}

#[derive(Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Sectors in which the two may differ.
    dirty: BTreeSet<usize>,
}

/// A fault to inject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiskFault {
    /// The first call that fails, counted from 0.
    pub(crate) at: u64,
    pub(crate) kind: DiskFaultKind,
}

/// The effect of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskFaultKind {
    /// One call fails (EIO).
    Io,
    /// All calls that need space fail until the fault is removed (ENOSPC).
    Full,
    /// The process is gone: no call has an effect any more.
    Dead,
}

impl SimFiles {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Sets or removes a fault. Calls are counted from 0 again.
    pub(crate) fn set_fault(&self, fault: Option<DiskFault>) {
        let mut state = self.state();
        (state.fault, state.calls) = (fault, 0);
    }

    /// Calls since the last trouble was set or taken away.
    #[cfg(test)]
    pub(crate) fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Chooses whether syncs do nothing from now on.
    pub(crate) fn lie(&self, lies: bool) {
        self.state().lies = lies;
    }

    /// Makes everything durable as it is now.
    pub(crate) fn sync_all(&self) {
        let mut state = self.state();
        state.files.iter_mut().for_each(Content::sync);
        state.durable_names = state.names.clone();
        state.free();
    }

    /// Loses power.
    pub(crate) fn lose_power(&self, chance: &mut Chance) {
        let mut state = self.state();
        let all: BTreeSet<OsString> = state.names.keys().chain(state.durable_names.keys()).cloned().collect();
        let mut names = state.durable_names.clone();
        for path in all {
            let (now, durable) = (state.names.get(&path).copied(), state.durable_names.get(&path).copied());
            if now != durable && chance.one_in(2) {
                match now {
                    Some(file) => names.insert(path, file),
                    None => names.remove(&path),
                };
            }
        }
        for file in &mut state.files {
            file.lose_power(chance);
        }
        (state.names, state.durable_names) = (names.clone(), names);
        state.free();
    }

    /// Flips bits in one file of a folder, and returns its path, if there is one. Files that hold only a number have no
    /// checksum and are left alone.
    pub(crate) fn rot(&self, folder: &Path, chance: &mut Chance) -> Option<PathBuf> {
        let mut state = self.state();
        let written = |of: &usize| state.files[*of].now.iter().any(|byte| *byte != 0);
        let sealed = |name: &OsStr| is_in(folder, name) && Path::new(name).extension().is_some();
        let all = state.names.iter().filter(|(name, file)| sealed(name) && written(file));
        let names: Vec<OsString> = all.map(|(name, _)| name.clone()).collect();
        if names.is_empty() {
            return None;
        }
        let name = names[chance.below(names.len() as u64) as usize].clone();
        let file = state.names[&name];
        let content = &mut state.files[file];
        let last = content.now.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        for _ in 0..chance.between(1, 3) {
            let at = chance.below(last as u64 + 1) as usize;
            content.now[at] ^= 1 << chance.below(8);
            content.dirty.insert(at / SECTOR);
        }
        content.sync();
        Some(name.into())
    }

    /// Flips a bit in the middle of a file.
    #[cfg(test)]
    pub(crate) fn damage(&self, path: &Path) {
        let mut state = self.state();
        let file = state.names[path.as_os_str()];
        let content = &mut state.files[file];
        let middle = content.now.len() / 2;
        content.now[middle] ^= 1;
        content.dirty.insert(middle / SECTOR);
        content.sync();
    }

    /// Removes everything.
    pub(crate) fn wipe(&self) {
        let mut state = self.state();
        *state = State { lies: state.lies, ..State::default() };
    }

    /// A copy of all files for [`SimFiles::put_back`], unsynced bytes included.
    pub(crate) fn copy(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state();
        state.names.iter().map(|(name, file)| (name.clone().into(), state.files[*file].now.clone())).collect()
    }

    /// Replaces everything by a copy.
    pub(crate) fn put_back(&self, copy: &BTreeMap<PathBuf, Vec<u8>>) {
        self.wipe();
        copy.iter().for_each(|(path, bytes)| self.put(path, bytes));
    }

    /// Writes a file durably.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let file = state.files.len();
        let dirty = BTreeSet::new();
        state.files.push(Content { now: bytes.to_vec(), synced: bytes.to_vec(), dirty });
        state.names.insert(path.into(), file);
        state.durable_names.insert(path.into(), file);
    }

    /// Removes all files of a folder durably.
    pub(crate) fn forget(&self, folder: &Path) {
        let mut state = self.state();
        state.names.retain(|name, _| !is_in(folder, name));
        state.durable_names.retain(|name, _| !is_in(folder, name));
    }

    /// A file's text, if it is UTF-8.
    pub(crate) fn text(&self, path: &Path) -> Option<String> {
        let state = self.state();
        let file = state.names.get(path.as_os_str())?;
        String::from_utf8(state.files[*file].now.clone()).ok()
    }
}

impl Content {
    fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if self.now.len() < end {
            self.now.resize(end, 0);
        }
        self.now[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / SECTOR..end.div_ceil(SECTOR));
    }

    fn resize(&mut self, size: usize) {
        let (old, new) = (self.now.len().min(size), self.now.len().max(size));
        self.now.resize(size, 0);
        self.dirty.extend(old / SECTOR..new.div_ceil(SECTOR));
    }

    fn sync(&mut self) {
        self.synced.resize(self.now.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let end = self.now.len().min((sector + 1) * SECTOR);
            if let Some(new) = self.now.get(sector * SECTOR..end) {
                self.synced[sector * SECTOR..end].copy_from_slice(new);
            }
        }
    }

    /// As Linux does: data that could not be synced counts as written, and can be read until memory is short.
    fn fail_to_sync(&mut self) {
        self.dirty.clear();
    }

    fn lose_power(&mut self, chance: &mut Chance) {
        if self.now == self.synced {
            return;
        }
        let longer = self.now.len().saturating_sub(self.synced.len()) as u64;
        let size = match chance.below(3) {
            0 => self.now.len(),
            1 if longer > 0 => self.synced.len() + chance.below(longer) as usize,
            _ => self.synced.len(),
        };
        let mut left = self.synced.clone();
        left.resize(size, 0);
        for sector in std::mem::take(&mut self.dirty) {
            let start = sector * SECTOR;
            let end = self.now.len().min(start + SECTOR).min(size);
            if start < end && chance.one_in(2) {
                left[start..end].copy_from_slice(&self.now[start..end]);
            }
        }
        (self.now, self.synced) = (left.clone(), left);
    }
}

impl State {
    /// Counts a call, and fails it if the fault says so. `needs_space` tells whether a full disk fails it.
    fn call(&mut self, needs_space: bool) -> io::Result<()> {
        let this = self.calls;
        self.calls += 1;
        match self.fault {
            Some(DiskFault { at, kind: DiskFaultKind::Io }) if this == at => {
                Err(io::Error::from_raw_os_error(EIO))
            }
            Some(DiskFault { at, kind: DiskFaultKind::Full }) if this >= at && needs_space => {
                Err(io::ErrorKind::StorageFull.into())
            }
            Some(DiskFault { at, kind: DiskFaultKind::Dead }) if this >= at => {
                Err(io::Error::other("the process is gone"))
            }
            _ => Ok(()),
        }
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path.as_os_str()).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn free(&mut self) {
        let named: BTreeSet<usize> =
            self.names.values().chain(self.durable_names.values()).copied().collect();
        for (number, file) in self.files.iter_mut().enumerate() {
            if !named.contains(&number) {
                *file = Content::default();
            }
        }
    }
}

struct OpenFile {
    disk: SimFiles,
    file: usize,
}

impl Disk for SimFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.call(true)?;
        let file = match state.names.get(path.as_os_str()) {
            Some(file) => *file,
            None => {
                state.files.push(Content::default());
                let file = state.files.len() - 1;
                state.names.insert(path.into(), file);
                file
            }
        };
        state.files[file].resize(0);
        Ok(Box::new(OpenFile { disk: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.call(false)?;
        let file = state.file(path)?;
        Ok(Box::new(OpenFile { disk: self.clone(), file }))
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state();
        state.call(false)?;
        // A folder exists if it has files.
        Ok(state.names.contains_key(path.as_os_str())
            || state.names.keys().any(|name| within(path, name).is_some()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(true)?;
        let file = state.file(from)?;
        state.names.remove(from.as_os_str());
        state.names.insert(to.into(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(false)?;
        state.file(path)?;
        state.names.remove(path.as_os_str());
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.call(false)?;
        let here = state.names.keys().filter_map(|name| own_name(dir, name));
        Ok(here.filter_map(|rest| Some(std::str::from_utf8(rest).ok()?.to_owned())).collect())
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        self.state().call(true)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(true)?;
        if state.lies {
            return Ok(());
        }
        let state = &mut *state;
        state.durable_names.retain(|name, _| !is_in(dir, name));
        let here = state.names.iter().filter(|(name, _)| is_in(dir, name));
        state.durable_names.extend(here.map(|(name, file)| (name.clone(), *file)));
        Ok(())
    }
}

impl DiskFile for OpenFile {
    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity { inode: self.file as u64, born: 0 })
    }

    fn size(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.call(false)?;
        Ok(state.files[self.file].now.len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.call(false)?;
        let rest = state.files[self.file].now.get(offset as usize..).unwrap_or_default();
        let size = rest.len().min(into.len());
        into[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let size = state.files[self.file].now.len();
        // Overwriting needs no space.
        let done = state.call(offset as usize + bytes.len() > size);
        // A failing write may have written half of its bytes.
        let bytes = if done.is_err() { &bytes[..bytes.len() / 2] } else { bytes };
        state.files[self.file].write(bytes, offset as usize);
        done
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.call(true)?;
        let file = &mut state.files[self.file];
        file.resize(file.now.len().max(size as usize));
        Ok(())
    }

    fn clear(&self) -> io::Result<bool> {
        let mut state = self.disk.state();
        state.call(true)?;
        let file = &mut state.files[self.file];
        let size = file.now.len();
        file.now.fill(0);
        file.dirty.extend(0..size.div_ceil(SECTOR));
        Ok(true)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.call(false)?;
        state.files[self.file].resize(size as usize);
        Ok(())
    }

    fn write_back(&self, _: u64, _: u64) -> io::Result<()> {
        self.disk.state().call(true)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let called = state.call(true);
        let lies = state.lies;
        let file = &mut state.files[self.file];
        match &called {
            Ok(()) if !lies => file.sync(),
            Err(error) if error.raw_os_error() == Some(EIO) => file.fail_to_sync(),
            Ok(()) | Err(_) => {}
        }
        called
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::keeping_options;
    use ostler_data_dir::Persistence;
    use ostler_proto::{
        id::{SessionId, Zxid},
        txn::{CreateTxn, Txn, TxnCreateKind, TxnHeader, TxnRecord},
    };
    use ostler_server_core::{PersistOp, effect::Record};
    use ostler_storage::folders::DataFolders;

    fn append(zxid: Zxid) -> PersistOp {
        let txn = Txn::Create(CreateTxn {
            path: format!("/{zxid}").into(),
            data: Some(&[7; 2000]),
            acl: Vec::new().into(),
            ephemeral: false,
            parent_cversion: -1,
            kind: TxnCreateKind::Create,
        });
        let header = TxnHeader { session: SessionId(1), cxid: 0, zxid, time_ms: 0, code: txn.code() };
        let mut record = Vec::new();
        TxnRecord { header, txn, digest: None }.write(&mut record);
        PersistOp::Append { zxid, record: Record(record.into()) }
    }

    /// After a failed sync the file reads as if nothing had happened, and the next sync has nothing to do.
    #[test]
    fn a_start_does_not_trust_what_it_reads_after_a_failed_sync() {
        let mut failed = 0;
        for at in 0..8 {
            let files = SimFiles::default();
            let start = || {
                let folders = DataFolders::at(Path::new("/data"), None);
                Persistence::start(Arc::new(files.clone()), folders, keeping_options(1 << 16, None)).unwrap()
            };
            let (mut first, _) = start();
            first.carry_out(append(Zxid(1))).unwrap();
            first.sync().unwrap();
            files.set_fault(Some(DiskFault { at, kind: DiskFaultKind::Io }));
            let logged = first.carry_out(append(Zxid(2))).map(drop).and_then(|()| first.sync());
            failed += usize::from(logged.is_err());
            drop(first);
            files.set_fault(None);
            let (mut second, restored) = start();
            let last = restored.recovered.last_zxid.next();
            second.carry_out(append(last)).unwrap();
            second.sync().unwrap();
            drop(second);
            files.lose_power(&mut Chance::new(at));
            assert_eq!(start().1.recovered.last_zxid, last, "call {at} fails");
        }
        assert!(failed >= 2, "neither the write nor the sync has failed");
    }
}
