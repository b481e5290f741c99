//! Snapshots with any content, complete and damaged.

use crate::{
    faulty_disk::FaultyDisk,
    sinks::{Contents, Node},
};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    id::{SessionId, Zxid},
    stat::{EphemeralOwner, StatPersisted},
};
use ostler_storage::{
    StorageError,
    disk::OsDisk,
    error::Result,
    snapshot::{
        Compression, SnapshotDigest, SnapshotFile, SnapshotTarget, SnapshotTrailer, SnapshotWriter,
        find_snapshots, read_snapshot,
    },
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const DIR: &str = "/snapshots";
const TRAILER: SnapshotTrailer = SnapshotTrailer {
    digest: Some(SnapshotDigest { zxid: Zxid(9), version: 2, digest: 77 }),
    last_processed: Some(Zxid(9)),
};

fn write(disk: &FaultyDisk, contents: &Contents, compression: Compression, trailer: SnapshotTrailer) {
    let sessions = contents.sessions.iter().copied();
    let acls = contents.acls.iter().map(|(index, acl)| (*index, &acl[..]));
    let mut writer = SnapshotWriter::begin(
        disk,
        SnapshotTarget::new(Path::new(DIR), Zxid(9), compression),
        sessions,
        acls,
    )
    .unwrap();
    for node in &contents.nodes {
        writer.node(&node.path, node.data.as_deref(), node.acl, &node.stat).unwrap();
    }
    writer.finish(trailer).unwrap();
}

fn read(disk: &FaultyDisk) -> Result<(Contents, SnapshotTrailer)> {
    let file = find_snapshots(disk, Path::new(DIR)).unwrap().remove(0);
    let mut contents = Contents::default();
    let trailer = read_snapshot(disk, &file, &mut contents)?;
    Ok((contents, trailer))
}

fn sample() -> Contents {
    let acl = vec![Acl::world(Perms::ALL), Acl { perms: Perms::READ, id: Id::new("ip", "10.0.0.1") }];
    let node = |path: &str, data: Option<&[u8]>| Node {
        path: path.to_owned(),
        data: data.map(<[u8]>::to_vec),
        acl: -1,
        stat: StatPersisted { czxid: Zxid(3), version: -1, ..StatPersisted::default() },
    };
    Contents {
        sessions: vec![(SessionId(-5), 4000), (SessionId(7), i32::MAX)],
        acls: vec![(1, acl), (40, vec![])],
        nodes: vec![node("/", None), node("/a", Some(b"")), node("/a/ž", Some(b"x"))],
        ..Contents::default()
    }
}

#[test]
fn a_snapshot_without_the_sections_behind_its_znodes_is_read() {
    let disk = FaultyDisk::default();
    write(&disk, &sample(), Compression::None, TRAILER);
    let path = Path::new("/snapshots/snapshot.9");
    let whole = disk.bytes(path);
    let (last, digest) = (8 + 13, 20 + 13);
    for (cut, expected) in [
        (0, TRAILER),
        (last, SnapshotTrailer { last_processed: None, ..TRAILER }),
        (last + digest, SnapshotTrailer::default()),
        // The file ends inside the digest. Everything before it is sealed.
        (last + 1, SnapshotTrailer::default()),
    ] {
        disk.put(path, &whole[..whole.len() - cut]);
        assert_eq!(read(&disk).unwrap(), (sample(), expected), "{cut} bytes less");
    }
    // With its digest switched off, Java writes the last section only.
    let expected = SnapshotTrailer { digest: None, last_processed: Some(Zxid(5)) };
    write(&disk, &sample(), Compression::None, expected);
    assert_eq!(read(&disk).unwrap(), (sample(), expected));
}

#[test]
fn every_flipped_bit_is_found() {
    let disk = FaultyDisk::default();
    write(&disk, &sample(), Compression::None, TRAILER);
    let path = Path::new("/snapshots/snapshot.9");
    let whole = disk.bytes(path);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        disk.put(path, &bytes);
        let result = read(&disk);
        assert!(matches!(result, Err(StorageError::BadSnapshot { .. })), "flip at {at}");
    }
}

#[test]
fn the_ends_of_a_file_show_that_a_snapshot_is_incomplete() {
    let disk = FaultyDisk::default();
    for compression in [Compression::None, Compression::Gz, Compression::Snappy] {
        write(&disk, &sample(), compression, TRAILER);
    }
    let problems = |disk: &FaultyDisk| -> Vec<bool> {
        let files = find_snapshots(disk, Path::new(DIR)).unwrap();
        files.iter().map(|file| file.problem.is_some()).collect()
    };
    assert_eq!(problems(&disk), [false; 3]);
    for name in disk.names() {
        disk.put(&name, b"");
    }
    assert_eq!(problems(&disk), [true; 3]);
}

