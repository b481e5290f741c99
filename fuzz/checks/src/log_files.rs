//! Fuzzes the recovery from transaction logs at a server's start.

use crate::{
    ram_disk::RamDisk,
    restored::{Restored, TYPES, check_tree},
    script::Script,
};
use ostler_proto::id::Zxid;
use ostler_storage::{
    StorageError,
    disk::Disk,
    folders::DataFolders,
    names::{Compression, log_name},
    recover::{Note, RecoverOptions, Recovered, recover},
    snapshot::{SnapshotTarget, SnapshotTrailer, SnapshotWriter},
    txnlog::{Advance, LogFileReader},
};
use ostler_tree::Tree;
use simd_adler32::adler32;
use std::path::Path;

/// The header of a log file: "ZKLG", version 2, database id 0.
pub const HEADER: [u8; 16] = *b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0";
const FRAMED: u8 = 1;
const WITHOUT_SNAPSHOT: u8 = 2;
const TWO_FILES: u8 = 4;
/// The files' names do not match their first records. The start refuses such files.
const ANY_NAME: u8 = 8;

/// The first byte chooses what the rest is: the bytes of the files, or records that get a frame with the right
/// checksum, so that the code behind the checksum is reached, too.
///
/// A recovery that succeeds must succeed again with the same result, and soon find nothing more to tidy. A recovery
/// that fails must not have changed anything.
pub fn check(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let (disk, options) = lay_out(&mut script);
    let folders = DataFolders::at(Path::new("/data"), None);
    read_each_file(&disk, &folders);
    let before = contents(&disk, &folders);

    let mut restored = Restored::default();
    match recover(&disk, &folders, options, &mut restored) {
        Ok(recovered) => recovers_again(&disk, &folders, options, &restored, &recovered),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(before == contents(&disk, &folders), "a failed recovery changed files: {error}");
        }
    }
}

fn lay_out(script: &mut Script<'_>) -> (RamDisk, RecoverOptions) {
    let flags = script.byte();
    let disk = RamDisk::default();
    let folders = DataFolders::at(Path::new("/data"), None);
    let trust_empty = flags & WITHOUT_SNAPSHOT != 0;
    if !trust_empty {
        write_fresh_snapshot(&disk, &folders.snapshots).expect("memory does not fail");
    }
    if flags & TWO_FILES != 0 {
        let given = Zxid(u64::from(script.byte()));
        let size = usize::from(script.short());
        put_log(&disk, &folders, flags, given, script.take(size));
    }
    put_log(&disk, &folders, flags, Zxid(1), script.rest());
    (disk, RecoverOptions { trust_empty, ..RecoverOptions::default() })
}

/// A log is named after its first record.
fn put_log(disk: &RamDisk, folders: &DataFolders, flags: u8, given: Zxid, bytes: &[u8]) {
    let bytes = file(flags, bytes);
    let first = if flags & ANY_NAME == 0 { first_record(&bytes) } else { None };
    disk.put(&folders.logs.join(log_name(first.unwrap_or(given))), bytes);
}

fn first_record(bytes: &[u8]) -> Option<Zxid> {
    let (disk, path) = (RamDisk::default(), Path::new("log"));
    disk.put(path, bytes.to_vec());
    match LogFileReader::open(&disk, path).ok()?.advance() {
        Ok(Advance::Record(zxid)) => Some(zxid),
        _ => None,
    }
}

fn file(flags: u8, bytes: &[u8]) -> Vec<u8> {
    if flags & FRAMED == 0 { bytes.to_vec() } else { framed(&mut Script::new(bytes)) }
}

/// Frames records, which come with their lengths in front. After a length of 0 the rest is taken as it is.
fn framed(script: &mut Script<'_>) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    while !script.is_over() {
        let length = usize::from(script.short());
        let entry = script.take(length);
        if entry.is_empty() {
            file.extend_from_slice(script.rest());
            break;
        }
        frame_record(entry, &mut file);
    }
    file
}

/// Appends a record as the log holds it.
pub fn frame_record(entry: &[u8], file: &mut Vec<u8>) {
    file.extend(u64::from(adler32(&entry)).to_be_bytes());
    file.extend((entry.len() as u32).to_be_bytes());
    file.extend_from_slice(entry);
    file.push(b'B');
}

fn write_fresh_snapshot(disk: &dyn Disk, dir: &Path) -> Result<(), StorageError> {
    let frozen = Tree::fresh(TYPES).freeze();
    let acls = frozen.acls.iter().map(|(id, acls)| (id.to_disk(), &**acls));
    let mut writer = SnapshotWriter::begin(
        disk,
        SnapshotTarget::new(dir, Zxid::ZERO, Compression::None),
        std::iter::empty(),
        acls,
    )?;
    for node in frozen.nodes() {
        writer.node(&node.path, node.data.as_deref(), node.acl.to_disk(), &node.stat)?;
    }
    writer.finish(SnapshotTrailer::default()).map(drop)
}

/// Each record that the reader returns must be in the file at its offset, with the right frame.
fn read_each_file(disk: &RamDisk, folders: &DataFolders) {
    for name in disk.list(&folders.logs).expect("memory does not fail") {
        let path = folders.logs.join(name);
        let Ok(mut reader) = LogFileReader::open(disk, &path) else { continue };
        let bytes = whole(disk, &path);
        let mut end = HEADER.len() as u64;
        while let Ok(Advance::Record(zxid)) = reader.advance() {
            let record = reader.record().expect("a record is at hand");
            assert_eq!((record.zxid, record.offset), (zxid, end));
            let mut expected = Vec::new();
            frame_record(record.bytes, &mut expected);
            assert_eq!(bytes[end as usize..][..expected.len()], expected);
            end = reader.offset();
        }
    }
}

/// Repeats the recovery until there is nothing more to tidy. That takes at most one start for each file: a newest file
/// that was cut back to its header is removed at the next start, and then the file before it is the newest.
fn recovers_again(
    disk: &RamDisk,
    folders: &DataFolders,
    options: RecoverOptions,
    first: &Restored,
    recovered: &Recovered,
) {
    check_tree(&first.tree);
    assert!(recovered.notes.iter().all(|note| !note.to_string().is_empty()));
    let tidied = |note: &Note| matches!(note, Note::TornTail(_) | Note::UnfinishedGivenUp(_));
    let files = disk.list(&folders.logs).expect("memory does not fail").len();
    for _ in 0..=files {
        let mut restored = Restored::default();
        let again =
            recover(disk, folders, options, &mut restored).expect("a recovery that succeeded succeeds again");
        assert_eq!((again.last_zxid, again.records), (recovered.last_zxid, recovered.records));
        assert_eq!(first.records, restored.records);
        assert_eq!(first.tree.digest(), restored.tree.digest());
        if !again.notes.iter().any(tidied) {
            return;
        }
    }
    panic!("after {files} starts more there is something left to tidy");
}

fn contents(disk: &RamDisk, folders: &DataFolders) -> Vec<(String, Vec<u8>)> {
    let names = disk.list(&folders.logs).expect("memory does not fail");
    names.into_iter().map(|name| (name.clone(), whole(disk, &folders.logs.join(name)))).collect()
}

fn whole(disk: &RamDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path).expect("the file was listed");
    let mut bytes = vec![0; file.size().expect("memory does not fail") as usize];
    file.read_at(&mut bytes, 0).expect("memory does not fail");
    bytes
}
