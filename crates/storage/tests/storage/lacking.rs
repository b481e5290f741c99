//! File systems that do not have an operation (CIFS, vboxsf, 9p, some NFS): the server works without it. If a file
//! system has the operation and it fails, that is an error.

use crate::sinks::{Contents, begin_snapshot, record};
use ostler_proto::{
    id::{Epoch, Zxid},
    stat::StatPersisted,
};
use ostler_storage::{
    disk::{Disk, DiskFile, FileIdentity, OsDisk, replace_text},
    disk_layer::DiskLayer,
    epochs::{EpochFile, read_epoch, write_epoch},
    error::Result,
    folders::DataFolders,
    recover::{RecoverOptions, recover},
    snapshot::SnapshotTrailer,
    txnlog::{LogOptions, SpareLog, TxnLog},
};
use rustix::io::Errno;
use std::{io, path::Path, sync::Arc};
use tempfile::TempDir;

/// The errors of such file systems.
const LACKING: [Errno; 3] = [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS];

/// The system's disk, on which some operations always return an error.
#[derive(Debug, Clone, Copy, Default)]
struct WithoutDisk {
    sync_dir: Option<Errno>,
    write_back: Option<Errno>,
}

struct WithoutFile {
    file: Box<dyn DiskFile>,
    write_back: Option<Errno>,
}

fn answer(errno: Option<Errno>) -> Option<io::Result<()>> {
    errno.map(|errno| Err(io::Error::from_raw_os_error(errno.raw_os_error())))
}

impl WithoutDisk {
    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(WithoutFile { file, write_back: self.write_back })
    }
}

impl DiskLayer for WithoutDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        OsDisk.create(path).map(|file| self.file(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        OsDisk.open(path).map(|file| self.file(file))
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        OsDisk.open_to_change(path).map(|file| self.file(file))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        answer(self.sync_dir).unwrap_or_else(|| OsDisk.sync_dir(dir))
    }
}

impl DiskFile for WithoutFile {
    fn identity(&self) -> io::Result<FileIdentity> {
        self.file.identity()
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.file.allocate(size)
    }

    fn clear(&self) -> io::Result<bool> {
        self.file.clear()
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.file.truncate(size)
    }

    fn write_back(&self, offset: u64, length: u64) -> io::Result<()> {
        answer(self.write_back).unwrap_or_else(|| self.file.write_back(offset, length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// All operations that sync a folder, in a new folder.
struct Steps {
    dir: TempDir,
    disk: WithoutDisk,
}

/// The name of a step, and the step.
type Step = (&'static str, fn(&Steps) -> Result<()>);

const STEPS: [Step; 7] = [
    ("makes the folders", |steps| {
        DataFolders::open(&steps.disk, &steps.dir.path().join("made/below"), None, true).map(drop)
    }),
    ("replaces a text", |steps| {
        replace_text(&steps.disk, &steps.dir.path().join("text"), "new")?;
        replace_text(&steps.disk, &steps.dir.path().join("text"), "newer")
    }),
    ("writes an epoch", |steps| {
        write_epoch(&steps.disk, steps.dir.path(), EpochFile::Accepted, Epoch(7))?;
        assert_eq!(read_epoch(&steps.disk, steps.dir.path(), EpochFile::Accepted)?, Some(Epoch(7)));
        Ok(())
    }),
    ("commits", |steps| steps.log(1..=3).map(drop)),
    ("cuts a log back", |steps| steps.log(1..=3)?.truncate_after(Zxid(1)).map(drop)),
    ("writes a snapshot", |steps| steps.snapshot(3, 2)),
    ("keeps a spare log", |steps| {
        let old = steps.dir.path().join("log.1");
        std::fs::write(&old, [1; 100]).unwrap();
        SpareLog::new(steps.dir.path().into()).keep(&steps.disk, &old).map(drop)
    }),
];

impl Steps {
    fn on(disk: WithoutDisk) -> Steps {
        Steps { dir: TempDir::new().unwrap(), disk }
    }

    fn log(&self, zxids: std::ops::RangeInclusive<u64>) -> Result<TxnLog> {
        let mut log = TxnLog::open(Arc::new(self.disk), self.dir.path().into(), LogOptions::default());
        for zxid in zxids {
            log.append(Zxid(zxid), &record(Zxid(zxid), 20))?;
            log.commit()?;
        }
        Ok(log)
    }

    /// Writes a snapshot with this number of znodes of a megabyte.
    fn snapshot(&self, zxid: u64, nodes: usize) -> Result<()> {
        let mut writer = begin_snapshot(&self.disk, self.dir.path(), zxid)?;
        writer.node("/", None, -1, &StatPersisted::default())?;
        for at in 0..nodes {
            writer.node(&format!("/{at}"), Some(&vec![7; 1 << 20]), -1, &StatPersisted::default())?;
        }
        writer.finish(SnapshotTrailer { digest: None, last_processed: Some(Zxid(zxid)) }).map(drop)
    }
}

/// Without the sync a file with acknowledged records can be gone after a crash.
#[test]
fn a_failed_sync_of_a_folder_is_an_error() {
    for (name, step) in STEPS {
        step(&Steps::on(WithoutDisk::default())).unwrap();
        for errno in [Errno::IO, Errno::NOSPC, Errno::ACCESS, Errno::BADF] {
            let disk = WithoutDisk { sync_dir: Some(errno), ..WithoutDisk::default() };
            assert!(step(&Steps::on(disk)).is_err(), "it {name}, as if {errno} were nothing");
        }
    }
}

#[test]
fn every_step_works_on_a_file_system_that_cannot_sync_folders() {
    let mut stopped = Vec::new();
    for errno in LACKING {
        let disk = WithoutDisk { sync_dir: Some(errno), ..WithoutDisk::default() };
        let failed = STEPS.iter().filter_map(|(name, step)| {
            step(&Steps::on(disk)).err().map(|error| format!("it {name}: {error}"))
        });
        stopped.extend(failed);
    }
    assert!(
        stopped.is_empty(),
        "{} of {}:\n{}",
        stopped.len(),
        LACKING.len() * STEPS.len(),
        stopped.join("\n")
    );
}

#[test]
fn a_server_starts_on_a_file_system_that_cannot_sync_folders() {
    let written = Steps::on(WithoutDisk::default());
    let folders = DataFolders::open(&OsDisk, written.dir.path(), None, true).unwrap();
    let steps = Steps { dir: TempDir::new_in(written.dir.path()).unwrap(), disk: WithoutDisk::default() };
    steps.snapshot(1, 1).unwrap();
    steps.log(2..=4).unwrap();
    for entry in std::fs::read_dir(steps.dir.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::rename(entry.path(), folders.logs.join(entry.file_name())).unwrap();
    }
    let disk = WithoutDisk { sync_dir: Some(Errno::INVAL), ..WithoutDisk::default() };
    let mut contents = Contents::default();
    recover(&disk, &folders, RecoverOptions::default(), &mut contents).unwrap();
    assert_eq!(contents.records.len(), 3);
}

/// The advice only says when bytes should go to the disk.
#[test]
fn a_snapshot_is_written_on_a_file_system_that_takes_no_advice() {
    for errno in LACKING {
        let disk = WithoutDisk { write_back: Some(errno), ..WithoutDisk::default() };
        Steps::on(disk).snapshot(1, 40).unwrap();
    }
}