/// Java writes a leader's tree under this name, and takes it for a snapshot if it dies before the rename.
#[test]
fn a_leaders_tree_that_java_did_not_rename_counts_if_it_is_complete_and_of_a_known_epoch() {
    let disk = FaultyDisk::default();
    write(&disk, &sample(), Compression::None, TRAILER);
    let (named, unrenamed) = (Path::new("/snapshots/snapshot.9"), Path::new("/snapshots/snapshot.9.tmp"));
    let whole = disk.bytes(named);
    disk.put(unrenamed, &whole);
    let found = |disk: &FaultyDisk| -> Vec<PathBuf> {
        find_snapshots(disk, Path::new(DIR)).unwrap().into_iter().map(|file| file.path).collect()
    };
    assert_eq!(found(&disk), [named], "there is one with the right name");
    disk.put(named, b"");
    assert_eq!(found(&disk), [named, unrenamed], "but an incomplete one");
    disk.put(named, &whole);

    let later = Path::new("/snapshots/snapshot.100000009.tmp");
    disk.put(later, &whole);
    assert_eq!(found(&disk), [later, named], "no epoch is excluded");
    for (current, expected) in [("0", &[named][..]), ("1", &[later, named]), ("2", &[later, named])] {
        disk.put(Path::new("/snapshots/currentEpoch"), current.as_bytes());
        assert_eq!(found(&disk), expected, "in epoch {current}");
    }
    disk.put(later, &whole[..whole.len() - 1]);
    assert_eq!(found(&disk), [named], "it is incomplete");
}

#[test]
fn huge_lengths_and_counts_are_errors() {
    let disk = FaultyDisk::default();
    let header = b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff";
    for tail in [&[0x7f, 0xff, 0xff, 0xff][..], &[0, 0, 0, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff, 0xff, 1]] {
        disk.put(Path::new("/snapshots/snapshot.9"), &[header, tail].concat());
        assert!(matches!(read(&disk), Err(StorageError::BadSnapshot { .. })));
    }
}

#[test]
fn a_snapshot_larger_than_the_buffers_is_read_as_it_was_written() {
    let mut contents = sample();
    for n in 0..1500 {
        let mut node = contents.nodes[1].clone();
        node.path = format!("/n{n}");
        node.data = Some(vec![n as u8; 100 + n]);
        node.stat.ephemeral_owner = EphemeralOwner(n as i64);
        contents.nodes.push(node);
    }
    for compression in [Compression::None, Compression::Gz, Compression::Snappy] {
        let disk = FaultyDisk::default();
        write(&disk, &contents, compression, TRAILER);
        assert!(read(&disk).unwrap() == (contents.clone(), TRAILER));
    }
}

fn any_contents() -> impl Strategy<Value = Contents> {
    let text = "[a-zž\u{800}]{0,8}";
    let acl =
        (any::<i32>(), text, text).prop_map(|(perms, a, b)| Acl { perms: Perms(perms), id: Id::new(a, b) });
    let stat = (any::<u64>(), any::<i64>(), any::<i32>()).prop_map(|(zxid, time, version)| StatPersisted {
        czxid: Zxid(zxid),
        ctime: time,
        cversion: version,
        ephemeral_owner: EphemeralOwner(time),
        ..StatPersisted::default()
    });
    let data = prop::option::of(prop::collection::vec(any::<u8>(), 0..100));
    let node = ("/[a-zž]{1,9}", data, any::<i64>(), stat).prop_map(|(path, data, acl, stat)| Node {
        path,
        data,
        acl,
        stat,
    });
    (
        prop::collection::vec((any::<i64>().prop_map(SessionId), any::<i32>()), 0..4),
        prop::collection::vec((any::<i64>(), prop::collection::vec(acl, 0..3)), 0..4),
        prop::collection::vec(node, 0..8),
    )
        .prop_map(|(sessions, acls, nodes)| Contents { sessions, acls, nodes, ..Contents::default() })
}

fn any_compression() -> impl Strategy<Value = Compression> {
    prop_oneof![Just(Compression::None), Just(Compression::Gz), Just(Compression::Snappy)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_snapshot_is_read_as_it_was_written(contents in any_contents(), compression in any_compression()) {
        let disk = FaultyDisk::default();
        write(&disk, &contents, compression, TRAILER);
        prop_assert_eq!(read(&disk).unwrap(), (contents, TRAILER));
    }

    #[test]
    fn random_bytes_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), compression in any_compression()) {
        let start: &[u8] = match compression {
            Compression::None => b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff",
            Compression::Gz => &[0x1f, 0x8b, 8],
            Compression::Snappy => b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x10",
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, [start, &bytes].concat()).unwrap();
        let file = SnapshotFile { zxid: Zxid(1), compression, path, problem: None };
        let _ = read_snapshot(&OsDisk, &file, &mut Contents::default());
    }
}
