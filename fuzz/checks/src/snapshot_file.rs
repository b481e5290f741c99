//! Fuzzes the reading of snapshot files: plain, gzip and Snappy.

use crate::{
    ram_disk::RamDisk,
    restored::{KeptNode, Restored, check_tree},
    script::Script,
};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    txn::DIGEST_VERSION,
};
use ostler_storage::{
    names::snapshot_name,
    snapshot::{
        Compression, SnapshotFile, SnapshotTarget, SnapshotTrailer, SnapshotWriter, find_snapshots,
        read_snapshot,
    },
};
use simd_adler32::adler32;
use std::{io::Write, path::Path};

const HEADER: [u8; 16] = *b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff";
const SEAL_END: [u8; 5] = *b"\0\0\0\x01/";
/// The bytes are compressed before they are read, because random bytes seldom get through a decompressor.
const PACKED: u8 = 1;
/// The bytes get a header and checksums, so that the code behind those is reached, too.
const SEALED: u8 = 2;
const DIR: &str = "/data/version-2";

/// A snapshot that can be read can be written, and is read again the same. The first byte chooses what the rest is.
pub fn check(bytes: &[u8], compression: Compression) {
    let mut script = Script::new(bytes);
    let flags = script.byte();
    let mut file = if flags & SEALED != 0 { sealed(&mut script) } else { script.rest().to_vec() };
    if flags & PACKED != 0 {
        file = packed(&file, compression);
    }
    let Some((read, mut trailer)) = load(file, compression) else { return };
    // Digests of older versions are only read, never written.
    trailer.digest = trailer.digest.filter(|digest| digest.version >= DIGEST_VERSION);
    let Some((again, trailer_again)) = load_written(&read, trailer, compression) else {
        panic!("what was written is not read");
    };
    assert_eq!(trailer, trailer_again);
    assert_eq!(contents(&read), contents(&again));
    check_tree(&read.tree);
    let mut read = read;
    read.finish(Zxid(1), trailer);
    read.tree.drop_orphaned_ephemerals();
    check_tree(&read.tree);
}

/// A snapshot of one body and one trailer, each with its checksum.
fn sealed(script: &mut Script<'_>) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    let size = usize::from(script.short());
    file.extend_from_slice(script.take(size));
    file.extend_from_slice(&SEAL_END);
    seal(&mut file);
    for size in [20, 8] {
        if !script.is_over() {
            file.extend_from_slice(script.take(size));
            seal(&mut file);
        }
    }
    file
}

fn seal(file: &mut Vec<u8>) {
    let sum = u64::from(adler32(&&file[..]));
    file.extend(sum.to_be_bytes());
    file.extend_from_slice(&SEAL_END);
}

/// Compresses bytes as the writer does.
pub fn packed(bytes: &[u8], compression: Compression) -> Vec<u8> {
    match compression {
        Compression::None => bytes.to_vec(),
        Compression::Gz => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory does not fail")
        }
        Compression::Snappy => {
            let mut stream = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
            let block = snap::raw::Encoder::new().compress_vec(bytes).expect("the block is small");
            stream.extend((block.len() as u32).to_be_bytes());
            stream.extend(block);
            stream
        }
    }
}

fn load(bytes: Vec<u8>, compression: Compression) -> Option<(Restored, SnapshotTrailer)> {
    let disk = RamDisk::default();
    disk.put(&Path::new(DIR).join(snapshot_name(Zxid(1), compression)), bytes);
    read_newest(&disk)
}

fn load_written(
    read: &Restored,
    trailer: SnapshotTrailer,
    compression: Compression,
) -> Option<(Restored, SnapshotTrailer)> {
    let disk = RamDisk::default();
    let sessions = read.sessions.iter().copied();
    let acls = read.acls.iter().map(|(index, acl)| (*index, &**acl));
    let mut writer = SnapshotWriter::begin(
        &disk,
        SnapshotTarget::new(Path::new(DIR), Zxid(1), compression),
        sessions,
        acls,
    )
    .ok()?;
    for node in &read.nodes {
        writer.node(&node.path, node.data.as_deref(), node.acl, &node.stat).ok()?;
    }
    writer.finish(trailer).ok()?;
    read_newest(&disk)
}

fn read_newest(disk: &RamDisk) -> Option<(Restored, SnapshotTrailer)> {
    let found: Vec<SnapshotFile> = find_snapshots(disk, Path::new(DIR)).expect("memory does not fail");
    let mut restored = Restored::default();
    let trailer = read_snapshot(disk, found.first()?, &mut restored).ok()?;
    Some((restored, trailer))
}

type Contents<'a> = (&'a [(SessionId, i32)], &'a [(i64, Vec<Acl>)], Vec<KeptNode>);

/// No znode has a path with a character outside the basic plane. If a file has one, it is written as Java writes it,
/// which Java cannot read back. So before and after such a write count as the same here.
fn contents(read: &Restored) -> Contents<'_> {
    let as_java_reads_it = |path: &str| {
        let each = |c: char| if c > '\u{ffff}' { "\u{fffd}".repeat(6) } else { c.to_string() };
        path.chars().map(each).collect()
    };
    let nodes = read.nodes.iter().map(|node| KeptNode { path: as_java_reads_it(&node.path), ..node.clone() });
    (&read.sessions, &read.acls, nodes.collect())
}
